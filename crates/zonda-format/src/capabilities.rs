//! What a format can do: what callers branch on, instead of asking which format it is.

/// What files of a format can have, and how they behave. Constant for an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Groups, and definitions in each.
    pub groups: bool,
    /// Types of users, and strings.
    pub user_types: bool,
    /// Dimensions that can grow.
    pub unlimited: Unlimited,
    /// How each variable is stored (chunks, filters, byte order, fill) can be asked for, and chosen where the file can be
    /// written.
    pub storage: bool,
    /// What define mode is.
    pub define_mode: DefineMode,
    /// Whose habits it has.
    pub dialect: Dialect,
    /// What `nc_inq_format_extended` calls it: a number of `NC_FORMATX_*`.
    pub formatx: i32,
    /// Puts do not need the file alone: [`Dispatch::shared_put`](crate::Dispatch::shared_put) is there.
    pub shared_puts: bool,
}

/// Which dimensions can grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlimited {
    /// None.
    None,
    /// One, which is the first of each variable that has it.
    First,
    /// Any number, anywhere.
    Any,
}

/// What define mode is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefineMode {
    /// Definitions need it, gets and puts need the other one.
    Needed,
    /// Definitions, gets and puts enter and leave it.
    Implied,
}

/// Whose habits a format has where those of the reference differ: the order of its errors, what it takes null pointers for, and what
/// attributes without values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Those of its classic formats.
    Classic,
    /// Those of netCDF-4.
    NetCdf4,
}

impl Dialect {
    /// Whether it has those of netCDF-4.
    #[must_use]
    pub fn is_netcdf4(self) -> bool {
        self == Dialect::NetCdf4
    }
}

impl Capabilities {
    /// The classic formats.
    pub const CLASSIC: Capabilities = Capabilities {
        groups: false,
        user_types: false,
        unlimited: Unlimited::First,
        storage: false,
        define_mode: DefineMode::Needed,
        dialect: Dialect::Classic,
        formatx: 1,
        shared_puts: true,
    };

    /// All that netCDF has.
    pub const NETCDF4: Capabilities = Capabilities {
        groups: true,
        user_types: true,
        unlimited: Unlimited::Any,
        storage: true,
        define_mode: DefineMode::Implied,
        dialect: Dialect::NetCdf4,
        formatx: 2,
        shared_puts: false,
    };
}
