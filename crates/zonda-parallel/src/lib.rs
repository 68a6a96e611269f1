//! One file of several ranks.
//!
//! Each rank has the whole object of the file's format on a [`Replica`], its own storage. In a common step ([`common`]) rank 0 reads and
//! writes the file, and its replica records what the file answered; the other ranks carry the same code out over the record. So the
//! objects stay equal, errors included, and one rank alone touches the file's metadata. See `docs/dev/parallel.md`.
#![forbid(unsafe_code)]

mod attributes;
mod behind;
mod common;
mod coverage;
mod dispatch;
mod exchange;
mod file;
mod filling;
mod hint_effects;
mod hints;
mod kept;
mod later;
mod ledger;
mod names;
mod opening;
mod plan;
mod put;
mod queue;
mod record;
mod replica;
mod said;
mod shared_put;
mod shared_store;
mod sidecars;
mod tuning;
mod uncommitted;
mod write;

pub use common::{ParallelError, common};
pub use file::{ParallelFile, of_step, of_team, status_of, with_worst};
pub use hint_effects::FileLayout;
pub use hints::{BadHint, Gathering, Hints};
pub use opening::same_opening;
pub use queue::{QueueRoom, RankQueue};
pub use record::RecordError;
pub use replica::Replica;
pub use sidecars::ReplicaSidecars;
