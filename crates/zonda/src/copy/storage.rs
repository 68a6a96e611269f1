//! How the variables of a netCDF-4 target are stored.

use zonda_format::{FilterSpec, Quantize, StorageKind, StorageRequest};
use zonda_model::{ExtType, NcError};

use super::options::{CopyOptions, Pattern, applies};
use super::tree::{VarDef, shown};
use crate::error::{Error, Result};
use crate::tuning::RULED_CHUNK_MAX_BYTES;

/// A rule for all variables does not put variables of fewer bytes into chunks.
const SMALL: u64 = 8 << 10;

/// How a variable is to be stored.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StoragePlan {
    pub request: StorageRequest,
    /// Shape of chunks; `None` for the default.
    pub chunks: Option<Vec<usize>>,
    /// Filters in place of those of the source; `None` to keep these.
    pub filters: Option<Vec<FilterSpec>>,
    pub quantize: Option<Quantize>,
}

impl StoragePlan {
    /// Decides how a variable is stored.
    ///
    /// # Errors
    /// `NC_EBADCHUNK` for chunks of 4 GiB or more.
    pub(super) fn of(var: &VarDef, options: &CopyOptions) -> Result<StoragePlan> {
        let quantize = quantize(var, options);
        let can_filter = !var.axes.is_empty() && !var.has_pointers;
        let is_unlimited = var.axes.iter().any(|axis| axis.is_unlimited);
        let kind = var.info.as_ref().map(|info| &info.storage);
        if var.axes.is_empty() || (Pattern::any(&options.contiguous, &var.path) && !is_unlimited) {
            let compact = var.axes.is_empty() && kind == Some(&StorageKind::Compact);
            let request =
                if compact { StorageRequest::Compact } else { StorageRequest::Contiguous };
            return Ok(StoragePlan { request, chunks: None, filters: Some(Vec::new()), quantize });
        }
        let rule = options.filters.iter().rfind(|rule| applies(&rule.vars, &var.path));
        let filters = match rule {
            _ if !can_filter => Some(Vec::new()),
            Some(rule) => Some(rule.filters.clone()),
            None => None,
        };
        let old = match kind {
            Some(StorageKind::Chunked(dims)) => Some(dims),
            _ => None,
        };
        let is_filtered = filters.as_ref().is_some_and(|filters| !filters.is_empty());
        let must = is_unlimited || is_filtered;
        let wanted = wanted(var, options, must || old.is_some());
        let chunks = match old {
            _ if wanted.iter().any(Option::is_some) => Some(shape(var, &wanted, old)?),
            Some(old) => Some(old.iter().zip(&var.axes).map(|(&n, axis)| clip(axis, n)).collect()),
            None => None,
        };
        let request = match kind {
            _ if must || chunks.is_some() => StorageRequest::Chunked,
            Some(StorageKind::Compact) => StorageRequest::Compact,
            _ => StorageRequest::Contiguous,
        };
        Ok(StoragePlan { request, chunks, filters, quantize })
    }
}

/// The lengths of a chunk that options ask for along the dimensions of a variable; `None` where it is
/// stored in one run, whatever they say.
pub(super) fn asked_of(var: &VarDef, options: &CopyOptions) -> Option<Vec<Option<u64>>> {
    let stored = StoragePlan::of(var, options).ok()?;
    (stored.request == StorageRequest::Chunked).then(|| wanted(var, options, true))
}

pub(super) fn quantize(var: &VarDef, options: &CopyOptions) -> Option<Quantize> {
    let is_float = [ExtType::Float, ExtType::Double].map(ExtType::nc_type).contains(&var.nc_type);
    let rule = options.quantize.iter().rfind(|rule| {
        let is_meant = !rule.vars.is_empty() || !var.is_coordinate();
        is_meant && applies(&rule.vars, &var.path)
    });
    rule.filter(|_| is_float)?.quantize
}

