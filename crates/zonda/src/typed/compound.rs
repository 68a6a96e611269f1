//! Structures: compounds of the file as structures of Rust.

use zonda_format::{Destination, FIRST_USER_TYPE, Field, UserClass, Values};
use zonda_model::{ExtType, NcError, memory};

use super::error::{Result, TypedError, refused};
use super::group::{Group, text};
use super::value::{Char, Reading, Writing};

/// A structure whose values a compound of a file holds. [`compound!`](crate::compound) implements it.
pub trait Compound: Sized {
    /// Name of the type in a file.
    ///
    /// See [`compound!`](crate::compound).
    fn name() -> &'static str;

    /// Its fields, in order.
    ///
    /// See [`compound!`](crate::compound).
    fn fields() -> Vec<CompoundField>;

    /// Makes one of its fields, which are read in order.
    ///
    /// See [`compound!`](crate::compound).
    fn load(from: &mut FieldReader<'_>) -> Self;

    /// Gives its fields away, in order.
    ///
    /// See [`compound!`](crate::compound).
    fn store(&self, to: &mut FieldWriter<'_>);
}

/// Implements [`Compound`](crate::typed::Compound) for a structure: its values can then be read and written as those of a
/// compound type, which a new file gets with the first variable that needs it.
///
/// Fields are found by their names, whatever their order and place in the file is. They are numbers, [`Char`](crate::typed::Char),
/// other structures, and arrays of one dimension of these. A structure that lacks some fields of the type in the file can be read, and
/// not written: nobody knows what the others shall be.
///
/// ```
/// use zonda::typed::File;
///
/// #[derive(Clone, Debug, PartialEq)]
/// struct Observation { time: f64, level: i32, wind: [f32; 2] }
/// zonda::compound!(Observation { time: f64, level: i32, wind: [f32; 2] });
///
/// # let folder = std::env::temp_dir().join(format!("zonda-compound-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("obs.nc");
/// let file = File::create(&path)?;
/// file.add_unlimited_dimension("n")?;
/// let variable = file.add_variable::<Observation>("obs", &["n"])?;
/// let one = Observation { time: 0.5, level: 850, wind: [3.0, -4.0] };
/// variable.put(.., &[one.clone()])?;
/// assert_eq!(variable.get::<Observation>(0)?, [one]);
/// # file.close()?;
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[macro_export]
macro_rules! compound {
    ($name:ident { $($field:ident: $ty:ty),+ $(,)? }) => {
        impl $crate::typed::Compound for $name {
            fn name() -> &'static str {
                stringify!($name)
            }

            fn fields() -> Vec<$crate::typed::CompoundField> {
                vec![$($crate::typed::CompoundField::of::<$ty>(stringify!($field))),+]
            }

            fn load(from: &mut $crate::typed::FieldReader<'_>) -> $name {
                $name { $($field: from.next()),+ }
            }

            fn store(&self, to: &mut $crate::typed::FieldWriter<'_>) {
                $(to.next(&self.$field);)+
            }
        }

        impl $crate::typed::FieldValue for $name {
            const SHAPE: &'static [i32] = &[];

            fn kind() -> $crate::typed::FieldKind {
                $crate::typed::FieldKind::of_compound::<$name>()
            }

            fn load(bytes: &[u8], from: &$crate::typed::FieldKind) -> $name {
                $crate::typed::load_compound(bytes, from)
            }

            fn store(&self, bytes: &mut [u8], to: &$crate::typed::FieldKind) {
                $crate::typed::store_compound(self, bytes, to);
            }
        }
    };
}

/// What a field of a structure can be: a number, a [`Char`], an array of these, or a structure.
pub trait FieldValue: Sized {
    /// Shape of an array; empty for a single value.
    const SHAPE: &'static [i32];

    /// What a single value is.
    ///
    /// See [`compound!`](crate::compound).
    fn kind() -> FieldKind;

    /// The value that these bytes of a field hold, as many as the field has in memory.
    ///
    /// See [`compound!`](crate::compound).
    fn load(bytes: &[u8], from: &FieldKind) -> Self;

