//! The calls of a client: it makes them in its own copy of the definitions, and a server makes them again on the file.
//!
//! A call travels as bytes (the format of `postcard`). Values of puts and attributes do not belong to it: they travel behind it, as they
//! are in memory.

use serde::{Deserialize, Serialize};
use zonda_format::{
    Endianness, Error, FillMode, FilterSpec, GroupId, Reserve, Result, StorageRequest, VarRef,
};
use zonda_model::{DimId, Hyperslab, MemType, NcError};

use crate::wire;

/// How the values behind a call are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ValuesForm {
    /// Elements in the form of memory.
    Plain,
    /// Elements with what they point to, as [`OwnedValues::write_to`](zonda_format::OwnedValues::write_to) writes them.
    Owned,
}

/// A hyperslab that owns its lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnedSlab {
    start: Box<[usize]>,
    count: Box<[usize]>,
    stride: Option<Box<[isize]>>,
}

impl OwnedSlab {
    /// A copy.
    #[must_use]
    pub fn of(slab: &Hyperslab<'_>) -> OwnedSlab {
        OwnedSlab {
            start: slab.start.into(),
            count: slab.count.into(),
            stride: slab.stride.map(Box::from),
        }
    }

    /// The same for who takes references.
    #[must_use]
    pub fn slab(&self) -> Hyperslab<'_> {
        Hyperslab { start: &self.start, count: &self.count, stride: self.stride.as_deref() }
    }

    /// How far it is from `earlier` along the first dimension, where that is all in which they differ and it lies behind; and whether it begins where
    /// that ends.
    #[must_use]
    pub fn step_from(&self, earlier: &OwnedSlab) -> Option<(usize, bool)> {
        let ((first, others), (before, same)) =
            (self.start.split_first()?, earlier.start.split_first()?);
        let is_alike =
            others == same && self.count == earlier.count && self.stride == earlier.stride;
        let step = first.checked_sub(*before).filter(|step| *step > 0 && is_alike)?;
        let stride = self.stride.as_ref().and_then(|stride| stride.first()).map_or(1, |by| *by);
        let n = isize::try_from(*self.count.first()?).ok()?;
        Some((step, n.checked_mul(stride).is_some_and(|end| usize::try_from(end) == Ok(step))))
    }

    /// The same further along the first dimension.
    #[must_use]
    pub fn further(&self, step: usize) -> Option<OwnedSlab> {
        let mut there = self.clone();
        let first = there.start.first_mut()?;
        *first = first.checked_add(step)?;
        Some(there)
    }
}

/// Bytes of a name, UTF-8 unless the caller is odd.
type Name = Box<[u8]>;

