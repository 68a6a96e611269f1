//! Values of attributes: in two steps, as those of variables.

use std::fmt;

use zonda_classic::ClassicFile;
use zonda_convert::Converted;
use zonda_format::{AttAccess, AttPut, Checked, Place, Room, Values};
use zonda_model::{MemType, NcError, memory};
use zonda_nc4::{GroupId, Nc4File, View};
use zonda_runtime::lock::{RwLockReadGuard, RwLockWriteGuard};

use crate::behind::Hold;
use crate::data::shorter;
use crate::dataset::{Dataset, Inner};
use crate::error::{Error, Result};
use zonda_format::VarRef;

/// Attributes.
impl Dataset {
    /// Writes an attribute of a variable, or of a group: `n_values` values of type `mem` in memory (by default the
    /// natural one of `nc_type`).
    ///
    /// # Errors
    /// `NC_EPERM`, `NC_ENOTVAR`, `NC_EBADTYPE`, `NC_ECHAR`, `NC_EINVAL`, `NC_ENOTINDEFINE`,
    /// `NC_EBADNAME`, `NC_EMAXNAME`, in this order; `NC_EINVAL` for memory of another length. Values that do not fit are counted.
    pub fn put_att(
        &self,
        owner: impl Into<VarRef>,
        name: &[u8],
        nc_type: i32,
        n_values: usize,
        mem: Option<MemType>,
        bytes: &[u8],
    ) -> Result<Converted> {
        let att = AttPut { owner: owner.into(), name, nc_type, n_values, mem };
        self.put_att_to(&att)?.write(Values::plain(bytes))
    }

    /// Writes an attribute of any type as what it is, as [`Dataset::put_values`] does a variable.
    ///
    /// # Errors
    /// As [`Dataset::put_att`].
    pub fn put_att_values(
        &self,
        owner: impl Into<VarRef>,
        name: &[u8],
        (nc_type, n_values): (i32, usize),
        values: Values<'_>,
    ) -> Result<Converted> {
        let att = AttPut { owner: owner.into(), name, nc_type, n_values, mem: None };
        self.put_att_to(&att)?.write(values)
    }

    /// Reads an attribute of a variable, or of a group, as type `mem` (by default its natural one).
    ///
    /// # Errors
    /// `NC_ENOTVAR`, `NC_ENOTATT`, `NC_ECHAR`, in this order; `NC_EINVAL` for memory of another length than the
    /// values have. Values that do not fit are counted.
    pub fn get_att(
        &self,
        owner: impl Into<VarRef>,
        name: &[u8],
        mem: Option<MemType>,
        out: &mut [u8],
    ) -> Result<Converted> {
        let att = AttAccess { owner: owner.into(), name, mem };
        self.get_att_from(&att)?.read(Room::plain(out))
    }

    /// Reads an attribute to a list, which is made as long as its values; strings and sequences go to `place`.
    ///
    /// # Errors
    /// As [`Dataset::get_att`]; `NC_ENOMEM`.
    pub fn get_att_list(
        &self,
        owner: impl Into<VarRef>,
        name: &[u8],
        mem: Option<MemType>,
        (list, place): (&mut Vec<u8>, Option<&mut dyn Place>),
    ) -> Result<Converted> {
        let att = AttAccess { owner: owner.into(), name, mem };
        let got = self.get_att_from(&att)?;
        memory::resize(list, got.n_bytes(), 0)?;
        got.read(Room { bytes: list, place: shorter(place) })
    }

    /// First step of writing an attribute: all that may refuse it. Until it is done or dropped, the thread must not
    /// call the dataset in another way.
    ///
    /// # Errors
    /// As [`Dataset::put_att`].
    pub fn put_att_to<'a>(&'a self, att: &AttPut<'a>) -> Result<PutAtt<'a>> {
        let hold;
        let (to, n_bytes) = match &*self.inner {
            Inner::Classic(_) if att.owner.group != GroupId::ROOT => {
                return Err(Error::from(NcError::BadGrpId).at(self.path()));
            }
            Inner::Classic(classic) => {
                hold = self.before_change()?;
                let alone = classic.write();
                let n_bytes = self.here(alone.check_put_att(att))?;
                (To::Classic(alone), n_bytes)
            }
            Inner::Nc4(nc4) => {
                hold = None;
                let mut file = self.changing(nc4)?;
                let n_bytes = self.here(file.check_put_att(att))?;
                (To::Nc4(file), n_bytes)
            }
        };
        Ok(PutAtt { dataset: self, _hold: hold, to, att: *att, n_bytes })
    }

