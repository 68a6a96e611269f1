//! What the documents of a dataset become: netCDF definitions.
//!
//! All lists are in the order of definition: who makes definitions of them gets the numbers that are used here.

use zonda_format::{OwnedValues, UserType};

/// The definitions of a dataset.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// Whether it takes the data model of netCDF-4: groups, types of users, strings. DAP2 becomes a classic model.
    pub is_netcdf4: bool,
    /// Groups; the first is the root. A group comes after the one around it.
    pub groups: Vec<Group>,
    /// Dimensions.
    pub dims: Vec<Dim>,
    /// Types, numbered from [`zonda_format::FIRST_USER_TYPE`] on; each comes after those that it refers to.
    pub types: Vec<UserType>,
    /// Variables.
    pub vars: Vec<Var>,
}

/// A group.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// Its name; `/` for the root.
    pub name: String,
    /// The group around it, by its place in [`Model::groups`].
    pub parent: Option<usize>,
    /// Attributes.
    pub atts: Vec<Att>,
}

/// A dimension.
#[derive(Clone, Debug)]
pub struct Dim {
    /// Its group.
    pub group: usize,
    /// Its name.
    pub name: String,
    /// Its length.
    pub len: u64,
    /// Whether it can grow, as the server says.
    pub is_unlimited: bool,
}

/// A variable.
#[derive(Clone, Debug)]
pub struct Var {
    /// Its group.
    pub group: usize,
    /// Its name.
    pub name: String,
    /// Its type.
    pub nc_type: i32,
    /// Its dimensions, by their place in [`Model::dims`], slowest first.
    pub dims: Vec<usize>,
    /// Attributes.
    pub atts: Vec<Att>,
}

/// An attribute.
#[derive(Clone, Debug)]
pub struct Att {
    /// Its name.
    pub name: String,
    /// Its type.
    pub nc_type: i32,
    /// Number of values.
    pub len: usize,
    /// The values in the form of memory.
    pub values: OwnedValues,
}
