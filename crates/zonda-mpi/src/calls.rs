//! The functions of MPI, by pointers to those of the process, and calls of all that move no data.
//!
//! Handles are words in all declarations, also where the ABI has 32-bit ones: in the calling conventions of x86-64 and aarch64, a
//! number of 32 bits comes in a register or stack slot of 64, of which a callee looks at the lower half. A handle that MPI writes goes to the
//! lower half of a word that is 0.

use crate::abi::{Handles, Kind, Table};
use crate::loaded::Loaded;
use std::ffi::{CStr, c_char, c_int, c_void};

// Where lower halves come first, and arguments of 32 bits have 64.
const _: () = assert!(cfg!(all(
    target_endian = "little",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)));

/// A handle of MPI, in all ABIs.
pub(crate) type Word = usize;

/// Defines a structure of pointers to functions, and how to find them: those of the first list must be there.
macro_rules! functions {
    ($structure:ident
        required { $($field:ident $name:literal ($($type:ty),*) -> $result:ty;)* }
        optional { $($other:ident $other_name:literal ($($other_type:ty),*) -> $other_result:ty;)* }
    ) => {
        /// Functions of MPI by their names.
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $structure {
            $(pub(crate) $field: unsafe extern "C" fn($($type),*) -> $result,)*
            $(pub(crate) $other: Option<unsafe extern "C" fn($($other_type),*) -> $other_result>,)*
        }

        impl $structure {
            /// Those of an MPI; the one that is missing, if one is.
            pub(crate) fn of(loaded: &Loaded) -> Result<$structure, &'static CStr> {
                Ok($structure {
                    // SAFETY: MPI has functions of these types by these names: MPI 3.0 and the table in the comment above.
                    $($field: unsafe { loaded.function($name) }.ok_or($name)?,)*
                    // SAFETY: as above, and of MPI 5.0.
                    $($other: unsafe { loaded.function($other_name) },)*
                })
            }
        }
    };
}

// Counts have 32 bits (tuning.rs says why). Fortran's handles: functions in Open MPI, the integers
// themselves in MPICH, `MPI_Comm_fromint` in the standard ABI, whose header in MPICH 5.0.2 has no `MPI_Comm_f2c`.
functions! { Functions required {
    comm_free c"MPI_Comm_free" (*mut Word) -> c_int;
    comm_idup c"MPI_Comm_idup" (Word, *mut Word, *mut Word) -> c_int;
    comm_rank c"MPI_Comm_rank" (Word, *mut c_int) -> c_int;
    comm_set_errhandler c"MPI_Comm_set_errhandler" (Word, Word) -> c_int;
    comm_size c"MPI_Comm_size" (Word, *mut c_int) -> c_int;
    comm_test_inter c"MPI_Comm_test_inter" (Word, *mut c_int) -> c_int;
    error_string c"MPI_Error_string" (c_int, *mut c_char, *mut c_int) -> c_int;
    finalized c"MPI_Finalized" (*mut c_int) -> c_int;
    info_get c"MPI_Info_get" (Word, *const c_char, c_int, *mut c_char, *mut c_int) -> c_int;
    initialized c"MPI_Initialized" (*mut c_int) -> c_int;
    is_thread_main c"MPI_Is_thread_main" (*mut c_int) -> c_int;
    query_thread c"MPI_Query_thread" (*mut c_int) -> c_int;
    test c"MPI_Test" (*mut Word, *mut c_int, usize) -> c_int;
    iallreduce c"MPI_Iallreduce" (*const c_void, *mut c_void, c_int, Word, Word, Word, *mut Word) -> c_int;
    ibcast c"MPI_Ibcast" (*mut c_void, c_int, Word, c_int, Word, *mut Word) -> c_int;
    iexscan c"MPI_Iexscan" (*const c_void, *mut c_void, c_int, Word, Word, Word, *mut Word) -> c_int;
    igather c"MPI_Igather" (*const c_void, c_int, Word, *mut c_void, c_int, Word, c_int, Word, *mut Word) -> c_int;
    ireduce_scatter_block c"MPI_Ireduce_scatter_block" (*const c_void, *mut c_void, c_int, Word, Word, Word, *mut Word) -> c_int;
    irecv c"MPI_Irecv" (*mut c_void, c_int, Word, c_int, c_int, Word, *mut Word) -> c_int;
    isend c"MPI_Isend" (*const c_void, c_int, Word, c_int, c_int, Word, *mut Word) -> c_int;
} optional {
    abort c"MPI_Abort" (Word, c_int) -> c_int;
    comm_c2f c"MPI_Comm_c2f" (Word) -> c_int;
    comm_create_keyval c"MPI_Comm_create_keyval" (CopyAttribute, DeleteAttribute, *mut c_int, *mut c_void) -> c_int;
    comm_f2c c"MPI_Comm_f2c" (c_int) -> Word;
    comm_fromint c"MPI_Comm_fromint" (c_int) -> Word;
    comm_set_attr c"MPI_Comm_set_attr" (Word, c_int, *mut c_void) -> c_int;
    comm_split c"MPI_Comm_split" (Word, c_int, c_int, *mut Word) -> c_int;
    comm_toint c"MPI_Comm_toint" (Word) -> c_int;
    finalize c"MPI_Finalize" () -> c_int;
    info_f2c c"MPI_Info_f2c" (c_int) -> Word;
    info_fromint c"MPI_Info_fromint" (c_int) -> Word;
    info_get_nkeys c"MPI_Info_get_nkeys" (Word, *mut c_int) -> c_int;
    info_get_nthkey c"MPI_Info_get_nthkey" (Word, c_int, *mut c_char) -> c_int;
    init_thread c"MPI_Init_thread" (*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int) -> c_int;
} }

