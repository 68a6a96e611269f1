//! Checks of options: the variables and dimensions that they name exist, and the options have an effect on them.

use zonda_model::{ExtType, NcError};

use super::options::{ChunkRule, CopyOptions, Pattern};
use super::storage;
use super::tree::{DefinitionTree, VarDef, shown};
use crate::error::{Error, Result};

/// Refuses options that name variables which are not in the copy, or dimensions that no variable in the copy has.
///
/// # Errors
/// `NC_ENOTVAR` and `NC_EBADDIM`, with the name.
pub(super) fn check(tree: &DefinitionTree, options: &CopyOptions) -> Result<()> {
    for (what, patterns) in of_storage(options) {
        for pattern in patterns {
            if !tree.vars().any(|var| pattern.matches(&var.path)) {
                let name = shown(pattern.text());
                let text =
                    format!("{what} for variable {name}: no variable that is copied has this name");
                return Err(Error::with_text(NcError::NotVar, text));
            }
        }
    }
    for rule in &options.chunks {
        let is_meant =
            |var: &&VarDef| rule.vars.as_ref().is_none_or(|vars| vars.matches(&var.path));
        for (dim, _) in &rule.sizes {
            let mut axes = tree.vars().filter(is_meant).flat_map(|var| &var.axes);
            // A dimension that no variable has is no mistake; the option has no effect.
            let is_defined =
                rule.vars.is_none() && tree.dims.iter().any(|known| known.name == *dim);
            if !is_defined && !axes.any(|axis| axis.name == *dim) {
                let dim = shown(dim);
                let text = match &rule.vars {
                    Some(var) => {
                        let var = shown(var.text());
                        format!(
                            "chunks along dimension {dim}: variable {var} has no such dimension"
                        )
                    }
                    None => format!("chunks along dimension {dim}: there is no such dimension"),
                };
                return Err(Error::with_text(NcError::BadDim, text));
            }
        }
    }
    Ok(())
}

/// Notes about options without effect, a line each: about a variable that an option names, or about an option for all
/// variables that applies to none.
pub(super) fn without_effect(
    tree: &DefinitionTree,
    options: &CopyOptions,
    is_hdf5: bool,
) -> Vec<String> {
    let mut notes = Vec::new();
    if !is_hdf5 {
        if !options.filters.is_empty() {
            notes.push("no filter is taken away: classic files have none".to_owned());
        }
        return notes;
    }
    // `none` removes filters, which is possible for every variable.
    let asking = CopyOptions {
        filters: options.filters.iter().filter(|rule| !rule.filters.is_empty()).cloned().collect(),
        quantize: options.quantize.iter().filter(|rule| rule.quantize.is_some()).cloned().collect(),
        ..options.clone()
    };
    for (what, patterns) in of_storage(&asking) {
        for pattern in patterns {
            let meant = || tree.vars().filter(|var| pattern.matches(&var.path));
            let refused: Vec<(&VarDef, &str)> =
                meant().filter_map(|var| Some((var, refused(what, var, options)?))).collect();
            // Some variables of a pattern may be of a kind that the option is not for, but not all of them.
            if pattern.is_name() || refused.len() == meant().count() {
                let note =
                    |(var, why): &(&VarDef, &str)| format!("variable {} {why}", shown(&var.path));
                notes.extend(refused.iter().take(MOST_NAMED).map(note));
                if let Some(more @ 1..) = refused.len().checked_sub(MOST_NAMED) {
                    notes.push(format!("the same for {more} more variables"));
                }
            }
        }
    }
    let of_all = |what| {
        let mut vars = tree.vars();
        !vars.any(|var| refused(what, var, options).is_none())
    };
    if asking.filters.iter().any(|rule| rule.vars.is_empty()) && of_all(FILTERS) {
        notes.push(
            "no variable gets filters: none has dimensions and values of a fixed length".to_owned(),
        );
    }
    if asking.quantize.iter().any(|rule| rule.vars.is_empty())
        && !tree.vars().any(|var| storage::quantize(var, options).is_some())
    {
        notes.push(
            "all variables keep their precision: none but coordinates is float or double"
                .to_owned(),
        );
    }
    for rule in &options.chunks {
        chunks(tree, options, rule, &mut notes);
    }
    notes
}

/// Why an option has no effect on a variable.
fn refused(what: &str, var: &VarDef, options: &CopyOptions) -> Option<&'static str> {
    let float = [ExtType::Float, ExtType::Double].map(ExtType::nc_type);
    let is_unlimited = var.axes.iter().any(|axis| axis.is_unlimited);
    let is_run = Pattern::any(&options.contiguous, &var.path) && !is_unlimited;
    match what {
        FILTERS if var.axes.is_empty() => Some("gets no filters: it has no dimensions"),
        FILTERS if var.has_pointers => Some("gets no filters: its values have no fixed length"),
        FILTERS if is_run => Some("gets no filters: it is asked to be contiguous"),
        CHUNKS if is_run => Some("is not in chunks: it is asked to be contiguous"),
        CONTIGUOUS if is_unlimited => Some("stays in chunks: it has an unlimited dimension"),
        PRECISION if !float.contains(&var.nc_type) => {
            Some("keeps its precision: it is neither float nor double")
        }
        _ => None,
    }
}

/// Notes lengths of chunks that no variable gets, or that none can have.
fn chunks(tree: &DefinitionTree, options: &CopyOptions, rule: &ChunkRule, notes: &mut Vec<String>) {
    for (dim, n) in &rule.sizes {
        let is_meant =
            |var: &&VarDef| rule.vars.as_ref().is_none_or(|vars| vars.matches(&var.path));
        let mut has_it = false;
        let mut longest = Some(0);
        for var in tree.vars().filter(is_meant) {
            for (d, axis) in var.axes.iter().enumerate().filter(|(_, axis)| axis.name == *dim) {
                let asked = storage::asked_of(var, options);
                has_it |= asked.is_some_and(|asked| asked.get(d).copied().flatten().is_some());
                // Along an unlimited dimension chunks may have any length.
                longest = longest.filter(|_| !axis.is_unlimited).map(|len| axis.len.max(len));
            }
        }
        let dim = shown(dim);
        if !has_it && rule.vars.is_none() {
            notes.push(format!(
                "chunks along dimension {dim} have no effect: no variable that has it is in chunks \
                 or has at least 8 KiB"
            ));
        } else if let Some(len) = longest.filter(|len| has_it && n > len) {
            notes.push(format!(
                "chunks along dimension {dim} have {len} elements and not {n}: it has no more"
            ));
        }
    }
}

/// Most variables that a note names.
const MOST_NAMED: usize = 8;

const CHUNKS: &str = "chunks";
const FILTERS: &str = "filters";
const CONTIGUOUS: &str = "contiguous storage";
const PRECISION: &str = "less precision";

/// The variables that options about storage name, and what they ask for.
fn of_storage(options: &CopyOptions) -> [(&'static str, Vec<&Pattern>); 4] {
    let filters = options.filters.iter().flat_map(|rule| &rule.vars);
    let precision = options.quantize.iter().flat_map(|rule| &rule.vars);
    [
        (CHUNKS, options.chunks.iter().filter_map(|rule| rule.vars.as_ref()).collect()),
        (FILTERS, filters.collect()),
        (CONTIGUOUS, options.contiguous.iter().collect()),
        (PRECISION, precision.collect()),
    ]
}
