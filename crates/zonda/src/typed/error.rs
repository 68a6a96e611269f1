//! Why a typed call failed.

/// What typed calls return.
pub type Result<T> = std::result::Result<T, TypedError>;

/// Why a typed call failed. What the dataset itself refuses is its own error, with the code of netCDF.
///
/// ```
/// use zonda::typed::{File, TypedError};
/// let Err(TypedError::Dataset(error)) = File::open("there/is/none.nc") else { panic!() };
/// assert_eq!(error.code().code(), 2, "ENOENT");
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TypedError {
    /// The dataset refused it.
    #[error(transparent)]
    Dataset(#[from] crate::Error),

    /// A selection with another number of axes than the variable has dimensions.
    #[error("{object}: the selection has {given} axes, the variable has {rank} dimensions")]
    Rank {
        /// The variable.
        object: String,
        /// Axes of the selection.
        given: usize,
        /// Dimensions of the variable.
        rank: usize,
    },

    /// Another number of values than the selection has elements.
    #[error("{object}: {given} values were given for a selection of {selected} elements")]
    Length {
        /// The variable.
        object: String,
        /// Values given, or that there is room for.
        given: usize,
        /// Elements selected.
        selected: usize,
    },

    /// Values that the type on the other side cannot hold. All others were transferred.
    #[error(
        "{object}: {count} values do not fit the type that they go to; all others were transferred"
    )]
    OutOfRange {
        /// The variable or attribute.
        object: String,
        /// How many do not fit.
        count: u64,
    },

    /// A type that cannot be had as the one asked for.
    #[error("{object}: its type is {found}, which cannot be read or written as {wanted}")]
    Type {
        /// The variable, attribute or field.
        object: String,
        /// The type in the file.
        found: String,
        /// The type asked for.
        wanted: String,
    },

    /// Text that is not UTF-8.
    #[error("{object}: the text is not UTF-8 from byte {at} on; read it as `Char` or `u8`")]
    Utf8 {
        /// The variable or attribute.
        object: String,
        /// First byte that is none.
        at: usize,
    },
}