    /// Writes it to the bytes of a field.
    ///
    /// See [`compound!`](crate::compound).
    fn store(&self, bytes: &mut [u8], to: &FieldKind);
}

/// What a single value of a field is.
///
/// See [`compound!`](crate::compound).
#[derive(Clone, Debug)]
pub enum FieldKind {
    /// A number or a character.
    Number(ExtType),
    /// A structure.
    Compound {
        /// Its name.
        name: &'static str,
        /// Its fields.
        fields: Vec<CompoundField>,
        /// Its bytes.
        size: usize,
    },
}

/// A field of a structure, and where it is in the bytes of one value.
///
/// See [`compound!`](crate::compound).
#[derive(Clone, Debug)]
pub struct CompoundField {
    name: &'static str,
    kind: FieldKind,
    shape: &'static [i32],
    offset: usize,
}

impl FieldKind {
    /// The kind of a structure: its fields one behind the other, each where C would have it.
    ///
    /// See [`compound!`](crate::compound).
    #[must_use]
    pub fn of_compound<T: Compound>() -> FieldKind {
        let mut fields = T::fields();
        let size = lay_out(&mut fields);
        FieldKind::Compound { name: T::name(), fields, size }
    }

    fn size(&self) -> usize {
        match self {
            FieldKind::Number(ty) => ty.size(),
            FieldKind::Compound { size, .. } => *size,
        }
    }

    fn align(&self) -> usize {
        match self {
            FieldKind::Number(ty) => ty.size(),
            FieldKind::Compound { fields, .. } => {
                fields.iter().map(|field| field.kind.align()).max().unwrap_or(1)
            }
        }
    }
}

impl CompoundField {
    /// A field of that name. Where it is follows from the fields before it.
    ///
    /// See [`compound!`](crate::compound).
    #[must_use]
    pub fn of<T: FieldValue>(name: &'static str) -> CompoundField {
        CompoundField { name, kind: T::kind(), shape: T::SHAPE, offset: 0 }
    }

    /// Bytes of all its values.
    fn size(&self) -> usize {
        self.shape.iter().fold(self.kind.size(), |bytes, &n| {
            bytes.saturating_mul(usize::try_from(n).unwrap_or(0))
        })
    }
}

/// Gives each field its place. Bytes of all.
fn lay_out(fields: &mut [CompoundField]) -> usize {
    let mut end = 0usize;
    let mut most = 1;
    for field in fields {
        let align = field.kind.align();
        most = most.max(align);
        field.offset = end.next_multiple_of(align);
        end = field.offset.saturating_add(field.size());
    }
    end.next_multiple_of(most)
}

/// The fields of one value, one after the other.
///
/// See [`compound!`](crate::compound).
#[derive(Debug)]
pub struct FieldReader<'a> {
    bytes: &'a [u8],
    fields: std::slice::Iter<'a, CompoundField>,
}

impl FieldReader<'_> {
    /// The next field.
    ///
    /// # Panics
    /// Where more fields are asked for than the structure has: an implementation of [`Compound`] by hand is wrong.
    #[allow(clippy::should_implement_trait)] // each is of another type
    pub fn next<T: FieldValue>(&mut self) -> T {
        let field = self.fields.next().expect("`load` takes as many fields as `fields` names");
        T::load(&self.bytes[field.offset..field.offset + field.size()], &field.kind)
    }
}

/// Where the fields of one value go, one after the other.
///
/// See [`compound!`](crate::compound).
#[derive(Debug)]
pub struct FieldWriter<'a> {
    bytes: &'a mut [u8],
    fields: std::slice::Iter<'a, CompoundField>,
}

impl FieldWriter<'_> {
    /// Writes the next field.
    ///
    /// # Panics
    /// Where more fields are given than the structure has: an implementation of [`Compound`] by hand is wrong.
    pub fn next<T: FieldValue>(&mut self, value: &T) {
        let field = self.fields.next().expect("`store` gives as many fields as `fields` names");
        value.store(&mut self.bytes[field.offset..field.offset + field.size()], &field.kind);
    }
}

/// Of a structure within another one: what [`compound!`](crate::compound) calls.
#[doc(hidden)]
#[must_use]
pub fn load_compound<T: Compound>(bytes: &[u8], from: &FieldKind) -> T {
    T::load(&mut FieldReader { bytes, fields: fields_of(from).iter() })
}

/// Of a structure within another one: what [`compound!`](crate::compound) calls.
#[doc(hidden)]
pub fn store_compound<T: Compound>(value: &T, bytes: &mut [u8], to: &FieldKind) {
    value.store(&mut FieldWriter { bytes, fields: fields_of(to).iter() });
}

fn fields_of(kind: &FieldKind) -> &[CompoundField] {
    match kind {
        FieldKind::Compound { fields, .. } => fields,
        FieldKind::Number(_) => &[],
    }
}

