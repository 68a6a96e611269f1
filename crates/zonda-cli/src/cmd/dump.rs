//! `zonda dump`: CDL of a file, byte for byte as `ncdump` writes it.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ArgAction;

use crate::cdl::times::TimeStyle;
use crate::cdl::values::{Digits, Precision};
use crate::cdl::{self, CdlOptions, DataSelection, IndexOrder, names};
use crate::failure::Result;
use crate::input;

/// Shortest line that `-l` accepts.
const LEAST_LINE: usize = 10;
/// Most digits that `-p` accepts.
const MOST_DIGITS: usize = 20;

/// Writes a file as CDL text, as ncdump does
///
/// Options and output are those of ncdump 4.9.0. Data is read and written in blocks: memory does not
/// grow with the file.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, args_override_self = true)]
pub(crate) struct Args {
    /// The header only, no data
    #[arg(short = 'h')]
    header: bool,

    /// The header, and data of coordinate variables
    #[arg(short = 'c')]
    coordinates: bool,

    /// Data of these variables only; in groups by path, such as /ocean/temp
    #[arg(short = 'v', value_name = "VAR,...", value_parser = clap::value_parser!(OsString))]
    variables: Option<OsString>,

    /// A comment before each row of data with its indices, as in C or Fortran
    #[arg(short = 'b', value_name = "c|f", value_parser = order)]
    brief: Option<IndexOrder>,

    /// A comment after each value with its indices, as in C or Fortran
    #[arg(short = 'f', value_name = "c|f", value_parser = order)]
    full: Option<IndexOrder>,

    /// Longest line of the data section
    #[arg(short = 'l', value_name = "BYTES", default_value = "80", value_parser = line_len)]
    line_len: usize,

    /// Name of the dataset in the first line; by default the file's, without its extension
    #[arg(short = 'n', value_name = "NAME")]
    name: Option<OsString>,

    /// Significant digits of float and double values; goes before C_format attributes
    #[arg(short = 'p', value_name = "FLOAT[,DOUBLE]", value_parser = precision)]
    precision: Option<Precision>,

    /// Data of these groups only, by name or by path
    #[arg(short = 'g', value_name = "GROUP,...", value_parser = clap::value_parser!(OsString))]
    groups: Option<OsString>,

    /// Numbers whose units are those of time as dates
    #[arg(short = 't', overrides_with = "iso_times")]
    times: bool,

    /// As -t, with a T between date and time
    #[arg(short = 'i')]
    iso_times: bool,

    /// Only the kind of file: classic, 64-bit offset, cdf5, netCDF-4 or netCDF-4 classic model
    #[arg(short = 'k')]
    kind: bool,

    /// Also virtual attributes, such as _Format, _Storage, _ChunkSizes and _DeflateLevel
    #[arg(short = 's')]
    special: bool,

    /// With -s, one _Filter for all filters instead of _Shuffle, _DeflateLevel and _Fletcher32
    #[arg(short = 'F')]
    filters: bool,

    /// Prints help
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,

    /// The file; `-` for standard input
    file: PathBuf,
}

/// Reads the order of indices. Only the first letter counts, in either case, as in `ncdump`.
fn order(text: &str) -> std::result::Result<IndexOrder, String> {
    match text.as_bytes().first().map(u8::to_ascii_lowercase) {
        Some(b'c') => Ok(IndexOrder::C),
        Some(b'f') => Ok(IndexOrder::Fortran),
        _ => Err("expected c or f".to_owned()),
    }
}

fn line_len(text: &str) -> std::result::Result<usize, String> {
    match text.parse() {
        Ok(len) if len >= LEAST_LINE => Ok(len),
        _ => Err(format!("expected a number of at least {LEAST_LINE}")),
    }
}

