//! The neighbours of a file that several ranks have open: rank 0 has them, the others follow its record.

use std::sync::Arc;

use zonda_storage::backend::Memory;
use zonda_storage::neighbour::Refusal;
use zonda_storage::{FoundSidecar, Sidecar, Sidecars, Storage, StorageError};

use crate::record::{Answer, Asked, What};
use crate::replica::{Replica, StepState};

/// The neighbours of a file, as one rank sees them in common steps. Nothing uses them outside of these.
///
/// A copy never takes the file's place, since other ranks have descriptors of the file.
#[derive(Debug)]
pub struct ReplicaSidecars {
    /// Those of the file, on rank 0.
    file: Option<Arc<dyn Sidecars>>,
    state: Arc<StepState>,
}

impl ReplicaSidecars {
    /// The neighbours of the file of a replica: `file` on rank 0, `None` on the others.
    #[must_use]
    pub fn new(replica: &Replica, file: Option<Arc<dyn Sidecars>>) -> ReplicaSidecars {
        ReplicaSidecars { file, state: Arc::clone(replica.state()) }
    }

    /// The storage of a neighbour, whose bytes go by the record, too.
    fn storage(&self, storage: Arc<dyn Storage>) -> Arc<dyn Storage> {
        Arc::new(Replica::within(storage, Arc::clone(&self.state)))
    }

    /// What another rank has in the place of a neighbour: its answers come from the record.
    fn stand_in() -> Arc<dyn Storage> {
        Arc::new(Memory::new())
    }

    fn of_file(&self) -> Result<&dyn Sidecars, StorageError> {
        let why =
            "the neighbours of a file that several ranks have open are used in common steps only";
        self.file.as_deref().ok_or_else(|| not_here(EIO, why))
    }

    fn find_by(
        &self,
        which: Sidecar,
        find: impl FnOnce(&dyn Sidecars) -> Result<Option<FoundSidecar>, StorageError>,
    ) -> Result<Option<FoundSidecar>, StorageError> {
        const NONE: u64 = 0;
        const FREE: u64 = 1;
        const IN_USE: u64 = 2;
        let found = self.state.ask(
            asked(What::FindSidecar, which),
            || find(self.of_file()?),
            |found| {
                let number = |found: &FoundSidecar| if found.in_use { IN_USE } else { FREE };
                Answer::Number(found.as_ref().map_or(NONE, number))
            },
            |answer| match answer {
                Answer::Number(NONE) => Some(None),
                Answer::Number(n @ (FREE | IN_USE)) => {
                    Some(Some(FoundSidecar { storage: Self::stand_in(), in_use: n == IN_USE }))
                }
                _ => None,
            },
        )?;
        Ok(found.map(|found| FoundSidecar { storage: self.storage(found.storage), ..found }))
    }

    fn act(
        &self,
        what: What,
        which: Option<Sidecar>,
        act: impl FnOnce(&dyn Sidecars) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        let asked = which.map_or(Asked { what, at: 0, len: 0 }, |which| asked(what, which));
        self.state.act(asked, || act(self.of_file()?))
    }
}

/// An operation that has no place here, whatever the file would say.
fn not_here(errno: i32, why: &str) -> StorageError {
    let text = Arc::from(why);
    StorageError::OfRank { rank: 0, errno, at: None, lost_sync: false, refused: false, text }
}

/// `EIO` of Linux on every architecture.
const EIO: i32 = 5;

/// `EINVAL` of Linux on every architecture.
const EINVAL: i32 = 22;

/// The neighbour is noted in the place of an offset.
fn asked(what: What, which: Sidecar) -> Asked {
    let at = match which {
        Sidecar::Journal => 1,
        Sidecar::Copy => 2,
    };
    Asked { what, at, len: 0 }
}

impl Sidecars for ReplicaSidecars {
    fn create(&self, which: Sidecar) -> Result<Arc<dyn Storage>, StorageError> {
        let made = self.state.ask(
            asked(What::MakeSidecar, which),
            || self.of_file()?.create(which),
            |_| Answer::Done,
            |answer| (answer == Answer::Done).then(Self::stand_in),
        )?;
        Ok(self.storage(made))
    }

    fn find(&self, which: Sidecar) -> Result<Option<FoundSidecar>, StorageError> {
        self.find_by(which, |file| file.find(which))
    }

    fn find_of(&self, which: Sidecar, user: u32) -> Result<Option<FoundSidecar>, StorageError> {
        self.find_by(which, |file| file.find_of(which, user))
    }

    fn refuse(&self, which: Sidecar, why: Refusal) -> StorageError {
        match &self.file {
            Some(file) => file.refuse(which, why),
            None => StorageError::OfRank {
                rank: 0,
                errno: EPERM,
                at: None,
                lost_sync: false,
                refused: true,
                text: Arc::from(format!("{} of the file is refused: {why}", which.suffix())),
            },
        }
    }

    fn remove(&self, which: Sidecar) -> Result<(), StorageError> {
        self.act(What::RemoveSidecar, Some(which), |file| file.remove(which))
    }

    fn settle(&self) -> Result<(), StorageError> {
        self.act(What::SettleSidecars, None, |file| file.settle())
    }

    fn replaceable(&self) -> bool {
        false
    }

    fn replace(&self) -> Result<(), StorageError> {
        Err(not_here(
            EINVAL,
            "a copy does not take the place of a file that several ranks have open",
        ))
    }
}

/// `EPERM` of Linux on every architecture.
const EPERM: i32 = 1;