macro_rules! number_fields {
    ($($number:ty => $ty:ident;)*) => { $(
        impl FieldValue for $number {
            const SHAPE: &'static [i32] = &[];

            fn kind() -> FieldKind {
                FieldKind::Number(ExtType::$ty)
            }

            fn load(bytes: &[u8], _: &FieldKind) -> $number {
                bytemuck::pod_read_unaligned(bytes)
            }

            fn store(&self, bytes: &mut [u8], _: &FieldKind) {
                bytes.copy_from_slice(bytemuck::bytes_of(self));
            }
        }
    )* };
}

number_fields! {
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
    Char => Char;
}

impl<T: FieldValue, const N: usize> FieldValue for [T; N] {
    const SHAPE: &'static [i32] = {
        assert!(
            N >= 1 && N <= i32::MAX as usize,
            "a field that is an array has 1 to 2^31 - 1 elements"
        );
        &[N as i32]
    };

    fn kind() -> FieldKind {
        // netCDF has no arrays of arrays in a field, but arrays of several dimensions.
        const { assert!(T::SHAPE.is_empty(), "a field is an array of one dimension") }
        T::kind()
    }

    fn load(bytes: &[u8], from: &FieldKind) -> [T; N] {
        let size = from.size();
        std::array::from_fn(|at| T::load(&bytes[at * size..(at + 1) * size], from))
    }

    fn store(&self, bytes: &mut [u8], to: &FieldKind) {
        for (value, bytes) in self.iter().zip(bytes.chunks_exact_mut(to.size().max(1))) {
            value.store(bytes, to);
        }
    }
}

/// Number of the type in the file that holds such structures; it is defined if the group cannot see one of that name.
pub(super) fn define<T: Compound>(group: &Group<'_>) -> Result<i32> {
    define_kind(group, &FieldKind::of_compound::<T>())
}

fn define_kind(group: &Group<'_>, kind: &FieldKind) -> Result<i32> {
    let (name, fields, size) = match kind {
        FieldKind::Number(ty) => return Ok(ty.nc_type()),
        FieldKind::Compound { name, fields, size } => (*name, fields, *size),
    };
    let (dataset, id) = (group.dataset(), group.id());
    if let Ok(found) = dataset.in_group(id, |meta| meta.find_type(name.as_bytes()))? {
        let other = |wanted: &str| TypedError::Type {
            object: format!("{}: type {name}", dataset.path().display()),
            found: "a compound of other fields".into(),
            wanted: wanted.into(),
        };
        let placed = in_file(dataset, found, kind, &other)?;
        check_complete(dataset, found, &placed, &other)?;
        return Ok(found);
    }
    let types: Vec<i32> =
        fields.iter().map(|field| define_kind(group, &field.kind)).collect::<Result<_>>()?;
    let define = || {
        group.file().define()?;
        let nc_type = dataset.def_compound(id, size, name.as_bytes())?;
        for (field, field_type) in fields.iter().zip(types) {
            let CompoundField { name, offset, shape, .. } = *field;
            dataset.insert_field((id, nc_type), name.as_bytes(), offset, field_type, shape)?;
        }
        Ok(nc_type)
    };
    define().map_err(|error| refused(error, dataset, "type", name))
}

/// The same fields with the places that they have in a type of the file, and the bytes of one value there.
fn in_file(
    dataset: &crate::Dataset,
    nc_type: i32,
    wanted: &FieldKind,
    other: &dyn Fn(&str) -> TypedError,
) -> Result<FieldKind> {
    let FieldKind::Compound { name, fields, .. } = wanted else { return Ok(wanted.clone()) };
    let no_fit = |field: &str| Err(other(&format!("{name} (field {field})")));
    let Some((theirs, size)) = fields_in_file(dataset, nc_type)? else { return Err(other(name)) };
    let mut placed = Vec::with_capacity(fields.len());
    for ours in fields {
        let Some(field) = theirs.iter().find(|field| *field.name == *ours.name.as_bytes()) else {
            return no_fit(ours.name);
        };
        let is_same = match &ours.kind {
            FieldKind::Number(ty) => ty.nc_type() == field.nc_type,
            FieldKind::Compound { .. } => field.nc_type >= FIRST_USER_TYPE,
        };
        if !is_same || field.dims != ours.shape {
            return no_fit(ours.name);
        }
        let kind = in_file(dataset, field.nc_type, &ours.kind, other)?;
        let placed_field = CompoundField { kind, offset: field.offset, ..ours.clone() };
        if field.offset.checked_add(placed_field.size()).is_none_or(|end| end > size) {
            return no_fit(ours.name);
        }
        placed.push(placed_field);
    }
    Ok(FieldKind::Compound { name, fields: placed, size })
}

