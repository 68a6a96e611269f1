//! `nccopy`: a copy of a file in another format, with other chunks or filters, or of a part of it.
//!
//! Options, the choices that follow from them, and exit statuses are those of `nccopy` 4.9.0; the copy
//! itself is that of `zonda copy`: chunks that stay as they are are not decompressed, others go by
//! all cores in bounded memory, and the target gets its name when it is complete.

mod chunks;
mod filters;
mod options;
mod rules;
mod select;
mod tree;

use std::ffi::OsString;
use std::fmt::Display;
use std::process::ExitCode;

use zonda::copy::{CopyOptions, copy_by_rules};
use zonda::{Dataset, Format, NcError, OpenOptions, Persist};

use crate::classic::text_of;
use crate::failure::CommandFailure;
use crate::tuning::{CHUNK_CACHE_SHARE, NCCOPY_LEAST_MEMORY_BYTES, NCCOPY_MEMORY_BYTES};
use crate::{input, progress};
use options::NccopyOptions;
use rules::NcCopy;

/// Why no copy was made.
#[derive(Debug)]
enum NccopyRefusal {
    /// The call is wrong: an optional complaint, followed by the usage.
    Usage(Option<String>),
    /// A message.
    Text(String),
    /// An error of the library, and the object that it concerns.
    Code(NcError, String),
}

impl NccopyRefusal {
    fn text(text: impl Into<String>) -> NccopyRefusal {
        NccopyRefusal::Text(text.into())
    }

    fn code(code: NcError, about: impl Display) -> NccopyRefusal {
        NccopyRefusal::Code(code, about.to_string())
    }

    /// Prints the message on standard error as the reference does. Where that has a line number of
    /// its source, this has what went wrong.
    fn report(&self, program: &str) {
        match self {
            NccopyRefusal::Usage(complaint) => {
                if let Some(complaint) = complaint {
                    eprintln!("{program}: {complaint}");
                }
                let version = env!("CARGO_PKG_VERSION");
                eprintln!("{program}: {program} {USAGE}");
                eprintln!("netCDF library version 4.9.0 of Zonda {version} $");
            }
            NccopyRefusal::Text(text) => eprintln!("{program}: {text}"),
            NccopyRefusal::Code(code, about) => eprintln!("{}\nLocation: {about}", text_of(*code)),
        }
    }
}

impl From<zonda::Error> for NccopyRefusal {
    fn from(error: zonda::Error) -> NccopyRefusal {
        NccopyRefusal::code(error.code(), error.line())
    }
}

impl From<CommandFailure> for NccopyRefusal {
    fn from(failure: CommandFailure) -> NccopyRefusal {
        NccopyRefusal::text(failure.into_text())
    }
}

/// Runs `nccopy`; exit status 0 for a copy, else 1.
pub(super) fn run(args: &[OsString]) -> ExitCode {
    let (program, args) = match args.split_first() {
        Some((program, args)) => (program.to_string_lossy(), args),
        None => ("nccopy".into(), args),
    };
    match NccopyOptions::read(args).and_then(|options| copy(&options, &program)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(refusal) => {
            refusal.report(&program);
            ExitCode::FAILURE
        }
    }
}

