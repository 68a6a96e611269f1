#![doc = include_str!("../README.md")]
#![doc = include_str!("../status.txt")]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::unwrap_used,
        clippy::panic,
        clippy::cast_possible_truncation
    )
)]

mod attribute;
mod atts;
mod changes;
mod codec;
mod commit;
mod define;
mod dispatch;
mod error;
mod file;
mod fill;
mod header;
mod journal;
mod layout;
mod lock;
mod moving;
mod names;
mod past_end;
mod plan;
mod reader;
mod record_count;
mod recover;
mod rewrite;
mod salvage;
mod select;
mod small_run;
mod spare;
mod team;
mod transfer;
mod tuning;

pub use atts::{Att, AttRef, Atts};
pub use codec::{DecodeLimits, decode_header, encode_header};
pub use error::ClassicError;
pub use file::ClassicFile;
pub use header::{Dim, Header, Var, Version};
pub use record_count::{count_records, set_records};
pub use recover::{JournalRecovery, recover, recover_of};
pub use salvage::SkippedPart;
pub use zonda_format::{Ending, FillMode, Layout, Reserve};
