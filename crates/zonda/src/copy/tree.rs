//! What is to be copied: the definitions of the source, as far as they were chosen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use zonda_format::{
    FIRST_USER_TYPE, Field, GroupId, Member, Meta, NC_STRING, UserClass, VarInfo, VarRef,
};
use zonda_model::{Answer, DimId, ExtType, NcError, VarId};

use super::options::{CopyOptions, Pattern};
use super::rules::Rules;
use super::salvage::{Lost, is_ours};
use crate::damaged::FaultKind;
use crate::dataset::Dataset;
use crate::error::{Error, Result};

/// Attributes that name variables which say where values are.
const NAMING: [&[u8]; 4] = [b"coordinates", b"bounds", b"climatology", b"grid_mapping"];

/// The dimension of an axis of which the file does not say which it is.
const NO_DIM: DimId = DimId(-1);

/// Definitions. Groups come after those around them, types after those they are made of.
#[derive(Debug)]
pub(crate) struct Tree {
    /// The first one is the root of the target.
    pub groups: Vec<GroupDef>,
    /// In the order of their numbers.
    pub dims: Vec<DimDef>,
    pub types: Vec<TypeDef>,
    /// What could not be read, where that is no error.
    pub lost: Vec<Lost>,
    /// What was read of a damaged file and may not be as it was, a line each.
    pub doubts: Vec<String>,
    /// Paths of variables that would be copied if netCDF had words for their types.
    pub absent: Vec<Vec<u8>>,
}

#[derive(Debug)]
pub(crate) struct GroupDef {
    pub source: GroupId,
    /// Index of the group around it.
    pub parent: Option<usize>,
    pub name: Vec<u8>,
    pub path: Vec<u8>,
    pub atts: Vec<AttDef>,
    pub vars: Vec<VarDef>,
}

#[derive(Debug)]
pub(crate) struct DimDef {
    pub source: DimId,
    /// Index of its group.
    pub group: usize,
    pub name: Vec<u8>,
    pub len: u64,
    pub is_unlimited: bool,
    /// The file does not have it: a variable does not say which its dimensions are.
    pub is_made_up: bool,
}

#[derive(Debug)]
pub(crate) struct TypeDef {
    pub source: i32,
    /// Index of its group.
    pub group: usize,
    pub name: Vec<u8>,
    pub size: usize,
    pub class: ClassDef,
}

/// What a user-defined type is.
#[derive(Debug)]
pub(crate) enum ClassDef {
    Compound(Vec<FieldDef>),
    Enum(i32, Vec<Member>),
    Opaque,
    Vlen(i32),
}

#[derive(Debug)]
pub(crate) struct FieldDef {
    pub name: Vec<u8>,
    pub offset: usize,
    pub nc_type: i32,
    pub dims: Vec<i32>,
}

#[derive(Debug)]
pub(crate) struct VarDef {
    pub source: VarRef,
    pub name: Vec<u8>,
    pub path: Vec<u8>,
    pub nc_type: i32,
    /// Bytes of an element in memory.
    pub elem: usize,
    /// Elements point to strings or sequences.
    pub has_pointers: bool,
    pub axes: Vec<AxisDef>,
    pub atts: Vec<AttDef>,
    /// How an HDF5 file stores it.
    pub info: Option<Arc<VarInfo>>,
}

/// A dimension of a variable.
#[derive(Clone, Debug)]
pub(crate) struct AxisDef {
    pub source: DimId,
    pub name: Vec<u8>,
    pub len: u64,
    pub is_unlimited: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct AttDef {
    pub name: Vec<u8>,
    pub nc_type: i32,
    pub len: u64,
}

impl VarDef {
    pub(crate) fn lens(&self) -> Vec<u64> {
        self.axes.iter().map(|axis| axis.len).collect()
    }

    /// Bytes of all elements in memory.
    pub(crate) fn bytes(&self) -> u64 {
        let lens = self.axes.iter();
        lens.fold(self.elem as u64, |bytes, axis| bytes.saturating_mul(axis.len))
    }

