//! Blocks of version 1 headers.
//! Watch: the prefix counts the messages of all blocks, free space (NIL) and those about other
//! blocks included; the body of a message has a multiple of 8 bytes.

use super::{HeaderBlock, HeaderSpace, HeaderStyle, NAME, NewMessage};
use crate::{HdfError, Result, Sizes, Writer};

/// Bytes before the messages of a first block. 4 of them are nothing, so that messages begin at a
/// multiple of 8.
const BESIDES: u64 = 16;
/// Least bytes of messages in a new first block: those of a reference to another one. The library
/// writes one there when it needs more room, whether it fits or not.
const LEAST: u64 = 24;
/// Bytes before the body of a message.
const HEAD: u64 = 8;
/// Where the number of messages is.
const COUNT_AT: usize = 2;

const ALIGN: u64 = 8;
/// Most bytes of a body: its length is in two bytes.
const MOST: u64 = 0xfff8;

/// Bytes of a body with its padding.
fn padded(message: &NewMessage) -> u64 {
    let len = message.body.len() as u64;
    len.checked_next_multiple_of(ALIGN).unwrap_or(u64::MAX)
}

pub(super) fn message_len(message: &NewMessage) -> u64 {
    padded(message).saturating_add(HEAD)
}

/// Bytes of a new first block with so many bytes of messages.
pub(super) fn first_len(messages: u64) -> u64 {
    messages.max(LEAST).saturating_add(BESIDES)
}

/// The prefix of a first block, and what is left for messages.
pub(super) fn start(
    style: &HeaderStyle,
    space: &HeaderSpace,
    sizes: Sizes,
) -> Result<Option<(Writer, u64)>> {
    let len = space.len;
    let Some(room) = len.checked_sub(BESIDES) else { return Ok(None) };
    if room.checked_rem(ALIGN) != Some(0) {
        // Some writer made it so, but libraries refuse messages that are no multiples of 8.
        let (at, what) = (space.addr.0, "the length of a first block, no multiple of 8,");
        return Err(HdfError::BadValue { structure: NAME, at, what, value: len });
    }
    let too_large = |_| HdfError::TooLarge { structure: NAME, value: len };
    let stored = u32::try_from(room).map_err(too_large)?;
    let mut writer = Writer::with_room(NAME, sizes, usize::try_from(len).unwrap_or_default());
    // Version, nothing, the number of messages, which is not known yet.
    writer.u8(1).u8(0).u16(0).u32(style.reference_count).u32(stored).zeros(4);
    Ok(Some((writer, room)))
}

pub(super) fn put(writer: &mut Writer, message: &NewMessage) -> Result<()> {
    writer.u16(message.kind).uint(padded(message), 2)?.u8(message.flags).zeros(3);
    writer.put(&message.body).pad_to(8);
    Ok(())
}

/// There is never a gap: what is left is a multiple of 8, and the head of a message has 8 bytes.
pub(super) fn fill(block: &mut HeaderBlock<'_>, mut left: u64) -> Result<()> {
    while let Some(most) = left.checked_sub(HEAD) {
        let len = most.min(MOST);
        block.put_nil(len)?;
        left = most.saturating_sub(len);
    }
    Ok(())
}

/// A first block of a header with so many messages in all its blocks.
pub(super) fn finish(mut writer: Writer, n_messages: usize) -> Result<Vec<u8>> {
    writer.set_u16(COUNT_AT, n_messages)?;
    Ok(writer.finish())
}
