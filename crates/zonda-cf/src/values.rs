//! From stored numbers to values: what is missing, what is out of the valid range, sign, scale and offset, and the type
//! of the result. This is the one place that decides it, for `zonda view`, for `zonda.netcdf4` and for the xarray engine.
//!
//! Readers disagree about the attributes. Each way to read them is a [`Profile`]; [`ValueRules`] is what any of them says of a
//! variable, and who has a variable asks for the rules and does the arithmetic. [`Decoder`] does it element by element in
//! double precision; the Python package does it with NumPy, in blocks.
//!
//! | | [`View`](Profile::View) | [`NetCdf4Python`](Profile::NetCdf4Python) | [`Xarray`](Profile::Xarray) |
//! |---|---|---|---|
//! | `_Unsigned` | `true`, `false`, in any case | `true`, `True`; of signed integers; not without scaling | xarray decodes |
//! | `missing_value` | what equals one of its numbers | the same, if all keep their values in the stored type | one number, equal to `_FillValue` if that is there |
//! | `_FillValue` | the same | the same, if it keeps its value | the same |
//! | default fill value | of types of two bytes and more | the same, and of bytes that are filled; not of numbers meant unsigned | does not count |
//! | `valid_*` | of stored numbers, or of values if it has the packing's type | of stored numbers, if it keeps its values | do not count |
//! | attributes of text, or of too many numbers | numbers in text count; else not used, a note | not used, a warning, or an error of NumPy's | xarray decodes |
//! | result | double, rounded to single if that is the packing's | what NumPy makes of the product and the sum | what holds the numbers, NaN, and the packing |

use std::fmt;

use zonda_model::ExtType;

mod decoder;
mod netcdf4;
mod number;
mod reading;
mod view;
mod xarray;

pub use decoder::Decoder;
pub use netcdf4::{NetCdf4, Promotion};
pub use number::CfNumber;

/// Whose reading of the attributes is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// The NetCDF Users Guide, "Attribute Conventions", and CF 1.11, sections 2.5.1 and 8.1. One point is practice
    /// instead: the Guide takes everything beyond a fill value for missing, too; here, as in the other readers, only
    /// what equals it is.
    View,
    /// netCDF4-python 1.7: attributes count if NumPy's cast to the stored type keeps their values; values have the type
    /// that NumPy gives the operations.
    NetCdf4Python(NetCdf4),
    /// xarray's `CFMaskCoder` and `CFScaleOffsetCoder` (2024.10 and newer). What they warn of, or do not make
    /// floating-point numbers of, is not said here but [left](Rules::left) to xarray.
    Xarray,
}

/// An attribute of a variable.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeValue {
    /// There is none.
    Absent,
    /// Characters, or one string.
    Text(Vec<u8>),
    /// Numbers of a type.
    Numbers(ExtType, Vec<CfNumber>),
    /// Of a type that has neither, or several strings.
    Other,
}

/// An attribute that says something about values, but in a way that has no meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unused {
    /// Its name.
    pub attribute: &'static str,
    /// What was expected.
    pub wanted: &'static str,
}

impl fmt::Display for Unused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "attribute {} is not used: it is not {}", self.attribute, self.wanted)
    }
}

/// How the stored numbers of a variable become values.
///
/// The bits of an element are a number of the type `taken_as`. It stands for no value if it equals one of `missing` or of
/// `fill` that counts, or is outside of `stored_range`. Others are scaled, and what is then outside of `value_range`
/// stands for no value either.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueRules {
    /// The variable's type.
    pub stored: ExtType,
    /// The type of the numbers that the bits stand for: of the other sign, where `_Unsigned` says it.
    pub taken_as: ExtType,
    /// `missing_value`.
    pub missing: Vec<CfNumber>,
    /// What elements have that were never written.
    pub fill: Option<FillRule>,
    /// Which numbers are valid before they are scaled.
    pub stored_range: Range,
    /// Which numbers are valid after they are scaled.
    pub value_range: Range,
    /// What is done with valid numbers.
    pub scaling: Scaling,
    /// Attributes that were left out of account.
    pub unused: Vec<Unused>,
    /// Attributes over which the library that the profile follows has the last word: errors, warnings, or a decoding
    /// that this profile does not say.
    pub left: Vec<&'static str>,
}

/// What elements have that were never written.
#[derive(Clone, Debug, PartialEq)]
pub struct FillRule {
    /// The type of the numbers.
    pub ty: ExtType,
    /// One number; several, if the attribute has them.
    pub numbers: Vec<CfNumber>,
    /// No attribute says it.
    pub is_default: bool,
    /// Whether elements that equal it are missing; else it is known, but masks nothing.
    pub counts: bool,
}

/// Bounds that are valid themselves. There are several numbers only where an attribute has as many.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Range {
    /// What is below is not valid.
    pub least: Vec<CfNumber>,
    /// What is above is not valid.
    pub most: Vec<CfNumber>,
}

/// A number with its type, which decides about the result's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factor {
    /// The attribute's type.
    pub ty: ExtType,
    /// Its number.
    pub number: CfNumber,
}

/// Numbers are multiplied, then added to. Where nothing is said, nothing is done, so that numbers stay as they are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaling {
    /// `scale_factor`.
    pub factor: Option<Factor>,
    /// `add_offset`.
    pub offset: Option<Factor>,
    /// The type of the product.
    pub product: ExtType,
    /// The type of values, scaled or not.
    pub result: ExtType,
}

impl ValueRules {
    /// What the attributes of a variable of a type say to a profile; `attribute` gives them by name.
    ///
    /// # Errors
    /// Those of `attribute`.
    pub fn of<E>(
        profile: Profile,
        ty: ExtType,
        attribute: impl FnMut(&'static str) -> Result<AttributeValue, E>,
    ) -> Result<ValueRules, E> {
        match profile {
            Profile::View => view::rules(ty, attribute),
            Profile::NetCdf4Python(session) => netcdf4::rules(ty, session, attribute),
            Profile::Xarray => xarray::rules(ty, attribute),
        }
    }

    /// Rules that change nothing.
    fn none(ty: ExtType) -> ValueRules {
        ValueRules {
            stored: ty,
            taken_as: ty,
            missing: Vec::new(),
            fill: None,
            stored_range: Range::default(),
            value_range: Range::default(),
            scaling: Scaling { factor: None, offset: None, product: ty, result: ty },
            unused: Vec::new(),
            left: Vec::new(),
        }
    }
}

impl Range {
    fn has(&self, number: CfNumber) -> bool {
        !self.least.iter().any(|least| number.is_below(*least))
            && !self.most.iter().any(|most| most.is_below(number))
    }
}

#[cfg(test)]
mod profile_tests;
#[cfg(test)]
mod tests;
