//! The definitions of a classic file as they stand in memory.
//!
//! Short names and shapes lie inside their objects, and attributes stay in the bytes they were read
//! from: opening a file of a thousand variables would otherwise spend most of its time in the
//! allocator.

use smallvec::SmallVec;
use zonda_format::{Format, Layout};
use zonda_model::{DimId, ExtType, VarId, normalize_name};

use crate::atts::{AttRef, Atts};
use crate::error::{ClassicError, shown};
use crate::names::NameIndex;

/// Which of the three classic formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// CDF-1, "classic": 32-bit offsets and counts.
    Cdf1,
    /// CDF-2, "64-bit offset".
    Cdf2,
    /// CDF-5, "64-bit data": 64-bit counts and five more types.
    Cdf5,
}

impl Version {
    /// The version byte after `CDF`.
    #[must_use]
    pub fn byte(self) -> u8 {
        match self {
            Version::Cdf1 => 1,
            Version::Cdf2 => 2,
            Version::Cdf5 => 5,
        }
    }

    /// Name for messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Version::Cdf1 => "CDF-1",
            Version::Cdf2 => "CDF-2",
            Version::Cdf5 => "CDF-5",
        }
    }

    /// The version that a format is, if it is a classic one.
    #[must_use]
    pub fn of(format: Format) -> Option<Version> {
        match format {
            Format::Cdf1 => Some(Version::Cdf1),
            Format::Cdf2 => Some(Version::Cdf2),
            Format::Cdf5 => Some(Version::Cdf5),
            Format::NetCdf4 | Format::NetCdf4Classic | Format::Other(_) => None,
        }
    }

    /// What netCDF calls it.
    #[must_use]
    pub fn format(self) -> Format {
        match self {
            Version::Cdf1 => Format::Cdf1,
            Version::Cdf2 => Format::Cdf2,
            Version::Cdf5 => Format::Cdf5,
        }
    }

    /// Bytes of a count (`NON_NEG`).
    pub(crate) fn count_len(self) -> u64 {
        if self == Version::Cdf5 { 8 } else { 4 }
    }

    /// The type with code `nc_type`, if this format has it.
    pub(crate) fn type_of(self, nc_type: i32) -> Result<ExtType, ClassicError> {
        ExtType::from_nc_type(nc_type)
            .filter(|&ty| self == Version::Cdf5 || ty <= ExtType::Double)
            .ok_or(ClassicError::BadType { code: nc_type, format: self.name() })
    }
}

/// A name, and how long it may become in data mode.
///
/// The reference keeps the space of a name that was shortened in data mode, so that it may be
/// renamed back. Zonda remembers the space but writes the short name, without the NULs that the
/// reference leaves inside the counted length.
#[derive(Clone, Debug, Eq)]
pub struct Name {
    bytes: SmallVec<[u8; 24]>,
    space: usize,
}

impl Name {
    /// A name read from a field of `space` bytes.
    pub(crate) fn in_space(bytes: &[u8], space: usize) -> Name {
        Name { bytes: SmallVec::from_slice(bytes), space: space.max(bytes.len()) }
    }

    /// Whether a name of `len` bytes has room without moving anything.
    pub(crate) fn has_room_for(&self, len: usize) -> bool {
        len <= self.space
    }

    /// Takes another name; in data mode the space stays as it is.
    pub(crate) fn replace(&mut self, name: Name, in_define: bool) {
        let space = if in_define { name.space } else { self.space };
        *self = Name { bytes: name.bytes, space };
    }
}

impl From<&[u8]> for Name {
    fn from(bytes: &[u8]) -> Name {
        Name::in_space(bytes, 0)
    }
}

impl std::ops::Deref for Name {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Name) -> bool {
        self.bytes == other.bytes
    }
}

/// A dimension. Length 0 is the record dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dim {
    /// Name in normalisation form C (from a file: any bytes up to the first NUL).
    pub name: Name,
    /// Length, 0 for the record dimension.
    pub len: u64,
}

/// A variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Var {
    /// Name.
    pub name: Name,
    /// Dimensions, slowest first.
    pub dims: SmallVec<[DimId; 4]>,
    /// Lengths of these dimensions, 0 for the record dimension.
    pub shape: SmallVec<[u64; 4]>,
    /// Attributes in order of definition.
    pub atts: Atts,
    /// External type.
    pub ty: ExtType,
    /// Byte offset of the first element, or of this variable's part of the first record.
    pub begin: u64,
    /// Whether unwritten elements are left as they are. Not stored in the file.
    pub no_fill: bool,
}

