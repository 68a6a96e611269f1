//! Large gets by several threads: each reads a part of what lies in one piece in the file, and decodes it while the processor's caches have it.

use zonda::{
    Converted, Dataset, Hyperslab, MemType, NcError, StorageKind, VarRef, on_free_threads,
};
use zonda_runtime::lock::{Mutex, Rank};

use crate::decoding::Decoding;
use crate::parts::{self, Part};

/// Bytes from which on a get is shared: less is copied before another thread has begun.
const LEAST_BYTES: usize = 16 << 20;
/// Bytes that are decoded at a time, where the chunks were read before.
const PIECE_BYTES: usize = 1 << 20;

/// Reads into `out`, and decodes what was read, of values of `elem` bytes.
pub(crate) fn get(
    dataset: &Dataset,
    of: VarRef,
    slab: &Hyperslab<'_>,
    mem: Option<MemType>,
    (elem, decoding): (usize, Option<Decoding>),
    out: &mut [u8],
) -> zonda::Result<Converted> {
    let decode = |bytes: &mut [u8]| {
        if let Some(decoding) = &decoding {
            decoding.apply(elem, bytes);
        }
    };
    let threads = if out.len() < LEAST_BYTES { 1 } else { zonda_runtime::threads() };
    if threads == 1 {
        let got = dataset.get(of, slab, mem, out)?;
        decode(out);
        return Ok(got);
    }
    if !may_be_cut(dataset, of) {
        let got = dataset.get(of, slab, mem, out)?;
        if decoding.is_some() {
            let pieces = Mutex::ranked(Rank::Turns, out.chunks_mut(PIECE_BYTES));
            on_threads(threads, &|| {
                while let Some(piece) = next(&pieces) {
                    decode(piece);
                }
            });
        }
        return Ok(got);
    }
    // They are not of whole chunks, since there are none.
    let outside =
        || zonda::Error::because(NcError::Internal, "a part of a get lies outside of its memory");
    let mut rest = out;
    let mut cut = Vec::new();
    for part in parts::cut(slab, rest.len(), None, 1) {
        let (from, to) = part.bytes;
        let whole = std::mem::take(&mut rest);
        let (here, behind) = whole.split_at_mut_checked(to - from).ok_or_else(outside)?;
        cut.push((part, here));
        rest = behind;
    }
    let queue = Mutex::ranked(Rank::Turns, cut.into_iter());
    let outcome = Mutex::ranked(Rank::Turns, Ok(Converted::default()));
    on_threads(threads, &|| {
        while outcome.lock().is_ok()
            && let Some((Part { start, count, .. }, bytes)) = next(&queue)
        {
            let here = Hyperslab { start: &start, count: &count, stride: slab.stride };
            let got = dataset.get(of, &here, mem, &mut *bytes);
            if got.is_ok() {
                decode(bytes);
            }
            let mut outcome = outcome.lock();
            match (&mut *outcome, got) {
                (Ok(all), Ok(got)) => *all = all.and(got),
                (Ok(_), Err(error)) => *outcome = Err(error),
                (Err(_), _) => {}
            }
        }
    });
    outcome.into_inner()
}

/// Runs `work` on this thread and on others that have nothing to do.
fn on_threads(threads: usize, work: &(dyn Fn() + Sync)) {
    on_free_threads(threads - 1, work);
}

/// The next of what is left, with the lock held no longer than that takes.
fn next<T>(left: &Mutex<impl Iterator<Item = T>>) -> Option<T> {
    left.lock().next()
}

/// Whether several gets of parts are as good as one: of what lies in one piece. Threads share chunks already, those of other files as well; and a
/// request of its own for each part is no gain where it travels, or where ranks take part.
fn may_be_cut(dataset: &Dataset, of: VarRef) -> bool {
    if dataset.is_remote() || dataset.is_dap() || dataset.is_of_ranks() {
        return false;
    }
    match dataset.var_info(of) {
        Ok(info) => matches!(info.storage, StorageKind::Contiguous),
        // Formats that do not say how a variable is stored have no chunks, unless a server writes the file.
        Err(_) => !dataset.format().is_hdf5(),
    }
}
