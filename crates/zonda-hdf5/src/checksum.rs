//! The checksum of all structures that have one: Jenkins' lookup3 ("hashlittle").
//! Spec: HDF5 File Format, wherever it says "Checksum"; also the hash of link and attribute names.

use crate::{HdfError, Reader, Result};

/// The lookup3 hash of `bytes`, beginning with `initial` (0 for checksums and hashes of names).
#[must_use]
pub fn lookup3(bytes: &[u8], initial: u32) -> u32 {
    // Only the low 32 bits of the length take part, so that the cast is the definition.
    #[expect(clippy::cast_possible_truncation)]
    let start = 0xdead_beef_u32.wrapping_add(bytes.len() as u32).wrapping_add(initial);
    let mut state = [start; 3];
    // The last 1 to 12 bytes are mixed differently, so a full last block is not for the loop.
    let whole = bytes.len().saturating_sub(1) / 12;
    let (body, tail) = bytes.split_at(whole.saturating_mul(12));
    if tail.is_empty() {
        return start;
    }
    for block in body.as_chunks::<12>().0 {
        add(&mut state, block);
        mix(&mut state);
    }
    let mut last = [0; 12];
    if let Some(place) = last.get_mut(..tail.len()) {
        place.copy_from_slice(tail);
    }
    add(&mut state, &last);
    finish(state)
}

/// Whether the checksum in the file is that of its bytes. Under the fuzzer any checksum is right:
/// else nearly all inputs would end at the first structure that has one.
pub(crate) fn agrees(stored: u32, computed: u32) -> bool {
    cfg!(fuzzing) || stored == computed
}

/// A reader over all but the last four bytes of a structure, which are the checksum of the rest.
pub(crate) fn verified(whole: Reader<'_>) -> Result<Reader<'_>> {
    let mut tail = whole;
    let body = tail.sub(whole.left().saturating_sub(4))?;
    let stored = tail.u32()?;
    let computed = lookup3(body.rest(), 0);
    if agrees(stored, computed) {
        Ok(body)
    } else {
        let (structure, at) = (whole.structure(), whole.at());
        Err(HdfError::BadChecksum { structure, at, stored, computed })
    }
}

#[inline]
fn add(state: &mut [u32; 3], block: &[u8; 12]) {
    // There is no loop: it would cost more for each word than the mixing.
    let [a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3] = *block;
    let [a, b, c] = state;
    *a = a.wrapping_add(u32::from_le_bytes([a0, a1, a2, a3]));
    *b = b.wrapping_add(u32::from_le_bytes([b0, b1, b2, b3]));
    *c = c.wrapping_add(u32::from_le_bytes([c0, c1, c2, c3]));
}

#[inline]
fn mix(state: &mut [u32; 3]) {
    let [mut a, mut b, mut c] = *state;
    a = a.wrapping_sub(c) ^ c.rotate_left(4);
    c = c.wrapping_add(b);
    b = b.wrapping_sub(a) ^ a.rotate_left(6);
    a = a.wrapping_add(c);
    c = c.wrapping_sub(b) ^ b.rotate_left(8);
    b = b.wrapping_add(a);
    a = a.wrapping_sub(c) ^ c.rotate_left(16);
    c = c.wrapping_add(b);
    b = b.wrapping_sub(a) ^ a.rotate_left(19);
    a = a.wrapping_add(c);
    c = c.wrapping_sub(b) ^ b.rotate_left(4);
    b = b.wrapping_add(a);
    *state = [a, b, c];
}

#[inline]
fn finish([mut a, mut b, mut c]: [u32; 3]) -> u32 {
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        assert_eq!(lookup3(b"", 0), 0xdead_beef);
        assert_eq!(lookup3(b"a", 0), 0x58d6_8708);
        assert_eq!(lookup3(b"abcdefghijkl", 0), 0x4012_f87b);
        assert_eq!(lookup3(b"abcdefghijklm", 0), 0x9281_28f9);
        assert_eq!(lookup3(b"Four score and seven years ago", 0), 0x1777_0551);
        assert_eq!(lookup3(b"Four score and seven years ago", 1), 0xcd62_8161);
        assert_eq!(lookup3(b"op", 0), 0x1bd0_38fe);
    }

    #[test]
    fn checksum_of_a_superblock() {
        let mut bytes = b"\x89HDF\r\n\x1a\n\x02\x08\x08\x00".to_vec();
        bytes.extend([0; 8]);
        bytes.extend([0xff; 8]);
        bytes.extend(0x2d9_u64.to_le_bytes());
        bytes.extend(0x30_u64.to_le_bytes());
        assert_eq!(lookup3(&bytes, 0), 0x2e0b_d2ab);
    }
}
