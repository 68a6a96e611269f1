#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

#[allow(unsafe_code)]
pub mod beside;
#[allow(unsafe_code)]
mod client;
mod fault;
pub mod table;

pub use client::{Client, Connection, Engine, Identity, Settings, Source};
pub use fault::{Fault, Kind};
