//! Reading: variables and attributes into the caller's memory.

use zonda_chunk::ChunkError;
use zonda_convert::{ByteOrder, Converted, Decoder, RangeRule};
use zonda_hdf5::{Attribute, File, HdfError};
use zonda_model::memory::NoMemory;
use zonda_model::{ExtType, Hyperslab, MemType, NcError, VarId};

use crate::attribute::Meaning;
use crate::bits;
use crate::data::Data;
use crate::details::{Details, native_fill};
use crate::file::Nc4File;
use crate::form::{Form, NC_STRING, Shape};
use crate::model::{Dim, GroupId, Model, UserClass, Var};
use crate::place::{Place, Target};
use crate::request::{Request, Written};
use crate::select::{self, Axis, Misfit};
use crate::values::{Fault, Values, until_nul};
use crate::write::{Typed, VarDraft, Writing, draft_fill};
use crate::{Nc4Error, Result};

/// Why values cannot be delivered.
#[derive(Debug)]
pub(crate) enum GetFault {
    Hdf(HdfError),
    Chunk(ChunkError),
    Refused(NcError),
    /// The same, in words.
    Explained(NcError, String),
    /// What was made elsewhere and cannot be changed here, and why.
    Unwritable(&'static str),
}

impl GetFault {
    /// A filter that is not to be had.
    pub(crate) fn missing(error: &zonda_chunk::FilterError) -> GetFault {
        let error = error.clone();
        GetFault::Chunk(ChunkError::Filter { chunk: Vec::new(), at: 0, error })
    }

