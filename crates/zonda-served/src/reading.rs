//! A file that a client has open for reading, and whose elements a server reads, once for all clients.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use zonda_convert::Converted;
use zonda_format::{
    Access, AttAccess, Capabilities, Definitions, Destination, Dispatch, DispatchWrite,
    OwnedValues, Pointers, PutRules, Result, StoreVars, Transfer, Values, VarRef, View,
};
use zonda_storage::Storage;

use crate::call::{Call, OwnedSlab};
use crate::tuning::{ASKED_BYTES, ASKED_SMALL_GETS, MOST_ASKED_BYTES};

/// What carries gets to the server of a file, and brings the elements.
pub trait ReadLine: Send + Sync {
    /// Asks for elements ([`Call::Get`]), which go to `room` where they are as many bytes as it has. `None` where the server does not give them, for whatever
    /// reason: then the client reads them itself, and learns from that what is wrong with them. `room` may have been written to.
    fn get(&self, call: &Call, room: &mut [u8]) -> Option<Got>;

    /// The client is about to read the definitions again: what the server knows of the file is old.
    fn renew(&self);
}

// By its name alone: else the table of each type's methods would have the text of all that the type holds.
impl std::fmt::Debug for dyn ReadLine + '_ {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("ReadLine")
    }
}

/// What a get gave.
#[derive(Debug)]
pub struct Got {
    /// Values that did not fit.
    pub converted: Converted,
    /// The elements, where they are not in the room that was given.
    pub apart: Option<Vec<u8>>,
}

/// A file that was opened for reading. All is answered by the file itself but gets, for which the server is asked.
#[derive(Debug)]
pub struct ReadFile {
    own: Box<dyn Dispatch>,
    line: Arc<dyn ReadLine>,
    /// Of so many bytes of variables without filters the server is asked, too.
    plain_bytes: usize,
    /// Gets of few bytes that the server was asked for.
    n_small: AtomicU32,
}

impl ReadFile {
    /// The server has the file open that `own` is. It is asked for variables with filters.
    #[must_use]
    pub fn new(own: Box<dyn Dispatch>, line: Arc<dyn ReadLine>) -> ReadFile {
        ReadFile { own, line, plain_bytes: usize::MAX, n_small: AtomicU32::new(0) }
    }

    /// The same, of which the server is asked for other variables, too, unless a get is of few bytes.
    #[must_use]
    pub fn asking_for_all(self) -> ReadFile {
        ReadFile { plain_bytes: ASKED_BYTES, ..self }
    }

    /// The same, of which the server is asked for each element: for tests.
    #[must_use]
    pub fn asking_always(self) -> ReadFile {
        ReadFile { plain_bytes: 1, ..self }
    }

    /// Whether to ask for so many bytes of a variable.
    fn is_asked(&self, var: VarRef, n_bytes: usize) -> bool {
        if n_bytes == 0 || n_bytes > MOST_ASKED_BYTES {
            return false;
        }
        if n_bytes >= self.plain_bytes {
            return true;
        }
        let is_small = n_bytes < ASKED_BYTES;
        if is_small && self.n_small.load(Ordering::Relaxed) >= ASKED_SMALL_GETS {
            return false;
        }
        self.has_filters(var)
            && (!is_small || self.n_small.fetch_add(1, Ordering::Relaxed) < ASKED_SMALL_GETS)
    }

    fn has_filters(&self, var: VarRef) -> bool {
        let info = self.own.storage_of_vars().and_then(|vars| vars.var_info(var).ok());
        info.is_some_and(|info| !info.filters.is_empty())
    }

    /// Where elements of that access point to others.
    fn pointers(&self, access: &Access<'_>) -> Result<Pointers> {
        if access.mem.is_some() {
            return Ok(Pointers::none());
        }
        let definitions = self.own.definitions();
        Pointers::of(definitions, definitions.var(access.var)?.nc_type)
    }

    /// Asks for elements that point to no others. `None` where the server does not give them.
    fn ask_plain(&self, call: &Call, room: &mut [u8]) -> Option<Converted> {
        let Got { converted, apart } = self.line.get(call, room)?;
        if let Some(values) = apart {
            if values.len() != room.len() {
                return None;
            }
            room.copy_from_slice(&values);
        }
        Some(converted)
    }

    /// Asks for elements with what they point to.
    fn ask_owned(&self, call: &Call, n_bytes: usize) -> Option<(Converted, OwnedValues)> {
        let got = self.line.get(call, &mut [])?;
        let owned = OwnedValues::read_from(&got.apart?)?;
        (owned.bytes().len() == n_bytes).then_some((got.converted, owned))
    }
}

