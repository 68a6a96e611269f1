//! Groups of the source with their variables and attributes, as they are read.

use std::collections::BTreeSet;

use zonda_format::{GroupId, Meta, NC_STRING, UserClass, VarRef};
use zonda_model::{NcError, VarId};

use super::{AttDef, AxisDef, GroupDef, NO_DIM, VarDef, joined, shown};
use crate::copy::rules::CopyRules;
use crate::copy::salvage::{Loss, is_ours};
use crate::damaged::FaultKind;
use crate::dataset::Dataset;
use crate::error::{Error, Result};

/// Reads groups with their variables.
pub(super) struct GroupReader<'a> {
    source: &'a Dataset,
    rules: Option<&'a dyn CopyRules>,
    /// What cannot be read is left out, and no error.
    salvage: bool,
    groups: Vec<GroupDef>,
    lost: Vec<Loss>,
    /// Paths of objects that are in `lost` already.
    lost_paths: BTreeSet<String>,
}

impl<'a> GroupReader<'a> {
    pub(super) fn new(
        source: &'a Dataset,
        rules: Option<&'a dyn CopyRules>,
        salvage: bool,
    ) -> Self {
        let (groups, lost, lost_paths) = Default::default();
        GroupReader { source, rules, salvage, groups, lost, lost_paths }
    }

    /// The groups that were read, and what could not be read.
    pub(super) fn into_parts(self) -> (Vec<GroupDef>, Vec<Loss>) {
        (self.groups, self.lost)
    }

    /// Notes as lost what opening the damaged file skipped; gives a line for each thing that may not be as it was.
    pub(super) fn faults(&mut self) -> Result<Vec<String>> {
        let mut doubts = Vec::new();
        for fault in self.source.faults()? {
            match fault.what {
                FaultKind::Damaged(error) => {
                    self.lost.push(Loss::whole(fault.path.as_bytes(), &error));
                    self.lost_paths.insert(fault.path);
                }
                FaultKind::Unrepresentable(what) => {
                    let path = fault.path;
                    doubts
                        .push(format!("{path}: {what} cannot be represented in netCDF; left out"));
                }
                FaultKind::Doubtful(why) => doubts.push(format!("{}: {why}", fault.path)),
            }
        }
        Ok(doubts)
    }

    /// Reads a group and those in it.
    pub(super) fn group(&mut self, id: GroupId, parent: Option<usize>) -> Result<()> {
        let source = self.source;
        let (mut group, children) = source.in_group(id, |meta| {
            let path = meta.group_path();
            let mut vars = Vec::with_capacity(meta.n_vars());
            for number in 0..meta.n_vars() {
                let number = i32::try_from(number).map_err(|_| Error::from(NcError::MaxVars))?;
                let id = VarId(number);
                let var_path = joined(&path, meta.var(id)?.name);
                // What is not to be copied need not be readable.
                if self.rules.is_none_or(|rules| rules.has_var(&var_path)) {
                    let atts = self.atts(meta, id, &var_path);
                    let var = atts.and_then(|atts| read_var(meta, id, &path, atts));
                    vars.extend(self.or_lost(&var_path, var)?);
                }
            }
            let group = GroupDef {
                source: id,
                parent,
                name: meta.group_name().to_vec(),
                atts: self.atts(meta, VarId::GLOBAL, &path)?,
                path,
                vars,
            };
            Ok::<_, Error>((group, meta.groups().to_vec()))
        })??;
        if source.is_hdf5() {
            let mut kept = Vec::with_capacity(group.vars.len());
            for mut var in group.vars {
                if let Some(info) = self.or_lost(&var.path, source.var_info(var.source))? {
                    var.info = Some(info);
                    kept.push(var);
                }
            }
            group.vars = kept;
            if self.salvage {
                self.att_faults(VarRef::group(id), &group.path);
                group.vars.iter().for_each(|var| self.att_faults(var.source, &var.path));
            }
        }
        let index = self.groups.len();
        self.groups.push(group);
        for child in children {
            let path = source.in_group(child, |meta| meta.group_path())?;
            if self.rules.is_none_or(|rules| rules.has_group(&path)) {
                let read = self.group(child, Some(index));
                self.or_lost(&path, read)?;
            }
        }
        Ok(())
    }

