//! What the formats of the Lempel-Ziv family have in common: copying what came before, and finding
//! what did.

/// Copies `len` bytes of `out` from `distance` bytes before `at` to `at`; where they overlap, what
/// was just copied is copied again. `None` where that is not inside `out`.
pub(super) fn repeat(out: &mut [u8], at: usize, distance: usize, len: usize) -> Option<()> {
    let from = at.checked_sub(distance)?;
    let end = at.checked_add(len)?;
    if distance == 0 || end > out.len() {
        return None;
    }
    if distance == 1 {
        let byte = out[from];
        out[at..end].fill(byte);
    } else {
        // What lies between `from` and `at` doubles with each copy.
        let mut at = at;
        while at < end {
            let part = (at - from).min(end - at);
            out.copy_within(from..from + part, at);
            at += part;
        }
    }
    Some(())
}

/// What a format can say of a match.
pub(super) struct Reach {
    /// Furthest distance.
    pub(super) distance: usize,
    /// Longest match.
    pub(super) len: usize,
    /// Last bytes that are literal in any case.
    pub(super) tail: usize,
}

/// The shortest match.
pub(super) const SHORTEST: usize = 3;

/// Bits of the hash: 64 KiB of table, which stays in the cache beside the data.
const HASH_BITS: u32 = 14;

/// Goes through `raw` and hands on what it is made of: bytes, then a match (distance and length)
/// with what came before. The last call has bytes alone, and may have none. Stops when `found`
/// answers false, which is also the result.
pub(super) fn sequences(
    raw: &[u8],
    reach: &Reach,
    mut found: impl FnMut(&[u8], Option<(usize, usize)>) -> bool,
) -> bool {
    // Positions + 1 of what has this hash; 0 is none. Input of more than 4 GiB is not compressed
    // better for what lies there.
    let mut table = vec![0u32; 1 << HASH_BITS];
    let end = raw.len().saturating_sub(reach.tail.max(4));
    let (mut at, mut literals, mut misses) = (0, 0, 0usize);
    while at < end {
        let Some(word) = raw.get(at..).and_then(<[u8]>::first_chunk::<4>) else { break };
        let word = u32::from_le_bytes(*word) & 0x00ff_ffff;
        let hash = (word.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize;
        let before = std::mem::replace(&mut table[hash], (at as u32).wrapping_add(1)) as usize;
        let len = match before.checked_sub(1) {
            Some(from) if from < at && at - from <= reach.distance => {
                let most = reach.len.min(end - at);
                raw[from..].iter().zip(&raw[at..at + most]).take_while(|(a, b)| a == b).count()
            }
            _ => 0,
        };
        if len < SHORTEST {
            // Where nothing repeats, ever fewer places are tried.
            misses += 1;
            at += 1 + (misses >> 5);
            continue;
        }
        if !found(&raw[literals..at], Some((at + 1 - before, len))) {
            return false;
        }
        at += len;
        literals = at;
        misses = 0;
    }
    found(&raw[literals..], None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_overlap() {
        for distance in 1..9 {
            let mut out = *b"abcdefgh____________________";
            repeat(&mut out, 8, distance, 20).unwrap();
            for i in 8..out.len() {
                assert_eq!(out[i], out[i - distance], "distance {distance}, byte {i}");
            }
        }
        assert!(repeat(&mut [0; 8], 4, 5, 1).is_none());
        assert!(repeat(&mut [0; 8], 4, 1, 5).is_none());
        assert!(repeat(&mut [0; 8], 4, 0, 1).is_none());
    }
}
