//! Accepting puts: finding the rules that they have to fit, checking them, and copying their values.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use zonda_convert::Converted;
use zonda_format::{Access, FittingPut, Meta, PutRules, Transfer, Values, VarRef, VlenSource};
use zonda_model::Hyperslab;
use zonda_runtime::callout;
use zonda_runtime::lock::MutexGuard;
use zonda_shared::NoRoom;
use zonda_trace::{Args, EventKind};

use super::job::{PutBatch, job_bytes};
use super::memory::ValueMemory;
use super::{KnownRules, WriteQueue, WriteQueueState, args_of};
use crate::error::Result;
use crate::tuning::{
    ACCEPT_BLOCK_BYTES, COLLECTED_FIRST_BYTES, COLLECTED_MAX_BYTES, SMALL_PUT_BYTES,
};

impl WriteQueue {
    /// The rules that puts to a variable are checked by; `None` where there are none, so that the file has to check the put.
    pub(crate) fn known(&self, var: VarRef) -> Option<KnownRules> {
        // A put from within a plugin is carried out at once: the thread that would carry it out later might wait for
        // that plugin.
        if callout::is_within() {
            return None;
        }
        let state = self.lock();
        let (group, id) = (usize::from(var.group.0), usize::try_from(var.var.0).ok()?);
        let epoch = state.epoch;
        if state.n_holds > 0 || state.is_off {
            return None;
        }
        if let Some(rules) = super::rules_of(&state.rules, var) {
            return Some(KnownRules { rules: Arc::clone(rules), epoch });
        }
        drop(state);
        let rules = Arc::new(self.find_rules(var, epoch)?);
        let mut state = self.lock();
        // A thread that holds puts back has begun another epoch.
        if state.epoch != epoch || self.is_over() {
            return None;
        }
        if state.rules.len() <= group {
            state.rules.resize_with(group + 1, Vec::new);
        }
        let vars = &mut state.rules[group];
        if vars.len() <= id {
            vars.resize_with(id + 1, || None);
        }
        vars[id] = Some(Arc::clone(&rules));
        Some(KnownRules { rules, epoch })
    }

    fn find_rules(&self, var: VarRef, epoch: u64) -> Option<PutRules> {
        self.begin_watch(epoch);
        if self.inner.capabilities.shared_puts {
            return self.find_shared(var);
        }
        self.commit_definitions(var);
        let is_there = self.front.read().is_some();
        if !is_there {
            let file = self.inner.read().ok()?;
            if !file.is_writable() {
                return None;
            }
            let view = file.view().ok()??;
            drop(file);
            // Locks are taken in this order everywhere: file, state of the queue, view.
            let state = self.lock();
            if state.epoch != epoch || self.is_busy() {
                return None;
            }
            *self.front.write() = Some(view);
        }
        let front = self.front.read();
        let view = front.as_ref()?;
        let rules = view.put_rules(var).ok()??;
        let meta = Meta::new(view.file(), var.group);
        if self.is_watched()
            && let Ok(found) = meta.var(var.var)
        {
            self.send_var(var, &meta.group_path(), found.name);
        }
        Some(rules)
    }

    /// The rules for a file to which several threads may put at once.
    fn find_shared(&self, var: VarRef) -> Option<PutRules> {
        let mut file = self.inner.read().ok()?;
        if !file.is_writable() || file.in_define_mode() {
            return None;
        }
        let mut name = None;
        if self.is_watched() {
            name = file.committed_name(var);
            if name.is_none() {
                // The helper cannot find a variable by a name that no commit has written yet.
                drop(file);
                self.commit().ok()?;
                file = self.inner.read().ok()?;
                name = file.committed_name(var);
            }
        }
        let rules = file.put_rules(var)?;
        if let (Some(there), Some(n_records)) = (file.definitions().n_records(), &self.n_records) {
            // From here on accepted puts are counted, too; puts that go the ordinary way report their records
            // themselves.
            n_records.fetch_max(there, Ordering::AcqRel);
        }
        drop(file);
        if let Some(name) = name {
            self.send_var(var, b"/", &name);
        }
        Some(rules)
    }

