//! What all definitions have in common: whether the caller may define, and which objects were changed.

use std::sync::{Arc, OnceLock};

use zonda_model::{NcError, VarId, check_name, normalize_name, shown_name};

use super::att_list::EditedAtts;
use super::{ObjectKey, Writing};
use crate::attribute::AttList;
use crate::details::Details;
use crate::fault::{Coded, Fault, Outcome, refuse_if};
use crate::file::Nc4File;
use crate::files::{Files, ObjectAt};
use crate::model::{Group, GroupId, Model, Var};
use crate::types::Types;
use crate::{Nc4Error, Result, VarRef};

/// A model that is being changed. A file that is open for reading gets here, too, because the checks of the
/// reference have another order in each function.
pub(crate) struct Definer<'a> {
    pub(crate) files: &'a Files,
    pub(crate) model: &'a mut Model,
    writing: Option<&'a mut Writing>,
}

impl Nc4File {
    /// Changes the model; `name` is that of the changed object in the group, for messages.
    pub(crate) fn define<T>(
        &mut self,
        group: GroupId,
        name: &[u8],
        work: impl FnOnce(&mut Definer<'_>) -> Outcome<T>,
    ) -> Result<T> {
        self.model()?;
        let Nc4File { files, model, writing, .. } = self;
        let refused = |code| Nc4Error::Refused { object: shown_name(name), code };
        let model = model.get_mut().ok_or_else(|| refused(NcError::Internal))?;
        let writing = writing.as_deref_mut();
        let done = work(&mut Definer { files, model: &mut *model, writing });
        done.map_err(|fault| {
            fault.at(|| match name {
                b"" => model.group_path(group),
                name => model.path_in(group, shown_name(name).as_bytes()),
            })
        })
    }

    /// Changes the model; messages name a variable that exists.
    pub(crate) fn define_of_var<T>(
        &mut self,
        of: VarRef,
        work: impl FnOnce(&mut Definer<'_>) -> Outcome<T>,
    ) -> Result<T> {
        let done = self.define(of.group, b"", work);
        done.map_err(|error| {
            match self.model.get().and_then(|model| Some((model, model.var(of.group, of.var)?))) {
                Some((model, var)) => error.about(model.var_path(of.group, var)),
                None => match error {
                    Nc4Error::Refused { object, code: code @ NcError::NotVar } => {
                        Nc4Error::Explained {
                            object,
                            why: format!("no variable {}", of.var.0),
                            code,
                        }
                    }
                    error => error,
                },
            }
        })
    }

    /// Changes the model; messages name an attribute, which need not exist yet.
    pub(crate) fn define_att<T>(
        &mut self,
        owner: VarRef,
        name: &[u8],
        work: impl FnOnce(&mut Definer<'_>) -> Outcome<T>,
    ) -> Result<T> {
        let done = self.define(owner.group, b"", work);
        done.map_err(|error| {
            let object = format!("{}: attribute {}", self.path(owner), shown_name(name));
            error.about(object)
        })
    }

    /// Settles the types and variables that the next commit writes: they become what they are in the file.
    ///
    /// # Errors
    /// Those of [`Nc4File::settle_type`].
    pub(crate) fn settle(&mut self) -> Result<()> {
        let Some(writing) = &self.writing else {
            return Ok(());
        };
        // Types come before variables that have them.
        let changed: Vec<_> = writing.commits.changed.iter().copied().collect();
        for key in changed {
            match key {
                ObjectKey::Type(nc_type) => {
                    self.define(GroupId::ROOT, b"", |it| it.settle_type(nc_type))?
                }
                ObjectKey::Var(group, var) => self.settle_var(VarRef { group, var })?,
                ObjectKey::Group(_) | ObjectKey::Scale(_) => {}
            }
        }
        Ok(())
    }
}

impl Definer<'_> {
    pub(crate) fn group(&self, group: GroupId) -> Coded<&Group> {
        self.model.group(group).ok_or(NcError::BadGrpId)
    }

    pub(crate) fn var(&self, of: VarRef) -> Coded<&Var> {
        self.group(of.group)?;
        self.model.var(of.group, of.var).ok_or(NcError::NotVar)
    }

    /// Whether the file keeps to the classic model.
    pub(crate) fn is_classic(&self) -> bool {
        self.model.is_classic
    }

    pub(crate) fn is_defining(&self) -> bool {
        self.writing.as_ref().is_some_and(|writing| writing.mode.is_defining)
    }

    /// The state that only a writer has.
    ///
    /// # Errors
    /// `NC_EPERM` in a file that is open for reading.
    pub(crate) fn writing(&mut self) -> Coded<&mut Writing> {
        self.writing.as_deref_mut().ok_or(NcError::Perm)
    }

    /// Enters define mode if the file is not in it; in the classic model the caller has to enter it.
    ///
    /// # Errors
    /// `NC_ENOTINDEFINE`, `NC_EPERM`.
    pub(crate) fn begin_definitions(&mut self) -> Coded<()> {
        if self.is_defining() {
            return Ok(());
        }
        refuse_if(self.is_classic(), NcError::NotInDefine)?;
        // An abort must not take back what was put before, so this does not count as `nc_redef`.
        self.writing()?.mode.is_defining = true;
        Ok(())
    }

    /// The next commit has to write the object's header.
    pub(crate) fn mark(&mut self, object: ObjectKey) {
        if let Some(writing) = &mut self.writing {
            writing.commits.changed.insert(object);
        }
    }

    /// Checks that no variable, group, type or other link of the group has the name. Dimensions have names of
    /// their own.
    ///
    /// # Errors
    /// `NC_ENAMEINUSE`
    pub(crate) fn check_unused(&self, group: GroupId, name: &[u8]) -> Coded<()> {
        let is_used = self.model.find_type(group, name).is_some()
            || self.model.find_child(group, name).is_some()
            || self.group(group)?.find_var(name).is_some()
            || self.group(group)?.unlisted.contains(name);
        if is_used { Err(NcError::NameInUse) } else { Ok(()) }
    }

    /// Checks that no group, type or other link of the group has the name of a new dimension, whose scale is a link
    /// beside these in the file. (The reference finds out when the definitions end, and loses the file.)
    ///
    /// # Errors
    /// `NC_ENAMEINUSE`
    pub(crate) fn check_scale(&self, group: GroupId, name: &[u8]) -> Coded<()> {
        let is_used = self.model.find_type(group, name).is_some()
            || self.model.find_child(group, name).is_some()
            || self.group(group)?.unlisted.contains(name);
        if is_used { Err(NcError::NameInUse) } else { Ok(()) }
    }

    /// [`Definer::check_unused`] for objects that may not have the name of a dimension either.
    ///
    /// # Errors
    /// `NC_ENAMEINUSE`
    pub(crate) fn check_link(&self, group: GroupId, name: &[u8]) -> Coded<()> {
        self.check_unused(group, name)?;
        if self.model.find_dim(group, name).is_some() { Err(NcError::NameInUse) } else { Ok(()) }
    }

    /// An attribute list that can be changed.
    pub(crate) fn edit_atts(&mut self, owner: VarRef) -> Outcome<&mut EditedAtts> {
        let at = match owner.var {
            VarId::GLOBAL => self.group(owner.group)?.at,
            _ => self.var(owner)?.at,
        };
        let files = self.files;
        // The list is decoded with the types, which are in the model that is borrowed.
        let forms = std::mem::take(&mut self.model.forms);
        let done =
            self.details_place(owner).and_then(|place| make_editable(place, files, at, &forms));
        self.model.forms = forms;
        done?;
        match owned(self.details_place(owner)?).map(|details| &mut details.atts) {
            Some(Ok(AttList::Edited(list))) => Ok(list),
            Some(Err(fault)) => Err(Fault::from(fault.clone())),
            _ => Err(NcError::Internal.into()),
        }
    }

    fn details_place(&mut self, owner: VarRef) -> Outcome<&mut OnceLock<Arc<Details>>> {
        let place = match owner.var {
            VarId::GLOBAL => self.model.group_mut(owner.group).map(|group| &mut group.details),
            var => self.model.var_mut(owner.group, var).map(|var| &mut var.details),
        };
        place.ok_or(Fault::Refused(NcError::Internal))
    }
}

fn make_editable(
    place: &mut OnceLock<Arc<Details>>,
    files: &Files,
    at: ObjectAt,
    forms: &Types,
) -> Outcome<()> {
    if place.get().is_none() {
        let details = Details::read(files, at, forms)?;
        let _first = place.set(Arc::new(details));
    }
    let details = owned(place).ok_or(NcError::Internal)?;
    if let Ok(AttList::Read(_)) = &details.atts {
        let object = details.object()?;
        let list = EditedAtts::of(Arc::clone(&details.file), &object, forms)?;
        details.atts = Ok(AttList::Edited(Box::new(list)));
    }
    Ok(())
}

/// The details of an object, to be changed; `None` if they were not read, or somebody else holds them, too.
pub(crate) fn owned(place: &mut OnceLock<Arc<Details>>) -> Option<&mut Details> {
    Arc::get_mut(place.get_mut()?)
}

impl Definer<'_> {
    /// A name as it is stored; `is_link` for one that is part of paths.
    ///
    /// # Errors
    /// As [`stored_name`].
    pub(crate) fn stored_name(&self, name: &[u8], is_link: bool) -> Coded<Box<[u8]>> {
        let checked = stored_name(name);
        let any = self.writing.as_deref().is_some_and(|writing| writing.mode.takes_any_name);
        let is_possible = std::str::from_utf8(name).is_ok()
            && !name.is_empty()
            && !name.contains(&0)
            && name.len() <= zonda_model::MAX_NAME_BYTES
            && !(is_link && name.contains(&b'/'));
        if any && is_possible { Ok(name.into()) } else { checked }
    }
}

/// A name as it is stored: checked, and in normalisation form C.
///
/// # Errors
/// `NC_EBADNAME`, `NC_EMAXNAME`.
pub(crate) fn stored_name(name: &[u8]) -> Coded<Box<[u8]>> {
    check_name(name)?;
    let name = normalize_name(name)?;
    refuse_if(name.len() > zonda_model::MAX_NAME_BYTES, NcError::MaxName)?;
    Ok((*name).into())
}
