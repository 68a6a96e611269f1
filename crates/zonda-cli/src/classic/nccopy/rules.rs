//! How `nccopy` stores variables, where options, the source and defaults of the library meet.

use zonda::copy::{CopyRules, RuledFilters, RuledStorage, RuledVar};
use zonda::{FilterSpec, StorageKind, StorageRequest};

use super::chunks::{ChunkOptions, VarChunks};
use super::filters::{DEFLATE, FLETCHER32, SHUFFLE, VarFilters, spec};
use super::options::NccopyOptions;
use super::select::CopySelection;

/// Decides about storage in one run.
#[derive(Debug)]
pub(super) struct NcCopy<'a> {
    pub options: &'a NccopyOptions,
    pub selection: CopySelection,
    pub chunks: ChunkOptions,
}

impl CopyRules for NcCopy<'_> {
    fn has_group(&self, path: &[u8]) -> bool {
        self.selection.defines_group(path)
    }

    fn has_var(&self, path: &[u8]) -> bool {
        self.selection.defines_var(path)
    }

    fn has_data(&self, path: &[u8]) -> bool {
        self.selection.has_data(path)
    }

    fn storage(&self, var: &RuledVar<'_>) -> zonda::Result<RuledStorage> {
        let options = self.options;
        let requested = VarFilters::of(var.path, &options.filters, options.no_filters);
        let (request, chunks) = self.layout(var, &requested);
        Ok(RuledStorage { request, chunks, filters: self.filters(var, requested) })
    }
}

