//! Groups: what is in them, and what is added to them.

use zonda_format::{GroupId, VarRef};
use zonda_model::{DimId, VarId};

use super::attribute::{self, AttributeValue, FromAttribute};
use super::error::{Result, TypedError, refused};
use super::file::File;
use super::value::Value;
use super::variable::Variable;
use crate::{Dataset, Meta};

/// A group of a file. The root group can be had from the [`File`] itself.
///
/// ```
/// use zonda::typed::{File, Group};
///
/// fn names(group: &Group<'_>, into: &mut Vec<String>) -> zonda::typed::Result<()> {
///     into.extend(group.variables()?.map(|variable| format!("{}/{}", group.path(), variable.name())));
///     group.groups()?.try_for_each(|inner| names(&inner, into))
/// }
/// # let folder = std::env::temp_dir().join(format!("zonda-group-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("groups.nc");
/// let file = File::create(&path)?;
/// let ocean = file.add_group("ocean")?;
/// ocean.add_variable::<f32>("level", &[])?;
/// let mut found = Vec::new();
/// names(&file.root(), &mut found)?;
/// assert_eq!(found, ["/ocean/level"]);
/// # file.close()?;
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Group<'f> {
    file: &'f File,
    id: GroupId,
}

/// A dimension as it is now.
///
/// ```
/// # use zonda::typed::Dimension;
/// fn grows(dimensions: &[Dimension]) -> bool {
///     dimensions.iter().any(|dimension| dimension.is_unlimited)
/// }
/// # assert!(!grows(&[]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// Name. What is not UTF-8 in it is replaced.
    pub name: String,
    /// Elements; of an unlimited one those that there are now.
    pub len: u64,
    /// Whether puts can make it longer.
    pub is_unlimited: bool,
    /// Number by which netCDF knows it.
    pub id: DimId,
}

/// A name as text.
pub(super) fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

pub(super) fn dimension(meta: &Meta<'_>, id: DimId) -> crate::Result<Dimension> {
    let dim = meta.dim(id)?;
    Ok(Dimension { name: text(dim.name), len: dim.len, is_unlimited: dim.is_unlimited, id })
}

impl<'f> Group<'f> {
    pub(super) fn new(file: &'f File, id: GroupId) -> Group<'f> {
        Group { file, id }
    }

    pub(super) fn file(&self) -> &'f File {
        self.file
    }

