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

pub mod dap2;
pub mod dap4;
mod error;
pub mod file;
mod message;
mod model;
mod protocol;
mod text;

pub use error::{DapError, Document};
pub use message::server_message;
pub use model::{Att, Dim, Group, Model, Var};
pub use protocol::{Asked, Part, Protocol, Request, Server, Sink};
