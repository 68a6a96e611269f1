//! Lists groups, dimensions and variables of the source, for options that name them.

use zonda::{Dataset, GroupId, VarId, normalize_name};

/// A group of the source.
#[derive(Clone, Debug)]
pub(super) struct SourceGroup {
    /// Path from the root, which is `/`.
    pub path: Vec<u8>,
    pub dims: Vec<SourceDim>,
    pub vars: Vec<SourceVar>,
}

/// A dimension.
#[derive(Clone, Debug)]
pub(super) struct SourceDim {
    pub name: Vec<u8>,
    pub len: u64,
}

/// A variable.
#[derive(Clone, Debug)]
pub(super) struct SourceVar {
    pub name: Vec<u8>,
    /// Elements along each dimension.
    pub lens: Vec<u64>,
}

/// All groups of a file, each after the group around it.
///
/// # Errors
/// What reading the definitions meets.
pub(super) fn groups(file: &Dataset) -> zonda::Result<Vec<SourceGroup>> {
    let mut found = Vec::new();
    let mut next = vec![GroupId::ROOT];
    while let Some(id) = next.pop() {
        let group = file.in_group(id, |meta| {
            next.extend(meta.groups().iter().rev());
            let mut dims = Vec::with_capacity(meta.n_dims());
            for dim in meta.dim_ids() {
                let dim = meta.dim(dim)?;
                dims.push(SourceDim { name: dim.name.to_vec(), len: dim.len });
            }
            let mut vars = Vec::with_capacity(meta.n_vars());
            for number in (0..meta.n_vars()).map_while(|number| i32::try_from(number).ok()) {
                let var = meta.var(VarId(number))?;
                // A dimension without a name cannot be named by an option, so its length does not
                // matter.
                let len = |dim| meta.dim(dim).map_or(u64::MAX, |dim| dim.len);
                let lens = var.dims.iter().map(|&dim| len(dim)).collect();
                vars.push(SourceVar { name: var.name.to_vec(), lens });
            }
            Ok::<_, zonda::Error>(SourceGroup { path: meta.group_path(), dims, vars })
        })??;
        found.push(group);
    }
    Ok(found)
}

/// The path of an object in a group.
pub(super) fn joined(group: &[u8], name: &[u8]) -> Vec<u8> {
    let slash: &[u8] = if group.ends_with(b"/") { b"" } else { b"/" };
    [group, slash, name].concat()
}

/// Splits a path into group and name; the group is `None` if there is no `/`.
pub(super) fn parts(path: &[u8]) -> (Option<&[u8]>, &[u8]) {
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(0) => (Some(b"/"), &path[1..]),
        Some(slash) => (Some(&path[..slash]), &path[slash + 1..]),
        None => (None, path),
    }
}

/// Whether two names are the same. Names in files are normalised, those of users need not be.
pub(super) fn same(name: &[u8], requested: &[u8]) -> bool {
    name == requested || normalize_name(requested).is_ok_and(|requested| *name == *requested)
}

impl SourceGroup {
    /// The last part of the path; empty for the root.
    pub(super) fn name(&self) -> &[u8] {
        parts(&self.path).1
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A group with dimensions and variables of one of them each.
    pub(in crate::classic::nccopy) fn group(path: &str, dims: &[(&str, u64)]) -> SourceGroup {
        let named = |name: &str| name.as_bytes().to_vec();
        let dim = |&(name, len): &(&str, u64)| SourceDim { name: named(name), len };
        let var = |&(name, len): &(&str, u64)| SourceVar { name: named(name), lens: vec![len] };
        SourceGroup {
            path: named(path),
            dims: dims.iter().map(dim).collect(),
            vars: dims.iter().map(var).collect(),
        }
    }

    #[test]
    fn paths() {
        assert_eq!(parts(b"v"), (None, &b"v"[..]));
        assert_eq!(parts(b"/v"), (Some(&b"/"[..]), &b"v"[..]));
        assert_eq!(parts(b"/g/h/v"), (Some(&b"/g/h"[..]), &b"v"[..]));
        assert_eq!(joined(b"/", b"v"), b"/v");
        assert_eq!(joined(b"/g", b"v"), b"/g/v");
        assert_eq!(group("/g/h", &[]).name(), b"h");
        assert_eq!(group("/", &[]).name(), b"");
        assert!(same("é".as_bytes(), "e\u{301}".as_bytes()));
    }
}
