//! What a format brings.

use zonda_format::Result;

use crate::model::Model;
use crate::run::Run;

/// Where a dataset's definitions and values are.
pub trait Arrays: std::fmt::Debug + Send + Sync {
    /// Reads the definitions, when the dataset is opened and again for each refresh; what was known of values is not, any more.
    /// They are completed by who calls ([`Model::complete`]), or before that by a format that has more to say of what is wrong.
    ///
    /// # Errors
    /// What keeps them from being read. What was known before stays, since the old definitions do.
    fn read(&mut self) -> Result<Model>;

    /// Where the values of variable number `index` are, which has all its records.
    ///
    /// # Errors
    /// What is wrong with them.
    fn run(&self, model: &Model, index: usize) -> Result<Run<'_>>;

    /// What makes it. `None` where it can only be read.
    fn maker(&mut self) -> Option<&mut dyn MakeArrays> {
        None
    }
}

/// How a dataset's definitions and values are made.
pub trait MakeArrays {
    /// Gives variable number `index`, which is new, a place for its values. They are filled by who calls.
    ///
    /// # Errors
    /// What the storage reports.
    fn make(&mut self, model: &Model, index: usize) -> Result<()>;

    /// Commits values that were put, and then what was changed of the definitions.
    ///
    /// # Errors
    /// What the storage reports. It is tried again by the next commit.
    fn commit(&mut self, model: &Model, changes: Changes) -> Result<()>;

    /// Removes a dataset whose definitions never ended.
    ///
    /// # Errors
    /// What the storage reports.
    fn remove(&mut self) -> Result<()>;
}

/// What was changed since the last commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Definitions were.
    pub definitions: bool,
    /// Records were added.
    pub records: bool,
}
