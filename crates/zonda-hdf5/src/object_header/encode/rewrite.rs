//! A header written again where it is, block by block.

use super::{HeaderBlock, NewMessage};
use crate::message::{decode_reference_count, encode_reference_count, kind};
use crate::object_header::{CONTINUATION_NAME, Message, NAME, ObjectHeader};
use crate::{File, FileAddr, HdfError, Result, Writer};

impl ObjectHeader {
    /// Encodes all blocks of the header again, each at its address and with its length. `change`
    /// gives the new message for each message, or `None` to remove it. Gives the blocks whose bytes
    /// differ then.
    ///
    /// Messages stay in their blocks. Free space and messages about blocks are not given to
    /// `change`. A removed message leaves free space.
    ///
    /// # Errors [`HdfError::TooLarge`] where a block has no room for a longer message; those of
    /// `change`.
    pub fn rewrite(
        &self,
        file: &File,
        change: &mut dyn FnMut(&Message) -> Result<Option<NewMessage>>,
    ) -> Result<Vec<(FileAddr, Vec<u8>)>> {
        let (style, sizes, space) = (self.style(), file.sizes(), self.space());
        let mut messages = self.messages.iter().peekable();
        let mut put_those_of = |block: &mut HeaderBlock<'_>, addr, len, room: Option<u64>| {
            let too_large = HdfError::TooLarge { structure: NAME, value: len };
            let mut room = room.ok_or_else(|| too_large.clone())?;
            let start = file.position(addr);
            // A message without a body may be at the end of the block.
            let in_block = start..=start.saturating_add(len);
            while let Some(message) = messages.next_if(|message| in_block.contains(&message.at)) {
                let new = match message.kind {
                    kind::NIL => None,
                    kind::CONTINUATION => Some(self.carry(message)),
                    _ => change(message)?,
                };
                if let Some(new) = new {
                    let left = room.checked_sub(style.message_len(&new));
                    room = left.ok_or_else(|| too_large.clone())?;
                    block.put(&new)?;
                }
            }
            block.fill(room)
        };
        let (mut first, room) = match style.first_block(&space, sizes)? {
            Some((block, room)) => (block, Some(room)),
            None => return Err(HdfError::TooLarge { structure: NAME, value: space.len }),
        };
        put_those_of(&mut first, space.addr, space.len, room)?;
        let mut n_messages = first.n_messages;
        let mut others = Vec::new();
        for (addr, len) in self.continuations(sizes) {
            let mut block = style.other_block(sizes);
            put_those_of(&mut block, addr, len, style.other_room(len))?;
            n_messages = n_messages.saturating_add(block.n_messages);
            others.push((addr, block.finish()));
        }
        if let Some(left) = messages.next() {
            // Blocks overlap.
            let (structure, at) = (CONTINUATION_NAME, left.at);
            return Err(HdfError::Cycle { structure, at });
        }
        let mut out = vec![(space.addr, first.finish_first(n_messages)?)];
        out.append(&mut others);
        let mut changed = Vec::new();
        for (addr, bytes) in out {
            if file.read(NAME, addr, bytes.len() as u64)? != bytes {
                changed.push((addr, bytes));
            }
        }
        Ok(changed)
    }

    /// The blocks in which the count of hard links to the object is less by `fewer`. It never
    /// becomes 0 here: the last link still leads to the object.
    ///
    /// # Errors
    /// As [`ObjectHeader::rewrite`].
    pub fn with_fewer_links(&self, file: &File, fewer: u32) -> Result<Vec<(FileAddr, Vec<u8>)>> {
        let less = |count: u32| count.saturating_sub(fewer).max(count.min(1));
        let mut header = self.clone();
        header.reference_count = self.reference_count.map(less);
        header.rewrite(file, &mut |message| {
            let mut new = self.carry(message);
            if message.kind == kind::REFERENCE_COUNT && !message.is_shared() {
                let count = decode_reference_count(self.reader(file.sizes(), message))?;
                let mut body = Writer::new("object reference count message", file.sizes());
                encode_reference_count(less(count), &mut body)?;
                new.body = body.finish().into();
            }
            Ok(Some(new))
        })
    }
}

#[cfg(test)]
mod tests;