/// What MPI calls to copy an attribute of a communicator that is duplicated.
type CopyAttribute =
    extern "C" fn(Word, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int;
/// What MPI calls to delete one.
type DeleteAttribute = extern "C" fn(Word, c_int, *mut c_void, *mut c_void) -> c_int;

/// A call of MPI that failed: its name, and the code that it returned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failed {
    pub(crate) function: &'static str,
    pub(crate) code: c_int,
}

/// `MPI_SUCCESS` is 0 in all ABIs: the standard says so.
pub(crate) fn check(function: &'static str, code: c_int) -> Result<(), Failed> {
    if code == 0 { Ok(()) } else { Err(Failed { function, code }) }
}

/// The MPI of the process: functions, constants.
#[derive(Debug)]
pub(crate) struct Mpi {
    pub(crate) table: &'static Table,
    pub(crate) handles: Handles<Word>,
    pub(crate) functions: Functions,
}

/// Bytes of the longest text of `MPI_Error_string` in any ABI (512), and more.
const ERROR_BYTES: usize = 4096;

/// Bytes of the longest value or key of an Info that is read: `MPI_MAX_INFO_VAL` is 1,024 at most, and `MPI_MAX_INFO_KEY` less.
const INFO_BYTES: usize = 4096;

// The functions of the first group may be called at any time and by any thread (MPI 3.1, section 12.4). Those of the second one are called
// between `MPI_Init` and `MPI_Finalize` and by a thread that may: `mpi.rs` looks before. All write one value each to the place they are given.
impl Mpi {
    fn flag(call: unsafe extern "C" fn(*mut c_int) -> c_int) -> c_int {
        let mut value = 0;
        // SAFETY: valid for a write of an int, and allowed at any time.
        unsafe { call(&raw mut value) };
        value
    }

    pub(crate) fn is_initialized(&self) -> bool {
        Self::flag(self.functions.initialized) != 0
    }

    pub(crate) fn is_finalized(&self) -> bool {
        Self::flag(self.functions.finalized) != 0
    }