/// A call. Variants have the names and arguments of the methods of [`DispatchWrite`](zonda_format::DispatchWrite) and
/// [`TypeDefinitions`](zonda_format::TypeDefinitions) where nothing else is said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the methods of the same names have the documentation")]
pub enum Call {
    /// The values come behind it.
    PutAtt {
        #[serde(with = "wire::OneVar")]
        owner: VarRef,
        name: Name,
        nc_type: i32,
        n_values: usize,
        #[serde(with = "wire::mem")]
        mem: Option<MemType>,
        form: ValuesForm,
    },
    CheckPutAtt {
        #[serde(with = "wire::OneVar")]
        owner: VarRef,
        name: Name,
        nc_type: i32,
        n_values: usize,
        #[serde(with = "wire::mem")]
        mem: Option<MemType>,
    },
    DelAtt {
        #[serde(with = "wire::OneVar")]
        owner: VarRef,
        name: Name,
    },
    RenameAtt {
        #[serde(with = "wire::OneVar")]
        owner: VarRef,
        name: Name,
        new_name: Name,
    },
    DefDim {
        #[serde(with = "wire::Group")]
        group: GroupId,
        name: Name,
        len: usize,
    },
    RenameDim {
        #[serde(with = "wire::Group")]
        group: GroupId,
        #[serde(with = "wire::Dim")]
        dim: DimId,
        name: Name,
    },
    DefVar {
        #[serde(with = "wire::Group")]
        group: GroupId,
        name: Name,
        nc_type: i32,
        dims: Box<[i32]>,
    },
    RenameVar {
        #[serde(with = "wire::OneVar")]
        var: VarRef,
        name: Name,
    },
    /// The value comes behind it, where `form` says that there is one.
    DefVarFill {
        #[serde(with = "wire::OneVar")]
        var: VarRef,
        no_fill: bool,
        form: Option<ValuesForm>,
    },
    SetFill {
        #[serde(with = "wire::Filling")]
        mode: FillMode,
    },
    DefGroup {
        #[serde(with = "wire::Group")]
        parent: GroupId,
        name: Name,
    },
    RenameGroup {
        #[serde(with = "wire::Group")]
        group: GroupId,
        name: Name,
    },
    DefCompound {
        #[serde(with = "wire::Group")]
        group: GroupId,
        size: usize,
        name: Name,
    },
    InsertField {
        #[serde(with = "wire::numbered")]
        compound: (GroupId, i32),
        name: Name,
        offset: usize,
        field_type: i32,
        dims: Box<[i32]>,
    },
    DefVlen {
        #[serde(with = "wire::Group")]
        group: GroupId,
        name: Name,
        base: i32,
    },
    DefOpaque {
        #[serde(with = "wire::Group")]
        group: GroupId,
        size: usize,
        name: Name,
    },
    DefEnum {
        #[serde(with = "wire::Group")]
        group: GroupId,
        base: i32,
        name: Name,
    },
    InsertMember {
        #[serde(with = "wire::numbered")]
        of: (GroupId, i32),
        name: Name,
        value: Box<[u8]>,
    },
    DefVarDeflate {
        #[serde(with = "wire::OneVar")]
        var: VarRef,
        shuffle: bool,
        level: Option<i32>,
    },
    DefVarFletcher32 {
        #[serde(with = "wire::OneVar")]
        var: VarRef,
        on: bool,
    },
    DefVarFilter {
        #[serde(with = "wire::OneVar")]
        var: VarRef,
        #[serde(with = "wire::Filter")]
        filter: FilterSpec,
    },
    DefVarChunking {
        #[serde(with = "wire::OneVar")]
        var: VarRef,
        #[serde(with = "wire::Layout")]
        storage: StorageRequest,
        sizes: Option<Box<[usize]>>,
    },
    DefVarEndian {
        #[serde(with = "wire::OneVar")]
        var: VarRef,
        #[serde(with = "wire::Order")]
        endianness: Endianness,
    },
    DefVarQuantize {
        #[serde(with = "wire::OneVar")]
        var: VarRef,
        mode: i32,
        kept: i32,
    },
    Redef,
    Enddef {
        #[serde(with = "wire::Room")]
        reserve: Reserve,
    },
    /// Ends define mode, as the first put or get of a netCDF-4 file does.
    EndDefinitions,
    Sync,
    Close,
    Abort,
    /// Commits what can be, for a client that ends without closing the file.
    Drain,
    /// Whether puts to a variable are made by all ranks together.
    SetCollective {
        #[serde(with = "wire::OneVar")]
        var: VarRef,
        is_collective: bool,
    },
    /// The first step of a put.
    CheckPut {
        #[serde(with = "wire::OneVar")]
        var: VarRef,
        slab: OwnedSlab,
        #[serde(with = "wire::mem")]
        mem: Option<MemType>,
    },
    /// Takes part with nothing in a put of all ranks.
    TakePart {
        #[serde(with = "wire::OneVar")]
        var: VarRef,
    },
    /// The values come behind it, in the type `mem`; `None` is the variable's own.
    Put {
        #[serde(with = "wire::OneVar")]
        var: VarRef,
        slab: OwnedSlab,
        #[serde(with = "wire::mem")]
        mem: Option<MemType>,
        form: ValuesForm,
    },
    /// Asks how long a variable is.
    Shape {
        #[serde(with = "wire::OneVar")]
        var: VarRef,
    },
    /// Asks for elements.
    Get {
        #[serde(with = "wire::OneVar")]
        var: VarRef,
        slab: OwnedSlab,
        #[serde(with = "wire::mem")]
        mem: Option<MemType>,
    },
}

/// A call as it travels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// The call.
    pub call: Call,
    /// It failed in the client's copy. It is made and fails on the file, too, since also a call that fails may end define mode, or
    /// settle how a variable is stored.
    pub failed: bool,
}

impl From<Call> for Told {
    fn from(call: Call) -> Told {
        Told { call, failed: false }
    }
}

impl Told {
    /// The call as bytes.
    ///
    /// # Errors
    /// `NC_EINTERNAL` for what cannot be written: a defect.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let why = "bug in Zonda: a call for an I/O server that cannot be written";
        postcard::to_allocvec(self).map_err(|_| Error::because(NcError::Internal, why))
    }

    /// What [`Told::encode`] made; `None` for anything else. Takes memory in proportion to the bytes.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Told> {
        let (told, rest) = postcard::take_from_bytes(bytes).ok()?;
        rest.is_empty().then_some(told)
    }
}