impl Var {
    /// Whether the first dimension is the record dimension.
    #[must_use]
    pub fn is_record(&self) -> bool {
        self.shape.first() == Some(&0)
    }

    /// The shape of one record, or of the whole variable where it has no records.
    pub(crate) fn slab_shape(&self) -> &[u64] {
        match self.shape.split_first() {
            Some((0, rest)) => rest,
            _ => &self.shape,
        }
    }

    /// Elements of one record, or of the whole variable; saturating.
    pub(crate) fn slab_elems(&self) -> u64 {
        self.slab_shape().iter().fold(1u64, |product, &len| product.saturating_mul(len))
    }

    /// Bytes of one record, or of the whole variable, without padding; saturating.
    #[must_use]
    pub fn slab_bytes(&self) -> u64 {
        self.slab_elems().saturating_mul(self.ty.size() as u64)
    }

    /// `vsize` of the grammar as it is used for offsets: `slab_bytes` rounded up to 4; saturating.
    #[must_use]
    pub fn padded_bytes(&self) -> u64 {
        round_up(self.slab_bytes(), 4)
    }
}

/// Rounds up to a multiple; saturating at the last multiple that fits.
pub(crate) fn round_up(value: u64, multiple: u64) -> u64 {
    match value.checked_next_multiple_of(multiple.max(1)) {
        Some(rounded) => rounded,
        None => value,
    }
}

/// All definitions of a file.
#[derive(Clone, Debug)]
pub struct Header {
    /// The format.
    pub version: Version,
    /// Dimensions by id.
    pub dims: Vec<Dim>,
    /// Global attributes.
    pub atts: Atts,
    /// Variables by id.
    pub vars: Vec<Var>,
    /// Where things lie; computed when the file is opened and at enddef.
    pub layout: Layout,
    dim_names: NameIndex,
    var_names: NameIndex,
}

impl Header {
    /// The header of an empty file.
    #[must_use]
    pub fn new(version: Version) -> Header {
        Header {
            version,
            dims: Vec::new(),
            atts: Atts::default(),
            vars: Vec::new(),
            layout: Layout::default(),
            dim_names: NameIndex::default(),
            var_names: NameIndex::default(),
        }
    }

    /// The record dimension.
    #[must_use]
    pub fn record_dim(&self) -> Option<DimId> {
        let at = self.dims.iter().position(|dim| dim.len == 0)?;
        i32::try_from(at).ok().map(DimId)
    }

    /// The dimension with that id.
    ///
    /// # Errors
    /// [`ClassicError::NoDim`].
    pub fn dim(&self, id: DimId) -> Result<&Dim, ClassicError> {
        let index = usize::try_from(id.0).ok();
        match index.and_then(|i| self.dims.get(i)) {
            Some(found) => Ok(found),
            None => Err(ClassicError::NoDim(id.0)),
        }
    }

    /// The variable with that id.
    ///
    /// # Errors
    /// [`ClassicError::NoVar`].
    pub fn var(&self, id: VarId) -> Result<&Var, ClassicError> {
        // An error that is made before and dropped costs each small call 15 instructions.
        let index = usize::try_from(id.0).ok();
        match index.and_then(|i| self.vars.get(i)) {
            Some(found) => Ok(found),
            None => Err(ClassicError::NoVar(id.0)),
        }
    }

    /// Takes out all variables.
    pub(crate) fn clear_vars(&mut self) {
        self.vars.clear();
        self.var_names = NameIndex::default();
    }

    pub(crate) fn var_mut(&mut self, id: VarId) -> Result<&mut Var, ClassicError> {
        let index = usize::try_from(id.0).ok();
        match index.and_then(|i| self.vars.get_mut(i)) {
            Some(found) => Ok(found),
            None => Err(ClassicError::NoVar(id.0)),
        }
    }

    /// Id of the dimension with that name, which is normalised first.
    ///
    /// # Errors
    /// [`ClassicError::NoDimNamed`].
    pub fn find_dim(&self, name: &[u8]) -> Result<DimId, ClassicError> {
        self.dim_named(name).ok_or_else(|| ClassicError::NoDimNamed(shown(name)))
    }

    /// [`Header::find_dim`] for those who do not mind that there is none.
    pub(crate) fn dim_named(&self, name: &[u8]) -> Option<DimId> {
        let name = normalize_name(name).ok()?;
        let found = self.dim_names.find(&name, self.dims.len(), dim_names(&self.dims))?;
        i32::try_from(found).ok().map(DimId)
    }

