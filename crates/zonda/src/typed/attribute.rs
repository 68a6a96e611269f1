//! Attributes by type.

use zonda_format::{NC_STRING, VarRef};
use zonda_model::{ExtType, NcError};

use super::error::{Result, TypedError, refused};
use super::file::File;
use super::group::text;
use super::value::{At, Char, Reading, Value, Writing};

/// Values of an attribute, as they are written: text, numbers of one type, or strings. Made from what
/// [`Group::put_attribute`](super::Group::put_attribute) is given.
///
/// ```
/// use zonda::typed::AttributeValue;
/// assert_eq!(AttributeValue::from("m"), AttributeValue::Text("m".into()));
/// assert_eq!(AttributeValue::from([0.0f32, 1.0]), AttributeValue::Float(vec![0.0, 1.0]));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AttributeValue {
    /// Characters (`NC_CHAR`): what units and names are.
    Text(String),
    /// Strings (`NC_STRING`), in netCDF-4 files.
    Strings(Vec<String>),
    /// `NC_BYTE`
    Byte(Vec<i8>),
    /// `NC_UBYTE`
    UByte(Vec<u8>),
    /// `NC_SHORT`
    Short(Vec<i16>),
    /// `NC_USHORT`
    UShort(Vec<u16>),
    /// `NC_INT`
    Int(Vec<i32>),
    /// `NC_UINT`
    UInt(Vec<u32>),
    /// `NC_INT64`
    Int64(Vec<i64>),
    /// `NC_UINT64`
    UInt64(Vec<u64>),
    /// `NC_FLOAT`
    Float(Vec<f32>),
    /// `NC_DOUBLE`
    Double(Vec<f64>),
}

impl From<&str> for AttributeValue {
    fn from(text: &str) -> AttributeValue {
        AttributeValue::Text(text.into())
    }
}

impl From<String> for AttributeValue {
    fn from(text: String) -> AttributeValue {
        AttributeValue::Text(text)
    }
}

impl From<&[&str]> for AttributeValue {
    fn from(texts: &[&str]) -> AttributeValue {
        AttributeValue::Strings(texts.iter().map(|&text| text.into()).collect())
    }
}

impl<const N: usize> From<[&str; N]> for AttributeValue {
    fn from(texts: [&str; N]) -> AttributeValue {
        AttributeValue::from(&texts[..])
    }
}

impl From<Vec<String>> for AttributeValue {
    fn from(texts: Vec<String>) -> AttributeValue {
        AttributeValue::Strings(texts)
    }
}

