//! What options of a copy name is there, and they have an effect on it.

use zonda_model::{ExtType, NcError};

use super::options::{CopyOptions, Pattern};
use super::tree::{Tree, VarDef, shown};
use crate::error::{Error, Result};

/// Refuses options that are about variables and dimensions that no variable in the copy is or has.
///
/// # Errors
/// `NC_ENOTVAR` and `NC_EBADDIM`, with the name.
pub(super) fn check(tree: &Tree, options: &CopyOptions) -> Result<()> {
    for (what, patterns) in of_storage(options) {
        for pattern in patterns {
            if !tree.vars().any(|var| pattern.matches(&var.path)) {
                let name = shown(pattern.text());
                let text =
                    format!("{what} for variable {name}: no variable that is copied has this name");
                return Err(Error::told(NcError::NotVar, text));
            }
        }
    }
    for rule in &options.chunks {
        let is_meant =
            |var: &&VarDef| rule.vars.as_ref().is_none_or(|vars| vars.matches(&var.path));
        for (dim, _) in &rule.sizes {
            let mut axes = tree.vars().filter(is_meant).flat_map(|var| &var.axes);
            // One that no variable has is of no consequence, but it is no mistake either.
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
                return Err(Error::told(NcError::BadDim, text));
            }
        }
    }
    Ok(())
}

/// What is asked of a variable by its name and cannot be had of it, a line each.
pub(super) fn without_effect(tree: &Tree, options: &CopyOptions) -> Vec<String> {
    let mut notes = Vec::new();
    let float = [ExtType::Float, ExtType::Double].map(ExtType::nc_type);
    // `none` asks for nothing, which every variable can have.
    let asking = CopyOptions {
        filters: options.filters.iter().filter(|rule| !rule.filters.is_empty()).cloned().collect(),
        quantize: options.quantize.iter().filter(|rule| rule.quantize.is_some()).cloned().collect(),
        ..options.clone()
    };
    for (what, patterns) in of_storage(&asking) {
        let by_name = patterns.into_iter().filter(|pattern| pattern.is_name());
        for pattern in by_name {
            for var in tree.vars().filter(|var| pattern.matches(&var.path)) {
                let is_unlimited = var.axes.iter().any(|axis| axis.is_unlimited);
                let why = match what {
                    FILTERS if var.axes.is_empty() => "gets no filters: it has no dimensions",
                    FILTERS if var.has_pointers => {
                        "gets no filters: its values have no fixed length"
                    }
                    CONTIGUOUS if is_unlimited => "stays in chunks: it has an unlimited dimension",
                    PRECISION if !float.contains(&var.nc_type) => {
                        "keeps its precision: it is neither float nor double"
                    }
                    _ => continue,
                };
                notes.push(format!("variable {} {why}", shown(&var.path)));
            }
        }
    }
    notes
}

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
