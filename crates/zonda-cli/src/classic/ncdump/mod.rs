//! `ncdump`: a file as CDL or, its header, as NcML.
//!
//! Options, output, messages and exit statuses are those of `ncdump` 4.9.0. The text itself is that
//! of `zonda dump` ([`crate::cdl`]). Where a message of the reference ends with a line number of
//! its source, this one says what went wrong.

mod options;

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use zonda::{Dataset, Format, OpenOptions, Persist};

use crate::cdl::select::{find_groups, missing_variable};
use crate::cdl::{self, DataSelection};
use crate::classic::text_of;
use crate::failure::CommandFailure;
use crate::tuning::OUTPUT_BUFFER_BYTES;
use crate::{input, ncml};
use options::{NcdumpOptions, NcdumpOutput};

/// Why the output is missing or ends early.
#[derive(Debug, PartialEq, Eq)]
enum NcdumpRefusal {
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
    fn text(text: impl Into<String>) -> NcdumpRefusal {
        NcdumpRefusal::Text(text.into())
    }

    /// The refusal for a name that no object has.
    fn none(what: &str, name: &[u8]) -> NcdumpRefusal {
        NcdumpRefusal::Text(format!("{}: No such {what}", String::from_utf8_lossy(name)))
    }

    /// Adds the path of the file to a refusal that lacks it.
    fn within(self, path: &Path) -> NcdumpRefusal {
        let path = path.display().to_string();
        match self {
            NcdumpRefusal::Broken(code, about) if !about.starts_with(&path) => {
                NcdumpRefusal::Broken(code, format!("{path}: {about}"))
            }
            other => other,
        }
    }

    /// Prints the message on standard error and returns the exit status.
    fn report(&self, program: impl Display) -> ExitCode {
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

/// Runs `ncdump`; exit status 0 for a dump, else 1.
pub(super) fn run(args: &[OsString]) -> ExitCode {
    let (program, args) = match args.split_first() {
        Some((program, args)) => (program.to_string_lossy(), args),
        None => ("ncdump".into(), args),
    };
    zonda::report_gaps(|what| eprintln!("ncdump: {what}"));
    let mut out = BufWriter::with_capacity(OUTPUT_BUFFER_BYTES, io::stdout().lock());
    let done = NcdumpOptions::read(args).and_then(|options| dump(&options, &mut out));
    // What was written before a failure is correct, so it is written out, too.
    let flushed = crate::ended(&mut out).map_err(NcdumpRefusal::from);
    match done.and(flushed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(refusal) => refusal.report(program),
    }
}

fn dump(options: &NcdumpOptions, out: &mut dyn Write) -> Result<(), NcdumpRefusal> {
    let in_memory = options.in_memory.then_some(Persist::No);
    let open = OpenOptions { in_memory, ..OpenOptions::default() };
    let file = Dataset::open(&input::place(&options.file), &open).map_err(|error| {
        let message = format!("{}: {}", options.file.display(), text_of(error.code()));
        match error.code() {
            // Error codes do not say how many bytes were missing.
            zonda::NcError::NoMem => {
                NcdumpRefusal::Text(format!("{message}\nLocation: {}", error.line()))
            }
            _ => NcdumpRefusal::Text(message),
        }
    })?;
    match options.output {
        NcdumpOutput::Kind => writeln!(out, "{}", file.format().kind())?,
        NcdumpOutput::ExtendedKind => writeln!(out, "{}", extended_kind(file.format()))?,
        NcdumpOutput::Text { ncml } => {
            write(options, ncml, &file, out).map_err(|refusal| refusal.within(&options.file))?;
        }
    }
    Ok(file.close()?)
}

/// Writes CDL or NcML, after checking that all objects exist that the options name.
fn write(
    options: &NcdumpOptions,
    as_ncml: bool,
    file: &Dataset,
    out: &mut dyn Write,
) -> Result<(), NcdumpRefusal> {
    let text = &options.text;
    if let Some(name) = missing_variable(file, &text.variables)? {
        return Err(NcdumpRefusal::none("variable", name));
    }
    if !text.groups.is_empty() {
        if file.format() != Format::NetCdf4 {
            return Err(NcdumpRefusal::Silent);
        }
        if let Err(name) = find_groups(file, &text.groups)? {
            return Err(NcdumpRefusal::none("group", name));
        }
    }
    if !as_ncml {
        return Ok(cdl::write(out, file, text)?);
    }
    if file.format() == Format::NetCdf4 {
        let text = "NcML output (-x) currently only permitted for netCDF classic model";
        return Err(NcdumpRefusal::text(text));
    }
    Ok(ncml::write(
        out,
        file,
        &ncml::NcmlOptions {
            location: options.file.as_os_str().as_bytes().to_vec(),
            has_data: text.selection != DataSelection::Header,
            coordinates_only: options.coordinates,
            variables: text.variables.clone(),
            precision: text.precision,
        },
    )?)
}

/// The format and the mode flags that stand for it in `netcdf.h`.
fn extended_kind(format: Format) -> String {
    let (name, mode) = match format {
        Format::Cdf1 => ("classic", 0),
        Format::Cdf2 => ("64-bit offset", 0x200),
        Format::Cdf5 => ("64-bit data", 0x20),
        Format::NetCdf4 | Format::NetCdf4Classic => ("HDF5", 0x1000),
        Format::Other(other) => (other.name, 0),
    };
    format!("{name} mode={mode:08x}")
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
