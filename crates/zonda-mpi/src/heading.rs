//! What begins everything that one rank sends another in an exchange: who sends, how many messages, how long they are. Short messages
//! follow in the same bytes, so they need no others.
//!
//! The sender is in the bytes, since MPI tells it only by an `MPI_Status`, which each ABI lays out in another way.
//!
//! All numbers have 8 bytes, lowest first: the sender, the number of messages, and, where they fit, the lengths; then, where all of them fit,
//! the messages.

use crate::tuning::HEADING_BYTES;

/// The sender, and the number of messages.
const FIXED_BYTES: usize = 16;
const NUMBER_BYTES: usize = 8;

/// A heading, as its receiver knows it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Heading {
    pub(crate) sender: usize,
    pub(crate) rest: Rest,
}

/// What is still to come.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Nothing: these are the messages.
    Nothing(Vec<Vec<u8>>),
    /// Messages of these lengths; empty ones are not sent.
    Messages(Vec<usize>),
    /// So many lengths, and then the messages.
    Lengths(usize),
}

/// Whether the lengths of so many messages fit.
fn has_lengths(count: usize) -> bool {
    count <= (HEADING_BYTES - FIXED_BYTES) / NUMBER_BYTES
}

/// Whether so many messages, of so many bytes together, fit.
fn has_messages(count: usize, bytes: usize) -> bool {
    has_lengths(count) && bytes <= HEADING_BYTES - FIXED_BYTES - count * NUMBER_BYTES
}

/// The heading of messages; the lengths, if they have to be sent for themselves; and whether the messages have.
pub(crate) fn encode(sender: usize, messages: &[Vec<u8>]) -> (Vec<u8>, Option<Vec<u8>>, bool) {
    let total = messages.iter().fold(0_usize, |sum, message| sum.saturating_add(message.len()));
    let mut heading = [sender as u64, messages.len() as u64].map(u64::to_le_bytes).concat();
    let lengths = messages.iter().flat_map(|message| (message.len() as u64).to_le_bytes());
    if !has_lengths(messages.len()) {
        return (heading, Some(lengths.collect()), true);
    }
    heading.extend(lengths);
    let within = has_messages(messages.len(), total);
    if within {
        heading.extend(messages.iter().flatten());
    }
    (heading, None, !within)
}

/// What a heading says; `None` if no rank of Zonda sent it. Bytes after its end do not matter.
pub(crate) fn decode(bytes: &[u8]) -> Option<Heading> {
    let (fixed, bytes) = bytes.split_at_checked(FIXED_BYTES)?;
    let numbers = lengths(fixed)?;
    let (&sender, &count) = (numbers.first()?, numbers.get(1)?);
    if !has_lengths(count) {
        return Some(Heading { sender, rest: Rest::Lengths(count) });
    }
    let (of_lengths, mut bytes) = bytes.split_at_checked(count * NUMBER_BYTES)?;
    let lengths = lengths(of_lengths)?;
    let total = lengths.iter().fold(0_usize, |sum, length| sum.saturating_add(*length));
    if !has_messages(count, total) {
        return Some(Heading { sender, rest: Rest::Messages(lengths) });
    }
    let mut messages = Vec::new();
    for length in lengths {
        let (message, others) = bytes.split_at_checked(length)?;
        messages.push(message.to_vec());
        bytes = others;
    }
    Some(Heading { sender, rest: Rest::Nothing(messages) })
}

/// Numbers that were sent as bytes; `None` if one is no length here.
pub(crate) fn lengths(bytes: &[u8]) -> Option<Vec<usize>> {
    let (numbers, []) = bytes.as_chunks::<NUMBER_BYTES>() else { return None };
    numbers.iter().map(|number| usize::try_from(u64::from_le_bytes(*number)).ok()).collect()
}

/// Bytes of so many lengths.
pub(crate) fn bytes_of_lengths(count: usize) -> Option<usize> {
    count.checked_mul(NUMBER_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(count: usize, length: usize) -> Vec<Vec<u8>> {
        (0..count).map(|at| vec![at as u8; length]).collect()
    }

    /// As a receiver has it, whose buffer may be longer.
    fn received(mut heading: Vec<u8>) -> Heading {
        heading.resize(HEADING_BYTES, 0);
        decode(&heading).unwrap()
    }

    #[test]
    fn short_messages_are_within() {
        for (count, length) in [(0, 0), (1, 0), (1, 488), (5, 80), (62, 0), (31, 8)] {
            let (heading, lengths, apart) = encode(3, &messages(count, length));
            assert_eq!((lengths, apart), (None, false), "{count} of {length}");
            let Heading { sender: 3, rest: Rest::Nothing(found) } = received(heading) else {
                panic!("{count} of {length}")
            };
            assert_eq!(found, messages(count, length));
        }
    }

    #[test]
    fn longer_ones_follow() {
        for (count, length) in [(1, 489), (2, 500), (62, 1), (1, 100_000)] {
            let (heading, lengths, apart) = encode(70_000, &messages(count, length));
            assert_eq!((lengths, apart), (None, true));
            let expected = Heading { sender: 70_000, rest: Rest::Messages(vec![length; count]) };
            assert_eq!(received(heading), expected);
        }
    }

    #[test]
    fn many_have_a_list_of_their_own() {
        let (heading, list, apart) = encode(1, &messages(63, 2));
        assert!(apart);
        assert_eq!(received(heading), Heading { sender: 1, rest: Rest::Lengths(63) });
        assert_eq!(lengths(&list.unwrap()), Some(vec![2; 63]));
        assert_eq!(bytes_of_lengths(63), Some(504));
    }

    #[test]
    fn other_bytes_are_no_heading() {
        assert_eq!(decode(&[0; 15]), None);
        assert_eq!(decode(&[1; 16]).map(|heading| heading.sender), Some(0x0101_0101_0101_0101));
        let mut short = encode(0, &messages(2, 9)).0;
        short.pop();
        assert_eq!(decode(&short), None);
        assert_eq!(lengths(&[0; 9]), None);
    }
}
