//! Communicators of MPI, as programs have them, as teams.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use zonda_model::{Answer, NcError};
use zonda_mpi::{Answer as MpiAnswer, MpiError, MpiTeam};
pub use zonda_mpi::{Communicator, MadeComm};
use zonda_parallel::{BadHint, Hints};
use zonda_runtime::setting;
use zonda_team::{Step, Team};

use crate::error::{Error, Result};

/// All ranks that a launcher has started, for a program that has no MPI of its own.
#[derive(Debug)]
pub struct World(zonda_mpi::World);

impl World {
    /// Loads the MPI of the launcher, whose file `launcher` is, and begins it (`MPI_Init_thread`), unless the process has one. All ranks call
    /// this. After that, MPI is called by the main thread only.
    ///
    /// # Errors
    /// `NC_ENOPAR` where no MPI can be loaded, `NC_EPARINIT` for one that is not known.
    pub fn begin(launcher: Option<&Path>) -> Result<World> {
        let begun = zonda_mpi::World::begin(launcher);
        Ok(World(begun.map_err(|error| of_mpi(&error))?))
    }

    /// How many ranks the MPI counts.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.size()
    }

    /// The team of all ranks, which all call this. What is done is `call`, on the file `file`; a rank says each `say_every` for whom it waits.
    ///
    /// # Errors
    /// Those of [`team`].
    pub fn team(&self, call: &str, file: &str, say_every: Duration) -> Result<Arc<dyn Team>> {
        let team = self.0.team(Step { call, file }, say_every);
        Ok(Arc::new(team.map_err(|error| of_mpi(&error))?))
    }

    /// Ends MPI (`MPI_Finalize`). All ranks call this, and wait for each other.
    pub fn end(self) {
        self.0.end();
    }

    /// Ends all ranks (`MPI_Abort`), where some would wait for ever.
    pub fn abort(self, status: u8) {
        self.0.abort(status);
    }
}

/// The ranks of a communicator, which all call this. What is done is `call`, on the file `file`.
///
/// The MPI is the one that the process has loaded; none is linked.
///
/// # Errors
/// `NC_ENOPAR` without MPI, `NC_EPARINIT` where MPI cannot be called or the communicator is of no use, `NC_EMPI` where MPI fails.
pub fn team(communicator: Communicator, call: &str, file: &str) -> Result<Arc<dyn Team>> {
    let step = Step { call, file };
    let team = match communicator {
        Communicator::C(handle) => MpiTeam::new(step, handle),
        Communicator::Fortran(handle) => MpiTeam::from_fortran(step, handle),
    };
    Ok(Arc::new(team.map_err(|error| of_mpi(&error))?))
}

/// What a function answers for an error of MPI.
#[must_use]
pub fn of_mpi(error: &MpiError) -> Error {
    let code = match error.answer() {
        MpiAnswer::NotParallel => NcError::NoPar,
        MpiAnswer::NotBegun => NcError::ParInit,
        MpiAnswer::MpiFailed => NcError::Mpi,
    };
    Error::answered(code, Answer::Request, error.to_string())
}

/// The key of an Info that says what is done about attributes with other values than on rank 0.
const ATTRIBUTES: &str = "zonda_attributes";
/// The key of an Info that lets a rank put alone to variables whose chunks go through filters.
const INDEPENDENT_FILTERS: &str = "zonda_independent_filters";
/// The keys of an Info that are Zonda's own.
const OWN_KEYS: [&str; 2] = [ATTRIBUTES, INDEPENDENT_FILTERS];
/// The variable of the environment that has hints for all files, as PnetCDF has it.
const HINTS: &str = "PNETCDF_HINTS";

/// What a program, or its user, asks of a file of several ranks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    /// For [`CreateOptions::equal_attributes`](crate::CreateOptions::equal_attributes).
    pub equal_attributes: bool,
    /// For [`CreateOptions::independent_filters`](crate::CreateOptions::independent_filters).
    pub independent_filters: bool,
    /// For [`CreateOptions::hints`](crate::CreateOptions::hints).
    pub hints: Hints,
}

/// What an Info says, as the word that a C program has, and where it says nothing the variable `PNETCDF_HINTS`.
///
/// Rank 0 warns of values that a key cannot have, and of other keys that are meant for Zonda; keys of others are for others.
pub fn asked(team: &dyn Team, info: usize) -> Asked {
    let mut asked = Asked::default();
    let mut bad = asked.hints.set_all(&setting::text(HINTS).unwrap_or_default());
    let value = |key: &str| zonda_mpi::info_value(info, key).ok().flatten();
    for key in Hints::KEYS {
        bad.extend(value(key).and_then(|value| asked.hints.set(key, &value).err()));
    }
    let mut is_wanted = |key: &'static str, words: &[&str]| {
        let Some(said) = value(key).map(|said| said.trim().to_owned()) else { return false };
        if !words.contains(&said.as_str()) {
            bad.push(BadHint { key, wanted: words.join(" or "), value: said.clone() });
        }
        words.first().is_some_and(|word| *word == said)
    };
    asked.equal_attributes = is_wanted(ATTRIBUTES, &["equal"]);
    asked.independent_filters = is_wanted(INDEPENDENT_FILTERS, &["true", "false"]);
    if team.rank() == 0 {
        warn(&bad, &zonda_mpi::info_keys(info).unwrap_or_default());
    }
    asked
}

fn warn(bad: &[BadHint], keys: &[String]) {
    for BadHint { key, value, wanted } in bad {
        let value = printable(value);
        setting::say_once(format!("the hint {key}={value} has no effect: it wants {wanted}"));
    }
    let is_known = |key: &str| !key.starts_with("zonda_") || OWN_KEYS.contains(&key);
    for key in keys.iter().filter(|key| !is_known(key)) {
        let key = printable(key);
        setting::say_once(format!(
            "the MPI_Info key {key} is unknown and has no effect; there are {}",
            OWN_KEYS.join(" and ")
        ));
    }
}

/// The most characters of a key or value that a line shows.
const MOST_SHOWN: usize = 80;

/// What a program or its user said, for a line: characters that a terminal or a reader of lines takes for something else are shown as escapes.
fn printable(said: &str) -> String {
    let mut shown: String = said
        .chars()
        .take(MOST_SHOWN)
        .flat_map(|one| {
            let is_control = one.is_control();
            let escaped = one.escape_default().filter(move |_| is_control);
            escaped.chain(std::iter::once(one).filter(move |_| !is_control))
        })
        .collect();
    if said.chars().nth(MOST_SHOWN).is_some() {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_stays_on_its_line() {
        assert_eq!(printable("8 k\u{fc}"), "8 k\u{fc}");
        assert_eq!(printable("\u{1b}[31m8\nzonda: no"), "\\u{1b}[31m8\\nzonda: no");
        assert_eq!(printable(&"9".repeat(1000)), format!("{}...", "9".repeat(80)));
    }

    #[test]
    fn without_mpi_there_is_no_team() {
        for communicator in [Communicator::C(1), Communicator::Fortran(0)] {
            let error = team(communicator, "nc_open_par", "x.nc").unwrap_err();
            assert_eq!(error.code(), NcError::NoPar);
            assert!(error.to_string().contains("no MPI is loaded"), "{error}");
        }
    }
}
