//! Finds the groups and variables that `-g`, `-G`, `-v` and `-V` name.

use std::collections::BTreeSet;

use super::options::NamedObjects;
use super::refusal::NccopyRefusal;
use super::tree::{SourceGroup, joined, parts, same};

/// What is in the target, by paths.
#[derive(Clone, Debug, Default)]
pub(super) struct CopySelection {
    /// Groups with data; `None` for all.
    groups: Option<BTreeSet<Vec<u8>>>,
    defines_other_groups: bool,
    /// Variables with data; `None` for all.
    vars: Option<BTreeSet<Vec<u8>>>,
    defines_other_vars: bool,
}

impl CopySelection {
    /// Finds the objects that the options name.
    ///
    /// # Errors
    /// A missing variable or group; a group that would be copied without the group around it.
    pub(super) fn find(
        tree: &[SourceGroup],
        groups: Option<&NamedObjects>,
        vars: Option<&NamedObjects>,
    ) -> Result<CopySelection, NccopyRefusal> {
        let mut selection = CopySelection::default();
        if let Some(chosen) = vars {
            selection.defines_other_vars = chosen.defines_others;
            let of_name = |name: &Vec<u8>| {
                let found = vars_of(tree, name);
                if found.is_empty() { Err(missing(name, "variable")) } else { Ok(found) }
            };
            let found = chosen.names.iter().map(of_name).collect::<Result<Vec<_>, _>>()?;
            selection.vars = Some(found.into_iter().flatten().collect());
        }
        if let Some(chosen) = groups {
            selection.defines_other_groups = chosen.defines_others;
            let of_name = |name: &Vec<u8>| {
                let found = groups_of(tree, name);
                if found.is_empty() { Err(missing(name, "group")) } else { Ok(found) }
            };
            let found = chosen.names.iter().map(of_name).collect::<Result<Vec<_>, _>>()?;
            let found: BTreeSet<Vec<u8>> = found.into_iter().flatten().collect();
            let orphan = found.iter().find(|path| {
                let parent = parts(path).0.unwrap_or(b"/");
                !chosen.defines_others && parent != b"/" && !found.contains(parent)
            });
            if let Some(path) = orphan {
                let path = String::from_utf8_lossy(path);
                let text = format!("ERROR: trying to copy a group but not the parent: {path}");
                return Err(NccopyRefusal::text(text));
            }
            selection.groups = Some(found);
        }
        Ok(selection)
    }

    pub(super) fn defines_group(&self, path: &[u8]) -> bool {
        self.defines_other_groups || self.is_group_named(path)
    }

    fn is_group_named(&self, path: &[u8]) -> bool {
        self.groups.as_ref().is_none_or(|groups| groups.contains(path))
    }

    pub(super) fn defines_var(&self, path: &[u8]) -> bool {
        self.defines_other_vars || self.is_var_named(path)
    }

    fn is_var_named(&self, path: &[u8]) -> bool {
        self.vars.as_ref().is_none_or(|vars| vars.contains(path))
    }

    /// Whether the data of a variable are copied.
    pub(super) fn has_data(&self, path: &[u8]) -> bool {
        self.is_var_named(path) && self.is_group_named(parts(path).0.unwrap_or(b"/"))
    }
}

fn missing(name: &[u8], kind: &str) -> NccopyRefusal {
    NccopyRefusal::text(format!("{}: No such {kind}", String::from_utf8_lossy(name)))
}

/// The paths of variables that a name means. A name without `/` means variables in any group; one
/// that begins with `/` is a path; in any other, the part before the last `/` matches the end of
/// the group's path.
fn vars_of(tree: &[SourceGroup], requested: &[u8]) -> Vec<Vec<u8>> {
    let (group, name) = parts(requested);
    let is_meant = |path: &[u8]| match group {
        None => true,
        Some(group) if requested.starts_with(b"/") => path == group,
        Some(group) => path.ends_with(group),
    };
    let groups = tree.iter().filter(|group| is_meant(&group.path));
    let paths = groups.flat_map(|group| {
        let named = group.vars.iter().filter(|var| same(&var.name, name));
        named.map(|var| joined(&group.path, &var.name))
    });
    paths.collect()
}

/// The paths of groups that a name means. The empty name and `/` mean the root; a name that begins
/// with `/` is a path; others are names of groups anywhere.
fn groups_of(tree: &[SourceGroup], requested: &[u8]) -> Vec<Vec<u8>> {
    let is_meant = |group: &&SourceGroup| match requested {
        b"" | b"/" => group.path == b"/",
        path if path.starts_with(b"/") => same(&group.path, path),
        name => group.path != b"/" && same(group.name(), name),
    };
    tree.iter().filter(is_meant).map(|group| group.path.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree::tests::group;
    use super::*;

    fn tree() -> Vec<SourceGroup> {
        let names = [("t", 3), ("x", 4)];
        vec![group("/", &names), group("/g", &names[..1]), group("/g/h", &names), group("/h", &[])]
    }

    fn chosen(names: &[&str], defines_others: bool) -> NamedObjects {
        NamedObjects {
            names: names.iter().map(|name| name.as_bytes().to_vec()).collect(),
            defines_others,
        }
    }

    fn vars(names: &[&str]) -> Vec<String> {
        let selection = CopySelection::find(&tree(), None, Some(&chosen(names, false))).unwrap();
        let paths = ["/t", "/x", "/g/t", "/g/h/t", "/g/h/x"];
        let has = |path: &&&str| {
            let has = selection.has_data(path.as_bytes());
            assert_eq!(has, selection.defines_var(path.as_bytes()));
            has
        };
        paths.iter().filter(has).map(|path| (*path).to_owned()).collect()
    }

    fn refused(groups: Option<NamedObjects>, vars: Option<NamedObjects>) -> String {
        match CopySelection::find(&tree(), groups.as_ref(), vars.as_ref()) {
            Err(NccopyRefusal::Text(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn variables_by_name() {
        assert_eq!(vars(&["x"]), ["/x", "/g/h/x"]);
        assert_eq!(vars(&["/t"]), ["/t"]);
        assert_eq!(vars(&["h/t", "/g/t"]), ["/g/t", "/g/h/t"]);
        let none = refused(None, Some(chosen(&["x", "y"], true)));
        assert_eq!(none, "y: No such variable");
        let all = CopySelection::find(&tree(), None, Some(&chosen(&["x"], true))).unwrap();
        assert!(all.defines_var(b"/t") && !all.has_data(b"/t") && all.has_data(b"/x"));
    }

    #[test]
    fn groups_by_name() {
        let find = |names: &[&str], others| {
            CopySelection::find(&tree(), Some(&chosen(names, others)), None).unwrap()
        };
        let data = find(&["h"], true);
        assert!(data.defines_group(b"/g") && data.defines_group(b"/g/h"));
        assert!(!data.has_data(b"/t") && !data.has_data(b"/g/t") && data.has_data(b"/g/h/t"));
        let only = find(&["g", ""], false);
        assert!(only.defines_group(b"/g") && !only.defines_group(b"/g/h"));
        assert!(only.has_data(b"/t") && only.has_data(b"/g/t"));
        assert!(find(&["g", "/g/h"], false).has_data(b"/g/h/x"));
        let orphan = refused(Some(chosen(&["/g/h"], false)), None);
        assert_eq!(orphan, "ERROR: trying to copy a group but not the parent: /g/h");
        assert_eq!(refused(Some(chosen(&["no"], false)), None), "no: No such group");
    }
}
