#![doc = include_str!("../README.md")]
// The functions that C calls are reached by their symbols; modules are private to Rust.
#![allow(unreachable_pub)]

mod att;
mod boundary;
mod copy;
mod dim;
mod displaced;
mod ending;
mod error;
mod extensions;
mod families;
mod file;
mod filter;
mod foreign;
mod fork;
mod group;
mod handles;
mod instances;
mod library;
mod mem;
mod memory;
mod mode;
mod ncaux;
mod nested;
mod open;
mod par;
mod plugin_path;
mod rc;
mod target;
mod trace;
mod transfer;
mod tuning;
mod type_definitions;
mod types;
mod user_format;
mod user_types;
mod util;
mod v2;
mod v2_data;
mod var;
mod varm;
