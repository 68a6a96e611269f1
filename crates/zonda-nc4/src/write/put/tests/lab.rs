//! A file in memory to put to.

use std::path::Path;
use std::sync::Arc;

use zonda_convert::Converted;
use zonda_hdf5::message::{
    ByteOrder, Charset, Class, Datatype, FilterDescription, FixedPoint, FloatingPoint,
    Normalisation, Padding,
};
use zonda_model::{DimId, ExtType, Hyperslab, MemType, VarId};
use zonda_storage::backend::Memory;

use crate::files::ObjectAt;
use crate::model::{Dim, Endianness, GroupId, Var};
use crate::write::{CreateHow, Fill, Layout, ObjectKey, Quantize, VarDraft};
use crate::{Nc4Error, Nc4File, OpenHow, Source, Target};

pub(super) struct Lab {
    pub(super) memory: Arc<Memory>,
    pub(super) file: Nc4File,
}

/// How a variable is stored.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind<'a> {
    Contiguous,
    Compact,
    Chunked(&'a [u64]),
}

/// A variable to be defined.
pub(super) struct Made<'a> {
    name: String,
    datatype: Datatype,
    nc_type: i32,
    dims: &'a [DimId],
    kind: Kind<'a>,
    filters: Vec<FilterDescription>,
    fill: Fill,
    quantize: Option<Quantize>,
}

impl<'a> Made<'a> {
    pub(super) fn new(name: &str, nc_type: i32, dims: &'a [DimId]) -> Made<'a> {
        Made {
            name: name.into(),
            datatype: datatype(nc_type, false),
            nc_type,
            dims,
            kind: Kind::Contiguous,
            filters: Vec::new(),
            fill: Fill::Default,
            quantize: None,
        }
    }

    pub(super) fn kind(self, kind: Kind<'a>) -> Made<'a> {
        Made { kind, ..self }
    }

    pub(super) fn big_endian(self) -> Made<'a> {
        Made { datatype: datatype(self.nc_type, true), ..self }
    }

    pub(super) fn fill(self, fill: Fill) -> Made<'a> {
        Made { fill, ..self }
    }

    pub(super) fn quantize(self, quantize: Quantize) -> Made<'a> {
        Made { quantize: Some(quantize), ..self }
    }

    pub(super) fn deflate(mut self) -> Made<'a> {
        self.filters.push(FilterDescription {
            id: 1,
            flags: 1,
            name: (*b"").into(),
            params: vec![1],
        });
        self
    }
}

/// The file's type of an atomic type.
fn datatype(nc_type: i32, big: bool) -> Datatype {
    let order = if big { ByteOrder::Big } else { ByteOrder::Little };
    let Some(ext) = ExtType::from_nc_type(nc_type) else {
        let class =
            Class::VarLenString { padding: Padding::NullTerminated, charset: Charset::Utf8 };
        return Datatype { size: 16, class };
    };
    let precision = 8 * ext.size() as u16;
    let float = |exponent_at, exponent_bits, bias| {
        Class::FloatingPoint(FloatingPoint {
            order,
            bit_offset: 0,
            precision,
            normalisation: Normalisation::Implied,
            sign: precision as u8 - 1,
            exponent_at,
            exponent_bits,
            mantissa_at: 0,
            mantissa_bits: exponent_at,
            bias,
        })
    };
    let class = match ext {
        ExtType::Char => {
            Class::String { padding: Padding::NullTerminated, charset: Charset::Ascii }
        }
        ExtType::Float => float(23, 8, 127),
        ExtType::Double => float(52, 11, 1023),
        _ => {
            let signed = matches!(
                ext,
                ExtType::Byte | ExtType::Short | ExtType::Int | ExtType::Int64
            );
            let padding = [false; 2];
            Class::FixedPoint(FixedPoint { order, signed, padding, bit_offset: 0, precision })
        }
    };
    Datatype { size: ext.size() as u32, class }
}

impl Lab {
    pub(super) fn new() -> Lab {
        Lab::of(false)
    }

    pub(super) fn classic() -> Lab {
        Lab::of(true)
    }

