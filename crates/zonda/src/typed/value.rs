//! Values that go into and out of datasets.

use bytemuck::{Pod, Zeroable};
use zonda_convert::Converted;
use zonda_format::{
    Access, AttAccess, AttPut, Destination, FIRST_USER_TYPE, NC_STRING, Transfer, UserClass,
    Values, VarRef,
};
use zonda_model::{ExtType, MemType, NcError, memory};

use super::compound::{self, Compound};
use super::error::{Result, TypedError};
use super::group::Group;
use super::selection::Resolved;
use super::text::Strings;
use crate::Dataset;

/// What a variable or an attribute can have as values: all numbers of 8 to 64 bits, [`Char`], `String`, and structures with
/// [`compound!`](crate::compound).
///
/// Numbers are converted from and to any other type of number. Those that do not fit are an error; NaN fits no integer. (Of classic
/// files `u8` has the bytes of type `byte` as they are, so that -1 is 255: netCDF does not say whether these have a sign.) Functions take any `T: Value`, so that
/// the type that the caller wants is said once.
///
/// ```
/// # use zonda::typed::{Result, Value, Variable};
/// fn first<T: Value>(variable: &Variable<'_>) -> Result<Option<T>> {
///     Ok(variable.get::<T>(..1)?.pop())
/// }
/// ```
pub trait Value: Sized {
    /// Number of the type that a new variable or attribute of such values has in the file. A structure is defined in the
    /// group, if the group and those around it do not have it.
    ///
    /// See [`compound!`](crate::compound).
    ///
    /// # Errors
    /// What defining it meets: `NC_ENOTNC4` in a file that has no such types.
    fn nc_type(group: &Group<'_>) -> Result<i32>;

    /// Reads all values.
    #[doc(hidden)]
    fn read(from: &Reading<'_>) -> Result<Vec<Self>>;

    /// Writes all values.
    #[doc(hidden)]
    fn write(values: &[Self], to: &Writing<'_>) -> Result<()>;
}

/// A number that the memory of a transfer can have: `i8` to `u64`, `f32`, `f64`, and [`Char`].
///
/// ```
/// use zonda::typed::Number;
/// assert_eq!(<f32 as Number>::TYPE, zonda::ExtType::Float);
/// ```
pub trait Number: Pod + Value {
    /// Its type in memory.
    const MEMORY: MemType;
    /// The type in a file that holds the same values.
    const TYPE: ExtType;
}

/// A character of a variable of type `NC_CHAR`: one byte of text, which is no number.
///
/// ```
/// use zonda::typed::Char;
/// let name: Vec<Char> = b"EGLL".iter().map(|&byte| Char(byte)).collect();
/// # assert_eq!(name[0], Char(b'E'));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct Char(pub u8);

macro_rules! numbers {
    ($($number:ty => $memory:ident, $ty:ident;)*) => { $(
        impl Number for $number {
            const MEMORY: MemType = MemType::$memory;
            const TYPE: ExtType = ExtType::$ty;
        }

        impl Value for $number {
            fn nc_type(_: &Group<'_>) -> Result<i32> {
                Ok(<$number as Number>::TYPE.nc_type())
            }

            fn read(from: &Reading<'_>) -> Result<Vec<$number>> {
                let mut values = zeroed(from.n_elems)?;
                from.fits::<$number>(from.numbers(&mut values)?)?;
                Ok(values)
            }

            fn write(values: &[$number], to: &Writing<'_>) -> Result<()> {
                to.numbers(values)
            }
        }
    )* };
}

numbers! {
    i8 => I8, Byte;
    u8 => U8, UByte;
    i16 => I16, Short;
    u16 => U16, UShort;
    i32 => I32, Int;
    u32 => U32, UInt;
    i64 => I64, Int64;
    u64 => U64, UInt64;
    f32 => F32, Float;
    f64 => F64, Double;
    Char => Text, Char;
}

impl Value for String {
    fn nc_type(_: &Group<'_>) -> Result<i32> {
        Ok(NC_STRING)
    }

    fn read(from: &Reading<'_>) -> Result<Vec<String>> {
        if from.nc_type != NC_STRING {
            return Err(from.other_type("String"));
        }
        let mut strings = Strings::default();
        let mut addresses: Vec<u64> = zeroed(from.n_elems)?;
        let bytes = bytemuck::cast_slice_mut(&mut addresses);
        let _ = from.transfer(None, Destination { bytes, place: Some(&mut strings) })?;
        strings.of(&addresses).map_err(|at| from.not_utf8(at))
    }

    fn write(values: &[String], to: &Writing<'_>) -> Result<()> {
        // What goes to the dataset are numbers that stand for strings: no other type may take them.
        if to.nc_type != NC_STRING {
            return Err(to.other_type("String"));
        }
        if let Some(at) = values.iter().find_map(|text| text.find('\0')) {
            return Err(TypedError::Nul { object: (to.object)(), at });
        }
        let (mut strings, addresses) = Strings::from_texts(values.iter().map(String::as_str));
        let bytes = bytemuck::cast_slice(&addresses);
        to.transfer(None, Values { bytes, fetch: Some(&mut strings) }).map(drop)
    }
}

impl<T: Compound> Value for T {
    fn nc_type(group: &Group<'_>) -> Result<i32> {
        compound::define::<T>(group)
    }

    fn read(from: &Reading<'_>) -> Result<Vec<T>> {
        compound::read(from)
    }

    fn write(values: &[T], to: &Writing<'_>) -> Result<()> {
        compound::write(values, to)
    }
}

/// A list of zeros.
///
/// # Errors
/// `NC_ENOMEM`.
pub(super) fn zeroed<T: Zeroable + Clone>(n: usize) -> Result<Vec<T>> {
    Ok(memory::filled(n, T::zeroed()).map_err(crate::Error::from)?)
}

/// Where values are: elements of a variable, or an attribute.
#[derive(Clone, Copy)]
pub(super) enum At<'a> {
    Var(VarRef, &'a Resolved),
    Att(VarRef, &'a [u8]),
}

/// Values that are to be read.
#[doc(hidden)]
pub struct Reading<'a> {
    pub(super) dataset: &'a Dataset,
    pub(super) at: At<'a>,
    pub(super) nc_type: i32,
    pub(super) n_elems: usize,
    /// What they are values of, with the path of the file.
    pub(super) object: &'a dyn Fn() -> String,
}

impl std::fmt::Debug for Reading<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reading").field("object", &(self.object)()).finish_non_exhaustive()
    }
}

impl Reading<'_> {
    pub(super) fn transfer(
        &self,
        mem: Option<MemType>,
        room: Destination<'_>,
    ) -> Result<Converted> {
        Ok(match self.at {
            At::Var(var, slab) => {
                let mut get = Transfer::new(Access { var, slab: slab.slab(), mem });
                self.dataset.get_from(var)?.check(&mut get)?.read(room)?
            }
            At::Att(owner, name) => {
                let mut get = Transfer::new(AttAccess { owner, name, mem });
                self.dataset.get_att_from(&mut get)?.read(room)?
            }
        })
    }

