//! Filter Pipeline message (0x000B): what is done to each chunk on its way into the file.
//! Spec: HDF5 File Format, "The Data Storage - Filter Pipeline Message". Versions 1 and 2.

/// One filter, in the order in which a writer applies them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterDescription {
    /// Registered number.
    pub id: u16,
    /// Name that the writer gave, empty where there is none.
    pub name: Box<[u8]>,
    /// Bit 0: the filter is optional.
    pub flags: u16,
    /// Client data ("cd_values").
    pub params: Vec<u32>,
}

impl FilterDescription {
    pub fn decode(_: crate::Reader<'_>) -> crate::Result<Vec<FilterDescription>> {
        Ok(vec![])
    }
}
