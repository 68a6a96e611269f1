//! The storage of a new variable, as the file describes it: what follows from the draft.

use zonda_hdf5::message::{DataLayout, FilterDescription};
use zonda_hdf5::{HeapWriter, Space};
use zonda_model::{ExtType, NcError, default_fill, memory};

use super::datatypes::Typed;
use super::store::bytes_of;
use super::{Fill, Layout, ObjectKey, Quantize, VarDraft, VlenSource, Writing, element, header};
use crate::element_form::{ElementForm, NC_STRING};
use crate::fault::{Fault, Outcome};
use crate::model::{Model, UserClass, Var};

/// The storage of a variable without data.
pub(super) struct NewStorage {
    pub(super) form: ElementForm,
    pub(super) layout: DataLayout,
    pub(super) filters: Vec<FilterDescription>,
    /// The value of an element that nobody wrote, in file form; `None` where it may be anything.
    pub(super) fill: Option<Box<[u8]>>,
    pub(super) quantize: Option<Quantize>,
}

impl NewStorage {
    /// The storage that a draft asks for. Fill values that point to something need the heap; without it they are
    /// zeros.
    pub(super) fn of(
        model: &Model,
        var: &Var,
        draft: &VarDraft,
        mut heap: Option<(&mut Writing, ObjectKey)>,
    ) -> Outcome<NewStorage> {
        let form = Typed::of(model, var.nc_type, draft.endianness)?.form;
        let fill = match (draft.fill(), &mut heap) {
            (Fill::None, _) => None,
            (_, Some((writing, key))) if form.has_pointers() => {
                Some(writing.heap_fill(model, var, draft, &form, *key)?)
            }
            _ => Some(plain_fill(model, var, draft, &form)?),
        };
        let bytes = || bytes_of(&var.extent, form.file_size);
        let layout = match &draft.layout {
            Layout::Contiguous => DataLayout::Contiguous { addr: None, len: Some(bytes()?) },
            Layout::Compact => {
                let mut data = compact(bytes()?, fill.as_deref())?;
                if let Some((writing, _)) = heap.filter(|_| form.has_pointers() && fill.is_some()) {
                    for element in data.chunks_exact_mut(form.file_size.max(1)) {
                        writing.encode_fill(model, var, draft, &form, element)?;
                    }
                }
                DataLayout::Compact { data }
            }
            Layout::Chunked(chunk) => header::chunked(chunk.clone(), draft.datatype.size),
        };
        let (filters, quantize) = (draft.stored_filters.clone(), draft.quantize);
        Ok(NewStorage { form, layout, filters, fill, quantize })
    }
}

impl Writing {
    /// The writer of the global heap, and the space of the file.
    pub(super) fn heap_and_space(&mut self) -> (&mut HeapWriter, &mut Space) {
        (self.heap.get_mut(), &mut self.space)
    }

    /// A fill value that points to something, in file form. It is put into the heap once for each value that is set.
    fn heap_fill(
        &mut self,
        model: &Model,
        var: &Var,
        draft: &VarDraft,
        form: &ElementForm,
        key: ObjectKey,
    ) -> Outcome<Box<[u8]>> {
        if let Some((set, known)) = self.stores.fills.get(&key)
            && *set == draft.fill_value
        {
            return Ok(known.clone());
        }
        let mut value: Box<[u8]> = memory::filled(form.file_size, 0)?.into();
        self.encode_fill(model, var, draft, form, &mut value)?;
        self.stores.fills.insert(key, (draft.fill_value.clone(), value.clone()));
        Ok(value)
    }

    /// Puts what one element that is the fill value points to into the heap.
    fn encode_fill(
        &mut self,
        model: &Model,
        var: &Var,
        draft: &VarDraft,
        form: &ElementForm,
        element: &mut [u8],
    ) -> Outcome<()> {
        let (heap, space) = self.heap_and_space();
        let encoded = match draft.fill() {
            Fill::User(held) => {
                let mut fetch = held;
                element::encode(form, heap, space, &mut fetch, held.bytes(), element)
            }
            // The default fill value of strings is an empty string, which is an object of the heap.
            _ if var.nc_type == NC_STRING => {
                let address = 1u64.to_ne_bytes();
                element::encode(form, heap, space, &mut Empty, &address, element)
            }
            _ => {
                element.copy_from_slice(&plain_fill(model, var, draft, form)?);
                Ok(())
            }
        };
        Ok(encoded?)
    }
}

/// A source whose strings are all empty.
struct Empty;

impl VlenSource for Empty {
    fn text(&mut self, _: u64) -> Option<&[u8]> {
        Some(b"")
    }

    fn items(&mut self, _: u64, _: usize) -> &[u8] {
        b""
    }
}

/// The elements of a compact variable that nobody wrote.
fn compact(bytes: u64, fill: Option<&[u8]>) -> Outcome<Box<[u8]>> {
    let len = usize::try_from(bytes).map_err(|_| Fault::Refused(NcError::NoMem))?;
    let mut data = memory::filled(len, 0)?;
    if let Some(fill) = fill.filter(|fill| !fill.is_empty()) {
        data.chunks_exact_mut(fill.len()).for_each(|element| element.copy_from_slice(fill));
    }
    Ok(data.into())
}

/// A fill value that points to nothing, in file form; zeros for one that does.
fn plain_fill(
    model: &Model,
    var: &Var,
    draft: &VarDraft,
    form: &ElementForm,
) -> Outcome<Box<[u8]>> {
    let mut value = memory::filled(form.file_size, 0)?;
    if form.has_pointers() {
        return Ok(value.into());
    }
    let base = match model.user_type(var.nc_type).map(|ty| &ty.class) {
        Some(UserClass::Enum { base, .. }) => *base,
        _ => var.nc_type,
    };
    match (draft.fill(), ExtType::from_nc_type(base)) {
        (Fill::User(held), _) => element::plain(form, held.bytes(), &mut value),
        (_, Some(ext)) => {
            let native = default_fill(ext);
            element::plain(form, native.get(..form.size).unwrap_or(&native), &mut value);
        }
        _ => {}
    }
    Ok(value.into())
}
