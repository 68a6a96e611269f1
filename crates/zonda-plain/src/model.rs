//! Definitions as lists.

use std::borrow::Cow;
use std::collections::HashSet;

use zonda_convert::ByteOrder;
use zonda_format::{
    AttView, ClassicVar, Definitions, DimView, Dims, Error, Format, GroupId, GroupView, Result,
    VarRef, VarView, no_such, no_var,
};
use zonda_model::{
    DimId, ExtType, MAX_VAR_DIMS, NcError, VarId, check_name, default_fill, normalize_name,
    shown_name,
};

/// The attribute that overrides the default fill value.
pub(crate) const FILL_VALUE: &[u8] = b"_FillValue";

/// The definitions of a dataset.
#[derive(Clone, Debug)]
pub struct Model {
    /// Its format.
    pub format: Format,
    /// Number of records: the length of the unlimited dimension.
    pub records: u64,
    /// Dimensions, of which one at most is unlimited.
    pub dims: Vec<Dim>,
    /// Variables.
    pub vars: Vec<Var>,
    /// Global attributes.
    pub atts: Vec<Att>,
}

/// A dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dim {
    /// Name.
    pub name: Vec<u8>,
    /// Length; 0 for the unlimited one.
    pub len: u64,
}

/// A variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Var {
    /// Name.
    pub name: Vec<u8>,
    /// Type.
    pub ty: ExtType,
    /// Dimensions, slowest first.
    pub dims: Vec<DimId>,
    /// Whether elements never written are left as they are.
    pub no_fill: bool,
    /// Attributes.
    pub atts: Vec<Att>,
    /// The lengths of the dimensions, 0 for the unlimited one.
    pub(crate) shape: Vec<u64>,
}

/// An attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Att {
    /// Name.
    pub name: Vec<u8>,
    /// Type.
    pub ty: ExtType,
    /// The values, big-endian as in classic files.
    pub bytes: Vec<u8>,
}

/// Where a name is in a list.
pub(crate) fn find<'a>(name: &[u8], names: impl IntoIterator<Item = &'a [u8]>) -> Option<usize> {
    let name = normalize_name(name).ok()?;
    names.into_iter().position(|known| known == &*name)
}

/// The index in a list as a number of C.
pub(crate) fn number(index: usize) -> Result<i32> {
    let what = "more objects than a C int can number";
    i32::try_from(index).map_err(|_| Error::because(NcError::Inval, what))
}

/// The index in a list for a number of C.
pub(crate) fn index(number: i32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

impl Dim {
    /// Whether it can grow.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        self.len == 0
    }
}

impl Att {
    /// Number of values.
    #[must_use]
    pub fn n_values(&self) -> usize {
        self.bytes.len().checked_div(self.ty.size()).unwrap_or(0)
    }

    fn view(&self) -> AttView<'_> {
        let (name, len) = (Cow::Borrowed(&*self.name), self.n_values() as u64);
        AttView { name, nc_type: self.ty.nc_type(), len, bytes: Some(&self.bytes) }
    }
}

impl Var {
    /// A variable without attributes. Its lengths are known once the definitions are [complete](Model::complete).
    #[must_use]
    pub fn new(name: Vec<u8>, ty: ExtType, dims: Vec<DimId>, no_fill: bool) -> Var {
        Var { name, ty, dims, no_fill, atts: Vec::new(), shape: Vec::new() }
    }

    /// Whether its first dimension is the unlimited one.
    #[must_use]
    pub fn is_record(&self) -> bool {
        self.shape.first() == Some(&0)
    }

    /// Its lengths where there are so many records.
    #[must_use]
    pub fn extent(&self, records: u64) -> Vec<u64> {
        self.shape.iter().map(|&len| if len == 0 { records } else { len }).collect()
    }

