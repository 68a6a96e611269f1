//! Reading variables that are not in the file and have no data.

use zonda_model::NcError;

use super::recipe::Recipe;
use crate::Nc4File;
use crate::data::Data;
use crate::fault::Outcome;
use crate::model::{Model, Var};

impl Nc4File {
    /// The elements of a variable that was defined, and nothing else: all are fill values.
    pub(crate) fn unwritten(&self, model: &Model, var: &Var) -> Outcome<Data> {
        let draft = var.draft.as_deref().ok_or(NcError::Internal)?;
        let Recipe { form, fill, .. } = Recipe::of(model, var, draft, None)?;
        Ok(Data::made(self.files.main(), form, fill, &var.extent))
    }
}
