//! The definitions of a text, without data.
//!
//! Groups, types, dimensions and variables are numbered in the order of the text; a number is an index
//! into the list of the schema.

use zonda_model::ExtType;

use crate::constant::PlacedConstant;
use crate::dialect::Dialect;
use crate::kind::{Needs, NetCdfKind};

/// A type that CDL has by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Primitive {
    /// A number or a character.
    Atomic(ExtType),
    /// A string of any length.
    String,
}

/// A type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TypeRef {
    /// A type that CDL has by itself.
    Primitive(Primitive),
    /// A type that the text defines, by its number.
    User(usize),
}

/// A group; the first one is the root.
#[derive(Clone, Debug)]
pub struct CdlGroup {
    /// Name; of the root, that of the dataset.
    pub name: Vec<u8>,
    /// The group around it; `None` for the root.
    pub parent: Option<usize>,
    /// Byte of the text.
    pub at: u64,
}

/// A type that the text defines.
#[derive(Clone, Debug)]
pub struct CdlType {
    /// Group.
    pub group: usize,
    /// Name.
    pub name: Vec<u8>,
    /// Its kind and parts.
    pub class: TypeClass,
    /// Bytes of a value in memory, as C compilers lay it out.
    pub size: usize,
    /// Bytes that a value in memory is aligned to.
    pub align: usize,
    /// Byte of the text.
    pub at: u64,
}

/// The kind and parts of a type.
#[derive(Clone, Debug)]
pub enum TypeClass {
    /// Bytes without meaning.
    Opaque,
    /// Named integers.
    Enum {
        /// Type of the integers.
        base: ExtType,
        /// Names and values.
        members: Vec<CdlEnumMember>,
    },
    /// Sequences of any length.
    Vlen {
        /// Type of an item.
        base: TypeRef,
    },
    /// Fields.
    Compound(Vec<CdlField>),
}

/// A member of an enum type.
#[derive(Clone, Debug)]
pub struct CdlEnumMember {
    /// Name.
    pub name: Vec<u8>,
    /// Value: the first bytes, as many as the base type has, in native order.
    pub value: [u8; 8],
}

/// A field of a compound type.
#[derive(Clone, Debug)]
pub struct CdlField {
    /// Name.
    pub name: Vec<u8>,
    /// Type.
    pub ty: TypeRef,
    /// Shape; empty for one value.
    pub dims: Vec<usize>,
    /// Offset in the compound in memory, in bytes.
    pub offset: usize,
}

/// A dimension.
#[derive(Clone, Debug)]
pub struct CdlDimension {
    /// Group.
    pub group: usize,
    /// Name.
    pub name: Vec<u8>,
    /// Length; for an unlimited dimension that of the data that were read so far.
    pub len: u64,
    /// Whether it can grow.
    pub unlimited: bool,
    /// Byte of the text.
    pub at: u64,
}

/// A variable.
#[derive(Clone, Debug)]
pub struct CdlVariable {
    /// Group.
    pub group: usize,
    /// Name.
    pub name: Vec<u8>,
    /// Type.
    pub ty: TypeRef,
    /// Dimensions, slowest first.
    pub dims: Vec<usize>,
    /// How the file stores it.
    pub special: VariableStorage,
    /// The value of `_FillValue`.
    pub fill: Option<PlacedConstant>,
    /// The part of the text with its data: from behind `=` up to `;`.
    pub data: Option<(u64, u64)>,
    /// Byte of the text.
    pub at: u64,
}

/// How a variable is stored, as attributes such as `_ChunkSizes` ask for it.
#[derive(Clone, Debug, Default)]
pub struct VariableStorage {
    /// `_Storage`
    pub storage: Option<StorageLayout>,
    /// `_ChunkSizes`
    pub chunk_sizes: Option<Vec<usize>>,
    /// `_DeflateLevel`
    pub deflate: Option<i32>,
    /// `_Shuffle`
    pub shuffle: Option<bool>,
    /// `_Fletcher32`
    pub fletcher32: Option<bool>,
    /// `_Endianness`
    pub endianness: Option<Endian>,
    /// `_NoFill`
    pub no_fill: Option<bool>,
    /// `_Filter`: numbers and parameters.
    pub filters: Vec<(u32, Vec<u32>)>,
    /// `_Quantize...`: the algorithm, and how many digits or bits are kept.
    pub quantize: Option<(Quantizer, i32)>,
    /// The place of the first of these attributes in the text.
    pub at: Option<u64>,
}

/// `_Storage`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageLayout {
    /// In one piece.
    Contiguous,
    /// In the header.
    Compact,
    /// In chunks.
    Chunked,
}

/// `_Endianness`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endian {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

/// An algorithm of quantization, which gives up precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantizer {
    /// `_QuantizeBitGroomNumberOfSignificantDigits`
    BitGroom,
    /// `_QuantizeGranularBitRoundNumberOfSignificantDigits`
    GranularBitRound,
    /// `_QuantizeBitRoundNumberOfSignificantBits`
    BitRound,
}

/// An attribute.
#[derive(Clone, Debug)]
pub struct CdlAttribute {
    /// Group; that of the variable if the attribute belongs to one.
    pub group: usize,
    /// Variable; `None` for an attribute of the group.
    pub var: Option<usize>,
    /// Name.
    pub name: Vec<u8>,
    /// Type.
    pub ty: TypeRef,
    /// Values.
    pub values: Vec<PlacedConstant>,
    /// Byte of the text.
    pub at: u64,
}