    /// Bytes of so many of its records, or of all of it if it has none. `None` for more than a file can have.
    #[must_use]
    pub fn bytes(&self, records: u64) -> Option<u64> {
        let size = self.ty.size() as u64;
        let one = self.shape.iter().try_fold(size, |n, &len| n.checked_mul(len.max(1)))?;
        let all = one.checked_mul(if self.is_record() { records } else { 1 })?;
        // There is room for a header, too.
        (all.max(one) < MOST_BYTES).then_some(all)
    }

    /// The value of an element that was never written, big-endian.
    ///
    /// # Errors
    /// `NC_EBADTYPE` for a `_FillValue` of another type or length than one.
    pub fn fill_value(&self) -> Result<Vec<u8>> {
        match self.atts.iter().find(|att| *att.name == *FILL_VALUE) {
            Some(att) if att.ty == self.ty && att.n_values() == 1 => Ok(att.bytes.clone()),
            Some(_) => {
                let what = "_FillValue must be one value of the variable's type";
                let text = format!("variable {}: {what}", shown_name(&self.name));
                Err(Error::with_text(NcError::BadType, text))
            }
            None => {
                let native: Vec<u8> =
                    default_fill(self.ty).into_iter().take(self.ty.size()).collect();
                Ok(in_order(native, ByteOrder::NATIVE, ByteOrder::Big))
            }
        }
    }
}

/// One element in another byte order.
pub(crate) fn in_order(mut element: Vec<u8>, from: ByteOrder, to: ByteOrder) -> Vec<u8> {
    if from != to {
        element.reverse();
    }
    element
}

/// More bytes than any variable or file can have.
const MOST_BYTES: u64 = 1 << 62;

impl Model {
    /// No definitions.
    #[must_use]
    pub fn new(format: Format) -> Model {
        Model { format, records: 0, dims: Vec::new(), vars: Vec::new(), atts: Vec::new() }
    }

    /// Computes what follows from definitions that were read, such as the lengths of variables. `PlainFile` does so
    /// with those that a format gives; a second time changes nothing.
    ///
    /// # Errors
    /// A text that says what is wrong with them.
    pub fn complete(mut self) -> std::result::Result<Model, String> {
        let names = |atts: &[Att]| atts.iter().map(|att| att.name.clone()).collect::<Vec<_>>();
        let mut lists: Vec<_> = self.vars.iter().map(|var| names(&var.atts)).collect();
        lists.push(names(&self.atts));
        lists.push(self.dims.iter().map(|dim| dim.name.clone()).collect());
        lists.push(self.vars.iter().map(|var| var.name.clone()).collect());
        for list in lists {
            let mut known = HashSet::new();
            for name in list {
                let shown = shown_name(&name);
                check_name(&name).map_err(|code| format!("name {shown:?}: {code}"))?;
                if !known.insert(name) {
                    return Err(format!("two of one kind are called {shown:?}"));
                }
            }
        }
        if self.dims.iter().filter(|dim| dim.is_unlimited()).count() > 1 {
            return Err("two dimensions are unlimited".to_owned());
        }
        for var in &mut self.vars {
            let fault = |what: &str| format!("variable {}: {what}", shown_name(&var.name));
            if var.dims.len() > MAX_VAR_DIMS {
                return Err(fault("too many dimensions"));
            }
            let lens = var.dims.iter().map(|dim| Some(self.dims.get(index(dim.0))?.len));
            let shape: Option<Vec<u64>> = lens.collect();
            var.shape = shape.ok_or_else(|| fault("it has a dimension that does not exist"))?;
            if var.shape.iter().skip(1).any(|&len| len == 0) {
                return Err(fault("its unlimited dimension is not the first"));
            }
            if var.bytes(self.records).is_none() {
                return Err(fault("more bytes than can lie in a file"));
            }
        }
        Ok(self)
    }

    pub(crate) fn dim(&self, id: DimId) -> Result<&Dim> {
        Ok(self.dims.get(index(id.0)).ok_or(NcError::BadDim)?)
    }

