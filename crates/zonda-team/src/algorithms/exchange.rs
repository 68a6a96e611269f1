//! The step in which some ranks send to some others, and none knows from whom it will hear.

use crate::{Message, TeamError};

use super::{Links, Tag, check_rank, packing};

/// The tag of the messages that an exchange carries, above those of all rounds.
const DATA: Tag = 64;

/// Sends messages to some ranks and gives those that were sent to this one, as [`Team::exchange`](crate::Team::exchange).
///
/// First all ranks learn how many messages they will get; then each sends its messages, one by one as they are, and
/// takes as many as it knows of, in whatever order they come. Nobody sends data before all ranks have come, and nobody leaves
/// before it has its own, so messages of one exchange do not meet those of the next. What a rank sends to itself is not sent.
///
/// # Errors
/// Those of `links`; [`TeamError::Failed`] if a message is to a rank that there is not, or if counts are damaged.
pub fn exchange(
    links: &(impl Links + ?Sized),
    messages: Vec<Message>,
) -> Result<Vec<Message>, TeamError> {
    let (rank, n) = (links.rank(), links.size());
    for message in &messages {
        check_rank(links, message.rank, "who gets a message")?;
    }
    let mut counts = vec![0; n];
    let to_others = messages.iter().filter(|message| message.rank != rank);
    to_others.for_each(|message| counts[message.rank] += 1);
    let n_coming = agree_counts(links, &counts)?;
    let mut got = Vec::new();
    for message in messages {
        if message.rank == rank {
            got.push(message);
        } else {
            links.send(message.rank, DATA, message.bytes)?;
        }
    }
    for _ in 0..n_coming {
        let (rank, bytes) = links.receive_any(DATA)?;
        got.push(Message { rank, bytes });
    }
    // It keeps the order of those of one sender.
    zonda_runtime::sort::sort_by_key(&mut got, |message| message.rank);
    Ok(got)
}

/// How many messages this rank will get, if `counts` says how many it sends to each.
///
/// In each round, the ranks still to be told of are halved: counts of those further off go to a rank nearer to them, which adds them
/// to its own. (J. L. Träff, Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms, 2024: the least number of rounds,
/// ceil(log2 n), and of counts, n - 1, for any n.) Where few are not 0, only those are sent.
fn agree_counts(links: &(impl Links + ?Sized), counts: &[u64]) -> Result<u64, TeamError> {
    let (rank, n) = (links.rank(), links.size());
    // How many messages go to the rank so many above this one, as far as this one knows.
    let mut known: Vec<u64> = (0..n).map(|above| counts[(rank + above) % n]).collect();
    let mut tag = 0;
    let mut n_known = n;
    while n_known > 1 {
        let distance = n_known.div_ceil(2);
        let (to, from) = ((rank + distance) % n, (rank + n - distance) % n);
        links.send(to, tag, pack_counts(&known[distance..n_known]))?;
        let others = links.receive(from, tag)?;
        if !add_counts(&mut known[..n_known - distance], &others) {
            return Err(links.failed(format!("the counts that came from rank {from} are damaged")));
        }
        n_known = distance;
        tag += 1;
    }
    Ok(known[0])
}

/// Counts as bytes: all of them, or pairs of a place and a count that is not 0, whichever is shorter. The length says which it is,
/// since pairs are always shorter than all.
fn pack_counts(counts: &[u64]) -> Vec<u8> {
    let pairs = counts.iter().enumerate().filter(|(_, count)| **count != 0);
    if pairs.clone().count() * 2 >= counts.len() {
        return packing::from_numbers(counts);
    }
    let pairs: Vec<u64> = pairs.flat_map(|(place, &count)| [place as u64, count]).collect();
    packing::from_numbers(&pairs)
}

/// Adds counts that came as bytes, and says whether they could be ones.
fn add_counts(known: &mut [u64], bytes: &[u8]) -> bool {
    let Some(numbers) = packing::numbers(bytes) else {
        return false;
    };
    if numbers.len() == known.len() {
        known.iter_mut().zip(numbers).for_each(|(count, more)| *count = count.wrapping_add(more));
        return true;
    }
    let pairs = numbers.chunks_exact(2);
    let whole = pairs.remainder().is_empty() && numbers.len() < known.len();
    whole
        && pairs.into_iter().all(|pair| {
            let count = usize::try_from(pair[0]).ok().and_then(|place| known.get_mut(place));
            count.map(|count| *count = count.wrapping_add(pair[1])).is_some()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_sent_in_the_shorter_form() {
        for counts in
            [vec![], vec![0], vec![7], vec![0, 0, 3], vec![1, 2, 3], vec![0; 9], vec![0, 1, 0, 2]]
        {
            let bytes = pack_counts(&counts);
            assert!(bytes.len() <= counts.len() * 8);
            let mut known = vec![5; counts.len()];
            assert!(add_counts(&mut known, &bytes));
            let expected: Vec<u64> = counts.iter().map(|count| count + 5).collect();
            assert_eq!(known, expected);
        }
        assert_eq!(pack_counts(&[0; 100]).len(), 0);
        assert_eq!(pack_counts(&[0, 0, 0, 0, 9]).len(), 16);
    }

    #[test]
    fn counts_that_cannot_be_are_refused() {
        let mut known = [0; 5];
        for numbers in [&[0][..], &[5, 1], &[u64::MAX, 1], &[0; 6], &[1, 1, 2]] {
            assert!(!add_counts(&mut known, &packing::from_numbers(numbers)), "{numbers:?}");
        }
        assert!(!add_counts(&mut known, &[0; 39]));
    }

    #[test]
    fn data_have_a_tag_of_their_own() {
        assert!(crate::algorithms::rounds(usize::MAX) <= DATA);
    }
}