    pub(super) fn dataset(&self) -> &'f Dataset {
        self.file.dataset()
    }

    /// Number by which the dataset knows the group.
    ///
    /// See [`Group`].
    #[must_use]
    pub fn id(&self) -> GroupId {
        self.id
    }

    fn look<T>(&self, f: impl FnOnce(&Meta<'_>) -> crate::Result<T>) -> Result<T> {
        Ok(self.dataset().in_group(self.id, f)??)
    }

    /// What the dataset refused about something of that name in the group.
    #[cold]
    fn refused(&self, error: crate::Error, what: &str, name: &str) -> TypedError {
        refused(error, self.dataset(), what, &format!("{}/{name}", self.path()))
    }

    fn owner(&self) -> VarRef {
        VarRef::group(self.id)
    }

    /// Name; `/` for the root.
    ///
    /// See [`Group`].
    #[must_use]
    pub fn name(&self) -> String {
        self.dataset().in_group(self.id, |meta| text(meta.group_name())).unwrap_or_default()
    }

    /// Path from the root: empty for the root, `/ocean/deep` for others.
    ///
    /// See [`Group`].
    #[must_use]
    pub fn path(&self) -> String {
        let path = self.dataset().in_group(self.id, |meta| text(&meta.group_path()));
        path.ok().filter(|path| path != "/").unwrap_or_default()
    }

    /// The groups in it.
    ///
    /// See [`Group`].
    ///
    /// # Errors
    /// What reading the definitions meets.
    pub fn groups(&self) -> Result<impl Iterator<Item = Group<'f>> + use<'f>> {
        let ids = self.look(|meta| Ok(meta.groups().to_vec()))?;
        let file = self.file;
        Ok(ids.into_iter().map(move |id| Group::new(file, id)))
    }

    /// The group in it with that name.
    ///
    /// See [`Group`].
    ///
    /// # Errors
    /// `NC_ENOGRP`.
    pub fn group(&self, name: &str) -> Result<Group<'f>> {
        let found = self.dataset().in_group(self.id, |meta| meta.find_group(name.as_bytes()))?;
        let id = found.map_err(|error| self.refused(error, "group", name))?;
        Ok(Group::new(self.file, id))
    }

    /// The dimensions defined in it.
    ///
    /// See [`Group`].
    ///
    /// # Errors
    /// What reading the definitions meets.
    pub fn dimensions(&self) -> Result<Vec<Dimension>> {
        self.look(|meta| meta.dim_ids().map(|id| dimension(meta, id)).collect())
    }

    /// The dimension with that name: of this group, or of the nearest one around it.
    ///
    /// See [`Group`].
    ///
    /// # Errors
    /// `NC_EBADDIM`.
    pub fn dimension(&self, name: &str) -> Result<Dimension> {
        let found = self
            .dataset()
            .in_group(self.id, |meta| dimension(meta, meta.find_dim(name.as_bytes())?))?;
        found.map_err(|error| self.refused(error, "dimension", name))
    }

    /// The variables in it.
    ///
    /// See [`Group`].
    ///
    /// # Errors
    /// What reading the definitions meets.
    pub fn variables(&self) -> Result<impl Iterator<Item = Variable<'f>> + use<'f>> {
        let n = self.look(|meta| Ok(meta.n_vars()))?;
        let (file, group) = (self.file, self.id);
        let ids = (0..).map(VarId).take(n);
        Ok(ids.map(move |var| Variable::new(file, VarRef { group, var })))
    }

    /// The variable in it with that name.
    ///
    /// See [`Group`].
    ///
    /// # Errors
    /// `NC_ENOTVAR`.
    pub fn variable(&self, name: &str) -> Result<Variable<'f>> {
        let found = self.dataset().in_group(self.id, |meta| meta.find_var(name.as_bytes()))?;
        let var = found.map_err(|error| self.refused(error, "variable", name))?;
        Ok(Variable::new(self.file, VarRef { group: self.id, var }))
    }

    /// Names of its attributes.
    ///
    /// See [`FromAttribute`].
    ///
    /// # Errors
    /// What reading them meets.
    pub fn attribute_names(&self) -> Result<Vec<String>> {
        attribute::names(self.file, self.owner())
    }

    /// An attribute.
    ///
    /// See [`FromAttribute`].
    ///
    /// # Errors
    /// `NC_ENOTATT`; a type that cannot be had as `A`.
    pub fn attribute<A: FromAttribute>(&self, name: &str) -> Result<A> {
        attribute::get(self.file, self.owner(), name)
    }

    /// Writes an attribute, in the place of one of that name.
    ///
    /// See [`AttributeValue`].
    ///
    /// # Errors
    /// `NC_EPERM`, `NC_EBADNAME`; what the storage reports.
    pub fn put_attribute(&self, name: &str, value: impl Into<AttributeValue>) -> Result<()> {
        attribute::put(self.file, self.owner(), name, &value.into())
    }

    /// Adds a group.
    ///
    /// See [`Group`].
    ///
    /// # Errors
    /// `NC_ENAMEINUSE`, `NC_EBADNAME`; `NC_ENOTNC4` in a file that has no groups.
    pub fn add_group(&self, name: &str) -> Result<Group<'f>> {
        let id =
            self.file.define().and_then(|()| self.dataset().def_group(self.id, name.as_bytes()));
        let id = id.map_err(|error| self.refused(error, "group", name))?;
        Ok(Group::new(self.file, id))
    }

    /// Adds a dimension of `len` elements. One of 0 elements cannot be told from an unlimited one by netCDF, and is one.
    ///
    /// See [`Group`].
    ///
    /// # Errors
    /// `NC_ENAMEINUSE`, `NC_EBADNAME`; `NC_EDIMSIZE` for more than the format can have.
    pub fn add_dimension(&self, name: &str, len: usize) -> Result<Dimension> {
        let dataset = self.dataset();
        let id =
            self.file.define().and_then(|()| dataset.def_dim_in(self.id, name.as_bytes(), len));
        let id = id.map_err(|error| self.refused(error, "dimension", name))?;
        self.look(|meta| dimension(meta, id))
    }

    /// Adds a dimension that puts make longer.
    ///
    /// # Errors
    /// As [`Group::add_dimension`]; `NC_EUNLIMIT` where the format has no more than one.
    pub fn add_unlimited_dimension(&self, name: &str) -> Result<Dimension> {
        self.add_dimension(name, 0)
    }

    /// Adds a variable whose values `T` can hold, along these dimensions, slowest first.
    ///
    /// See [`Variable`].
    ///
    /// # Errors
    /// `NC_ENAMEINUSE`, `NC_EBADNAME`, `NC_EBADDIM`; `NC_EBADTYPE` for a type that the format has not.
    pub fn add_variable<T: Value>(&self, name: &str, dimensions: &[&str]) -> Result<Variable<'f>> {
        let nc_type = T::nc_type(self)?;
        let find = |name: &&str| Ok(self.dimension(name)?.id.0);
        let dims: Vec<i32> = dimensions.iter().map(find).collect::<Result<_>>()?;
        let dataset = self.dataset();
        let define = || dataset.def_var_in(self.id, name.as_bytes(), nc_type, &dims);
        let var = self.file.define().and_then(|()| define());
        let var = var.map_err(|error| self.refused(error, "variable", name))?;
        Ok(Variable::new(self.file, VarRef { group: self.id, var }))
    }
}

