//! All elements of a variable, in memory, and selections of them.

use zonda_convert::{ByteOrder, Converted, Decoder, RangeRule};
use zonda_format::{Destination, Error, OwnedValues, Pointers, Result};
use zonda_model::{ExtType, MemType, NcError};
use zonda_slab::{Hyperslab, Rows};

/// What a variable's elements are.
#[derive(Debug)]
pub(super) struct Form {
    /// Bytes of an element as it comes.
    pub(super) elem: usize,
    /// The type, where it is a number or text.
    pub(super) ext: Option<ExtType>,
    /// Where elements point to others.
    pub(super) pointers: Pointers,
    /// What becomes of numbers that do not fit.
    pub(super) rule: RangeRule,
}

impl Form {
    /// What makes memory of elements; `None` where they stay as they are.
    pub(super) fn decoder(&self, mem: Option<MemType>) -> Result<Option<Decoder>> {
        let (Some(ext), Some(mem)) = (self.ext, mem) else { return Ok(None) };
        let decoder = Decoder::new(ext, ByteOrder::NATIVE, mem, self.rule);
        Ok(Some(decoder.map_err(|_| NcError::Char)?))
    }
}

/// The elements of a whole variable.
#[derive(Debug)]
pub(super) enum Whole {
    /// As bytes.
    Plain(Vec<u8>),
    /// With what they point to: the number of the first one of each piece, and the piece.
    Owned(Vec<(u64, OwnedValues)>),
}

impl Whole {
    /// Bytes that it takes.
    pub(super) fn memory_bytes(&self) -> u64 {
        match self {
            Whole::Plain(bytes) => bytes.capacity() as u64,
            Whole::Owned(pieces) => {
                let bytes = pieces.iter().map(|(_, piece)| piece.memory_bytes() as u64);
                bytes.fold(0, u64::saturating_add)
            }
        }
    }

