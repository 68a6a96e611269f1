//! Encoding of object headers, versions 1 and 2. What differs between them is in a module each.
//! Watch: a block is filled to its last byte: libraries refuse blocks that are not.

mod rewrite;
mod v1;
mod v2;

use std::sync::Arc;

use super::{ATTRIBUTE_ORDER_TRACKED, NAME};
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
    /// The body. In version 1 zeros follow it up to a multiple of 8 bytes.
    pub body: Arc<[u8]>,
}

/// What a header says before its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderStyle {
    /// Version, 1 or 2. Version 1 has its number of hard links and none of the other fields.
    pub version: u8,
    /// Number of hard links, in version 1. In version 2 a message has it if it is not 1.
    pub reference_count: u32,
    /// Bits 4 and 8: creation order of attributes is tracked, and indexed. The other flags follow
    /// from the other fields.
    pub flags: u8,
    /// Most attributes in the header, least attributes outside of it, if not the defaults.
    pub phase_change: Option<(u16, u16)>,
    /// Seconds since 1970 of access, modification, change and birth, where they are kept.
    pub times: Option<[u32; 4]>,
}

/// The style of a new header of version 2 which keeps neither an order of attributes nor times.
impl Default for HeaderStyle {
    fn default() -> HeaderStyle {
        HeaderStyle { version: 2, reference_count: 1, flags: 0, phase_change: None, times: None }
    }
}

/// Space of a first block: in version 1 from the version to the end of the messages, in version 2
/// from the signature to the end of the checksum.
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
    /// Whether messages have a creation index.
    fn tracked(&self) -> bool {
        self.version != 1 && self.flags & ATTRIBUTE_ORDER_TRACKED != 0
    }

    fn message_len(&self, message: &NewMessage) -> u64 {
        match self.version {
            1 => v1::message_len(message),
            _ => v2::message_len(self, message),
        }
    }

    fn messages_len<'a>(&self, messages: impl IntoIterator<Item = &'a NewMessage>) -> u64 {
        let lens = messages.into_iter().map(|message| self.message_len(message));
        lens.fold(0, u64::saturating_add)
    }

    /// A first block up to its messages, and the bytes that there are for these. `None` where its
    /// space does not even hold what is before the messages.
    fn first_block(
        &self,
        space: &HeaderSpace,
        sizes: Sizes,
    ) -> Result<Option<(HeaderBlock<'_>, u64)>> {
        let started = match self.version {
            1 => v1::start(self, space, sizes)?,
            _ => v2::start(self, space.len, sizes)?,
        };
        Ok(started.map(|(writer, room)| (HeaderBlock { style: self, writer, n_messages: 0 }, room)))
    }

    /// Bytes for messages in another block of `len` bytes.
    fn other_room(&self, len: u64) -> Option<u64> {
        // Signature and checksum.
        len.checked_sub(if self.version == 1 { 0 } else { 8 })
    }

    /// Another block up to its messages.
    fn other_block(&self, sizes: Sizes) -> HeaderBlock<'_> {
        let mut writer = Writer::new(NAME, sizes);
        if self.version != 1 {
            writer.put(b"OCHK");
        }
        HeaderBlock { style: self, writer, n_messages: 0 }
    }
}

/// A block in the making.
struct HeaderBlock<'a> {
    style: &'a HeaderStyle,
    writer: Writer,
    n_messages: usize,
}

