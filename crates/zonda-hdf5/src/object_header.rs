//! Object header: the messages that describe an object.
//! Spec: HDF5 File Format, "Disk Format: Level 2A1 - Data Object Header Prefix". Versions 1 and 2
//! read and written.
//! Watch: the length of a version 2 continuation block counts its signature and checksum; the
//! message count of version 1 is not to be relied on, the lengths of the blocks are.

mod encode;

use std::sync::Arc;

use hashbrown::HashSet;
use smallvec::SmallVec;

use crate::message::kind;
use crate::read_ahead::ReadAhead;
use crate::tuning::HEADER_READ_BYTES;
use crate::{File, FileAddr, HdfError, Reader, Result, Sizes};

pub use encode::{
    EncodedHeader, HeaderSpace, HeaderStyle, NewMessage, encode_header, first_chunk_len,
};

const NAME: &str = "object header";
const CONTINUATION_NAME: &str = "object header continuation";

/// Header flags of version 2: attribute creation order is tracked.
const ATTRIBUTE_ORDER_TRACKED: u8 = 0x04;
const ATTRIBUTE_ORDER_INDEXED: u8 = 0x08;
const PHASE_CHANGE_STORED: u8 = 0x10;
const TIMES_STORED: u8 = 0x20;

/// Blocks of one header that are compared one by one.
const FEW_BLOCKS: usize = 8;
/// The bytes of a short message, with its head; and the most messages that memory is taken for at once.
const USUAL_MESSAGE_BYTES: usize = 16;
const MOST_EXPECTED_MESSAGES: usize = 256;

/// Message flag: a program that did not know the message changed the header.
const WAS_UNKNOWN: u8 = 0x20;

/// A message of a header: where it is, and what the header says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Byte of the file where its body is, user block included.
    pub at: u64,
    /// Where its body is in [`ObjectHeader::bytes`].
    pub start: u32,
    /// Bytes of its body.
    pub len: u32,
    /// Type; see [`crate::message::kind`].
    pub kind: u16,
    /// Creation index, where the header keeps them.
    pub creation_order: Option<u16>,
    /// Flags.
    pub flags: u8,
}

impl Message {
    /// Whether the body is a reference to a message elsewhere.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.flags & 0x02 != 0
    }

    /// Whether a program that does not know the message must not write to the file.
    #[must_use]
    pub fn fails_writers_if_unknown(&self) -> bool {
        self.flags & 0x08 != 0
    }

    /// Whether a program that did not know the message changed the header.
    #[must_use]
    pub fn was_unknown(&self) -> bool {
        self.flags & WAS_UNKNOWN != 0
    }

    fn fails_if_unknown(&self) -> bool {
        self.flags & 0x80 != 0
    }

    /// Whether a program that changes the header without knowing the message has to mark it.
    fn wants_a_mark(&self) -> bool {
        self.flags & 0x10 != 0
    }

    fn is_known(&self) -> bool {
        self.kind <= kind::CACHE_IMAGE
    }
}

/// An object header, its blocks put together.
#[derive(Clone, Debug)]
pub struct ObjectHeader {
    /// Where it begins.
    pub addr: FileAddr,
    /// Version, 1 or 2.
    pub version: u8,
    /// Flags of version 2; 0 in version 1.
    pub flags: u8,
    /// The message areas of all blocks, one after the other.
    pub bytes: Arc<[u8]>,
    /// All messages in the order of the blocks, free space (NIL) and unknown ones included.
    pub messages: Vec<Message>,
    /// Number of hard links; `None` in version 2, where a message has it if it is not 1.
    pub reference_count: Option<u32>,
    /// Seconds since 1970 of access, modification, change and birth, where the header has them.
    pub times: Option<[u32; 4]>,
    /// Most attributes in the header, least attributes outside of it, if not the defaults.
    pub phase_change: Option<(u16, u16)>,
    /// Bytes of the first block, from the version or signature on to the end of its messages or
    /// checksum.
    pub first_len: u64,
    /// How many of the messages are in it.
    n_first: usize,
    /// Why messages may be missing: the first damage of the blocks. Only in a file that is
    /// [tolerant](File::is_tolerant).
    pub damage: Option<Box<HdfError>>,
}

