//! `zonda copy`: a dataset in another format, or stored in another way.

mod spec;

use std::borrow::Cow;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use zonda::copy::{
    ChunkRule, Copied, CopyMethod, CopyOptions, FilterRule, QuantizeRule, Unfinished, copy_dataset,
    follow_copy, kept_part,
};
use zonda::{Dataset, Format, NcError, OpenOptions};

use crate::failure::{CommandFailure, Result};
use crate::ranks::{Follower, Part};
use crate::similar::did_you_mean;
use crate::tuning::CHUNK_CACHE_SHARE;
use crate::{input, progress, ranks, similar};

/// Numbers of filters with an option of their own.
const DEFLATE: u32 = 1;
const SHUFFLE: u32 = 2;
const FLETCHER32: u32 = 3;
const ZSTD: u32 = 32015;
/// Why ranks do not divide the copy of what comes through a pipe.
const STDIN_OF_RANK_0: &str = "only rank 0 has standard input";
/// The least memory that `--memory` accepts, in bytes.
const LEAST_MEMORY: u64 = 4 << 20;

/// Copies a file into another format, other chunks or other filters
///
/// What is not asked to be otherwise stays as it is: kind of file, groups, types, attributes and
/// their order, fill values, chunks, filters, byte order, unlimited dimensions. Chunks that stay as
/// they are are copied without being decompressed, others are read and written by all cores, in
/// memory of a fixed size. The target gets its name when it is complete. A copy of a URL that
/// breaks off leaves the variables that are complete in TARGET.zonda-part, and --resume goes on with
/// them.
///
/// VAR is the name of a variable in any group, or a path (/ocean/temp); * and ? stand for any text
/// and any character.
///
/// Ranks that mpiexec starts divide the work: reading, decompressing and compressing. Rank 0 writes,
/// and the bytes are those of one process.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  zonda copy --format netcdf4 --deflate 4 --shuffle old.nc new.nc
  zonda copy --chunk time/1000,lat/20,lon/20 maps.nc series.nc
  zonda copy --filter 'T,S:shuffle|zstd,9' --quantize T,S:granular,3 model.nc small.nc
  zonda copy --var 'T*' --format classic model.nc t.nc
  zonda copy --group /ocean --fix-unlimited --format cdf5 model.nc ocean.nc
  mpiexec -n 64 zonda copy --deflate 4 model.nc small.nc
  zonda copy https://data.example.org/model.nc model.nc
  zonda copy --resume https://data.example.org/model.nc model.nc
  zonda copy https://data.example.org/model.nc s3://bucket/model.nc")]
pub(crate) struct Args {
    #[arg(short = 'k', long, value_name = "KIND", value_parser = spec::format,
        help = format!("Kind of the target: {}; by default that of the source", spec::kinds()))]
    format: Option<Format>,

    /// Elements of a chunk along dimensions, for all variables in chunks and those of at least 8 KiB,
    /// or for some; 0 for all there are
    #[arg(short = 'c', long = "chunk", value_name = "[VAR,...:]DIM/N,...", value_parser = spec::chunks)]
    chunks: Vec<Vec<ChunkRule>>,

    /// Variables that are stored in one run, without chunks and filters
    #[arg(long, value_name = "VAR,...")]
    contiguous: Vec<String>,

    /// Filters instead of those of the source: NAME or number and parameters, such as zstd,9; none
    #[arg(short = 'F', long = "filter", value_name = "[VAR,...:]FILTER|...", value_parser = spec::filters)]
    filters: Vec<FilterRule>,

    /// Deflates all variables, from 1 (fast) to 9 (small); 0 for no compression
    #[arg(short = 'd', long, value_name = "LEVEL", value_parser = clap::value_parser!(u32).range(0..=9))]
    deflate: Option<u32>,

    /// Compresses all variables with Zstandard
    #[arg(long, value_name = "LEVEL", conflicts_with = "deflate", allow_hyphen_values = true,
        value_parser = clap::value_parser!(i32).range(-131072..=22))]
    zstd: Option<i32>,

    /// Shuffles bytes before compression
    #[arg(short = 's', long)]
    shuffle: bool,

    /// Gives all chunks a checksum
    #[arg(long)]
    fletcher32: bool,

    /// Stores chunks as they are
    #[arg(long, conflicts_with_all = ["deflate", "zstd", "shuffle", "fletcher32"])]
    no_filters: bool,

    /// Gives up precision for better compression: bitgroom or granular with decimal digits, bitround
    /// with bits; by default of all float and double variables but coordinates
    #[arg(long, value_name = "[VAR,...:]MODE,N", value_parser = spec::quantize)]
    quantize: Vec<QuantizeRule>,

    /// Only these variables, with their coordinates
    #[arg(short = 'v', long = "var", value_name = "VAR,...")]
    vars: Vec<String>,

    /// Not these variables
    #[arg(short = 'x', long, value_name = "VAR,...")]
    exclude: Vec<String>,

    /// Only this group, which becomes the root of the target
    #[arg(short = 'g', long, value_name = "PATH")]
    group: Option<String>,

    /// Unlimited dimensions get the length that they have
    #[arg(short = 'u', long)]
    fix_unlimited: bool,

    /// Memory for data
    #[arg(short = 'm', long, value_name = "BYTES", default_value = "256M", value_parser = spec::bytes)]
    memory: u64,

    /// Replaces a target that exists
    #[arg(short = 'f', long)]
    force: bool,

    /// Goes on where an earlier copy of the same source to the same target broke off: variables that
    /// are complete in TARGET.zonda-part are not copied again
    #[arg(long)]
    resume: bool,

    /// For machines: what was done, as JSON
    #[arg(long)]
    json: bool,

    /// Shows no progress; warnings of what the copy lacks stay
    #[arg(short = 'q', long)]
    quiet: bool,

    /// The file to be copied, or its URL; `-` for standard input
    source: PathBuf,

    /// The copy: a path, or s3://BUCKET/KEY, to which the copy is sent when it is complete
    target: PathBuf,
}