/// All definitions of a text.
#[derive(Clone, Debug)]
pub struct Schema {
    /// Groups, each after the group around it.
    pub groups: Vec<CdlGroup>,
    /// Types, each after the types of its parts.
    pub types: Vec<CdlType>,
    /// Dimensions.
    pub dims: Vec<CdlDimension>,
    /// Variables.
    pub vars: Vec<CdlVariable>,
    /// Attributes.
    pub atts: Vec<CdlAttribute>,
    /// The value of `_Format`.
    pub format: Option<NetCdfKind>,
    pub(crate) needs: Needs,
    pub(crate) dialect: Dialect,
}

impl Primitive {
    /// Name in CDL.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Primitive::Atomic(ext) => ext.name(),
            Primitive::String => "string",
        }
    }

    /// Bytes of a value in memory; of a string, those of an address.
    #[must_use]
    pub fn size(self) -> usize {
        match self {
            Primitive::Atomic(ext) => ext.size(),
            Primitive::String => 8,
        }
    }
}

impl TypeRef {
    /// Characters.
    pub const CHAR: TypeRef = TypeRef::Primitive(Primitive::Atomic(ExtType::Char));

    /// The atomic type; `None` for other types.
    #[must_use]
    pub fn atomic(self) -> Option<ExtType> {
        match self {
            TypeRef::Primitive(Primitive::Atomic(ext)) => Some(ext),
            _ => None,
        }
    }
}

impl Schema {
    /// Bytes of a value in memory.
    #[must_use]
    pub fn size_of(&self, ty: TypeRef) -> usize {
        match ty {
            TypeRef::Primitive(primitive) => primitive.size(),
            TypeRef::User(user) => self.types.get(user).map_or(0, |ty| ty.size),
        }
    }

    /// Bytes that a value in memory is aligned to.
    #[must_use]
    pub fn align_of(&self, ty: TypeRef) -> usize {
        match ty {
            TypeRef::Primitive(primitive) => primitive.size(),
            TypeRef::User(user) => self.types.get(user).map_or(1, |ty| ty.align),
        }
    }

    /// Name of a type.
    #[must_use]
    pub fn type_name(&self, ty: TypeRef) -> String {
        match ty {
            TypeRef::Primitive(primitive) => primitive.name().to_owned(),
            TypeRef::User(user) => {
                let name = self.types.get(user).map(|ty| &ty.name[..]);
                String::from_utf8_lossy(name.unwrap_or_default()).into_owned()
            }
        }
    }

    /// Whether values of the type point to something: strings, sequences.
    #[must_use]
    pub fn has_pieces(&self, ty: TypeRef) -> bool {
        match ty {
            TypeRef::Primitive(primitive) => primitive == Primitive::String,
            TypeRef::User(user) => match self.types.get(user).map(|ty| &ty.class) {
                Some(TypeClass::Vlen { .. }) => true,
                Some(TypeClass::Compound(fields)) => fields.iter().any(|f| self.has_pieces(f.ty)),
                _ => false,
            },
        }
    }

    /// Types in the order in which the reference defines them, which files keep: types without
    /// parts of other types come first.
    #[must_use]
    pub fn type_order(&self) -> Vec<usize> {
        let is_plain = |ty: &TypeRef| matches!(ty, TypeRef::Primitive(_));
        let (mut first, others): (Vec<usize>, Vec<usize>) =
            (0..self.types.len()).partition(|index| match &self.types[*index].class {
                TypeClass::Opaque | TypeClass::Enum { .. } => true,
                TypeClass::Vlen { base } => is_plain(base),
                TypeClass::Compound(fields) => fields.iter().all(|field| is_plain(&field.ty)),
            });
        first.extend(others);
        first
    }

    /// The kind of file if none is asked for: that of `_Format`, else the simplest that has all
    /// features of the text.
    #[must_use]
    pub fn kind(&self) -> NetCdfKind {
        self.format.unwrap_or_else(|| self.needs.kind())
    }

    /// A feature of the text that only netCDF-4 has, and the place of its first use.
    #[must_use]
    pub fn enhanced(&self) -> Option<(u64, &'static str)> {
        self.needs.enhanced
    }

    /// Replaces types that a kind of file lacks: variables of 64-bit integers become ints, as in
    /// the reference.
    pub fn settle(&mut self, kind: NetCdfKind) {
        if kind.has_all_integers() {
            return;
        }
        let int64 = TypeRef::Primitive(Primitive::Atomic(ExtType::Int64));
        let int = TypeRef::Primitive(Primitive::Atomic(ExtType::Int));
        for var in self.vars.iter_mut().filter(|var| var.ty == int64) {
            var.ty = int;
        }
        let vars = &self.vars;
        for att in self.atts.iter_mut().filter(|att| att.name == b"_FillValue") {
            if let Some(var) = att.var.and_then(|var| vars.get(var)) {
                att.ty = var.ty;
            }
        }
    }

    /// The path of a group from the root, which is `/`.
    #[must_use]
    pub fn group_path(&self, group: usize) -> Vec<u8> {
        let mut parts: Vec<&[u8]> = Vec::new();
        let mut next = self.groups.get(group);
        while let Some(CdlGroup { parent: Some(parent), name, .. }) = next {
            parts.push(name);
            next = self.groups.get(*parent);
        }
        parts.push(b"");
        parts.reverse();
        if parts.len() == 1 { b"/".to_vec() } else { parts.join(&b'/') }
    }
}