    /// Reads numbers into memory that is there.
    pub(super) fn numbers<T: Number>(&self, out: &mut [T]) -> Result<Converted> {
        // An enumeration is read as what its values are.
        let mem = match self.enum_base()? {
            Some(base) if base == T::TYPE.nc_type() => None,
            _ => Some(T::MEMORY),
        };
        let moved = self.transfer(mem, Destination::plain(bytemuck::cast_slice_mut(out)));
        let mut converted = moved.map_err(|error| {
            if is_of_type(&error) { self.other_type(name_of::<T>()) } else { error }
        })?;
        if is_integer::<T>() && is_float(self.nc_type) {
            converted.out_of_range += self.n_nans()?;
        }
        Ok(converted)
    }

    /// How many values are NaN, which no integer is; conversions do not count them, as those of netCDF-C do not.
    fn n_nans(&self) -> Result<u64> {
        let mut values: Vec<f64> = zeroed(self.n_elems)?;
        let bytes = bytemuck::cast_slice_mut(&mut values);
        let _ = self.transfer(Some(MemType::F64), Destination::plain(bytes))?;
        Ok(count_nans(&values))
    }

    fn enum_base(&self) -> Result<Option<i32>> {
        enum_base(self.dataset, self.nc_type)
    }

    /// Whether all values fitted.
    fn fits<T: Number>(&self, converted: Converted) -> Result<()> {
        match converted.out_of_range {
            0 => Ok(()),
            count => Err(TypedError::OutOfRange {
                object: (self.object)(),
                from: type_name(self.dataset, self.nc_type),
                to: name_of::<T>().to_owned(),
                count,
            }),
        }
    }

    #[cold]
    pub(super) fn other_type(&self, wanted: &str) -> TypedError {
        let found = described(self.dataset, self.nc_type);
        TypedError::Type { object: (self.object)(), found, wanted: wanted.into() }
    }

    #[cold]
    pub(super) fn not_utf8(&self, at: usize) -> TypedError {
        TypedError::Utf8 { object: (self.object)(), at }
    }
}

/// Values that are to be written.
#[doc(hidden)]
pub struct Writing<'a> {
    pub(super) dataset: &'a Dataset,
    pub(super) at: At<'a>,
    /// The type in the file.
    pub(super) nc_type: i32,
    pub(super) n_elems: usize,
    pub(super) object: &'a dyn Fn() -> String,
}

impl std::fmt::Debug for Writing<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writing").field("object", &(self.object)()).finish_non_exhaustive()
    }
}

