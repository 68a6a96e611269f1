//! Takes values of netCDF-4 types from the library: elements in native bytes, and strings and
//! sequences beside them.

use zonda::{
    AttAccess, AttView, Dataset, Destination, ExtType, Meta, NC_STRING, Transfer, VarRef, VlenSink,
    memory,
};

/// Strings and items of sequences. Elements contain their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct VlenStore {
    bytes: Vec<u8>,
    /// Where each one ends.
    ends: Vec<usize>,
}

impl VlenStore {
    /// The string or the items with this number; `None` for 0, which means that there are none.
    pub(crate) fn get(&self, number: u64) -> Option<&[u8]> {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(Some(&0), |before| self.ends.get(before))?;
        self.bytes.get(*start..end)
    }

    /// Removes everything but keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

impl VlenSink for VlenStore {
    fn place(&mut self, bytes: &[u8], _: bool) -> Option<u64> {
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
        u64::try_from(self.ends.len()).ok()
    }
}

/// Reads the values of an attribute in native bytes. `meta` are the definitions of `file`.
///
/// # Errors
/// Errors of reading the attribute from a netCDF-4 file.
pub(crate) fn attribute(
    file: &Dataset,
    meta: &Meta<'_>,
    owner: VarRef,
    att: &AttView<'_>,
) -> zonda::Result<(Vec<u8>, VlenStore)> {
    let mut pieces = VlenStore::default();
    if let Some(bytes) = att.bytes {
        let size = att.ty().map_or(1, ExtType::size);
        return Ok((native(bytes, size), pieces));
    }
    let mut out = Vec::new();
    if att.len > 0 {
        // No value is out of range, because none is converted to another type.
        let access = AttAccess { owner, name: &att.name, mem: None };
        let mut read = || {
            let mut get = Transfer::new(access);
            meta.file().check_get_att(&mut get)?;
            memory::resize(&mut out, get.n_bytes, 0)?;
            let room = Destination { bytes: &mut out, place: Some(&mut pieces) };
            meta.file().get_att(&get, room)
        };
        let _ = read().map_err(|error| error.at(file.path()))?;
    }
    Ok((out, pieces))
}

/// Converts big-endian elements to native order.
fn native(bytes: &[u8], size: usize) -> Vec<u8> {
    let mut out = bytes.to_vec();
    if cfg!(target_endian = "little") {
        out.chunks_exact_mut(size).for_each(<[u8]>::reverse);
    }
    out
}

/// The text of an attribute of characters, or of one string; `None` for others.
pub(crate) fn text(
    file: &Dataset,
    meta: &Meta<'_>,
    owner: VarRef,
    att: &AttView<'_>,
) -> Option<Vec<u8>> {
    let is_string = att.nc_type == NC_STRING && att.len == 1;
    if att.ty() != Some(ExtType::Char) && !is_string {
        return None;
    }
    let (bytes, pieces) = attribute(file, meta, owner, att).ok()?;
    if !is_string {
        return Some(bytes);
    }
    let number = bytes.first_chunk().map(|number| u64::from_ne_bytes(*number))?;
    pieces.get(number).map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_by_number() {
        let mut pieces = VlenStore::default();
        for (number, piece) in [(1, &b"one"[..]), (2, b""), (3, b"three")] {
            assert_eq!(pieces.place(piece, true), Some(number));
        }
        for (number, piece) in
            [(0, None), (1, Some(&b"one"[..])), (2, Some(b"")), (3, Some(b"three")), (4, None)]
        {
            assert_eq!(pieces.get(number), piece);
        }
        pieces.clear();
        assert_eq!(pieces.get(1), None);
    }

    #[test]
    fn external_values_are_big_endian() {
        assert_eq!(
            native(&[0x80, 0x01, 0, 2], 2),
            [0x8001u16.to_ne_bytes(), 2u16.to_ne_bytes()].concat()
        );
        assert_eq!(native(b"abc", 1), b"abc");
    }
}
