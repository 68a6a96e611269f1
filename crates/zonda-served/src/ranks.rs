//! A served file that several ranks have: each tells its own calls, and the server brings them together. So no rank waits for another, but
//! where it asks how long a dimension has become.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use zonda_format::{Dispatch as _, Error, GroupId, PutTogether, Result, VarRef};
use zonda_model::{NcError, VarId};
use zonda_runtime::lock::{Mutex, Rank};

use crate::call::Call;
use crate::file::ServedFile;

/// What one rank knows of puts that all make together.
#[derive(Debug)]
pub(crate) struct RankPuts {
    pub(crate) n_puts: u64,
    /// Variables whose puts are made together; `VarId::GLOBAL` of the root stands for all.
    collective: Mutex<BTreeSet<VarRef>>,
    /// Other ranks may have made dimensions longer.
    may_be_longer: AtomicBool,
}

impl RankPuts {
    pub(crate) fn new() -> RankPuts {
        RankPuts {
            n_puts: 0,
            collective: Mutex::ranked(Rank::AccessModes, BTreeSet::new()),
            may_be_longer: AtomicBool::new(false),
        }
    }

    fn is_collective(&self, var: VarRef) -> bool {
        let collective = self.collective.lock();
        collective.contains(&var) || collective.contains(&VarRef::group(GroupId::ROOT))
    }
}

impl ServedFile {
    /// Whether several ranks have it.
    #[must_use]
    pub fn is_of_ranks(&self) -> bool {
        self.ranks.is_some()
    }

    /// Has puts to a variable made by all ranks together, or by this rank alone; of a classic file it is one switch for all of its
    /// variables.
    ///
    /// # Errors
    /// `NC_ENOPAR` for a file of one process, `NC_ENOTVAR`.
    pub fn set_collective(&self, var: VarRef, is_collective: bool) -> Result<()> {
        let ranks = self.ranks.as_ref().ok_or(NcError::NoPar)?;
        let is_netcdf4 = self.capabilities().dialect.is_netcdf4();
        if is_netcdf4 {
            self.copy.definitions().var(var)?;
        }
        self.tell(Call::SetCollective { var, is_collective })?;
        let of = if is_netcdf4 { var } else { VarRef::group(GroupId::ROOT) };
        let mut collective = ranks.collective.lock();
        if is_collective {
            collective.insert(of)
        } else {
            collective.remove(&of)
        };
        Ok(())
    }

    /// Notes that this rank took part in a put of all ranks.
    pub(crate) fn took_part(&mut self, var: VarRef) {
        let can_grow = self.can_grow(var);
        let Some(ranks) = &mut self.ranks else { return };
        ranks.n_puts = ranks.n_puts.wrapping_add(1);
        if can_grow && ranks.is_collective(var) {
            ranks.may_be_longer.store(true, Ordering::Release);
        }
    }

    /// Whether only the server knows if a put may be made: one of this rank alone that makes a variable longer.
    pub(crate) fn may_not_grow(&self, var: VarRef, reach: &[u64]) -> bool {
        let Some(ranks) = &self.ranks else { return false };
        if ranks.is_collective(var) || !self.capabilities().dialect.is_netcdf4() {
            return false;
        }
        let definitions = self.copy.definitions();
        let Ok(found) = definitions.var(var) else { return false };
        let lens = found.dims.iter().map(|&dim| definitions.dim(dim));
        lens.zip(reach)
            .any(|(dim, &reach)| dim.is_ok_and(|dim| dim.is_unlimited && dim.len < reach))
    }

    fn can_grow(&self, var: VarRef) -> bool {
        let definitions = self.copy.definitions();
        let dims = definitions.var(var).map(|var| var.dims).unwrap_or_default();
        dims.iter().any(|&dim| definitions.dim(dim).is_ok_and(|dim| dim.is_unlimited))
    }

    /// Whether other ranks may have made dimensions longer than this one knows.
    #[must_use]
    pub fn may_be_longer(&self) -> bool {
        self.ranks.as_ref().is_some_and(|ranks| ranks.may_be_longer.load(Ordering::Acquire))
    }

    /// Asks the server how long variables have become, and waits for all puts so far.
    ///
    /// # Errors
    /// Those of the calls that were told; `NC_EIO` where the server is gone.
    pub fn learn_lengths(&mut self) -> Result<()> {
        if !self.may_be_longer() {
            return Ok(());
        }
        let mut groups = vec![GroupId::ROOT];
        while let Some(group) = groups.pop() {
            let found = self.copy.definitions().group(group)?;
            groups.extend(found.children);
            for id in 0..found.n_vars {
                let var = VarRef { group, var: VarId(i32::try_from(id).unwrap_or(i32::MAX)) };
                if self.can_grow(var) {
                    let shape = self.line.ask(&Call::Shape { var }, &[])?.shape;
                    self.take_shape(var, &shape)?;
                }
            }
        }
        if let Some(ranks) = &self.ranks {
            ranks.may_be_longer.store(false, Ordering::Release);
        }
        Ok(())
    }
}

impl PutTogether for ServedFile {
    fn n_puts_together(&self) -> u64 {
        self.ranks.as_ref().map_or(0, |ranks| ranks.n_puts)
    }

    fn take_part(&mut self, var: VarRef) -> Result<()> {
        if self.ranks.is_none() {
            return Err(Error::from(NcError::NoPar));
        }
        self.tell(Call::TakePart { var })?;
        self.took_part(var);
        Ok(())
    }
}
