//! Why a typed call failed.

/// What typed calls return.
///
/// See [`TypedError`].
pub type Result<T> = std::result::Result<T, TypedError>;

use zonda_model::{Answer, NcError};

/// What the dataset refused, with what it was asked about (`variable`, `/ocean/t`) where its message lacks that.
#[cold]
pub(super) fn refused(
    error: crate::Error,
    dataset: &crate::Dataset,
    what: &str,
    path: &str,
) -> TypedError {
    // Of what the device or the file itself refuses, the error has more to say than its text.
    let is_of_file = matches!(error.code(), NcError::System(_));
    if is_of_file || !matches!(error.answer(), Answer::Request | Answer::NoMemory | Answer::Missing)
    {
        return error.at(dataset.path()).into();
    }
    let (cause, name) = (error.cause(), path.rsplit('/').next().unwrap_or(path));
    // Formats name objects in these ways.
    let names = [format!("{path}:"), format!("{name:?}"), format!("{what} {name}")];
    if names.iter().any(|name| cause.contains(name)) {
        return error.at(dataset.path()).into();
    }
    error.with_other_text(format!("{what} {path}: {cause}")).at(dataset.path()).into()
}

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

    /// A selection, or a shape of chunks, with another number of axes than the variable has dimensions.
    #[error("{object}: {given} axes were given, the variable has {rank} dimensions")]
    Rank {
        /// The variable.
        object: String,
        /// Axes of the selection or the chunks.
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

    /// An array of another shape than what is selected. Axes of one element do not count.
    #[error("{object}: the array has the shape {given:?}, the selection {selected:?}")]
    Shape {
        /// The variable.
        object: String,
        /// Elements of the array along each of its axes.
        given: Vec<usize>,
        /// Elements selected along each dimension.
        selected: Vec<usize>,
    },

    /// An attribute of several values, or none, that was to be had as one.
    #[error("{object}: it has {found} values, not one; read it as a `Vec`")]
    NotSingle {
        /// The attribute.
        object: String,
        /// Values that it has.
        found: usize,
    },

    /// Values that the type on the other side cannot hold. All others were transferred.
    #[error(
        "{object}: {count} of the values do not fit, which go from {from} to {to}; all others were transferred"
    )]
    OutOfRange {
        /// The variable or attribute.
        object: String,
        /// The type that they have.
        from: String,
        /// The type that they were to have.
        to: String,
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

    /// Text with a NUL in it, which netCDF would take for its end.
    #[error("{object}: the text has a NUL at byte {at}, where netCDF would end it")]
    Nul {
        /// The variable or attribute.
        object: String,
        /// Where the NUL is.
        at: usize,
    },

    /// Text that is not UTF-8.
    #[error(
        "{object}: the text is not UTF-8 from byte {at} on; text of type char can be read as `Char`"
    )]
    Utf8 {
        /// The variable or attribute.
        object: String,
        /// First byte that is none.
        at: usize,
    },
}
