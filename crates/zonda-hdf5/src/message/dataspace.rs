//! Dataspace message (0x0001): how many elements there are.
//! Spec: HDF5 File Format, "The Dataspace Message". Versions 1 and 2.

/// What kind of space it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpaceKind {
    /// One element, no dimensions.
    Scalar,
    /// An array.
    Simple,
    /// No element at all.
    Null,
}

/// The extent of a dataset or attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dataspace {
    /// Kind.
    pub kind: SpaceKind,
    /// Length of each dimension in elements, slowest first; empty unless simple.
    pub dims: Vec<u64>,
    /// What each dimension may grow to, `u64::MAX` for unlimited; empty where it is `dims`.
    pub max_dims: Vec<u64>,
}
