//! Values of attributes: in two steps, as those of variables.

use zonda_convert::Converted;
use zonda_format::{AttAccess, AttPut, Destination, Transfer, Values, VarRef, VlenSink};
use zonda_model::{MemType, memory};

use crate::data::{shorter, shows};
use crate::dataset::Dataset;
use crate::error::Result;
use crate::failed_get;
use crate::write_behind::{ChangeGuard, InquiryGuard};

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
        let mut att = Transfer::new(AttAccess { owner: owner.into(), name, mem });
        self.get_att_from(&mut att)?.read(Destination::plain(out))
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
        (list, place): (&mut Vec<u8>, Option<&mut dyn VlenSink>),
    ) -> Result<Converted> {
        let mut att = Transfer::new(AttAccess { owner: owner.into(), name, mem });
        let got = self.get_att_from(&mut att)?;
        memory::resize(list, got.n_bytes(), 0)?;
        got.read(Destination { bytes: list, place: shorter(place) })
    }

    /// First step of writing an attribute: all that may refuse it. Until it is done or dropped, the thread must not
    /// call the dataset in another way.
    ///
    /// # Errors
    /// As [`Dataset::put_att`].
    pub fn put_att_to<'a>(&'a self, att: &'a AttPut<'a>) -> Result<PutAtt<'a>> {
        self.check_group(att.owner.group)?;
        let mut to = self.changing()?;
        let n_bytes = self.named(to.writer().and_then(|file| file.check_put_att(att)))?;
        Ok(PutAtt { dataset: self, to, att, n_bytes })
    }

    /// First step of reading an attribute. Until it is done or dropped, the thread must not call the dataset in
    /// another way.
    ///
    /// # Errors
    /// As [`Dataset::get_att`].
    #[inline]
    pub fn get_att_from<'a>(&'a self, get: &'a mut Transfer<AttAccess<'_>>) -> Result<GetAtt<'a>> {
        self.check_group(get.of().owner.group)?;
        let from = self.named(self.queued_file.look())?;
        self.named(from.file().and_then(|file| file.check_get_att(get)))?;
        Ok(GetAtt { dataset: self, from, get })
    }
}

/// An attribute that is being written: [`Dataset::put_att_to`].
pub struct PutAtt<'a> {
    dataset: &'a Dataset,
    to: ChangeGuard<'a>,
    att: &'a AttPut<'a>,
    n_bytes: usize,
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
    pub fn write(mut self, values: Values<'_>) -> Result<Converted> {
        let put = self.to.writer().and_then(|file| file.put_att(self.att, values));
        self.dataset.named(put)
    }
}

/// An attribute that is being read: [`Dataset::get_att_from`].
pub struct GetAtt<'a> {
    dataset: &'a Dataset,
    from: InquiryGuard<'a>,
    get: &'a Transfer<AttAccess<'a>>,
}

impl GetAtt<'_> {
    /// Bytes that the values take in the caller's memory.
    #[must_use]
    pub fn n_bytes(&self) -> usize {
        self.get.n_bytes
    }

    /// Reads it.
    ///
    /// # Errors
    /// As [`Dataset::get_att`].
    #[inline]
    pub fn read(self, room: Destination<'_>) -> Result<Converted> {
        let Destination { bytes, place } = room;
        let room = Destination { bytes: &mut *bytes, place: shorter(place) };
        let file = self.from.file();
        let got = file.and_then(|file| file.get_att(self.get, room));
        if got.is_err()
            && self.dataset.is_remote()
            && let Ok(file) = self.from.file()
        {
            failed_get::overwrite_att(file, self.get, bytes);
        }
        self.dataset.named(got)
    }
}

shows! {
    PutAtt<'_>: |put| put.att;
    GetAtt<'_>: |get| get.get.of();
}
