//! `nccopy`: a copy of a file in another format, with other chunks or filters, or of a part of it.
//!
//! Options, the choices that follow from them, and exit statuses are those of `nccopy` 4.9.0; the copy
//! itself is that of `zonda copy`: chunks that stay as they are are not decompressed, others go by
//! all cores in bounded memory, and the target gets its name when it is complete.

mod chunks;
mod filters;
mod options;
mod refusal;
mod rules;
mod select;
mod tree;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use zonda::copy::{CopyOptions, copy_by_rules, follow_copy, follow_failed};
use zonda::{Dataset, Format, OpenOptions, Persist};

use crate::ranks::{Follower, Part};
use crate::tuning::{CHUNK_CACHE_SHARE, NCCOPY_LEAST_MEMORY_BYTES, NCCOPY_MEMORY_BYTES};
use crate::{input, progress, ranks};
use options::NccopyOptions;
use refusal::NccopyRefusal;
use rules::NcCopy;

/// Runs `nccopy`; exit status 0 for a copy, else 1.
pub(super) fn run(args: &[OsString]) -> ExitCode {
    let (program, args) = match args.split_first() {
        Some((program, args)) => (program.to_string_lossy(), args),
        None => ("nccopy".into(), args),
    };
    match NccopyOptions::read(args).and_then(|options| copy(&options, &program)) {
        Ok(()) => ExitCode::SUCCESS,
        // All ranks are called alike, and rank 0 speaks.
        Err(_) if ranks::is_silent() => ExitCode::SUCCESS,
        Err(refusal) => {
            refusal.report(&program);
            ExitCode::FAILURE
        }
    }
}

/// A copy that was prepared: its source, what it is asked to be, and the rules for that.
struct Prepared<'a> {
    source: Dataset,
    target: CopyOptions,
    rules: NcCopy<'a>,
}

fn copy(options: &NccopyOptions, program: &str) -> Result<(), NccopyRefusal> {
    let memory_bytes =
        options.buffer_bytes.map_or(NCCOPY_MEMORY_BYTES, |n| n.max(NCCOPY_LEAST_MEMORY_BYTES));
    zonda_runtime::memory::limit(memory_bytes / CHUNK_CACHE_SHARE);
    let url = zonda::of_url(&options.target);
    let path = url.as_ref().map_or(&options.target, |(path, _)| path);
    let asked = url.as_ref().map(|(_, format)| *format);
    let refusal = input::undivided([options.source.as_path(), path]);
    let lead = match ranks::part("nccopy", path, refusal)? {
        Part::Alone => None,
        Part::Lead(lead) => Some(lead),
        Part::Follow(follower) => return follow(&follower, options, (path, asked), memory_bytes),
        Part::Nothing => return Ok(()),
    };
    let Prepared { source, mut target, rules } = prepare(options, asked, memory_bytes)?;
    target.lead = lead;
    let copied = progress::watched(false, |progress| {
        copy_by_rules(&source, path, &target, &rules, progress)
    })??;
    for note in &copied.notes {
        eprintln!("{program}: {}: {note}", input::label(&options.target).display());
    }
    Ok(source.close()?)
}

/// The part of another rank than the first one.
fn follow(
    follower: &Follower,
    options: &NccopyOptions,
    (path, asked): (&Path, Option<Format>),
    memory_bytes: u64,
) -> Result<(), NccopyRefusal> {
    let followed = progress::following(|| {
        let (team, step) = (&*follower.team, follower.step());
        match prepare(options, asked, memory_bytes) {
            Ok(Prepared { source, target, rules }) => {
                follow_copy(team, step, Ok(&source), path, &target, Some(&rules))
            }
            Err(refusal) => follow_failed(team, step, &refusal.into_error()),
        }
    })?;
    follower.ended(followed);
    Ok(())
}

fn prepare(
    options: &NccopyOptions,
    asked: Option<Format>,
    memory_bytes: u64,
) -> Result<Prepared<'_>, NccopyRefusal> {
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
    let target = CopyOptions {
        format: Some(options.kind.or(asked).unwrap_or_else(|| options.kind_for(kind))),
        fix_unlimited: options.fix_unlimited,
        memory_bytes,
        replace: true,
        ..CopyOptions::default()
    };
    Ok(Prepared { source, target, rules: NcCopy { options, selection, chunks } })
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