#[cfg(test)]
mod tests {
    use zonda_model::VarId;

    use super::*;

    fn calls() -> Vec<Call> {
        let (var, group) = (VarRef { group: GroupId(3), var: VarId(70_000) }, GroupId(300));
        let name = Name::from(*b"name");
        let slab = Hyperslab { start: &[1, usize::MAX], count: &[0, 7], stride: Some(&[1, -3]) };
        let slab = OwnedSlab::of(&slab);
        let filter = FilterSpec {
            id: 32015,
            optional: true,
            name: String::from("zstd"),
            params: vec![3, u32::MAX],
        };
        let reserve =
            Reserve::Explicit { h_minfree: 1, v_align: u64::MAX, v_minfree: 3, r_align: 4 };
        let mem = Some(MemType::F64);
        vec![
            Call::PutAtt {
                owner: var,
                name: name.clone(),
                nc_type: -5,
                n_values: 9,
                mem: Some(MemType::Text),
                form: ValuesForm::Owned,
            },
            Call::DefVar { group, name: name.clone(), nc_type: 33, dims: Box::from([0, -1, 7]) },
            Call::InsertField {
                compound: (group, 40),
                name,
                offset: 8,
                field_type: 12,
                dims: Box::default(),
            },
            Call::DefVarFilter { var, filter },
            Call::DefVarChunking {
                var,
                storage: StorageRequest::Chunked,
                sizes: Some(Box::from([1, 5])),
            },
            Call::DefVarEndian { var, endianness: Endianness::Big },
            Call::DefVarDeflate { var, shuffle: true, level: None },
            Call::SetFill { mode: FillMode::NoFill },
            Call::RenameDim { group, dim: DimId(9), name: Name::default() },
            Call::Enddef { reserve },
            Call::Enddef { reserve: Reserve::Default },
            Call::Redef,
            Call::Put { var, slab: slab.clone(), mem, form: ValuesForm::Plain },
            Call::Get { var, slab, mem: None },
        ]
    }

    #[test]
    fn calls_come_as_they_went() {
        for (call, failed) in calls().into_iter().zip([false, true].into_iter().cycle()) {
            let told = Told { call, failed };
            let bytes = told.encode().unwrap();
            assert_eq!(Told::decode(&bytes), Some(told.clone()));
            for cut in 0..bytes.len() {
                assert_eq!(Told::decode(&bytes[..cut]), None, "{told:?}");
            }
            assert_eq!(Told::decode(&[&bytes[..], &[0]].concat()), None, "{told:?}");
        }
    }

    #[test]
    fn slabs_along_the_first_dimension() {
        let slab = |start: [usize; 2], count: [usize; 2], stride: Option<&[isize]>| {
            OwnedSlab::of(&Hyperslab { start: &start, count: &count, stride })
        };
        let one = slab([4, 1], [2, 7], None);
        assert_eq!(slab([6, 1], [2, 7], None).step_from(&one), Some((2, true)));
        assert_eq!(slab([9, 1], [2, 7], None).step_from(&one), Some((5, false)));
        for other in [
            slab([4, 1], [2, 7], None),
            slab([3, 1], [2, 7], None),
            slab([6, 2], [2, 7], None),
            slab([6, 1], [2, 6], None),
            slab([6, 1], [2, 7], Some(&[1, 1])),
        ] {
            assert_eq!(other.step_from(&one), None, "{other:?}");
        }
        let by = Some(&[3, 1][..]);
        let far = slab([10, 0], [2, 7], by).step_from(&slab([4, 0], [2, 7], by));
        assert_eq!(far, Some((6, true)));
        assert_eq!(one.further(2), Some(slab([6, 1], [2, 7], None)));
        assert_eq!(one.further(usize::MAX), None);
        let scalar = OwnedSlab::of(&Hyperslab { start: &[], count: &[], stride: None });
        assert_eq!((scalar.step_from(&scalar), scalar.further(1)), (None, None));
    }

    /// Whatever the bytes, reading them ends, and takes no more memory than they have.
    #[test]
    fn damaged_calls_are_calls_or_none() {
        for call in calls() {
            let bytes = Told::from(call).encode().unwrap();
            for at in 0..bytes.len() {
                for other in [0, 1, 0x7f, 0x80, 0xff] {
                    let mut damaged = bytes.clone();
                    damaged[at] = other;
                    if let Some(read) = Told::decode(&damaged) {
                        assert!(read.encode().unwrap().len() <= damaged.len() + 16);
                    }
                }
            }
        }
        assert_eq!(Told::decode(&[]), None);
    }
}
