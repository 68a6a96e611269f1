//! Attributes of an open file: those that its objects have, and those about the file itself.

use std::borrow::Cow;

use zonda_convert::{ByteOrder, Converted, Decoder, RangeRule};
use zonda_format::{AttAccess, AttView, Transfer, VarRef};
use zonda_model::{ExtType, NcError, VarId, sought_name};

use crate::attribute::{AttFault, AttList, AttValue};
use crate::fault::{Fault, HdfResult, Outcome};
use crate::file::{Nc4File, hdf};
use crate::get::tolerated;
use crate::hidden_atts;
use crate::model::AttInfo;
use crate::value_target::ValueTarget;
use crate::{Nc4Error, Result};

/// Stands for the number of an attribute about the file, which has no number, between the two steps of a get.
pub(crate) const NUMBER_OF_SPECIAL: u64 = u64::MAX;

impl Nc4File {
    /// Which attributes of a variable or group were skipped: those of types that netCDF does not have, and, in a file that
    /// was opened as a damaged one, those that are damaged.
    ///
    /// # Errors
    /// As [`Definitions::n_atts`](zonda_format::Definitions::n_atts).
    pub fn att_faults(&self, owner: VarRef) -> Result<Vec<Nc4Error>> {
        let faults = self.att_list(owner)?.faults();
        Ok(faults.iter().map(|fault| self.att_fault(owner, fault.clone())).collect())
    }

    /// The attribute with that name (normalised here) and its number. Reserved ones that the
    /// reference finds by name only (`_NCProperties`, `_IsNetcdf4`, `_SuperblockVersion`) have number -1.
    ///
    /// # Errors
    /// As [`Nc4File::att`].
    pub(crate) fn find_att_view(&self, owner: VarRef, name: &[u8]) -> Result<(i32, AttView<'_>)> {
        let list = self.att_list(owner)?;
        let name = self.normalized(owner, name)?;
        if let Some((_, info)) = self.special(owner, &name)? {
            return Ok((-1, info.into()));
        }
        let fail = |fault| self.att_fault(owner, fault);
        let number = list.find(&name).map_err(fail)?;
        let view = list.view(number).map_err(fail)?;
        Ok((i32::try_from(number).unwrap_or(i32::MAX), view))
    }

    pub(crate) fn att_values(
        &self,
        get: &Transfer<AttAccess<'_>>,
        target: ValueTarget<'_>,
        out: &mut [u8],
    ) -> Result<Converted> {
        let AttAccess { owner, name, .. } = *get.of();
        let list = self.att_list(owner)?;
        let fail = |fault| self.value_fault(owner, fault);
        if out.len() != get.n_bytes {
            return Err(fail(Fault::wrong_length()));
        }
        if get.n_elems == 0 {
            return Ok(Converted::default());
        }
        let unread = |fault| self.att_fault(owner, fault);
        let none = || unread(AttFault::None(name.into()));
        if get.found[0] == NUMBER_OF_SPECIAL {
            let special = self.special(owner, &self.normalized(owner, name)?)?;
            let (value, info) = special.ok_or_else(none)?;
            return special_values(&value, &info, &target, out).map_err(fail);
        }
        let model = self.model()?;
        let number = usize::try_from(get.found[0]).map_err(|_| none())?;
        if let Some(plain) = list.plain(number) {
            return plain_values(model.is_classic, plain, &target, out).map_err(fail);
        }
        let view = list.view(number).map_err(unread)?;
        match list.value(number, &model.forms).map_err(unread)? {
            AttValue::Stored(stored) => {
                let (attribute, meaning) = &*stored;
                crate::get::attribute(self, list.file(), attribute, meaning, target, out)
            }
            AttValue::Owned(held) => crate::write::get_owned(model, &view, held, target, out),
        }
        .map_err(fail)
    }

    /// The attributes of a variable or group.
    #[inline]
    pub(crate) fn att_list(&self, owner: VarRef) -> Result<&AttList> {
        match self.known_att_list(owner) {
            Some(list) => Ok(list),
            None => self.read_att_list(owner),
        }
    }

    /// The same, if they were read.
    #[inline]
    fn known_att_list(&self, owner: VarRef) -> Option<&AttList> {
        let model = self.model.get()?;
        let details = match owner.var {
            VarId::GLOBAL => &model.group(owner.group)?.details,
            var => &model.var(owner.group, var)?.details,
        };
        details.get()?.atts.as_ref().ok()
    }

    #[cold]
    fn read_att_list(&self, owner: VarRef) -> Result<&AttList> {
        let model = self.model()?;
        let details = if owner.var == VarId::GLOBAL {
            let group = model.group(owner.group).ok_or_else(|| Nc4Error::Refused {
                object: model.group_path(owner.group),
                code: NcError::BadGrpId,
            })?;
            self.kept(&group.details, group.at)
        } else {
            self.details(self.var(owner.group, owner.var)?.1)
        };
        let details = details.map_err(|error| hdf(self.path(owner), error))?;
        details.atts.as_ref().map_err(|fault| self.att_fault(owner, fault.clone()))
    }

