//! A put as a list of words, for a helper process.
//!
//! Group, variable, first byte and number of bytes of the values in their block, rank, flags; starts, counts and
//! strides. The flags also say what the values are ([`RecordedValues`]).

use zonda_format::{GroupId, VarRef};
use zonda_model::{Hyperslab, MemType, VarId};
use zonda_shared::{Block, NoRoom};

/// Words of a record before its starts, counts and strides.
const HEAD_WORDS: usize = 6;
/// Flag: there are strides.
const STRIDES: u64 = 1;
/// Flag: values own what they point to.
const OWNED_VALUES: u64 = 2;
/// From this bit on: the index of their type in [`MemType::ALL`], counted from 1; 0 for the variable's own.
const TYPE_SHIFT: u32 = 8;

/// What values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordedValues {
    /// Elements of a type; `None` is the one that the variable has in memory.
    Typed(Option<MemType>),
    /// As `OwnedValues::write_to` writes them, with what they point to.
    Owned,
}

/// Most bytes that a record takes in its block: with strides.
pub(super) const fn bytes(rank: usize) -> usize {
    Block::record_bytes(HEAD_WORDS.saturating_add(rank.saturating_mul(3)))
}

/// Writes the record of the values that were last added to a block. From then on a helper process would carry out the
/// put.
///
/// # Errors
/// [`NoRoom`]: then there is no record, and the put must not be accepted.
pub(super) fn write(
    block: &mut Block,
    var: VarRef,
    slab: &Hyperslab<'_>,
    (at, len): (usize, usize),
    form: RecordedValues,
) -> Result<(), NoRoom> {
    let strides = if slab.stride.is_some() { STRIDES } else { 0 };
    let form = match form {
        RecordedValues::Owned => OWNED_VALUES,
        RecordedValues::Typed(None) => 0,
        RecordedValues::Typed(Some(mem)) => {
            let place = MemType::ALL.iter().position(|other| *other == mem).ok_or(NoRoom)?;
            (place as u64 + 1) << TYPE_SHIFT
        }
    };
    let flags = strides | form;
    let rank = slab.start.len();
    let mut words = Vec::with_capacity(HEAD_WORDS + 3 * rank);
    words.extend([u64::from(var.group.0), u64::from(var.var.0.cast_unsigned())]);
    words.extend([at as u64, len as u64, rank as u64, flags]);
    words.extend(slab.start.iter().chain(slab.count).map(|&index| index as u64));
    words.extend(slab.stride.into_iter().flatten().map(|&stride| stride.cast_unsigned() as u64));
    block.record(&words)
}

/// A put that was read from a record.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) var: VarRef,
    /// Where its values are.
    pub(super) at: usize,
    pub(super) len: usize,
    pub(super) form: RecordedValues,
    pub(super) start: Vec<usize>,
    pub(super) count: Vec<usize>,
    pub(super) stride: Option<Vec<isize>>,
}

/// Reads a record; `None` for one that is damaged.
pub(super) fn read(words: &[u64]) -> Option<Record> {
    let (&[group, var, at, len, rank, flags], index) = words.split_first_chunk()?;
    let size = |word: u64| usize::try_from(word).ok();
    let rank = size(rank)?;
    let has_strides = flags & STRIDES != 0;
    let form = match (flags & OWNED_VALUES, flags >> TYPE_SHIFT) {
        (0, 0) => RecordedValues::Typed(None),
        (0, place) => RecordedValues::Typed(Some(*MemType::ALL.get(size(place)?.checked_sub(1)?)?)),
        _ => RecordedValues::Owned,
    };
    let lists = if has_strides { 3 } else { 2 };
    if index.len() != rank.checked_mul(lists)? {
        return None;
    }
    let (start, lists) = index.split_at_checked(rank)?;
    let (count, strides) = lists.split_at_checked(rank)?;
    let stride = |&word: &u64| isize::try_from(word.cast_signed()).ok();
    let stride = match has_strides {
        false => None,
        true => Some(strides.iter().map(stride).collect::<Option<_>>()?),
    };
    let sizes = |list: &[u64]| list.iter().map(|&word| size(word)).collect::<Option<Vec<_>>>();
    Some(Record {
        var: VarRef {
            group: GroupId(u16::try_from(group).ok()?),
            var: VarId(i32::try_from(var).ok()?),
        },
        at: size(at)?,
        len: size(len)?,
        form,
        start: sizes(start)?,
        count: sizes(count)?,
        stride,
    })
}

#[cfg(test)]
mod tests {
    use zonda_shared::{Arena, OrphanedMemory};

    use super::super::job::job_bytes;
    use super::*;

    #[test]
    fn what_is_written_is_read_and_fits_its_job() {
        let arena = Arena::new(1 << 16).unwrap();
        let var = VarRef { group: GroupId(3), var: VarId(70_000) };
        let (start, count, stride) = ([usize::MAX, 0, 7], [1, 2, 3], [1, 5, isize::MAX]);
        let forms = [
            RecordedValues::Typed(None),
            RecordedValues::Owned,
            RecordedValues::Typed(Some(MemType::Text)),
            RecordedValues::Typed(Some(MemType::F64)),
        ];
        for (form, stride) in forms.into_iter().zip([None, Some(&stride[..])].into_iter().cycle()) {
            let slab = Hyperslab { start: &start, count: &count, stride };
            let mut block = arena.take(job_bytes(3)).unwrap();
            block.begin(1, 1);
            write(&mut block, var, &slab, (40, 6), form).unwrap();
            let left = OrphanedMemory::of(arena.fd().try_clone_to_owned().unwrap()).unwrap();
            let (_, records) = left.read(&left.blocks()[0]).unwrap();
            assert!(Block::record_bytes(records[0].len()) <= bytes(3) && bytes(3) <= job_bytes(3));
            let record = read(&records[0]).unwrap();
            assert_eq!((record.var, record.at, record.len), (var, 40, 6));
            assert_eq!((&record.start[..], &record.count[..]), (&start[..], &count[..]));
            assert_eq!(record.stride.as_deref(), stride);
            assert_eq!(record.form, form);
            for damage in 0..records[0].len() {
                let mut words = records[0].clone();
                words[damage] = u64::MAX;
                // If damaged words are read as a record, its lists have the lengths that it claims.
                if let Some(record) = read(&words) {
                    assert_eq!(record.start.len(), record.count.len());
                }
                assert_eq!(read(&words[..damage]), None);
            }
        }
    }
}