impl ObjectHeader {
    /// Reads the header at `addr` with all its blocks.
    ///
    /// # Errors
    /// Also where blocks lead back to each other, where a checksum is wrong, and where a message
    /// asks for failure when it is not known.
    pub fn read(file: &File, addr: FileAddr) -> Result<ObjectHeader> {
        ObjectHeader::read_ahead(file, addr, &mut ReadAhead::default())
    }

    /// The same for one of many objects, with what was read ahead for those before.
    ///
    /// # Errors
    /// As [`ObjectHeader::read`].
    pub fn read_ahead(file: &File, addr: FileAddr, ahead: &mut ReadAhead) -> Result<ObjectHeader> {
        let scratch = std::mem::take(&mut ahead.scratch);
        let at = file.locate(NAME, addr, 1)?;
        let mut have = HEADER_READ_BYTES.min(file.len().saturating_sub(at));
        let mut first = match ahead.read(file, NAME, addr, have) {
            // Behind the header may be space of a variable that nobody has written yet.
            Err(HdfError::OutOfFile { .. }) => {
                have = have.min(file.storage().len()?.saturating_sub(at));
                ahead.read(file, NAME, addr, have)?
            }
            read => read?,
        };
        let prefix = HeaderPrefix::decode(file.reader(NAME, addr, first))?;
        let mut damage = None;
        if prefix.total > have {
            // Address and length are checked together, so that their sum cannot wrap.
            let (at, len) = match file.locate(NAME, addr, prefix.total) {
                Ok(at) => (at, prefix.total),
                Err(error) if file.is_tolerant() => {
                    damage = Some(Box::new(error));
                    (at, file.len().saturating_sub(at))
                }
                Err(error) => return Err(error),
            };
            if u32::try_from(len).is_err() {
                return Err(limit_error(at, "bytes of all blocks", u64::from(u32::MAX)));
            }
            first = ahead.read(file, NAME, addr, len)?;
        }
        let total = usize::try_from(prefix.total).unwrap_or(usize::MAX);
        let first = first.get(..total).unwrap_or(first);
        let mut loader = HeaderLoader::new(file, &prefix, scratch);
        match damage {
            None => loader.first(addr, first, &prefix)?,
            Some(_) => loader.cut(addr, first, prefix.len),
        }
        loader.damage = damage;
        let n_first = loader.messages.len();
        loader.continuations(addr, ahead)?;
        let bytes = Arc::from(&*loader.bytes);
        ahead.keep_scratch(loader.bytes);
        Ok(ObjectHeader {
            addr,
            version: prefix.version,
            flags: prefix.flags,
            bytes,
            messages: loader.messages,
            reference_count: prefix.reference_count,
            times: prefix.times,
            phase_change: prefix.phase_change,
            first_len: prefix.total,
            n_first,
            damage: loader.damage,
        })
    }

    /// The first message of a type.
    #[must_use]
    pub fn find(&self, kind: u16) -> Option<&Message> {
        self.messages.iter().find(|message| message.kind == kind)
    }

    /// All messages of a type, in the order of the header.
    pub fn all(&self, kind: u16) -> impl Iterator<Item = &Message> {
        self.messages.iter().filter(move |message| message.kind == kind)
    }

    /// The body of one of its messages, a reference where the message is shared.
    #[must_use]
    pub fn body(&self, message: &Message) -> &[u8] {
        let range = usize::try_from(message.start).ok().and_then(|start| {
            let end = start.checked_add(usize::try_from(message.len).ok()?)?;
            self.bytes.get(start..end)
        });
        range.unwrap_or_default()
    }

