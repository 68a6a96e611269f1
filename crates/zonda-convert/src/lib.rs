#![doc = include_str!("../README.md")]
//!
//! What each pair does with values that do not fit is tabled in `docs/dev/conversion.md` and written
//! as code in [`generic`]; `optimization-notes.md` beside this crate has the figures.
#![deny(unsafe_op_in_unsafe_fn)]

mod coder;
mod dispatch;
mod element;
pub mod generic;
mod kernel;
mod rule;
mod strided;
#[cfg(test)]
mod tests;
mod tuning;

pub use coder::{ByteOrder, Converted, Decoder, Encoder, RangeRule, TextNumberMix, swap_in_place};
