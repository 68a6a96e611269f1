//! Reading: variables and attributes into the caller's memory.

use smallvec::SmallVec;
use zonda_convert::{ByteOrder, Converted, Decoder, RangeRule};
use zonda_format::{Access, Transfer, VarRef, VlenSink};
use zonda_hdf5::{Attribute, File, HdfError};
use zonda_model::{ExtType, Hyperslab, MemType, NcError, VarId};

use crate::attribute::AttMeaning;
use crate::bits;
use crate::details::{Details, native_fill};
use crate::element_form::{ElementForm, ElementShape, NC_STRING};
use crate::fault::{Coded, Fault, HdfResult, Outcome};
use crate::file::Nc4File;
use crate::model::{Dim, GroupId, Model, UserClass, Var};
use crate::request::{Request, Written};
use crate::select::{self, Axis, SelectionMisfit};
use crate::value_target::ValueTarget;
use crate::values::{ValueReader, until_nul};
use crate::var_data::VarData;
use crate::write::{Typed, VarDraft, draft_fill};
use crate::{Nc4Error, Result};

/// The elements of a variable, by the state that it is in.
pub(crate) enum LocatedData<'f> {
    /// The variable was put to since the file was opened.
    Written(Written<'f>),
    /// The variable was defined, and not put to.
    Defined(Box<VarData>),
    /// The variable is as the file has it.
    Stored(&'f VarData),
}

impl LocatedData<'_> {
    pub(crate) fn data(&self) -> &VarData {
        match self {
            LocatedData::Written(written) => &written.store.data,
            LocatedData::Defined(data) => data,
            LocatedData::Stored(data) => data,
        }
    }
}

impl Nc4File {
    pub(crate) fn get_checked(
        &self,
        get: &Transfer<Access<'_>>,
        target: ValueTarget<'_>,
        out: &mut [u8],
    ) -> Result<Converted> {
        let of = get.of();
        let VarRef { group, var: id } = of.var;
        let (model, var) = self.var(group, id)?;
        let fail = |fault: Fault| fault.at(|| model.var_path(group, var));
        if out.len() != get.n_bytes {
            return Err(fail(Fault::wrong_length()));
        }
        if get.n_elems == 0 {
            return Ok(Converted::default());
        }
        let slab =
            select::ranked(&of.slab, var.dims.len()).map_err(|misfit| fail(misfit.into()))?;
        let found = self.located_data(of.var, model, var).map_err(fail)?;
        let (data, mem) = (found.data(), of.mem);
        let form = &data.form;
        if let (LocatedData::Defined(_), Some(draft), true) =
            (&found, var.draft.as_deref(), form.has_pointers())
        {
            return read_draft(model, var, draft, target, out).map_err(fail);
        }
        let work = (get.n_elems as u64).saturating_mul(16).saturating_add(1 << 24);
        let work = std::cell::Cell::new(work);
        let nc_type = var.nc_type;
        let written = match &found {
            LocatedData::Written(written) => Some(written),
            _ => None,
        };
        if let Some(written) = written
            && form.has_pointers()
        {
            // Strings that were put may not be in the file's heap yet.
            let flushed = written.writing.flush_heap(self.files.main());
            flushed.map_err(|error| fail(Fault::Hdf(error)))?;
        }
        let [elem, is_cut] = get.found;
        let elem = usize::try_from(elem).map_err(|_| fail(Fault::Refused(NcError::NoMem)))?;
        let request =
            Request { nc4: self, model, nc_type, data, written, elem, level: 0, work: &work };
        let converted = if is_cut == 0 {
            request.read(&slab, target, out)
        } else {
            let count = select::existing(&axes(model, var), &slab);
            request.read_cut(&slab, &count, target, out)
        };
        let tolerated = |converted| tolerated(model.is_classic, var.nc_type, mem, converted);
        converted.map(tolerated).map_err(fail)
    }

