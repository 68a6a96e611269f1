//! Collections of the global heap, found in the gaps between other extents.

use super::{ExtentKind, FileUsage, UsedExtent};
use crate::File;
use crate::tuning::{GAP_SEARCH_BYTES, GAP_SEARCH_MAX_BYTES};

/// What a collection begins with: signature, version, three zeros.
const BEGINS: [u8; 8] = *b"GCOL\x01\0\0\0";
/// Bytes of the shortest collection.
const LEAST: u64 = 4096;

pub(super) fn find_collections(file: &File, usage: &mut FileUsage) {
    let gaps: Vec<(u64, u64)> = usage.gaps().filter(|&(_, len)| len >= LEAST).collect();
    if let Some(remote) = file.storage().remote() {
        let mut left = GAP_SEARCH_MAX_BYTES;
        let told = gaps.iter().map_while(|&(at, len)| {
            let looked_at = len.min(left);
            left = left.saturating_sub(looked_at);
            (looked_at > 0).then(|| at..at.saturating_add(looked_at))
        });
        remote.will_read(&told.collect::<Vec<_>>());
    }
    let mut left = GAP_SEARCH_MAX_BYTES;
    for (at, len) in gaps {
        let looked_at = len.min(left);
        left = left.saturating_sub(looked_at);
        if let Err(error) = search(file, usage, at, at.saturating_add(looked_at)) {
            usage.fault(None, error);
        }
    }
}

/// Looks for collections from byte `at` to byte `end`, which begin at multiples of 8.
fn search(file: &File, usage: &mut FileUsage, mut at: u64, end: u64) -> crate::Result<()> {
    let length = usize::from(file.sizes().length);
    let mut block = vec![0; GAP_SEARCH_BYTES];
    while at < end {
        let want = usize::try_from(end.saturating_sub(at))
            .unwrap_or(GAP_SEARCH_BYTES)
            .min(GAP_SEARCH_BYTES);
        let Some(bytes) = block.get_mut(..want) else { break };
        let got = file.storage().read_at(at, bytes)?;
        let bytes = bytes.get(..got).unwrap_or_default();
        let found = bytes.windows(BEGINS.len()).position(|begin| *begin == BEGINS);
        let Some(found) = found else {
            // One may begin at the end of the block.
            let step = got.saturating_sub(BEGINS.len()).saturating_add(1);
            if got < want || got <= BEGINS.len() {
                break;
            }
            at = at.saturating_add(step as u64);
            continue;
        };
        at = at.saturating_add(found as u64);
        let mut size = [0; 8];
        if let Some(place) = size.get_mut(..length) {
            file.storage().read_at(at.saturating_add(8), place)?;
        }
        let len = u64::from_le_bytes(size);
        let fits = len >= LEAST && at.checked_add(len).is_some_and(|behind| behind <= end);
        if fits {
            usage.claim(UsedExtent { at, len, kind: ExtentKind::GlobalHeap, owner: None });
        }
        at = at.saturating_add(if fits { len } else { BEGINS.len() as u64 });
    }
    Ok(())
}
