#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

pub mod abi;
#[allow(unsafe_code)]
mod calls;
mod divide;
mod error;
mod exchange;
#[allow(unsafe_code)]
mod flight;
mod heading;
mod info;
mod launcher;
#[allow(unsafe_code)]
mod loaded;
mod mpi;
mod node;
mod post;
mod rounds;
mod settings;
mod steps;
mod team;
mod tuning;
mod wait;
mod world;

pub use divide::{Communicator, MadeComm, at_finalize};
pub use error::{Answer, MpiError};
pub use info::{info_from_fortran, info_keys, info_value};
pub use node::node;
pub use post::Post;
pub use settings::Settings;
pub use team::MpiTeam;
pub use world::World;
