#![doc = include_str!("../README.md")]
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

mod arrays;
mod define;
mod dispatch;
mod file;
mod model;
mod run;
mod select;

pub use arrays::{Arrays, Changes, MakeArrays};
pub use file::PlainFile;
pub use model::{Att, Dim, Model, Var};
pub use run::Run;
