//! Reading variables that are not in the file and have no data.

use zonda_model::NcError;

use super::VarDraft;
use super::recipe::Recipe;
use crate::Nc4File;
use crate::data::Data;
use crate::files::ObjectAt;
use crate::get::GetFault;
use crate::model::{Model, Var};

impl Var {
    /// The draft of a variable that was defined since the file was opened.
    pub(crate) fn new_draft(&self) -> Option<&VarDraft> {
        let is_new = self.details.get().is_some_and(|details| details.at == ObjectAt::NOWHERE);
        self.draft.as_deref().filter(|_| is_new)
    }
}

impl Nc4File {
    /// The elements of a variable that was defined, and nothing else: all are fill values.
    pub(crate) fn unwritten(
        &self,
        model: &Model,
        var: &Var,
    ) -> std::result::Result<Data, GetFault> {
        let draft = var.new_draft().ok_or(GetFault::Refused(NcError::Internal))?;
        let Recipe { form, fill, .. } = Recipe::of(model, var, draft, None)?;
        Ok(Data::made(self.files.main(), form, fill, &var.extent))
    }
}
