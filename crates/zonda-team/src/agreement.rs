//! Do all ranks make the same call?

use crate::{Reduction, Step, Team, TeamError, tuning};

/// What a rank brings to [`agree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mine<'a> {
    /// The call and its arguments, for who reads the error: at most 1,024 bytes of it are told.
    pub what: &'a str,
    /// A hash of all that is to be the same on all ranks. Two calls that differ have the same one with a probability of 2^-128.
    pub hash: u128,
    /// How things are on this rank. What numbers mean is for the caller to say; the greatest counts, so 0 is to be fine and worse is
    /// to be more. It may differ between ranks.
    pub status: u64,
}

/// What all ranks know after [`agree`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// The greatest status of a rank.
    pub status: u64,
    /// Two ranks that do not do the same, if there are.
    pub differing: Option<Differing>,
}

/// Two ranks that do not do the same: rank 0, and the first that does something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differing {
    /// Rank 0, and what it does.
    pub first: (usize, String),
    /// The first rank that does not do what rank 0 does, and what that is.
    pub other: (usize, String),
}

/// Looks whether all ranks do the same. Where they do, that is one reduction of five numbers; where they do not, all ranks learn of
/// two that differ, by a gather and a broadcast besides.
///
/// ```
/// use zonda_team::{Mine, Step, Team, agree, threads};
///
/// let ends = threads::all(4, |team| {
///     let what = if team.rank() == 2 { "nc_def_dim(x, 7)" } else { "nc_def_dim(x, 5)" };
///     let mine = Mine { what, hash: if team.rank() == 2 { 7 } else { 5 }, status: 0 };
///     agree(team, Step { call: "nc_enddef", file: "x.nc" }, &mine)
/// });
/// let differing = ends[3].clone()?.differing.unwrap();
/// assert_eq!(differing.first, (0, "nc_def_dim(x, 5)".to_owned()));
/// assert_eq!(differing.other, (2, "nc_def_dim(x, 7)".to_owned()));
/// # Ok::<(), zonda_team::TeamError>(())
/// ```
///
/// # Errors
/// See [`TeamError`].
pub fn agree(team: &dyn Team, step: Step<'_>, mine: &Mine<'_>) -> Result<Agreed, TeamError> {
    agree_and_reduce(team, step, (mine.hash, mine.status), &mut [], || mine.what.to_owned())
}

/// As [`agree`]; the same reduction makes each of `more` the greatest of all ranks. All ranks give as many, whatever else differs. A rank brings
/// its hash and its status; what it does is asked only where the hashes differ.
///
/// # Errors
/// See [`TeamError`].
pub fn agree_and_reduce(
    team: &dyn Team,
    step: Step<'_>,
    (hash, status): (u128, u64),
    more: &mut [u64],
    what: impl FnOnce() -> String,
) -> Result<Agreed, TeamError> {
    let [high, low] = [(hash >> 64) as u64, hash as u64];
    // The greatest of what is not in a number says what the least number is: one reduction gives both.
    let mut numbers = vec![status, high, low, !high, !low];
    numbers.extend_from_slice(more);
    team.reduce(step, Reduction::Max, &mut numbers)?;
    let Some((&[status, most_high, most_low, least_high, least_low], greatest)) =
        numbers.split_first_chunk()
    else {
        unreachable!("there are five numbers at least")
    };
    more.copy_from_slice(greatest);
    let differing = match (most_high, most_low) == (!least_high, !least_low) {
        true => None,
        false => Some(who_differs(team, step, hash, &what())?),
    };
    Ok(Agreed { status, differing })
}

/// Finds two ranks that differ. All ranks know already that there are some.
fn who_differs(
    team: &dyn Team,
    step: Step<'_>,
    hash: u128,
    what: &str,
) -> Result<Differing, TeamError> {
    let mut bytes = hash.to_le_bytes().to_vec();
    bytes.extend_from_slice(beginning(what).as_bytes());
    let calls = team.gather(step, 0, &bytes)?;
    let mut found = Vec::new();
    if let Some(first) = calls.first() {
        let is_other = |call: &&Vec<u8>| hash_of(call) != hash_of(first);
        let other = calls.iter().position(|call| is_other(&call)).unwrap_or_default();
        found = encode(&calls, other);
    }
    team.broadcast(step, 0, &mut found)?;
    decode(&found).ok_or_else(|| TeamError::Failed {
        call: step.call.into(),
        file: step.file.into(),
        what: "ranks differ, and what rank 0 says of how they do is damaged".into(),
    })
}

/// As much of a description as is told.
fn beginning(what: &str) -> &str {
    let most = what.floor_char_boundary(tuning::MOST_DESCRIPTION_BYTES);
    &what[..most]
}

fn hash_of(call: &[u8]) -> Option<&[u8; 16]> {
    call.first_chunk()
}

/// The number of the other rank, the length of what rank 0 does, that, and what the other one does.
fn encode(calls: &[Vec<u8>], other: usize) -> Vec<u8> {
    let text = |rank: usize| calls[rank].get(16..).unwrap_or_default();
    let numbers = [other as u64, text(0).len() as u64];
    let mut bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    bytes.extend_from_slice(text(0));
    bytes.extend_from_slice(text(other));
    bytes
}

fn decode(bytes: &[u8]) -> Option<Differing> {
    let (other, rest) = bytes.split_first_chunk()?;
    let (len, rest) = rest.split_first_chunk()?;
    let number = |bytes: &[u8; 8]| usize::try_from(u64::from_le_bytes(*bytes)).ok();
    let (first_text, other_text) = rest.split_at_checked(number(len)?)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some(Differing { first: (0, text(first_text)), other: (number(other)?, text(other_text)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Alone;

    const STEP: Step<'static> = Step { call: "nc_enddef", file: "x.nc" };

    #[test]
    fn one_alone_agrees() {
        let mine = Mine { what: "", hash: u128::MAX / 3, status: 9 };
        assert_eq!(agree(&Alone, STEP, &mine), Ok(Agreed { status: 9, differing: None }));
    }

    #[test]
    fn long_descriptions_end_at_a_character() {
        let long = "ä".repeat(1000);
        assert_eq!(beginning(&long).len(), 1024);
        let odd = format!("a{long}");
        assert_eq!(beginning(&odd).len(), 1023);
        assert_eq!(beginning("short"), "short");
    }

    #[test]
    fn damaged_answers_are_refused() {
        let calls = [b"0123456789abcdefone".to_vec(), b"x123456789abcdeftwo".to_vec()];
        let bytes = encode(&calls, 1);
        let expected = Differing { first: (0, "one".into()), other: (1, "two".into()) };
        assert_eq!(decode(&bytes), Some(expected));
        for len in 0..19 {
            assert_eq!(decode(&bytes[..len]), None);
        }
    }
}