    /// The elements of a variable, by the state that it is in.
    pub(crate) fn located_data<'f>(
        &'f self,
        VarRef { group, var: id }: VarRef,
        model: &Model,
        var: &'f Var,
    ) -> Outcome<LocatedData<'f>> {
        if let Some(written) = self.written(group, id, var) {
            return Ok(LocatedData::Written(written));
        }
        if var.draft.is_some() {
            return Ok(LocatedData::Defined(Box::new(self.data_of_draft(model, var)?)));
        }
        Ok(LocatedData::Stored(self.data(var)?))
    }

    /// The path of a variable, for an error.
    #[cold]
    pub(crate) fn path_of(&self, VarRef { group, var }: VarRef) -> String {
        match self.var(group, var) {
            Ok((model, var)) => model.var_path(group, var),
            Err(_) => String::from("/"),
        }
    }

    /// A variable that was put to since the file was opened.
    fn written<'v>(&'v self, group: GroupId, id: VarId, var: &'v Var) -> Option<Written<'v>> {
        let writing = self.writing.as_deref()?;
        let store = writing.stores.get(writing.stores.number(group, id)?)?;
        Some(Written { writing, store, extent: &var.extent })
    }

    pub(crate) fn data<'v>(&self, var: &'v Var) -> HdfResult<&'v VarData> {
        let n_fields = self.shown_fields(var.nc_type);
        self.data_of(self.details(var)?, n_fields)
    }

    /// Where the elements of a dataset are, with so many of a compound's members as netCDF shows.
    pub(crate) fn data_of<'v>(
        &self,
        details: &'v Details,
        n_fields: Option<usize>,
    ) -> HdfResult<&'v VarData> {
        if details.data.get().is_none() {
            let mut data = VarData::open(&self.files, &self.how.find_filter, details)?;
            data.form.show(n_fields);
            let set = details.cache.lock();
            // A size of all ones stands for the default.
            if let Some((bytes, _, _)) = set.filter(|set| set.0 != usize::MAX) {
                data.set_cache_floor(bytes);
            }
            let _first = details.data.set(std::sync::Arc::new(data));
        }
        let missing = HdfError::Missing { structure: "raw data", at: 0, what: "it" };
        details.data.get().map(|data| &**data).ok_or(missing)
    }
}

/// Checks whether a type can be read as a type of memory.
pub(crate) fn check_conversion(nc_type: i32, mem: MemType) -> Coded<()> {
    match (ExtType::from_nc_type(nc_type), mem) {
        (Some(ExtType::Char), MemType::Text) => Ok(()),
        (Some(ExtType::Char), _) | (_, MemType::Text) => Err(NcError::Char),
        (Some(_), _) => Ok(()),
        (None, _) => Err(NcError::BadType),
    }
}

/// The error where text is asked for as numbers, or numbers as text.
#[cold]
pub(crate) fn mixed(what: &str, name: &[u8]) -> Nc4Error {
    let object = format!("{what} {}", zonda_model::shown_name(name));
    let why = String::from("text and numbers do not convert into each other");
    Nc4Error::Explained { object, why, code: NcError::Char }
}

/// Bytes of an element in the caller's memory; `None` where numbers are asked of a type that is not one of numbers.
pub(crate) fn element_bytes(form: &ElementForm, mem: Option<MemType>) -> Option<usize> {
    match mem {
        Some(mem) => numeric(form, mem).map(|_| mem.size()),
        None if form.atomic() == Some(NC_STRING) => Some(8),
        None => Some(form.size),
    }
}

/// Bytes of so many elements; `None` for more than any memory holds.
pub(crate) fn bytes_of(n_elems: usize, elem: usize) -> Option<usize> {
    n_elems.checked_mul(elem).filter(|&n| isize::try_from(n).is_ok())
}