impl Args {
    fn options(&self) -> CopyOptions {
        let all = |lists: &[String]| lists.iter().flat_map(|list| spec::patterns(list)).collect();
        let mut filters = Vec::new();
        let mut of_all = Vec::new();
        if self.fletcher32 {
            of_all.push(spec::builtin(FLETCHER32, Vec::new()));
        }
        if self.shuffle {
            of_all.push(spec::builtin(SHUFFLE, Vec::new()));
        }
        if let Some(level) = self.deflate.filter(|&level| level > 0) {
            of_all.push(spec::builtin(DEFLATE, vec![level]));
        }
        if let Some(level) = self.zstd {
            of_all.push(spec::builtin(ZSTD, vec![level.cast_unsigned()]));
        }
        if !of_all.is_empty() || self.no_filters || self.deflate == Some(0) {
            filters.push(FilterRule { vars: Vec::new(), filters: of_all });
        }
        // Options for some variables take precedence over those for all.
        filters.extend(self.filters.iter().cloned());
        CopyOptions {
            format: self.format,
            group: self.group.as_ref().map(|path| path.as_bytes().to_vec()),
            vars: all(&self.vars),
            exclude: all(&self.exclude),
            chunks: self.chunks.iter().flatten().cloned().collect(),
            contiguous: all(&self.contiguous),
            filters,
            quantize: self.quantize.clone(),
            fix_unlimited: self.fix_unlimited,
            memory_bytes: self.memory.max(LEAST_MEMORY),
            replace: self.force,
            salvage: false,
            lead: None,
            unfinished: match () {
                () if self.resume => Unfinished::Completed,
                // What came over a network took its time.
                () if zonda::is_url(&self.source) => Unfinished::Kept,
                () => Unfinished::Removed,
            },
        }
    }
}

pub(crate) fn execute(args: &Args, out: &mut dyn Write) -> Result<ExitCode> {
    if args.target.as_os_str() == "-" {
        let what =
            "the copy cannot go to standard output; give a path, or ./- for a file of that name";
        return Err(CommandFailure::Usage(format!("{what}; see --help")));
    }
    let mut options = args.options();
    let (target, asked) = match zonda::of_url(&args.target) {
        Some((target, format)) => (target, Some(format)),
        None => (args.target.clone(), None),
    };
    options.format = options.format.or(asked);
    zonda_runtime::memory::limit(options.memory_bytes / CHUNK_CACHE_SHARE);
    let refusal = match input::is_stdin(&args.source) {
        true => Some(STDIN_OF_RANK_0),
        false => input::undivided([args.source.as_path(), &args.target]),
    };
    match ranks::part("zonda copy", &args.target, refusal)? {
        Part::Alone => {}
        Part::Lead(lead) => options.lead = Some(lead),
        Part::Follow(follower) => {
            follow(&follower, &args.source, &target, &options)?;
            return crate::done();
        }
        Part::Nothing => return crate::done(),
    }
    if args.memory < LEAST_MEMORY {
        eprintln!(
            "zonda: -m {}: {} MiB are taken, which is the least",
            args.memory,
            LEAST_MEMORY >> 20
        );
    }
    let source = input::open(&args.source)?;
    input::warn_of_missing(&source, &args.source)?;
    let copied = progress::watched(args.quiet, |progress| {
        let copied = copy_dataset(&source, &target, &options, progress);
        // Here, since a signal ends the program behind this.
        if copied.is_err() && options.unfinished != Unfinished::Removed {
            tell_of_part(&target);
        }
        copied.map_err(|error| with_hint(error, &source, &options))
    })??;
    source.close()?;
    for note in &copied.notes {
        eprintln!("zonda: {}: {note}", input::label(&args.target).display());
    }
    if args.json {
        let summary = CopyJson::new(args, &copied);
        serde_json::to_writer(&mut *out, &summary).map_err(std::io::Error::from)?;
        writeln!(out)?;
    }
    crate::done()
}