fn precision(text: &str) -> std::result::Result<Precision, String> {
    let digits = |text: &str| match text.parse() {
        Ok(number) if (1..=MOST_DIGITS).contains(&number) => Ok(Digits { number, forced: true }),
        _ => Err(format!("1 to {MOST_DIGITS} digits are possible")),
    };
    let (float, double) = match text.split_once(',') {
        Some((float, double)) => (float, Some(double)),
        None => (text, None),
    };
    let double = double.map_or(Ok(Precision::default().double), digits)?;
    Ok(Precision { float: digits(float)?, double })
}

pub(crate) fn execute(args: &Args, out: &mut dyn Write) -> Result<ExitCode> {
    zonda::report_gaps(crate::failure::warn);
    let file = input::open(&args.file)?;
    for (option, than) in args.without_effect() {
        eprintln!("zonda: {option} has no effect {than}");
    }
    if args.kind {
        writeln!(out, "{}", file.format().kind())?;
        return crate::done();
    }
    cdl::write(out, &file, &args.options()).map_err(|failure| failure.within(file.path()))?;
    file.close()?;
    crate::done()
}

impl Args {
    /// Options that have no effect, each with the option that makes it so.
    fn without_effect(&self) -> Vec<(&'static str, &'static str)> {
        let of_data = [
            ("-v", self.variables.is_some()),
            ("-g", self.groups.is_some()),
            ("-b", self.brief.is_some()),
            ("-f", self.full.is_some()),
            ("-c", self.coordinates),
        ];
        let of_text = [
            ("-h", self.header),
            ("-s", self.special),
            ("-n", self.name.is_some()),
            ("-t", self.times),
            ("-i", self.iso_times),
            ("-p", self.precision.is_some()),
        ];
        let given = |of: &[(&'static str, bool)]| -> Vec<&'static str> {
            of.iter().filter(|(_, is_given)| *is_given).map(|(option, _)| *option).collect()
        };
        let mut without: Vec<(&str, &str)> = Vec::new();
        if self.kind {
            let both = [&of_text[..], &of_data].concat();
            without.extend(given(&both).into_iter().map(|option| (option, "beside -k")));
        } else if self.header {
            without.extend(given(&of_data).into_iter().map(|option| (option, "beside -h")));
        }
        if self.filters && !self.special {
            without.push(("-F", "without -s"));
        }
        without
    }

    fn options(&self) -> CdlOptions {
        let name = match &self.name {
            Some(name) => name.as_bytes().to_vec(),
            None if input::is_stdin(&self.file) => b"stdin".to_vec(),
            None => names::of_path(input::label(&input::place(&self.file)).as_os_str().as_bytes()),
        };
        let separator = if self.iso_times { b'T' } else { b' ' };
        CdlOptions {
            name,
            selection: match (self.header, self.coordinates) {
                (true, _) => DataSelection::Header,
                (false, true) => DataSelection::Coordinates,
                (false, false) => DataSelection::Data,
            },
            variables: self.variables.as_deref().map_or(Vec::new(), names::list),
            groups: self.groups.as_deref().map_or(Vec::new(), names::list),
            brief: self.brief.is_some(),
            full: self.full.is_some(),
            order: self.full.or(self.brief).unwrap_or(IndexOrder::C),
            line_len: self.line_len,
            precision: self.precision.unwrap_or_default(),
            special: self.special,
            filters: self.filters,
            times: (self.times || self.iso_times).then_some(TimeStyle { separator }),
            exact: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_ncdump() {
        assert_eq!(order("C"), Ok(IndexOrder::C));
        assert_eq!(order("fortran"), Ok(IndexOrder::Fortran));
        assert!(order("x").is_err() && order("").is_err());
        assert_eq!(line_len("10"), Ok(10));
        assert!(line_len("9").is_err() && line_len("x").is_err());
        let forced = |number| Digits { number, forced: true };
        let double = Precision::default().double;
        assert_eq!(precision("3"), Ok(Precision { float: forced(3), double }));
        assert_eq!(precision("3,17"), Ok(Precision { float: forced(3), double: forced(17) }));
        assert!(precision("0").is_err() && precision("3,21").is_err() && precision(",3").is_err());
    }
}