fn copy(options: &NccopyOptions, program: &str) -> Result<(), NccopyRefusal> {
    let memory_bytes =
        options.buffer_bytes.map_or(NCCOPY_MEMORY_BYTES, |n| n.max(NCCOPY_LEAST_MEMORY_BYTES));
    zonda_runtime::memory::limit(memory_bytes / CHUNK_CACHE_SHARE);
    let in_memory = options.read_whole.then_some(Persist::No);
    let open = OpenOptions { in_memory, ..OpenOptions::default() };
    let source = Dataset::open(&input::place(&options.source), &open)?;
    let kind = source.format();
    let tree = tree::groups(&source)?;
    let chunks = chunks::ChunkOptions::read(&options.chunks, &tree)?;
    if options.groups.is_some() && kind != Format::NetCdf4 {
        return Err(NccopyRefusal::text("Group list (-g ...) only permitted for netCDF-4 file"));
    }
    let (groups, vars) = (options.groups.as_ref(), options.vars.as_ref());
    let selection = select::CopySelection::find(&tree, groups, vars)?;
    let url = zonda::of_url(&options.target);
    let path = url.as_ref().map_or(&options.target, |(path, _)| path);
    let requested = options.kind.or(url.as_ref().map(|(_, format)| *format));
    let target = CopyOptions {
        format: Some(requested.unwrap_or_else(|| options.kind_for(kind))),
        fix_unlimited: options.fix_unlimited,
        memory_bytes,
        replace: true,
        ..CopyOptions::default()
    };
    let rules = NcCopy { options, selection, chunks };
    let copied = progress::watched(false, |progress| {
        copy_by_rules(&source, path, &target, &rules, progress)
    })??;
    for note in &copied.notes {
        eprintln!("{program}: {}: {note}", options.target.display());
    }
    Ok(source.close()?)
}

impl NccopyOptions {
    /// The kind of the target if no option gives one: that of the source, unless an option needs
    /// what classic files do not have.
    fn kind_for(&self, source: Format) -> Format {
        let deflates = self.deflate.is_some_and(|level| level > 0);
        if !source.is_hdf5() && (deflates || self.shuffle || !self.chunks.is_empty()) {
            return Format::NetCdf4Classic;
        }
        zonda::format_of_copy(source)
    }
}

/// The usage, which is printed after a wrong call.
const USAGE: &str = "\
[-k kind] [-[3|4|6|7]] [-d n] [-s] [-c chunkspec] [-u] [-w] [-[v|V] varlist] [-[g|G] grplist] \
[-m n] [-h n] [-e n] [-r] [-F filterspec] [-Mn] infile outfile
  [-k kind]      format of the copy, by default that of the source: 'classic', '64-bit offset',
                 'cdf5', 'netCDF-4' or 'netCDF-4 classic model'
  [-3]           the same as -k classic
  [-6]           the same as -k '64-bit offset'
  [-4]           the same as -k netCDF-4
  [-7]           the same as -k 'netCDF-4 classic model'
  [-d n]         deflate at level n, from 1 to 9; 0 to undo compression
  [-s]           shuffle bytes before they are deflated (with -d)
  [-c chunkspec] shapes of chunks: 'dim/n,...' for all variables, 'var:n,...', 'var:contiguous' or
                 'var:compact' for one; 'dim/' is the whole dimension, '/' no chunks; repeatable
  [-u]           unlimited dimensions become fixed
  [-w]           accepted; the copy is written in large pieces anyway
  [-v var,...]   data of these variables only, definitions of all
  [-V var,...]   these variables only
  [-g grp,...]   data of these groups only, definitions of all
  [-G grp,...]   these groups only
  [-m n]         memory for data, with K, M, G, T or P; 256 MiB by default
  [-h n]         the same, as a size of the chunk cache; the larger one counts
  [-e n]         accepted; the cache has as many chunks as fit
  [-r]           read the source into memory at once
  [-F filterspec] filters of variables: 'var,id,param,...|...', 'var,none', '*,...', 'none'; repeatable
  [-Mn]          fixed-size variables whose chunks would have fewer than n bytes get none (8192)
  infile         file to be copied
  outfile        the copy; one that exists is replaced
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_that_follow_from_options() {
        for (line, source, kind) in [
            ("a b", Format::Cdf5, Format::Cdf5),
            ("-d 0 a b", Format::Cdf1, Format::Cdf1),
            ("-d 1 a b", Format::Cdf2, Format::NetCdf4Classic),
            ("-s a b", Format::Cdf1, Format::NetCdf4Classic),
            ("-c t/1 a b", Format::Cdf5, Format::NetCdf4Classic),
            ("-d 1 a b", Format::NetCdf4, Format::NetCdf4),
            ("-F none a b", Format::Cdf1, Format::Cdf1),
        ] {
            let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(NccopyOptions::read(&args).unwrap().kind_for(source), kind, "{line}");
        }
    }
}