    /// `MPI_Init_thread`, for calls by this thread only. All ranks call it.
    pub(crate) fn begin(&self) -> Result<(), Failed> {
        let Some(init) = self.functions.init_thread else {
            return Err(Failed { function: "MPI_Init_thread", code: -1 });
        };
        let mut level = 0;
        // SAFETY: MPI takes null for the arguments of main since MPI 2; the int is valid for a write. It was not called before.
        let code = unsafe {
            init(
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                self.table.thread_funneled,
                &raw mut level,
            )
        };
        check("MPI_Init_thread", code)
    }

    /// `MPI_Finalize`, after which nothing of MPI is called but whether it was. All ranks call it.
    pub(crate) fn end(&self) {
        if let Some(finalize) = self.functions.finalize {
            // SAFETY: MPI is initialized and not finalized; no operation of ours is under way.
            unsafe { finalize() };
        }
    }

    /// `MPI_Abort` of all ranks.
    pub(crate) fn abort(&self, status: c_int) {
        if let Some(abort) = self.functions.abort {
            // SAFETY: MPI is initialized and not finalized.
            unsafe { abort(self.handles.comm_world, status) };
        }
    }

    /// Not before `MPI_Init`.
    pub(crate) fn thread_level(&self) -> c_int {
        Self::flag(self.functions.query_thread)
    }

    /// Not before `MPI_Init`.
    pub(crate) fn is_main_thread(&self) -> bool {
        Self::flag(self.functions.is_thread_main) != 0
    }

    /// MPI's words for a code.
    pub(crate) fn text(&self, code: c_int) -> String {
        let mut text: [c_char; ERROR_BYTES] = [0; ERROR_BYTES];
        let mut length = 0;
        // SAFETY: the text is longer than any MPI's longest, and MPI is initialized: a call of it has failed.
        let done =
            unsafe { (self.functions.error_string)(code, text.as_mut_ptr(), &raw mut length) };
        text[ERROR_BYTES - 1] = 0;
        if done != 0 {
            return format!("error {code}");
        }
        // SAFETY: the last byte at the latest is 0.
        unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().trim().to_owned()
    }

    fn of_comm(
        name: &'static str,
        call: unsafe extern "C" fn(Word, *mut c_int) -> c_int,
        comm: Word,
    ) -> Result<usize, Failed> {
        let mut value = 0;
        // SAFETY: valid for a write of an int; MPI checks the communicator.
        check(name, unsafe { call(comm, &raw mut value) })?;
        Ok(usize::try_from(value).unwrap_or(0))
    }

    pub(crate) fn is_inter(&self, comm: Word) -> Result<bool, Failed> {
        let answer = Self::of_comm("MPI_Comm_test_inter", self.functions.comm_test_inter, comm)?;
        Ok(answer != 0)
    }

    pub(crate) fn rank(&self, comm: Word) -> Result<usize, Failed> {
        Self::of_comm("MPI_Comm_rank", self.functions.comm_rank, comm)
    }

    pub(crate) fn size(&self, comm: Word) -> Result<usize, Failed> {
        Self::of_comm("MPI_Comm_size", self.functions.comm_size, comm)
    }

    /// From now on, failed calls on this communicator return.
    pub(crate) fn let_errors_return(&self, comm: Word) -> Result<(), Failed> {
        // SAFETY: the communicator is ours, the handler one that MPI has.
        let code =
            unsafe { (self.functions.comm_set_errhandler)(comm, self.handles.errors_return) };
        check("MPI_Comm_set_errhandler", code)
    }

    /// All ranks call it, and nothing is under way on the communicator.
    pub(crate) fn free(&self, mut comm: Word) -> Result<(), Failed> {
        // SAFETY: valid for a write of a handle; who has the communicator gives it away.
        check("MPI_Comm_free", unsafe { (self.functions.comm_free)(&raw mut comm) })
    }

