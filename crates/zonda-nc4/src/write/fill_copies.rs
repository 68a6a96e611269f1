//! Copies of fill values that point into the global heap: for elements that nobody put.
//!
//! libhdf5 removes what an element points to when it writes over the element. So no two elements may point to one
//! object of the heap, and none to that of the fill value: each element gets a copy of its own.

use std::sync::{Arc, OnceLock};

use hashbrown::HashMap;
use zonda_chunk::ArrayId;
use zonda_hdf5::{File, HdfError, HeapWriter, Space};

use super::element;
use super::{OwnedValues, owned_values};
use crate::element_form::ElementForm;
use crate::fault::HdfResult;
use crate::values::ValueFault;

/// A fill value that points to something.
#[derive(Debug)]
pub(super) struct FillCopies {
    form: ElementForm,
    /// One element in file form.
    element: Box<[u8]>,
    /// The element in memory form, once it was read.
    held: OnceLock<OwnedValues>,
}

/// The fill values of arrays of chunks.
pub(super) type FillCopiesByArray = HashMap<ArrayId, Arc<FillCopies>>;

impl FillCopies {
    /// `None` for a fill value that points to nothing.
    pub(super) fn of(form: &ElementForm, fill: Option<&[u8]>) -> Option<FillCopies> {
        let fill = fill.filter(|fill| form.has_pointers() && fill.iter().any(|&byte| byte != 0))?;
        Some(FillCopies { form: form.clone(), element: fill.into(), held: OnceLock::new() })
    }

    /// Gives each of these elements that equals the fill value a copy of what that points to.
    ///
    /// # Errors
    /// Those of reading what the fill value points to, and of space.
    pub(super) fn copy_fills(
        &self,
        elements: &mut [u8],
        heap: &mut HeapWriter,
        space: &mut Space,
        file: &File,
    ) -> HdfResult<()> {
        let len = self.element.len().max(1);
        if !elements.chunks_exact(len).any(|element| *element == *self.element) {
            return Ok(());
        }
        let mut held = match self.held.get() {
            Some(held) => held,
            None => {
                if heap.pending() > 0 {
                    heap.flush(file)?;
                }
                let read = owned_values::read(&self.form, file, &self.element).map_err(fault)?;
                self.held.get_or_init(|| read)
            }
        };
        for element in elements.chunks_exact_mut(len) {
            if *element == *self.element {
                let bytes = held.bytes();
                element::encode(&self.form, heap, space, &mut held, bytes, element)?;
            }
        }
        Ok(())
    }
}

fn fault(fault: ValueFault) -> HdfError {
    match fault {
        ValueFault::Hdf(error) => error,
        ValueFault::NoMemory => HdfError::TooLarge { structure: "fill value", value: u64::MAX },
    }
}