    /// Begins a put.
    ///
    /// # Errors
    /// The failure of a put that was accepted before.
    #[inline]
    pub(crate) fn put_to(&self, var: VarRef) -> Result<AcceptablePut<'_>> {
        self.check()?;
        let mut queued = AcceptablePut { queue: self, var, with: PutRulesState::Nothing };
        if callout::is_within() {
            return Ok(queued);
        }
        let state = self.lock();
        let rules = super::rules_of(&state.rules, var);
        let is_simple = rules.is_some_and(|rules| rules.is_atomic() && !rules.can_grow());
        if is_simple && state.open.is_some() {
            queued.with = PutRulesState::AtOnce(state);
        } else {
            drop(state);
            queued.find_out();
        }
        Ok(queued)
    }

    /// Accepts a put of packed elements; `None` where it has to go the ordinary way.
    ///
    /// # Errors
    /// What stopped the queue while the put waited for room.
    pub(crate) fn accept(
        &self,
        var: VarRef,
        known: &KnownRules,
        fit: &FittingPut<'_>,
        given: &[u8],
    ) -> Result<Option<Converted>> {
        let accepted = if fit.kept_bytes > SMALL_PUT_BYTES {
            self.accept_large(var, known, fit, given)?
        } else {
            self.accept_small(var, known, fit, given)?
        };
        Ok(accepted.map(|converted| known.rules.reported(fit.given, converted)))
    }

    fn accept_large(
        &self,
        var: VarRef,
        known: &KnownRules,
        fit: &FittingPut<'_>,
        given: &[u8],
    ) -> Result<Option<Converted>> {
        let mut bytes = Some(fit.kept_bytes);
        if self.budget().arena().is_some() {
            bytes = fit.kept_bytes.checked_add(job_bytes(fit.slab.start.len()));
        }
        let Some(bytes) = bytes else { return Ok(None) };
        let Some(mut memory) = self.wait_for_memory(bytes)? else { return Ok(None) };
        let converted = keep(fit, given, &mut memory);
        let batch = PutBatch::new(memory);
        let Ok(converted) = converted else {
            self.give_back(batch);
            return Ok(None);
        };
        let is_accepted = self.accept_batch(batch, var, known, fit, |batch, grown_from| {
            batch.add(var, &fit.slab, fit.mem, fit.kept_bytes, grown_from)
        });
        Ok(is_accepted.then_some(converted))
    }

    /// Accepts a put as a batch of its own, to which `add` adds it; false where it has to go the ordinary way.
    fn accept_batch(
        &self,
        mut batch: PutBatch,
        var: VarRef,
        known: &KnownRules,
        fit: &FittingPut<'_>,
        add: impl FnOnce(&mut PutBatch, Option<u64>) -> std::result::Result<(), NoRoom>,
    ) -> bool {
        let mut state = self.lock();
        let is_added = state.epoch == known.epoch && !self.is_over() && {
            let grown_from = self.grow(var, known, fit);
            self.begin(&mut state, &mut batch);
            add(&mut batch, grown_from).is_ok()
        };
        if !is_added {
            drop(state);
            self.give_back(batch);
            return false;
        }
        if zonda_trace::on() {
            let bytes = batch.value_bytes();
            trace_accepted(var, bytes, state.pending_bytes + bytes);
        }
        self.push(state, batch);
        true
    }

    fn accept_small(
        &self,
        var: VarRef,
        known: &KnownRules,
        fit: &FittingPut<'_>,
        given: &[u8],
    ) -> Result<Option<Converted>> {
        let rank = fit.slab.start.len();
        let mut memory = None;
        loop {
            let mut state = self.lock();
            if state.epoch != known.epoch || self.is_over() {
                drop(state);
                memory.into_iter().for_each(|memory| self.budget().give_back(memory));
                return Ok(None);
            }
            let has_room = |open: &PutBatch| open.has_room(fit.kept_bytes, rank);
            if !state.open.as_ref().is_some_and(has_room) {
                let Some(memory) = memory.take() else {
                    let least_bytes = fit.kept_bytes + job_bytes(rank);
                    memory = self.memory_to_collect(state, least_bytes)?;
                    if memory.is_none() {
                        return Ok(None);
                    }
                    continue;
                };
                let mut empty = PutBatch::new(memory);
                self.begin(&mut state, &mut empty);
                let full = state.open.replace(empty);
                if let Some(full) = full {
                    state.queue.push_back(Arc::new(full));
                    // The lock was released meanwhile: the file may have changed its mode, or have been closed.
                    drop(self.schedule(state));
                    continue;
                }
            }
            let grown_from = self.grow(var, known, fit);
            let Some(open) = &mut state.open else { continue };
            let kept = keep(fit, given, &mut open.bytes).and_then(|converted| {
                open.add(var, &fit.slab, fit.mem, fit.kept_bytes, grown_from)?;
                Ok(converted)
            });
            let Ok(converted) = kept else {
                drop(state);
                memory.into_iter().for_each(|memory| self.budget().give_back(memory));
                return Ok(None);
            };
            state.pending_bytes += fit.kept_bytes;
            if zonda_trace::on() {
                trace_accepted(var, fit.kept_bytes, state.pending_bytes);
            }
            self.n_accepted.fetch_add(1, Ordering::SeqCst);
            drop(state);
            memory.into_iter().for_each(|memory| self.budget().give_back(memory));
            return Ok(Some(converted));
        }
    }

    /// Memory in which small puts are collected: as much as the last ones needed, and more where it was not enough.
    #[cold]
    fn memory_to_collect(
        &self,
        state: MutexGuard<'_, WriteQueueState>,
        least_bytes: usize,
    ) -> Result<Option<ValueMemory>> {
        let wanted = match &state.open {
            Some(open) => open.bytes.capacity().saturating_mul(2).min(COLLECTED_MAX_BYTES),
            None => COLLECTED_FIRST_BYTES,
        };
        drop(state);
        self.wait_for_memory(wanted.min(self.budget().limit() / 4).max(least_bytes))
    }

    /// Accepts a put of elements that may refer to strings or sequences; false where it has to go the ordinary way.
    ///
    /// # Errors
    /// As [`WriteQueue::accept`]; `NC_ENOMEM` for sequences of impossible lengths.
    pub(crate) fn accept_placed(
        &self,
        var: VarRef,
        known: &KnownRules,
        fit: &FittingPut<'_>,
        fetch: &mut dyn VlenSource,
        given: &[u8],
    ) -> Result<bool> {
        let owned = {
            let front = self.front.read();
            let Some(view) = &*front else { return Ok(false) };
            view.hold(known.rules.nc_type, fetch, given)?
        };
        let job = job_bytes(fit.slab.start.len());
        let batch = if self.budget().arena().is_some() {
            let memory = self.wait_for_memory(owned.written_bytes() + job)?;
            let Some(memory) = memory else { return Ok(false) };
            PutBatch::new(memory)
        } else {
            let bytes = owned.memory_bytes() + job;
            if !self.wait_for_bytes(bytes)? {
                return Ok(false);
            }
            PutBatch::of_owned(bytes)
        };
        Ok(self.accept_batch(batch, var, known, fit, |batch, grown_from| {
            batch.add_owned(var, &fit.slab, owned, grown_from)
        }))
    }

    /// Grows the dimensions that inquiries see to their lengths after the put; gives the length before, if one grew.
    fn grow(&self, var: VarRef, known: &KnownRules, fit: &FittingPut<'_>) -> Option<u64> {
        if !known.rules.can_grow() || fit.kept_bytes == 0 {
            return None;
        }
        if let Some(n_records) = &self.n_records {
            let to = known.rules.reach(&fit.slab);
            let before = n_records.fetch_max(to, Ordering::AcqRel);
            return (to > before).then_some(before);
        }
        self.front.write().as_mut()?.grow(var, &known.rules, &fit.slab)
    }
}

