//! Encoding of version 2 object headers.
//! Watch: a block is filled to its last byte, by NIL messages or by a gap that is shorter than the
//! head of a message, never by both: libraries refuse that.

use std::sync::Arc;

use super::{
    ATTRIBUTE_ORDER_INDEXED, ATTRIBUTE_ORDER_TRACKED, NAME, PHASE_CHANGE_STORED, TIMES_STORED,
};
use crate::message::kind;
use crate::{FileAddr, HdfError, Result, Sizes, Writer};

/// A message for a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMessage {
    /// Type; see [`crate::message::kind`].
    pub kind: u16,
    /// Flags: 1 for what never changes, 2 for a body that is a reference, 4 for what is not shared.
    pub flags: u8,
    /// Creation index; not written where the header keeps none.
    pub creation_order: Option<u16>,
    /// The body.
    pub body: Arc<[u8]>,
}

/// What a header says before its messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeaderStyle {
    /// Bits 4 and 8: creation order of attributes is tracked, and indexed. The others follow from
    /// what else there is.
    pub flags: u8,
    /// Most attributes in the header, least attributes outside of it, if not the defaults.
    pub phase_change: Option<(u16, u16)>,
    /// Seconds since 1970 of access, modification, change and birth, where they are kept.
    pub times: Option<[u32; 4]>,
}

/// Space of a first block, from its signature to the end of its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderSpace {
    /// Where it begins.
    pub addr: FileAddr,
    /// Bytes.
    pub len: u64,
}

/// The blocks of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedHeader {
    /// The first one, exactly as long as its space.
    pub first: Vec<u8>,
    /// The other one, where there is one.
    pub continuation: Option<(FileAddr, Vec<u8>)>,
}

impl HeaderStyle {
    fn tracked(&self) -> bool {
        self.flags & ATTRIBUTE_ORDER_TRACKED != 0
    }

    /// Bytes before the body of a message.
    fn head(&self) -> u64 {
        if self.tracked() { 6 } else { 4 }
    }

    /// Bytes of a first block besides its messages, without those of their length.
    fn besides(&self) -> u64 {
        // Signature, version, flags and checksum.
        let times = if self.times.is_some() { 16 } else { 0 };
        let phase_change = if self.phase_change.is_some() { 4 } else { 0 };
        10u64.saturating_add(times).saturating_add(phase_change)
    }

    fn message_len(&self, message: &NewMessage) -> u64 {
        self.head().saturating_add(message.body.len() as u64)
    }

    fn messages_len<'a>(&self, messages: impl IntoIterator<Item = &'a NewMessage>) -> u64 {
        let lens = messages.into_iter().map(|message| self.message_len(message));
        lens.fold(0, u64::saturating_add)
    }

    /// Bytes for messages in a first block of `len` bytes, and the bits of the width in which that
    /// is stored.
    fn room(&self, len: u64) -> Option<(u64, u8)> {
        let most = len.checked_sub(self.besides())?;
        let fits = |&(bits, width): &(u8, u64)| {
            let room = most.checked_sub(width)?;
            let stored = room.checked_shr(u32::try_from(width).ok()?.saturating_mul(8));
            (stored.unwrap_or(0) == 0).then_some((room, bits))
        };
        [(0, 1), (1, 2), (2, 4), (3, 8)].iter().find_map(fits)
    }

    fn start(&self, bits: u8, room: u64, sizes: Sizes) -> Result<Writer> {
        let len = room.saturating_add(self.besides()).saturating_add(1 << bits);
        let len = usize::try_from(len).unwrap_or_default();
        let mut writer = Writer::with_room(NAME, sizes, len);
        let order = self.flags & (ATTRIBUTE_ORDER_TRACKED | ATTRIBUTE_ORDER_INDEXED);
        let phase_change = if self.phase_change.is_some() { PHASE_CHANGE_STORED } else { 0 };
        let times = if self.times.is_some() { TIMES_STORED } else { 0 };
        writer.put(b"OHDR").u8(2).u8(bits | order | phase_change | times);
        for time in self.times.into_iter().flatten() {
            writer.u32(time);
        }
        if let Some((most, least)) = self.phase_change {
            writer.u16(most).u16(least);
        }
        writer.uint(room, 1 << bits)?;
        Ok(writer)
    }

    fn put(&self, writer: &mut Writer, message: &NewMessage) -> Result<()> {
        let len = message.body.len() as u64;
        // A longer one would not be read: version 2 has a byte for the type, and two for the length.
        writer.uint(u64::from(message.kind), 1)?.uint(len, 2)?.u8(message.flags);
        if self.tracked() {
            writer.u16(message.creation_order.unwrap_or_default());
        }
        writer.put(&message.body);
        Ok(())
    }

    /// Fills what is left of a block.
    fn fill(&self, writer: &mut Writer, mut left: u64) -> Result<()> {
        while left >= self.head() {
            let mut len = left.saturating_sub(self.head()).min(u64::from(u16::MAX));
            // What then is left must not be a gap.
            let behind = left.saturating_sub(self.head()).saturating_sub(len);
            if behind > 0 && behind < self.head() {
                len = len.saturating_sub(self.head());
            }
            let body = vec![0; usize::try_from(len).unwrap_or_default()].into();
            let nil = NewMessage { kind: kind::NIL, flags: 0, creation_order: None, body };
            left = left.saturating_sub(self.message_len(&nil));
            self.put(writer, &nil)?;
        }
        writer.zeros(usize::try_from(left).unwrap_or_default());
        Ok(())
    }
}