    /// A reader over the body of one of its messages, as [`ObjectHeader::body`].
    #[must_use]
    pub fn reader(&self, sizes: Sizes, message: &Message) -> Reader<'_> {
        Reader::new(kind::name(message.kind), self.body(message), message.at, sizes)
    }

    /// Where its first block is and how long.
    #[must_use]
    pub fn space(&self) -> HeaderSpace {
        HeaderSpace { addr: self.addr, len: self.first_len }
    }

    /// The messages of its first block. A caller that encodes these anew, messages about other
    /// blocks included, keeps the other blocks as they are; in version 1 the first block counts
    /// their messages, too.
    #[must_use]
    pub fn first(&self) -> &[Message] {
        self.messages.get(..self.n_first).unwrap_or_default()
    }

    /// Where its other blocks are and how long, signatures and checksums included.
    pub fn continuations(&self, sizes: Sizes) -> impl Iterator<Item = (FileAddr, u64)> {
        self.all(kind::CONTINUATION).filter_map(move |message| {
            let mut reader = self.reader(sizes, message);
            let addr = reader.addr().ok()??;
            Some((addr, reader.length().ok()?))
        })
    }

    /// What a new first block keeps of this one.
    #[must_use]
    pub fn style(&self) -> HeaderStyle {
        HeaderStyle {
            version: self.version,
            reference_count: self.reference_count.unwrap_or(1),
            flags: self.flags,
            phase_change: self.phase_change,
            times: self.times,
        }
    }

    /// One of its messages for a new header: the same flags, creation index and body. A message
    /// that is not known here and asks for a mark then gets it.
    #[must_use]
    pub fn carry(&self, message: &Message) -> NewMessage {
        let unknown = !message.is_known() && message.wants_a_mark();
        NewMessage {
            kind: message.kind,
            flags: if unknown { message.flags | WAS_UNKNOWN } else { message.flags },
            creation_order: message.creation_order,
            body: self.body(message).into(),
        }
    }

    /// Whether the creation order of attributes is kept.
    #[must_use]
    pub fn attribute_order_tracked(&self) -> bool {
        self.flags & ATTRIBUTE_ORDER_TRACKED != 0
    }

    /// Whether there is an index of attributes by creation order.
    #[must_use]
    pub fn attribute_order_indexed(&self) -> bool {
        self.flags & ATTRIBUTE_ORDER_INDEXED != 0
    }
}

/// The fields before the messages of the first block.
#[derive(Debug)]
struct HeaderPrefix {
    version: u8,
    flags: u8,
    reference_count: Option<u32>,
    times: Option<[u32; 4]>,
    phase_change: Option<(u16, u16)>,
    /// Bytes before the messages.
    len: usize,
    /// Bytes of prefix, messages and checksum.
    total: u64,
}

impl HeaderPrefix {
    fn decode(mut reader: Reader<'_>) -> Result<HeaderPrefix> {
        let all = reader.left();
        if !reader.rest().starts_with(b"OHDR") {
            return HeaderPrefix::decode_old(reader, all);
        }
        reader.skip(4)?;
        let version = reader.version(2..=2)?;
        let flags = reader.u8()?;
        if flags & 0xc0 != 0 {
            return Err(reader.bad("flags", u64::from(flags)));
        }
        let times = match flags & TIMES_STORED {
            0 => None,
            _ => Some([reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?]),
        };
        let phase_change = match flags & PHASE_CHANGE_STORED {
            0 => None,
            _ => Some((reader.u16()?, reader.u16()?)),
        };
        let messages = reader.uint(1usize << (flags & 3))?;
        let len = all.saturating_sub(reader.left());
        let total = messages.saturating_add(len as u64).saturating_add(4);
        Ok(HeaderPrefix { version, flags, reference_count: None, times, phase_change, len, total })
    }

    fn decode_old(mut reader: Reader<'_>, all: usize) -> Result<HeaderPrefix> {
        let version = reader.version(1..=1)?;
        reader.skip(3)?; // Nothing, and the number of messages in all blocks.
        let reference_count = Some(reader.u32()?);
        let messages = reader.u32()?;
        reader.skip(4)?;
        let len = all.saturating_sub(reader.left());
        let total = u64::from(messages).saturating_add(len as u64);
        let (times, phase_change) = (None, None);
        Ok(HeaderPrefix { version, flags: 0, reference_count, times, phase_change, len, total })
    }
}