impl Writing<'_> {
    pub(super) fn transfer(&self, mem: Option<MemType>, values: Values<'_>) -> Result<Converted> {
        Ok(match self.at {
            At::Var(var, slab) => {
                let mut put = Transfer::new(Access { var, slab: slab.slab(), mem });
                self.dataset.put_to(var)?.check(&mut put)?.write(values)?
            }
            At::Att(owner, name) => {
                let (nc_type, n_values) = (self.nc_type, self.n_elems);
                let att = AttPut { owner, name, nc_type, n_values, mem };
                self.dataset.put_att_to(&att)?.write(values)?
            }
        })
    }

    fn numbers<T: Number>(&self, values: &[T]) -> Result<()> {
        let mem = match enum_base(self.dataset, self.nc_type)? {
            Some(base) if base == T::TYPE.nc_type() => None,
            _ => Some(T::MEMORY),
        };
        let converted = self.transfer(mem, Values::plain(bytemuck::cast_slice(values)));
        match converted {
            // An attribute has the type that it is given.
            Err(error) if matches!(self.at, At::Var(..)) && is_of_type(&error) => {
                Err(self.other_type(name_of::<T>()))
            }
            converted => match converted?.out_of_range + self.n_nans(values) {
                0 => Ok(()),
                count => Err(TypedError::OutOfRange {
                    object: (self.object)(),
                    from: name_of::<T>().to_owned(),
                    to: type_name(self.dataset, self.nc_type),
                    count,
                }),
            },
        }
    }

    /// As [`Reading::n_nans`], of values that are to become integers.
    fn n_nans<T: Number>(&self, values: &[T]) -> u64 {
        match T::MEMORY {
            _ if is_float(self.nc_type) => 0,
            MemType::F32 => count_nans::<f32>(bytemuck::cast_slice(values)),
            MemType::F64 => count_nans::<f64>(bytemuck::cast_slice(values)),
            _ => 0,
        }
    }

    #[cold]
    pub(super) fn other_type(&self, wanted: &str) -> TypedError {
        let found = described(self.dataset, self.nc_type);
        TypedError::Type { object: (self.object)(), found, wanted: wanted.into() }
    }
}

fn is_float(nc_type: i32) -> bool {
    nc_type == ExtType::Float.nc_type() || nc_type == ExtType::Double.nc_type()
}

fn is_integer<T: Number>() -> bool {
    !is_float(T::TYPE.nc_type()) && T::TYPE != ExtType::Char
}

fn count_nans<T: Copy + PartialEq>(values: &[T]) -> u64 {
    #[allow(clippy::eq_op)] // what is not itself is NaN
    values.iter().map(|value| u64::from(value != value)).sum()
}

/// Whether numbers and what is none met.
fn is_of_type(error: &TypedError) -> bool {
    matches!(error, TypedError::Dataset(error) if matches!(error.code(), NcError::Char | NcError::BadType))
}

/// The name of a type without the modules it is in.
fn name_of<T>() -> &'static str {
    let name = std::any::type_name::<T>();
    name.rsplit_once("::").map_or(name, |(_, last)| last)
}

/// The type of an enumeration's values; `None` for other types.
fn enum_base(dataset: &Dataset, nc_type: i32) -> Result<Option<i32>> {
    if nc_type < FIRST_USER_TYPE {
        return Ok(None);
    }
    Ok(dataset.in_group(crate::GroupId::ROOT, |meta| match meta.user_type(nc_type)?.class {
        UserClass::Enum { base, .. } => Ok::<_, crate::Error>(Some(base)),
        _ => Ok(None),
    })??)
}

/// The name of a type, with what kind of type it is where the file defines it.
fn described(dataset: &Dataset, nc_type: i32) -> String {
    let name = type_name(dataset, nc_type);
    let kind = dataset.meta(|meta| match meta.user_type(nc_type).ok()?.class {
        UserClass::Compound(_) => Some(("compound", None)),
        UserClass::Enum { base, .. } => Some(("enumeration of", Some(base))),
        UserClass::Vlen { base } => Some(("sequence of", Some(base))),
        UserClass::Opaque => Some(("opaque", None)),
        UserClass::String => Some(("text", None)),
        UserClass::Unknown => Some(("not in netCDF", None)),
    });
    match kind {
        Some((kind, Some(base))) => format!("{name} ({kind} {})", type_name(dataset, base)),
        Some((kind, None)) => format!("{name} ({kind})"),
        None => name,
    }
}

/// The name of a type for a message.
pub(super) fn type_name(dataset: &Dataset, nc_type: i32) -> String {
    if let Some(ty) = ExtType::from_nc_type(nc_type) {
        return ty.name().to_owned();
    }
    if nc_type == NC_STRING {
        return "string".to_owned();
    }
    let name = dataset.meta(|meta| Some(meta.user_type(nc_type).ok()?.name.clone()));
    name.map_or_else(
        || format!("type {nc_type}"),
        |name| String::from_utf8_lossy(&name).into_owned(),
    )
}