/// Whether the structure has all fields of the type in the file: those that it lacks would be overwritten by zeros.
fn check_complete(
    dataset: &crate::Dataset,
    nc_type: i32,
    ours: &FieldKind,
    other: &dyn Fn(&str) -> TypedError,
) -> Result<()> {
    let FieldKind::Compound { name, fields, .. } = ours else { return Ok(()) };
    for theirs in fields_in_file(dataset, nc_type)?.map(|(fields, _)| fields).unwrap_or_default() {
        let Some(field) = fields.iter().find(|field| *field.name.as_bytes() == *theirs.name) else {
            return Err(other(&format!("{name} (without field {})", text(&theirs.name))));
        };
        check_complete(dataset, theirs.nc_type, &field.kind, other)?;
    }
    Ok(())
}

/// The fields of a compound of the file and the bytes of one value; `None` for another type.
fn fields_in_file(dataset: &crate::Dataset, nc_type: i32) -> Result<Option<(Vec<Field>, usize)>> {
    Ok(dataset.in_group(crate::GroupId::ROOT, |meta| {
        let ty = meta.user_type(nc_type)?;
        Ok::<_, crate::Error>(match &ty.class {
            UserClass::Compound(fields) => Some((fields.to_vec(), ty.size)),
            _ => None,
        })
    })??)
}

pub(super) fn read<T: Compound>(from: &Reading<'_>) -> Result<Vec<T>> {
    if from.nc_type < FIRST_USER_TYPE {
        return Err(from.other_type(T::name()));
    }
    let kind = FieldKind::of_compound::<T>();
    let kind = in_file(from.dataset, from.nc_type, &kind, &|wanted| from.other_type(wanted))?;
    let mut bytes = bytes_for(from.n_elems, kind.size())?;
    let _ = from.transfer(None, Destination::plain(&mut bytes))?;
    Ok(bytes.chunks_exact(kind.size().max(1)).map(|one| load_compound(one, &kind)).collect())
}

pub(super) fn write<T: Compound>(values: &[T], to: &Writing<'_>) -> Result<()> {
    if to.nc_type < FIRST_USER_TYPE {
        return Err(to.other_type(T::name()));
    }
    let kind = FieldKind::of_compound::<T>();
    let kind = in_file(to.dataset, to.nc_type, &kind, &|wanted| to.other_type(wanted))?;
    check_complete(to.dataset, to.nc_type, &kind, &|wanted| to.other_type(wanted))?;
    let mut bytes = bytes_for(values.len(), kind.size())?;
    for (value, one) in values.iter().zip(bytes.chunks_exact_mut(kind.size().max(1))) {
        store_compound(value, one, &kind);
    }
    to.transfer(None, Values::plain(&bytes)).map(drop)
}

fn bytes_for(n: usize, size: usize) -> Result<Vec<u8>> {
    let n_bytes = n.checked_mul(size).ok_or(crate::Error::from(NcError::NoMem))?;
    Ok(memory::filled(n_bytes, 0).map_err(crate::Error::from)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Inner {
        a: u8,
        b: f64,
    }
    crate::compound!(Inner { a: u8, b: f64 });

    struct Outer {
        tag: Char,
        inner: [Inner; 2],
        end: i16,
    }
    crate::compound!(Outer { tag: Char, inner: [Inner; 2], end: i16 });

    #[test]
    fn fields_lie_where_c_has_them() {
        #[repr(C)]
        struct InC {
            tag: u8,
            inner: [(u64, f64); 2],
            end: i16,
        }
        let FieldKind::Compound { fields, size, .. } = FieldKind::of_compound::<Outer>() else {
            panic!()
        };
        let offsets: Vec<usize> = fields.iter().map(|field| field.offset).collect();
        let in_c = [std::mem::offset_of!(InC, tag), 8, std::mem::offset_of!(InC, end)];
        assert_eq!((offsets.as_slice(), size), (&in_c[..], size_of::<InC>()));
    }

    #[test]
    fn what_is_stored_is_loaded() {
        let kind = FieldKind::of_compound::<Outer>();
        let inner = |a| Inner { a, b: f64::from(a) / 2.0 };
        let outer = Outer { tag: Char(b'x'), inner: [inner(1), inner(2)], end: -3 };
        let mut bytes = vec![0xff; kind.size()];
        store_compound(&outer, &mut bytes, &kind);
        let back: Outer = load_compound(&bytes, &kind);
        assert_eq!((back.tag, back.end), (Char(b'x'), -3));
        assert_eq!(back.inner.map(|inner| (inner.a, inner.b)), [(1, 0.5), (2, 1.0)]);
    }
}
