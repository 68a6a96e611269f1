//! What a client has of a file that a server writes: a copy of the definitions, and a line to the server.

use std::collections::HashMap;
use std::sync::Arc;

use zonda_convert::{Converted, Encoder};
use zonda_format::{
    Access, Dispatch, DispatchWrite, Error, FillMode, FittingPut, OwnedValues, Pointers, PutRules,
    Result, Transfer, Values, VarRef, View,
};
use zonda_model::{MemType, NcError};
use zonda_slab::Hyperslab;

use crate::call::{Call, OwnedSlab, Told, ValuesForm};
use crate::line::{Line, Reply};
use crate::ranks::RankPuts;
use crate::tuning::CONVERTED_BLOCK_BYTES;

/// A file whose definitions are here and whose data are elsewhere. Definitions are made in the copy, which refuses what is wrong with them, and
/// told to the server; inquiries look at the copy. A put is checked by the copy's definitions, and its values are told; so a call waits for the
/// server only where it asks for elements, or puts what only the file can check.
#[derive(Debug)]
pub struct ServedFile {
    /// A file of the same format, in memory, into which nothing is put.
    pub(crate) copy: Box<dyn Dispatch>,
    pub(crate) line: Arc<dyn Line>,
    /// What makes rules, for formats that make none by themselves.
    view: Option<Box<dyn View>>,
    rules: HashMap<VarRef, Option<Arc<PutRules>>>,
    /// The put that was checked fits these rules.
    fits: Option<Arc<PutRules>>,
    /// Of a file that several ranks have.
    pub(crate) ranks: Option<RankPuts>,
}

impl ServedFile {
    /// The file of a client. The server makes the calls on one that was opened in the same way as `copy`.
    #[must_use]
    pub fn new(copy: Box<dyn Dispatch>, line: Arc<dyn Line>) -> ServedFile {
        let rules = HashMap::new();
        ServedFile { copy, line, view: None, rules, fits: None, ranks: None }
    }

    /// The file of a client that is one of several ranks. The server makes the calls of all of them.
    #[must_use]
    pub fn of_ranks(copy: Box<dyn Dispatch>, line: Arc<dyn Line>) -> ServedFile {
        ServedFile { ranks: Some(RankPuts::new()), ..ServedFile::new(copy, line) }
    }

    /// Sets whether new space is filled, where the server does the same by itself.
    ///
    /// # Errors
    /// As [`DispatchWrite::set_fill`].
    pub fn set_fill_of_copy(&mut self, mode: FillMode) -> Result<()> {
        self.writer_of_copy()?.set_fill(mode).map(drop)
    }

    pub(crate) fn writer_of_copy(&mut self) -> Result<&mut dyn DispatchWrite> {
        self.copy.writer().ok_or_else(Error::only_read)
    }

    /// Gives what went wrong on the server since the last call. Puts give it, and steps (sync, enddef, close ...). Definitions do not: ranks
    /// that learn of a failure at different calls would have different ones.
    pub(crate) fn check(&self) -> Result<()> {
        self.line.failure().map_or(Ok(()), Err)
    }

    /// Makes a step in the copy and tells it, also after a failure, which it gives then: the server brings the steps of ranks together by
    /// their number.
    pub(crate) fn step(
        &mut self,
        call: impl FnOnce() -> Call,
        step: impl FnOnce(&mut dyn DispatchWrite) -> Result<()>,
    ) -> Result<()> {
        let done = self.define(call, step);
        self.check().and(done)
    }

    /// Makes a call in the copy, and tells it with whether it failed there.
    pub(crate) fn define<T>(
        &mut self,
        call: impl FnOnce() -> Call,
        define: impl FnOnce(&mut dyn DispatchWrite) -> Result<T>,
    ) -> Result<T> {
        self.forget_rules();
        let done = define(self.writer_of_copy()?);
        self.tell_of(call(), done)
    }

    /// Tells a call that the copy carried out.
    fn tell_of<T>(&self, call: Call, done: Result<T>) -> Result<T> {
        self.tell(of(call, &done))?;
        done
    }