    /// The value that was read; `None` where the read failed in a salvaged copy, which notes the loss.
    fn or_lost<T>(&mut self, path: &[u8], read: Result<T>) -> Result<Option<T>> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(error) if self.salvage && !is_ours(&error) => {
                if !self.lost_paths.contains(&shown(path)) {
                    self.lost.push(Loss::whole(path, &error));
                }
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Notes attributes of a damaged file that inquiries leave out as lost.
    fn att_faults(&mut self, owner: VarRef, path: &[u8]) {
        // Where these faults cannot be read, reading the attributes gives the reason.
        for error in self.source.att_faults(owner).unwrap_or_default() {
            let lost = Loss::whole(path, &error);
            if !self.lost.contains(&lost) {
                self.lost.push(lost);
            }
        }
    }

    /// The attributes of a variable or a group.
    fn atts(&mut self, meta: &Meta<'_>, owner: VarId, path: &[u8]) -> Result<Vec<AttDef>> {
        let all = |error: Error| {
            let text = format!("{}: its attributes: {error}", shown(path));
            error.with_other_text(text)
        };
        let n = self.or_lost(path, meta.n_atts(owner).map_err(all))?.unwrap_or(0);
        let mut atts = Vec::with_capacity(n);
        for number in 0..n {
            let att = meta.att(owner, number).map(|att| AttDef {
                name: att.name.into_owned(),
                nc_type: att.nc_type,
                len: att.len,
            });
            atts.extend(self.or_lost(path, att)?);
        }
        Ok(atts)
    }
}

fn read_var(meta: &Meta<'_>, id: VarId, group: &[u8], atts: Vec<AttDef>) -> Result<VarDef> {
    let var = meta.var(id)?;
    let path = joined(group, var.name);
    let fault = |what: &str, error: Error| {
        let text = format!("variable {}: {what}: {error}", shown(&path));
        error.with_other_text(text)
    };
    let mut axes = Vec::with_capacity(var.dims.len());
    for (d, &dim) in var.dims.iter().enumerate() {
        axes.push(match meta.dim(dim) {
            Ok(view) => AxisDef {
                source: dim,
                name: view.name.to_vec(),
                len: view.len,
                is_unlimited: view.is_unlimited,
            },
            Err(error) => {
                let len = meta.extent(id).and_then(|extent| extent.get(d).copied());
                let len = len.ok_or_else(|| fault("its dimensions", error))?;
                AxisDef { source: NO_DIM, name: Vec::new(), len, is_unlimited: false }
            }
        });
    }
    let elem = match meta.type_size(var.nc_type) {
        Ok(elem) => elem,
        Err(error) => {
            let why = meta.var_fault(id).unwrap_or(error);
            return Err(crate::copy::define::fault("variable", &path, why));
        }
    };
    Ok(VarDef {
        source: VarRef { group: meta.group_id(), var: id },
        name: var.name.to_vec(),
        nc_type: var.nc_type,
        elem,
        has_pointers: has_pointers(meta, var.nc_type),
        axes,
        atts,
        info: None,
        path,
    })
}

/// Whether elements of a type point to something.
fn has_pointers(meta: &Meta<'_>, nc_type: i32) -> bool {
    match meta.user_type(nc_type).map(|ty| &ty.class) {
        Ok(UserClass::Compound(fields)) => {
            fields.iter().any(|field| has_pointers(meta, field.nc_type))
        }
        Ok(UserClass::Vlen { .. } | UserClass::String) => true,
        Ok(UserClass::Enum { .. } | UserClass::Opaque | UserClass::Unknown) => false,
        Err(_) => nc_type == NC_STRING,
    }
}
