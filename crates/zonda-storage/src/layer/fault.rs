//! `fault:OP:N[:KIND]`: fails the N-th operation; `fault:log` records writes for crash tests.
//!
//! OP is `read`, `write`, `sync` (barriers too), `setlen` or `any` of these; a call with many
//! ranges is one operation. After N a `+` makes all that follow fail as well. KIND is `eio` (the
//! default), `enospc`, or `short`: the write stops at a page border inside the range and then
//! reports the error, as a killed writer would leave it. A sync that was made to fail stays an error,
//! as that of a file does.

mod log;

pub use log::{Log, LogEntry, WriteLog};

use crate::forward;
use crate::spec::{Below, Building, LayerSpec, Registered, SpecArgs, SpecError};
use crate::storage::fill_by_writes;
use crate::syncs::Syncs;
use crate::{BLOCK_BYTES, Op, ReadRange, Storage, StorageError, WriteRange};
use std::fmt;
use std::sync::Arc;
use zonda_runtime::lock::{Mutex, Rank};

/// How a spec names this layer.
pub(super) const REGISTERED: Registered = Registered { name: "fault", parse };

fn parse(args: &mut SpecArgs<'_>) -> Result<Arc<dyn LayerSpec>, SpecError> {
    let argument = args.required("an operation or `log`")?;
    let watched = match argument {
        "log" => {
            args.end()?;
            return Ok(Arc::new(log::LogSpec));
        }
        "read" => Watched::Read,
        "write" => Watched::Write,
        "sync" => Watched::Sync,
        "setlen" => Watched::SetLen,
        "any" => Watched::Any,
        other => return Err(args.bad(other, "read, write, sync, setlen, any or log")),
    };
    let argument = args.required("the number of the operation that fails")?;
    let (digits, onwards) =
        argument.strip_suffix('+').map_or((argument, false), |digits| (digits, true));
    let nth = args.number(digits)?;
    if nth == 0 {
        return Err(args.out_of_range(argument, "the number of the operation", "at least 1"));
    }
    let kind = match args.next() {
        None | Some("eio") => InjectedFault::Eio,
        Some("enospc") => InjectedFault::Enospc,
        Some("short") if matches!(watched, Watched::Write | Watched::Any) => InjectedFault::Short,
        Some("short") => return Err(args.bad("short", "eio or enospc (only a write can be short)")),
        Some(other) => return Err(args.bad(other, "eio, enospc or short")),
    };
    args.end()?;
    Ok(Arc::new(FaultPlan { watched, nth, onwards, kind }))
}

/// Which operations a [`FaultLayer`] counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watched {
    /// `read_at`, `read_ranges`.
    Read,
    /// `write_at`, `write_ranges`.
    Write,
    /// `barrier`, `sync`.
    Sync,
    /// `set_len`.
    SetLen,
    /// All of these.
    Any,
}

impl Watched {
    fn covers(self, op: Op) -> bool {
        match self {
            Watched::Read => op == Op::Read,
            Watched::Write => op == Op::Write,
            Watched::Sync => matches!(op, Op::Barrier | Op::Sync),
            Watched::SetLen => op == Op::SetLen,
            Watched::Any => true,
        }
    }
}

/// How an operation fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectedFault {
    /// `EIO`, nothing done.
    Eio,
    /// `ENOSPC`, nothing done.
    Enospc,
    /// `EIO` after a write that stopped at a page border; other operations do nothing.
    Short,
}

/// Which operation fails, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultPlan {
    /// The operations counted.
    pub watched: Watched,
    /// Which of them fails, from 1 on.
    pub nth: u64,
    /// All after it fail too.
    pub onwards: bool,
    /// How.
    pub kind: InjectedFault,
}

impl fmt::Display for FaultPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let op = match self.watched {
            Watched::Read => "read",
            Watched::Write => "write",
            Watched::Sync => "sync",
            Watched::SetLen => "setlen",
            Watched::Any => "any",
        };
        let kind = match self.kind {
            InjectedFault::Eio => "eio",
            InjectedFault::Enospc => "enospc",
            InjectedFault::Short => "short",
        };
        write!(f, "fault:{op}:{}{}:{kind}", self.nth, if self.onwards { "+" } else { "" })
    }
}

impl LayerSpec for FaultPlan {
    fn build(&self, below: Below, building: &mut Building<'_>) -> Result<Below, StorageError> {
        let fault = FaultLayer::new(below, *self);
        building.handles.faults.push(fault.handle());
        Ok(Arc::new(fault))
    }

    fn buffers(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct FaultState {
    /// `None` when nothing is to fail.
    plan: Option<FaultPlan>,
    seen: u64,
    injected: u64,
}

/// Steers a [`FaultLayer`] from outside the stack.
#[derive(Debug, Clone)]
pub struct FaultHandle(Arc<Mutex<FaultState>>);

impl FaultHandle {
    /// Starts counting anew, for `plan`.
    pub fn arm(&self, plan: FaultPlan) {
        let mut state = self.0.lock();
        state.plan = Some(plan);
        state.seen = 0;
    }

    /// Lets everything succeed from now on, but for syncs where one has failed.
    pub fn disarm(&self) {
        self.0.lock().plan = None;
    }

    /// How many operations were made to fail.
    #[must_use]
    pub fn injected(&self) -> u64 {
        self.0.lock().injected
    }

    /// How many watched operations there were since the last [`FaultHandle::arm`].
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.0.lock().seen
    }
}

/// The layer.
#[derive(Debug)]
pub struct FaultLayer<S> {
    inner: S,
    /// As it was made, for `describe`.
    plan: FaultPlan,
    state: Arc<Mutex<FaultState>>,
    syncs: Syncs,
}

impl<S: Storage> FaultLayer<S> {
    /// Wraps `inner`.
    pub fn new(inner: S, plan: FaultPlan) -> Self {
        let state = FaultState { plan: Some(plan), seen: 0, injected: 0 };
        FaultLayer {
            inner,
            plan,
            state: Arc::new(Mutex::ranked(Rank::Layer, state)),
            syncs: Syncs::default(),
        }
    }