impl Dispatch for ReadFile {
    fn get(&self, get: &Transfer<Access<'_>>, room: Destination<'_>) -> Result<Converted> {
        let access = get.of();
        let (var, mem) = (access.var, access.mem);
        if room.bytes.len() != get.n_bytes || !self.is_asked(var, get.n_bytes) {
            return self.own.get(get, room);
        }
        let pointers = self.pointers(access)?;
        let call = Call::Get { var, slab: OwnedSlab::of(&access.slab), mem };
        let Destination { bytes, place } = room;
        if pointers.is_empty() {
            if let Some(converted) = self.ask_plain(&call, bytes) {
                return Ok(converted);
            }
            return self.own.get(get, Destination { bytes, place });
        }
        let Some(place) = place else {
            return self.own.get(get, Destination { bytes, place: None });
        };
        match self.ask_owned(&call, bytes.len()) {
            Some((converted, owned)) => pointers.give(&owned, place, bytes).map(|()| converted),
            None => self.own.get(get, Destination { bytes, place: Some(place) }),
        }
    }

    fn get_now(&self, get: &mut Transfer<Access<'_>>, room: Destination<'_>) -> Result<Converted> {
        // The file itself may have a shorter way.
        if room.bytes.len() < self.plain_bytes && !self.has_filters(get.of().var) {
            return self.own.get_now(get, room);
        }
        self.check_get(get)?;
        self.get(get, room)
    }

    fn read_again(&mut self, tries: &mut u32) -> bool {
        self.line.renew();
        self.own.read_again(tries)
    }

    fn refresh(&mut self) -> Result<()> {
        self.line.renew();
        self.own.refresh()
    }

    fn capabilities(&self) -> &'static Capabilities {
        self.own.capabilities()
    }

    fn storage(&self) -> Option<&Arc<dyn Storage>> {
        self.own.storage()
    }

    fn definitions(&self) -> &dyn Definitions {
        self.own.definitions()
    }

    fn is_writable(&self) -> bool {
        self.own.is_writable()
    }

    fn in_define_mode(&self) -> bool {
        self.own.in_define_mode()
    }

    fn rank(&self, var: VarRef) -> usize {
        self.own.rank(var)
    }

    fn check_get(&self, get: &mut Transfer<Access<'_>>) -> Result<()> {
        self.own.check_get(get)
    }

    fn check_get_att(&self, get: &mut Transfer<AttAccess<'_>>) -> Result<()> {
        self.own.check_get_att(get)
    }

    fn get_att(&self, get: &Transfer<AttAccess<'_>>, room: Destination<'_>) -> Result<Converted> {
        self.own.get_att(get, room)
    }

    fn is_get_ready(&self, get: &Access<'_>) -> Result<bool> {
        self.own.is_get_ready(get)
    }

    fn storage_of_vars(&self) -> Option<&dyn StoreVars> {
        self.own.storage_of_vars()
    }

    fn check_shared_put(&self, put: &mut Transfer<Access<'_>>) -> Result<()> {
        self.own.check_shared_put(put)
    }

    fn shared_put(&self, put: &Transfer<Access<'_>>, values: Values<'_>) -> Result<Converted> {
        self.own.shared_put(put, values)
    }

    fn shared_put_now(
        &self,
        put: &mut Transfer<Access<'_>>,
        values: Values<'_>,
    ) -> Result<Converted> {
        self.own.shared_put_now(put, values)
    }

    fn put_rules(&self, var: VarRef) -> Option<PutRules> {
        self.own.put_rules(var)
    }

    fn n_accepted(&self) -> Option<&Arc<AtomicU64>> {
        self.own.n_accepted()
    }

    fn view(&self) -> Result<Option<Box<dyn View>>> {
        self.own.view()
    }

    fn committed_name(&self, var: VarRef) -> Option<Box<[u8]>> {
        self.own.committed_name(var)
    }

    fn n_confirmed(&self) -> Option<u64> {
        self.own.n_confirmed()
    }

    fn may_end_definitions(&self) -> bool {
        self.own.may_end_definitions()
    }

    fn writer(&mut self) -> Option<&mut dyn DispatchWrite> {
        self.own.writer()
    }

    fn leave(&mut self) {
        self.own.leave();
    }

    /// That of the file itself: tools that know its format find it.
    fn as_any(&self) -> &dyn Any {
        self.own.as_any()
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self.own.as_any_mut()
    }
}