impl HeaderBlock<'_> {
    fn put(&mut self, message: &NewMessage) -> Result<()> {
        self.n_messages = self.n_messages.saturating_add(1);
        match self.style.version {
            1 => v1::put(&mut self.writer, message),
            _ => v2::put(self.style, &mut self.writer, message),
        }
    }

    /// Fills what is left of the block with messages of nothing.
    fn fill(&mut self, left: u64) -> Result<()> {
        match self.style.version {
            1 => v1::fill(self, left),
            _ => v2::fill(self, left),
        }
    }

    /// A message of nothing, `len` bytes long besides its head.
    fn put_nil(&mut self, len: u64) -> Result<()> {
        let body = vec![0; usize::try_from(len).unwrap_or_default()].into();
        self.put(&NewMessage { kind: kind::NIL, flags: 0, creation_order: None, body })
    }

    /// The whole block; the first one of a header with so many messages.
    fn finish_first(self, n_messages: usize) -> Result<Vec<u8>> {
        match self.style.version {
            1 => v1::finish(self.writer, n_messages),
            _ => Ok(self.writer.finish_checked()),
        }
    }

    /// The whole block, if it is not the first one.
    fn finish(self) -> Vec<u8> {
        match self.style.version {
            1 => self.writer.finish(),
            _ => self.writer.finish_checked(),
        }
    }
}

/// Bytes of a new first block that holds all these messages and no more. In version 1 there is room
/// for a message about another block at least.
#[must_use]
pub fn first_chunk_len(style: &HeaderStyle, messages: &[NewMessage]) -> u64 {
    let len = style.messages_len(messages);
    match style.version {
        1 => v1::first_len(len),
        _ => v2::first_len(style, len),
    }
}

/// Encodes a header into the space of its first block.
///
/// Messages are put there in the order given as far as they fit, the others into one more block,
/// for whose length `fresh` gives an address. Attributes without a creation order keep the order
/// given over both blocks. Messages about yet other blocks are treated like all others, and their
/// blocks stay as they are. In version 1 the messages in those are not counted, so a header of
/// version 1 is encoded with all of its messages.
///
/// # Errors
/// [`HdfError::TooLarge`] for messages that no header can hold, and where not even a message about
/// the other block fits; [`HdfError::BadValue`] for a first block of version 1 whose length is no
/// multiple of 8; those of `fresh`.
pub fn encode_header(
    style: &HeaderStyle,
    messages: &[NewMessage],
    space: &HeaderSpace,
    sizes: Sizes,
    fresh: &mut dyn FnMut(u64) -> Result<FileAddr>,
) -> Result<EncodedHeader> {
    let all = style.messages_len(messages);
    let too_large = || HdfError::TooLarge { structure: NAME, value: all };
    let (mut first, room) = style.first_block(space, sizes)?.ok_or_else(too_large)?;
    if all <= room {
        for message in messages {
            first.put(message)?;
        }
        first.fill(room.saturating_sub(all))?;
        let n_messages = first.n_messages;
        return Ok(EncodedHeader { first: first.finish_first(n_messages)?, continuation: None });
    }
    let reference_len = style.message_len(&reference(FileAddr(0), 0, sizes)?);
    let mut left = room.checked_sub(reference_len).ok_or_else(too_large)?;
    let mut rest = style.other_block(sizes);
    let mut is_ordered = true;
    for message in messages {
        // Where no creation order is kept, attributes have the order of their messages.
        let is_free = style.tracked() || message.kind != kind::ATTRIBUTE || is_ordered;
        let behind = left.checked_sub(style.message_len(message));
        if let Some(behind) = behind.filter(|_| is_free) {
            left = behind;
            first.put(message)?;
        } else {
            is_ordered &= message.kind != kind::ATTRIBUTE;
            rest.put(message)?;
        }
    }
    let n_rest = rest.n_messages;
    let rest = rest.finish();
    let addr = fresh(rest.len() as u64)?;
    first.put(&reference(addr, rest.len() as u64, sizes)?)?;
    first.fill(left)?;
    let n_messages = first.n_messages.saturating_add(n_rest);
    Ok(EncodedHeader { first: first.finish_first(n_messages)?, continuation: Some((addr, rest)) })
}

/// The message about another block.
fn reference(addr: FileAddr, len: u64, sizes: Sizes) -> Result<NewMessage> {
    let mut body = Writer::scratch(NAME, sizes);
    body.addr(Some(addr))?.length(len)?;
    let (kind, body) = (kind::CONTINUATION, body.finish_shared());
    Ok(NewMessage { kind, flags: 0, creation_order: None, body })
}

#[cfg(test)]
mod tests;
