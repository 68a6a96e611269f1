#![doc = include_str!("../README.md")]

pub mod defaults;
mod registered;
mod table;

pub use registered::{
    MAX_MAGIC, Registration, number_in_url, register, registration, table_of_content,
    table_of_mode, table_of_number,
};
pub use table::{NcDispatch, NcMemio, NcType, missing_member_code};