/// The lengths of a chunk that rules give. `is_chunked`: the variable is in chunks without them, too.
fn wanted(var: &VarDef, options: &CopyOptions, is_chunked: bool) -> Vec<Option<u64>> {
    let mut wanted = vec![None; var.axes.len()];
    for rule in &options.chunks {
        match &rule.vars {
            Some(pattern) if !pattern.matches(&var.path) => continue,
            None if !is_chunked && var.bytes() < SMALL => continue,
            _ => {}
        }
        for (name, size) in &rule.sizes {
            for (axis, wanted) in var.axes.iter().zip(&mut wanted) {
                if axis.name == *name {
                    *wanted = Some(*size);
                }
            }
        }
    }
    wanted
}

/// Limits the length of a chunk to that of a fixed dimension.
fn clip(axis: &super::tree::AxisDef, size: usize) -> usize {
    let len = usize::try_from(axis.len).unwrap_or(usize::MAX);
    if axis.is_unlimited { size.max(1) } else { size.clamp(1, len.max(1)) }
}

/// The shape of a chunk: the lengths that are asked for, and along other dimensions those of the source or the whole
/// dimension, made shorter until the chunk has no more than [`RULED_CHUNK_MAX_BYTES`].
fn shape(var: &VarDef, wanted: &[Option<u64>], old: Option<&Vec<usize>>) -> Result<Vec<usize>> {
    let len = |d: usize| usize::try_from(var.axes[d].len).unwrap_or(usize::MAX);
    let mut shape: Vec<usize> = (0..wanted.len())
        .map(|d| {
            let size = match (wanted[d], old) {
                (Some(0), _) => len(d),
                (Some(size), _) => usize::try_from(size).unwrap_or(usize::MAX),
                (None, Some(old)) => old[d],
                (None, None) if var.axes[d].is_unlimited => 1,
                (None, None) => len(d),
            };
            clip(&var.axes[d], size)
        })
        .collect();
    let bytes = |shape: &[usize]| {
        shape.iter().fold(var.elem as u64, |bytes, &size| bytes.saturating_mul(size as u64))
    };
    while bytes(&shape) > RULED_CHUNK_MAX_BYTES {
        let free = (0..shape.len()).filter(|&d| wanted[d].is_none() && shape[d] > 1);
        let Some(longest) = free.max_by_key(|&d| shape[d]) else { break };
        shape[longest] = shape[longest].div_ceil(2);
    }
    if bytes(&shape) > u64::from(u32::MAX) {
        let text = format!("variable {}: chunks of {shape:?} have 4 GiB or more", shown(&var.path));
        return Err(Error::with_text(NcError::BadChunk, text));
    }
    Ok(shape)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use zonda_model::{DimId, VarId};
    use zonda_nc4::{Endianness, QuantizeMode, VarInfo};

    use super::*;
    use crate::copy::options::{ChunkRule, FilterRule, QuantizeRule};
    use crate::copy::tree::AxisDef;

    fn var(path: &str, axes: &[(&str, u64, bool)], storage: Option<StorageKind>) -> VarDef {
        let name = path.rsplit('/').next().unwrap();
        let info = storage.map(|storage| {
            let (filters, fill_value) = (Vec::new(), Vec::new());
            let endianness = Endianness::Little;
            Arc::new(VarInfo { storage, filters, endianness, no_fill: false, fill_value })
        });
        let axis = |&(name, len, is_unlimited): &(&str, u64, bool)| AxisDef {
            source: DimId(0),
            name: name.into(),
            len,
            is_unlimited,
        };
        VarDef {
            source: VarId(0).into(),
            name: name.into(),
            path: path.into(),
            nc_type: ExtType::Float.nc_type(),
            elem: 4,
            has_pointers: false,
            axes: axes.iter().map(axis).collect(),
            atts: Vec::new(),
            info,
        }
    }

    fn rule(vars: Option<&str>, sizes: &[(&str, u64)]) -> ChunkRule {
        let sizes = sizes.iter().map(|(name, size)| (name.as_bytes().to_vec(), *size)).collect();
        ChunkRule { vars: vars.map(Pattern::new), sizes }
    }

    fn chunks_of(var: &VarDef, rules: &[ChunkRule]) -> Option<Vec<usize>> {
        let options = CopyOptions { chunks: rules.to_vec(), ..CopyOptions::default() };
        StoragePlan::of(var, &options).unwrap().chunks
    }

    #[test]
    fn shapes_of_chunks() {
        let maps = [("time", 1000, true), ("lat", 180, false), ("lon", 360, false)];
        let map = Some(StorageKind::Chunked(vec![1, 180, 360]));
        let t = var("/g/T", &maps, map);
        assert_eq!(chunks_of(&t, &[]), Some(vec![1, 180, 360]));
        // Lengths that are asked for are exact; the others become shorter.
        let series = chunks_of(&t, &[rule(None, &[("time", 0)])]).unwrap();
        assert_eq!(series[0], 1000);
        assert!(series.iter().product::<usize>() * 4 <= 4 << 20 && series[2] > 10, "{series:?}");
        let both = [rule(None, &[("lat", 10), ("lon", 20)]), rule(Some("g/*"), &[("lat", 9999)])];
        assert_eq!(chunks_of(&t, &both), Some(vec![1, 180, 20]));
        assert_eq!(chunks_of(&t, &[rule(Some("/T"), &[("lat", 1)])]), Some(vec![1, 180, 360]));
        // A small contiguous variable: only a rule that names it puts it into chunks.
        let lat = var("/lat", &[("lat", 180, false)], Some(StorageKind::Contiguous));
        assert_eq!(chunks_of(&lat, &[rule(None, &[("lat", 10)])]), None);
        assert_eq!(chunks_of(&lat, &[rule(Some("lat"), &[("lat", 10)])]), Some(vec![10]));
        let huge = var("/h", &[("x", 1 << 33, false)], None);
        let options =
            CopyOptions { chunks: vec![rule(None, &[("x", 0)])], ..CopyOptions::default() };
        assert_eq!(StoragePlan::of(&huge, &options).unwrap_err().code(), NcError::BadChunk);
    }

    #[test]
    fn filters_and_layouts() {
        let zstd = FilterSpec { id: 32015, optional: true, name: String::new(), params: vec![3] };
        let x = [("x", 100, false)];
        let plain = var("/v", &x, Some(StorageKind::Contiguous));
        let mut options = CopyOptions::default();
        let stored = StoragePlan::of(&plain, &options).unwrap();
        assert_eq!((stored.request, stored.filters), (StorageRequest::Contiguous, None));
        let all = FilterRule { vars: Vec::new(), filters: vec![zstd.clone()] };
        let none = FilterRule { vars: vec![Pattern::new("w*")], filters: Vec::new() };
        options.filters = vec![all, none];
        let stored = StoragePlan::of(&plain, &options).unwrap();
        assert_eq!((stored.request, stored.filters), (StorageRequest::Chunked, Some(vec![zstd])));
        let other = var("/w", &x, Some(StorageKind::Chunked(vec![200])));
        let stored = StoragePlan::of(&other, &options).unwrap();
        assert_eq!((stored.chunks, stored.filters), (Some(vec![100]), Some(Vec::new())));
        let scalar =
            StoragePlan::of(&var("/s", &[], Some(StorageKind::Compact)), &options).unwrap();
        assert_eq!((scalar.request, scalar.filters), (StorageRequest::Compact, Some(Vec::new())));
        options.contiguous = vec![Pattern::new("*")];
        assert_eq!(StoragePlan::of(&other, &options).unwrap().request, StorageRequest::Contiguous);
        let grows = var("/r", &[("t", 9, true)], None);
        assert_eq!(StoragePlan::of(&grows, &options).unwrap().request, StorageRequest::Chunked);
    }

    #[test]
    fn precision_is_not_given_up_of_coordinates() {
        let three = Quantize { mode: QuantizeMode::BitGroom, kept: 3 };
        let rule = |vars: &[&str], quantize| QuantizeRule {
            vars: vars.iter().map(|name| Pattern::new(*name)).collect(),
            quantize,
        };
        let mut options =
            CopyOptions { quantize: vec![rule(&[], Some(three))], ..CopyOptions::default() };
        let (x, t) = (var("/x", &[("x", 5, false)], None), var("/T", &[("x", 5, false)], None));
        assert_eq!(quantize(&x, &options), None);
        assert_eq!(quantize(&t, &options), Some(three));
        options.quantize.push(rule(&["x"], Some(three)));
        options.quantize.push(rule(&["T"], None));
        assert_eq!((quantize(&x, &options), quantize(&t, &options)), (Some(three), None));
    }
}