/// What a group can do, for the root group of a file.
macro_rules! of_root {
    ($($(#[$about:meta])* fn $name:ident $(<$T:ident: $Bound:ident>)? (&self $(, $arg:ident: $ty:ty)*) -> $out:ty;)*) => {
        impl File {
            $(
                $(#[$about])*
                pub fn $name $(<$T: $Bound>)? (&self $(, $arg: $ty)*) -> $out {
                    self.root().$name $(::<$T>)? ($($arg),*)
                }
            )*
        }
    };
}

of_root! {
    /// As [`Group::groups`], of the root group.
    ///
    /// # Errors
    /// As there.
    fn groups(&self) -> Result<impl Iterator<Item = Group<'_>>>;
    /// As [`Group::group`], of the root group.
    ///
    /// # Errors
    /// As there.
    fn group(&self, name: &str) -> Result<Group<'_>>;
    /// As [`Group::dimensions`], of the root group.
    ///
    /// # Errors
    /// As there.
    fn dimensions(&self) -> Result<Vec<Dimension>>;
    /// As [`Group::dimension`], of the root group.
    ///
    /// # Errors
    /// As there.
    fn dimension(&self, name: &str) -> Result<Dimension>;
    /// As [`Group::variables`], of the root group.
    ///
    /// # Errors
    /// As there.
    fn variables(&self) -> Result<impl Iterator<Item = Variable<'_>>>;
    /// As [`Group::variable`], of the root group.
    ///
    /// # Errors
    /// As there.
    fn variable(&self, name: &str) -> Result<Variable<'_>>;
    /// As [`Group::attribute_names`], of the root group.
    ///
    /// # Errors
    /// As there.
    fn attribute_names(&self) -> Result<Vec<String>>;
    /// As [`Group::attribute`], of the root group.
    ///
    /// # Errors
    /// As there.
    fn attribute<A: FromAttribute>(&self, name: &str) -> Result<A>;
    /// As [`Group::put_attribute`], of the root group.
    ///
    /// # Errors
    /// As there.
    fn put_attribute(&self, name: &str, value: impl Into<AttributeValue>) -> Result<()>;
    /// As [`Group::add_group`], of the root group.
    ///
    /// # Errors
    /// As there.
    fn add_group(&self, name: &str) -> Result<Group<'_>>;
    /// As [`Group::add_dimension`], of the root group.
    ///
    /// # Errors
    /// As there.
    fn add_dimension(&self, name: &str, len: usize) -> Result<Dimension>;
    /// As [`Group::add_unlimited_dimension`], of the root group.
    ///
    /// # Errors
    /// As there.
    fn add_unlimited_dimension(&self, name: &str) -> Result<Dimension>;
    /// As [`Group::add_variable`], of the root group.
    ///
    /// # Errors
    /// As there.
    fn add_variable<T: Value>(&self, name: &str, dimensions: &[&str]) -> Result<Variable<'_>>;
}
