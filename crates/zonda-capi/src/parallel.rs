//! Files that several MPI processes open together.
//!
//! `MPI_Comm` and `MPI_Info` are ints in MPICH and pointers in Open MPI; as machine words in
//! registers, both arrive here unharmed. No MPI is linked: the one that the program has is found when it is needed.

use std::ffi::{c_char, c_int};
use std::sync::Arc;

use zonda::team::{Step, Team};
use zonda::{Answer, CreateOptions, Dataset, Error, NcError, OpenOptions};
use zonda_mpi::{Answer as MpiAnswer, MpiError, MpiTeam};
use zonda_runtime::setting;

use crate::boundary::{boundary, boundary_with_code};
use crate::failure::{CallFailure, CallResult};
use crate::fork::prepare_for_fork_and_exit;
use crate::handles::{self, OpenDataset};
use crate::mode::{
    DISKLESS, INMEMORY, MMAP, NO_ATTRIBUTE_ORDER, NO_SCALES_ATTACHED, NOCLOBBER, WRITE,
    check_create_mode, format_asked_for, netcdf4_of, shown_mode,
};
use crate::open::{creation_failure, enter, quick_format, table_asked_for};
use crate::path_argument::PathArgument;
use crate::process_settings::{alignment, chunk_cache};

/// An `MPI_Comm` or `MPI_Info` of whichever MPI.
type MpiHandle = usize;

/// `NC_INDEPENDENT`
const INDEPENDENT: c_int = 0;
/// `NC_COLLECTIVE`
const COLLECTIVE: c_int = 1;

/// How a communicator came.
#[derive(Clone, Copy)]
enum Communicator {
    /// As a C program has it.
    C(MpiHandle),
    /// As a Fortran program has it.
    Fortran(c_int),
}

impl Communicator {
    /// Its ranks, which all call this.
    fn team(self, call: &str, file: &str) -> Result<Arc<MpiTeam>, CallFailure> {
        let step = Step { call, file };
        let team = match self {
            Communicator::C(handle) => MpiTeam::new(step, handle),
            Communicator::Fortran(handle) => MpiTeam::from_fortran(step, handle),
        };
        Ok(Arc::new(team.map_err(of_mpi)?))
    }
}

fn of_mpi(error: MpiError) -> CallFailure {
    let code = match error.answer() {
        MpiAnswer::NotParallel => NcError::NoPar,
        MpiAnswer::NotBegun => NcError::ParInit,
        MpiAnswer::MpiFailed => NcError::Mpi,
    };
    Error::answered(code, Answer::Request, error.to_string()).into()
}

/// The key of an Info that says what is done about attributes with other values than on rank 0.
const ATTRIBUTES: &str = "zonda_attributes";

/// Whether the Info has `zonda_attributes` = `equal`.
fn wants_equal_attributes(info: MpiHandle) -> bool {
    let value = zonda_mpi::info_value(info, ATTRIBUTES).ok().flatten();
    value.is_some_and(|value| value == "equal")
}

/// The key of an Info that lets a rank put alone to variables whose chunks go through filters.
const INDEPENDENT_FILTERS: &str = "zonda_independent_filters";

/// The keys of an Info that are Zonda's own.
const OWN_KEYS: [&str; 2] = [ATTRIBUTES, INDEPENDENT_FILTERS];

/// Whether the Info has `zonda_independent_filters` = `true`.
fn allows_independent_filters(info: MpiHandle) -> bool {
    let value = zonda_mpi::info_value(info, INDEPENDENT_FILTERS).ok().flatten();
    value.is_some_and(|value| value == "true")
}

/// Warns, on one rank, of keys that are meant for Zonda and that it does not know. Keys of others are for others.
fn warn_of_unknown_keys(team: &MpiTeam, info: MpiHandle) {
    if team.rank() != 0 {
        return;
    }
    let keys = zonda_mpi::info_keys(info).unwrap_or_default();
    for key in
        keys.iter().filter(|key| key.starts_with("zonda_") && !OWN_KEYS.contains(&key.as_str()))
    {
        setting::say_once(format!(
            "the MPI_Info key {key} is unknown and has no effect; there are {}",
            OWN_KEYS.join(" and ")
        ));
    }
}

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
    let team = comm.team("nc_create_par", &parsed.os_path().display().to_string())?;
    warn_of_unknown_keys(&team, info);
    prepare_for_fork_and_exit();
    let options = CreateOptions {
        format,
        exclusive: cmode & NOCLOBBER != 0,
        io: parsed.io.clone(),
        no_attribute_order: cmode & NO_ATTRIBUTE_ORDER != 0,
        no_scales_attached: cmode & NO_SCALES_ATTACHED != 0,
        chunk_cache: Some(chunk_cache()),
        alignment: alignment(),
        equal_attributes: wants_equal_attributes(info),
        independent_filters: allows_independent_filters(info),
        ..CreateOptions::default()
    };
    let made = Dataset::create_parallel(team, parsed.os_path(), &options);
    let dataset = made.map_err(|error| creation_failure(error.into(), format))?;
    let mode = shown_mode(cmode, format);
    // SAFETY: the contract above.
    unsafe { enter(OpenDataset::new(dataset, mode, shown_path), ncidp) }
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
    let team = comm.team("nc_open_par", &parsed.os_path().display().to_string())?;
    warn_of_unknown_keys(&team, info);
    prepare_for_fork_and_exit();
    let options = OpenOptions {
        write: omode & WRITE != 0,
        io: parsed.io.clone(),
        chunk_cache: Some(chunk_cache()),
        alignment: alignment(),
        equal_attributes: wants_equal_attributes(info),
        independent_filters: allows_independent_filters(info),
        ..OpenOptions::default()
    };
    let opened = Dataset::open_parallel(team, parsed.os_path(), &options);
    let dataset = opened.map_err(|error| match CallFailure::from(error) {
        failure if failure.code() == NcError::System(libc::EISDIR) => {
            failure.with_code(NcError::NotNc)
        }
        failure => failure,
    })?;
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
