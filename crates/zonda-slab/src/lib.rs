#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod axis;
mod blocks;
mod hyperslab;
mod index;
mod places;
mod rows;
#[cfg(test)]
mod tests;

pub use axis::{Axis, AxisOutOfBounds, MAX_RECORD, OutOfBounds, STRIDE_LIMIT, is_stride};
pub use blocks::{Block, Blocks};
pub use hyperslab::{Hyperslab, Order};
pub use index::{Index, Indices, advance, advance_by, grid_difference, unrank};
pub use places::{Offset, Places, for_each_place, is_row_major, place_of, row_major};
pub use rows::{Rows, Span};