    /// Named as its only dimension.
    pub(crate) fn is_coordinate(&self) -> bool {
        matches!(&self.axes[..], [axis] if axis.name == self.name)
    }

    pub(crate) fn is_record(&self) -> bool {
        self.axes.first().is_some_and(|axis| axis.is_unlimited)
    }
}

/// Whether a type is none that a file defines.
pub(crate) fn is_atomic(nc_type: i32) -> bool {
    ExtType::from_nc_type(nc_type).is_some() || nc_type == NC_STRING
}

/// A path for messages.
pub(crate) fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

/// The path of what is in a group.
pub(crate) fn joined(path: &[u8], name: &[u8]) -> Vec<u8> {
    let slash: &[u8] = if path.ends_with(b"/") { b"" } else { b"/" };
    [path, slash, name].concat()
}

impl Tree {
    /// The definitions that a copy is asked to have.
    ///
    /// # Errors
    /// `NC_ENOGRP` and `NC_ENOTVAR` for what was chosen and is not there; what reading the
    /// definitions meets.
    pub(crate) fn read(
        source: &Dataset,
        options: &CopyOptions,
        rules: Option<&dyn Rules>,
    ) -> Result<Tree> {
        let root = match &options.group {
            Some(path) if rules.is_none() => find_group(source, path)?,
            _ => GroupId::ROOT,
        };
        let mut reader = GroupReader {
            source,
            rules,
            salvage: options.salvage,
            groups: Vec::new(),
            lost: Vec::new(),
            told: BTreeSet::new(),
        };
        let mut doubts = Vec::new();
        let mut absent = Vec::new();
        if options.salvage {
            doubts = reader.faults()?;
        } else {
            absent = absent_vars(source, options, rules)?;
        }
        reader.group(root, None)?;
        let GroupReader { mut groups, lost, .. } = reader;
        let chosen =
            if rules.is_none() { choose(source, &groups, &absent, options)? } else { None };
        let all = options.vars.is_empty() || rules.is_some();
        if let Some(chosen) = chosen {
            let had_vars: BTreeSet<GroupId> =
                groups.iter().filter(|group| !group.vars.is_empty()).map(|g| g.source).collect();
            for group in &mut groups {
                group.vars.retain(|var| chosen.contains(&var.path));
            }
            // One that was empty before stays, unless variables were asked for.
            groups = without_empty(groups, |group| all && !had_vars.contains(&group));
        }
        let index: BTreeMap<GroupId, usize> =
            groups.iter().enumerate().map(|(index, group)| (group.source, index)).collect();
        let mut dims = read_dims(source, &groups, &index, all)?;
        name_axes(&mut groups, &mut dims);
        let types = read_types(source, &groups, &index, all)?;
        let is_asked_for = |path: &Vec<u8>| {
            rules.is_some()
                || (!Pattern::any(&options.exclude, path)
                    && (options.vars.is_empty() || Pattern::any(&options.vars, path)))
        };
        absent.retain(is_asked_for);
        for group in &groups {
            let owner = VarRef { group: group.source, var: VarId::GLOBAL };
            absent_atts(source, owner, &mut doubts)?;
            for var in &group.vars {
                absent_atts(source, var.source, &mut doubts)?;
            }
        }
        Ok(Tree { groups, dims, types, lost, doubts, absent })
    }

    /// Leaves out attributes of types that netCDF has no words for, and says so.
    pub(crate) fn leave_out_atts(&mut self) -> Vec<String> {
        let types: BTreeSet<i32> = self.types.iter().map(|ty| ty.source).collect();
        let mut notes = Vec::new();
        let mut keep = |owner: &[u8], atts: &mut Vec<AttDef>| {
            atts.retain(|att| {
                let is_known = is_atomic(att.nc_type) || types.contains(&att.nc_type);
                if !is_known {
                    let (owner, name) = (shown(owner), shown(&att.name));
                    let why = "is of a type that netCDF has no words for";
                    notes.push(format!("attribute {owner}@{name} {why}, and left out"));
                }
                is_known
            });
        };
        for group in &mut self.groups {
            keep(&group.path, &mut group.atts);
            group.vars.iter_mut().for_each(|var| keep(&var.path, &mut var.atts));
        }
        notes
    }

