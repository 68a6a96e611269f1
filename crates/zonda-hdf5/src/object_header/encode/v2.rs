//! Blocks of version 2 headers.
//! Watch: a block is filled to its last byte, by NIL messages or by a gap that is shorter than the
//! head of a message, never by both: libraries refuse that.

use super::{HeaderBlock, HeaderStyle, NAME, NewMessage};
use crate::object_header::{
    ATTRIBUTE_ORDER_INDEXED, ATTRIBUTE_ORDER_TRACKED, PHASE_CHANGE_STORED, TIMES_STORED,
};
use crate::{Result, Sizes, Writer};

/// Bytes before the body of a message.
fn head(style: &HeaderStyle) -> u64 {
    if style.tracked() { 6 } else { 4 }
}

/// Bytes of a first block besides its messages, without those of their length.
fn besides(style: &HeaderStyle) -> u64 {
    // Signature, version, flags and checksum.
    let times = if style.times.is_some() { 16 } else { 0 };
    let phase_change = if style.phase_change.is_some() { 4 } else { 0 };
    10u64.saturating_add(times).saturating_add(phase_change)
}

pub(super) fn message_len(style: &HeaderStyle, message: &NewMessage) -> u64 {
    head(style).saturating_add(message.body.len() as u64)
}

/// Bytes of a first block with so many bytes of messages.
pub(super) fn first_len(style: &HeaderStyle, messages: u64) -> u64 {
    let width = match messages {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    };
    messages.saturating_add(besides(style)).saturating_add(width)
}

/// Bytes for messages in a first block of `len` bytes, and the bits of the width in which that is
/// stored.
pub(super) fn room(style: &HeaderStyle, len: u64) -> Option<(u64, u8)> {
    let most = len.checked_sub(besides(style))?;
    let fits = |&(bits, width): &(u8, u64)| {
        let room = most.checked_sub(width)?;
        let stored = room.checked_shr(u32::try_from(width).ok()?.saturating_mul(8));
        (stored.unwrap_or(0) == 0).then_some((room, bits))
    };
    [(0, 1), (1, 2), (2, 4), (3, 8)].iter().find_map(fits)
}

/// The prefix of a first block of `len` bytes, and what is left for messages.
pub(super) fn start(style: &HeaderStyle, len: u64, sizes: Sizes) -> Result<Option<(Writer, u64)>> {
    let Some((room, bits)) = room(style, len) else { return Ok(None) };
    let mut writer = Writer::with_room(NAME, sizes, usize::try_from(len).unwrap_or_default());
    let order = style.flags & (ATTRIBUTE_ORDER_TRACKED | ATTRIBUTE_ORDER_INDEXED);
    let phase_change = if style.phase_change.is_some() { PHASE_CHANGE_STORED } else { 0 };
    let times = if style.times.is_some() { TIMES_STORED } else { 0 };
    writer.put(b"OHDR").u8(2).u8(bits | order | phase_change | times);
    for time in style.times.into_iter().flatten() {
        writer.u32(time);
    }
    if let Some((most, least)) = style.phase_change {
        writer.u16(most).u16(least);
    }
    writer.uint(room, 1 << bits)?;
    Ok(Some((writer, room)))
}

pub(super) fn put(style: &HeaderStyle, writer: &mut Writer, message: &NewMessage) -> Result<()> {
    let len = message.body.len() as u64;
    // A longer one would not be read: version 2 has a byte for the type, and two for the length.
    writer.uint(u64::from(message.kind), 1)?.uint(len, 2)?.u8(message.flags);
    if style.tracked() {
        writer.u16(message.creation_order.unwrap_or_default());
    }
    writer.put(&message.body);
    Ok(())
}

pub(super) fn fill(block: &mut HeaderBlock<'_>, mut left: u64) -> Result<()> {
    let head = head(block.style);
    while let Some(most) = left.checked_sub(head) {
        let mut len = most.min(u64::from(u16::MAX));
        // The bytes that are left then must not be a gap.
        let behind = most.saturating_sub(len);
        if behind > 0 && behind < head {
            len = len.saturating_sub(head);
        }
        block.put_nil(len)?;
        left = most.saturating_sub(len);
    }
    block.writer.zeros(usize::try_from(left).unwrap_or_default());
    Ok(())
}
