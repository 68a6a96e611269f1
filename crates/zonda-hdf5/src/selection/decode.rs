//! Selections from their bytes.

use smallvec::SmallVec;

use super::{HyperslabBlocks, HyperslabDim, Selection, UNLIMITED};
use crate::{HdfError, Reader, Result};

/// The newest version of any kind of selection.
const NEWEST: u32 = 3;

const NONE: u32 = 0;
const POINTS: u32 = 1;
const HYPERSLAB: u32 = 2;
const ALL: u32 = 3;

/// A number of dimensions that the format allows.
fn rank(reader: &mut Reader<'_>) -> Result<usize> {
    let rank = reader.u32()?;
    match usize::try_from(rank) {
        Ok(rank @ 1..=32) => Ok(rank),
        _ => Err(reader.bad("the number of dimensions", u64::from(rank))),
    }
}

fn width(reader: &mut Reader<'_>) -> Result<usize> {
    let width = reader.u8()?;
    if matches!(width, 2 | 4 | 8) {
        Ok(usize::from(width))
    } else {
        Err(reader.bad("the bytes of a number", u64::from(width)))
    }
}

/// `n` lists of `each` numbers.
fn numbers(reader: &mut Reader<'_>, n: u64, each: usize, width: usize) -> Result<Box<[u64]>> {
    let n = reader.count(n, each.saturating_mul(width))?;
    let all = n.saturating_mul(each);
    let mut out = Vec::with_capacity(all);
    for _ in 0..all {
        out.push(reader.uint(width)?);
    }
    Ok(out.into())
}

impl Selection {
    /// Decodes a selection from the next bytes of a reader.
    ///
    /// # Errors
    /// Types and versions that are not known; more points or blocks than there are bytes; blocks
    /// that end before they begin.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Selection> {
        let kind = reader.u32()?;
        let version = reader.u32()?;
        let (structure, at) = (reader.structure(), reader.at());
        let unknown = HdfError::BadVersion { structure, at, version, newest: NEWEST };
        match (kind, version) {
            (NONE, 1) => reader.skip(8).map(|()| Selection::None),
            (ALL, 1) => reader.skip(8).map(|()| Selection::All),
            (POINTS, 1) => {
                reader.skip(8)?;
                let rank = rank(reader)?;
                let n = u64::from(reader.u32()?);
                Ok(Selection::Points { rank, coords: numbers(reader, n, rank, 4)? })
            }
            (POINTS, 2) => {
                let width = width(reader)?;
                let rank = rank(reader)?;
                let n = reader.uint(width)?;
                Ok(Selection::Points { rank, coords: numbers(reader, n, rank, width)? })
            }
            (HYPERSLAB, 1) => {
                reader.skip(8)?;
                let rank = rank(reader)?;
                blocks(reader, rank, 4)
            }
            (HYPERSLAB, 2) => {
                let flags = reader.u8()?;
                reader.skip(4)?;
                if flags & 1 == 0 {
                    return Err(reader.bad("the flags of a hyperslab", u64::from(flags)));
                }
                let rank = rank(reader)?;
                regular(reader, rank, 8)
            }
            (HYPERSLAB, 3) => {
                let flags = reader.u8()?;
                let width = width(reader)?;
                let rank = rank(reader)?;
                if flags & 1 == 0 {
                    blocks(reader, rank, width)
                } else {
                    regular(reader, rank, width)
                }
            }
            (NONE..=ALL, _) => Err(unknown),
            _ => Err(reader.bad("the type of a selection", u64::from(kind))),
        }
    }
}

fn regular(reader: &mut Reader<'_>, rank: usize, width: usize) -> Result<Selection> {
    let bits = u32::try_from(width).unwrap_or(8).saturating_mul(8);
    let all_ones = u64::MAX.checked_shr(64u32.saturating_sub(bits)).unwrap_or(0);
    let endless = |value| if value == all_ones { UNLIMITED } else { value };
    let mut dims = SmallVec::new();
    let mut unlimited = 0u64;
    for _ in 0..rank {
        let start = reader.uint(width)?;
        let stride = reader.uint(width)?;
        let count = endless(reader.uint(width)?);
        let block = endless(reader.uint(width)?);
        let dim = HyperslabDim { start, stride, count, block };
        unlimited = unlimited.saturating_add(u64::from(dim.is_unlimited()));
        // Blocks must not overlap.
        if count > 1 && (stride == 0 || stride < block) {
            return Err(reader.bad("the stride of a hyperslab", stride));
        }
        dims.push(dim);
    }
    if unlimited > 1 {
        return Err(reader.bad("the number of unlimited dimensions", unlimited));
    }
    Ok(Selection::Hyperslab(dims))
}

fn blocks(reader: &mut Reader<'_>, rank: usize, width: usize) -> Result<Selection> {
    let n = reader.uint(width)?;
    let corners = numbers(reader, n, rank.saturating_mul(2), width)?;
    let blocks = HyperslabBlocks { rank, corners };
    for (first, last) in blocks.iter() {
        if let Some((first, _)) = first.iter().zip(last).find(|(first, last)| first > last) {
            return Err(reader.bad("the beginning of a block that ends before it", *first));
        }
    }
    Ok(Selection::Blocks(blocks))
}