    /// What an Info has under a key, which MPI does not find too long.
    pub(crate) fn info_value(&self, info: Word, key: &CStr) -> Result<Option<Vec<u8>>, Failed> {
        let mut value: [c_char; INFO_BYTES + 1] = [0; INFO_BYTES + 1];
        let mut found = 0;
        // SAFETY: the key is NUL-terminated; there is room for a value of INFO_BYTES and its NUL, and for an int.
        let code = unsafe {
            (self.functions.info_get)(
                info,
                key.as_ptr(),
                INFO_BYTES as c_int,
                value.as_mut_ptr(),
                &raw mut found,
            )
        };
        check("MPI_Info_get", code)?;
        value[INFO_BYTES] = 0;
        // SAFETY: the last byte at the latest is 0.
        let value = unsafe { CStr::from_ptr(value.as_ptr()) }.to_bytes();
        Ok((found != 0).then(|| value.to_vec()))
    }

    /// The keys of an Info; none where the MPI cannot list them.
    pub(crate) fn info_keys(&self, info: Word) -> Result<Vec<String>, Failed> {
        let Functions { info_get_nkeys, info_get_nthkey, .. } = self.functions;
        let Some((count, nth)) = info_get_nkeys.zip(info_get_nthkey) else { return Ok(Vec::new()) };
        let mut n = 0;
        // SAFETY: valid for a write of an int; MPI checks the Info.
        check("MPI_Info_get_nkeys", unsafe { count(info, &raw mut n) })?;
        let key = |at| {
            let mut key: [c_char; INFO_BYTES + 1] = [0; INFO_BYTES + 1];
            // SAFETY: there is room for a key of INFO_BYTES and its NUL, and the Info has a key of that number.
            check("MPI_Info_get_nthkey", unsafe { nth(info, at, key.as_mut_ptr()) })?;
            key[INFO_BYTES] = 0;
            // SAFETY: the last byte at the latest is 0.
            Ok(unsafe { CStr::from_ptr(key.as_ptr()) }.to_string_lossy().into_owned())
        };
        (0..n).map(key).collect()
    }

    /// Divides a communicator by a number that each rank gives: the one of the ranks with the same number, in their order. All ranks call it, and wait
    /// for each other.
    pub(crate) fn split(&self, comm: Word, number: c_int) -> Result<Word, Failed> {
        let name = "MPI_Comm_split";
        let split = self.functions.comm_split.ok_or(Failed { function: name, code: -1 })?;
        let mut made = 0;
        // SAFETY: valid for a write of a handle; MPI checks the communicator.
        check(name, unsafe { split(comm, number, 0, &raw mut made) })?;
        Ok(made)
    }

    /// Has `MPI_Finalize` call [`ENDS`] before it does anything else: what is attached to `MPI_COMM_SELF` is deleted first (MPI 3.1, section 8.7.1).
    pub(crate) fn call_at_finalize(&self) -> Result<(), Failed> {
        let name = "MPI_Comm_create_keyval";
        let lacking = Failed { function: name, code: -1 };
        let make = self.functions.comm_create_keyval.ok_or(lacking)?;
        let attach = self.functions.comm_set_attr.ok_or(lacking)?;
        let mut key = 0;
        // SAFETY: functions of the types that MPI calls, which live as long as the program; an int that is written.
        check(name, unsafe {
            make(keep_attribute, end_attribute, &raw mut key, std::ptr::null_mut())
        })?;
        // SAFETY: the key is one that MPI gave; the value is none, and nobody looks at it.
        check("MPI_Comm_set_attr", unsafe {
            attach(self.handles.comm_self, key, std::ptr::null_mut())
        })
    }

    /// The number that Fortran has for a communicator.
    pub(crate) fn number_of_comm(&self, comm: Word) -> Option<c_int> {
        let Functions { comm_c2f, comm_toint, .. } = self.functions;
        let convert = match self.table.kind {
            Kind::Mpich => return u32::try_from(comm).ok().map(u32::cast_signed),
            Kind::OpenMpi => comm_c2f?,
            Kind::Standard => comm_toint.or(comm_c2f)?,
        };
        // SAFETY: a handle that MPI gave.
        Some(unsafe { convert(comm) })
    }