    /// First step of reading an attribute. Until it is done or dropped, the thread must not call the dataset in
    /// another way.
    ///
    /// # Errors
    /// As [`Dataset::get_att`].
    pub fn get_att_from<'a>(&'a self, att: &AttAccess<'a>) -> Result<GetAtt<'a>> {
        let (from, n_bytes) = match &*self.inner {
            Inner::Classic(_) if att.owner.group != GroupId::ROOT => {
                return Err(Error::from(NcError::BadGrpId).at(self.path()));
            }
            Inner::Classic(classic) => {
                let held = classic.read();
                let checked = self.here(held.check_get_att(att))?;
                (From::Classic(held, checked), checked.n_bytes)
            }
            Inner::Nc4(nc4) => {
                let look = match self.view() {
                    Some(view) if view.is_some() => Look::View(view),
                    _ => Look::File(self.here(nc4.read())?),
                };
                let n_bytes =
                    self.here(look.file().and_then(|file| Ok(file.check_get_att(att)?)))?;
                (From::Nc4(look), n_bytes)
            }
        };
        Ok(GetAtt { dataset: self, from, att: *att, n_bytes })
    }
}

/// An attribute that is being written: [`Dataset::put_att_to`].
pub struct PutAtt<'a> {
    dataset: &'a Dataset,
    /// Keeps puts from being accepted.
    _hold: Option<Hold<'a>>,
    to: To<'a>,
    att: AttPut<'a>,
    n_bytes: usize,
}

enum To<'a> {
    Classic(RwLockWriteGuard<'a, ClassicFile>),
    Nc4(RwLockWriteGuard<'a, Nc4File>),
}

impl PutAtt<'_> {
    /// Bytes that the values have in the caller's memory.
    #[must_use]
    pub fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// Writes it.
    ///
    /// # Errors
    /// As [`Dataset::put_att`].
    pub fn write(self, values: Values<'_>) -> Result<Converted> {
        match self.to {
            To::Classic(mut alone) => self.dataset.here(alone.put_att(&self.att, values.bytes)),
            To::Nc4(mut file) => self.dataset.here(file.put_att(&self.att, values)),
        }
    }
}

/// An attribute that is being read: [`Dataset::get_att_from`].
pub struct GetAtt<'a> {
    dataset: &'a Dataset,
    from: From<'a>,
    att: AttAccess<'a>,
    n_bytes: usize,
}

enum From<'a> {
    Classic(RwLockReadGuard<'a, ClassicFile>, Checked),
    Nc4(Look<'a>),
}

/// The definitions of a netCDF-4 file: while puts wait, as they are with all that was accepted.
enum Look<'a> {
    View(RwLockReadGuard<'a, Option<View>>),
    File(RwLockReadGuard<'a, Nc4File>),
}

impl Look<'_> {
    fn file(&self) -> Result<&Nc4File> {
        match self {
            Look::File(file) => Ok(file),
            Look::View(view) => match view.as_ref() {
                Some(view) => Ok(view),
                None => Err(Error::explained(NcError::Internal, "a view that is gone")),
            },
        }
    }
}

impl GetAtt<'_> {
    /// Bytes that the values take in the caller's memory.
    #[must_use]
    pub fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// Reads it.
    ///
    /// # Errors
    /// As [`Dataset::get_att`].
    pub fn read(self, room: Room<'_>) -> Result<Converted> {
        match self.from {
            From::Classic(held, checked) => {
                self.dataset.here(held.get_att(&self.att, &checked, room.bytes))
            }
            From::Nc4(look) => {
                self.dataset.here(look.file().and_then(|file| Ok(file.get_att(&self.att, room)?)))
            }
        }
    }
}

impl fmt::Debug for PutAtt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PutAtt").field("att", &self.att).finish_non_exhaustive()
    }
}

impl fmt::Debug for GetAtt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GetAtt").field("att", &self.att).finish_non_exhaustive()
    }
}