    pub(crate) fn var(&self, id: VarId) -> Result<&Var> {
        self.vars.get(index(id.0)).ok_or_else(|| no_var(id))
    }

    pub(crate) fn var_mut(&mut self, id: VarId) -> Result<&mut Var> {
        self.vars.get_mut(index(id.0)).ok_or_else(|| no_var(id))
    }

    pub(crate) fn atts(&self, owner: VarId) -> Result<&Vec<Att>> {
        if owner == VarId::GLOBAL { Ok(&self.atts) } else { Ok(&self.var(owner)?.atts) }
    }

    pub(crate) fn atts_mut(&mut self, owner: VarId) -> Result<&mut Vec<Att>> {
        if owner == VarId::GLOBAL { Ok(&mut self.atts) } else { Ok(&mut self.var_mut(owner)?.atts) }
    }

    /// The attribute of that name, and its number.
    pub(crate) fn att(&self, owner: VarId, name: &[u8]) -> Result<(usize, &Att)> {
        let atts = self.atts(owner)?;
        let found = find(name, atts.iter().map(|att| &*att.name));
        let found = found.and_then(|index| Some((index, atts.get(index)?)));
        found.ok_or_else(|| no_such(NcError::NotAtt, "attribute", name))
    }
}

/// Names are looked for one after the other: formats with many of them need definitions of their own.
impl Definitions for Model {
    fn format(&self) -> Format {
        self.format
    }

    fn group(&self, group: GroupId) -> Result<GroupView<'_>> {
        if group != GroupId::ROOT {
            return Err(NcError::BadGrpId.into());
        }
        let (n_vars, dims) = (self.vars.len(), Dims::First(self.dims.len()));
        Ok(GroupView { name: b"/", parent: None, children: &[], types: &[], n_vars, dims })
    }

    fn dim(&self, id: DimId) -> Result<DimView<'_>> {
        let dim = Model::dim(self, id)?;
        let is_unlimited = dim.is_unlimited();
        let len = if is_unlimited { self.records } else { dim.len };
        Ok(DimView { name: &dim.name, len, is_unlimited })
    }

    fn find_dim(&self, _group: GroupId, name: &[u8]) -> Result<DimId> {
        let found = find(name, self.dims.iter().map(|dim| &*dim.name));
        Ok(DimId(number(found.ok_or_else(|| no_such(NcError::BadDim, "dimension", name))?)?))
    }

    fn most_unlimited(&self) -> usize {
        1
    }

    fn n_records(&self) -> Option<u64> {
        Some(self.records)
    }

    fn var(&self, var: VarRef) -> Result<VarView<'_>> {
        let var = Model::var(self, var.var)?;
        let (no_fill, is_record) = (var.no_fill, var.is_record());
        let slab_bytes = var.bytes(1).unwrap_or(u64::MAX);
        let classic = Some(ClassicVar { no_fill, begin: 0, slab_bytes, is_record });
        Ok(VarView { name: &var.name, nc_type: var.ty.nc_type(), dims: &var.dims, classic })
    }

    fn find_var(&self, _group: GroupId, name: &[u8]) -> Result<VarId> {
        let found = find(name, self.vars.iter().map(|var| &*var.name));
        Ok(VarId(number(found.ok_or_else(|| no_such(NcError::NotVar, "variable", name))?)?))
    }

    fn n_atts(&self, owner: VarRef) -> Result<usize> {
        Ok(self.atts(owner.var)?.len())
    }

    fn att(&self, owner: VarRef, index: usize) -> Result<AttView<'_>> {
        Ok(self.atts(owner.var)?.get(index).ok_or(NcError::NotAtt)?.view())
    }

    fn find_att(&self, owner: VarRef, name: &[u8]) -> Result<(i32, AttView<'_>)> {
        let (index, att) = Model::att(self, owner.var, name)?;
        Ok((number(index)?, att.view()))
    }
}