/// To an error about a variable that is not there: the one that may be meant.
fn with_hint(error: zonda::Error, source: &Dataset, options: &CopyOptions) -> zonda::Error {
    if error.code() != NcError::NotVar {
        return error;
    }
    let of_storage = (options.filters.iter().flat_map(|rule| &rule.vars))
        .chain(options.chunks.iter().filter_map(|rule| rule.vars.as_ref()))
        .chain(options.quantize.iter().flat_map(|rule| &rule.vars))
        .chain(&options.contiguous);
    let asked = options.vars.iter().chain(&options.exclude).chain(of_storage);
    // What is wrong with the file is told by the error, and not by this.
    let paths = similar::variable_paths(source).unwrap_or_default();
    let text = error.cause();
    let hint = asked
        .filter(|pattern| pattern.is_name())
        .filter(|pattern| !paths.iter().any(|path| pattern.matches(path.as_bytes())))
        .map(|pattern| (String::from_utf8_lossy(pattern.text()), pattern.text().contains(&b'/')))
        // The one that the error is about.
        .find(|(name, _)| text.contains(&**name))
        .map_or_else(String::new, |(name, has_path)| {
            let own = |path: &'_ str| path.rsplit('/').next().unwrap_or(path).to_owned();
            let known: Vec<String> =
                paths.iter().map(|path| if has_path { path.clone() } else { own(path) }).collect();
            did_you_mean(&name, known.iter().map(String::as_str))
        });
    if hint.is_empty() { error } else { error.with_other_text(text + &hint) }
}

/// Says what is left of a copy that broke off, and what for.
fn tell_of_part(target: &Path) {
    if let Some(part) = kept_part(target) {
        eprintln!(
            "zonda: the variables that are complete are in {}: the same command with --resume copies the others",
            part.display()
        );
    }
}

/// The part of another rank than the first one.
fn follow(follower: &Follower, source: &Path, target: &Path, options: &CopyOptions) -> Result<()> {
    let followed = progress::following(|| {
        let source = Dataset::open(&input::place(source), &OpenOptions::default());
        let (team, step) = (&*follower.team, follower.step());
        follow_copy(team, step, source.as_ref(), target, options, None)
    })?;
    follower.ended(followed);
    Ok(())
}

/// The name of a file in the JSON.
fn shown(path: &Path) -> Cow<'_, str> {
    match zonda::shown_name(path) {
        Cow::Borrowed(path) => path.to_string_lossy(),
        Cow::Owned(url) => Cow::Owned(url.to_string_lossy().into_owned()),
    }
}

/// What was done, in the form of the JSON.
#[derive(Serialize)]
struct CopyJson<'a> {
    source: Cow<'a, str>,
    target: Cow<'a, str>,
    kind: &'static str,
    variables: Vec<CopiedVarJson<'a>>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct CopiedVarJson<'a> {
    path: &'a str,
    bytes: u64,
    way: &'static str,
    /// How many times a chunk of the source was decoded, on average.
    reads: f64,
}

impl<'a> CopyJson<'a> {
    fn new(args: &'a Args, copied: &'a Copied) -> CopyJson<'a> {
        let way = |way| match way {
            CopyMethod::Nothing => "nothing",
            CopyMethod::Before => "copied before",
            CopyMethod::Stored => "stored chunks",
            CopyMethod::Values => "values",
            CopyMethod::Spilled => "file in between",
        };
        let variables = copied.vars.iter().map(|var| {
            let (path, bytes, reads) = (&*var.path, var.bytes, var.reads);
            CopiedVarJson { path, bytes, way: way(var.way), reads: (reads * 100.0).round() / 100.0 }
        });
        CopyJson {
            source: shown(&args.source),
            target: shown(&args.target),
            kind: copied.format.kind(),
            variables: variables.collect(),
            notes: &copied.notes,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use zonda::copy::Pattern;

    use super::*;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    fn options(line: &str) -> CopyOptions {
        let words = ["copy"].into_iter().chain(line.split(' ')).chain(["a", "b"]);
        Cli::try_parse_from(words).unwrap().args.options()
    }

    #[test]
    fn filters_of_all_go_before_those_of_some() {
        let rules = options("-F x:none --shuffle -d 5 --fletcher32").filters;
        assert_eq!(rules.len(), 2);
        let ids: Vec<u32> = rules[0].filters.iter().map(|filter| filter.id).collect();
        assert_eq!(ids, [FLETCHER32, SHUFFLE, DEFLATE]);
        assert_eq!(rules[1].vars, [Pattern::new("x")]);
        assert_eq!(options("--deflate 0").filters[0].filters, []);
        assert_eq!(options("--no-filters").filters[0].filters, []);
        assert_eq!(options("-q").filters, []);
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        for line in ["-d 3 --zstd 3", "--no-filters -s", "-d 10", "-k hdf4", "-m 0", "-c x"] {
            let words = ["copy"].into_iter().chain(line.split(' ')).chain(["a", "b"]);
            assert!(Cli::try_parse_from(words).is_err(), "{line}");
        }
        assert_eq!(options("-m 1").memory_bytes, LEAST_MEMORY);
        assert_eq!(options("-v a,b -v c*").vars.len(), 3);
    }
}