    /// Writes a handle to where a program has one.
    ///
    /// # Safety
    /// `to` is valid for a write of an `MPI_Comm` of this MPI.
    pub(crate) unsafe fn write_handle(&self, to: *mut c_void, handle: Word) {
        match self.table.handle_bytes {
            // SAFETY: the contract above; such handles have 32 bits.
            4 => unsafe { to.cast::<u32>().write_unaligned(handle as u32) },
            // SAFETY: the contract above; all others have the size of a word.
            _ => unsafe { to.cast::<Word>().write_unaligned(handle) },
        }
    }

    /// The communicator that Fortran has under this number.
    pub(crate) fn fortran_comm(&self, number: c_int) -> Option<Word> {
        let Functions { comm_f2c, comm_fromint, .. } = self.functions;
        self.convert(number, comm_f2c, comm_fromint)
    }

    /// The Info that Fortran has under this number.
    pub(crate) fn fortran_info(&self, number: c_int) -> Option<Word> {
        let Functions { info_f2c, info_fromint, .. } = self.functions;
        self.convert(number, info_f2c, info_fromint)
    }

    fn convert(
        &self,
        number: c_int,
        f2c: Option<unsafe extern "C" fn(c_int) -> Word>,
        fromint: Option<unsafe extern "C" fn(c_int) -> Word>,
    ) -> Option<Word> {
        let convert = match self.table.kind {
            Kind::Mpich => return Some(number.cast_unsigned() as Word),
            Kind::OpenMpi => f2c?,
            Kind::Standard => fromint.or(f2c)?,
        };
        // SAFETY: takes any number, and gives the null handle for one that it does not know.
        Some(unsafe { convert(number) })
    }
}

/// What MPI says of itself; it may be asked before `MPI_Init`.
pub(crate) fn version(loaded: &Loaded) -> Option<String> {
    /// Bytes of the longest text in any ABI (8,192), and more.
    const BYTES: usize = 16_384;
    // SAFETY: the function's type in MPI 3.0.
    let call: unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int =
        unsafe { loaded.function(c"MPI_Get_library_version") }?;
    let mut text: Vec<c_char> = vec![0; BYTES];
    let mut length = 0;
    // SAFETY: there is room for the longest text, and for an int.
    unsafe { call(text.as_mut_ptr(), &raw mut length) };
    text[BYTES - 1] = 0;
    // SAFETY: the last byte at the latest is 0.
    Some(unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned())
}

/// The version of the standard ABI that this library has, if it has that ABI. MPICH has the function also where it has its own ABI, and then
/// says -1.
pub(crate) fn has_standard_abi(loaded: &Loaded) -> bool {
    // SAFETY: the function's type in MPI 5.0.
    let call: Option<unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int> =
        unsafe { loaded.function(c"MPI_Abi_get_version") };
    let (mut major, mut minor) = (-1, -1);
    // SAFETY: both are valid for a write of an int; it may be called at any time.
    call.is_some_and(|call| unsafe { call(&raw mut major, &raw mut minor) } == 0 && major >= 1)
}

/// What is done when `MPI_Finalize` begins.
pub(crate) static ENDS: zonda_runtime::Settled<fn()> = zonda_runtime::Settled::new();

/// A duplicate of `MPI_COMM_SELF` has no such attribute.
extern "C" fn keep_attribute(
    _: Word,
    _: c_int,
    _: *mut c_void,
    _: *mut c_void,
    _: *mut c_void,
    is_copied: *mut c_int,
) -> c_int {
    // SAFETY: MPI gives the place of an int.
    unsafe { is_copied.write(0) };
    0
}

extern "C" fn end_attribute(_: Word, _: c_int, _: *mut c_void, _: *mut c_void) -> c_int {
    if let Some(end) = ENDS.get() {
        // MPI is no place for a panic, which is on standard error.
        drop(std::panic::catch_unwind(end));
    }
    0
}