    pub(crate) fn att_fault(&self, owner: VarRef, fault: AttFault) -> Nc4Error {
        fault.at(|| self.path(owner))
    }

    fn value_fault(&self, owner: VarRef, fault: Fault) -> Nc4Error {
        fault.at(|| self.path(owner))
    }

    fn normalized<'n>(&self, owner: VarRef, name: &'n [u8]) -> Result<Cow<'n, [u8]>> {
        let sought = sought_name(name, NcError::BadName);
        sought.map_err(|code| Nc4Error::Refused { object: self.path(owner), code })
    }

    /// Value, type and length of an attribute about the file, which is found by name only.
    fn special(&self, owner: VarRef, name: &[u8]) -> Result<Option<(Vec<u8>, AttInfo)>> {
        if owner.var != VarId::GLOBAL {
            return Ok(None);
        }
        let number = |value: i32| (value.to_ne_bytes().to_vec(), ExtType::Int.nc_type(), 1);
        let (value, nc_type, len) = match name {
            hidden_atts::PROPERTIES => {
                let text = self.properties()?.ok_or_else(|| Nc4Error::Refused {
                    object: self.path(owner),
                    code: NcError::NotAtt,
                })?;
                let len = text.len() as u64;
                (text, ExtType::Char.nc_type(), len)
            }
            hidden_atts::IS_NETCDF4 => number(i32::from(self.is_netcdf4()?)),
            hidden_atts::SUPERBLOCK => number(i32::from(self.hdf5().superblock().version)),
            _ => return Ok(None),
        };
        Ok(Some((value, AttInfo { name: name.into(), nc_type, len })))
    }

    /// Text of `_NCProperties` of a new file, which no commit has written yet.
    pub(crate) fn properties_to_come(&self) -> Option<&Vec<u8>> {
        let writing = self.writing.as_ref().filter(|writing| writing.is_new)?;
        Some(&writing.how.properties)
    }

    /// Text of `_NCProperties`.
    fn properties(&self) -> Result<Option<Vec<u8>>> {
        if let Some(text) = self.properties_to_come().or(self.properties.as_ref()) {
            return Ok(Some(text.clone()));
        }
        let file = self.hdf5();
        let read = || -> HdfResult<_> {
            let attribute = file.object(file.root())?.attribute(file, hidden_atts::PROPERTIES)?;
            attribute.map(|attribute| hidden_atts::text(file, &attribute)).transpose()
        };
        read().map_err(|error| hdf(String::from("/"), error))
    }

    /// Whether netCDF wrote the file: `_NCProperties` says so, or datasets have at least two of the attributes
    /// that netCDF marks them with.
    fn is_netcdf4(&self) -> Result<bool> {
        let model = self.model()?;
        if model.is_classic || self.properties()?.is_some() {
            return Ok(true);
        }
        let mut marks = 0usize;
        let vars = model.groups.iter().flat_map(|group| &group.vars).map(|var| var.at);
        let scales = model.dims.iter().flatten().filter_map(|dim| dim.at);
        let mut seen = hashbrown::HashSet::new();
        for at in vars.chain(scales) {
            if !seen.insert(at) {
                continue;
            }
            let names = self.files.get(at.file).and_then(|file| {
                let attributes = file.object(at.addr)?.attributes(&file)?;
                let names = 0..attributes.len();
                Ok(names.filter(|&i| hidden_atts::is_reserved(attributes.name(i))).count())
            });
            marks = marks.saturating_add(names.unwrap_or(0));
            if marks >= 2 {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The value of an attribute that is found by name only, as the caller wants it.
fn special_values(
    value: &[u8],
    info: &AttInfo,
    target: &ValueTarget<'_>,
    out: &mut [u8],
) -> Outcome<Converted> {
    let ext = ExtType::from_nc_type(info.nc_type).ok_or(Fault::Refused(NcError::BadType))?;
    plain_values(false, (ext, ByteOrder::NATIVE, value), target, out)
}

/// Numbers or text, as the caller wants them.
fn plain_values(
    is_classic: bool,
    (ext, order, values): (ExtType, ByteOrder, &[u8]),
    target: &ValueTarget<'_>,
    out: &mut [u8],
) -> Outcome<Converted> {
    let mem = match target {
        ValueTarget::Natural(_) => ext.natural_mem(),
        ValueTarget::Atomic(mem) => *mem,
    };
    let decoder = Decoder::new(ext, order, mem, RangeRule::Cast);
    let decoder = decoder.map_err(|_| Fault::Refused(NcError::Char))?;
    let n = values.len().checked_div(ext.size()).unwrap_or(0);
    if n.checked_mul(mem.size()) != Some(out.len()) {
        return Err(Fault::wrong_length());
    }
    Ok(tolerated(is_classic, ext.nc_type(), Some(mem), decoder.decode(values, out)))
}
