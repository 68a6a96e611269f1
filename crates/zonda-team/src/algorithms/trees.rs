//! The steps in which all ranks hear of each other.

use crate::{Reduction, TeamError};

use super::{Links, Tag, check_rank, packing, rounds};

/// Gives the bytes of `root` to all ranks, as [`Team::broadcast`](crate::Team::broadcast): who has them gives them to one who has
/// not, so that twice as many have them after each round.
///
/// # Errors
/// Those of `links`; [`TeamError::Failed`] if there is no rank `root`.
pub fn broadcast(
    links: &(impl Links + ?Sized),
    root: usize,
    bytes: &mut Vec<u8>,
) -> Result<(), TeamError> {
    check_rank(links, root, "root")?;
    let n = links.size();
    // Ranks are counted from the root. Each hears from the one whose number lacks its own lowest bit.
    let place = (links.rank() + n - root) % n;
    let at = |place: usize| (place + root) % n;
    let mut bit = 1;
    while bit < n && place & bit == 0 {
        bit <<= 1;
    }
    if place > 0 {
        *bytes = links.receive(at(place - bit), 0)?;
    }
    // The largest part of the tree first: it has the longest way to go.
    while bit > 1 {
        bit >>= 1;
        if place + bit < n {
            links.send(at(place + bit), 0, bytes.clone())?;
        }
    }
    Ok(())
}

impl Reduction {
    /// One number of two.
    fn of(self, a: u64, b: u64) -> u64 {
        match self {
            Reduction::Sum => a.wrapping_add(b),
            Reduction::Max => a.max(b),
            Reduction::Min => a.min(b),
            Reduction::Or => a | b,
        }
    }
}

/// The numbers of a rank, which are as many as one's own.
fn receive_numbers(
    links: &(impl Links + ?Sized),
    from: usize,
    tag: Tag,
    n_numbers: usize,
) -> Result<Vec<u64>, TeamError> {
    let bytes = links.receive(from, tag)?;
    let numbers = packing::numbers(&bytes).filter(|numbers| numbers.len() == n_numbers);
    numbers.ok_or_else(|| {
        let (len, expected) = (bytes.len(), n_numbers * size_of::<u64>());
        links.failed(format!(
            "rank {from} brought a list of {len} bytes where this one has {expected}: lists are equally long on all ranks"
        ))
    })
}

/// Makes one number of those of all ranks, as [`Team::reduce`](crate::Team::reduce): ranks exchange what they have with those at
/// distance 1, 2, 4, ..., so that each knows the result after the last round.
///
/// # Errors
/// Those of `links`; [`TeamError::Failed`] if lists are not equally long.
pub fn reduce(
    links: &(impl Links + ?Sized),
    how: Reduction,
    numbers: &mut [u64],
) -> Result<(), TeamError> {
    let (rank, n) = (links.rank(), links.size());
    let n_rounds: Tag = n.ilog2();
    let n_doubling = 1 << n_rounds;
    let (tag_in, tag_out) = (n_rounds, n_rounds + 1);
    if rank >= n_doubling {
        let partner = rank - n_doubling;
        links.send(partner, tag_in, packing::from_numbers(numbers))?;
        let result = receive_numbers(links, partner, tag_out, numbers.len())?;
        numbers.copy_from_slice(&result);
        return Ok(());
    }
    let outside = Some(rank + n_doubling).filter(|&partner| partner < n);
    let take = |numbers: &mut [u64], from, tag| -> Result<(), TeamError> {
        let others = receive_numbers(links, from, tag, numbers.len())?;
        numbers.iter_mut().zip(others).for_each(|(mine, other)| *mine = how.of(*mine, other));
        Ok(())
    };
    if let Some(partner) = outside {
        take(numbers, partner, tag_in)?;
    }
    for round in 0..n_rounds {
        let partner = rank ^ (1 << round);
        links.send(partner, round, packing::from_numbers(numbers))?;
        take(numbers, partner, round)?;
    }
    match outside {
        Some(partner) => links.send(partner, tag_out, packing::from_numbers(numbers)),
        None => Ok(()),
    }
}

/// Makes each number the sum of those of all ranks below, as [`Team::scan`](crate::Team::scan): before the round of distance d, each
/// rank has the sum of its own and the d - 1 ranks below it, and gives it to the rank d above.
///
/// # Errors
/// Those of `links`; [`TeamError::Failed`] if lists are not equally long.
pub fn scan(links: &(impl Links + ?Sized), numbers: &mut [u64]) -> Result<(), TeamError> {
    let (rank, n) = (links.rank(), links.size());
    let mut with_mine = numbers.to_vec();
    numbers.fill(0);
    for round in 0..rounds(n) {
        let distance = 1 << round;
        if rank + distance < n {
            links.send(rank + distance, round, packing::from_numbers(&with_mine))?;
        }
        if rank >= distance {
            let below = receive_numbers(links, rank - distance, round, numbers.len())?;
            for ((number, mine), below) in numbers.iter_mut().zip(&mut with_mine).zip(below) {
                *number = number.wrapping_add(below);
                *mine = mine.wrapping_add(below);
            }
        }
    }
    Ok(())
}

/// Gathers the bytes of all ranks on `root`, as [`Team::gather`](crate::Team::gather), by the tree of [`broadcast`] upwards: each rank
/// sends what it and those below it in the tree have in one message.
///
/// # Errors
/// Those of `links`; [`TeamError::Failed`] if there is no rank `root`, or if a message is damaged.
pub fn gather(
    links: &(impl Links + ?Sized),
    root: usize,
    bytes: &[u8],
) -> Result<Vec<Vec<u8>>, TeamError> {
    check_rank(links, root, "root")?;
    let n = links.size();
    let place = (links.rank() + n - root) % n;
    let at = |place: usize| (place + root) % n;
    // Of this rank and those above it, without a gap.
    let mut packed = Vec::new();
    packing::push(&mut packed, bytes);
    for round in 0..rounds(n) {
        let bit = 1 << round;
        if place & bit != 0 {
            links.send(at(place - bit), round, packed)?;
            return Ok(Vec::new());
        }
        if place + bit < n {
            packed.append(&mut links.receive(at(place + bit), round)?);
        }
    }
    let lists = packing::unpack(&packed).filter(|lists| lists.len() == n);
    let mut lists = lists.ok_or_else(|| {
        links.failed(format!("what came together on rank {root} are not the lists of {n} ranks"))
    })?;
    lists.rotate_right(root);
    Ok(lists)
}
