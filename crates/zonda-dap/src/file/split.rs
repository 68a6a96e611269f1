//! Long selections in parts, which are asked for at the same time.

use zonda_convert::{Converted, Decoder};
use zonda_format::{Error, Result};
use zonda_model::NcError;
use zonda_runtime::ProcessPool;
use zonda_runtime::lock::{Mutex, Rank};
use zonda_runtime::worker::Purpose;

use super::DapFile;
use super::companions::Selection;
use super::sink::Goal;
use super::tuning::{LEAST_PART_BYTES, MOST_PART_BYTES, MOST_THREADS};

/// The threads of this process that ask, besides those that call.
static POOL: ProcessPool = ProcessPool::new(Purpose::Remote, Rank::Pool, MOST_THREADS);

/// Cuts a selection of `n_bytes` bytes along its slowest dimension of more than one index, into parts that follow each other in memory.
pub(super) fn split(whole: &Selection, n_bytes: u64, parallel: usize) -> Vec<Selection> {
    let Some(axis) = whole.count.iter().position(|&count| count > 1) else {
        return vec![whole.clone()];
    };
    let n = whole.count.get(axis).copied().unwrap_or(1);
    let part = n_bytes.div_ceil(parallel.max(1) as u64).clamp(LEAST_PART_BYTES, MOST_PART_BYTES);
    let n_parts = n_bytes.div_ceil(part).clamp(1, n);
    let each = n.checked_div(n_parts).unwrap_or(n);
    let more = n.checked_rem(n_parts).unwrap_or(0);
    let (mut parts, mut at) = (Vec::new(), 0u64);
    for i in 0..n_parts {
        let count = each.saturating_add(u64::from(i < more));
        let mut one = whole.clone();
        let stride = whole.stride.get(axis).copied().unwrap_or(1);
        if let (Some(start), Some(of)) = (one.start.get_mut(axis), one.count.get_mut(axis)) {
            *start = start.saturating_add(at.saturating_mul(stride));
            *of = count;
        }
        if let Some(stride) = one.stride.get_mut(axis).filter(|_| count == 1) {
            *stride = 1;
        }
        at = at.saturating_add(count);
        parts.push(one);
    }
    parts
}

/// What threads that ask for parts share.
struct Shared<'a> {
    /// Parts that nobody has begun, the last one first.
    left: Vec<(&'a Selection, &'a mut [u8])>,
    converted: Converted,
    failure: Option<Error>,
}

impl DapFile {
    /// Asks for parts of a selection, several at a time; their elements go to memory one after the other. The first failure ends it.
    pub(super) fn fetch_pieces(
        &self,
        pieces: &[Selection],
        (decoder, elem): (Option<Decoder>, usize),
        out: &mut [u8],
    ) -> Result<Converted> {
        let size = decoder.as_ref().map_or(elem, Decoder::mem_size);
        let (mut left, mut rest) = (Vec::new(), out);
        for piece in pieces {
            let bytes = usize::try_from(piece.n_elems()).ok().and_then(|n| n.checked_mul(size));
            let cut = bytes.and_then(|bytes| std::mem::take(&mut rest).split_at_mut_checked(bytes));
            let (to, behind) = cut.ok_or(NcError::Internal)?;
            left.push((piece, to));
            rest = behind;
        }
        left.reverse();
        let shared = Shared { left, converted: Converted::default(), failure: None };
        let shared = Mutex::ranked(Rank::Responses, shared);
        let work = || {
            loop {
                let mut now = shared.lock();
                let next = if now.failure.is_none() { now.left.pop() } else { None };
                drop(now);
                let Some((piece, out)) = next else { return };
                let done = self.ask_alone(piece, |request| {
                    let (out, mut all) = (&mut *out, Converted::default());
                    let goal = Goal::Memory { decoder, elem, out, converted: all };
                    for goal in self.ask(request, std::slice::from_ref(piece), vec![goal])? {
                        if let Goal::Memory { converted, .. } = goal {
                            all = all.and(converted);
                        }
                    }
                    Ok(all)
                });
                let mut now = shared.lock();
                match done {
                    Ok(converted) => now.converted = now.converted.and(converted),
                    Err(error) => drop(now.failure.get_or_insert(error)),
                }
            }
        };
        let helpers = self.server.parallel().min(pieces.len()).saturating_sub(1);
        POOL.get().run_beside(helpers, &work, work);
        let shared = shared.into_inner();
        match shared.failure {
            Some(error) => Err(error),
            None => Ok(shared.converted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_whole_in_order() {
        let whole = Selection {
            var: 0,
            start: vec![2, 5, 0],
            count: vec![1, 10, 1 << 20],
            stride: vec![1, 3, 1],
        };
        let parts = split(&whole, 80 << 20, 4);
        let lens: Vec<u64> = parts.iter().map(|part| part.count[1]).collect();
        assert_eq!(lens, [3, 3, 2, 2]);
        let mut at = 5;
        for part in &parts {
            assert_eq!((part.start[0], part.start[1], part.count[2]), (2, at, 1 << 20));
            at += 3 * part.count[1];
        }
        // No more parts than indices, and none that are short.
        assert_eq!(split(&whole, 800 << 20, 40).len(), 10);
        assert_eq!(split(&whole, 800 << 20, 40)[0].stride, [1, 1, 1]);
        assert_eq!(split(&whole, 16 << 20, 40).len(), 2);
        let one = Selection { var: 0, start: vec![], count: vec![], stride: vec![] };
        assert_eq!(split(&one, 100, 4), [one]);
    }
}
