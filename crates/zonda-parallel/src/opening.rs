//! Do all ranks open a file in the same way?

use zonda_format::{Error, Result};
use zonda_model::{Answer, NcError};
use zonda_team::{Mine, Step, Team, agree};

use crate::file::{different_calls, hash_of, of_team};

/// All ranks open a file in the same way: `how` has all that has to be the same, by names that have no spaces, in the same order.
///
/// # Errors
/// `NC_EMPI`, which says what two ranks ask for that do not ask for the same.
pub fn same_opening(team: &dyn Team, step: Step<'_>, how: &[(&str, String)]) -> Result<()> {
    let mut what = step.call.to_owned();
    how.iter().for_each(|(name, value)| what.push_str(&format!("\n{name} {value}")));
    let mine = Mine { what: &what, hash: hash_of(step.call, what.as_bytes()), status: 0 };
    let agreed = agree(team, step, &mine).map_err(|error| of_team(&error))?;
    match agreed.differing {
        None => Ok(()),
        Some(found) => Err(different_openings(&found.first.1, found.other.0, &found.other.1)),
    }
}

/// The error of two ranks of which each has its call and, in lines, how it opens the file.
fn different_openings(first: &str, rank: usize, other: &str) -> Error {
    let (mut own, mut its) = (first.lines(), other.lines());
    let (call, other_call) = (own.next().unwrap_or_default(), its.next().unwrap_or_default());
    if call != other_call {
        return different_calls(call, rank, other_call);
    }
    let differ = |(own, its): (&str, &str)| {
        let (name, value) = own.split_once(' ').filter(|_| own != its)?;
        let (_, other) = its.split_once(' ')?;
        Some(format!("{name} {value} on rank 0 and {other} on rank {rank}"))
    };
    let found: Vec<String> = own.zip(its).filter_map(differ).collect();
    let text = format!(
        "ranks call {call} with different arguments: {}; all ranks have to pass the same ones",
        found.join(", ")
    );
    Error::answered(NcError::Mpi, Answer::Request, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_told() {
        let text = |first, other| different_openings(first, 3, other).to_string();
        assert_eq!(
            text(
                "nc_create_par\nformat netCDF-4\nNC_NOCLOBBER no\nalignment none",
                "nc_create_par\nformat cdf5\nNC_NOCLOBBER no\nalignment (1, 2)",
            ),
            "ranks call nc_create_par with different arguments: format netCDF-4 on rank 0 and cdf5 on rank 3, alignment none on rank 0 and \
             (1, 2) on rank 3; all ranks have to pass the same ones"
        );
        assert!(
            text("nc_create_par\nformat cdf5", "nc_open_par\nNC_WRITE no")
                .contains("ranks make different calls: rank 0 nc_create_par, rank 3 nc_open_par;")
        );
    }
}
