//! What each rank has to say, told to all.

use crate::{Reduction, Step, Team, TeamError, tuning};

/// Has all ranks learn the bytes of all of them, one behind the other in the order of ranks. All know before how many those of each rank are, by `n_bytes`.
///
/// Few bytes are one reduction, of a list where each rank has its place: ranks come together once. More are a gather and a broadcast, in which a byte goes up
/// and down a tree once.
///
/// ```
/// use zonda_team::{Step, Team, TeamError, tell_all, threads};
///
/// let all = threads::all(3, |team| {
///     let mine = vec![b'a' + team.rank() as u8; team.rank()];
///     tell_all(team, Step { call: "example", file: "none" }, |rank| rank, mine)
/// });
/// assert!(all.iter().all(|told| told == &Ok(b"bcc".to_vec())));
/// ```
///
/// # Errors
/// See [`TeamError`]; [`TeamError::Failed`] on all ranks where one tells more or fewer bytes than others expect.
pub fn tell_all(
    team: &dyn Team,
    step: Step<'_>,
    n_bytes: impl Fn(usize) -> usize,
    mine: Vec<u8>,
) -> Result<Vec<u8>, TeamError> {
    let (me, size) = (team.rank(), team.size());
    if size == 1 {
        return Ok(mine);
    }
    let before = (0..me).fold(0usize, |sum, rank| sum.saturating_add(n_bytes(rank)));
    let total = (me..size).fold(before, |sum, rank| sum.saturating_add(n_bytes(rank)));
    if total > tuning::TELL_BY_REDUCTION_BYTES {
        let mut all = team.gather(step, 0, &mine)?.concat();
        team.broadcast(step, 0, &mut all)?;
        return if all.len() == total { Ok(all) } else { Err(other_length(step)) };
    }
    // One place more says whether a rank has another number of bytes than the others know.
    let n_words = total.div_ceil(WORD);
    let mut bytes = vec![0; n_words * WORD];
    let place = bytes.get_mut(before..before.saturating_add(n_bytes(me)));
    let is_as_known = place.as_ref().is_some_and(|place| place.len() == mine.len());
    if let Some(place) = place.filter(|_| is_as_known) {
        place.copy_from_slice(&mine);
    }
    let (words, _) = bytes.as_chunks::<WORD>();
    let mut numbers: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    numbers.push(u64::from(!is_as_known));
    team.reduce(step, Reduction::Or, &mut numbers)?;
    if numbers.pop() != Some(0) {
        return Err(other_length(step));
    }
    let mut all: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    all.truncate(total);
    Ok(all)
}

const WORD: usize = size_of::<u64>();

fn other_length(step: Step<'_>) -> TeamError {
    TeamError::Failed {
        call: step.call.into(),
        file: step.file.into(),
        what: "a rank tells more or less than the others expect".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, threads};

    const STEP: Step<'static> = Step { call: "nc_put_var", file: "x.nc" };

    #[test]
    fn all_ranks_learn_what_each_says() {
        for each in [0, 1, 7, 8, 100, 4000] {
            for n in [1, 2, 5, 16] {
                // Rank 0 says nothing, the last one most.
                let len = |rank: usize| each * rank;
                let text = |rank: usize| vec![rank as u8 + 1; len(rank)];
                let expected: Vec<u8> = (0..n).flat_map(text).collect();
                let found = threads::all(n, |team| {
                    let told = tell_all(team, STEP, len, text(team.rank()));
                    (told, team.traffic().of(Kind::Gather).steps)
                });
                let is_long = n > 1 && expected.len() > tuning::TELL_BY_REDUCTION_BYTES;
                for (told, gathers) in found {
                    assert_eq!(told.as_ref(), Ok(&expected), "{each} {n}");
                    assert_eq!(gathers, u64::from(is_long), "{each} {n}");
                }
            }
        }
    }

    #[test]
    fn another_length_is_an_error_of_all() {
        for each in [3, 4000] {
            let found = threads::all(4, |team| {
                let len = each + usize::from(team.rank() == 2);
                tell_all(team, STEP, |_| each, vec![1; len])
            });
            assert!(found.iter().all(|told| *told == Err(other_length(STEP))), "{found:?}");
        }
    }
}
