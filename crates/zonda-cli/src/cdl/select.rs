//! Finds variables and groups by the names that users give.

use zonda::{Dataset, GroupId, Meta, NcError, VarId};

use crate::failure::Result;

/// The variable of the group `meta` that `name` means. A name without a path means variables of any
/// group. A path that does not begin with `/` matches the end of a group's path.
pub(super) fn named(meta: &Meta<'_>, name: &[u8]) -> Option<VarId> {
    let Some(slash) = name.iter().rposition(|&byte| byte == b'/') else {
        return meta.find_var(name).ok();
    };
    let (group, name) = (&name[..slash], &name[slash + 1..]);
    let path = meta.group_path();
    let is_here = match group {
        b"" => path == b"/",
        [b'/', ..] => path == group,
        _ => path.ends_with(group),
    };
    if is_here { meta.find_var(name).ok() } else { None }
}

/// The first name that no variable has.
pub(crate) fn missing_variable<'n>(
    file: &Dataset,
    variables: &'n [Vec<u8>],
) -> Result<Option<&'n [u8]>> {
    let mut missing: Vec<&Vec<u8>> = variables.iter().collect();
    let mut groups = vec![GroupId::ROOT];
    while let Some(group) = groups.pop().filter(|_| !missing.is_empty()) {
        file.in_group(group, |meta| {
            missing.retain(|name| named(meta, name).is_none());
            groups.extend_from_slice(meta.groups());
        })?;
    }
    Ok(missing.first().map(|name| &***name))
}

/// The groups that the names mean, or the first name that no group has. A path begins with `/`; any
/// other name means every group that has it.
pub(crate) fn find_groups<'n>(
    file: &Dataset,
    names: &'n [Vec<u8>],
) -> Result<std::result::Result<Vec<GroupId>, &'n [u8]>> {
    let mut found = Vec::new();
    for name in names {
        let n_before = found.len();
        if let Some(path) = name.strip_prefix(b"/") {
            found.extend(group_at(file, path)?);
        } else {
            let mut left = vec![GroupId::ROOT];
            while let Some(group) = left.pop() {
                file.in_group(group, |meta| {
                    found.extend(meta.find_group(name).ok());
                    left.extend_from_slice(meta.groups());
                })?;
            }
        }
        if found.len() == n_before {
            return Ok(Err(name));
        }
    }
    Ok(Ok(found))
}

/// The group with that path from the root.
fn group_at(file: &Dataset, path: &[u8]) -> Result<Option<GroupId>> {
    let mut group = GroupId::ROOT;
    for name in path.split(|&byte| byte == b'/').filter(|name| !name.is_empty()) {
        match file.in_group(group, |meta| meta.find_group(name))? {
            Ok(inner) => group = inner,
            Err(error) if error.code() == NcError::NoGrp => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Some(group))
}
