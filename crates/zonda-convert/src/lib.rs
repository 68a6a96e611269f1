#![doc = include_str!("../README.md")]
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

pub use coder::{ByteOrder, Converted, Decoder, Encoder, RangeRule, TextNumberMix, swap_in_place};