/// Reads elements of a variable that was not put to and whose fill value points to something.
fn read_draft(
    model: &Model,
    var: &Var,
    draft: &VarDraft,
    mut target: ValueTarget<'_>,
    out: &mut [u8],
) -> Outcome<Converted> {
    let ValueTarget::Natural(place) = &mut target else {
        return Err(NcError::BadType.into());
    };
    let form = Typed::of(model, var.nc_type, draft.endianness)?.form;
    for element in out.chunks_exact_mut(form.size.max(1)) {
        draft_fill(model, var, draft, &mut **place, element)?;
    }
    Ok(Converted::default())
}

/// The values that did not fit, without those that the classic model ignores: bytes that change their sign.
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

/// The error about a selection beyond a variable: it is beyond a dimension, or only beyond what the variable has of
/// one.
#[cold]
pub(crate) fn beyond_error(
    model: &Model,
    group: GroupId,
    var: &Var,
    (axes, slab): (&[Axis], &Hyperslab<'_>),
    misfit: SelectionMisfit,
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
        Some(format!(
            "the selection goes beyond the variable: it has {has} elements along dimension {name}, which has {len}"
        ))
    };
    let first = axes.iter().zip(dims()).find_map(is_short);
    match first.filter(|_| select::check(&long, slab).is_ok()) {
        Some(what) => Nc4Error::Unrepresentable { object, what, code },
        None => Nc4Error::Explained { object, why: misfit.to_string(), code },
    }
}

pub(crate) fn axes(model: &Model, var: &Var) -> SmallVec<[Axis; 4]> {
    let axis = |(&extent, &id)| {
        let dim = model.dim(id).filter(|dim| dim.is_unlimited);
        Axis { extent, unlimited: dim.map(|dim| dim.len) }
    };
    var.extent.iter().zip(&var.dims).map(axis).collect()
}

/// How numbers and text are converted from file form to a type of memory.
pub(crate) enum Numeric {
    Kernel(Decoder),
    /// Through the natural type of memory: no kernel knows the form in the file.
    Odd(Decoder),
}

pub(crate) fn numeric(form: &ElementForm, mem: MemType) -> Option<Numeric> {
    let kernel = |ext, order| Decoder::new(ext, order, mem, RangeRule::Cast).ok();
    match &form.shape {
        ElementShape::Number(ext, order) => kernel(*ext, *order).map(Numeric::Kernel),
        ElementShape::FixedText(..) if form.file_size == 1 => {
            kernel(ExtType::Char, ByteOrder::NATIVE).map(Numeric::Kernel)
        }
        ElementShape::Integer(_) | ElementShape::Float(_) => {
            let ext = form.atomic().and_then(ExtType::from_nc_type)?;
            kernel(ext, ByteOrder::NATIVE).map(Numeric::Odd)
        }
        _ => None,
    }
}

