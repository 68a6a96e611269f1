#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod config;
mod connection;
#[allow(unsafe_code)]
mod exports;
mod verify;
mod words;

pub use exports::engine;