    pub(crate) fn at(self, object: impl FnOnce() -> String) -> Nc4Error {
        let object = object();
        match self {
            GetFault::Hdf(error) => Nc4Error::Hdf { object, error },
            GetFault::Chunk(error) => Nc4Error::Chunk { object, error },
            GetFault::Refused(code) => Nc4Error::Refused { object, code },
            GetFault::Explained(code, why) => Nc4Error::Explained { object, why, code },
            GetFault::Unwritable(why) => Nc4Error::Refused {
                object: format!("{object}: cannot be changed: {why}"),
                code: NcError::NotBuilt,
            },
        }
    }
}

impl From<Fault> for GetFault {
    fn from(fault: Fault) -> GetFault {
        match fault {
            Fault::Hdf(error) => GetFault::Hdf(error),
            Fault::NoMemory => GetFault::Refused(NcError::NoMem),
        }
    }
}

impl From<Misfit> for GetFault {
    fn from(misfit: Misfit) -> GetFault {
        GetFault::Explained(misfit.code, misfit.to_string())
    }
}

impl From<NoMemory> for GetFault {
    fn from(_: NoMemory) -> GetFault {
        GetFault::Refused(NcError::NoMem)
    }
}

impl From<ChunkError> for GetFault {
    fn from(error: ChunkError) -> GetFault {
        match error {
            // What was said when the bytes were looked for.
            ChunkError::Source(error) => match error.downcast_ref::<HdfError>() {
                Some(error) => GetFault::Hdf(error.clone()),
                None => GetFault::Chunk(ChunkError::Source(error)),
            },
            error => GetFault::Chunk(error),
        }
    }
}

impl Nc4File {
    /// Reads a hyperslab. `slab` is told the variable's rank; `out` hands over the memory for the
    /// length in bytes (row-major, shape `count`, elements in memory form) after all checks.
    /// Elements beyond the variable's extent but inside its dimensions, and those never written,
    /// are fill values.
    ///
    /// # Errors
    /// `NC_EBADGRPID`, `NC_ENOTVAR`, `NC_ECHAR`, `NC_EINDEFINE` in the classic model, `NC_ENOFILTER`, `NC_ESTRIDE`, `NC_EINVALCOORDS`, `NC_EEDGE`,
    /// `NC_EBADTYPE` for numbers asked of strings and user-defined types, `NC_EFILTER`, `NC_EHDFERR`, in
    /// the order of the reference. Values that do not fit are counted.
    pub fn get<'a, 's, E: From<Nc4Error>>(
        &self,
        group: GroupId,
        id: VarId,
        slab: impl FnOnce(usize) -> Hyperslab<'s>,
        target: Target<'_>,
        out: impl FnOnce(usize) -> std::result::Result<&'a mut [u8], E>,
    ) -> std::result::Result<Converted, E> {
        let (model, var) = self.var(group, id)?;
        let fail = |fault: GetFault| E::from(fault.at(|| model.var_path(group, var)));
        let refused = |code| fail(GetFault::Refused(code));
        let text = ExtType::Char.nc_type();
        if let Target::Atomic(mem) = target
            && (var.nc_type == text) != (mem == MemType::Text)
        {
            return Err(refused(NcError::Char));
        }
        let defines = |writing: &Writing| writing.is_defining && writing.how.classic;
        if self.writing.as_deref().is_some_and(defines) {
            return Err(refused(NcError::InDefine));
        }
        let written = self.written(group, id, var);
        let made;
        let data = match &written {
            Some(written) => &written.store.data,
            None if var.draft.is_some() => {
                made = self.unwritten(model, var).map_err(fail)?;
                &made
            }
            None => self.data(var).map_err(|error| fail(GetFault::Hdf(error)))?,
        };
        if let Some(spec) = &data.missing {
            return Err(fail(GetFault::missing(spec)));
        }
        let rank = var.dims.len();
        let slab = slab(rank);
        let axes = axes(model, var);
        if let Err(misfit) = select::check(&axes, &slab) {
            return Err(short(model, group, var, (&axes, &slab), misfit).into());
        }
        let cut = |list: &'s [usize]| list.get(..rank).unwrap_or(list);
        let slab = Hyperslab {
            start: cut(slab.start),
            count: cut(slab.count),
            stride: slab.stride.map(|stride| stride.get(..rank).unwrap_or(stride)),
        };
        let form = &data.form;
        let elem = match target {
            Target::Natural(_) if form.atomic() == Some(NC_STRING) => 8,
            Target::Natural(_) => form.size,
            Target::Atomic(mem) if numeric(form, mem).is_some() => mem.size(),
            Target::Atomic(_) => return Err(refused(NcError::BadType)),
        };
        let n_elems = slab.n_elems().ok_or_else(|| refused(NcError::NoMem))?;
        let len = n_elems.checked_mul(elem).ok_or_else(|| refused(NcError::NoMem))?;
        let out = out(len)?;
        if n_elems == 0 {
            return Ok(Converted::default());
        }
        if let (None, Some(draft), true) = (&written, var.draft.as_deref(), form.has_pointers()) {
            return unwritten(model, var, draft, target, out).map_err(fail);
        }
        let mem = match &target {
            Target::Atomic(mem) => Some(*mem),
            Target::Natural(_) => None,
        };
        let work =
            std::cell::Cell::new((n_elems as u64).saturating_mul(16).saturating_add(1 << 24));
        let nc_type = var.nc_type;
        if let Some(written) = &written
            && form.has_pointers()
        {
            // Strings may be on their way to the heap.
            let flushed = written.writing.flush_heap(self.files.main());
            flushed.map_err(|error| fail(GetFault::Hdf(error)))?;
        }
        let written = written.as_ref();
        let request =
            Request { nc4: self, model, nc_type, data, written, elem, level: 0, work: &work };
        // The reference's own fill value is laid where the file knows of none.
        let existing = match data.user_fill {
            Some(_) => None,
            None => select::existing(&axes, &slab),
        };
        let converted = match existing {
            None => request.read(&slab, target, out),
            Some(count) => request.read_cut(&slab, &count, target, out),
        };
        let tolerated = |converted| tolerated(model.is_classic, var.nc_type, mem, converted);
        converted.map(tolerated).map_err(fail)
    }

    /// A variable that was put to since the file was opened.
    fn written<'v>(&'v self, group: GroupId, id: VarId, var: &'v Var) -> Option<Written<'v>> {
        let writing = self.writing.as_deref()?;
        let store = writing.stores.get(writing.stores.number(group, id)?)?;
        Some(Written { writing, store, extent: &var.extent })
    }