    /// The same with values, which are copied with what they point to.
    pub(crate) fn define_with<T>(
        &mut self,
        call: impl FnOnce(ValuesForm) -> Call,
        values: Values<'_>,
        nc_type: i32,
        define: impl FnOnce(&mut dyn DispatchWrite, Values<'_>) -> Result<T>,
    ) -> Result<T> {
        self.forget_rules();
        let Values { bytes, fetch } = values;
        let Some(fetch) = fetch else {
            let done = define(self.writer_of_copy()?, Values::plain(bytes));
            self.tell_bytes(&of(call(ValuesForm::Plain), &done), bytes)?;
            return done;
        };
        let pointers = Pointers::of(self.copy.definitions(), nc_type)?;
        let owned = pointers.take(fetch, bytes)?;
        let mut parts: &OwnedValues = &owned;
        let values = Values { bytes: owned.bytes(), fetch: Some(&mut parts) };
        let done = define(self.writer_of_copy()?, values);
        self.tell_owned(&of(call(ValuesForm::Owned), &done), &owned)?;
        done
    }

    pub(crate) fn tell(&self, told: impl Into<Told>) -> Result<()> {
        self.line.tell(&told.into(), 0, &mut |_| Ok(()))
    }

    fn tell_bytes(&self, told: &Told, bytes: &[u8]) -> Result<()> {
        self.line.tell(told, bytes.len(), &mut |to| {
            to.copy_from_slice(bytes);
            Ok(())
        })
    }

    fn tell_owned(&self, told: &Told, owned: &OwnedValues) -> Result<()> {
        self.line.tell(told, owned.written_bytes(), &mut |to| {
            owned.write_to(to).ok_or_else(|| Error::from(NcError::Internal))
        })
    }

    /// Rules are made from definitions, which change.
    pub(crate) fn forget_rules(&mut self) {
        self.view = None;
        self.rules.clear();
        self.fits = None;
    }

    /// The rules that puts to a variable are checked by; `None` where the file itself has to check them.
    fn rules_of(&mut self, var: VarRef) -> Option<Arc<PutRules>> {
        if let Some(known) = self.rules.get(&var) {
            return known.clone();
        }
        if !self.copy.is_writable() || self.copy.in_define_mode() {
            return None;
        }
        let found = if self.copy.capabilities().shared_puts {
            self.copy.put_rules(var)
        } else {
            if self.view.is_none() {
                self.view = self.copy.view().ok()?;
            }
            self.view.as_ref()?.put_rules(var).ok()?
        };
        let found = found.map(Arc::new);
        self.rules.insert(var, found.clone());
        found
    }

    pub(crate) fn check_served_put(&mut self, put: &mut Transfer<Access<'_>>) -> Result<()> {
        self.fits = None;
        self.check()?;
        let var = put.of().var;
        if !self.rules.contains_key(&var) {
            // The first put ends definitions where the format has it so. From then on the variable cannot be stored in another way, in the
            // copy as in the file.
            self.check_put_by_copy(put)?;
        }
        match self.rules_of(var).filter(|rules| rules.check(put)) {
            Some(rules) => self.fits = Some(rules),
            None => self.check_put_by_copy(put)?,
        }
        Ok(())
    }

    fn check_put_by_copy(&mut self, put: &mut Transfer<Access<'_>>) -> Result<()> {
        let checked = self.writer_of_copy()?.check_put(put);
        if checked.is_err() {
            let Access { var, slab, mem } = *put.of();
            self.tell(Call::CheckPut { var, slab: OwnedSlab::of(&slab), mem })?;
            self.took_part(var);
        }
        checked
    }

    pub(crate) fn served_put(
        &mut self,
        put: &Transfer<Access<'_>>,
        values: Values<'_>,
    ) -> Result<Converted> {
        let Access { var, slab, mem } = *put.of();
        if values.bytes.len() != put.n_bytes {
            let why = "memory of another length than the selection has";
            return Err(Error::because(NcError::Inval, why));
        }
        let rules = self.fits.take();
        let fit = rules.as_ref().and_then(|rules| rules.fit(put));
        let fit = fit.filter(|fit| !self.may_not_grow(var, &reach(&fit.slab)));
        let (Some(rules), Some(fit)) = (rules, fit) else {
            // Only the file can say what becomes of it.
            self.took_part(var);
            let converted = self.ask_put(var, &slab, mem, values)?.converted;
            let shape = self.line.ask(&Call::Shape { var }, &[])?.shape;
            self.take_shape(var, &shape)?;
            return Ok(converted);
        };
        let converted = self.tell_put(var, &rules, &fit, values)?;
        self.took_part(var);
        if put.n_elems > 0 {
            self.writer_of_copy()?.note_reach(var, &slab);
        }
        Ok(converted)
    }

    fn tell_put(
        &self,
        var: VarRef,
        rules: &PutRules,
        fit: &FittingPut<'_>,
        Values { bytes, fetch }: Values<'_>,
    ) -> Result<Converted> {
        let slab = OwnedSlab::of(&fit.slab);
        if !rules.is_atomic() {
            let pointers = Pointers::of(self.copy.definitions(), rules.nc_type)?;
            if !pointers.is_empty() {
                let fetch = fetch.ok_or_else(no_source)?;
                let owned = pointers.take(fetch, bytes)?;
                let call = Call::Put { var, slab, mem: None, form: ValuesForm::Owned };
                self.tell_owned(&call.into(), &owned)?;
                return Ok(Converted::default());
            }
        }
        let call = Call::Put { var, slab, mem: fit.mem, form: ValuesForm::Plain };
        let mut converted = Converted::default();
        self.line.tell(&call.into(), fit.kept_bytes, &mut |to| {
            converted = keep(fit.encoder.as_ref(), bytes, to);
            Ok(())
        })?;
        Ok(rules.reported(fit.given, converted))
    }

    fn ask_put(
        &self,
        var: VarRef,
        slab: &Hyperslab<'_>,
        mem: Option<MemType>,
        Values { bytes, fetch }: Values<'_>,
    ) -> Result<Reply> {
        let slab = OwnedSlab::of(slab);
        let nc_type = self.copy.definitions().var(var)?.nc_type;
        let pointers = match mem {
            None => Some(Pointers::of(self.copy.definitions(), nc_type)?),
            Some(_) => None,
        };
        let Some(pointers) = pointers.filter(|pointers| !pointers.is_empty()) else {
            let call = Call::Put { var, slab, mem, form: ValuesForm::Plain };
            return self.line.ask(&call, bytes);
        };
        let owned = pointers.take(fetch.ok_or_else(no_source)?, bytes)?;
        let mut written = zonda_model::memory::filled(owned.written_bytes(), 0)?;
        owned.write_to(&mut written).ok_or(NcError::Internal)?;
        let call = Call::Put { var, slab, mem, form: ValuesForm::Owned };
        self.line.ask(&call, &written)
    }

    /// Makes the copy's lengths those that the server has.
    pub(crate) fn take_shape(&mut self, var: VarRef, shape: &[usize]) -> Result<()> {
        if shape.contains(&0) {
            return Ok(());
        }
        let start = vec![0; shape.len()];
        let all = Hyperslab { start: &start, count: shape, stride: None };
        self.writer_of_copy()?.note_reach(var, &all);
        Ok(())
    }

    /// Nothing more can be done with it.
    pub(crate) fn end(&mut self) {
        self.forget_rules();
    }
}

/// How long a variable has to be for a put, along each dimension.
fn reach(slab: &Hyperslab<'_>) -> Vec<u64> {
    (0..slab.start.len()).map(|at| slab.axis(at).end()).collect()
}

/// What is told of a call that the copy carried out.
fn of<T>(call: Call, done: &Result<T>) -> Told {
    Told { call, failed: done.is_err() }
}

/// Copies values, or converts them to the type that is kept.
fn keep(encoder: Option<&Encoder>, given: &[u8], to: &mut [u8]) -> Converted {
    let Some(encoder) = encoder else {
        to.copy_from_slice(given);
        return Converted::default();
    };
    let (mem, ext) = (encoder.mem_size(), encoder.ext_size());
    let per = (CONVERTED_BLOCK_BYTES / mem.max(ext)).max(1);
    let blocks = given.chunks(per * mem).zip(to.chunks_mut(per * ext));
    blocks.fold(Converted::default(), |so_far, (from, to)| so_far.and(encoder.encode(from, to)))
}

fn no_source() -> Error {
    Error::because(NcError::BadType, "the call does not say where strings and sequences are")
}
