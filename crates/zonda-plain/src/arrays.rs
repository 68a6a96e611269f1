//! What a format has to implement.

use zonda_format::Result;

use crate::model::Model;
use crate::run::Run;

/// The definitions and values of a dataset, as its format stores them.
pub trait Arrays: Send + Sync {
    /// Reads the definitions, when the dataset is opened and again at each refresh, after which places of values have
    /// to be found anew. The caller completes them ([`Model::complete`]), or a format does so itself to say more
    /// about errors.
    ///
    /// # Errors
    /// Why they cannot be read. What was known before stays, since the old definitions do.
    fn read(&mut self) -> Result<Model>;

    /// Where the values of variable number `index` are, all its records included.
    ///
    /// # Errors
    /// What is wrong with them.
    fn run(&self, model: &Model, index: usize) -> Result<Run<'_>>;

    /// The writing half; `None` where the dataset can only be read.
    fn maker(&mut self) -> Option<&mut dyn MakeArrays> {
        None
    }
}

// By its name alone: else the table of each type's methods would have the text of all that the type holds.
impl std::fmt::Debug for dyn Arrays + '_ {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Arrays")
    }
}

/// The writing half: makes definitions and values.
pub trait MakeArrays {
    /// Makes a place for the values of the new variable number `index`. The caller fills it.
    ///
    /// # Errors
    /// What the storage reports.
    fn make(&mut self, model: &Model, index: usize) -> Result<()>;

    /// Commits values that were put, and then what was changed of the definitions.
    ///
    /// # Errors
    /// What the storage reports. It is tried again by the next commit.
    fn commit(&mut self, model: &Model, changes: Changes) -> Result<()>;

    /// Removes a new dataset whose definitions were never ended.
    ///
    /// # Errors
    /// What the storage reports.
    fn remove(&mut self) -> Result<()>;
}

/// What was changed since the last commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Definitions were changed.
    pub definitions: bool,
    /// Records were added.
    pub records: bool,
}
