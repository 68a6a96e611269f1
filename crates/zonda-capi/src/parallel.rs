//! Files that several MPI processes open together.
//!
//! `MPI_Comm` and `MPI_Info` are ints in MPICH and pointers in Open MPI; as machine words in
//! registers, both arrive here unharmed. No MPI is linked: the one that the program has is found when it is needed.

use std::ffi::{c_char, c_int, c_void};

use zonda::mpi::{self, Communicator, MadeComm};
use zonda::{CreateOptions, Dataset, Error, NcError, OpenOptions, WriteBehind};

use crate::boundary::{boundary, boundary_with_code};
use crate::failure::{CallFailure, CallResult};
use crate::fork::prepare_for_fork_and_exit;
use crate::handles::{self, OpenDataset};
use crate::mode::{
    DISKLESS, INMEMORY, MMAP, NO_ATTRIBUTE_ORDER, NO_SCALES_ATTACHED, NOCLOBBER, SHARE, WRITE,
    check_create_mode, format_asked_for, netcdf4_of, shown_mode,
};
use crate::open::{creation_failure, enter, opening_failure, quick_format, table_asked_for};
use crate::path_argument::PathArgument;
use crate::process_settings::{alignment, chunk_cache};

/// An `MPI_Comm` or `MPI_Info` of whichever MPI.
type MpiHandle = usize;

/// `NC_INDEPENDENT`
const INDEPENDENT: c_int = 0;
/// `NC_COLLECTIVE`
const COLLECTIVE: c_int = 1;

/// Files in memory are of one process.
fn check_on_disk(mode: c_int) -> CallResult {
    if mode & (DISKLESS | INMEMORY | MMAP) == 0 {
        return Ok(());
    }
    let why = "files in memory (NC_DISKLESS, NC_INMEMORY, NC_MMAP) cannot be shared by ranks";
    Err(Error::because(NcError::Inval, why).into())
}

/// # Safety
/// `path` is null, or a C string; `ncidp` is null, or valid for a write.
unsafe fn create(
    path: *const c_char,
    cmode: c_int,
    comm: Communicator,
    info: MpiHandle,
    ncidp: *mut c_int,
) -> CallResult {
    if path.is_null() {
        return Err(NcError::Inval.into());
    }
    // In a mode for several processes this bit is `NC_MPIPOSIX`.
    let cmode_of_file = cmode & !crate::mode::PERSIST;
    check_on_disk(cmode_of_file)?;
    check_create_mode(cmode_of_file)?;
    // SAFETY: not null, and the contract above.
    let (parsed, shown_path) = unsafe { PathArgument::from_c(path)? };
    if table_asked_for(&parsed, cmode_of_file)?.is_some() {
        return Err(NcError::NoPar.into());
    }
    let format = match parsed.format {
        Some(format) => format,
        None if parsed.netcdf4 => netcdf4_of(cmode),
        None => format_asked_for(cmode),
    };
    let team = mpi::team(comm, "nc_create_par", &parsed.shown_file())?;
    let asked = mpi::asked(&*team, info);
    prepare_for_fork_and_exit();
    let options = CreateOptions {
        format,
        exclusive: cmode & NOCLOBBER != 0,
        io: parsed.io.clone(),
        no_attribute_order: cmode & NO_ATTRIBUTE_ORDER != 0,
        no_scales_attached: cmode & NO_SCALES_ATTACHED != 0,
        chunk_cache: Some(chunk_cache()),
        alignment: alignment(),
        equal_attributes: asked.equal_attributes,
        hints: asked.hints,
        independent_filters: asked.independent_filters,
        write_behind: write_behind_of(&parsed, cmode),
        ..CreateOptions::default()
    };
    let made = Dataset::create_parallel(team, parsed.os_path(), &options);
    let dataset = made.map_err(|error| creation_failure(error.into(), format))?;
    let mode = shown_mode(cmode, format);
    // SAFETY: the contract above.
    unsafe { enter(OpenDataset::new(dataset, mode, shown_path), ncidp) }
}

/// What a path says of write-behind. What is put to a file with `NC_SHARE` is written at once.
fn write_behind_of(parsed: &PathArgument, mode: c_int) -> Option<WriteBehind> {
    if mode & SHARE != 0 { Some(WriteBehind::Off) } else { parsed.write_behind }
}

/// # Safety
/// As [`create`].
unsafe fn open(
    path: *const c_char,
    omode: c_int,
    comm: Communicator,
    info: MpiHandle,
    ncidp: *mut c_int,
) -> CallResult {
    if path.is_null() {
        return Err(NcError::Inval.into());
    }
    check_on_disk(omode)?;
    // SAFETY: not null, and the contract above.
    let (parsed, shown_path) = unsafe { PathArgument::from_c(path)? };
    if table_asked_for(&parsed, omode)?.is_some() {
        return Err(NcError::NoPar.into());
    }
    let team = mpi::team(comm, "nc_open_par", &parsed.shown_file())?;
    let asked = mpi::asked(&*team, info);
    prepare_for_fork_and_exit();
    let options = OpenOptions {
        write: omode & WRITE != 0,
        io: parsed.io.clone(),
        chunk_cache: Some(chunk_cache()),
        alignment: alignment(),
        equal_attributes: asked.equal_attributes,
        hints: asked.hints,
        independent_filters: asked.independent_filters,
        write_behind: write_behind_of(&parsed, omode),
        ..OpenOptions::default()
    };
    let opened = Dataset::open_parallel(team, parsed.os_path(), &options);
    let dataset = opened.map_err(|error| opening_failure(error, &parsed, options.write))?;
    let mode = shown_mode(omode, quick_format(&dataset));
    // SAFETY: the contract above.
    unsafe { enter(OpenDataset::new(dataset, mode, shown_path), ncidp) }
}

