//! `nc_{put,get}_{var,var1,vara,vars,varm}[_<type>]`: one table, ten functions a row.
//!
//! `start`, `count`, `stride` and `imap` hold one value per dimension of the variable, in elements,
//! slowest dimension first. Null `start` is refused unless the variable is a scalar; null `count`
//! stands for the variable's shape, null `stride` for ones, null `imap` for row-major memory.
//! Values that do not fit give `NC_ERANGE` after all are moved.

/// Makes the module of one type: its C name, the suffix of its functions, and how its elements lie
/// in memory.
macro_rules! family {
    ($module:ident, $suffix:literal, $c:ty, $c_name:literal, $mem:expr) => {
        #[doc = concat!("Memory of type `", $c_name, "`.")]
        pub mod $module {
            use std::ffi::c_int;

            use crate::data_arguments::{CallerMemory, MemoryForm, SelectionArrays};
            use crate::transfer::transfer;

            family! { @one $mem,
                concat!("nc_put_var", $suffix),
                concat!("`int nc_put_var", $suffix, "(int ncid, int varid, const ", $c_name,
                    " *data);` Writes the whole variable."),
                put_var(data: *const $c) Put All()
            }
            family! { @one $mem,
                concat!("nc_get_var", $suffix),
                concat!("`int nc_get_var", $suffix, "(int ncid, int varid, ", $c_name,
                    " *data);` Reads the whole variable."),
                get_var(data: *mut $c) Get All()
            }
            family! { @one $mem,
                concat!("nc_put_var1", $suffix),
                concat!("`int nc_put_var1", $suffix, "(int ncid, int varid, const size_t *index, ",
                    "const ", $c_name, " *data);` Writes one element."),
                put_var1(data: *const $c) Put One(index: usize)
            }
            family! { @one $mem,
                concat!("nc_get_var1", $suffix),
                concat!("`int nc_get_var1", $suffix, "(int ncid, int varid, const size_t *index, ",
                    $c_name, " *data);` Reads one element."),
                get_var1(data: *mut $c) Get One(index: usize)
            }
            family! { @one $mem,
                concat!("nc_put_vara", $suffix),
                concat!("`int nc_put_vara", $suffix, "(int ncid, int varid, const size_t *start, ",
                    "const size_t *count, const ", $c_name, " *data);` Writes a hyperslab."),
                put_vara(data: *const $c) Put Block(start: usize, count: usize)
            }
            family! { @one $mem,
                concat!("nc_get_vara", $suffix),
                concat!("`int nc_get_vara", $suffix, "(int ncid, int varid, const size_t *start, ",
                    "const size_t *count, ", $c_name, " *data);` Reads a hyperslab."),
                get_vara(data: *mut $c) Get Block(start: usize, count: usize)
            }
            family! { @one $mem,
                concat!("nc_put_vars", $suffix),
                concat!("`int nc_put_vars", $suffix, "(int ncid, int varid, const size_t *start, ",
                    "const size_t *count, const ptrdiff_t *stride, const ", $c_name,
                    " *data);` Writes every `stride`-th element."),
                put_vars(data: *const $c) Put Strided(start: usize, count: usize, stride: isize)
            }
            family! { @one $mem,
                concat!("nc_get_vars", $suffix),
                concat!("`int nc_get_vars", $suffix, "(int ncid, int varid, const size_t *start, ",
                    "const size_t *count, const ptrdiff_t *stride, ", $c_name,
                    " *data);` Reads every `stride`-th element."),
                get_vars(data: *mut $c) Get Strided(start: usize, count: usize, stride: isize)
            }
            family! { @one $mem,
                concat!("nc_put_varm", $suffix),
                concat!("`int nc_put_varm", $suffix, "(int ncid, int varid, const size_t *start, ",
                    "const size_t *count, const ptrdiff_t *stride, const ptrdiff_t *imap, const ",
                    $c_name, " *data);` Writes from memory laid out by `imap`."),
                put_varm(data: *const $c) Put
                    Mapped(start: usize, count: usize, stride: isize, imap: isize)
            }
            family! { @one $mem,
                concat!("nc_get_varm", $suffix),
                concat!("`int nc_get_varm", $suffix, "(int ncid, int varid, const size_t *start, ",
                    "const size_t *count, const ptrdiff_t *stride, const ptrdiff_t *imap, ",
                    $c_name, " *data);` Reads into memory laid out by `imap`."),
                get_varm(data: *mut $c) Get
                    Mapped(start: usize, count: usize, stride: isize, imap: isize)
            }
        }
    };
    (@one $mem:expr, $symbol:expr, $doc:expr,
        $name:ident($data:ident: $pointer:ty) $way:ident $which:ident($($array:ident: $of:ty),*)
    ) => {
        #[doc = $doc]
        ///
        /// # Safety
        /// Each array is null or holds one value per dimension of the variable; `data` is null or
        /// has room for every element asked for.
        #[unsafe(export_name = $symbol)]
        pub unsafe extern "C" fn $name(
            ncid: c_int,
            varid: c_int,
            $($array: *const $of,)*
            $data: $pointer,
        ) -> c_int {
            let which = family!(@which $which $($array)*);
            // SAFETY: the contract above is that of `transfer`.
            unsafe { transfer(ncid, varid, $mem, CallerMemory::$way($data.cast()), which) }
        }
    };
    (@which All) => { SelectionArrays::All };
    (@which $which:ident $($array:ident)+) => { SelectionArrays::$which($($array),+) };
}

use std::ffi as c;

use zonda::MemType as M;

family!(untyped, "", super::c::c_void, "void", MemoryForm::Natural);
family!(text, "_text", super::c::c_char, "char", MemoryForm::Number(super::M::Text));
family!(schar, "_schar", super::c::c_schar, "signed char", MemoryForm::Number(super::M::I8));
family!(uchar, "_uchar", super::c::c_uchar, "unsigned char", MemoryForm::Number(super::M::U8));
family!(ubyte, "_ubyte", super::c::c_uchar, "unsigned char", MemoryForm::Number(super::M::U8));
family!(short, "_short", super::c::c_short, "short", MemoryForm::Number(super::M::I16));
family!(ushort, "_ushort", super::c::c_ushort, "unsigned short", MemoryForm::Number(super::M::U16));
family!(int, "_int", super::c::c_int, "int", MemoryForm::Number(super::M::I32));
family!(uint, "_uint", super::c::c_uint, "unsigned int", MemoryForm::Number(super::M::U32));
// `long` has 64 bits on the platforms that Zonda knows.
family!(long, "_long", super::c::c_long, "long", MemoryForm::Number(super::M::I64));
family!(
    longlong,
    "_longlong",
    super::c::c_longlong,
    "long long",
    MemoryForm::Number(super::M::I64)
);
family!(
    ulonglong,
    "_ulonglong",
    super::c::c_ulonglong,
    "unsigned long long",
    MemoryForm::Number(super::M::U64)
);
family!(float, "_float", super::c::c_float, "float", MemoryForm::Number(super::M::F32));
family!(double, "_double", super::c::c_double, "double", MemoryForm::Number(super::M::F64));
family!(string, "_string", *mut super::c::c_char, "char *", MemoryForm::Strings);

const _: () = assert!(size_of::<c::c_long>() == 8);

// What other modules call.
pub(crate) use untyped::{
    get_var1 as nc_get_var1, get_vara as nc_get_vara, get_varm as nc_get_varm,
    get_vars as nc_get_vars, put_var1 as nc_put_var1, put_vara as nc_put_vara,
    put_varm as nc_put_varm, put_vars as nc_put_vars,
};
