//! Reads the shapes of chunks that `-c` asks for: `DIM/N,…` for all variables, or `VAR:N,…` for
//! one.

use std::collections::BTreeMap;

use zonda::NcError;

use super::options::integer;
use super::refusal::NccopyRefusal;
use super::tree::{SourceGroup, SourceVar, joined, parts, same};

/// What `-c` says about one variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum VarChunks {
    /// `VAR:`: no chunks, unless another option needs them.
    Omitted,
    /// Contiguous.
    Contiguous,
    /// Compact.
    Compact,
    /// Chunks of this shape, where 0 stands for the length without this option.
    Shape(Vec<u64>),
}

/// What all `-c` say, by paths in the source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ChunkOptions {
    /// `/`: no chunks at all.
    pub omitted: bool,
    /// Elements of a chunk along dimensions; 0 for a dimension without elements.
    dims: BTreeMap<Vec<u8>, u64>,
    /// By variable; of several options for a variable the first counts.
    vars: BTreeMap<Vec<u8>, VarChunks>,
}

impl ChunkOptions {
    /// Reads the arguments of `-c`. Of several that are about dimensions, the last one counts.
    ///
    /// # Errors
    /// `NC_EINVAL` for what is malformed, `NC_EBADDIM`, `NC_ENOTVAR` and `NC_ENOGRP` for what is not
    /// there, `NC_EBADCHUNK` for chunks that are longer than their dimensions.
    pub(super) fn read(
        specs: &[Vec<u8>],
        tree: &[SourceGroup],
    ) -> Result<ChunkOptions, NccopyRefusal> {
        let mut chunks = ChunkOptions::default();
        for spec in specs.iter().filter(|spec| !spec.is_empty()) {
            let refused =
                |code| NccopyRefusal::code(code, format!("-c {}", String::from_utf8_lossy(spec)));
            match spec.iter().position(|&byte| byte == b':') {
                None => chunks.read_dims(spec, tree).map_err(refused)?,
                Some(colon) => {
                    let (path, shape) =
                        of_var(&spec[..colon], &spec[colon + 1..], tree).map_err(refused)?;
                    chunks.vars.entry(path).or_insert(shape);
                }
            }
        }
        Ok(chunks)
    }

    fn read_dims(&mut self, spec: &[u8], tree: &[SourceGroup]) -> Result<(), NcError> {
        self.omitted = false;
        self.dims.clear();
        if matches!(spec, b"/" | b"//") {
            self.omitted = true;
            return Ok(());
        }
        let parts = split(spec);
        // The syntax is checked before any name is looked up.
        if parts.iter().skip(1).rev().skip(1).any(|part| part.is_empty()) {
            return Err(NcError::Inval);
        }
        for part in parts {
            let slash = part.iter().rposition(|&byte| byte == b'/').ok_or(NcError::Inval)?;
            let (path, len) = find_dim(&part[..slash], tree)?;
            let size = match &part[slash + 1..] {
                b"" => len,
                text => match integer(text, 0) {
                    Some((size, _)) if size >= 1 => size.cast_unsigned(),
                    _ => return Err(NcError::Inval),
                },
            };
            // The first one counts.
            self.dims.entry(path).or_insert(size);
        }
        Ok(())
    }

    /// What was said about a variable.
    pub(super) fn of_var(&self, path: &[u8]) -> Option<&VarChunks> {
        self.vars.get(path)
    }

    /// Elements of a chunk along a dimension.
    pub(super) fn of_dim(&self, path: &[u8]) -> Option<u64> {
        self.dims.get(path).copied()
    }
}

/// Splits at commas that have no `\` before them.
fn split(spec: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    let mut start = 0;
    for at in 0..spec.len() {
        if spec[at] == b',' && (at == 0 || spec[at - 1] != b'\\') {
            parts.push(&spec[start..at]);
            start = at + 1;
        }
    }
    parts.push(&spec[start..]);
    parts
}

/// A dimension of the root, or one by its path: its path and length. Its name may have `\` before
/// special characters.
fn find_dim(requested: &[u8], tree: &[SourceGroup]) -> Result<(Vec<u8>, u64), NcError> {
    let (group, name) = parts(requested);
    let group = group.unwrap_or(b"/");
    let group = tree.iter().find(|known| known.path == group).ok_or(NcError::NoGrp)?;
    let plain = unescaped(name);
    let dim = group.dims.iter().find(|dim| same(&dim.name, name) || same(&dim.name, &plain));
    let dim = dim.ok_or(NcError::BadDim)?;
    Ok((joined(&group.path, &dim.name), dim.len))
}

fn unescaped(name: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(name.len());
    let mut bytes = name.iter();
    while let Some(&byte) = bytes.next() {
        plain.push(if byte == b'\\' { *bytes.next().unwrap_or(&byte) } else { byte });
    }
    plain
}