/// What an attribute can be read as: a `String`, a number, a list of either, or [`AttributeValue`], whatever its type is.
///
/// A number asks for an attribute of just one value. NULs at the end of text, which programs in C leave there, are no part of a
/// `String`.
///
/// ```
/// # use zonda::typed::{FromAttribute, Variable};
/// fn scale(variable: &Variable<'_>) -> f64 {
///     variable.attribute("scale_factor").unwrap_or(1.0)
/// }
/// ```
pub trait FromAttribute: Sized {
    /// Reads it.
    #[doc(hidden)]
    fn from_attribute(from: &Reading<'_>) -> Result<Self>;
}

impl FromAttribute for String {
    fn from_attribute(from: &Reading<'_>) -> Result<String> {
        if from.nc_type == NC_STRING {
            return one(from);
        }
        if from.nc_type != ExtType::Char.nc_type() {
            return Err(from.other_type("String"));
        }
        let mut bytes: Vec<u8> = Char::read(from)?.into_iter().map(|char| char.0).collect();
        while bytes.last() == Some(&0) {
            bytes.pop();
        }
        String::from_utf8(bytes).map_err(|error| from.not_utf8(error.utf8_error().valid_up_to()))
    }
}

impl<T: Value> FromAttribute for Vec<T> {
    fn from_attribute(from: &Reading<'_>) -> Result<Vec<T>> {
        T::read(from)
    }
}

/// Whatever it is; an attribute of a user-defined type is none of them.
impl FromAttribute for AttributeValue {
    fn from_attribute(from: &Reading<'_>) -> Result<AttributeValue> {
        any(from)
    }
}

/// The only value of an attribute.
fn one<T: Value>(from: &Reading<'_>) -> Result<T> {
    let mut values = T::read(from)?;
    match (values.pop(), values.len()) {
        (Some(value), 0) => Ok(value),
        (_, _) => Err(TypedError::NotSingle { object: (from.object)(), found: from.n_elems }),
    }
}

macro_rules! numbers {
    ($($number:ty => $kind:ident;)*) => {
        $(
            impl From<$number> for AttributeValue {
                fn from(value: $number) -> AttributeValue {
                    AttributeValue::$kind(vec![value])
                }
            }

            impl From<Vec<$number>> for AttributeValue {
                fn from(values: Vec<$number>) -> AttributeValue {
                    AttributeValue::$kind(values)
                }
            }

            impl From<&[$number]> for AttributeValue {
                fn from(values: &[$number]) -> AttributeValue {
                    AttributeValue::$kind(values.to_vec())
                }
            }

            impl<const N: usize> From<[$number; N]> for AttributeValue {
                fn from(values: [$number; N]) -> AttributeValue {
                    AttributeValue::$kind(values.to_vec())
                }
            }

            impl FromAttribute for $number {
                fn from_attribute(from: &Reading<'_>) -> Result<$number> {
                    one(from)
                }
            }
        )*

        fn any(from: &Reading<'_>) -> Result<AttributeValue> {
            match from.nc_type {
                NC_STRING => Ok(AttributeValue::Strings(String::read(from)?)),
                char if char == ExtType::Char.nc_type() => {
                    Ok(AttributeValue::Text(String::from_attribute(from)?))
                }
                $(number if number == ExtType::$kind.nc_type() => {
                    Ok(AttributeValue::$kind(<$number>::read(from)?))
                })*
                _ => Err(from.other_type("AttributeValue")),
            }
        }

        /// Writes an attribute of a group or a variable.
        pub(super) fn put(file: &File, owner: VarRef, name: &str, value: &AttributeValue) -> Result<()> {
            file.define().map_err(|error| with_name(error.into(), file.dataset(), owner, name))?;
            match value {
                AttributeValue::Text(text) => {
                    let chars: Vec<Char> = text.bytes().map(Char).collect();
                    write(file, owner, name, &chars, ExtType::Char.nc_type())
                }
                AttributeValue::Strings(texts) => write(file, owner, name, texts, NC_STRING),
                $(AttributeValue::$kind(values) => {
                    write(file, owner, name, values, ExtType::$kind.nc_type())
                })*
            }
        }
    };
}

numbers! {
    i8 => Byte;
    u8 => UByte;
    i16 => Short;
    u16 => UShort;
    i32 => Int;
    u32 => UInt;
    i64 => Int64;
    u64 => UInt64;
    f32 => Float;
    f64 => Double;
}

fn write<T: Value>(
    file: &File,
    owner: VarRef,
    name: &str,
    values: &[T],
    nc_type: i32,
) -> Result<()> {
    let dataset = file.dataset();
    let object = || format!("{}: {}", dataset.path().display(), called(dataset, owner, name));
    let at = At::Att(owner, name.as_bytes());
    T::write(values, &Writing { dataset, at, nc_type, n_elems: values.len(), object: &object })
        .map_err(|error| with_name(error, dataset, owner, name))
}

/// An attribute with what it belongs to, for messages.
fn called(dataset: &crate::Dataset, owner: VarRef, name: &str) -> String {
    match of(dataset, owner) {
        owner if owner.is_empty() => format!("attribute {name}"),
        owner => format!("{owner}: attribute {name}"),
    }
}

/// Path of a variable or a group; empty for the root.
fn of(dataset: &crate::Dataset, owner: VarRef) -> String {
    let path = dataset.in_group(owner.group, |meta| {
        let group = text(&meta.group_path());
        match meta.var(owner.var) {
            Ok(var) => format!("{}/{}", group.trim_end_matches('/'), text(var.name)),
            Err(_) => group,
        }
    });
    path.ok().filter(|path| path != "/").unwrap_or_default()
}

/// What the dataset refused, with the attribute.
fn named(error: crate::Error, dataset: &crate::Dataset, owner: VarRef, name: &str) -> TypedError {
    let of = of(dataset, owner);
    if of.is_empty() {
        return refused(error, dataset, "attribute", name);
    }
    refused(error, dataset, &format!("{of}: attribute"), name)
}

fn with_name(error: TypedError, dataset: &crate::Dataset, owner: VarRef, name: &str) -> TypedError {
    match error {
        TypedError::Dataset(error) => named(error, dataset, owner, name),
        error => error,
    }
}

pub(super) fn get<A: FromAttribute>(file: &File, owner: VarRef, name: &str) -> Result<A> {
    let dataset = file.dataset();
    let (nc_type, len) = dataset
        .in_group(owner.group, |meta| {
            let (_, att) = meta.find_att(owner.var, name.as_bytes())?;
            Ok::<_, crate::Error>((att.nc_type, att.len))
        })?
        .map_err(|error| named(error, dataset, owner, name))?;
    let n_elems = usize::try_from(len).map_err(|_| crate::Error::from(NcError::NoMem))?;
    let object = || format!("{}: {}", dataset.path().display(), called(dataset, owner, name));
    let at = At::Att(owner, name.as_bytes());
    A::from_attribute(&Reading { dataset, at, nc_type, n_elems, object: &object })
        .map_err(|error| with_name(error, dataset, owner, name))
}

pub(super) fn names(file: &File, owner: VarRef) -> Result<Vec<String>> {
    Ok(file.dataset().in_group(owner.group, |meta| {
        let names =
            (0..meta.n_atts(owner.var)?).map(|index| Ok(text(&meta.att(owner.var, index)?.name)));
        names.collect::<crate::Result<_>>()
    })??)
}
