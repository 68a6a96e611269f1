//! Where data go.

use crate::element::Elements;
use crate::fault::CdlFault;
use crate::schema::{CdlVariable, Schema};

/// A box of a variable, to which values belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataSlab<'a> {
    /// Index of the first value, one for each dimension.
    pub start: &'a [u64],
    /// Values along each dimension.
    pub count: &'a [u64],
}

/// Takes the data of variables.
pub trait DataSink {
    /// Takes values of the variable with the number `var`, in row-major order.
    ///
    /// # Errors
    /// A message.
    fn put(
        &mut self,
        schema: &Schema,
        var: usize,
        slab: DataSlab<'_>,
        values: &mut Elements,
    ) -> Result<(), String>;

    /// Whether elements of the variable that are not put get its fill value without a put.
    fn fills(&self, schema: &Schema, var: usize) -> bool;

    /// Takes a warning.
    fn warn(&mut self, fault: &CdlFault);
}

/// Takes all data and ignores it.
#[derive(Clone, Copy, Debug)]
pub struct Nowhere;

impl DataSink for Nowhere {
    fn put(
        &mut self,
        _: &Schema,
        _: usize,
        _: DataSlab<'_>,
        _: &mut Elements,
    ) -> Result<(), String> {
        Ok(())
    }

    fn fills(&self, _: &Schema, _: usize) -> bool {
        true
    }

    fn warn(&mut self, _: &CdlFault) {}
}

/// Makes a fault of a message of the sink about a variable.
pub(super) fn refused(var: &CdlVariable, why: String) -> CdlFault {
    CdlFault::at(var.data.map_or(var.at, |(begin, _)| begin.saturating_sub(1)), why)
}
