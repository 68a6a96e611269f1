//! Capabilities of a format: callers ask for these, and not which format it is.

/// What files of a format can have, and how they behave. Constant for an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Groups, and definitions in each.
    pub groups: bool,
    /// Types of users, and strings.
    pub user_types: bool,
    /// Dimensions that can grow.
    pub unlimited: Unlimited,
    /// How each variable is stored (chunks, filters, byte order, fill value) can be inquired, and chosen where the
    /// file can be written.
    pub storage: bool,
    /// What define mode is.
    pub define_mode: DefineMode,
    /// Which of the reference's formats it behaves like.
    pub dialect: Dialect,
    /// What `nc_inq_format_extended` calls it: a number of `NC_FORMATX_*`.
    pub formatx: i32,
    /// Several threads can put at once, by [`Dispatch::shared_put`](crate::Dispatch::shared_put).
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
    /// Definitions need define mode, gets and puts need data mode.
    Needed,
    /// Definitions, gets and puts enter and leave define mode by themselves.
    Implied,
}

/// Which of the reference's formats a format behaves like, where these differ: in the order of errors, in the
/// treatment of null pointers, and of attributes without values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Like its classic formats.
    Classic,
    /// Like netCDF-4.
    NetCdf4,
}

impl Dialect {
    /// Whether it behaves like netCDF-4.
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

    /// Everything that netCDF has.
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