/// Puts a header together from its blocks.
struct HeaderLoader<'a> {
    file: &'a File,
    version: u8,
    /// Whether messages have a creation index.
    ordered: bool,
    bytes: Vec<u8>,
    messages: Vec<Message>,
    /// Blocks that messages refer to, in the order of these messages.
    blocks: SmallVec<[(FileAddr, u64); 2]>,
    /// The first damage that was passed over.
    damage: Option<Box<HdfError>>,
}

impl<'a> HeaderLoader<'a> {
    /// A loader that puts the blocks together in `scratch`.
    fn new(file: &'a File, prefix: &HeaderPrefix, mut scratch: Vec<u8>) -> HeaderLoader<'a> {
        scratch.clear();
        HeaderLoader {
            file,
            version: prefix.version,
            ordered: prefix.flags & ATTRIBUTE_ORDER_TRACKED != 0,
            bytes: scratch,
            messages: Vec::new(),
            blocks: SmallVec::new(),
            damage: None,
        }
    }

    fn first(&mut self, addr: FileAddr, block: &[u8], prefix: &HeaderPrefix) -> Result<()> {
        let mut reader = self.file.reader(NAME, addr, block);
        reader.skip(prefix.len)?;
        if self.version == 1 {
            return self.messages_of(reader);
        }
        let messages = reader.sub(reader.left().saturating_sub(4))?;
        reader.checksum(block)?;
        self.messages_of(messages)
    }

    /// Takes the whole messages of the beginning of a first block that the end of the file cuts.
    fn cut(&mut self, addr: FileAddr, block: &[u8], prefix_len: usize) {
        let mut reader = self.file.reader(NAME, addr, block);
        if reader.skip(prefix_len).is_ok() {
            // The error is that of the message that is cut.
            let _ = self.messages_of(reader);
        }
    }

    fn continuations(&mut self, addr: FileAddr, ahead: &mut ReadAhead) -> Result<()> {
        if self.blocks.is_empty() {
            return Ok(());
        }
        let mut visited = VisitedBlocks::from(addr);
        let mut next = 0usize;
        while let Some(&block) = self.blocks.get(next) {
            next = next.saturating_add(1);
            match self.continuation(block, next, &mut visited, ahead) {
                Err(error) if self.file.is_tolerant() && !matches!(error, HdfError::Storage(_)) => {
                    self.damage.get_or_insert_with(|| Box::new(error));
                    if next > self.file.limits().header_blocks {
                        break;
                    }
                }
                read => read?,
            }
        }
        Ok(())
    }

    /// Reads the block with that number.
    fn continuation(
        &mut self,
        (addr, len): (FileAddr, u64),
        number: usize,
        visited: &mut VisitedBlocks,
        ahead: &mut ReadAhead,
    ) -> Result<()> {
        let is_cut = match self.file.locate(CONTINUATION_NAME, addr, len) {
            Err(error) if self.file.is_tolerant() => Some(error),
            located => located.map(|_| None)?,
        };
        let at = self.file.locate(CONTINUATION_NAME, addr, 0)?;
        if !visited.insert(addr) {
            return Err(HdfError::Cycle { structure: CONTINUATION_NAME, at });
        }
        let limit = self.file.limits().header_blocks;
        if number > limit {
            return Err(limit_error(at, "blocks", limit as u64));
        }
        let len = if is_cut.is_some() { self.file.len().saturating_sub(at) } else { len };
        // Blocks may overlap; together they must not be longer than the file.
        let total = len.saturating_add(self.bytes.len() as u64);
        if total > self.file.len().min(u64::from(u32::MAX)) {
            return Err(limit_error(at, "bytes of all blocks", self.file.len()));
        }
        let block = ahead.read(self.file, CONTINUATION_NAME, addr, len)?;
        let mut reader = self.file.reader(CONTINUATION_NAME, addr, block);
        if self.version != 1 {
            reader.signature(*b"OCHK")?;
        }
        if let Some(error) = is_cut {
            // Whole messages of the part that is there; the checksum is not.
            let _ = self.messages_of(reader);
            return Err(error);
        }
        if self.version == 1 {
            return self.messages_of(reader);
        }
        let Some(len) = reader.left().checked_sub(4) else {
            return Err(reader.bad("bytes of a block", len));
        };
        let messages = reader.sub(len)?;
        reader.checksum(block)?;
        self.messages_of(messages)
    }

    /// Adds the messages of a block. Each keeps its bytes, headers in between included.
    fn messages_of(&mut self, mut reader: Reader<'_>) -> Result<()> {
        let at = reader.at();
        let too_long = || limit_error(at, "bytes of all blocks", u64::from(u32::MAX));
        let base = self.bytes.len();
        let whole = reader.rest();
        let end = base.saturating_add(whole.len());
        if u32::try_from(end).is_err() {
            return Err(too_long());
        }
        zonda_model::memory::reserve(&mut self.bytes, whole.len())?;
        self.bytes.extend_from_slice(whole);
        let head = match (self.version, self.ordered) {
            (1, _) => 8,
            (_, false) => 4,
            (_, true) => 6,
        };
        // One allocation for nearly all headers.
        let expected = whole.len().checked_div(USUAL_MESSAGE_BYTES).unwrap_or(0);
        zonda_model::memory::reserve(&mut self.messages, expected.min(MOST_EXPECTED_MESSAGES))?;
        // In version 2 a block may end with fewer bytes than the head of a message.
        while reader.left() >= if self.version == 1 { 1 } else { head } {
            let (kind, len, flags);
            let mut creation_order = None;
            if self.version == 1 {
                kind = reader.u16()?;
                len = reader.u16()?;
                flags = reader.u8()?;
                reader.skip(3)?;
            } else if self.ordered {
                let [code, a, b, bits, c, d] = reader.array()?;
                kind = u16::from(code);
                len = u16::from_le_bytes([a, b]);
                flags = bits;
                creation_order = Some(u16::from_le_bytes([c, d]));
            } else {
                let [code, a, b, bits] = reader.array()?;
                kind = u16::from(code);
                len = u16::from_le_bytes([a, b]);
                flags = bits;
            }
            let start = end.saturating_sub(reader.left());
            let body = reader.sub(usize::from(len))?;
            let message = Message {
                at: body.at(),
                start: u32::try_from(start).map_err(|_| too_long())?,
                len: u32::from(len),
                kind,
                creation_order,
                flags,
            };
            self.add(message, body)?;
        }
        Ok(())
    }

    #[inline]
    fn add(&mut self, message: Message, mut body: Reader<'_>) -> Result<()> {
        if !message.is_known() && message.fails_if_unknown() {
            return Err(body.unsupported("a message that asks not to be passed over"));
        }
        if message.kind == kind::CONTINUATION {
            body = body.named(CONTINUATION_NAME);
            let addr = body.defined_addr("block")?;
            self.blocks.push((addr, body.length()?));
        }
        let limit = self.file.limits().header_messages;
        if self.messages.len() >= limit {
            return Err(limit_error(message.at, "messages", limit as u64));
        }
        self.messages.push(message);
        Ok(())
    }
}

/// The blocks of one header that were read. Most headers have one or two, for which a set would cost more than the
/// header.
struct VisitedBlocks {
    few: SmallVec<[FileAddr; FEW_BLOCKS]>,
    more: HashSet<FileAddr>,
}

impl From<FileAddr> for VisitedBlocks {
    fn from(first: FileAddr) -> VisitedBlocks {
        VisitedBlocks { few: SmallVec::from_slice(&[first]), more: HashSet::new() }
    }
}

impl VisitedBlocks {
    /// Adds one; `false` if it was there.
    fn insert(&mut self, addr: FileAddr) -> bool {
        if self.few.contains(&addr) {
            return false;
        }
        if self.few.len() < FEW_BLOCKS {
            self.few.push(addr);
            return true;
        }
        self.more.insert(addr)
    }
}

fn limit_error(at: u64, what: &'static str, limit: u64) -> HdfError {
    HdfError::Limit { structure: NAME, at, what, limit }
}

#[cfg(test)]
mod tests;
