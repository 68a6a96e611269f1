//! What is decoded of an object when somebody asks for it, and then kept.

use std::sync::{Arc, OnceLock};
use zonda_runtime::lock::{Mutex, Rank};

use zonda_chunk::FilterSpec;
use zonda_convert::ByteOrder;
use zonda_hdf5::message::{DataLayout, FilterDescription};
use zonda_hdf5::{File, HdfError, Object};
use zonda_model::{ExtType, default_fill};

use crate::attribute::{AttFault, AttList};
use crate::bits;
use crate::element_form::ElementForm;
use crate::fault::HdfResult;
use crate::files::{Files, ObjectAt};
use crate::model::{Endianness, StorageKind, VarInfo};
use crate::types::Types;
use crate::var_data::VarData;
use crate::write::EditedAtts;

/// What was decoded of an object so far. Its header is read again when its data are opened, and not kept:
/// the list of messages takes as much memory as all the rest.
#[derive(Debug)]
pub(crate) struct Details {
    pub(crate) at: ObjectAt,
    pub(crate) file: Arc<File>,
    /// Its attributes.
    pub(crate) atts: Result<AttList, AttFault>,
    /// How a dataset is stored; `None` for an object that is no dataset.
    info: HdfResult<Option<Arc<VarInfo>>>,
    /// Chunk cache as a program set it: bytes, slots, preemption.
    pub(crate) cache: Mutex<Option<(usize, usize, f32)>>,
    pub(crate) data: OnceLock<Arc<VarData>>,
}

/// The number of the shuffle filter.
const SHUFFLE: u32 = 2;
/// The number of the checksum filter.
const FLETCHER32: u32 = 3;
/// The number of the szip filter.
const SZIP: u32 = 4;
/// The bits of szip's options that a user sets; the others say what HDF5 made of the type.
const SZIP_OPTIONS: u32 = 2 | 4 | 32;

impl Details {
    pub(crate) fn read(files: &Files, at: ObjectAt, types: &Types) -> HdfResult<Details> {
        let file = files.get(at.file)?;
        let object = file.object(at.addr)?;
        let atts = AttList::read(Arc::clone(&file), &object, types);
        let info = info(&file, &object).map(|info| Some(Arc::new(info)));
        // These are kept, but for what a server did not send now.
        if let Err(AttFault::Hdf(error)) = &atts
            && error.is_remote()
        {
            return Err(error.clone());
        }
        if let Err(error) = &info
            && error.is_remote()
        {
            return Err(error.clone());
        }
        Ok(Details {
            at,
            file,
            atts,
            info,
            cache: Mutex::ranked(Rank::Object, None),
            data: OnceLock::new(),
        })
    }

    /// The details of an object that is not in the file yet.
    pub(crate) fn made(file: Arc<File>) -> Details {
        let atts = Ok(AttList::Edited(Box::new(EditedAtts::new(Arc::clone(&file)))));
        let (at, cache, data) =
            (ObjectAt::NOWHERE, Mutex::ranked(Rank::Object, None), OnceLock::new());
        Details { at, file, atts, info: Ok(None), cache, data }
    }

    /// Sets how a variable that is being written is stored, and drops what was opened of its data before.
    pub(crate) fn set_info(&mut self, info: VarInfo) {
        self.info = Ok(Some(Arc::new(info)));
        self.data.take();
    }

    /// A copy for a view, which stays as it is while these details are changed.
    pub(crate) fn copy(&self) -> Details {
        let cache = *self.cache.lock();
        Details {
            at: self.at,
            file: Arc::clone(&self.file),
            atts: self.atts.clone(),
            info: self.info.clone(),
            cache: Mutex::ranked(Rank::Object, cache),
            data: self.data.clone(),
        }
    }

    /// The object, whose header is read again.
    pub(crate) fn object(&self) -> HdfResult<Object> {
        self.file.object(self.at.addr)
    }