    fn of(classic: bool) -> Lab {
        let memory = Arc::new(Memory::new());
        let how = CreateHow {
            classic,
            attribute_order: true,
            attach_scales: true,
            properties: b"version=2".to_vec(),
        };
        let path = Path::new("test.nc");
        let file = Nc4File::create(memory.clone(), path, OpenHow::default(), how).unwrap();
        Lab { memory, file }
    }

    pub(super) fn dim(&mut self, name: &str, len: u64) -> DimId {
        let model = self.file.model.get_mut().unwrap();
        let id = DimId(model.dims.len() as i32);
        let (name, group) = (name.as_bytes().into(), GroupId::ROOT);
        model.dims.push(Some(Dim { name, group, len, is_unlimited: len == 0, at: None }));
        model.group_mut(group).unwrap().dims.push(id);
        self.file.writing_mut().unwrap().changed.insert(ObjectKey::Scale(id));
        id
    }

    pub(super) fn var(&mut self, made: Made<'_>) -> VarId {
        let Made { name, datatype, nc_type, dims, kind, filters, fill, quantize } = made;
        let model = self.file.model.get_mut().unwrap();
        let extent: Vec<_> = dims.iter().map(|dim| model.dim(*dim).unwrap().len).collect();
        let mut var =
            Var::new(name.as_bytes(), nc_type, dims.to_vec(), ObjectAt::NOWHERE, &extent);
        var.draft = Some(Box::new(VarDraft {
            datatype,
            layout: match kind {
                Kind::Contiguous => Layout::Contiguous,
                Kind::Compact => Layout::Compact,
                Kind::Chunked(dims) => Layout::Chunked(dims.to_vec()),
            },
            layout_chosen: true,
            filters,
            fill,
            endianness: Endianness::Native,
            quantize,
            is_settled: false,
        }));
        let vars = &mut model.group_mut(GroupId::ROOT).unwrap().vars;
        vars.push(var);
        let id = VarId(vars.len() as i32 - 1);
        self.file.writing_mut().unwrap().changed.insert(ObjectKey::Var(GroupId::ROOT, id));
        id
    }

    pub(super) fn put(
        &mut self,
        var: VarId,
        start: &[usize],
        count: &[usize],
        stride: Option<&[isize]>,
        source: Source<'_>,
        values: &[u8],
    ) -> Result<Converted, Nc4Error> {
        let slab = |_| Hyperslab { start, count, stride };
        self.file.put(GroupId::ROOT, var, slab, source, |len| {
            assert_eq!(len, values.len());
            Ok(values)
        })
    }

    pub(super) fn get(
        &self,
        var: VarId,
        start: &[usize],
        count: &[usize],
        target: Target<'_>,
        out: &mut [u8],
    ) -> Result<Converted, Nc4Error> {
        let slab = |_| Hyperslab { start, count, stride: None };
        self.file.get(GroupId::ROOT, var, slab, target, |len| {
            assert_eq!(len, out.len());
            Ok(out)
        })
    }

    pub(super) fn put_ints(
        &mut self,
        var: VarId,
        start: &[usize],
        count: &[usize],
        values: &[i32],
    ) -> Result<Converted, Nc4Error> {
        let values: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        self.put(var, start, count, None, Source::Atomic(MemType::I32), &values)
    }

    pub(super) fn get_ints(&self, var: VarId, start: &[usize], count: &[usize]) -> Vec<i32> {
        let mut out = vec![0; 4 * count.iter().product::<usize>()];
        self.get(var, start, count, Target::Atomic(MemType::I32), &mut out).unwrap();
        out.as_chunks::<4>().0.iter().map(|bytes| i32::from_ne_bytes(*bytes)).collect()
    }

    /// Closes the file and reads what is in it.
    pub(super) fn reopen_to_read(&mut self) {
        self.file.close().unwrap();
        if let Some(path) = std::env::var_os("ZONDA_KEEP") {
            std::fs::write(path, self.memory.to_vec().unwrap()).unwrap();
        }
        let path = Path::new("test.nc");
        self.file = Nc4File::open(self.memory.clone(), path, OpenHow::default()).unwrap();
    }

    /// Closes the file and opens it again.
    pub(super) fn reopen(&mut self) {
        self.reopen_to_read();
    }
}