/// `int nc_create_par(const char *path, int cmode, MPI_Comm comm, MPI_Info info, int *ncidp);`
///
/// All processes of the communicator call it, which is duplicated.
///
/// # Safety
/// `path` is null, or a C string; `ncidp` is null, or valid for a write. `comm` is a communicator of the MPI that the process has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_create_par(
    path: *const c_char,
    cmode: c_int,
    comm: MpiHandle,
    info: MpiHandle,
    ncidp: *mut c_int,
) -> c_int {
    boundary_with_code(|| {
        // SAFETY: same contract.
        unsafe { create(path, cmode, Communicator::C(comm), info, ncidp) }.map(|()| 0)
    })
}

/// `int nc_open_par(const char *path, int omode, MPI_Comm comm, MPI_Info info, int *ncidp);`
///
/// # Safety
/// As [`nc_create_par`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_open_par(
    path: *const c_char,
    omode: c_int,
    comm: MpiHandle,
    info: MpiHandle,
    ncidp: *mut c_int,
) -> c_int {
    boundary_with_code(|| {
        // SAFETY: same contract.
        unsafe { open(path, omode, Communicator::C(comm), info, ncidp) }.map(|()| 0)
    })
}

/// `int nc_create_par_fortran(const char *path, int cmode, int comm, int info, int *ncidp);`
///
/// # Safety
/// As [`nc_create_par`]; the communicator is a Fortran one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_create_par_fortran(
    path: *const c_char,
    cmode: c_int,
    comm: c_int,
    info: c_int,
    ncidp: *mut c_int,
) -> c_int {
    boundary_with_code(|| {
        // A process without MPI hears of that below.
        let info = zonda_mpi::info_from_fortran(info).unwrap_or_default();
        // SAFETY: same contract.
        unsafe { create(path, cmode, Communicator::Fortran(comm), info, ncidp) }.map(|()| 0)
    })
}

/// `int nc_open_par_fortran(const char *path, int omode, int comm, int info, int *ncidp);`
///
/// # Safety
/// As [`nc_create_par_fortran`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_open_par_fortran(
    path: *const c_char,
    omode: c_int,
    comm: c_int,
    info: c_int,
    ncidp: *mut c_int,
) -> c_int {
    boundary_with_code(|| {
        // A process without MPI hears of that below.
        let info = zonda_mpi::info_from_fortran(info).unwrap_or_default();
        // SAFETY: same contract.
        unsafe { open(path, omode, Communicator::Fortran(comm), info, ncidp) }.map(|()| 0)
    })
}

/// `int nc_var_par_access(int ncid, int varid, int par_access);`
///
/// A file that was not opened by several processes answers `NC_ENOPAR`.
#[unsafe(no_mangle)]
pub extern "C" fn nc_var_par_access(ncid: c_int, varid: c_int, par_access: c_int) -> c_int {
    boundary(|| {
        // As a library without MPI answers, whatever else is wrong.
        let file = handles::file(ncid).map_err(|_| NcError::NoPar)?;
        let dataset = &file.dataset;
        dataset.check_of_ranks()?;
        let is_collective = match par_access {
            INDEPENDENT => false,
            COLLECTIVE => true,
            _ => return Err(NcError::Inval.into()),
        };
        let set = dataset.set_collective(file.var(varid), is_collective);
        set.map_err(|error| file.failure(error))
    })
}

/// Divides the ranks of a program into those that compute and I/O servers.
///
/// # Safety
/// `spec` is null, or a C string.
unsafe fn divide(world: Communicator, spec: *const c_char) -> Result<MadeComm, CallFailure> {
    // SAFETY: not null, and the contract above.
    let spec = (!spec.is_null()).then(|| unsafe { std::ffi::CStr::from_ptr(spec) });
    let text = spec.map_or("", |spec| spec.to_str().unwrap_or("(no text)"));
    prepare_for_fork_and_exit();
    Ok(zonda::servers::divide_ranks(world, text)?)
}

/// `int nc_zonda_servers(MPI_Comm world, const char *spec, MPI_Comm *compute);`
///
/// # Safety
/// `world` is a communicator of the MPI that the process has; `spec` is null, or a C string; `compute` is null, or valid for a write of an `MPI_Comm`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_zonda_servers(
    world: MpiHandle,
    spec: *const c_char,
    compute: *mut c_void,
) -> c_int {
    boundary_with_code(|| {
        if compute.is_null() {
            return Err(NcError::Inval.into());
        }
        // SAFETY: same contract.
        let made = unsafe { divide(Communicator::C(world), spec)? };
        // SAFETY: not null, and the contract above.
        let written = unsafe { made.write_to(compute) };
        written.map(|()| 0).map_err(|error| mpi::of_mpi(&error).into())
    })
}

/// `int nc_zonda_servers_fortran(int world, const char *spec, int *compute);`
///
/// # Safety
/// As [`nc_zonda_servers`]; both communicators are Fortran ones.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nc_zonda_servers_fortran(
    world: c_int,
    spec: *const c_char,
    compute: *mut c_int,
) -> c_int {
    boundary_with_code(|| {
        if compute.is_null() {
            return Err(NcError::Inval.into());
        }
        // SAFETY: same contract.
        let made = unsafe { divide(Communicator::Fortran(world), spec)? };
        let number = made.number().map_err(|error| mpi::of_mpi(&error))?;
        // SAFETY: not null, and the contract above.
        unsafe { compute.write(number) };
        Ok(0)
    })
}
