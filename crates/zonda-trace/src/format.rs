//! The bytes of a trace: the one table that recording and reading share (docs/dev/trace.md).

/// What every block begins with.
pub const MAGIC: [u8; 4] = *b"ZTRC";
/// The version that is written, in the first block of a section.
pub const VERSION: u16 = 1;
/// Words of 8 bytes of an event.
pub const EVENT_WORDS: usize = 6;
/// Bytes of an event.
pub const EVENT_BYTES: usize = EVENT_WORDS * 8;
/// Bytes before the contents of a block.
pub const BLOCK_HEAD: usize = 40;
/// Most bytes of the contents of a block.
pub const MOST_BLOCK_BYTES: usize = 1 << 20;

/// Contents of a block: what a process begins with.
pub const SECTION: u8 = 1;
/// Contents of a block: events.
pub const EVENTS: u8 = 2;
/// Contents of a block: names that numbers in later events stand for.
pub const NAMES: u8 = 3;

/// Bytes of a section's contents before its two texts.
pub const SECTION_HEAD: usize = 28;
/// Bytes of a name's record before its text.
pub const NAME_HEAD: usize = 16;
/// Most bytes of a name; longer ones are cut.
pub const MOST_NAME_BYTES: usize = 4096;

/// Names of functions and filters; the number is that of an event's name.
pub const TABLE_WORDS: u8 = 1;
/// Paths of files; the number is that of an event's file.
pub const TABLE_FILES: u8 = 2;
/// Names of variables: the number is the file's, the second one group and variable (32 bits each).
pub const TABLE_VARIABLES: u8 = 3;
/// Layers: the number is the opening, the second one how many stand above.
pub const TABLE_LAYERS: u8 = 4;
/// Names of threads: the number is the thread's.
pub const TABLE_THREADS: u8 = 5;
/// What the process is in a job, such as "rank 3": both numbers are 0, and the last record counts.
pub const TABLE_ROLES: u8 = 6;

/// The head of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockHead {
    /// [`SECTION`], [`EVENTS`] or [`NAMES`].
    pub contents: u8,
    /// Bytes that follow.
    pub len_bytes: u32,
    /// Whose events they are: threads count from 1 in the order in which they first recorded.
    pub thread: u32,
    /// When the block was handed over, in ticks; of the same moment as `ns`.
    pub ticks: u64,
    /// When the block was handed over, in nanoseconds.
    pub ns: u64,
    /// Events of the process that were lost until then.
    pub lost: u64,
}

impl BlockHead {
    /// The bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; BLOCK_HEAD] {
        let mut bytes = [0; BLOCK_HEAD];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = self.contents;
        bytes[8..12].copy_from_slice(&self.len_bytes.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.thread.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.ticks.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.ns.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.lost.to_le_bytes());
        bytes
    }

    /// The head of a block, or what is wrong with it.
    ///
    /// # Errors
    /// A few words on the first field that no block has.
    pub fn decode(bytes: &[u8; BLOCK_HEAD]) -> Result<BlockHead, &'static str> {
        let number = |at: usize| {
            let mut eight = [0; 8];
            eight.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(eight)
        };
        if bytes[..4] != MAGIC {
            return Err("no block of a trace begins here");
        }
        let head = BlockHead {
            contents: bytes[4],
            len_bytes: number(8) as u32,
            thread: (number(8) >> 32) as u32,
            ticks: number(16),
            ns: number(24),
            lost: number(32),
        };
        if !matches!(head.contents, SECTION | EVENTS | NAMES) || bytes[5..8] != [0; 3] {
            return Err("a block of an unknown kind");
        }
        if head.len_bytes as usize > MOST_BLOCK_BYTES {
            return Err("a block longer than blocks are");
        }
        if head.contents == EVENTS && !(head.len_bytes as usize).is_multiple_of(EVENT_BYTES) {
            return Err("a block of events that ends within one");
        }
        Ok(head)
    }
}

/// A record of a block of names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameRecord {
    /// One of the tables above.
    pub table: u8,
    /// Which row.
    pub number: u32,
    /// Second part of it, or 0.
    pub second: u64,
    /// At most [`MOST_NAME_BYTES`].
    pub text: String,
}

impl NameRecord {
    /// Appends the record to the contents of a block.
    pub fn encode_to(&self, out: &mut Vec<u8>) {
        let text = &self.text.as_bytes()[..self.text.len().min(MOST_NAME_BYTES)];
        out.push(self.table);
        out.push(0);
        out.extend_from_slice(&(text.len() as u16).to_le_bytes());
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&self.second.to_le_bytes());
        out.extend_from_slice(text);
    }

    /// Takes the first record off `bytes`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(bytes: &mut &[u8]) -> Result<NameRecord, &'static str> {
        let (head, rest) =
            bytes.split_first_chunk::<NAME_HEAD>().ok_or("a name that ends before its text")?;
        let [table, _, a, b, n0, n1, n2, n3, second @ ..] = *head;
        let len = usize::from(u16::from_le_bytes([a, b]));
        let (text, rest) = rest.split_at_checked(len).ok_or("a name longer than its block")?;
        *bytes = rest;
        let number = u32::from_le_bytes([n0, n1, n2, n3]);
        let second = u64::from_le_bytes(second);
        Ok(NameRecord { table, number, second, text: String::from_utf8_lossy(text).into_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_round_trip_and_bad_ones_are_refused() {
        let head = BlockHead {
            contents: EVENTS,
            len_bytes: 96,
            thread: 7,
            ticks: 1,
            ns: u64::MAX,
            lost: 3,
        };
        assert_eq!(BlockHead::decode(&head.encode()), Ok(head));
        for (at, value) in [(0, 0), (4, 9), (4, 0), (6, 1), (8, 95), (10, 0x20), (11, 0xff)] {
            let mut bytes = head.encode();
            bytes[at] = value;
            assert!(BlockHead::decode(&bytes).is_err(), "byte {at} as {value}");
        }
    }

    #[test]
    fn names_round_trip() {
        let long = "é".repeat(MOST_NAME_BYTES);
        let mut bytes = Vec::new();
        for (number, text) in [(0, "nc_open"), (u32::MAX, ""), (3, &long[..])] {
            NameRecord { table: TABLE_FILES, number, second: 1 << 40, text: text.into() }
                .encode_to(&mut bytes);
        }
        let mut rest = &bytes[..];
        assert_eq!(NameRecord::decode(&mut rest).map(|name| name.text), Ok("nc_open".into()));
        let second = NameRecord::decode(&mut rest).unwrap();
        assert_eq!((second.number, second.second, &second.text[..]), (u32::MAX, 1 << 40, ""));
        assert_eq!(NameRecord::decode(&mut rest).map(|name| name.text.len()), Ok(MOST_NAME_BYTES));
        assert!(rest.is_empty());
        assert!(NameRecord::decode(&mut rest).is_err());
        assert!(NameRecord::decode(&mut &bytes[..20]).is_err());
    }
}