    /// Leaves out variables of such types, and says so.
    pub(crate) fn leave_out_vars(&mut self) -> Vec<String> {
        let types: BTreeSet<i32> = self.types.iter().map(|ty| ty.source).collect();
        let why = "is of a type that netCDF has no words for";
        let absent = self.absent.drain(..);
        let mut notes: Vec<String> =
            absent.map(|path| format!("variable {} {why}, and left out", shown(&path))).collect();
        for group in &mut self.groups {
            group.vars.retain(|var| {
                let is_known = is_atomic(var.nc_type) || types.contains(&var.nc_type);
                if !is_known {
                    let path = shown(&var.path);
                    notes.push(format!("variable {path} {why}, and left out"));
                }
                is_known
            });
        }
        // Dimensions that were made up for them go, too.
        let axes = self.groups.iter().flat_map(|group| &group.vars).flat_map(|var| &var.axes);
        let used: BTreeSet<i32> = axes.map(|axis| axis.source.0).collect();
        self.dims.retain(|dim| !dim.is_made_up || used.contains(&dim.source.0));
        notes
    }

    pub(crate) fn vars(&self) -> impl Iterator<Item = &VarDef> {
        self.groups.iter().flat_map(|group| &group.vars)
    }

    /// Unlimited dimensions get the lengths that they have; none has length 0 otherwise.
    pub(crate) fn fix_unlimited(&mut self) {
        for dim in &mut self.dims {
            dim.is_unlimited = dim.len == 0;
        }
        let vars = self.groups.iter_mut().flat_map(|group| &mut group.vars);
        for axis in vars.flat_map(|var| &mut var.axes) {
            axis.is_unlimited = axis.len == 0;
        }
    }
}

/// Paths of variables that the definitions of the source lack, since netCDF has no words for their types: those in the group
/// that is copied, and that the rules want.
fn absent_vars(
    source: &Dataset,
    options: &CopyOptions,
    rules: Option<&dyn Rules>,
) -> Result<Vec<Vec<u8>>> {
    let mut absent = Vec::new();
    for fault in source.faults()? {
        let path = fault.path.into_bytes();
        let is_wanted = match rules {
            Some(rules) => rules.has_var(&path),
            None => is_within(&path, options.group.as_deref().unwrap_or_default()),
        };
        if matches!(fault.what, FaultKind::NoWords(_)) && is_wanted {
            absent.push(path);
        }
    }
    Ok(absent)
}

/// Whether a path is below a group's.
fn is_within(path: &[u8], group: &[u8]) -> bool {
    let trimmed =
        |path: &[u8]| path.strip_prefix(b"/").map_or_else(|| path.to_vec(), <[u8]>::to_vec);
    let (path, mut group) = (trimmed(path), trimmed(group));
    if !group.is_empty() && !group.ends_with(b"/") {
        group.push(b'/');
    }
    path.starts_with(&group)
}

/// Notes attributes that the definitions of the source lack for the same reason.
fn absent_atts(source: &Dataset, owner: VarRef, notes: &mut Vec<String>) -> Result<()> {
    for error in source.att_faults(owner)? {
        if error.answer() == Answer::Unrepresentable {
            notes.push(format!("{}; it is left out", error));
        }
    }
    Ok(())
}

fn find_group(source: &Dataset, path: &[u8]) -> Result<GroupId> {
    let mut group = GroupId::ROOT;
    for name in path.split(|&byte| byte == b'/').filter(|name| !name.is_empty()) {
        let found = source.in_group(group, |meta| meta.find_group(name))?;
        group = found.map_err(|_| {
            let text = format!("there is no group {}", shown(path));
            Error::with_text(NcError::NoGrp, text).at(source.path())
        })?;
    }
    Ok(group)
}

/// Reads groups with their variables.
struct GroupReader<'a> {
    source: &'a Dataset,
    rules: Option<&'a dyn Rules>,
    /// What cannot be read is left out.
    salvage: bool,
    groups: Vec<GroupDef>,
    lost: Vec<Lost>,
    /// Paths of what is in `lost` already.
    told: BTreeSet<String>,
}

