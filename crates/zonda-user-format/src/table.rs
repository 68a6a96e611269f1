//! `NC_Dispatch` of `netcdf_dispatch.h`: the functions of a format of a program's own.

use std::ffi::{c_char, c_float, c_int, c_longlong, c_uint, c_void};

use zonda_model::NcError;

/// `nc_type`.
pub type NcType = c_int;

/// `NC_memio` of `netcdf_mem.h`: memory that holds a file.
#[repr(C)]
#[derive(Debug)]
pub struct NcMemio {
    /// Bytes of the memory.
    pub size: usize,
    /// Where it begins.
    pub memory: *mut c_void,
    /// `NC_MEMIO_LOCKED`.
    pub flags: c_int,
}

/// `NC_FORMATX_NC3`: an `ncid` of such a file has no group half.
const FORMATX_NC3: c_int = 1;

/// Makes the table: each member with the types of its arguments. C may leave a member null.
macro_rules! table {
    ($($(#[$doc:meta])* $member:ident($($argument:ty),* $(,)?);)*) => {
        /// `NC_Dispatch`, as a program compiled it.
        #[derive(Debug)]
        #[repr(C)]
        #[allow(missing_docs)] // the header says what each member does
        pub struct NcDispatch {
            /// `NC_FORMATX_*`
            pub model: c_int,
            /// Which layout the members have.
            pub dispatch_version: c_int,
            $($(#[$doc])* pub $member: Option<unsafe extern "C" fn($($argument),*) -> c_int>,)*
        }

        impl NcDispatch {
            /// A table all of whose members are null.
            pub const NONE: NcDispatch =
                NcDispatch { model: 0, dispatch_version: 0, $($member: None,)* };
        }
    };
}

type InText = *const c_char;
/// Memory for a name or another text.
type OutText = *mut c_char;
type OutInt = *mut c_int;
/// Memory for a `size_t`, or for one per dimension.
type OutSize = *mut usize;
/// One value per dimension.
type InSizes = *const usize;
type InSteps = *const isize;
type OutType = *mut NcType;
/// An `ncid`.
type FileId = c_int;

table! {
    create(InText, c_int, usize, c_int, OutSize, *mut c_void, *const NcDispatch, FileId);
    open(InText, c_int, c_int, OutSize, *mut c_void, *const NcDispatch, FileId);
    redef(FileId);
    enddef(FileId, usize, usize, usize, usize);
    sync(FileId);
    abort(FileId);
    close(FileId, *mut NcMemio);
    set_fill(FileId, c_int, OutInt);
    inq_format(FileId, OutInt);
    inq_format_extended(FileId, OutInt, OutInt);
    inq(FileId, OutInt, OutInt, OutInt, OutInt);
    inq_type(FileId, NcType, OutText, OutSize);

    def_dim(FileId, InText, usize, OutInt);
    inq_dimid(FileId, InText, OutInt);
    inq_dim(FileId, c_int, OutText, OutSize);
    inq_unlimdim(FileId, OutInt);
    rename_dim(FileId, c_int, InText);

    inq_att(FileId, c_int, InText, OutType, OutSize);
    inq_attid(FileId, c_int, InText, OutInt);
    inq_attname(FileId, c_int, c_int, OutText);
    rename_att(FileId, c_int, InText, InText);
    del_att(FileId, c_int, InText);
    get_att(FileId, c_int, InText, *mut c_void, NcType);
    put_att(FileId, c_int, InText, NcType, usize, *const c_void, NcType);

    def_var(FileId, InText, NcType, c_int, *const c_int, OutInt);
    inq_varid(FileId, InText, OutInt);
    rename_var(FileId, c_int, InText);
    get_vara(FileId, c_int, InSizes, InSizes, *mut c_void, NcType);
    put_vara(FileId, c_int, InSizes, InSizes, *const c_void, NcType);
    get_vars(FileId, c_int, InSizes, InSizes, InSteps, *mut c_void, NcType);
    put_vars(FileId, c_int, InSizes, InSizes, InSteps, *const c_void, NcType);
    get_varm(FileId, c_int, InSizes, InSizes, InSteps, InSteps, *mut c_void, NcType);
    put_varm(FileId, c_int, InSizes, InSizes, InSteps, InSteps, *const c_void, NcType);
    /// Name, type, rank, dimensions, number of attributes; shuffle, deflate, its level, Fletcher-32;
    /// storage, chunk lengths; no fill, fill value; byte order; filter, number of parameters,
    /// parameters.
    inq_var_all(
        FileId, c_int, OutText, OutType, OutInt, OutInt, OutInt, OutInt, OutInt, OutInt, OutInt, OutInt, OutSize, OutInt, *mut c_void, OutInt,
        *mut c_uint, OutSize, *mut c_uint,
    );
    var_par_access(FileId, c_int, c_int);
    def_var_fill(FileId, c_int, c_int, *const c_void);

    show_metadata(FileId);
    inq_unlimdims(FileId, OutInt, OutInt);
    inq_ncid(FileId, InText, OutInt);
    inq_grps(FileId, OutInt, OutInt);
    inq_grpname(FileId, OutText);
    inq_grpname_full(FileId, OutSize, OutText);
    inq_grp_parent(FileId, OutInt);
    inq_grp_full_ncid(FileId, InText, OutInt);
    inq_varids(FileId, OutInt, OutInt);
    inq_dimids(FileId, OutInt, OutInt, c_int);
    inq_typeids(FileId, OutInt, OutInt);
    inq_type_equal(FileId, NcType, FileId, NcType, OutInt);
    def_grp(FileId, InText, OutInt);
    rename_grp(FileId, InText);
    inq_user_type(FileId, NcType, OutText, OutSize, OutType, OutSize, OutInt);
    inq_typeid(FileId, InText, OutType);

    def_compound(FileId, usize, InText, OutType);
    insert_compound(FileId, NcType, InText, usize, NcType);
    insert_array_compound(FileId, NcType, InText, usize, NcType, c_int, *const c_int);
    inq_compound_field(FileId, NcType, c_int, OutText, OutSize, OutType, OutInt, OutInt);
    inq_compound_fieldindex(FileId, NcType, InText, OutInt);
    def_vlen(FileId, InText, NcType, OutType);
    put_vlen_element(FileId, c_int, *mut c_void, usize, *const c_void);
    get_vlen_element(FileId, c_int, *const c_void, OutSize, *mut c_void);
    def_enum(FileId, NcType, InText, OutType);
    insert_enum(FileId, NcType, InText, *const c_void);
    inq_enum_member(FileId, NcType, c_int, OutText, *mut c_void);
    inq_enum_ident(FileId, NcType, c_longlong, OutText);
    def_opaque(FileId, usize, InText, OutType);

    def_var_deflate(FileId, c_int, c_int, c_int, c_int);
    def_var_fletcher32(FileId, c_int, c_int);
    def_var_chunking(FileId, c_int, c_int, InSizes);
    def_var_endian(FileId, c_int, c_int);
    def_var_filter(FileId, c_int, c_uint, usize, *const c_uint);
    set_var_chunk_cache(FileId, c_int, usize, usize, c_float);
    get_var_chunk_cache(FileId, c_int, OutSize, OutSize, *mut c_float);

    inq_var_filter_ids(FileId, c_int, OutSize, *mut c_uint);
    inq_var_filter_info(FileId, c_int, c_uint, OutSize, *mut c_uint);
    def_var_quantize(FileId, c_int, c_int, c_int);
    inq_var_quantize(FileId, c_int, OutInt, OutInt);
    inq_filter_avail(FileId, c_uint);
}

impl NcDispatch {
    /// Whether its files have groups, which the low half of an `ncid` names.
    #[must_use]
    pub fn has_groups(&self) -> bool {
        self.model != FORMATX_NC3
    }
}

/// Two ints and 77 pointers, as `sizeof(struct NC_Dispatch)` of the header says.
const _: () = assert!(size_of::<NcDispatch>() == 8 + 77 * size_of::<usize>());

/// The code of a call on a member that the program left null.
#[must_use]
pub fn missing_member_code() -> c_int {
    NcError::NotNc4.code()
}

/// Calls a member of a table. One that the program left null answers as a format that lacks the feature.
#[macro_export]
macro_rules! member {
    ($table:expr, $member:ident($($argument:expr),* $(,)?)) => {
        match $table.$member {
            // SAFETY: the table is one that its program vouches for, and the arguments are those of
            // the function of that name, whose contract the caller keeps.
            Some(function) => unsafe { function($($argument),*) },
            None => $crate::missing_member_code(),
        }
    };
}
