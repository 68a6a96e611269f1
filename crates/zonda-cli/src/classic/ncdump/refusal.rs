//! Why `ncdump` writes nothing or stops early, and its usage.

use std::fmt::Display;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use crate::classic::text_of;
use crate::failure::CommandFailure;

/// Why the output is missing or ends early.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NcdumpRefusal {
    /// The call is wrong: an optional complaint, followed by the usage.
    Usage(Option<String>),
    /// The call has no arguments: only the usage is printed.
    Asked,
    /// A message.
    Text(String),
    /// An error of the library: the text of its code, and the object that it concerns.
    Broken(String, String),
    /// No message.
    Silent,
    /// The reader of standard output went away.
    ReaderGone,
}

impl NcdumpRefusal {
    pub(super) fn text(text: impl Into<String>) -> NcdumpRefusal {
        NcdumpRefusal::Text(text.into())
    }

    /// The refusal for a name that no object has.
    pub(super) fn none(what: &str, name: &[u8]) -> NcdumpRefusal {
        NcdumpRefusal::Text(format!("{}: No such {what}", String::from_utf8_lossy(name)))
    }

    /// Adds the path of the file to a refusal that lacks it.
    pub(super) fn within(self, path: &Path) -> NcdumpRefusal {
        let path = path.display().to_string();
        match self {
            NcdumpRefusal::Broken(code, about) if !about.starts_with(&path) => {
                NcdumpRefusal::Broken(code, format!("{path}: {about}"))
            }
            other => other,
        }
    }

    /// Prints the message on standard error and returns the exit status.
    pub(super) fn report(&self, program: impl Display) -> ExitCode {
        match self {
            NcdumpRefusal::Usage(complaint) => {
                if let Some(complaint) = complaint {
                    eprintln!("{program}: {complaint}");
                }
                usage(program);
            }
            NcdumpRefusal::Asked => {
                usage(program);
                return ExitCode::SUCCESS;
            }
            NcdumpRefusal::Text(text) => eprintln!("{program}: {text}"),
            NcdumpRefusal::Broken(code, about) => eprintln!("{code}\nLocation: {about}"),
            NcdumpRefusal::Silent => {}
            NcdumpRefusal::ReaderGone => return ExitCode::SUCCESS,
        }
        ExitCode::FAILURE
    }
}

impl From<zonda::Error> for NcdumpRefusal {
    fn from(error: zonda::Error) -> NcdumpRefusal {
        NcdumpRefusal::Broken(text_of(error.code()), error.line())
    }
}

impl From<CommandFailure> for NcdumpRefusal {
    fn from(failure: CommandFailure) -> NcdumpRefusal {
        match failure {
            CommandFailure::Library(error) => error.into(),
            CommandFailure::ReaderGone => NcdumpRefusal::ReaderGone,
            other => NcdumpRefusal::Text(other.into_text()),
        }
    }
}

impl From<io::Error> for NcdumpRefusal {
    fn from(error: io::Error) -> NcdumpRefusal {
        CommandFailure::from(error).into()
    }
}

/// Prints the usage on standard error.
fn usage(program: impl Display) {
    eprint!("{program} {USAGE}");
    eprintln!("netcdf library version 4.9.0 of Zonda {} $", env!("CARGO_PKG_VERSION"));
}

/// The usage, which is printed after a wrong call.
const USAGE: &str = "\
[-c|-h] [-v var,...] [-g grp,...] [-b|-f c|f] [-l n] [-n name] [-p n[,n]] [-k|-K] [-x] \
[-s [-F]] [-t|-i] [-w] [-Xm|-Xp] [-Ln] file
  [-h]           the header only, no data
  [-c]           the header, and data of coordinate variables
  [-v var,...]   data of these variables only; in groups by path
  [-g grp,...]   data of these groups only
  [-b c|f]       a comment before each row with its indices, as in C or Fortran
  [-f c|f]       a comment after each value with its indices, as in C or Fortran
  [-l n]         longest line of the data section (80)
  [-n name]      name of the dataset, by default that of the file without extension
  [-p n[,n]]     significant digits of float (7) and double (15) values, before C_format
  [-k]           only the kind of file
  [-K]           only the kind of file and the mode it is opened in
  [-x]           NcML instead of CDL
  [-s]           also special (virtual) attributes
  [-F]           with -s, _Filter for all filters instead of _Fletcher32, _Shuffle and _DeflateLevel
  [-t]           times as dates
  [-i]           times as dates, with a T before the time of day
  [-w]           accepted, for data of a DAP server
  [-Xm]          reads the file into memory at once
  [-Xp]          accepted, about the attribute _NCProperties
  [-Ln]          accepted, a level of logging
  file           the netCDF file
";
