//! What members of a group say to each other: a head of fixed length, and bytes.

use std::io::{self, Read, Write};

use super::TeamName;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// Bytes of one rank for another one.
    Letter = 1,
    /// A rank calls no steps any more. The tag says how it left, the step how many steps it came to the end of.
    Left,
    /// Something for whoever uses the connections, about a team.
    Notice,
}

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) kind: FrameKind,
    pub(crate) team: TeamName,
    pub(crate) step: u64,
    pub(crate) tag: u32,
    pub(crate) from: u32,
    pub(crate) to: u32,
}

/// A frame that has come.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) head: Head,
    pub(crate) bytes: Vec<u8>,
}

/// Bytes of a head, with the length of what follows.
const HEAD_BYTES: usize = 48;
/// Up to so many bytes go with their head in one system call.
const SMALL_BYTES: usize = 16 << 10;
/// How much memory is taken before its bytes have come.
const PIECE_BYTES: u64 = 1 << 20;

impl Head {
    fn encode(&self, len: usize) -> [u8; HEAD_BYTES] {
        let words = [
            self.team[0],
            self.team[1],
            self.step,
            self.kind as u64 | u64::from(self.tag) << 32,
            u64::from(self.from) | u64::from(self.to) << 32,
            len as u64,
        ];
        let mut bytes = [0; HEAD_BYTES];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The head, and how many bytes follow; `None` for what is no head.
    fn decode(bytes: &[u8; HEAD_BYTES]) -> Option<(Head, u64)> {
        let (words, _) = bytes.as_chunks::<8>();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let mut word = || words.next().unwrap_or_default();
        let (team, step, mixed, ranks, len) = ([word(), word()], word(), word(), word(), word());
        let (low, high) = (|word: u64| word as u32, |word: u64| (word >> 32) as u32);
        let known = [FrameKind::Letter, FrameKind::Left, FrameKind::Notice];
        let kind = known.into_iter().find(|kind| *kind as u32 == low(mixed))?;
        Some((Head { kind, team, step, tag: high(mixed), from: low(ranks), to: high(ranks) }, len))
    }

    /// Writes a frame.
    pub(crate) fn write(&self, to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
        let head = self.encode(bytes.len());
        if bytes.len() > SMALL_BYTES {
            to.write_all(&head)?;
            return to.write_all(bytes);
        }
        to.write_all(&[&head, bytes].concat())
    }
}

impl Frame {
    /// The next frame; `None` where there is none any more.
    ///
    /// # Errors
    /// What the system says; `InvalidData` for what is no frame, `UnexpectedEof` for a part of one, `OutOfMemory`.
    pub(crate) fn read(from: &mut impl Read) -> io::Result<Option<Frame>> {
        let mut head = [0; HEAD_BYTES];
        let n_first = loop {
            match from.read(&mut head) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                n_read => break n_read?,
            }
        };
        if n_first == 0 {
            return Ok(None);
        }
        from.read_exact(head.get_mut(n_first..).unwrap_or_default())?;
        let (head, len) = Head::decode(&head).ok_or(io::ErrorKind::InvalidData)?;
        let mut bytes = Vec::new();
        // Memory is taken as bytes come, so that a wrong length takes none.
        while (bytes.len() as u64) < len {
            let n_more = (len - bytes.len() as u64).min(PIECE_BYTES.max(bytes.len() as u64));
            let n_reserved = usize::try_from(n_more).map_err(|_| io::ErrorKind::OutOfMemory)?;
            bytes.try_reserve_exact(n_reserved).map_err(|_| io::ErrorKind::OutOfMemory)?;
            if from.take(n_more).read_to_end(&mut bytes)? as u64 != n_more {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(Some(Frame { head, bytes }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: Head = Head {
        kind: FrameKind::Notice,
        team: [1, u64::MAX],
        step: 1 << 40,
        tag: 64,
        from: 7,
        to: u32::MAX,
    };

    #[test]
    fn frames_come_as_they_went() {
        let mut sent = Vec::new();
        let lens = [0, 1, SMALL_BYTES, SMALL_BYTES + 1, 5_000_001];
        for (tag, len) in lens.into_iter().enumerate() {
            let head = Head { tag: tag as u32, ..HEAD };
            head.write(&mut sent, &vec![tag as u8; len]).unwrap();
        }
        let mut rest = &sent[..];
        for (tag, len) in lens.into_iter().enumerate() {
            let frame = Frame::read(&mut rest).unwrap().unwrap();
            assert_eq!(frame.head, Head { tag: tag as u32, ..HEAD });
            assert!(frame.bytes == vec![tag as u8; len], "{len}");
        }
        assert!(Frame::read(&mut rest).unwrap().is_none());
    }

    #[test]
    fn what_is_cut_off_or_damaged_is_an_error() {
        let mut sent = Vec::new();
        HEAD.write(&mut sent, b"abc").unwrap();
        for len in 1..sent.len() {
            let error = Frame::read(&mut &sent[..len]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{len}");
        }
        // A length that no memory has.
        sent[40..48].fill(0xff);
        let error = Frame::read(&mut &sent[..]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        sent[24] = 9;
        let error = Frame::read(&mut &sent[..]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
