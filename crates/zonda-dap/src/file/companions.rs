//! Which other variables come with the one that is asked for.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use zonda_convert::Converted;
use zonda_format::Result;
use zonda_model::NcError;
use zonda_slab::Hyperslab;
use zonda_storage::{RemoteFailure, StorageError};

use super::DapFile;
use super::get::Own;
use super::sink::Goal;
use super::tuning::{MOST_AHEAD_BYTES, MOST_KEPT_VAR_BYTES, MOST_PREFETCH_BYTES, MOST_QUERY};
use super::whole::Whole;
use crate::error::DapError;
use crate::protocol::{Part, Request};

/// What is asked for of one variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selection {
    pub(super) var: usize,
    pub(super) start: Vec<u64>,
    pub(super) count: Vec<u64>,
    pub(super) stride: Vec<u64>,
}

impl Selection {
    pub(super) fn of(var: usize, slab: &Hyperslab<'_>) -> Selection {
        let mut selection =
            Selection { var, start: Vec::new(), count: Vec::new(), stride: Vec::new() };
        for at in 0..slab.count.len() {
            let axis = slab.axis(at);
            selection.start.push(axis.start);
            selection.count.push(axis.count);
            // Of a single element the stride has no meaning, and may be any.
            selection.stride.push(if axis.count > 1 { axis.stride } else { 1 });
        }
        selection
    }

    pub(super) fn part(&self) -> Part<'_> {
        let Selection { var, start, count, stride } = self;
        Part { var: *var, start, count, stride }
    }

    pub(super) fn n_elems(&self) -> u64 {
        self.count.iter().fold(1, |n, &count| n.saturating_mul(count))
    }
}

impl DapFile {
    /// All of a variable.
    pub(super) fn all_of(&self, var: usize) -> Result<Selection> {
        let shape = &self.of(var)?.shape;
        let each = |value| shape.iter().map(|_| value).collect();
        Ok(Selection { var, start: each(0), count: shape.clone(), stride: each(1) })
    }

    /// Makes a request for one variable, and for others with it, which are kept. `read` are the bytes of a variable that is read whole.
    ///
    /// Where the request for all of them fails, the one is asked for alone: what is wrong may be wrong with another one.
    pub(super) fn ask_with_others(
        &self,
        wanted: &Selection,
        mut own: Own<'_>,
        read: Option<u64>,
    ) -> Result<(Converted, Option<Arc<Whole>>)> {
        let var = wanted.var;
        let is_alone = !self.controls.prefetch
            || !self.controls.cache
            || self.asks_alone.load(Ordering::Relaxed);
        let coming = self.kept.choose(read.map(|bytes| (var, bytes)), |is_missing, ahead| {
            if is_alone { Vec::new() } else { self.companions(var, read, is_missing, ahead) }
        });
        let mut others = coming.vars();
        let mut parts = vec![wanted.clone()];
        for &other in others {
            parts.push(self.all_of(other)?);
        }
        let mut request = self.request(&parts)?;
        while request.query.len() > MOST_QUERY && parts.len() > 1 {
            parts.truncate(parts.len().div_ceil(2));
            request = self.request(&parts)?;
        }
        others = others.get(..parts.len().saturating_sub(1)).unwrap_or_default();
        if !others.is_empty() {
            let mut goals = vec![self.own_goal(var, &mut own)?];
            for &other in others {
                goals.push(self.keeping(other)?);
            }
            match self.ask(&request, &parts, goals) {
                Ok(came) => {
                    let mut came = came.into_iter();
                    let first = came.next().ok_or(NcError::Internal)?;
                    for (&other, goal) in others.iter().zip(came) {
                        if let Some(whole) = goal.into_whole() {
                            self.kept.keep(other, &Arc::new(whole));
                        }
                    }
                    return Ok(outcome(first));
                }
                Err(error) if is_silent(&error) => return Err(error.into()),
                Err(_) => {}
            }
        }
        let came = self.ask_alone(wanted, |request| {
            let goals = vec![self.own_goal(var, &mut own)?];
            Ok(self
                .ask(request, std::slice::from_ref(wanted), goals)?
                .into_iter()
                .next()
                .map(outcome))
        })?;
        if !others.is_empty() {
            // That was for nothing, and would be again.
            self.asks_alone.store(true, Ordering::Relaxed);
        }
        Ok(came.ok_or(NcError::Internal)?)
    }

    /// Makes a request for one variable. A response may show that the server does not understand the request, and that there is another one for the same
    /// elements: then that one is made.
    pub(super) fn ask_alone<T>(
        &self,
        wanted: &Selection,
        mut ask: impl FnMut(&Request) -> Result<T>,
    ) -> Result<T> {
        let request = self.request(std::slice::from_ref(wanted))?;
        let error = match ask(&request) {
            Ok(came) => return Ok(came),
            Err(error) => error,
        };
        let other = self.request(std::slice::from_ref(wanted))?;
        if other == request { Err(error) } else { ask(&other) }
    }

    fn own_goal<'o>(&self, var: usize, own: &'o mut Own<'_>) -> Result<Goal<'o>> {
        Ok(match own {
            Own::Memory { decoder, elem, out } => {
                let converted = Converted::default();
                Goal::Memory { decoder: *decoder, elem: *elem, out, converted }
            }
            Own::Keep => self.keeping(var)?,
        })
    }

    /// Other variables that are worth asking for in the same request: small ones, and those behind it where variables are read in their order.
    fn companions(
        &self,
        var: usize,
        read: Option<u64>,
        is_missing: &dyn Fn(usize) -> bool,
        ahead: u64,
    ) -> Vec<usize> {
        let most = self.kept.room() / 4;
        let (mut left, mut chosen) = (MOST_PREFETCH_BYTES.min(most), Vec::new());
        for &small in &self.small {
            let bytes = self.bytes_of(small);
            if small != var && bytes <= left && is_missing(small) {
                left = left.saturating_sub(bytes);
                chosen.push(small);
            }
        }
        if read.is_none() {
            return chosen;
        }
        let mut left = ahead.min(MOST_AHEAD_BYTES).min(most);
        for next in var.saturating_add(1)..self.vars.len() {
            let bytes = self.bytes_of(next);
            let is_of_no_length = self.protocol.has_pointers(next);
            if chosen.contains(&next) || !is_missing(next) || bytes == 0 || is_of_no_length {
                continue;
            }
            if bytes > left || bytes > MOST_KEPT_VAR_BYTES {
                break;
            }
            left = left.saturating_sub(bytes);
            chosen.push(next);
        }
        chosen
    }
}

/// Whether nobody answers, so that another request is none the better.
fn is_silent(error: &DapError) -> bool {
    use RemoteFailure::{TimedOut, Unreachable};
    let DapError::Storage { error, .. } = error else { return false };
    matches!(error, StorageError::Remote { kind: TimedOut | Unreachable, .. })
}

/// What came of the variable that a request was made for.
fn outcome(goal: Goal<'_>) -> (Converted, Option<Arc<Whole>>) {
    match goal {
        Goal::Memory { converted, .. } => (converted, None),
        goal => (Converted::default(), goal.into_whole().map(Arc::new)),
    }
}
