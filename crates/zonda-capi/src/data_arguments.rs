//! Arguments of the functions that move data: which elements, in what form, from or to where.

use zonda::{MAX_VAR_DIMS, MemType};

use crate::c_memory::slice;

pub(crate) static ZEROS: [usize; MAX_VAR_DIMS] = [0; MAX_VAR_DIMS];
pub(crate) static ONES: [usize; MAX_VAR_DIMS] = [1; MAX_VAR_DIMS];

/// How an element lies in the caller's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryForm {
    /// As the variable's own type.
    Natural,
    /// As the type that the function is named for.
    Number(MemType),
    /// `char *`, which no classic variable converts to or from.
    Strings,
}

impl MemoryForm {
    /// Bytes of an element in the caller's memory, for a variable whose own type has `natural_bytes`.
    pub(crate) fn elem_bytes(self, natural_bytes: usize) -> usize {
        match self {
            MemoryForm::Natural => natural_bytes,
            MemoryForm::Number(mem) => mem.size(),
            MemoryForm::Strings => size_of::<*const u8>(),
        }
    }
}

/// The caller's memory and which way data goes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CallerMemory {
    /// Data to be written.
    Put(*const u8),
    /// Room for data to be read.
    Get(*mut u8),
}

/// SelectionArrays elements a C function asks for.
#[derive(Clone, Copy)]
pub(crate) enum SelectionArrays {
    /// `var`
    All,
    /// `var1`
    One(*const usize),
    /// `vara`
    Block(*const usize, *const usize),
    /// `vars`
    Strided(*const usize, *const usize, *const isize),
    /// `varm`
    Mapped(*const usize, *const usize, *const isize, *const isize),
}

impl SelectionArrays {
    /// Whether the whole variable is selected: by its function, or by null counts.
    pub(crate) fn is_all(self) -> bool {
        match self {
            SelectionArrays::All => true,
            SelectionArrays::One(_) => false,
            SelectionArrays::Block(_, count)
            | SelectionArrays::Strided(_, count, _)
            | SelectionArrays::Mapped(_, count, ..) => count.is_null(),
        }
    }

    /// Elements that are selected, of a variable with this shape.
    ///
    /// # Safety
    /// The arrays are null or hold one value per dimension.
    pub(crate) unsafe fn n_elems(self, shape: &[usize]) -> usize {
        let of = |lens: &[usize]| lens.iter().fold(1usize, |n, &len| n.saturating_mul(len));
        match self {
            SelectionArrays::One(_) => 1,
            SelectionArrays::Block(_, count)
            | SelectionArrays::Strided(_, count, _)
            | SelectionArrays::Mapped(_, count, ..)
                if !count.is_null() =>
            {
                // SAFETY: not null, and the contract above.
                of(unsafe { slice(count, shape.len()) })
            }
            _ => of(shape),
        }
    }
}