/// Converts packed elements of a form that no kernel knows.
pub(crate) fn odd(form: &ElementForm, decoder: &Decoder, src: &[u8], dst: &mut [u8]) -> Converted {
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
pub(crate) fn is_copy(form: &ElementForm) -> bool {
    form.file_size == form.size
        && match &form.shape {
            ElementShape::Number(_, order) => *order == ByteOrder::NATIVE || form.size == 1,
            ElementShape::FixedText(..) | ElementShape::Opaque(_) | ElementShape::Reference(_) => {
                true
            }
            ElementShape::Compound(parts) => {
                parts.iter().all(|part| part.at == part.file_at && is_copy(&part.form))
            }
            ElementShape::Enum(base, _)
            | ElementShape::Array(base, _)
            | ElementShape::Complex(base) => is_copy(base),
            _ => false,
        }
}

/// Bytes of an element of a variable in its own type.
pub(crate) fn natural_size(form: &ElementForm) -> usize {
    if form.atomic() == Some(NC_STRING) { 8 } else { form.size }
}

/// Converts elements from file form to memory form.
pub(crate) fn natural(
    file: &File,
    form: &ElementForm,
    place: &mut dyn VlenSink,
    src: &[u8],
    dst: &mut [u8],
) -> Outcome<()> {
    let mut values = ValueReader::new(file, place);
    if matches!(form.shape, ElementShape::FixedText(..)) && form.file_size != 1 {
        let src = src.chunks_exact(form.file_size.max(1));
        for (src, dst) in src.zip(dst.chunks_exact_mut(8)) {
            dst.copy_from_slice(&values.text(until_nul(src))?.to_ne_bytes());
        }
        return Ok(());
    }
    Ok(values.all(form, src, dst)?)
}

/// Makes one element of the default fill value: an empty string for strings, zeros for user-defined types.
pub(crate) fn default_element(
    model: &Model,
    nc_type: i32,
    form: &ElementForm,
    place: &mut dyn VlenSink,
    out: &mut [u8],
) -> Outcome<()> {
    out.fill(0);
    let base = match model.user_type(nc_type).map(|ty| &ty.class) {
        Some(UserClass::Enum { base, .. }) => *base,
        Some(_) => return Ok(()),
        None => nc_type,
    };
    if base == NC_STRING {
        let address = place.place(b"", true).ok_or(NcError::NoMem)?;
        out.iter_mut().zip(address.to_ne_bytes()).for_each(|(to, from)| *to = from);
    } else if let Some(ext) = ExtType::from_nc_type(base) {
        let native = native_fill(form, ext, None);
        out.iter_mut().zip(native).for_each(|(to, from)| *to = from);
    }
    Ok(())
}

/// Reads an attribute.
pub(crate) fn attribute(
    nc4: &Nc4File,
    file: &File,
    attribute: &Attribute,
    meaning: &AttMeaning,
    target: ValueTarget<'_>,
    out: &mut [u8],
) -> Outcome<Converted> {
    let refused = Fault::Refused;
    let n = usize::try_from(meaning.len).map_err(|_| refused(NcError::NoMem))?;
    let form = &meaning.form;
    let has = |elem: usize| match n.checked_mul(elem) {
        Some(len) if len == out.len() => Ok(()),
        _ => Err(Fault::wrong_length()),
    };
    if meaning.nc_type == ExtType::Char.nc_type() {
        has(1)?;
        out.iter_mut().zip(&attribute.data[..]).for_each(|(to, from)| *to = *from);
        return Ok(Converted::default());
    }
    let mem = match &target {
        ValueTarget::Atomic(mem) => Some(*mem),
        ValueTarget::Natural(_) => ExtType::from_nc_type(meaning.nc_type).map(ExtType::natural_mem),
    };
    match (mem, target) {
        (Some(mem), _) => {
            let numeric = numeric(form, mem).ok_or(refused(NcError::BadType))?;
            has(mem.size())?;
            let converted = match numeric {
                Numeric::Kernel(decoder) => decoder.decode(&attribute.data, out),
                Numeric::Odd(decoder) => odd(form, &decoder, &attribute.data, out),
            };
            let model = nc4.model().ok();
            let is_classic = model.is_some_and(|model| model.is_classic);
            Ok(tolerated(is_classic, meaning.nc_type, Some(mem), converted))
        }
        (None, ValueTarget::Atomic(_)) => Err(refused(NcError::BadType)),
        (None, ValueTarget::Natural(place)) => {
            has(if meaning.nc_type == NC_STRING { 8 } else { form.size })?;
            if meaning.nc_type == NC_STRING && matches!(form.shape, ElementShape::FixedText(..)) {
                let mut values = ValueReader::new(file, place);
                let src = attribute.data.chunks_exact(form.file_size.max(1));
                for (src, dst) in src.zip(out.chunks_exact_mut(8)) {
                    let address = values.text(until_nul(src))?;
                    dst.copy_from_slice(&address.to_ne_bytes());
                }
                return Ok(Converted::default());
            }
            natural(file, form, place, &attribute.data, out)?;
            Ok(Converted::default())
        }
    }
}