    /// Fill value of a variable of any type in memory form (`nc_inq_var_fill`).
    ///
    /// # Errors
    /// As [`Nc4File::var_info`]; `NC_ECHAR`, `NC_EBADTYPE`.
    pub fn fill_value(
        &self,
        group: GroupId,
        var: VarId,
        target: Target<'_>,
        out: &mut [u8],
    ) -> Result<()> {
        let (model, var) = self.var(group, var)?;
        let fail = |fault: GetFault| fault.at(|| model.var_path(group, var));
        let read = || -> std::result::Result<(), GetFault> {
            if let Some(draft) = &var.draft {
                return draft_fill(model, var, draft, target, out);
            }
            let details = self.details(var).map_err(GetFault::Hdf)?;
            let object = details.object().map_err(GetFault::Hdf)?;
            let datatype = object.datatype(&details.file).map_err(GetFault::Hdf)?;
            let form = Form::of(&datatype).ok_or(GetFault::Refused(NcError::BadType))?;
            let user = crate::details::user_fill(&details.file, &object).map_err(GetFault::Hdf)?;
            let user = user.filter(|user| user.len() == form.file_size);
            match (target, user) {
                (Target::Atomic(mem), user) => {
                    let ext = form.atomic().and_then(ExtType::from_nc_type);
                    let ext = ext.ok_or(GetFault::Refused(NcError::BadType))?;
                    let decoder = Decoder::new(ext, ByteOrder::NATIVE, mem, RangeRule::Cast);
                    let decoder = decoder.map_err(|_| GetFault::Refused(NcError::Char))?;
                    let native = native_fill(&form, ext, user.as_deref());
                    let out = out.get_mut(..mem.size()).ok_or(GetFault::Refused(NcError::Inval))?;
                    let _counted_by_nobody = decoder.decode(&native, out);
                    Ok(())
                }
                (Target::Natural(place), Some(user)) => {
                    let out = out.get_mut(..natural_size(&form));
                    let out = out.ok_or(GetFault::Refused(NcError::Inval))?;
                    natural(&details.file, &form, place, &user, out)
                }
                (Target::Natural(place), None) => {
                    let out = out.get_mut(..natural_size(&form));
                    let out = out.ok_or(GetFault::Refused(NcError::Inval))?;
                    default_element(model, var.nc_type, &form, place, out)
                }
            }
        };
        read().map_err(fail)
    }

    pub(crate) fn data<'v>(&self, var: &'v Var) -> std::result::Result<&'v Data, HdfError> {
        let n_fields = self.shown_fields(var.nc_type);
        self.data_of(self.details(var)?, n_fields)
    }

    /// Where the elements of a dataset are, with so many of a compound's members as netCDF shows.
    pub(crate) fn data_of<'v>(
        &self,
        details: &'v Details,
        n_fields: Option<usize>,
    ) -> std::result::Result<&'v Data, HdfError> {
        if details.data.get().is_none() {
            let mut data = Data::open(&self.files, &self.how.find_filter, details)?;
            data.form.show(n_fields);
            let set = details.cache.lock();
            // All ones is none in particular.
            if let Some((bytes, _, _)) = set.filter(|set| set.0 != usize::MAX) {
                data.set_cache_floor(bytes);
            }
            let _first = details.data.set(std::sync::Arc::new(data));
        }
        let missing = HdfError::Missing { structure: "raw data", at: 0, what: "it" };
        details.data.get().map(|data| &**data).ok_or(missing)
    }
}

/// Elements of a variable without data whose fill value points to something.
fn unwritten(
    model: &Model,
    var: &Var,
    draft: &VarDraft,
    mut target: Target<'_>,
    out: &mut [u8],
) -> std::result::Result<Converted, GetFault> {
    let Target::Natural(place) = &mut target else {
        return Err(GetFault::Refused(NcError::BadType));
    };
    let form = Typed::of(model, var.nc_type, draft.endianness).map_err(GetFault::Refused)?.form;
    for element in out.chunks_exact_mut(form.size.max(1)) {
        draft_fill(model, var, draft, Target::Natural(&mut **place), element)?;
    }
    Ok(Converted::default())
}

/// In the classic model nobody minds bytes that change their sign.
pub(crate) fn tolerated(
    is_classic: bool,
    nc_type: i32,
    mem: Option<MemType>,
    converted: Converted,
) -> Converted {
    let is_byte = nc_type == ExtType::Byte.nc_type() || nc_type == ExtType::UByte.nc_type();
    let to_byte = matches!(mem, Some(MemType::I8 | MemType::U8));
    if is_classic && is_byte && to_byte { Converted::default() } else { converted }
}

