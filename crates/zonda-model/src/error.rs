//! The one table of netCDF error codes.

use std::fmt;

use zonda_slab::OutOfBounds;

macro_rules! nc_errors {
    ($($variant:ident = $code:literal, $c_name:ident, $text:literal;)*) => {
        /// The answer of a failed call, 1:1 with the `NC_E*` codes of `netcdf.h`.
        ///
        /// Positive codes of the C library are `errno` values; they travel as [`NcError::System`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum NcError {
            $(
                #[doc = concat!("`", stringify!($c_name), "`: ", $text)]
                $variant,
            )*
            /// A positive `errno` from the operating system, passed through unchanged.
            System(i32),
        }

        impl NcError {
            /// Every netCDF code, in falling order (`System` is not in the list).
            pub const ALL: &'static [NcError] = &[$(NcError::$variant),*];

            /// The number a C caller sees.
            #[must_use]
            pub fn code(self) -> i32 {
                match self {
                    $(NcError::$variant => $code,)*
                    NcError::System(errno) => errno,
                }
            }

            /// The error with the given C code: a known `NC_E*` value or a positive `errno`.
            #[must_use]
            pub fn from_code(code: i32) -> Option<NcError> {
                match code {
                    $($code => Some(NcError::$variant),)*
                    errno if errno > 0 => Some(NcError::System(errno)),
                    _ => None,
                }
            }

            /// The name in `netcdf.h`, such as `NC_EBADID`; `errno` for system errors.
            #[must_use]
            pub fn c_name(self) -> &'static str {
                match self {
                    $(NcError::$variant => stringify!($c_name),)*
                    NcError::System(_) => "errno",
                }
            }

            /// What `nc_strerror` says for a netCDF code; `None` for system errors, whose text
            /// comes from the operating system.
            #[must_use]
            pub fn text(self) -> Option<&'static str> {
                match self {
                    $(NcError::$variant => Some($text),)*
                    NcError::System(_) => None,
                }
            }
        }
    };
}

