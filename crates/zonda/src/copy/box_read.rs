//! Reading the elements of a box.

use zonda_format::{VarRef, VlenSink};
use zonda_model::{Hyperslab, MemType, NcError};

use super::vlen_buffer::VlenBuffer;
use crate::dataset::Dataset;
use crate::error::Result;

pub(crate) fn to_len(n: u64) -> Result<usize> {
    usize::try_from(n).map_err(|_| NcError::NoMem.into())
}

pub(crate) fn indices(of: &[u64]) -> Result<Vec<usize>> {
    of.iter().map(|&index| to_len(index)).collect()
}

/// Reads the elements of a box to `data`, as type `mem` or unconverted. Strings and sequences go to `pieces`.
pub(crate) fn read_box(
    file: &Dataset,
    var: VarRef,
    mem: Option<MemType>,
    (start, count): (&[u64], &[u64]),
    (data, pieces): (&mut Vec<u8>, &mut VlenBuffer),
) -> Result<()> {
    let (start, count) = (indices(start)?, indices(count)?);
    let slab = Hyperslab { start: &start, count: &count, stride: None };
    pieces.clear();
    let sink = mem.is_none().then_some(pieces as &mut dyn VlenSink);
    // Without conversion, and converted to double, nothing is out of range.
    file.get_list(var, &slab, mem, (data, sink)).map(drop)
}