    /// Id of the variable with that name, which is normalised first.
    ///
    /// # Errors
    /// [`ClassicError::NoVarNamed`].
    pub fn find_var(&self, name: &[u8]) -> Result<VarId, ClassicError> {
        self.var_named(name).ok_or_else(|| ClassicError::NoVarNamed(shown(name)))
    }

    /// [`Header::find_var`] for those who do not mind that there is none.
    pub(crate) fn var_named(&self, name: &[u8]) -> Option<VarId> {
        let name = normalize_name(name).ok()?;
        let found = self.var_names.find(&name, self.vars.len(), var_names(&self.vars))?;
        i32::try_from(found).ok().map(VarId)
    }

    /// The attributes of a variable or, for [`VarId::GLOBAL`], of the file.
    ///
    /// # Errors
    /// [`ClassicError::NoVar`].
    pub fn atts(&self, owner: VarId) -> Result<&Atts, ClassicError> {
        if owner == VarId::GLOBAL { Ok(&self.atts) } else { Ok(&self.var(owner)?.atts) }
    }

    pub(crate) fn atts_mut(&mut self, owner: VarId) -> Result<&mut Atts, ClassicError> {
        if owner == VarId::GLOBAL { Ok(&mut self.atts) } else { Ok(&mut self.var_mut(owner)?.atts) }
    }

    /// The attribute with that name, which is normalised first, and its position.
    ///
    /// # Errors
    /// [`ClassicError::NoVar`], [`ClassicError::NoAtt`].
    #[inline]
    pub fn att(&self, owner: VarId, name: &[u8]) -> Result<(usize, AttRef<'_>), ClassicError> {
        self.atts(owner)?
            .find(name)
            .ok_or_else(|| ClassicError::NoAtt { what: shown(name), owner: self.owner_name(owner) })
    }

    /// Position of the attribute with that name for those who do not mind that there is none.
    pub(crate) fn att_named(
        &self,
        owner: VarId,
        name: &[u8],
    ) -> Result<Option<usize>, ClassicError> {
        Ok(self.atts(owner)?.find(name).map(|(index, _)| index))
    }

    /// Position of the attribute with that name, which is normalised first.
    ///
    /// # Errors
    /// As [`Header::att`].
    pub fn find_att(&self, owner: VarId, name: &[u8]) -> Result<usize, ClassicError> {
        Ok(self.att(owner, name)?.0)
    }

    pub(crate) fn owner_name(&self, owner: VarId) -> String {
        match self.var(owner) {
            Ok(var) => format!("variable {}", shown(&var.name)),
            Err(_) => "the file".to_owned(),
        }
    }

    pub(crate) fn push_dim(&mut self, dim: Dim) {
        self.dims.push(dim);
        self.dim_names.push(self.dims.len().saturating_sub(1), dim_names(&self.dims));
    }

    pub(crate) fn push_var(&mut self, var: Var) {
        self.vars.push(var);
        self.var_names.push(self.vars.len().saturating_sub(1), var_names(&self.vars));
    }

    /// Gives dimension number `index`, which is there, another name; see [`Name::replace`].
    pub(crate) fn rename_dim(&mut self, index: usize, name: Name, in_define: bool) {
        self.dim_names.remove(index, dim_names(&self.dims));
        if let Some(dim) = self.dims.get_mut(index) {
            dim.name.replace(name, in_define);
        }
        self.dim_names.push(index, dim_names(&self.dims));
    }

    /// Gives variable number `index`, which is there, another name; see [`Name::replace`].
    pub(crate) fn rename_var(&mut self, index: usize, name: Name, in_define: bool) {
        self.var_names.remove(index, var_names(&self.vars));
        if let Some(var) = self.vars.get_mut(index) {
            var.name.replace(name, in_define);
        }
        self.var_names.push(index, var_names(&self.vars));
    }
}

/// The names of dimensions by their ids, for a [`NameIndex`].
fn dim_names<'a>(dims: &'a [Dim]) -> impl Fn(usize) -> Option<&'a [u8]> {
    move |id| dims.get(id).map(|dim| &*dim.name)
}

/// The names of variables by their ids, for a [`NameIndex`].
fn var_names<'a>(vars: &'a [Var]) -> impl Fn(usize) -> Option<&'a [u8]> {
    move |id| vars.get(id).map(|var| &*var.name)
}