/// A put that the queue may accept.
pub(crate) struct AcceptablePut<'a> {
    queue: &'a WriteQueue,
    var: VarRef,
    with: PutRulesState<'a>,
}

/// What the queue knows about the variable of a put.
enum PutRulesState<'a> {
    /// Small puts are being collected, and the variable cannot grow. The lock of the queue is kept, so that its rules
    /// and memory stay, and the put costs one lock only.
    AtOnce(MutexGuard<'a, WriteQueueState>),
    KnownRules(KnownRules),
    /// The queue knows no rules: the file has to check the put.
    Nothing,
}

impl<'a> AcceptablePut<'a> {
    pub(crate) fn queue(&self) -> &'a WriteQueue {
        self.queue
    }

    fn rules(&self) -> Option<&PutRules> {
        match &self.with {
            PutRulesState::AtOnce(state) => {
                super::rules_of(&state.rules, self.var).map(|rules| &**rules)
            }
            PutRulesState::KnownRules(known) => Some(&known.rules),
            PutRulesState::Nothing => None,
        }
    }

    /// Rank of the variable, where it is known.
    #[inline]
    pub(crate) fn rank(&self) -> Option<usize> {
        self.rules().map(PutRules::rank)
    }

    /// Whether the put certainly fits the rules. If not, the file has to check it.
    #[inline]
    pub(crate) fn check(&mut self, put: &mut Transfer<Access<'_>>) -> bool {
        if let PutRulesState::AtOnce(state) = &self.with {
            let fits =
                super::rules_of(&state.rules, self.var).is_some_and(|rules| rules.check(put));
            let kept = usize::try_from(put.found[0]).unwrap_or(usize::MAX);
            let has_room = |open: &PutBatch| open.has_room(kept, put.of().slab.start.len());
            if fits && kept <= SMALL_PUT_BYTES && state.open.as_ref().is_some_and(has_room) {
                return true;
            }
            self.find_out();
        }
        self.rules().is_some_and(|rules| rules.check(put))
    }

    /// Looks the rules up anew, after releasing the lock of the queue.
    fn find_out(&mut self) {
        self.with = PutRulesState::Nothing;
        if let Some(known) = self.queue.known(self.var) {
            self.with = PutRulesState::KnownRules(known);
        }
    }

    /// Releases the lock of the queue, which others wait for.
    pub(crate) fn let_go(&mut self) {
        if let PutRulesState::AtOnce(_) = self.with {
            self.with = PutRulesState::Nothing;
        }
    }

    /// Accepts the values, which have the length that the check gave; `None` where the put has to go the ordinary
    /// way.
    ///
    /// # Errors
    /// What stopped the queue while the put waited for room; `NC_ENOMEM` for sequences of impossible lengths.
    #[inline]
    pub(crate) fn accept(
        &mut self,
        put: &Transfer<Access<'_>>,
        values: &mut Values<'_>,
    ) -> Result<Option<Converted>> {
        if let PutRulesState::AtOnce(state) = &mut self.with {
            let WriteQueueState { rules, open, pending_bytes, .. } = &mut **state;
            let kept =
                super::rules_of(rules, self.var).zip(open.as_mut()).and_then(|(rules, open)| {
                    let fit = rules.fit(put)?;
                    let converted = keep(&fit, values.bytes, &mut open.bytes).ok()?;
                    open.add(self.var, &fit.slab, fit.mem, fit.kept_bytes, None).ok()?;
                    *pending_bytes += fit.kept_bytes;
                    if zonda_trace::on() {
                        trace_accepted(self.var, fit.kept_bytes, *pending_bytes);
                    }
                    Some(rules.reported(fit.given, converted))
                });
            if kept.is_some() {
                self.queue.n_accepted.fetch_add(1, Ordering::SeqCst);
                return Ok(kept);
            }
            self.find_out();
            // Another thread may have changed definitions, and so the rules.
            let mut again = Transfer::new(*put.of());
            let fits = self.rules().is_some_and(|rules| rules.check(&mut again));
            if !fits || again.n_bytes != put.n_bytes {
                return Ok(None);
            }
        }
        let PutRulesState::KnownRules(known) = &self.with else { return Ok(None) };
        let Some(fit) = known.rules.fit(put) else { return Ok(None) };
        if known.rules.is_atomic() {
            return self.queue.accept(self.var, known, &fit, values.bytes);
        }
        // Without a source of strings the file refuses the put, if there are any.
        let Some(fetch) = values.fetch.as_deref_mut() else { return Ok(None) };
        let accepted = self.queue.accept_placed(self.var, known, &fit, fetch, values.bytes)?;
        Ok(accepted.then(Converted::default))
    }

    /// To be called after a put that went the ordinary way: updates the lengths that inquiries see. Gives the
    /// selection without the entries beyond the rank.
    pub(crate) fn grew<'s>(&self, put: &Transfer<Access<'s>>) -> Hyperslab<'s> {
        let slab = put.of().slab;
        self.queue.grew(self.var, &slab);
        let PutRulesState::KnownRules(known) = &self.with else { return slab };
        known.rules.fit(put).map_or(slab, |fit| fit.slab)
    }
}

/// Appends values to the memory, copied or converted.
///
/// # Errors
/// [`NoRoom`] where the memory is too short after all: then the put goes the ordinary way.
fn keep(
    fit: &FittingPut<'_>,
    given: &[u8],
    memory: &mut ValueMemory,
) -> std::result::Result<Converted, NoRoom> {
    let Some(encoder) = &fit.encoder else {
        memory.append(given)?;
        return Ok(Converted::default());
    };
    let per = (ACCEPT_BLOCK_BYTES / encoder.mem_size().max(encoder.ext_size())).max(1);
    let mut converted = Converted::default();
    for block in given.chunks(per * encoder.mem_size()) {
        let n = block.len() / encoder.mem_size();
        let kept = memory.grow(n * encoder.ext_size())?;
        converted = converted.and(encoder.encode(block, kept));
    }
    Ok(converted)
}

/// Traces an accepted put of `bytes`; `pending` are the bytes that wait with it.
#[cold]
fn trace_accepted(var: VarRef, bytes: usize, pending: usize) {
    let args = || Args { bytes: bytes as u64, ..args_of(var) };
    zonda_trace::instant(EventKind::QueueAccept, args);
    zonda_trace::counter(EventKind::QueueBytes, 0, || pending as u64);
}
