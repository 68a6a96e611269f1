//! Reading: variables and attributes into the caller's memory.

use zonda_chunk::{ChunkError, Decode};
use zonda_convert::{ByteOrder, Converted, Decoder, RangeRule};
use zonda_hdf5::{Attribute, File, HdfError};
use zonda_model::{ExtType, Hyperslab, MemType, NcError, VarId};

use crate::attribute::Meaning;
use crate::bits;
use crate::data::Data;
use crate::details::{Details, native_fill};
use crate::file::Nc4File;
use crate::form::{Form, NC_STRING, Shape};
use crate::model::{GroupId, Model, UserClass, Var};
use crate::place::{Place, Target};
use crate::select::{self, Axis};
use crate::values::{Fault, Values, until_nul};
use crate::{Nc4Error, Result};

/// Why values cannot be delivered.
#[derive(Debug)]
pub(crate) enum GetFault {
    Hdf(HdfError),
    Chunk(ChunkError),
    Refused(NcError),
}

impl GetFault {
    /// A filter that is not to be had.
    pub(crate) fn missing(spec: &zonda_chunk::FilterSpec) -> GetFault {
        let (id, name) = (spec.id, spec.name.clone());
        let error = zonda_chunk::FilterError::Missing { id, name };
        GetFault::Chunk(ChunkError::Filter { chunk: Vec::new(), at: 0, error })
    }