/// What is beyond a variable: also beyond a dimension, or only beyond what the variable has of it.
#[cold]
fn short(
    model: &Model,
    group: GroupId,
    var: &Var,
    (axes, slab): (&[Axis], &Hyperslab<'_>),
    misfit: Misfit,
) -> Nc4Error {
    let code = misfit.code;
    let object = model.var_path(group, var);
    let dims = || var.dims.iter().map(|&id| model.dim(id));
    let of_dims = |(axis, dim): (&Axis, Option<&Dim>)| Axis {
        unlimited: dim.map(|dim| dim.len.max(axis.extent)),
        ..*axis
    };
    let long: Vec<Axis> = axes.iter().zip(dims()).map(of_dims).collect();
    let is_short = |(axis, dim): (&Axis, Option<&Dim>)| {
        let dim = dim.filter(|dim| !dim.is_unlimited && axis.extent < dim.len)?;
        let (name, has, len) = (String::from_utf8_lossy(&dim.name), axis.extent, dim.len);
        Some(format!("it has {has} elements along {name}, a dimension of {len}"))
    };
    let first = axes.iter().zip(dims()).find_map(is_short);
    match first.filter(|_| select::check(&long, slab).is_ok()) {
        Some(what) => Nc4Error::NoWords { object, what, code },
        None => Nc4Error::Explained { object, why: misfit.to_string(), code },
    }
}

fn axes(model: &Model, var: &Var) -> Vec<Axis> {
    let axis = |(&extent, &id)| {
        let dim = model.dim(id).filter(|dim| dim.is_unlimited);
        Axis { extent, unlimited: dim.map(|dim| dim.len) }
    };
    var.extent.iter().zip(&var.dims).map(axis).collect()
}

/// How numbers and text go from a file's form to a type of memory; `None` where they do not.
pub(crate) enum Numeric {
    Kernel(Decoder),
    /// To the natural form first.
    Odd(Decoder),
}

pub(crate) fn numeric(form: &Form, mem: MemType) -> Option<Numeric> {
    let kernel = |ext, order| Decoder::new(ext, order, mem, RangeRule::Cast).ok();
    match &form.shape {
        Shape::Number(ext, order) => kernel(*ext, *order).map(Numeric::Kernel),
        Shape::FixedText(..) if form.file_size == 1 => {
            kernel(ExtType::Char, ByteOrder::NATIVE).map(Numeric::Kernel)
        }
        Shape::Integer(_) | Shape::Float(_) => {
            let ext = form.atomic().and_then(ExtType::from_nc_type)?;
            kernel(ext, ByteOrder::NATIVE).map(Numeric::Odd)
        }
        _ => None,
    }
}

/// Packed elements of an odd form to memory.
pub(crate) fn odd(form: &Form, decoder: &Decoder, src: &[u8], dst: &mut [u8]) -> Converted {
    let mut converted = Converted::default();
    let mut native = [0u8; 8];
    let Some(native) = native.get_mut(..form.size) else {
        return converted;
    };
    let dst = dst.chunks_exact_mut(decoder.mem_size().max(1));
    for (src, dst) in src.chunks_exact(form.file_size.max(1)).zip(dst) {
        if bits::convert(form, src, native).is_some() {
            converted = converted.and(decoder.decode(native, dst));
        }
    }
    converted
}

/// Whether memory holds the bytes as the file has them.
pub(crate) fn is_copy(form: &Form) -> bool {
    form.file_size == form.size
        && match &form.shape {
            Shape::Number(_, order) => *order == ByteOrder::NATIVE || form.size == 1,
            Shape::FixedText(..) | Shape::Opaque(_) | Shape::Reference(_) => true,
            Shape::Compound(parts) => {
                parts.iter().all(|part| part.at == part.file_at && is_copy(&part.form))
            }
            Shape::Enum(base, _) | Shape::Array(base, _) | Shape::Complex(base) => is_copy(base),
            _ => false,
        }
}

/// Bytes of an element of a variable in its own type.
fn natural_size(form: &Form) -> usize {
    if form.atomic() == Some(NC_STRING) { 8 } else { form.size }
}

/// Elements in file form to elements in memory form.
pub(crate) fn natural(
    file: &File,
    form: &Form,
    place: &mut dyn Place,
    src: &[u8],
    dst: &mut [u8],
) -> std::result::Result<(), GetFault> {
    let mut values = Values::new(file, place);
    if matches!(form.shape, Shape::FixedText(..)) && form.file_size != 1 {
        let src = src.chunks_exact(form.file_size.max(1));
        for (src, dst) in src.zip(dst.chunks_exact_mut(8)) {
            dst.copy_from_slice(&values.text(until_nul(src))?.to_ne_bytes());
        }
        return Ok(());
    }
    Ok(values.all(form, src, dst)?)
}

/// One element of the default fill value: for strings an empty one, for user-defined types zeros.
pub(crate) fn default_element(
    model: &Model,
    nc_type: i32,
    form: &Form,
    place: &mut dyn Place,
    out: &mut [u8],
) -> std::result::Result<(), GetFault> {
    out.fill(0);
    let base = match model.user_type(nc_type).map(|ty| &ty.class) {
        Some(UserClass::Enum { base, .. }) => *base,
        Some(_) => return Ok(()),
        None => nc_type,
    };
    if base == NC_STRING {
        let address = place.place(b"", true).ok_or(GetFault::Refused(NcError::NoMem))?;
        out.iter_mut().zip(address.to_ne_bytes()).for_each(|(to, from)| *to = from);
    } else if let Some(ext) = ExtType::from_nc_type(base) {
        let native = native_fill(form, ext, None);
        out.iter_mut().zip(native).for_each(|(to, from)| *to = from);
    }
    Ok(())
}

/// Reads an attribute.
pub(crate) fn attribute<'a, E>(
    nc4: &Nc4File,
    file: &File,
    attribute: &Attribute,
    meaning: &Meaning,
    target: Target<'_>,
    out: impl FnOnce(usize) -> std::result::Result<&'a mut [u8], E>,
    fail: impl Fn(GetFault) -> E,
) -> std::result::Result<Converted, E> {
    let refused = |code| fail(GetFault::Refused(code));
    let n = usize::try_from(meaning.len).map_err(|_| refused(NcError::NoMem))?;
    if n == 0 {
        out(0)?;
        return Ok(Converted::default());
    }
    let is_text = meaning.nc_type == ExtType::Char.nc_type();
    let form = &meaning.form;
    let mem = match &target {
        Target::Atomic(mem) if is_text != (*mem == MemType::Text) => {
            return Err(refused(NcError::Char));
        }
        Target::Atomic(mem) => Some(*mem),
        Target::Natural(_) => None,
    };
    if is_text {
        let out = out(n)?;
        out.iter_mut().zip(&attribute.data[..]).for_each(|(to, from)| *to = *from);
        return Ok(Converted::default());
    }
    let ext = ExtType::from_nc_type(meaning.nc_type);
    let mem = mem.or(ext.map(ExtType::natural_mem));
    match (mem, target) {
        (Some(mem), _) => {
            let numeric = numeric(form, mem).ok_or_else(|| refused(NcError::BadType))?;
            let len = n.checked_mul(mem.size()).ok_or_else(|| refused(NcError::NoMem))?;
            let out = out(len)?;
            let converted = match numeric {
                Numeric::Kernel(decoder) => decoder.decode(&attribute.data, out),
                Numeric::Odd(decoder) => odd(form, &decoder, &attribute.data, out),
            };
            let model = nc4.model().ok();
            let is_classic = model.is_some_and(|model| model.is_classic);
            Ok(tolerated(is_classic, meaning.nc_type, Some(mem), converted))
        }
        (None, Target::Atomic(_)) => Err(refused(NcError::BadType)),
        (None, Target::Natural(place)) => {
            let elem = if meaning.nc_type == NC_STRING { 8 } else { form.size };
            let len = n.checked_mul(elem).ok_or_else(|| refused(NcError::NoMem))?;
            let out = out(len)?;
            if meaning.nc_type == NC_STRING && matches!(form.shape, Shape::FixedText(..)) {
                let mut values = Values::new(file, place);
                let src = attribute.data.chunks_exact(form.file_size.max(1));
                for (src, dst) in src.zip(out.chunks_exact_mut(8)) {
                    let address =
                        values.text(until_nul(src)).map_err(|fault| fail(fault.into()))?;
                    dst.copy_from_slice(&address.to_ne_bytes());
                }
                return Ok(Converted::default());
            }
            natural(file, form, place, &attribute.data, out).map_err(fail)?;
            Ok(Converted::default())
        }
    }
}
