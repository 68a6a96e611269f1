//! What a type is made of, apart from its file and its name.

use zonda_format::{Field, Member, Meta, NC_STRING, UserClass};
use zonda_model::ExtType;

use crate::error::Result;

/// What a type is made of. Types of two files are compared by it.
///
/// See [`Dataset`](crate::Dataset).
#[derive(Debug, PartialEq, Eq)]
pub enum TypeShape {
    /// An atomic type, `NC_STRING` included: its number.
    Atomic(i32),
    /// So many bytes without a meaning.
    Opaque(usize),
    /// A string as a user-defined type.
    Text,
    /// A sequence of values of one type.
    Vlen(Box<TypeShape>),
    /// Named values of an integer type.
    Enum(i32, Vec<Member>),
    /// Bytes of a value, and its fields.
    Compound(usize, Vec<FieldShape>),
    /// A type that netCDF cannot represent; it is equal to no type.
    Unknown,
}

/// A field of a compound type: name, offset in bytes, dimensions and type.
type FieldShape = (Box<[u8]>, usize, Vec<i32>, TypeShape);

impl TypeShape {
    /// The shape of a type.
    ///
    /// # Errors
    /// `NC_EBADTYPE` where the file has no such type.
    pub fn of(meta: &Meta<'_>, nc_type: i32) -> Result<TypeShape> {
        if nc_type == NC_STRING || ExtType::from_nc_type(nc_type).is_some() {
            return Ok(TypeShape::Atomic(nc_type));
        }
        let ty = meta.user_type(nc_type)?;
        // A type consists of types that were defined before it, so the recursion ends.
        let shape_of = |number| TypeShape::of(meta, number).unwrap_or(TypeShape::Unknown);
        Ok(match &ty.class {
            UserClass::Opaque => TypeShape::Opaque(ty.size),
            UserClass::String => TypeShape::Text,
            UserClass::Vlen { base } => TypeShape::Vlen(Box::new(shape_of(*base))),
            UserClass::Enum { base, members } => TypeShape::Enum(*base, members.clone()),
            UserClass::Compound(fields) => {
                let field =
                    |f: &Field| (f.name.clone(), f.offset, f.dims.clone(), shape_of(f.nc_type));
                TypeShape::Compound(ty.size, fields.iter().map(field).collect())
            }
            UserClass::Unknown => TypeShape::Unknown,
        })
    }

    /// Whether two types are made alike.
    #[must_use]
    pub fn is_like(&self, other: &TypeShape) -> bool {
        !self.is_unknown() && self == other
    }

    fn is_unknown(&self) -> bool {
        match self {
            TypeShape::Unknown => true,
            TypeShape::Vlen(base) => base.is_unknown(),
            TypeShape::Compound(_, fields) => fields.iter().any(|(.., shape)| shape.is_unknown()),
            _ => false,
        }
    }
}