impl GroupReader<'_> {
    /// Takes what opening the damaged file passed over; gives what may not be as it was.
    fn faults(&mut self) -> Result<Vec<String>> {
        let mut doubts = Vec::new();
        for fault in self.source.faults()? {
            match fault.what {
                FaultKind::Damaged(error) => {
                    self.lost.push(Lost::whole(fault.path.as_bytes(), &error));
                    self.told.insert(fault.path);
                }
                FaultKind::NoWords(what) => {
                    let path = fault.path;
                    doubts.push(format!("{path}: netCDF has no words for {what}; left out"));
                }
                FaultKind::Doubtful(why) => doubts.push(format!("{}: {why}", fault.path)),
            }
        }
        Ok(doubts)
    }

    fn group(&mut self, id: GroupId, parent: Option<usize>) -> Result<()> {
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

    /// What was read; `None` where that failed and is no error.
    fn or_lost<T>(&mut self, path: &[u8], read: Result<T>) -> Result<Option<T>> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(error) if self.salvage && !is_ours(&error) => {
                if !self.told.contains(&shown(path)) {
                    self.lost.push(Lost::whole(path, &error));
                }
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Tells of the attributes of a damaged file that are not shown.
    fn att_faults(&mut self, owner: VarRef, path: &[u8]) {
        // Where none can be told of, the attributes themselves say why.
        for error in self.source.att_faults(owner).unwrap_or_default() {
            let lost = Lost::whole(path, &error);
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
            return Err(super::define::fault("variable", &path, why));
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

/// Paths of the variables that are to be copied; `None` for all.
fn choose(
    source: &Dataset,
    groups: &[GroupDef],
    absent: &[Vec<u8>],
    options: &CopyOptions,
) -> Result<Option<BTreeSet<Vec<u8>>>> {
    if options.vars.is_empty() && options.exclude.is_empty() {
        return Ok(None);
    }
    let all = || groups.iter().flat_map(|group| &group.vars);
    for pattern in options.vars.iter().chain(&options.exclude) {
        let is_absent = || absent.iter().any(|path| pattern.matches(path));
        if !all().any(|var| pattern.matches(&var.path)) && !is_absent() {
            let text = format!("there is no variable {}", shown(pattern.text()));
            return Err(Error::with_text(NcError::NotVar, text).at(source.path()));
        }
    }
    let mut chosen = BTreeSet::new();
    let mut next: Vec<&VarDef> = match options.vars.is_empty() {
        true => all().collect(),
        false => all().filter(|var| Pattern::any(&options.vars, &var.path)).collect(),
    };
    let closes = !options.vars.is_empty();
    while let Some(var) = next.pop() {
        if Pattern::any(&options.exclude, &var.path) || !chosen.insert(var.path.clone()) {
            continue;
        }
        if closes {
            for name in named_by(source, var)? {
                next.extend(nearest(groups, var, &name));
            }
        }
    }
    Ok(Some(chosen))
}

/// Names of what says where the values of a variable are.
fn named_by(source: &Dataset, var: &VarDef) -> Result<Vec<Vec<u8>>> {
    let mut names: Vec<Vec<u8>> = var.axes.iter().map(|axis| axis.name.clone()).collect();
    for att in var.atts.iter().filter(|att| NAMING.contains(&&*att.name)) {
        let text = match (ExtType::from_nc_type(att.nc_type), att.nc_type) {
            (Some(ExtType::Char), _) | (_, NC_STRING) => {
                super::atts::text(source, var.source, att)?
            }
            _ => continue,
        };
        let words = text.split(u8::is_ascii_whitespace);
        let words = words.map(|word| word.strip_suffix(b":").unwrap_or(word));
        names.extend(words.filter(|word| !word.is_empty()).map(<[u8]>::to_vec));
    }
    Ok(names)
}

/// The variable of that name in the group of another one, or in the nearest group around it.
fn nearest<'g>(groups: &'g [GroupDef], of: &VarDef, name: &[u8]) -> Option<&'g VarDef> {
    let mut at = groups.iter().position(|group| group.source == of.source.group);
    while let Some(index) = at {
        let found = groups[index].vars.iter().find(|var| var.name == name);
        if found.is_some() {
            return found;
        }
        at = groups[index].parent;
    }
    None
}

/// Groups that have variables or stay without, and those around them.
fn without_empty(groups: Vec<GroupDef>, stays: impl Fn(GroupId) -> bool) -> Vec<GroupDef> {
    let mut kept = vec![false; groups.len()];
    for index in 0..groups.len() {
        let is_wanted = !groups[index].vars.is_empty() || stays(groups[index].source);
        let mut at = is_wanted.then_some(index);
        while let Some(index) = at.filter(|&index| !kept[index]) {
            kept[index] = true;
            at = groups[index].parent;
        }
    }
    kept[0] = true;
    let mut places = vec![0; groups.len()];
    let mut out: Vec<GroupDef> = Vec::new();
    for (index, mut group) in groups.into_iter().enumerate().filter(|(index, _)| kept[*index]) {
        group.parent = group.parent.map(|parent| places[parent]);
        places[index] = out.len();
        out.push(group);
    }
    out
}

/// Dimensions: all of the groups that are copied, or only those that variables have; and those that
/// variables have of other groups, which go to the root.
fn read_dims(
    source: &Dataset,
    groups: &[GroupDef],
    index: &BTreeMap<GroupId, usize>,
    all: bool,
) -> Result<Vec<DimDef>> {
    let axes = groups.iter().flat_map(|group| &group.vars).flat_map(|var| &var.axes);
    let used: BTreeSet<i32> = axes.map(|axis| axis.source.0).collect();
    let mut dims = Vec::new();
    for (group, home) in all_groups(source, index)? {
        source.in_group(group, |meta| {
            for id in meta.dim_ids() {
                let wanted = (all && home.is_some()) || used.contains(&id.0);
                let dim = meta.dim(id)?;
                if wanted {
                    dims.push(DimDef {
                        source: id,
                        group: home.unwrap_or(0),
                        name: dim.name.to_vec(),
                        len: dim.len,
                        is_unlimited: dim.is_unlimited,
                        is_made_up: false,
                    });
                }
            }
            Ok::<_, Error>(())
        })??;
    }
    dims.sort_by_key(|dim| dim.source.0);
    Ok(dims)
}

/// Gives dimensions to axes of which the file does not say what they are.
fn name_axes(groups: &mut [GroupDef], dims: &mut Vec<DimDef>) {
    let mut taken: BTreeSet<Vec<u8>> = dims.iter().map(|dim| dim.name.clone()).collect();
    let (mut id, mut number) = (i32::MAX, 0u32);
    for (group, def) in groups.iter_mut().enumerate() {
        let axes = def.vars.iter_mut().flat_map(|var| &mut var.axes);
        for axis in axes.filter(|axis| axis.source == NO_DIM) {
            let name = loop {
                let name = format!("phony_dim_{number}").into_bytes();
                number += 1;
                if taken.insert(name.clone()) {
                    break name;
                }
            };
            (axis.source, axis.name) = (DimId(id), name.clone());
            dims.push(DimDef {
                source: DimId(id),
                group,
                name,
                len: axis.len,
                is_unlimited: false,
                is_made_up: true,
            });
            id -= 1;
        }
    }
}

/// All groups of the source, and where they are among those that are copied.
fn all_groups(
    source: &Dataset,
    index: &BTreeMap<GroupId, usize>,
) -> Result<Vec<(GroupId, Option<usize>)>> {
    let mut found = Vec::new();
    let mut next = vec![GroupId::ROOT];
    while let Some(group) = next.pop() {
        found.push((group, index.get(&group).copied()));
        next.extend(source.in_group(group, |meta| meta.groups().to_vec())?);
    }
    Ok(found)
}

/// Types: those of the groups that are copied, or only those in use.
fn read_types(
    source: &Dataset,
    groups: &[GroupDef],
    index: &BTreeMap<GroupId, usize>,
    all: bool,
) -> Result<Vec<TypeDef>> {
    let mut used = Vec::new();
    for group in groups {
        used.extend(group.atts.iter().map(|att| att.nc_type));
        for var in &group.vars {
            used.push(var.nc_type);
            used.extend(var.atts.iter().map(|att| att.nc_type));
        }
    }
    source.in_group(GroupId::ROOT, |meta| {
        let mut types = Vec::new();
        let mut seen = BTreeSet::new();
        if all {
            for (ty, id) in meta.types().zip(FIRST_USER_TYPE..) {
                if index.contains_key(&ty.group) {
                    used.push(id);
                }
            }
        }
        used.sort_unstable();
        for &id in &used {
            add_type(meta, id, index, &mut seen, &mut types);
        }
        types
    })
}

/// Adds a type behind those that it is made of. What the model has no words for is left out: it is
/// found where a variable has it.
fn add_type(
    meta: &Meta<'_>,
    id: i32,
    index: &BTreeMap<GroupId, usize>,
    seen: &mut BTreeSet<i32>,
    types: &mut Vec<TypeDef>,
) {
    let Ok(ty) = meta.user_type(id) else { return };
    if !seen.insert(id) {
        return;
    }
    let class = match &ty.class {
        UserClass::Compound(_) if !meta.is_whole_type(id) => return,
        UserClass::Compound(fields) => {
            fields.iter().for_each(|field| add_type(meta, field.nc_type, index, seen, types));
            // Text is shown as its first character, but all of it is there.
            let lens = meta.text_lens(id).into_iter().chain(std::iter::repeat(1));
            let field = |(field, len): (&Field, usize)| FieldDef {
                name: field.name.to_vec(),
                offset: field.offset,
                nc_type: field.nc_type,
                dims: match i32::try_from(len) {
                    Ok(len) if len > 1 => [&field.dims[..], &[len]].concat(),
                    _ => field.dims.clone(),
                },
            };
            ClassDef::Compound(fields.iter().zip(lens).map(field).collect())
        }
        UserClass::Enum { base, members } => ClassDef::Enum(*base, members.clone()),
        UserClass::Opaque => ClassDef::Opaque,
        UserClass::Vlen { base } if *base != 0 => {
            add_type(meta, *base, index, seen, types);
            ClassDef::Vlen(*base)
        }
        UserClass::Vlen { .. } | UserClass::String | UserClass::Unknown => return,
    };
    let parts: Vec<i32> = match &class {
        ClassDef::Compound(fields) => fields.iter().map(|field| field.nc_type).collect(),
        ClassDef::Vlen(base) => vec![*base],
        ClassDef::Enum(..) | ClassDef::Opaque => Vec::new(),
    };
    let is_known = |part: &i32| is_atomic(*part) || types.iter().any(|ty| ty.source == *part);
    if !parts.iter().all(is_known) {
        return;
    }
    let group = index.get(&ty.group).copied().unwrap_or(0);
    types.push(TypeDef { source: id, group, name: ty.name.to_vec(), size: ty.size, class });
}
