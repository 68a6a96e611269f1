//! The definitions of a file, as all formats show theirs.

use zonda_format::{
    AttView, Definitions, DimView, Dims, Error, Format, GroupView, Result, VarView, no_such, no_var,
};
use zonda_model::{DimId, ExtType, NcError, VarId, sought_name};

use crate::element_form::NC_STRING;
use crate::fault::refuse_if;
use crate::file::Nc4File;
use crate::model::{Dim, Group, GroupId, Model, TypeEntry, UserType, Var};
use crate::{Nc4Error, VarRef};

/// The model and a group of it.
fn model_of(file: &Nc4File, group: GroupId) -> Result<(&Model, &Group)> {
    let model = file.model()?;
    Ok((model, model.group(group).ok_or(NcError::BadGrpId)?))
}

fn dim_of(model: &Model, id: DimId) -> Result<&Dim> {
    let none = || Error::with_text(NcError::BadDim, format!("no dimension {}", id.0));
    model.dim(id).ok_or_else(none)
}

fn var_of(file: &Nc4File, VarRef { group, var }: VarRef) -> Result<(&Model, &Var)> {
    let (model, group) = model_of(file, group)?;
    let found = usize::try_from(var.0).ok().and_then(|id| group.vars.get(id));
    Ok((model, found.ok_or_else(|| no_var(var))?))
}

impl Definitions for Nc4File {
    fn format(&self) -> Format {
        match self.model() {
            Ok(model) if model.is_classic => Format::NetCdf4Classic,
            _ => Format::NetCdf4,
        }
    }

    fn group(&self, group: GroupId) -> Result<GroupView<'_>> {
        let (_, group) = model_of(self, group)?;
        Ok(GroupView {
            name: &group.name,
            parent: group.parent,
            children: &group.children,
            types: &group.types,
            n_vars: group.vars.len(),
            dims: Dims::These(&group.dims),
        })
    }

    fn check_group(&self, group: GroupId) -> Result<()> {
        model_of(self, group)?;
        Ok(())
    }

    fn n_vars(&self, group: GroupId) -> usize {
        model_of(self, group).map_or(0, |(_, group)| group.vars.len())
    }

    fn dims(&self, group: GroupId) -> Dims<'_> {
        model_of(self, group).map_or(Dims::First(0), |(_, group)| Dims::These(&group.dims))
    }

    fn dim(&self, id: DimId) -> Result<DimView<'_>> {
        let Dim { name, len, is_unlimited, .. } = dim_of(self.model()?, id)?;
        Ok(DimView { name, len: *len, is_unlimited: *is_unlimited })
    }

    fn find_dim(&self, group: GroupId, name: &[u8]) -> Result<DimId> {
        let (model, _) = model_of(self, group)?;
        refuse_if(name.contains(&b'/'), NcError::Inval)?;
        let name = sought_name(name, NcError::BadDim)?;
        let found = model.lineage_ids(group).find_map(|group| model.find_dim(group, &name));
        found.ok_or_else(|| no_such(NcError::BadDim, "dimension", &name))
    }

    fn var(&self, var: VarRef) -> Result<VarView<'_>> {
        let (_, var) = var_of(self, var)?;
        Ok(VarView { name: &var.name, nc_type: var.nc_type, dims: &var.dims, classic: None })
    }

    fn find_var(&self, group: GroupId, name: &[u8]) -> Result<VarId> {
        let name = sought_name(name, NcError::NotVar)?;
        let (model, inner) = model_of(self, group)?;
        let missing = || match model.gap(group, &name) {
            // What the link leads to may be a variable.
            Some(gap) => Error::with_text(NcError::NotVar, gap.to_string()),
            None => no_such(NcError::NotVar, "variable", &name),
        };
        inner.find_var(&name).ok_or_else(missing)
    }

    fn var_shape(&self, var: VarRef, out: &mut [usize]) -> Result<usize> {
        let (model, var) = var_of(self, var)?;
        for (out, &dim) in out.iter_mut().zip(&var.dims) {
            *out = usize::try_from(dim_of(model, dim)?.len).unwrap_or(usize::MAX);
        }
        Ok(var.dims.len())
    }

    fn n_atts(&self, owner: VarRef) -> Result<usize> {
        Ok(self.att_list(owner)?.len())
    }

    fn att(&self, owner: VarRef, index: usize) -> Result<AttView<'_>> {
        let view = self.att_list(owner)?.view(index);
        Ok(view.map_err(|fault| self.att_fault(owner, fault))?)
    }

    fn find_att(&self, owner: VarRef, name: &[u8]) -> Result<(i32, AttView<'_>)> {
        Ok(self.find_att_view(owner, name)?)
    }

    fn find_group(&self, group: GroupId, name: &[u8]) -> Result<GroupId> {
        let (model, _) = model_of(self, group)?;
        let name = sought_name(name, NcError::NoGrp)?;
        let found = model.find_child(group, &name);
        found.ok_or_else(|| no_such(NcError::NoGrp, "group", &name))
    }

    fn user_type(&self, nc_type: i32) -> Result<&UserType> {
        // Where definitions cannot be read, there is no type.
        let found = self.model().ok().and_then(|model| model.user_type(nc_type));
        Ok(&**found.ok_or(NcError::BadType)?)
    }

    fn n_types(&self) -> usize {
        self.model().map_or(0, |model| model.types.len())
    }

    fn find_type(&self, group: GroupId, name: &[u8]) -> Result<i32> {
        let (model, _) = model_of(self, group)?;
        let name = sought_name(name, NcError::BadType)?;
        let named = |group| model.find_type(group, &name);
        let near = model.lineage_ids(group).find_map(named);
        let all = (0..=u16::MAX).map(GroupId).zip(&model.groups);
        let any = || all.map(|(group, _)| group).find_map(named);
        near.or_else(any).ok_or_else(|| no_such(NcError::BadType, "type", &name))
    }

    fn is_whole_type(&self, nc_type: i32) -> bool {
        self.model().is_ok_and(|model| model.forms.shown_fields(nc_type).is_none())
    }

    fn text_lens(&self, nc_type: i32) -> Vec<usize> {
        let found = self.model().ok().and_then(|model| model.user_type(nc_type));
        found.map(TypeEntry::text_lens).unwrap_or_default()
    }

    fn var_fault(&self, var: VarRef) -> Option<Error> {
        let (model, found) = var_of(self, var).ok()?;
        let no_words = |what, code| {
            let object = model.var_path(var.group, found);
            Some(Nc4Error::Unrepresentable { object, what, code }.into())
        };
        let is_atomic = ExtType::from_nc_type(found.nc_type).is_some();
        if !is_atomic && found.nc_type != NC_STRING && model.user_type(found.nc_type).is_none() {
            return match self.var_info(var.group, var.var) {
                Err(error) => Some(error.into()),
                Ok(_) => {
                    let what = "netCDF cannot represent its type".to_owned();
                    no_words(what, NcError::BadType)
                }
            };
        }
        let axis = found.dims.iter().position(|&dim| model.dim(dim).is_none())?;
        let what = format!(
            "its dimension number {axis} is defined outside its group and the groups around it"
        );
        no_words(what, NcError::BadDim)
    }

    fn extent(&self, var: VarRef) -> Option<&[u64]> {
        Some(&var_of(self, var).ok()?.1.extent)
    }
}