/// Bytes of the first block that holds all these messages and no more.
#[must_use]
pub fn first_chunk_len(style: &HeaderStyle, messages: &[NewMessage]) -> u64 {
    let len = style.messages_len(messages);
    let width = match len {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    };
    len.saturating_add(style.besides()).saturating_add(width)
}

/// Encodes a header into the space of its first block.
///
/// Messages go there in the order given as far as they fit, the others into one more block, whose
/// place `fresh` gives for its length. Attributes of which no creation order is kept stay in the
/// order given over both blocks. Messages about yet other blocks are messages like all others.
///
/// # Errors
/// [`HdfError::TooLarge`] for messages that no header can hold, and where not even a message about
/// the other block fits; those of `fresh`.
pub fn encode_header(
    style: &HeaderStyle,
    messages: &[NewMessage],
    space: &HeaderSpace,
    sizes: Sizes,
    fresh: &mut dyn FnMut(u64) -> Result<FileAddr>,
) -> Result<EncodedHeader> {
    let all = style.messages_len(messages);
    let too_large = || HdfError::TooLarge { structure: NAME, value: all };
    let (room, bits) = style.room(space.len).ok_or_else(too_large)?;
    let mut writer = style.start(bits, room, sizes)?;
    if all <= room {
        for message in messages {
            style.put(&mut writer, message)?;
        }
        style.fill(&mut writer, room.saturating_sub(all))?;
        return Ok(EncodedHeader { first: writer.finish_checked(), continuation: None });
    }
    let reference = u64::from(sizes.offset).saturating_add(u64::from(sizes.length));
    let reference = style.head().saturating_add(reference);
    let mut left = room.checked_sub(reference).ok_or_else(too_large)?;
    let mut rest = Writer::new(NAME, sizes);
    rest.put(b"OCHK");
    let mut is_ordered = true;
    for message in messages {
        // Where nothing says the order of attributes, it is that of their messages.
        let is_free = style.tracked() || message.kind != kind::ATTRIBUTE || is_ordered;
        let behind = left.checked_sub(style.message_len(message));
        if let Some(behind) = behind.filter(|_| is_free) {
            left = behind;
            style.put(&mut writer, message)?;
        } else {
            is_ordered &= message.kind != kind::ATTRIBUTE;
            style.put(&mut rest, message)?;
        }
    }
    let rest = rest.finish_checked();
    let addr = fresh(rest.len() as u64)?;
    let mut body = Writer::new(NAME, sizes);
    body.addr(Some(addr))?.length(rest.len() as u64)?;
    let (kind, body) = (kind::CONTINUATION, body.finish().into());
    style.put(&mut writer, &NewMessage { kind, flags: 0, creation_order: None, body })?;
    style.fill(&mut writer, left)?;
    Ok(EncodedHeader { first: writer.finish_checked(), continuation: Some((addr, rest)) })
}

#[cfg(test)]
mod tests;
