//! Fill Value message (0x0005) and its old form (0x0004): what elements are that were never written.
//! Spec: HDF5 File Format, "The Data Storage - Fill Value Message". Versions 1 to 3 and the old form.

/// When space is allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocTime {
    /// When the dataset is created.
    Early,
    /// With the first write.
    Late,
    /// Chunk by chunk.
    Incremental,
}

/// When allocated space is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillTime {
    /// When it is allocated.
    OnAllocation,
    /// Never.
    Never,
    /// When it is allocated, if the user gave a value.
    IfSet,
}

/// What elements are that were never written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FillValue {
    /// When space is allocated; `None` in the old form of the message.
    pub alloc_time: Option<AllocTime>,
    /// When it is filled; `None` in the old form.
    pub fill_time: Option<FillTime>,
    /// Whether the value is explicitly undefined.
    pub undefined: bool,
    /// One element in file form; empty for zeros, the default.
    pub value: Option<Box<[u8]>>,
}
