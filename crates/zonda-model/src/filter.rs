//! Filters, as files describe them.

/// A filter with its parameters, as a format describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterSpec {
    /// The number registered with The HDF Group.
    pub id: u32,
    /// The filter may be left out where it fails or does not pay (HDF5 flag bit 0).
    pub optional: bool,
    /// Name that the writer gave, for messages; often empty.
    pub name: String,
    /// Parameters ("cd_values").
    pub params: Vec<u32>,
}
