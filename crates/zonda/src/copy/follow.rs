//! What the other ranks do in a copy that rank 0 leads.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use zonda_storage::backend::Memory;
use zonda_team::{Step, Team};

use super::define::{self, DecidedBy};
use super::divided::PieceWorker;
use super::pieces::Piece;
use super::rules::CopyRules;
use super::{Copied, CopyOptions, definitions};
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::open::CreateOptions;
use crate::ranks;

/// Makes what rank 0 orders in a copy ([`CopyOptions::lead`]), on another rank: reads parts of the source and sends them through the filters of the target,
/// and writes nothing. All arguments are those of the copy; `source` is an error where this rank could not open it, which rank 0 tells if it needs this rank.
///
/// # Errors
/// `NC_EMPI` where the ranks do not come together. All other errors are rank 0's to tell.
pub fn follow_copy(
    team: &dyn Team,
    step: Step<'_>,
    source: std::result::Result<&Dataset, &Error>,
    target: &Path,
    options: &CopyOptions,
    rules: Option<&dyn CopyRules>,
) -> Result<()> {
    let source = match source {
        Ok(source) => source,
        Err(error) => return follow_failed(team, step, error),
    };
    let made = follow_ready(team, step, source, target, DecidedBy { options, rules });
    made.unwrap_or_else(|error| follow_failed(team, step, &error))
}

/// The part of a rank that can do nothing for rank 0, because of an error: rank 0 tells it if it needs this rank.
///
/// # Errors
/// As [`follow_copy`].
pub fn follow_failed(team: &dyn Team, step: Step<'_>, error: &Error) -> Result<()> {
    ranks::follow(team, step, &mut |_| Err(ranks::again(error)))
}

/// An error of the first kind is one before this rank could follow.
fn follow_ready(
    team: &dyn Team,
    step: Step<'_>,
    source: &Dataset,
    target: &Path,
    by: DecidedBy<'_>,
) -> Result<Result<()>> {
    let format = by.options.format.unwrap_or_else(|| crate::format_of_copy(source.format()));
    let mut copied = Copied { format, ..Copied::default() };
    let tree = definitions(source, target, by, &mut copied)?;
    let mut vars: BTreeMap<&[u8], _> =
        tree.vars().map(|var| (&var.path[..], (var, None))).collect();
    // Only these files have filters.
    let mut like_target = None;
    if format.is_hdf5() {
        let create = CreateOptions { format, ..CreateOptions::default() };
        let file = Dataset::create_in(Arc::new(Memory::new()), target, &create)?;
        for made in define::all(source, &file, &tree, by, &mut copied)? {
            vars.insert(&made.var.path, (made.var, Some(made.target)));
        }
        like_target = Some(file);
    }
    let mut worker = PieceWorker::new(source, like_target.as_ref(), vars);
    let own = team.rank();
    Ok(ranks::follow(team, step, &mut |order| {
        let (inode, pieces) = Piece::of_order(order, own)?;
        if !pieces.is_empty() {
            ranks::check_file(source.path(), inode)?;
        }
        Ok((!pieces.is_empty()).then(|| worker.reply(pieces.iter())))
    }))
}
