//! Where elements of a response go.

use zonda_convert::{Converted, Decoder};
use zonda_format::{Error, OwnedValues, Pointers, VlenSink};
use zonda_model::{NcError, memory};

use super::whole::Whole;
use crate::error::{DapError, Document};
use crate::protocol::Sink;

/// Where the elements of one part go.
#[derive(Debug)]
pub(super) enum Goal<'a> {
    /// Into memory of the caller.
    Memory {
        /// What makes memory of them; `None` where they stay as they are.
        decoder: Option<Decoder>,
        /// Bytes of an element as it comes.
        elem: usize,
        /// The memory that is not filled yet.
        out: &'a mut [u8],
        /// Values that did not fit.
        converted: Converted,
    },
    /// Into a variable that is kept: what came, and how many bytes there are to be in all.
    Keep(Vec<u8>, u64),
    /// The same of elements that point to others, whose size in bytes comes then.
    KeepOwned(Vec<(u64, OwnedValues)>, u64, usize),
    /// Nowhere.
    Nothing,
}

/// Takes the elements of a response.
pub(super) struct Taker<'a> {
    pub(super) goals: Vec<Goal<'a>>,
    /// What is read, for errors.
    pub(super) document: Document,
}

impl Taker<'_> {
    fn wrong(&self, what: &str) -> DapError {
        DapError::Malformed { document: self.document, at: 0, what: what.to_owned() }
    }

    fn too_many(&self) -> DapError {
        self.wrong("there are more elements than were asked for")
    }

    /// Fails unless all elements of all parts came.
    pub(super) fn check_whole(&self) -> Result<(), DapError> {
        let is_whole = self.goals.iter().all(|goal| match goal {
            Goal::Memory { out, .. } => out.is_empty(),
            Goal::Keep(bytes, all) => bytes.len() as u64 == *all,
            Goal::KeepOwned(pieces, all, elem) => came(pieces, *elem) == *all,
            Goal::Nothing => true,
        });
        let why = "there are fewer elements than were asked for";
        if is_whole { Ok(()) } else { Err(self.wrong(why)) }
    }
}

impl Goal<'_> {
    /// The variable that came, where it is to be kept.
    pub(super) fn into_whole(self) -> Option<Whole> {
        match self {
            Goal::Keep(mut bytes, _) => {
                bytes.shrink_to_fit();
                Some(Whole::Plain(bytes))
            }
            Goal::KeepOwned(pieces, ..) => Some(Whole::Owned(pieces)),
            Goal::Memory { .. } | Goal::Nothing => None,
        }
    }
}

/// Bytes of elements in pieces.
fn came(pieces: &[(u64, OwnedValues)], elem: usize) -> u64 {
    pieces.last().map_or(0, |(first, piece)| {
        first.saturating_mul(elem as u64).saturating_add(piece.bytes().len() as u64)
    })
}

fn no_memory(document: Document, bytes: usize) -> DapError {
    DapError::NoMemory { document, bytes: bytes as u64 }
}

impl Sink for Taker<'_> {
    fn plain(&mut self, part: usize, elements: &[u8]) -> Result<(), DapError> {
        let document = self.document;
        match self.goals.get_mut(part) {
            Some(Goal::Memory { decoder, elem, out, converted }) => {
                let n = elements.len().checked_div(*elem).unwrap_or(0);
                let size = decoder.as_ref().map_or(*elem, Decoder::mem_size);
                let room = n.checked_mul(size).filter(|&bytes| bytes <= out.len());
                let Some(room) = room.filter(|_| elements.len().is_multiple_of((*elem).max(1)))
                else {
                    return Err(self.too_many());
                };
                let (to, rest) = std::mem::take(out).split_at_mut(room);
                *out = rest;
                match decoder {
                    Some(decoder) => *converted = converted.and(decoder.decode(elements, to)),
                    None => to.copy_from_slice(elements),
                }
                Ok(())
            }
            Some(Goal::Keep(bytes, all)) => {
                if (bytes.len() as u64).saturating_add(elements.len() as u64) > *all {
                    return Err(self.too_many());
                }
                memory::reserve(bytes, elements.len())
                    .map_err(|_| no_memory(document, elements.len()))?;
                bytes.extend_from_slice(elements);
                Ok(())
            }
            Some(Goal::Nothing) => Ok(()),
            Some(Goal::KeepOwned(..)) | None => Err(self.wrong("elements of another kind came")),
        }
    }

    fn owned(&mut self, part: usize, elements: OwnedValues) -> Result<(), DapError> {
        match self.goals.get_mut(part) {
            Some(Goal::KeepOwned(pieces, all, elem)) => {
                let before = came(pieces, *elem);
                let n = elements.bytes().len() as u64;
                if before.saturating_add(n) > *all || !n.is_multiple_of((*elem).max(1) as u64) {
                    return Err(self.too_many());
                }
                let first = before.checked_div(*elem as u64).unwrap_or(0);
                pieces.push((first, elements));
                Ok(())
            }
            Some(Goal::Nothing) => Ok(()),
            _ => Err(self.wrong("elements of another kind came")),
        }
    }
}

/// Places elements that point to others in the caller's memory, as they come.
pub(super) struct Placer<'a> {
    pub(super) pointers: &'a Pointers,
    pub(super) out: &'a mut [u8],
    pub(super) place: &'a mut dyn VlenSink,
    pub(super) document: Document,
    /// What kept the caller from taking them, where it is that.
    pub(super) refused: Option<Error>,
}

impl Placer<'_> {
    fn wrong(&self, what: &str) -> DapError {
        DapError::Malformed { document: self.document, at: 0, what: what.to_owned() }
    }

    /// Fails unless all elements came.
    pub(super) fn check_whole(&self) -> Result<(), DapError> {
        let why = "there are fewer elements than were asked for";
        if self.out.is_empty() { Ok(()) } else { Err(self.wrong(why)) }
    }
}

impl Sink for Placer<'_> {
    fn plain(&mut self, _: usize, _: &[u8]) -> Result<(), DapError> {
        Err(self.wrong("elements of another kind came"))
    }

    fn owned(&mut self, part: usize, elements: OwnedValues) -> Result<(), DapError> {
        let n = elements.bytes().len();
        if part != 0 || n > self.out.len() {
            return Err(self.wrong("there are more elements than were asked for"));
        }
        let (to, rest) = std::mem::take(&mut self.out).split_at_mut(n);
        self.out = rest;
        let given = self.pointers.give(&elements, &mut *self.place, to);
        given.map_err(|error| {
            let is_memory = error.code() == NcError::NoMem;
            self.refused = Some(error);
            if is_memory {
                no_memory(self.document, n)
            } else {
                self.wrong("elements that the caller cannot take came")
            }
        })
    }
}
