//! Definitions that not every format has: groups, types, and how variables are stored. A classic
//! dataset answers `NC_ENOTNC4`.

use zonda_format::{
    Endianness, FilterSpec, GroupId, Quantize, StorageRequest, TypeDefinitions, VarRef,
};
use zonda_model::NcError;

use crate::dataset::Dataset;
use crate::error::{Error, Result};

impl Dataset {
    fn change_types<T>(&self, f: impl FnOnce(&mut dyn TypeDefinitions) -> Result<T>) -> Result<T> {
        let capabilities = self.capabilities();
        if !(capabilities.groups || capabilities.user_types || capabilities.storage) {
            return Err(Error::from(NcError::NotNc4).at(self.path()));
        }
        self.change(|file| f(file.types()?))
    }
}

/// Groups and types.
impl Dataset {
    /// Defines a group in another.
    ///
    /// # Errors
    /// `NC_ENOTNC4`, `NC_EBADGRPID`, `NC_EPERM`, `NC_ESTRICTNC3`, `NC_EBADNAME`, `NC_EMAXNAME`,
    /// `NC_ENAMEINUSE`.
    pub fn def_group(&self, parent: GroupId, name: &[u8]) -> Result<GroupId> {
        self.change_types(|file| file.def_group(parent, name))
    }

    /// Renames a group; the root has no name to change (`NC_EBADGRPID`).
    ///
    /// # Errors
    /// As [`Dataset::def_group`].
    pub fn rename_group(&self, group: GroupId, name: &[u8]) -> Result<()> {
        self.queued_file.renaming(|| self.change_types(|file| file.rename_group(group, name)))
    }

    /// Defines a compound type of `size` bytes in memory and gives its number; fields follow by
    /// [`Dataset::insert_field`].
    ///
    /// # Errors
    /// `NC_ENOTNC4`, `NC_EPERM`, `NC_ESTRICTNC3`, `NC_EINVAL`, `NC_EBADNAME`, `NC_ENAMEINUSE`.
    pub fn def_compound(&self, group: GroupId, size: usize, name: &[u8]) -> Result<i32> {
        self.change_types(|file| file.def_compound(group, size, name))
    }

    /// Adds a field at `offset` (in bytes) to a compound type that nothing uses yet; `dims` is its shape, empty for
    /// one value.
    ///
    /// # Errors
    /// `NC_ENOTNC4`, `NC_EBADTYPE`, `NC_ETYPDEFINED`, `NC_EBADNAME`, `NC_EINVAL`.
    pub fn insert_field(
        &self,
        of: (GroupId, i32),
        name: &[u8],
        offset: usize,
        field_type: i32,
        dims: &[i32],
    ) -> Result<()> {
        self.change_types(|file| file.insert_field(of, name, offset, field_type, dims))
    }

    /// Defines a type of sequences of any length of `base`, and gives its number.
    ///
    /// # Errors
    /// As [`Dataset::def_compound`]; `NC_EBADTYPE`.
    pub fn def_vlen(&self, group: GroupId, name: &[u8], base: i32) -> Result<i32> {
        self.change_types(|file| file.def_vlen(group, name, base))
    }

    /// Defines a type of so many bytes without meaning, and gives its number.
    ///
    /// # Errors
    /// As [`Dataset::def_compound`].
    pub fn def_opaque(&self, group: GroupId, size: usize, name: &[u8]) -> Result<i32> {
        self.change_types(|file| file.def_opaque(group, size, name))
    }

    /// Defines a type of named integers, and gives its number; members follow by
    /// [`Dataset::insert_member`].
    ///
    /// # Errors
    /// As [`Dataset::def_compound`]; `NC_EBADTYPE`.
    pub fn def_enum(&self, group: GroupId, base: i32, name: &[u8]) -> Result<i32> {
        self.change_types(|file| file.def_enum(group, base, name))
    }

    /// Adds a member, whose value is in native bytes of the integer type.
    ///
    /// # Errors
    /// As [`Dataset::insert_field`].
    pub fn insert_member(&self, of: (GroupId, i32), name: &[u8], value: &[u8]) -> Result<()> {
        self.change_types(|file| file.insert_member(of, name, value))
    }
}

/// How variables are stored. All must come before the first data.
impl Dataset {
    /// Shuffles and deflates the chunks of a variable.
    ///
    /// # Errors
    /// `NC_ENOTNC4`, `NC_ENOTVAR`, `NC_EPERM`, `NC_ELATEDEF`, `NC_EINVAL`, `NC_EFILTER`.
    pub fn def_var_deflate(&self, var: VarRef, shuffle: bool, level: Option<i32>) -> Result<()> {
        self.change_types(|file| file.def_var_deflate(var, shuffle, level))
    }

    /// Gives each chunk of a variable a checksum.
    ///
    /// # Errors
    /// As [`Dataset::def_var_deflate`].
    pub fn def_var_fletcher32(&self, var: VarRef, on: bool) -> Result<()> {
        self.change_types(|file| file.def_var_fletcher32(var, on))
    }

    /// Adds a filter to those of a variable.
    ///
    /// # Errors
    /// As [`Dataset::def_var_deflate`]; `NC_ENOFILTER`.
    pub fn def_var_filter(&self, var: VarRef, filter: FilterSpec) -> Result<()> {
        self.change_types(|file| file.def_var_filter(var, filter))
    }

    /// Chooses the layout; `sizes` are elements of a chunk along each dimension, by default chosen.
    ///
    /// # Errors
    /// As [`Dataset::def_var_deflate`]; `NC_EBADCHUNK`.
    pub fn def_var_chunking(
        &self,
        var: VarRef,
        storage: StorageRequest,
        sizes: Option<&[usize]>,
    ) -> Result<()> {
        self.change_types(|file| file.def_var_chunking(var, storage, sizes))
    }

    /// Chooses the byte order in the file.
    ///
    /// # Errors
    /// As [`Dataset::def_var_deflate`].
    pub fn def_var_endian(&self, var: VarRef, endianness: Endianness) -> Result<()> {
        self.change_types(|file| file.def_var_endian(var, endianness))
    }

    /// Gives up precision for better compression. The mode is the number that C has for it (see
    /// [`QuantizeMode::number`](crate::QuantizeMode::number)), 0 for none; then come the digits or bits that are
    /// kept.
    ///
    /// # Errors
    /// As [`Dataset::def_var_deflate`].
    pub fn def_var_quantize(&self, var: VarRef, mode: i32, kept: i32) -> Result<()> {
        self.change_types(|file| file.def_var_quantize(var, mode, kept))
    }

    /// The precision that is given up, if any is.
    ///
    /// # Errors
    /// `NC_ENOTNC4`, `NC_ENOTVAR`.
    pub fn var_quantize(&self, var: VarRef) -> Result<Option<Quantize>> {
        self.ask_stored(|stored| stored.var_quantize(var))
    }
}