/// A variable of the root, or one by its path.
fn find_var<'t>(
    requested: &[u8],
    tree: &'t [SourceGroup],
) -> Result<(Vec<u8>, &'t SourceVar), NcError> {
    let (group, name) = parts(requested);
    let path = match group {
        None => b"/".to_vec(),
        Some(path) if path.starts_with(b"/") => path.to_vec(),
        Some(path) => joined(b"/", path),
    };
    let group = tree.iter().find(|known| known.path == path).ok_or(NcError::NoGrp)?;
    let var = group.vars.iter().find(|var| same(&var.name, name)).ok_or(NcError::NotVar)?;
    Ok((joined(&group.path, &var.name), var))
}

fn of_var(name: &[u8], spec: &[u8], tree: &[SourceGroup]) -> Result<(Vec<u8>, VarChunks), NcError> {
    let (path, var) = find_var(name, tree)?;
    let chunks = match spec.to_ascii_lowercase().as_slice() {
        b"" => VarChunks::Omitted,
        b"contiguous" => VarChunks::Contiguous,
        b"compact" => VarChunks::Compact,
        _ => {
            let spec = spec.strip_suffix(b",").unwrap_or(spec);
            let size = |text| integer(text, 10).map(|(size, _)| size.cast_unsigned());
            let shape: Option<Vec<u64>> = spec.split(|&byte| byte == b',').map(size).collect();
            let shape =
                shape.filter(|shape| shape.len() == var.lens.len()).ok_or(NcError::Inval)?;
            if shape.iter().zip(&var.lens).any(|(size, len)| size > len) {
                return Err(NcError::BadChunk);
            }
            VarChunks::Shape(shape)
        }
    };
    Ok((path, chunks))
}

#[cfg(test)]
mod tests {
    use super::super::tree::tests::group;
    use super::*;

    fn read(specs: &[&str]) -> Result<ChunkOptions, NcError> {
        let tree =
            [group("/", &[("t", 100), ("x", 40), ("a,b", 5), ("z", 0)]), group("/g", &[("y", 7)])];
        let specs: Vec<Vec<u8>> = specs.iter().map(|spec| spec.as_bytes().to_vec()).collect();
        ChunkOptions::read(&specs, &tree).map_err(|refusal| match refusal {
            NccopyRefusal::Code(code, why) => {
                assert!(why.starts_with("-c "), "{why}");
                code
            }
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn along_dimensions() {
        let chunks = read(&["t/10,x/,/g/y/3"]).unwrap();
        assert_eq!(chunks.of_dim(b"/t"), Some(10));
        assert_eq!(chunks.of_dim(b"/x"), Some(40));
        assert_eq!(chunks.of_dim(b"/g/y"), Some(3));
        assert_eq!(chunks.of_dim(b"/z"), None);
        // The library refuses chunks that are longer than the dimension.
        assert_eq!(read(&["t/0x400"]).unwrap().of_dim(b"/t"), Some(1024));
        assert_eq!(read(&[r"a\,b/5"]).unwrap().of_dim(b"/a,b"), Some(5));
        let last = read(&["t/10", "x/2"]).unwrap();
        assert_eq!((last.of_dim(b"/t"), last.of_dim(b"/x")), (None, Some(2)));
        assert!(read(&["/"]).unwrap().omitted && read(&["//"]).unwrap().omitted);
        assert!(!read(&["/", "t/1"]).unwrap().omitted);
        assert_eq!(read(&[""]), Ok(ChunkOptions::default()));
    }

    #[test]
    fn of_variables() {
        let chunks = read(&["t:10", "t:20", "/g/y:COMPACT", "x:", "z:contiguous"]).unwrap();
        assert_eq!(chunks.of_var(b"/t"), Some(&VarChunks::Shape(vec![10])));
        assert_eq!(chunks.of_var(b"/g/y"), Some(&VarChunks::Compact));
        assert_eq!(chunks.of_var(b"/x"), Some(&VarChunks::Omitted));
        assert_eq!(chunks.of_var(b"/z"), Some(&VarChunks::Contiguous));
        assert_eq!(read(&["g/y:7,"]).unwrap().of_var(b"/g/y"), Some(&VarChunks::Shape(vec![7])));
    }

    #[test]
    fn what_is_refused() {
        for (spec, code) in [
            ("t", NcError::Inval),
            ("t/1,,x/1", NcError::Inval),
            ("w/1,,x/1", NcError::Inval),
            ("w/1,x/1,", NcError::BadDim),
            ("t/0", NcError::Inval),
            ("t/q", NcError::Inval),
            ("w/1", NcError::BadDim),
            ("/h/y/1", NcError::NoGrp),
            ("w:1", NcError::NotVar),
            ("h/w:1", NcError::NoGrp),
            ("t:1,2", NcError::Inval),
            ("t:x", NcError::Inval),
            ("t:101", NcError::BadChunk),
            ("z:1", NcError::BadChunk),
        ] {
            assert_eq!(read(&[spec]), Err(code), "{spec}");
        }
    }
}
