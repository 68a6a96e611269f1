//! Reading variables that are not in the file and have no data.

use zonda_model::NcError;

use super::new_storage::NewStorage;
use crate::Nc4File;
use crate::fault::Outcome;
use crate::model::{Model, Var};
use crate::var_data::VarData;

impl Nc4File {
    /// The elements of a variable that was defined, and nothing else: all are fill values.
    pub(crate) fn data_of_draft(&self, model: &Model, var: &Var) -> Outcome<VarData> {
        let draft = var.draft.as_deref().ok_or(NcError::Internal)?;
        let NewStorage { form, fill, .. } = NewStorage::of(model, var, draft, None)?;
        Ok(VarData::made(self.files.main(), form, fill, &var.extent))
    }
}