    pub(crate) fn at(self, object: impl FnOnce() -> String) -> Nc4Error {
        let object = object();
        match self {
            GetFault::Hdf(error) => Nc4Error::Hdf { object, error },
            GetFault::Chunk(error) => Nc4Error::Chunk { object, error },
            GetFault::Refused(code) => Nc4Error::Refused { object, code },
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

impl From<ChunkError> for GetFault {
    fn from(error: ChunkError) -> GetFault {
        GetFault::Chunk(error)
    }
}

/// Bytes in file form that wait for their strings and sequences to be looked up.
const BLOCK_BYTES: usize = 4 << 20;

impl Nc4File {
    /// Reads a hyperslab. `slab` is told the variable's rank; `out` hands over the memory for the
    /// length in bytes (row-major, shape `count`, elements in memory form) after all checks.
    /// Elements beyond the variable's extent but inside its dimensions, and those never written,
    /// are fill values.
    ///
    /// # Errors
    /// `NC_EBADGRPID`, `NC_ENOTVAR`, `NC_ECHAR`, `NC_ENOFILTER`, `NC_ESTRIDE`, `NC_EINVALCOORDS`, `NC_EEDGE`,
    /// `NC_EBADTYPE` for numbers asked of strings and user-defined types, `NC_EFILTER`, `NC_EHDFERR`, in
    /// the order of the reference. Values that do not fit are counted.
    pub fn get<'a, 's, E: From<Nc4Error>>(
        &self,
        group: GroupId,
        var: VarId,
        slab: impl FnOnce(usize) -> Hyperslab<'s>,
        target: Target<'_>,
        out: impl FnOnce(usize) -> std::result::Result<&'a mut [u8], E>,
    ) -> std::result::Result<Converted, E> {
        let (model, var) = self.var(group, var)?;
        let fail = |fault: GetFault| E::from(fault.at(|| model.var_path(group, var)));
        let refused = |code| fail(GetFault::Refused(code));
        let text = ExtType::Char.nc_type();
        if let Target::Atomic(mem) = target
            && (var.nc_type == text) != (mem == MemType::Text)
        {
            return Err(refused(NcError::Char));
        }
        let data = self.data(var).map_err(|error| fail(GetFault::Hdf(error)))?;
        if let Some(spec) = &data.missing {
            return Err(fail(GetFault::missing(spec)));
        }
        let rank = var.dims.len();
        let slab = slab(rank);
        let axes = axes(model, var);
        select::check(&axes, &slab).map_err(refused)?;
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
        let mem = match &target {
            Target::Atomic(mem) => Some(*mem),
            Target::Natural(_) => None,
        };
        let work =
            std::cell::Cell::new((n_elems as u64).saturating_mul(16).saturating_add(1 << 24));
        let nc_type = var.nc_type;
        let request = Request { nc4: self, model, nc_type, data, elem, level: 0, work: &work };
        // The reference's own fill value is laid where the file knows of none.
        let existing = match data.user_fill {
            Some(_) => None,
            None => select::existing(&axes, &slab),
        };
        let converted = match existing {
            None => request.read(&slab, target, out),
            Some(count) => request.read_cut(&slab, &count, target, out),
        };
        converted.map(|converted| self.tolerated(model, var.nc_type, mem, converted)).map_err(fail)
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
            let details = self.details(var).map_err(GetFault::Hdf)?;
            let datatype = details.object.datatype(&details.file).map_err(GetFault::Hdf)?;
            let form = Form::of(&datatype).ok_or(GetFault::Refused(NcError::BadType))?;
            let user = details.user_fill().map_err(GetFault::Hdf)?;
            let user = user.filter(|user| user.len() == form.file_size);
            match (target, user) {
                (Target::Atomic(mem), user) => {
                    let ext = form.atomic().and_then(ExtType::from_nc_type);
                    let ext = ext.ok_or(GetFault::Refused(NcError::BadType))?;
                    let decoder = Decoder::new(ext, ByteOrder::NATIVE, mem, RangeRule::Strict);
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
        self.data_of(self.details(var)?)
    }

    /// Where the elements of a dataset are.
    pub(crate) fn data_of<'v>(
        &self,
        details: &'v Details,
    ) -> std::result::Result<&'v Data, HdfError> {
        if details.data.get().is_none() {
            let data = Data::open(&self.files, &self.how.find_filter, details)?;
            let set = details.cache.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if let Some((bytes, _, _)) = *set {
                data.set_cache_floor(bytes);
            }
            let _first = details.data.set(std::sync::Arc::new(data));
        }
        let missing = HdfError::Missing { structure: "raw data", at: 0, what: "it" };
        details.data.get().map(|data| &**data).ok_or(missing)
    }

    /// In the classic model nobody minds bytes that change their sign.
    fn tolerated(
        &self,
        model: &Model,
        nc_type: i32,
        mem: Option<MemType>,
        converted: Converted,
    ) -> Converted {
        let is_byte = nc_type == ExtType::Byte.nc_type() || nc_type == ExtType::UByte.nc_type();
        let to_byte = matches!(mem, Some(MemType::I8 | MemType::U8));
        if model.is_classic && is_byte && to_byte { Converted::default() } else { converted }
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
enum Numeric {
    Kernel(Decoder),
    /// To the natural form first.
    Odd(Decoder),
}

fn numeric(form: &Form, mem: MemType) -> Option<Numeric> {
    let kernel = |ext, order| Decoder::new(ext, order, mem, RangeRule::Strict).ok();
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
fn odd(form: &Form, decoder: &Decoder, src: &[u8], dst: &mut [u8]) -> Converted {
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
fn is_copy(form: &Form) -> bool {
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

/// Takes no strings: for forms that have none.
struct NoPlace;

impl Place for NoPlace {
    fn place(&mut self, _: &[u8], _: bool) -> Option<u64> {
        None
    }
}

/// Bytes of an element of a variable in its own type.
fn natural_size(form: &Form) -> usize {
    if form.atomic() == Some(NC_STRING) { 8 } else { form.size }
}

/// Elements in file form to elements in memory form.
fn natural(
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
fn default_element(
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

/// A hyperslab of a variable that is inside it.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) nc4: &'a Nc4File,
    pub(crate) model: &'a Model,
    pub(crate) nc_type: i32,
    pub(crate) data: &'a Data,
    /// Bytes of an element in memory.
    pub(crate) elem: usize,
    /// Virtual datasets that led here.
    pub(crate) level: u8,
    /// Elements that sources of virtual datasets may still be asked for.
    pub(crate) work: &'a std::cell::Cell<u64>,
}

impl Request<'_> {
    pub(crate) fn read(
        &self,
        slab: &Hyperslab<'_>,
        target: Target<'_>,
        out: &mut [u8],
    ) -> std::result::Result<Converted, GetFault> {
        if let Some(found) = self.data.as_virtual() {
            return self.read_virtual(found, slab, target, out);
        }
        let form = &self.data.form;
        let mem = match &target {
            Target::Atomic(mem) => Some(*mem),
            Target::Natural(_) => {
                form.atomic().and_then(ExtType::from_nc_type).map(ExtType::natural_mem)
            }
        };
        match (mem.and_then(|mem| numeric(form, mem)), target) {
            (Some(Numeric::Kernel(decoder)), _) => {
                Ok(self.data.read(slab, Decode::Convert(decoder), out)?)
            }
            (Some(Numeric::Odd(decoder)), _) => {
                let run = |src: &[u8], dst: &mut [u8]| odd(form, &decoder, src, dst);
                let (file_size, mem_size) = (form.file_size, decoder.mem_size());
                Ok(self.data.read(slab, Decode::Custom { file_size, mem_size, run: &run }, out)?)
            }
            (None, Target::Atomic(_)) => Err(GetFault::Refused(NcError::BadType)),
            (None, Target::Natural(place)) => self.read_natural(slab, place, out),
        }
    }

    fn read_natural(
        &self,
        slab: &Hyperslab<'_>,
        place: &mut dyn Place,
        out: &mut [u8],
    ) -> std::result::Result<Converted, GetFault> {
        let (data, form) = (self.data, &self.data.form);
        let (file_size, mem_size) = (form.file_size, self.elem);
        let is_string = form.atomic() == Some(NC_STRING);
        if !is_string && !form.has_pointers() {
            if is_copy(form) {
                return Ok(data.read(slab, Decode::Raw { elem_size: file_size }, out)?);
            }
            let failed = std::sync::Mutex::new(None);
            let run = |src: &[u8], dst: &mut [u8]| {
                if let Err(fault) = Values::new(&data.file, &mut NoPlace).all(form, src, dst) {
                    let mut failed =
                        failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    *failed = Some(fault);
                }
                Converted::default()
            };
            let decode = Decode::Custom { file_size, mem_size, run: &run };
            let converted = data.read(slab, decode, out)?;
            let failed = failed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
            return match failed {
                Some(fault) => Err(fault.into()),
                None => Ok(converted),
            };
        }
        let mut raw = Vec::new();
        let mut left = out;
        let mut failed = Ok(());
        blocks(slab, BLOCK_BYTES.checked_div(file_size).unwrap_or(1).max(1), &mut |part| {
            let n = part.n_elems().unwrap_or(0);
            let mut one = || -> std::result::Result<(), GetFault> {
                let len = n.checked_mul(file_size).ok_or(GetFault::Refused(NcError::NoMem))?;
                let memory = || GetFault::Refused(NcError::NoMem);
                raw.clear();
                raw.try_reserve_exact(len).map_err(|_| memory())?;
                raw.resize(len, 0);
                let _all_fit = data.read(part, Decode::Raw { elem_size: file_size }, &mut raw)?;
                let taken = std::mem::take(&mut left);
                let (here, rest) = taken
                    .split_at_mut_checked(n.saturating_mul(mem_size))
                    .ok_or(GetFault::Refused(NcError::Internal))?;
                left = rest;
                natural(&data.file, form, place, &raw, here)
            };
            failed = one();
            failed.is_ok()
        });
        failed.map(|()| Converted::default())
    }

    /// Takes so many elements from the budget.
    pub(crate) fn spend(&self, n: usize) -> std::result::Result<(), GetFault> {
        let left = self.work.get().checked_sub(n as u64).ok_or_else(|| {
            let (structure, what) = ("virtual dataset", "elements of sources");
            GetFault::Hdf(HdfError::Limit { structure, at: 0, what, limit: self.work.get() })
        })?;
        self.work.set(left);
        Ok(())
    }

    /// One element that no source has: the fill value of the file, else zeros.
    pub(crate) fn unwritten(
        &self,
        target: &mut Target<'_>,
        element: &mut [u8],
    ) -> std::result::Result<Converted, GetFault> {
        let form = &self.data.form;
        let zeros;
        let fill = match &self.data.user_fill {
            Some(fill) => &fill[..],
            None => {
                zeros = vec![0; form.file_size];
                &zeros
            }
        };
        match target {
            Target::Atomic(mem) => match numeric(form, *mem) {
                Some(Numeric::Kernel(decoder)) => Ok(decoder.decode(fill, element)),
                Some(Numeric::Odd(decoder)) => Ok(odd(form, &decoder, fill, element)),
                None => Err(GetFault::Refused(NcError::BadType)),
            },
            Target::Natural(place) => {
                natural(&self.data.file, form, &mut **place, fill, element)?;
                Ok(Converted::default())
            }
        }
    }

    /// The same where only the first `count` elements of each axis exist: the rest are the
    /// reference's fill values, not those of HDF5.
    fn read_cut(
        &self,
        slab: &Hyperslab<'_>,
        count: &[usize],
        target: Target<'_>,
        out: &mut [u8],
    ) -> std::result::Result<Converted, GetFault> {
        let (form, elem) = (&self.data.form, self.elem);
        let inner = Hyperslab { start: slab.start, count, stride: slab.stride };
        let n_inner = inner.n_elems().unwrap_or(0);
        let n_all = slab.n_elems().unwrap_or(0);
        let n_fill = n_all.saturating_sub(n_inner) as u64;
        let mut packed = Vec::new();
        let len = n_inner.saturating_mul(elem);
        packed.try_reserve_exact(len).map_err(|_| GetFault::Refused(NcError::NoMem))?;
        packed.resize(len, 0);
        let mut converted = Converted::default();
        let mut fill = vec![0; elem];
        match target {
            Target::Atomic(mem) => {
                let ext = form.atomic().and_then(ExtType::from_nc_type);
                let ext = ext.ok_or(GetFault::Refused(NcError::BadType))?;
                let decoder = Decoder::new(ext, ByteOrder::NATIVE, mem, RangeRule::Strict);
                let decoder = decoder.map_err(|_| GetFault::Refused(NcError::Char))?;
                let one = decoder.decode(&native_fill(form, ext, None), &mut fill);
                converted.out_of_range = one.out_of_range.saturating_mul(n_fill);
                // Values that do not fit leave the caller's memory as it was.
                if one.out_of_range == 0 || !decoder.keeps_unfit() {
                    lay(out, slab.count, count, elem, &mut |place| {
                        place.copy_from_slice(&fill);
                        Ok(())
                    })?;
                }
                if n_inner > 0 {
                    converted =
                        converted.and(self.read(&inner, Target::Atomic(mem), &mut packed)?);
                }
            }
            Target::Natural(place) => {
                let (model, nc_type) = (self.model, self.nc_type);
                lay(out, slab.count, count, elem, &mut |element| {
                    default_element(model, nc_type, form, place, element)
                })?;
                if n_inner > 0 {
                    let read = self.read(&inner, Target::Natural(place), &mut packed)?;
                    converted = converted.and(read);
                }
            }
        }
        scatter(out, slab.count, count, elem, &packed);
        Ok(converted)
    }
}

/// Calls `each` for the elements of an array of shape `count` that are outside its first `inner`.
fn lay(
    out: &mut [u8],
    count: &[usize],
    inner: &[usize],
    elem: usize,
    each: &mut dyn FnMut(&mut [u8]) -> std::result::Result<(), GetFault>,
) -> std::result::Result<(), GetFault> {
    let mut at = vec![0usize; count.len()];
    for element in out.chunks_exact_mut(elem.max(1)) {
        if at.iter().zip(inner).any(|(at, inner)| at >= inner) {
            each(element)?;
        }
        advance(&mut at, count);
    }
    Ok(())
}

/// Puts the packed elements of shape `inner` to the beginning of each axis of `out`.
fn scatter(out: &mut [u8], count: &[usize], inner: &[usize], elem: usize, packed: &[u8]) {
    let mut at = vec![0usize; count.len()];
    let mut packed = packed.chunks_exact(elem.max(1));
    for element in out.chunks_exact_mut(elem.max(1)) {
        if at.iter().zip(inner).all(|(at, inner)| at < inner) {
            if let Some(from) = packed.next() {
                element.copy_from_slice(from);
            }
        }
        advance(&mut at, count);
    }
}

/// The next index of a row-major array.
fn advance(at: &mut [usize], count: &[usize]) {
    for (at, &count) in at.iter_mut().zip(count).rev() {
        *at = at.saturating_add(1);
        if *at < count {
            return;
        }
        *at = 0;
    }
}

/// Cuts a hyperslab into parts of at most `most` elements that follow each other in row-major order.
/// Ends when `each` says `false`.
fn blocks(slab: &Hyperslab<'_>, most: usize, each: &mut dyn FnMut(&Hyperslab<'_>) -> bool) {
    let rank = slab.count.len();
    // The axes from `whole` on fit together.
    let (mut whole, mut inner) = (rank, 1usize);
    while let Some(axis) = whole.checked_sub(1) {
        let next = inner.saturating_mul(slab.count.get(axis).copied().unwrap_or(1));
        if next > most {
            break;
        }
        (whole, inner) = (axis, next);
    }
    let Some(cut) = whole.checked_sub(1) else {
        each(slab);
        return;
    };
    let step = most.checked_div(inner.max(1)).unwrap_or(1).max(1);
    let mut at = vec![0usize; whole];
    let stride = |axis: usize| {
        let stride = slab.stride.and_then(|stride| stride.get(axis).copied()).unwrap_or(1);
        usize::try_from(stride).unwrap_or(1)
    };
    loop {
        let mut start = slab.start.to_vec();
        let mut count = slab.count.to_vec();
        for (axis, &at) in at.iter().enumerate() {
            if let (Some(start), Some(count)) = (start.get_mut(axis), count.get_mut(axis)) {
                *start = start.saturating_add(at.saturating_mul(stride(axis)));
                *count = if axis == cut { count.saturating_sub(at).min(step) } else { 1 };
            }
        }
        let done = count.get(cut).copied().unwrap_or(1);
        if !each(&Hyperslab { start: &start, count: &count, stride: slab.stride }) {
            return;
        }
        if let Some(at) = at.get_mut(cut) {
            *at = at.saturating_add(done.max(1));
            if slab.count.get(cut).is_some_and(|&count| *at < count) {
                continue;
            }
            *at = 0;
        }
        let outer = at.get_mut(..cut).unwrap_or_default();
        advance(outer, slab.count.get(..cut).unwrap_or_default());
        if outer.iter().all(|&at| at == 0) {
            return;
        }
    }
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
            let tolerated = |model| nc4.tolerated(model, meaning.nc_type, Some(mem), converted);
            Ok(model.map_or(converted, tolerated))
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