    /// A handle to it.
    #[must_use]
    pub fn handle(&self) -> FaultHandle {
        FaultHandle(Arc::clone(&self.state))
    }

    /// Counts an operation; the error and its kind if this is one that fails.
    fn strike(&self, op: Op, at: u64, len: u64) -> Option<(InjectedFault, StorageError)> {
        let mut state = self.state.lock();
        let plan = state.plan.filter(|plan| plan.watched.covers(op))?;
        state.seen += 1;
        let nth = state.seen;
        if nth != plan.nth && !(plan.onwards && nth > plan.nth) {
            return None;
        }
        state.injected += 1;
        let errno = match plan.kind {
            InjectedFault::Eio | InjectedFault::Short => libc::EIO,
            InjectedFault::Enospc => libc::ENOSPC,
        };
        Some((plan.kind, StorageError::Injected { op, nth, at, len, errno }))
    }

    fn check(&self, op: Op, at: u64, len: u64) -> Result<(), StorageError> {
        self.strike(op, at, len).map_or(Ok(()), |(_, error)| Err(error))
    }
}

/// The borders of pages strictly inside a range, as lengths of what comes before them.
fn page_cuts(at: u64, len: usize) -> impl DoubleEndedIterator<Item = usize> {
    let inside = (BLOCK_BYTES - at % BLOCK_BYTES) as usize;
    let n = (len.max(1) - 1).saturating_sub(inside) / BLOCK_BYTES as usize + 1;
    let n = if inside < len { n } else { 0 };
    (0..n).map(move |i| inside + i * BLOCK_BYTES as usize)
}

impl<S: Storage> Storage for FaultLayer<S> {
    forward! { this => this.inner; advise, rest, len, most_len, has_other_writers, remote, invalidate, stamp }

    fn read_at(&self, at: u64, buf: &mut [u8]) -> Result<usize, StorageError> {
        self.check(Op::Read, at, buf.len() as u64)?;
        self.inner.read_at(at, buf)
    }

    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StorageError> {
        let len = ranges.iter().map(|r| r.buf.len() as u64).sum();
        self.check(Op::Read, ranges.first().map_or(0, |r| r.at), len)?;
        self.inner.read_ranges(ranges)
    }

    fn write_at(&self, at: u64, data: &[u8]) -> Result<(), StorageError> {
        self.write_ranges(&[WriteRange { at, data }])
    }

    fn write_ranges(&self, ranges: &[WriteRange<'_>]) -> Result<(), StorageError> {
        let len = ranges.iter().map(|r| r.data.len() as u64).sum();
        let at = ranges.first().map_or(0, |r| r.at);
        let Some((kind, error)) = self.strike(Op::Write, at, len) else {
            return match ranges {
                [one] => self.inner.write_at(one.at, one.data),
                many => self.inner.write_ranges(many),
            };
        };
        if kind == InjectedFault::Short {
            // The ranges of the first half land, and the next one up to a border inside it.
            let half = ranges.len() / 2;
            self.inner.write_ranges(&ranges[..half])?;
            if let Some(WriteRange { at, data }) = ranges.get(half).copied() {
                let n_cuts = page_cuts(at, data.len()).count();
                if let Some(cut) = page_cuts(at, data.len()).nth(n_cuts / 2) {
                    self.inner.write_at(at, &data[..cut])?;
                }
            }
        }
        Err(error)
    }

    fn fill_at(&self, at: u64, len: u64, element: &[u8]) -> Result<(), StorageError> {
        fill_by_writes(self, at, len, element)
    }

    fn set_len(&self, len: u64) -> Result<(), StorageError> {
        self.check(Op::SetLen, len, 0)?;
        self.inner.set_len(len)
    }

    fn barrier(&self) -> Result<(), StorageError> {
        self.syncs.run(|| self.check(Op::Barrier, 0, 0))?;
        self.inner.barrier()
    }

    fn sync(&self) -> Result<(), StorageError> {
        self.syncs.run(|| self.check(Op::Sync, 0, 0))?;
        self.inner.sync()
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},", self.plan)?;
        self.inner.describe(f)
    }
}

#[cfg(test)]
mod tests {
    use super::page_cuts;

    #[test]
    fn cuts_are_the_borders_strictly_inside() {
        for at in [0, 1, 100, 4095, 4096, 5000] {
            for len in [0, 1, 2, 4095, 4096, 4097, 8191, 8192, 8193, 20000] {
                let expected: Vec<usize> =
                    (1..len).filter(|n| (at + *n as u64).is_multiple_of(4096)).collect();
                assert_eq!(page_cuts(at, len).collect::<Vec<_>>(), expected, "{at} {len}");
            }
        }
    }
}
