#![doc = include_str!("../README.md")]
// The functions that C calls are reached by their symbols; modules are private to Rust.
#![allow(unreachable_pub)]

mod att;
mod boundary;
mod c_memory;
mod copy;
mod current_call;
mod data_arguments;
mod data_functions;
mod dim;
mod error;
mod exit;
mod extensions;
mod failure;
mod file;
mod filter;
mod fork;
mod group;
mod handles;
mod in_memory;
mod library;
mod malloc_memory;
mod mode;
mod ncaux;
mod ncrc;
mod open;
mod other_libnetcdf;
mod parallel;
mod path_argument;
mod plugin_path;
mod process_settings;
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
mod value_walk;
mod values;
mod var;
mod var_storage;
mod varm;