    /// How a dataset is stored.
    pub(crate) fn info(&self) -> HdfResult<&Arc<VarInfo>> {
        let missing = HdfError::Missing { structure: "dataset", at: self.at.addr.0, what: "it" };
        self.info.as_ref().map_err(Clone::clone)?.as_ref().ok_or(missing)
    }
}

fn info(file: &File, object: &Object) -> HdfResult<VarInfo> {
    let storage = match object.layout(file)? {
        DataLayout::Compact { .. } => StorageKind::Compact,
        DataLayout::Contiguous { .. } => {
            let external = object.external_files(file)?.is_some();
            if external { StorageKind::External } else { StorageKind::Contiguous }
        }
        DataLayout::Chunked(layout) => {
            let dims = layout.chunk_dims.iter();
            let dims = dims.map(|&dim| usize::try_from(dim).unwrap_or(usize::MAX));
            StorageKind::Chunked(dims.collect())
        }
        DataLayout::Virtual { .. } => StorageKind::Virtual,
    };
    let filters = reported(&object.filters(file)?);
    let form = ElementForm::of(&object.datatype(file)?);
    let value = user_fill(file, object)?;
    let no_fill = value.is_none();
    let (mut endianness, mut fill_value) = (Endianness::Native, Vec::new());
    if let Some(form) = form {
        endianness = match form.order() {
            Some(ByteOrder::Little) => Endianness::Little,
            Some(ByteOrder::Big) => Endianness::Big,
            None => Endianness::Native,
        };
        if let Some(ext) = form.atomic().and_then(ExtType::from_nc_type) {
            fill_value = native_fill(&form, ext, value.as_deref());
        }
    }
    Ok(VarInfo { storage, filters, endianness, no_fill, fill_value })
}

/// The fill value in file form, where the file has one of its own.
pub(crate) fn user_fill(file: &File, object: &Object) -> HdfResult<Option<Box<[u8]>>> {
    let fill = object.fill_value(file)?;
    let value = fill.filter(|fill| !fill.undefined).and_then(|fill| fill.value);
    Ok(value.filter(|value| !value.is_empty()))
}

/// The fill value of an atomic type in memory form.
pub(crate) fn native_fill(form: &ElementForm, ext: ExtType, user: Option<&[u8]>) -> Vec<u8> {
    let mut out = vec![0; form.size];
    let from_file = user.filter(|value| {
        if ext == ExtType::Char {
            out.iter_mut().zip(value.iter()).for_each(|(to, from)| *to = *from);
            return true;
        }
        bits::convert(form, value, &mut out).is_some()
    });
    if from_file.is_none() {
        out.iter_mut().zip(default_fill(ext)).for_each(|(to, from)| *to = from);
    }
    out
}

/// Filters as netCDF reports them: of szip only what a user gave, each number once with its last
/// parameters, and the checksum and the shuffle first, wherever they are in the pipeline.
pub(crate) fn reported(filters: &[FilterDescription]) -> Vec<FilterSpec> {
    let mut out: Vec<FilterSpec> = Vec::with_capacity(filters.len());
    for filter in filters {
        let mut spec = as_stored(filter);
        if spec.id == SZIP && spec.params.len() == 4 {
            spec.params.truncate(2);
            if let Some(options) = spec.params.first_mut() {
                *options &= SZIP_OPTIONS;
            }
        }
        match out.iter_mut().find(|known| known.id == spec.id) {
            Some(known) => *known = spec,
            None if spec.id == FLETCHER32 => out.insert(0, spec),
            None if spec.id == SHUFFLE => {
                let after_checksum = out.first().is_some_and(|first| first.id == FLETCHER32);
                out.insert(usize::from(after_checksum), spec);
            }
            None => out.push(spec),
        }
    }
    out
}

/// A filter as it is in the file.
pub(crate) fn as_stored(filter: &FilterDescription) -> FilterSpec {
    FilterSpec {
        id: u32::from(filter.id),
        optional: filter.flags & 1 != 0,
        name: String::from_utf8_lossy(&filter.name).into_owned(),
        params: filter.params.clone(),
    }
}
