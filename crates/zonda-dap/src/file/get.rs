//! Gets: from what is kept, or by requests.

use std::sync::Arc;

use zonda_convert::{Converted, Decoder};
use zonda_format::{Access, Destination, Error, Result, Transfer};
use zonda_model::{MemType, NcError};

use super::DapFile;
use super::companions::Selection;
use super::sink::{Goal, Placer, Taker};
use super::split::split;
use super::tuning::{LEAST_PART_BYTES, MOST_KEPT_VAR_BYTES};
use super::whole::Whole;
use crate::error::DapError;
use crate::protocol::{Part, Request, Sink};

/// Where the elements of the variable go that a request is made for.
pub(super) enum Own<'a> {
    /// Into memory of the caller.
    Memory { decoder: Option<Decoder>, elem: usize, out: &'a mut [u8] },
    /// Into what is kept.
    Keep,
}

impl DapFile {
    pub(super) fn fetch(
        &self,
        get: &Transfer<Access<'_>>,
        room: Destination<'_>,
    ) -> Result<Converted> {
        if room.bytes.len() != get.n_bytes {
            let why = "memory of another length than the selection has";
            return Err(Error::because(NcError::Inval, why));
        }
        if get.n_elems == 0 {
            return Ok(Converted::default());
        }
        let access = get.of();
        let var = *self.place_of.get(&access.var).ok_or(NcError::NotVar)?;
        let (of, shape) = (self.of(var)?, &self.of(var)?.shape);
        let slab = access.slab.ranked(shape.len()).ok_or(NcError::InvalidCoords)?;
        let is_all = slab.is_unit() && shape.iter().zip(slab.count).all(|(&n, &c)| n == c as u64);
        let whole = match self.kept.find(var) {
            Some(whole) => {
                if is_all {
                    self.kept.note_read(var, whole.memory_bytes());
                }
                Some(whole)
            }
            None if !self.server.heeds_constraints() => Some(self.fetch_saved(var)?),
            None if self.is_asked_whole(var, is_all) => Some(self.fetch_whole(var)?),
            None => None,
        };
        match whole {
            Some(whole) => whole.deliver(&of.form, (shape, &slab), get.mem, room),
            None => self.fetch_selection(&Selection::of(var, &slab), is_all, get.mem, room),
        }
    }

    /// Whether a variable is asked for whole and kept.
    fn is_asked_whole(&self, var: usize, is_read_whole: bool) -> bool {
        let bytes = self.bytes_of(var);
        let fits = bytes <= self.kept.room() / 4;
        let is_short = is_read_whole && bytes <= MOST_KEPT_VAR_BYTES;
        self.controls.cache && fits && (is_short || self.small.contains(&var))
    }

    /// Asks for all of a variable, and for others with it.
    fn fetch_whole(&self, var: usize) -> Result<Arc<Whole>> {
        let read = Some(self.bytes_of(var));
        let (_, whole) = self.ask_with_others(&self.all_of(var)?, Own::Keep, read)?;
        let whole = whole.ok_or(NcError::Internal)?;
        self.kept.keep(var, &whole);
        Ok(whole)
    }

    /// A variable of a saved response, which has all of them.
    fn fetch_saved(&self, var: usize) -> Result<Arc<Whole>> {
        let all = (0..self.vars.len()).map(|var| self.bytes_of(var));
        let is_all_kept =
            self.controls.cache && all.fold(0, u64::saturating_add) <= self.kept.room();
        let (mut parts, mut goals) = (Vec::new(), Vec::new());
        for each in (0..self.vars.len()).filter(|&each| self.bytes_of(each) > 0) {
            parts.push(self.all_of(each)?);
            goals.push(match is_all_kept || each == var {
                true => self.keeping(each)?,
                false => Goal::Nothing,
            });
        }
        let request = self.request(&parts)?;
        let mut own = None;
        for (part, goal) in parts.iter().zip(self.ask(&request, &parts, goals)?) {
            let Some(whole) = goal.into_whole().map(Arc::new) else { continue };
            if is_all_kept {
                self.kept.keep(part.var, &whole);
            }
            if part.var == var {
                own = Some(whole);
            }
        }
        Ok(own.ok_or(NcError::Internal)?)
    }