    /// Copies a selection to memory; `shape` is that of the variable.
    pub(super) fn deliver(
        &self,
        form: &Form,
        (shape, slab): (&[u64], &Hyperslab<'_>),
        mem: Option<MemType>,
        room: Destination<'_>,
    ) -> Result<Converted> {
        let short = || Error::because(NcError::Internal, "there are fewer elements than selected");
        let rows = Rows::of(shape, slab, form.elem).ok_or_else(short)?;
        let n = usize::try_from(rows.n).map_err(|_| short())?;
        let step = usize::try_from(rows.step).map_err(|_| short())?;
        let Destination { bytes: mut out, mut place } = room;
        let decoder = form.decoder(mem)?;
        let mem_size = decoder.as_ref().map_or(form.elem, Decoder::mem_size);
        let row_bytes = n.checked_mul(mem_size).ok_or_else(short)?;
        let mut converted = Converted::default();
        let done: Option<Result<()>> = rows.for_each(shape, slab, form.elem, |first| {
            let (to, rest) =
                std::mem::take(&mut out).split_at_mut_checked(row_bytes).ok_or_else(short)?;
            out = rest;
            match self {
                Whole::Plain(bytes) => {
                    let first = usize::try_from(first).map_err(|_| short())?;
                    let from = bytes.get(first..).ok_or_else(short)?;
                    let last = n.saturating_sub(1).checked_mul(step);
                    let end = last.and_then(|last| last.checked_add(form.elem));
                    let from = end.and_then(|end| from.get(..end)).ok_or_else(short)?;
                    let one = take_row(from, (form.elem, step), decoder.as_ref(), to);
                    converted = converted.and(one);
                }
                Whole::Owned(pieces) => {
                    let places = (0..rows.n).map(|i| i.saturating_mul(rows.step));
                    for (at, to) in places.zip(to.chunks_exact_mut(form.elem.max(1))) {
                        let byte = first.saturating_add(at);
                        let n = byte.checked_div(form.elem as u64).unwrap_or(0);
                        let (piece, element) = find(pieces, n, form.elem).ok_or_else(short)?;
                        let place = place.as_deref_mut().ok_or(NcError::BadType)?;
                        form.pointers.give_some(piece, element, place, to)?;
                    }
                }
            }
            Ok(())
        });
        done.ok_or_else(short)??;
        Ok(converted)
    }
}

/// Element number `n`, and the piece that it is in.
fn find(pieces: &[(u64, OwnedValues)], n: u64, elem: usize) -> Option<(&OwnedValues, &[u8])> {
    let at = pieces.partition_point(|(first, _)| *first <= n).checked_sub(1)?;
    let (first, piece) = pieces.get(at)?;
    let at = usize::try_from(n.checked_sub(*first)?).ok()?.checked_mul(elem)?;
    Some((piece, piece.bytes().get(at..at.checked_add(elem)?)?))
}

/// Elements that are `step` bytes from each other.
fn take_row(
    from: &[u8],
    (elem, step): (usize, usize),
    decoder: Option<&Decoder>,
    to: &mut [u8],
) -> Converted {
    match decoder {
        Some(decoder) if step == elem => decoder.decode(from, to),
        Some(decoder) => decoder.decode_strided(from, step, to),
        None => {
            let each = from.chunks(step.max(1)).zip(to.chunks_mut(elem.max(1)));
            for (from, to) in each {
                to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
            }
            Converted::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(ext: ExtType) -> Form {
        let rule = RangeRule::Strict;
        Form { elem: ext.size(), ext: Some(ext), pointers: Pointers::none(), rule }
    }

    #[test]
    fn selections_are_those_elements_and_no_others() {
        let values: Vec<u8> = (0..24i16).flat_map(i16::to_ne_bytes).collect();
        let whole = Whole::Plain(values);
        let form = form(ExtType::Short);
        let mut out = [0; 4 * 4];
        let slab = Hyperslab { start: &[1, 1], count: &[2, 2], stride: Some(&[2, 3]) };
        let room = Destination::plain(&mut out);
        let _ = whole.deliver(&form, (&[4, 6], &slab), Some(MemType::I32), room).unwrap();
        let expected: Vec<u8> = [7i32, 10, 19, 22].into_iter().flat_map(i32::to_ne_bytes).collect();
        assert_eq!(out[..], expected);
        let mut out = [0; 4];
        let slab = Hyperslab { start: &[3, 0], count: &[1, 2], stride: Some(&[1, 5]) };
        let room = Destination::plain(&mut out);
        let _ = whole.deliver(&form, (&[4, 6], &slab), Some(MemType::I16), room).unwrap();
        assert_eq!(out[..], [18i16, 23].map(i16::to_ne_bytes).concat());
        let room = Destination::plain(&mut out);
        assert!(whole.deliver(&form, (&[5, 6], &slab), Some(MemType::I16), room).is_ok());
        let slab = Hyperslab { start: &[4, 0], count: &[1, 2], stride: None };
        let room = Destination::plain(&mut out);
        let beyond = whole.deliver(&form, (&[5, 6], &slab), Some(MemType::I16), room);
        assert_eq!(beyond.unwrap_err().code(), NcError::Internal);
    }

    #[test]
    fn strings_are_found_in_their_pieces() {
        let mut pieces = Vec::new();
        for (first, texts) in [(0u64, &["a", "bc"][..]), (2, &["", "def", "g"][..])] {
            let mut owned = OwnedValues::default();
            let bytes: Vec<u8> = texts
                .iter()
                .flat_map(|text| owned.keep(text.as_bytes().into()).to_ne_bytes())
                .collect();
            pieces.push((first, owned.with_bytes(bytes)));
        }
        let whole = Whole::Owned(pieces);
        assert!(whole.memory_bytes() > 40);
        let pointers = Pointers::text();
        let form = Form { elem: 8, ext: None, pointers, rule: RangeRule::Cast };
        let (mut out, mut got) = ([0; 16], OwnedValues::default());
        let slab = Hyperslab { start: &[1], count: &[2], stride: Some(&[2]) };
        let room = Destination { bytes: &mut out, place: Some(&mut got) };
        let _ = whole.deliver(&form, (&[5], &slab), None, room).unwrap();
        let texts = out.chunks(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap()));
        let texts: Vec<_> = texts.map(|at| got.part(at).unwrap()).collect();
        assert_eq!(texts, [&b"bc"[..], b"def"]);
        let room = Destination::plain(&mut out);
        let nowhere = whole.deliver(&form, (&[5], &slab), None, room).unwrap_err();
        assert_eq!(nowhere.code(), NcError::BadType);
    }
}
