//! `NC_Dispatch` of `netcdf_dispatch.h`: the functions that a format of a program's own consists of.

use std::ffi::{c_char, c_float, c_int, c_longlong, c_uint, c_void};

use zonda_model::NcError;

/// `nc_type`.
pub type NcType = c_int;

/// `NC_memio` of `netcdf_mem.h`: memory that holds a file.
#[repr(C)]
#[derive(Debug)]
pub struct NcMemio {
    /// Bytes of it.
    pub size: usize,
    /// Where it begins.
    pub memory: *mut c_void,
    /// `NC_MEMIO_LOCKED`.
    pub flags: c_int,
}

/// `NC_FORMATX_NC3`: an `ncid` of such a file has no group half.
const FORMATX_NC3: c_int = 1;

/// The table, each member with the types of its arguments. C may leave a member null.
macro_rules! table {
    ($($(#[$doc:meta])* $member:ident($($argument:ty),* $(,)?);)*) => {
        /// `NC_Dispatch`, as a program compiled it.
        #[derive(Debug)]
        #[repr(C)]
        #[allow(missing_docs)] // the header says what each member does
        pub struct NcDispatch {
            /// `NC_FORMATX_*`
            pub model: c_int,
            /// Layout of the rest.
            pub dispatch_version: c_int,
            $($(#[$doc])* pub $member: Option<unsafe extern "C" fn($($argument),*) -> c_int>,)*
        }

        impl NcDispatch {
            /// A table that has nothing.
            pub const NONE: NcDispatch =
                NcDispatch { model: 0, dispatch_version: 0, $($member: None,)* };
        }
    };
}

type Text = *const c_char;
type Room = *mut c_char;
type Int = *mut c_int;
type Size = *mut usize;
type Sizes = *const usize;
type Steps = *const isize;
type Type = *mut NcType;
type Id = c_int;

table! {
    create(Text, c_int, usize, c_int, Size, *mut c_void, *const NcDispatch, Id);
    open(Text, c_int, c_int, Size, *mut c_void, *const NcDispatch, Id);
    redef(Id);
    enddef(Id, usize, usize, usize, usize);
    sync(Id);
    abort(Id);
    close(Id, *mut NcMemio);
    set_fill(Id, c_int, Int);
    inq_format(Id, Int);
    inq_format_extended(Id, Int, Int);
    inq(Id, Int, Int, Int, Int);
    inq_type(Id, NcType, Room, Size);

    def_dim(Id, Text, usize, Int);
    inq_dimid(Id, Text, Int);
    inq_dim(Id, c_int, Room, Size);
    inq_unlimdim(Id, Int);
    rename_dim(Id, c_int, Text);

    inq_att(Id, c_int, Text, Type, Size);
    inq_attid(Id, c_int, Text, Int);
    inq_attname(Id, c_int, c_int, Room);
    rename_att(Id, c_int, Text, Text);
    del_att(Id, c_int, Text);
    get_att(Id, c_int, Text, *mut c_void, NcType);
    put_att(Id, c_int, Text, NcType, usize, *const c_void, NcType);

    def_var(Id, Text, NcType, c_int, *const c_int, Int);
    inq_varid(Id, Text, Int);
    rename_var(Id, c_int, Text);
    get_vara(Id, c_int, Sizes, Sizes, *mut c_void, NcType);
    put_vara(Id, c_int, Sizes, Sizes, *const c_void, NcType);
    get_vars(Id, c_int, Sizes, Sizes, Steps, *mut c_void, NcType);
    put_vars(Id, c_int, Sizes, Sizes, Steps, *const c_void, NcType);
    get_varm(Id, c_int, Sizes, Sizes, Steps, Steps, *mut c_void, NcType);
    put_varm(Id, c_int, Sizes, Sizes, Steps, Steps, *const c_void, NcType);
    /// Name, type, rank, dimensions, number of attributes; shuffle, deflate, its level, Fletcher-32;
    /// storage, chunk lengths; no fill, fill value; byte order; filter, number of parameters,
    /// parameters.
    inq_var_all(
        Id, c_int, Room, Type, Int, Int, Int, Int, Int, Int, Int, Int, Size, Int, *mut c_void, Int,
        *mut c_uint, Size, *mut c_uint,
    );
    var_par_access(Id, c_int, c_int);
    def_var_fill(Id, c_int, c_int, *const c_void);

    show_metadata(Id);
    inq_unlimdims(Id, Int, Int);
    inq_ncid(Id, Text, Int);
    inq_grps(Id, Int, Int);
    inq_grpname(Id, Room);
    inq_grpname_full(Id, Size, Room);
    inq_grp_parent(Id, Int);
    inq_grp_full_ncid(Id, Text, Int);
    inq_varids(Id, Int, Int);
    inq_dimids(Id, Int, Int, c_int);
    inq_typeids(Id, Int, Int);
    inq_type_equal(Id, NcType, Id, NcType, Int);
    def_grp(Id, Text, Int);
    rename_grp(Id, Text);
    inq_user_type(Id, NcType, Room, Size, Type, Size, Int);
    inq_typeid(Id, Text, Type);

    def_compound(Id, usize, Text, Type);
    insert_compound(Id, NcType, Text, usize, NcType);
    insert_array_compound(Id, NcType, Text, usize, NcType, c_int, *const c_int);
    inq_compound_field(Id, NcType, c_int, Room, Size, Type, Int, Int);
    inq_compound_fieldindex(Id, NcType, Text, Int);
    def_vlen(Id, Text, NcType, Type);
    put_vlen_element(Id, c_int, *mut c_void, usize, *const c_void);
    get_vlen_element(Id, c_int, *const c_void, Size, *mut c_void);
    def_enum(Id, NcType, Text, Type);
    insert_enum(Id, NcType, Text, *const c_void);
    inq_enum_member(Id, NcType, c_int, Room, *mut c_void);
    inq_enum_ident(Id, NcType, c_longlong, Room);
    def_opaque(Id, usize, Text, Type);

    def_var_deflate(Id, c_int, c_int, c_int, c_int);
    def_var_fletcher32(Id, c_int, c_int);
    def_var_chunking(Id, c_int, c_int, Sizes);
    def_var_endian(Id, c_int, c_int);
    def_var_filter(Id, c_int, c_uint, usize, *const c_uint);
    set_var_chunk_cache(Id, c_int, usize, usize, c_float);
    get_var_chunk_cache(Id, c_int, Size, Size, *mut c_float);

    inq_var_filter_ids(Id, c_int, Size, *mut c_uint);
    inq_var_filter_info(Id, c_int, c_uint, Size, *mut c_uint);
    def_var_quantize(Id, c_int, c_int, c_int);
    inq_var_quantize(Id, c_int, Int, Int);
    inq_filter_avail(Id, c_uint);
}

impl NcDispatch {
    /// Whether the low half of an `ncid` says something to it.
    #[must_use]
    pub fn has_groups(&self) -> bool {
        self.model != FORMATX_NC3
    }
}

/// Two ints and 77 pointers, as `sizeof(struct NC_Dispatch)` of the header says.
const _: () = assert!(size_of::<NcDispatch>() == 8 + 77 * size_of::<usize>());

/// What a call on a member answers that the program left null.
#[must_use]
pub fn lacking() -> c_int {
    NcError::NotNc4.code()
}

/// Calls a member of a table. One that the program left null does what a format does that lacks the
/// feature.
#[macro_export]
macro_rules! member {
    ($table:expr, $member:ident($($argument:expr),* $(,)?)) => {
        match $table.$member {
            // SAFETY: the table is one that its program vouches for, and the arguments are those of
            // the function of that name, whose contract the caller keeps.
            Some(function) => unsafe { function($($argument),*) },
            None => $crate::lacking(),
        }
    };
}