impl NcCopy<'_> {
    /// The layout, and the shape of chunks if the layout is chunked.
    fn layout(
        &self,
        var: &RuledVar<'_>,
        requested: &VarFilters,
    ) -> (StorageRequest, Option<Vec<usize>>) {
        let old = match var.source.map(|info| &info.storage) {
            Some(StorageKind::Chunked(dims)) => Some(dims),
            _ => None,
        };
        let mut request = match (self.chunks.of_var(var.path), var.source.map(|info| &info.storage))
        {
            (Some(VarChunks::Shape(_)), _) => StorageRequest::Chunked,
            (Some(VarChunks::Compact), _) => StorageRequest::Compact,
            (Some(VarChunks::Omitted | VarChunks::Contiguous), _) => StorageRequest::Contiguous,
            (None, _) if self.chunks.omitted => StorageRequest::Contiguous,
            (None, Some(StorageKind::Chunked(_))) => StorageRequest::Chunked,
            (None, Some(StorageKind::Compact)) => StorageRequest::Compact,
            (None, _) => StorageRequest::Contiguous,
        };
        let deflates = self.options.deflate.is_some_and(|level| level > 0);
        // A filter for another variable counts, as in the reference.
        if !requested.none && (deflates || requested.others_have) {
            request = StorageRequest::Chunked;
        }
        if self.chunks.omitted {
            return (StorageRequest::Contiguous, None);
        }
        let grows = var.axes.iter().any(|axis| axis.is_unlimited);
        if grows || var.axes.iter().any(|axis| self.chunks.of_dim(axis.path).is_some()) {
            request = StorageRequest::Chunked;
        }
        let of_var = match self.chunks.of_var(var.path) {
            Some(VarChunks::Shape(shape)) => Some(shape),
            _ => None,
        };
        let is_chunked = request == StorageRequest::Chunked;
        let size = |d: usize| {
            let axis = &var.axes[d];
            let len = axis.len.max(1);
            let of_source = old.and_then(|dims| dims.get(d)).map(|&size| size as u64);
            // A dimension that is no longer unlimited may be shorter than its chunks.
            let of_source =
                of_source.map(|size| if axis.is_unlimited { size } else { size.min(len) });
            let default = var.default_chunks.get(d).filter(|_| is_chunked);
            let choices = [
                of_var.and_then(|shape| shape.get(d).copied()),
                self.chunks.of_dim(axis.path),
                of_source,
                default.map(|&size| size as u64),
            ];
            choices.into_iter().flatten().find(|&size| size > 0).unwrap_or(len)
        };
        let shape: Vec<u64> = (0..var.axes.len()).map(size).collect();
        let bytes = shape.iter().fold(var.elem_bytes, |bytes, &size| bytes.saturating_mul(size));
        if bytes < self.options.least_chunk_bytes && !grows {
            return (StorageRequest::Contiguous, None);
        }
        let shape = shape.iter().map(|&size| usize::try_from(size).unwrap_or(usize::MAX));
        (request, is_chunked.then(|| shape.collect()))
    }

    /// The filters of `-d` and `-F`, or those of the source. A variable that is deflated gets none
    /// of `-F`, as in the reference.
    fn filters(&self, var: &RuledVar<'_>, requested: VarFilters) -> RuledFilters {
        if requested.none {
            return RuledFilters::These(Vec::new());
        }
        let old: &[FilterSpec] = var.source.map_or(&[], |info| &info.filters);
        let of_source = |id| old.iter().find(|filter| filter.id == id).cloned();
        let (shuffle, deflate) = match self.options.deflate {
            None => (of_source(SHUFFLE), of_source(DEFLATE)),
            Some(0) => (None, None),
            Some(level) => {
                let shuffle = self.options.shuffle.then(|| spec(SHUFFLE, Vec::new()));
                (shuffle, Some(spec(DEFLATE, vec![level])))
            }
        };
        let others = match (self.options.deflate, &deflate) {
            (_, Some(_)) | (Some(_), _) => Vec::new(),
            (None, None) if requested.filters.is_empty() => return RuledFilters::Kept,
            (None, None) => requested.filters,
        };
        if self.options.deflate.is_none() && deflate.is_some() {
            return RuledFilters::Kept;
        }
        let basic = [shuffle, deflate, of_source(FLETCHER32)];
        RuledFilters::These(basic.into_iter().flatten().chain(others).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use zonda::copy::RuledAxis;
    use zonda::{Endianness, VarInfo};

    use super::super::tree::tests::group;
    use super::*;

    const T: u64 = 1000;
    const X: u64 = 64;

    fn source(storage: StorageKind, filters: &[(u32, &[u32])]) -> VarInfo {
        let filters = filters.iter().map(|(id, params)| spec(*id, params.to_vec())).collect();
        let (endianness, fill_value) = (Endianness::Little, Vec::new());
        VarInfo { storage, filters, endianness, no_fill: false, fill_value }
    }

    /// How a variable of floats along `t` and `x` is stored.
    fn stored(line: &str, source: Option<&VarInfo>, grows: bool) -> RuledStorage {
        let args: Vec<OsString> = line
            .split(' ')
            .chain(["a", "b"])
            .filter(|w| !w.is_empty())
            .map(OsString::from)
            .collect();
        let options = NccopyOptions::read(&args).unwrap();
        let mut tree = [group("/", &[("t", T), ("x", X)])];
        tree[0].vars[0].lens = vec![T, X];
        let chunks = ChunkOptions::read(&options.chunks, &tree).unwrap();
        let rules = NcCopy { options: &options, selection: CopySelection::default(), chunks };
        let axes = [
            RuledAxis { path: b"/t", len: T, is_unlimited: grows },
            RuledAxis { path: b"/x", len: X, is_unlimited: false },
        ];
        let default_chunks = [500, 64];
        let var = RuledVar {
            path: b"/t",
            elem_bytes: 4,
            axes: &axes,
            source,
            default_chunks: &default_chunks,
        };
        rules.storage(&var).unwrap()
    }

    fn shape(line: &str, source: Option<&VarInfo>, grows: bool) -> Option<Vec<usize>> {
        let stored = stored(line, source, grows);
        assert_eq!(stored.request == StorageRequest::Chunked, stored.chunks.is_some());
        stored.chunks
    }

    #[test]
    fn shapes_of_chunks() {
        let chunked = source(StorageKind::Chunked(vec![100, 64]), &[]);
        let run = source(StorageKind::Contiguous, &[]);
        assert_eq!(shape("", Some(&chunked), false), Some(vec![100, 64]));
        assert_eq!(shape("", Some(&run), false), None);
        assert_eq!(shape("", None, true), Some(vec![500, 64]));
        assert_eq!(shape("-d 1", Some(&run), false), Some(vec![500, 64]));
        assert_eq!(shape("-c t/50", Some(&run), false), Some(vec![50, 64]));
        assert_eq!(shape("-c t/50", Some(&chunked), false), Some(vec![50, 64]));
        assert_eq!(shape("-c t:40,0 -c t/50", Some(&chunked), false), Some(vec![40, 64]));
        assert_eq!(shape("-c t: -c x/32", Some(&chunked), false), Some(vec![100, 32]));
        assert_eq!(shape("-c /", Some(&chunked), false), None);
        assert_eq!(shape("-c t:", Some(&chunked), false), None);
        let compact = stored("-c t:compact", Some(&chunked), false);
        assert_eq!(compact.request, StorageRequest::Compact);
        // Chunks along a dimension that is no longer unlimited.
        let long = source(StorageKind::Chunked(vec![4096, 64]), &[]);
        assert_eq!(shape("-u", Some(&long), false), Some(vec![1000, 64]));
        assert_eq!(shape("", Some(&long), true), Some(vec![4096, 64]));
    }

    #[test]
    fn small_chunks_are_none() {
        let chunked = source(StorageKind::Chunked(vec![10, 64]), &[]);
        assert_eq!(shape("", Some(&chunked), false), None);
        assert_eq!(shape("-M 100", Some(&chunked), false), Some(vec![10, 64]));
        assert_eq!(shape("", Some(&chunked), true), Some(vec![10, 64]));
        assert_eq!(shape("-M 10000000 -d 1", None, false), None);
    }

    #[test]
    fn filters_of_options_and_source() {
        let these = |filters: &[(u32, &[u32])]| {
            let filters = filters.iter().map(|(id, params)| spec(*id, params.to_vec()));
            RuledFilters::These(filters.collect())
        };
        let filters = |line: &str, source: Option<&VarInfo>| stored(line, source, false).filters;
        let kind = || StorageKind::Chunked(vec![100, 64]);
        let deflated = source(kind(), &[(3, &[]), (2, &[]), (1, &[5])]);
        let zipped = source(kind(), &[(2, &[]), (32015, &[3])]);
        assert_eq!(filters("", Some(&deflated)), RuledFilters::Kept);
        assert_eq!(filters("", None), RuledFilters::Kept);
        assert_eq!(filters("-d 1 -s", None), these(&[(2, &[]), (1, &[1])]));
        assert_eq!(filters("-d 1", Some(&deflated)), these(&[(1, &[1]), (3, &[])]));
        assert_eq!(filters("-d 0", Some(&deflated)), these(&[(3, &[])]));
        assert_eq!(filters("-d 0", Some(&zipped)), these(&[]));
        assert_eq!(filters("-s", Some(&zipped)), RuledFilters::Kept);
        assert_eq!(filters("-F none", Some(&deflated)), these(&[]));
        assert_eq!(filters("-F t,none", Some(&zipped)), these(&[]));
        assert_eq!(filters("-F t,307,9", Some(&zipped)), these(&[(2, &[]), (307, &[9])]));
        assert_eq!(filters("-F t,307,9", Some(&deflated)), RuledFilters::Kept);
        assert_eq!(filters("-F y,307,9", Some(&zipped)), RuledFilters::Kept);
        assert_eq!(filters("-F t,307,9", None), these(&[(307, &[9])]));
    }
}