    /// Asks for elements that go straight to the caller.
    fn fetch_selection(
        &self,
        wanted: &Selection,
        is_all: bool,
        mem: Option<MemType>,
        room: Destination<'_>,
    ) -> Result<Converted> {
        let (form, Destination { bytes, place }) = (&self.of(wanted.var)?.form, room);
        if !form.pointers.is_empty() {
            let Some(place) = place else {
                let why = "the call does not say where strings and sequences go";
                return Err(Error::because(NcError::BadType, why));
            };
            let (pointers, document) = (&form.pointers, self.document);
            self.ask_alone(wanted, |request| {
                let (out, place) = (&mut *bytes, &mut *place);
                let mut placer = Placer { pointers, out, place, document, refused: None };
                let done = self.read(request, &[wanted.part()], &mut placer);
                match (done.and_then(|()| placer.check_whole()), placer.refused) {
                    (Ok(()), _) => Ok(()),
                    (Err(_), Some(refused)) => Err(refused),
                    (Err(error), None) => Err(error.into()),
                }
            })?;
            return Ok(Converted::default());
        }
        let decoder = form.decoder(mem)?;
        let n_bytes = wanted.n_elems().saturating_mul(form.elem as u64);
        let read = is_all.then_some(n_bytes);
        if n_bytes >= LEAST_PART_BYTES.saturating_mul(2) && self.server.parallel() > 1 {
            let pieces = split(wanted, n_bytes, self.server.parallel());
            if pieces.len() > 1 {
                return self.fetch_pieces(&pieces, (decoder, form.elem), bytes);
            }
        }
        let own = Own::Memory { decoder, elem: form.elem, out: bytes };
        Ok(self.ask_with_others(wanted, own, read)?.0)
    }

    /// A goal that keeps all of a variable.
    pub(super) fn keeping(&self, var: usize) -> Result<Goal<'static>> {
        let (elem, bytes) = (self.of(var)?.form.elem, self.bytes_of(var));
        Ok(match self.protocol.has_pointers(var) {
            true => Goal::KeepOwned(Vec::new(), bytes, elem),
            false => Goal::Keep(Vec::new(), bytes),
        })
    }

    /// The request for some selections.
    pub(super) fn request(&self, selections: &[Selection]) -> Result<Request> {
        let parts: Vec<Part<'_>> = selections.iter().map(Selection::part).collect();
        Ok(self.protocol.request(&parts)?)
    }

    /// Makes a request. Gives the goals, each of which has all of its elements.
    pub(super) fn ask<'a>(
        &self,
        request: &Request,
        selections: &[Selection],
        goals: Vec<Goal<'a>>,
    ) -> std::result::Result<Vec<Goal<'a>>, DapError> {
        let parts: Vec<Part<'_>> = selections.iter().map(Selection::part).collect();
        let mut taker = Taker { goals, document: self.document };
        self.read(request, &parts, &mut taker)?;
        taker.check_whole()?;
        Ok(taker.goals)
    }

    /// Makes a request, and hands what comes to a sink.
    fn read(
        &self,
        request: &Request,
        parts: &[Part<'_>],
        sink: &mut dyn Sink,
    ) -> std::result::Result<(), DapError> {
        let bytes = parts.iter().map(|part| {
            let n = part.count.iter().fold(1u64, |n, &count| n.saturating_mul(count));
            n.saturating_mul(self.vars.get(part.var).map_or(0, |var| var.form.elem as u64))
        });
        let bytes = bytes.fold(0, u64::saturating_add);
        let document = self.document;
        let body = self.server.ask_for(request, bytes);
        let mut body = body.map_err(|error| DapError::Storage { document, error })?;
        self.protocol.read(parts, &mut *body, sink)
    }
}
