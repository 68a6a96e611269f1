//! What is told of a dataset of OPeNDAP: its definitions. How its server stores it nobody knows.

use zonda::{Dataset, ExtType, GroupId, Meta};

use super::facts::{FileFacts, set_percents};
use super::hdf5::add_group;

/// The version of the protocol by which a dataset came; `None` for one that did not.
pub(super) fn version(file: &Dataset) -> Option<&'static str> {
    // Numbers of `nc_inq_format_extended`.
    match file.capabilities().formatx {
        5 => Some("DAP2"),
        6 => Some("DAP4"),
        _ => None,
    }
}

pub(super) fn describe(
    file: &Dataset,
    version: &'static str,
    blank: FileFacts,
) -> zonda::Result<FileFacts> {
    let has_groups = file.capabilities().groups;
    let mut facts = FileFacts {
        format: Some("OPeNDAP"),
        version: Some(version),
        stack: Some(String::new()),
        groups: has_groups.then(Vec::new),
        ..blank
    };
    let mut groups = vec![GroupId::ROOT];
    while let Some(group) = groups.pop() {
        file.in_group(group, |meta| {
            if has_groups {
                groups.extend(meta.groups().iter().rev());
            }
            let first = facts.variables.len();
            add_group(file, meta, &mut facts)?;
            for (variable, id) in facts.variables.iter_mut().skip(first).zip(0..) {
                let elem = meta.var(zonda::VarId(id)).map_or(0, |var| size(meta, var.nc_type));
                variable.bytes = variable.shape.iter().fold(elem, |n, &len| n.saturating_mul(len));
            }
            zonda::Result::Ok(())
        })??;
    }
    set_percents(&mut facts.variables, |variable| variable.bytes);
    file.close()?;
    Ok(facts)
}

/// Bytes of an element; none of a string, which has any number.
fn size(meta: &Meta<'_>, nc_type: i32) -> u64 {
    let of_user = || meta.user_type(nc_type).map_or(0, |ty| ty.size as u64);
    ExtType::from_nc_type(nc_type).map_or_else(of_user, |ty| ty.size() as u64)
}
