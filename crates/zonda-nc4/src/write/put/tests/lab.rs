//! A file in memory to put to.

use std::path::Path;
use std::sync::Arc;
use zonda_format::{Dispatch as _, DispatchWrite as _, TypeDefinitions as _};

use zonda_format::{Access, Destination, Transfer, Values};
use zonda_model::{DimId, Hyperslab, MemType, VarId};
use zonda_storage::backend::Memory;

use crate::write::Nc4CreateOptions;
use crate::write::testing::{access, of};
use crate::{Endianness, GroupId, Nc4File, Nc4OpenOptions, Quantize, StorageRequest};

pub(super) struct Lab {
    pub(super) memory: Arc<Memory>,
    pub(super) file: Nc4File,
}

/// How a variable is stored.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind<'a> {
    Contiguous,
    Compact,
    Chunked(&'a [usize]),
}

/// A variable to be defined.
pub(super) struct Made<'a> {
    name: String,
    nc_type: i32,
    dims: &'a [DimId],
    kind: Kind<'a>,
    big_endian: bool,
    deflate: bool,
    no_fill: bool,
    fill: Option<Vec<u8>>,
    quantize: Option<Quantize>,
}

impl<'a> Made<'a> {
    pub(super) fn new(name: &str, nc_type: i32, dims: &'a [DimId]) -> Made<'a> {
        Made {
            name: name.into(),
            nc_type,
            dims,
            kind: Kind::Contiguous,
            big_endian: false,
            deflate: false,
            no_fill: false,
            fill: None,
            quantize: None,
        }
    }

    pub(super) fn kind(self, kind: Kind<'a>) -> Made<'a> {
        Made { kind, ..self }
    }

    pub(super) fn big_endian(self) -> Made<'a> {
        Made { big_endian: true, ..self }
    }

    pub(super) fn no_fill(self) -> Made<'a> {
        Made { no_fill: true, ..self }
    }

    pub(super) fn fill(self, fill: &[u8]) -> Made<'a> {
        Made { fill: Some(fill.into()), ..self }
    }

    pub(super) fn quantize(self, quantize: Quantize) -> Made<'a> {
        Made { quantize: Some(quantize), ..self }
    }

    pub(super) fn deflate(self) -> Made<'a> {
        Made { deflate: true, ..self }
    }
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
        let how = Nc4CreateOptions {
            classic,
            attribute_order: true,
            attach_scales: true,
            properties: b"version=2".to_vec(),
        };
        let path = Path::new("test.nc");
        let file = Nc4File::create(memory.clone(), path, Nc4OpenOptions::default(), how).unwrap();
        Lab { memory, file }
    }

    pub(super) fn dim(&mut self, name: &str, len: usize) -> DimId {
        self.file.def_dim(GroupId::ROOT, name.as_bytes(), len).unwrap()
    }

    pub(super) fn var(&mut self, made: Made<'_>) -> VarId {
        let (file, root) = (&mut self.file, GroupId::ROOT);
        let dims: Vec<_> = made.dims.iter().map(|dim| dim.0).collect();
        let id = file.def_var(root, made.name.as_bytes(), made.nc_type, &dims).unwrap();
        match made.kind {
            Kind::Contiguous => {}
            Kind::Compact => {
                file.def_var_chunking(id.into(), StorageRequest::Compact, None).unwrap();
            }
            Kind::Chunked(sizes) => {
                let request = StorageRequest::Chunked;
                file.def_var_chunking(id.into(), request, Some(sizes)).unwrap();
            }
        }
        if made.big_endian {
            file.def_var_endian(id.into(), Endianness::Big).unwrap();
        }
        if made.deflate {
            file.def_var_deflate(id.into(), true, Some(1)).unwrap();
        }
        if made.no_fill {
            file.def_var_fill(id.into(), true, None).unwrap();
        }
        if let Some(fill) = made.fill {
            file.def_var_fill(id.into(), false, Some(Values::plain(&fill))).unwrap();
        }
        if let Some(Quantize { mode, kept }) = made.quantize {
            file.def_var_quantize(id.into(), mode.number(), kept as i32).unwrap();
        }
        id
    }

    /// Puts numbers or text, and says how many did not fit.
    pub(super) fn put(
        &mut self,
        var: VarId,
        start: &[usize],
        count: &[usize],
        stride: Option<&[isize]>,
        mem: MemType,
        values: &[u8],
    ) -> zonda_format::Result<u64> {
        let slab = Hyperslab { start, count, stride };
        let put = Access { var: of(var), slab, mem: Some(mem) };
        self.put_values(&put, Values::plain(values))
    }

    pub(super) fn put_values(
        &mut self,
        put: &Access<'_>,
        values: Values<'_>,
    ) -> zonda_format::Result<u64> {
        let mut put = Transfer::new(*put);
        self.file.check_put(&mut put)?;
        assert_eq!(put.n_bytes, values.bytes.len());
        Ok(self.file.put(&put, values)?.out_of_range)
    }

    pub(super) fn get(
        &self,
        var: VarId,
        start: &[usize],
        count: &[usize],
        mem: MemType,
        out: &mut [u8],
    ) -> zonda_format::Result<u64> {
        self.get_values(&access(var, start, count, Some(mem)), Destination::plain(out))
    }

    pub(super) fn get_values(
        &self,
        get: &Access<'_>,
        room: Destination<'_>,
    ) -> zonda_format::Result<u64> {
        let mut get = Transfer::new(*get);
        self.file.check_get(&mut get)?;
        assert_eq!(get.n_bytes, room.bytes.len());
        Ok(self.file.get(&get, room)?.out_of_range)
    }

    pub(super) fn put_ints(
        &mut self,
        var: VarId,
        start: &[usize],
        count: &[usize],
        values: &[i32],
    ) -> zonda_format::Result<u64> {
        let values: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        self.put(var, start, count, None, MemType::I32, &values)
    }

    pub(super) fn get_ints(&self, var: VarId, start: &[usize], count: &[usize]) -> Vec<i32> {
        let mut out = vec![0; 4 * count.iter().product::<usize>()];
        self.get(var, start, count, MemType::I32, &mut out).unwrap();
        out.as_chunks::<4>().0.iter().map(|bytes| i32::from_ne_bytes(*bytes)).collect()
    }

    /// Closes the file and reads what is in it.
    pub(super) fn reopen_to_read(&mut self) {
        self.file.close().unwrap();
        if let Some(path) = std::env::var_os("ZONDA_KEEP") {
            std::fs::write(path, self.memory.to_vec().unwrap()).unwrap();
        }
        let path = Path::new("test.nc");
        self.file = Nc4File::open(self.memory.clone(), path, Nc4OpenOptions::default()).unwrap();
    }

    /// Closes the file and opens it for writing.
    pub(super) fn reopen(&mut self) {
        self.file.close().unwrap();
        let path = Path::new("test.nc");
        self.file = Nc4File::open_for_writing(self.memory.clone(), path, Nc4OpenOptions::default())
            .unwrap();
    }
}