nc_errors! {
    BadId = -33, NC_EBADID, "NetCDF: Not a valid ID";
    NFile = -34, NC_ENFILE, "NetCDF: Too many files open";
    Exist = -35, NC_EEXIST, "NetCDF: File exists && NC_NOCLOBBER";
    Inval = -36, NC_EINVAL, "NetCDF: Invalid argument";
    Perm = -37, NC_EPERM, "NetCDF: Write to read only";
    NotInDefine = -38, NC_ENOTINDEFINE, "NetCDF: Operation not allowed in data mode";
    InDefine = -39, NC_EINDEFINE, "NetCDF: Operation not allowed in define mode";
    InvalidCoords = -40, NC_EINVALCOORDS, "NetCDF: Index exceeds dimension bound";
    MaxDims = -41, NC_EMAXDIMS, "NetCDF: NC_MAX_DIMS exceeded";
    NameInUse = -42, NC_ENAMEINUSE, "NetCDF: String match to name in use";
    NotAtt = -43, NC_ENOTATT, "NetCDF: Attribute not found";
    MaxAtts = -44, NC_EMAXATTS, "NetCDF: NC_MAX_ATTRS exceeded";
    BadType = -45, NC_EBADTYPE, "NetCDF: Not a valid data type or _FillValue type mismatch";
    BadDim = -46, NC_EBADDIM, "NetCDF: Invalid dimension ID or name";
    UnlimPos = -47, NC_EUNLIMPOS, "NetCDF: NC_UNLIMITED in the wrong index";
    MaxVars = -48, NC_EMAXVARS, "NetCDF: NC_MAX_VARS exceeded";
    NotVar = -49, NC_ENOTVAR, "NetCDF: Variable not found";
    Global = -50, NC_EGLOBAL, "NetCDF: Action prohibited on NC_GLOBAL varid";
    NotNc = -51, NC_ENOTNC, "NetCDF: Unknown file format";
    Sts = -52, NC_ESTS, "NetCDF: In Fortran, string too short";
    MaxName = -53, NC_EMAXNAME, "NetCDF: NC_MAX_NAME exceeded";
    Unlimit = -54, NC_EUNLIMIT, "NetCDF: NC_UNLIMITED size already in use";
    NoRecVars = -55, NC_ENORECVARS, "NetCDF: nc_rec op when there are no record vars";
    Char = -56, NC_ECHAR, "NetCDF: Attempt to convert between text & numbers";
    Edge = -57, NC_EEDGE, "NetCDF: Start+count exceeds dimension bound";
    Stride = -58, NC_ESTRIDE, "NetCDF: Illegal stride";
    BadName = -59, NC_EBADNAME, "NetCDF: Name contains illegal characters";
    Range = -60, NC_ERANGE, "NetCDF: Numeric conversion not representable";
    NoMem = -61, NC_ENOMEM, "NetCDF: Memory allocation (malloc) failure";
    VarSize = -62, NC_EVARSIZE, "NetCDF: One or more variable sizes violate format constraints";
    DimSize = -63, NC_EDIMSIZE, "NetCDF: Invalid dimension size";
    Trunc = -64, NC_ETRUNC, "NetCDF: File likely truncated or possibly corrupted";
    AxisType = -65, NC_EAXISTYPE, "NetCDF: Illegal axis type";
    Dap = -66, NC_EDAP, "NetCDF: DAP failure";
    Curl = -67, NC_ECURL, "NetCDF: libcurl failure";
    Io = -68, NC_EIO, "NetCDF: I/O failure";
    NoData = -69, NC_ENODATA, "NetCDF: Variable has no data";
    DapSvc = -70, NC_EDAPSVC, "NetCDF: DAP server error";
    Das = -71, NC_EDAS, "NetCDF: Malformed or inaccessible DAP DAS";
    Dds = -72, NC_EDDS, "NetCDF: Malformed or inaccessible DAP2 DDS or DAP4 DMR response";
    DataDds = -73, NC_EDATADDS, "NetCDF: Malformed or inaccessible DAP2 DATADDS or DAP4 DAP response";
    DapUrl = -74, NC_EDAPURL, "NetCDF: Malformed URL";
    DapConstraint = -75, NC_EDAPCONSTRAINT, "NetCDF: Malformed or unexpected Constraint";
    Translation = -76, NC_ETRANSLATION, "NetCDF: Untranslatable construct";
    Access = -77, NC_EACCESS, "NetCDF: Access failure";
    Auth = -78, NC_EAUTH, "NetCDF: Authorization failure";
    NotFound = -90, NC_ENOTFOUND, "NetCDF: file not found";
    CantRemove = -91, NC_ECANTREMOVE, "NetCDF: cannot delete file";
    Internal = -92, NC_EINTERNAL, "NetCDF: internal library error; Please contact Unidata support";
    PNetcdf = -93, NC_EPNETCDF, "NetCDF: PnetCDF error";
    HdfErr = -101, NC_EHDFERR, "NetCDF: HDF error";
    CantRead = -102, NC_ECANTREAD, "NetCDF: Can't read file";
    CantWrite = -103, NC_ECANTWRITE, "NetCDF: Can't write file";
    CantCreate = -104, NC_ECANTCREATE, "NetCDF: Can't create file";
    FileMeta = -105, NC_EFILEMETA, "NetCDF: Can't add HDF5 file metadata";
    DimMeta = -106, NC_EDIMMETA, "NetCDF: Can't define dimensional metadata";
    AttMeta = -107, NC_EATTMETA, "NetCDF: Can't open HDF5 attribute";
    VarMeta = -108, NC_EVARMETA, "NetCDF: Problem with variable metadata.";
    NoCompound = -109, NC_ENOCOMPOUND, "NetCDF: Can't create HDF5 compound type";
    AttExists = -110, NC_EATTEXISTS, "NetCDF: Attempt to create attribute that already exists";
    NotNc4 = -111, NC_ENOTNC4, "NetCDF: Attempting netcdf-4 operation on netcdf-3 file";
    StrictNc3 = -112, NC_ESTRICTNC3, "NetCDF: Attempting netcdf-4 operation on strict nc3 netcdf-4 file";
    NotNc3 = -113, NC_ENOTNC3, "NetCDF: Attempting netcdf-3 operation on netcdf-4 file";
    NoPar = -114, NC_ENOPAR, "NetCDF: Parallel operation on file opened for non-parallel access";
    ParInit = -115, NC_EPARINIT, "NetCDF: Error initializing for parallel access";
    BadGrpId = -116, NC_EBADGRPID, "NetCDF: Bad group ID";
    BadTypId = -117, NC_EBADTYPID, "NetCDF: Bad type ID";
    TypDefined = -118, NC_ETYPDEFINED, "NetCDF: Type has already been defined and may not be edited";
    BadField = -119, NC_EBADFIELD, "NetCDF: Bad field ID";
    BadClass = -120, NC_EBADCLASS, "NetCDF: Bad class";
    MapType = -121, NC_EMAPTYPE, "NetCDF: Mapped access for atomic types only";
    LateFill = -122, NC_ELATEFILL, "NetCDF: Attempt to define fill value when data already exists.";
    LateDef = -123, NC_ELATEDEF, "NetCDF: Attempt to define var properties, like deflate, after enddef.";
    DimScale = -124, NC_EDIMSCALE, "NetCDF: Problem with HDF5 dimscales.";
    NoGrp = -125, NC_ENOGRP, "NetCDF: No group found.";
    Storage = -126, NC_ESTORAGE, "NetCDF: Cannot specify both contiguous and chunking.";
    BadChunk = -127, NC_EBADCHUNK, "NetCDF: Bad chunk sizes.";
    NotBuilt = -128, NC_ENOTBUILT, "NetCDF: Attempt to use feature that was not turned on when netCDF was built.";
    Diskless = -129, NC_EDISKLESS, "NetCDF: Error in using diskless access";
    CantExtend = -130, NC_ECANTEXTEND, "NetCDF: Attempt to extend dataset during NC_INDEPENDENT I/O operation. Use nc_var_par_access to set mode NC_COLLECTIVE before extending variable.";
    Mpi = -131, NC_EMPI, "NetCDF: MPI operation failed.";
    Filter = -132, NC_EFILTER, "NetCDF: Filter error: bad id or parameters or duplicate filter";
    RcFile = -133, NC_ERCFILE, "NetCDF: RC File Failure.";
    NullPad = -134, NC_ENULLPAD, "NetCDF: File fails strict Null-Byte Header check.";
    InMemory = -135, NC_EINMEMORY, "NetCDF: In-memory File operation failed.";
    NoFilter = -136, NC_ENOFILTER, "NetCDF: Filter error: undefined filter encountered";
    NcZarr = -137, NC_ENCZARR, "NetCDF: NCZarr error";
    S3 = -138, NC_ES3, "NetCDF: AWS S3 error";
    Empty = -139, NC_EEMPTY, "NetCDF: Attempt to read empty NCZarr map key";
    Object = -140, NC_EOBJECT, "NetCDF: Some object exists when it should not";
    NoObject = -141, NC_ENOOBJECT, "NetCDF: Some object not found";
    Plugin = -142, NC_EPLUGIN, "NetCDF: Unclassified failure in accessing a dynamically loaded plugin";
}

impl fmt::Display for NcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.text() {
            Some(text) => f.write_str(text),
            None => write!(f, "{}", std::io::Error::from_raw_os_error(self.code())),
        }
    }
}

impl std::error::Error for NcError {}

/// The code that the reference mostly has for it.
impl From<OutOfBounds> for NcError {
    fn from(why: OutOfBounds) -> NcError {
        match why {
            OutOfBounds::AtStart => NcError::InvalidCoords,
            OutOfBounds::AtEnd => NcError::Edge,
            OutOfBounds::ByStride => NcError::Stride,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::NcError;

    #[test]
    fn codes_round_trip() {
        for &error in NcError::ALL {
            assert_eq!(NcError::from_code(error.code()), Some(error));
            assert!(error.text().is_some_and(|text| text.starts_with("NetCDF: ")));
        }
        assert_eq!(NcError::from_code(2), Some(NcError::System(2)));
        assert_eq!(NcError::from_code(0), None);
        assert_eq!(NcError::from_code(-1), None);
        assert_eq!(NcError::from_code(-32), None);
    }
}
