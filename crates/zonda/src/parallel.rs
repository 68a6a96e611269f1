//! Files that several ranks of a team open together.

use std::path::Path;
use std::sync::Arc;

use zonda_format::{Dispatch, FillMode, PutTogether, VarRef};
use zonda_model::{Answer, NcError};
use zonda_parallel::{
    FileLayout, Hints, ParallelFile, RankQueue, Replica, ReplicaSidecars, common, of_step, of_team,
    same_opening, status_of, with_worst,
};
use zonda_runtime::callout::Mark;
use zonda_served::ServedFile;
use zonda_storage::backend::File;
use zonda_storage::{OpenedStorage, Storage, StripedFile, Striping};
use zonda_team::{Reduction, Step, Team};

use crate::dap::names_dap;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::format::{self, Maker};
use crate::open::{self, CreateOptions, ENOENT, OpenOptions, Opening};
use crate::open_file::OpenFile;
use crate::place::{is_url, shown_name};
use crate::servers;
use crate::write_behind::{self, WriteBehind};

/// What ranks learn of one of them.
const FINE: u8 = 0;

/// What one rank has opened, and what it needs until the file is closed.
struct OpenedByRank {
    opened: OpenedStorage,
    replica: Arc<Replica>,
    lock: Option<Box<dyn std::any::Any + Send + Sync>>,
    file: Option<Arc<File>>,
}

impl Dataset {
    /// Creates a dataset that all ranks of a team write. All of them call it, with equal options; what is asked for in memory, for sharing
    /// and for layers has to be nothing.
    ///
    /// Ranks make the same definitions, and each puts its own values: alone, unless [`Dataset::set_collective`] says otherwise. Elements of
    /// new classic files that nobody puts are undefined, as in PnetCDF. See `docs/dev/parallel.md`.
    ///
    /// # Errors
    /// Those of [`Dataset::create`], on all ranks the same; `NC_ENOPAR` for formats that ranks cannot write together; `NC_EMPI` where the ranks
    /// do not come together.
    pub fn create_parallel(
        team: Arc<dyn Team>,
        path: &Path,
        options: &CreateOptions,
    ) -> Result<Dataset> {
        let name = shown_name(path).display().to_string();
        let step = Step { call: "nc_create_par", file: &name };
        let made = agree_to_create(&*team, step, options).and_then(|()| {
            match servers::are_there(options) && !is_url(path) {
                true => servers::create_parallel(&team, step, path, options),
                false => create(&team, step, path, options),
            }
        });
        made.map_err(|error| error.at(path))
    }

    /// The same by these ranks, whatever servers there are.
    pub(crate) fn create_parallel_here(
        team: &Arc<dyn Team>,
        path: &Path,
        options: &CreateOptions,
    ) -> Result<Dataset> {
        let name = shown_name(path).display().to_string();
        let step = Step { call: "nc_create_par", file: &name };
        let made = agree_to_create(&**team, step, options);
        made.and_then(|()| create(team, step, path, options)).map_err(|error| error.at(path))
    }

    /// Opens a dataset on all ranks of a team. All of them call it, with equal options.
    ///
    /// Rank 0 reads the definitions for all. For puts see [`Dataset::create_parallel`].
    ///
    /// # Errors
    /// Those of [`Dataset::open`], on all ranks the same; `NC_ENOPAR` for formats that ranks cannot write together; `NC_EMPI` where the ranks
    /// do not come together.
    pub fn open_parallel(
        team: Arc<dyn Team>,
        path: &Path,
        options: &OpenOptions,
    ) -> Result<Dataset> {
        let name = shown_name(path).display().to_string();
        if names_dap(path) {
            let why = "a dataset of OPeNDAP is opened by each rank alone: use nc_open";
            return Err(Error::because(NcError::NoPar, why).at(path));
        }
        let step = Step { call: "nc_open_par", file: &name };
        let opened = open_together(&team, step, path, options);
        opened.map_err(|error| error.at(path))
    }

    /// Whether several ranks opened it together.
    #[inline]
    #[must_use]
    pub fn is_of_ranks(&self) -> bool {
        self.queued_file.file().may_have_ranks() && self.has_ranks()
    }

    #[cold]
    fn has_ranks(&self) -> bool {
        let file = self.queued_file.file();
        file.is::<ParallelFile>()
            || file.is::<ServedFile>() && self.ask_served(ServedFile::is_of_ranks)
    }

    /// Asks a file that a server writes.
    fn ask_served<T: Default>(&self, f: impl FnOnce(&ServedFile) -> T) -> T {
        self.queued_file.see(|file| file.as_any().downcast_ref().map(f).unwrap_or_default())
    }

    /// Refuses a file that one process opened for itself.
    ///
    /// # Errors
    /// `NC_ENOPAR`.
    pub fn check_of_ranks(&self) -> Result<()> {
        if self.is_of_ranks() { Ok(()) } else { self.named(Err(not_of_ranks())) }
    }

    /// Has puts to a variable made by all ranks together, or by each rank alone, as they are at first. Of a classic file it is one switch
    /// for all variables. Only this rank is told; all ranks have to choose the same.
    ///
    /// Puts that all make together can make a variable longer, and return on all ranks when all ranks have put; who puts nothing takes
    /// part with a count of 0.
    ///
    /// # Errors
    /// `NC_ENOPAR` for a file that was not opened by several ranks, `NC_ENOTVAR`; `NC_EINVAL` for independent puts of chunks that go through
    /// filters, unless [`CreateOptions::independent_filters`] allows them: then all ranks make the call.
    pub fn set_collective(&self, var: impl Into<VarRef>, is_collective: bool) -> Result<()> {
        let var = var.into();
        if self.queued_file.file().is::<ServedFile>() {
            return self.named(
                self.ask_served(|file| Some(file.set_collective(var, is_collective)))
                    .unwrap_or(Ok(())),
            );
        }
        // What all put together goes into the file before ranks put alone.
        let waits = !is_collective
            && self.ask(|file| {
                let of_ranks = file.as_any().downcast_ref::<ParallelFile>();
                Ok(of_ranks.is_some_and(|file| file.waits_for_independent(var)))
            })?;
        if waits {
            self.with_ranks(|file| file.before_independent(var))?;
        }
        self.ask(|file| {
            let of_ranks = file.as_any().downcast_ref::<ParallelFile>();
            of_ranks.ok_or_else(not_of_ranks)?.set_collective(var, is_collective)
        })
    }

    /// Makes a call that puts to a variable, and sees that this rank takes part in a put of all ranks even if the call
    /// found an error before it came to its put, or had nothing to put. What the call gives.
    pub fn put_with_ranks<T, E: From<Error>>(
        &self,
        var: VarRef,
        put: impl FnOnce() -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        let before = self.with_puts(|file| Ok(file.n_puts_together()))?;
        let done = put();
        let missed = self.with_puts(|file| {
            if file.n_puts_together() == before { file.take_part(var) } else { Ok(()) }
        });
        let done = done?;
        missed?;
        Ok(done)
    }

    /// Sees that a get of a variable finds what ranks put together before: see [`Dataset::set_collective`]. All gets do so by themselves; it is
    /// for calls that may find nothing to get, and of which other ranks may find something.
    ///
    /// # Errors
    /// Those of the other ranks, and of the storage.
    #[inline]
    pub fn ready_to_get(&self, var: VarRef) -> Result<()> {
        match self.queued_file.file().may_have_ranks() {
            true => self.make_ready_to_get(var),
            false => Ok(()),
        }
    }

    #[cold]
    fn make_ready_to_get(&self, var: VarRef) -> Result<()> {
        if !self.queued_file.file().is::<ParallelFile>() {
            return Ok(());
        }
        // Most gets share the file.
        let waits = self.ask(|file| {
            let of_ranks = file.as_any().downcast_ref::<ParallelFile>();
            Ok(of_ranks.is_some_and(|file| file.has_waiting(var)))
        })?;
        if waits { self.with_ranks(|file| file.before_get(var)) } else { Ok(()) }
    }

    fn with_puts<T>(&self, f: impl FnOnce(&mut dyn PutTogether) -> Result<T>) -> Result<T> {
        let mut file = self.named(self.queued_file.file().write())?;
        let file = file.as_any_mut();
        let of_ranks: &mut dyn PutTogether = match file.is::<ParallelFile>() {
            true => file.downcast_mut::<ParallelFile>().ok_or_else(not_of_ranks)?,
            false => file.downcast_mut::<ServedFile>().ok_or_else(not_of_ranks)?,
        };
        self.named(f(of_ranks))
    }

    /// Sets whether puts of this rank wait in its queue, from now on. What waits is written first. Each rank chooses for itself.
    ///
    /// # Errors
    /// What went wrong with puts that were accepted before.
    pub(crate) fn set_rank_queue(&self, queue: &RankQueue, how: WriteBehind) -> Result<()> {
        let file = self.named(self.queued_file.file().write())?;
        let room = match how {
            WriteBehind::On(how) if file.is_writable() => Some(write_behind::room_of(&how)),
            _ => None,
        };
        self.named(queue.set(room))
    }

    fn with_ranks<T>(&self, f: impl FnOnce(&mut ParallelFile) -> Result<T>) -> Result<T> {
        let mut file = self.named(self.queued_file.file().write())?;
        let of_ranks = file.as_any_mut().downcast_mut().ok_or_else(not_of_ranks);
        self.named(of_ranks.and_then(f))
    }
}

fn not_of_ranks() -> Error {
    let why = "the file was opened with nc_open or nc_create; use nc_open_par or nc_create_par";
    Error::because(NcError::NoPar, why)
}

/// All ranks create a file in the same way, or have an error.
fn agree_to_create(team: &dyn Team, step: Step<'_>, options: &CreateOptions) -> Result<()> {
    let CreateOptions { exclusive, no_attribute_order, no_scales_attached, .. } = *options;
    let how = [
        ("format", options.format.kind().to_owned()),
        ("NC_NOCLOBBER", given(exclusive)),
        ("NC_NOATTCREORD", given(no_attribute_order)),
        ("NC_NODIMSCALE_ATTACH", given(no_scales_attached)),
        (
            "nc_set_alignment",
            options.alignment.map_or_else(
                || given(false),
                |(threshold, alignment)| format!("({threshold}, {alignment})"),
            ),
        ),
        equality(options.equal_attributes),
        independence(options.independent_filters),
        (servers::VARIABLE, given(servers::are_there(options))),
    ];
    same_opening(team, step, &how)
}

fn create(
    team: &Arc<dyn Team>,
    step: Step<'_>,
    path: &Path,
    options: &CreateOptions,
) -> Result<Dataset> {
    let Maker::OnBytes(make) = format::maker(options.format)? else {
        return Err(zonda_format::not_by_several_ranks());
    };
    // Before the file is opened: it gets its stripes when it is made.
    let striped = if team.rank() == 0 { striped(path, options) } else { None };
    let opened = by_all(team, step, |is_first| {
        if is_first {
            // Layers that keep data back would keep them from the other ranks.
            let exclusive = options.exclusive && !striped.is_some_and(StripedFile::is_made);
            let options = CreateOptions { share: true, exclusive, ..options.clone() };
            Ok(open::create_storage(path, &options)?.0)
        } else {
            let io = options.io.clone();
            open::for_parallel(path, &OpenOptions { write: true, io, ..OpenOptions::default() })
        }
    })?;
    let OpenedByRank { opened, replica, lock, file } = opened;
    let made = common(&**team, step, &replica, || joined(make(opened, path, options)?));
    let made = made.map_err(of_step)??;
    let is_classic = !options.format.is_hdf5();
    let (hints, striping) = agreed(&**team, step, options.hints, file.as_deref())?;
    let parts = (replica, lock, file);
    let layout = FileLayout { striping, made: striped };
    let asked = (options.equal_attributes, options.independent_filters, (hints, layout));
    let mut dataset = finish(team, path, made, parts, asked)?;
    dataset.on_disk = true;
    if is_classic {
        // As in PnetCDF, by which the reference writes these.
        dataset.set_fill(FillMode::NoFill)?;
    }
    dataset.set_write_behind(options.write_behind.unwrap_or_else(WriteBehind::from_env))?;
    Ok(dataset)
}

fn open_together(
    team: &Arc<dyn Team>,
    step: Step<'_>,
    path: &Path,
    options: &OpenOptions,
) -> Result<Dataset> {
    let how = [
        ("NC_WRITE", given(options.write)),
        equality(options.equal_attributes),
        independence(options.independent_filters),
    ];
    same_opening(&**team, step, &how)?;
    let opened = by_all(team, step, |is_first| {
        if is_first && !is_url(path) {
            servers::settle(path)?;
        }
        let mut opened = open::for_parallel(path, options)?;
        if is_first
            && options.write
            && format::detect_in(&*opened.storage)? == format::Detected::Hdf5
        {
            opened.lock = open::lock(&opened)?;
        }
        Ok(opened)
    })?;
    let OpenedByRank { opened, replica, lock, file } = opened;
    let reader = servers::reader(path, options, file.as_ref());
    let damaged = zonda_nc4::Damaged::Refuse;
    let opening = Opening { path: Some(path), options, damaged };
    let read = common(&**team, step, &replica, || joined(format::open(opened, &opening)?.0));
    let (read, mark) = read.map_err(of_step)??;
    let read = match reader {
        Some(reader) => reader.of(read),
        None => read,
    };
    // What is only read is read by each rank as it is.
    let (hints, striping) = match options.write {
        true => agreed(&**team, step, options.hints, file.as_deref())?,
        false => (Hints::default(), None),
    };
    let layout = FileLayout { striping, made: None };
    let asked = (options.equal_attributes, options.independent_filters, (hints, layout));
    let dataset = finish(team, path, (read, mark), (replica, lock, file), asked)?;
    if options.write {
        dataset.set_write_behind(options.write_behind.unwrap_or_else(WriteBehind::from_env))?;
    }
    Ok(dataset)
}

/// Makes the file with the stripes that hints want, where there are some on its file system. For rank 0.
fn striped(path: &Path, options: &CreateOptions) -> Option<StripedFile> {
    let Hints { striping_unit, striping_factor, .. } = options.hints;
    let number = |hint: Option<u64>| hint.unwrap_or(0);
    let wanted = Striping { unit_bytes: number(striping_unit), n_servers: number(striping_factor) };
    (wanted != Striping::default()).then(|| zonda_storage::make_striped(path, wanted))
}

/// The hints of rank 0, and the stripes that the file has as rank 0 sees them: MPI wants hints to be the same on all ranks, and nobody is to
/// wait for ever where they are not.
fn agreed(
    team: &dyn Team,
    step: Step<'_>,
    own: Hints,
    file: Option<&File>,
) -> Result<(Hints, Option<Striping>)> {
    let mut said = Vec::new();
    if team.rank() == 0 {
        let Striping { unit_bytes, n_servers } = file.and_then(File::striping).unwrap_or_default();
        said.extend_from_slice(&unit_bytes.to_le_bytes());
        said.extend_from_slice(&n_servers.to_le_bytes());
        said.extend_from_slice(own.to_text().as_bytes());
    }
    team.broadcast(step, 0, &mut said).map_err(|error| of_team(&error))?;
    let parsed = || {
        let (unit_bytes, rest) = said.split_first_chunk()?;
        let (n_servers, text) = rest.split_first_chunk()?;
        let [unit_bytes, n_servers] = [unit_bytes, n_servers].map(|one| u64::from_le_bytes(*one));
        Some((Striping { unit_bytes, n_servers }, text))
    };
    let damaged = "what rank 0 says of hints is damaged";
    let (striping, text) =
        parsed().ok_or_else(|| Error::answered(NcError::Mpi, Answer::Request, damaged))?;
    let mut hints = Hints::default();
    // It was made of hints that were valid.
    let _none = hints.set_all(&String::from_utf8_lossy(text));
    Ok((hints, Some(striping).filter(|found| *found != Striping::default())))
}

/// Whether a flag is given, for messages.
fn given(is_given: bool) -> String {
    String::from(if is_given { "given" } else { "not given" })
}

/// What is to be the same about attributes: a rank that gives up over one must not be the only one.
fn equality(is_wanted: bool) -> (&'static str, String) {
    ("zonda_attributes=equal", given(is_wanted))
}

/// Whether ranks may put alone to chunks through filters: what one keeps all have to place.
fn independence(is_wanted: bool) -> (&'static str, String) {
    ("zonda_independent_filters=true", given(is_wanted))
}

/// Opens the storage on rank 0, and when that is there on the others. All get an error if one has one.
fn by_all(
    team: &Arc<dyn Team>,
    step: Step<'_>,
    open: impl Fn(bool) -> Result<OpenedStorage>,
) -> Result<OpenedByRank> {
    let is_first = team.rank() == 0;
    let open = |is_first| open(is_first).and_then(shared_by_ranks);
    let mut own = is_first.then(|| open(true));
    // The others learn why rank 0 could not.
    let mut said = own.as_ref().map_or_else(Vec::new, said_of);
    team.broadcast(step, 0, &mut said).map_err(|error| of_team(&error))?;
    if said.first() != Some(&FINE) {
        return Err(own.and_then(Result::err).unwrap_or_else(|| error_of(&said)));
    }
    let own = own.take().unwrap_or_else(|| open(false));
    let status = own.as_ref().err().map_or(0, |error| status_on(team.rank(), error));
    // Nodes have numbers of their own for a file system, but those of its files are the same everywhere.
    let identity = own.as_ref().ok().and_then(|opened| opened.file()?.identity());
    let (inode, is_unknown) = identity.map_or((0, 1), |(_, inode)| (inode, 0));
    let mut worst = [status, is_unknown, inode, !inode];
    team.reduce(step, Reduction::Max, &mut worst).map_err(|error| of_team(&error))?;
    let [worst, is_unknown, most, not_least] = worst;
    let mut opened = found_by_all(own, worst)?;
    if is_unknown == 0 && most != !not_least {
        let why = "ranks name different files by their paths, or by paths of different folders; all ranks have to open the same file";
        return Err(Error::answered(NcError::Mpi, Answer::Request, why));
    }
    let file = opened.file().cloned();
    let lock =
        opened.lock.take().map(|lock| Box::new(lock) as Box<dyn std::any::Any + Send + Sync>);
    let replica = Arc::new(Replica::new(Arc::clone(&opened.storage)));
    let below: Arc<dyn Storage> = Arc::<Replica>::clone(&replica);
    let opened = if opened.storage.remote().is_some() {
        // A file on a server has no neighbours.
        OpenedStorage::of(below)
    } else {
        let sidecars = opened.sidecars.take().filter(|_| is_first);
        OpenedStorage::with_sidecars(below, Arc::new(ReplicaSidecars::new(&replica, sidecars)))
    };
    Ok(OpenedByRank { opened, replica, lock, file })
}

/// Refuses a storage that the other ranks do not see.
fn shared_by_ranks(opened: OpenedStorage) -> Result<OpenedStorage> {
    // Of what is on a server each rank has a connection of its own; it is only read.
    if opened.file().is_some() || opened.storage.remote().is_some() {
        return Ok(opened);
    }
    let why = "the layer spec (ZONDA_IO, or io of the path) names memory, which is of one process; ranks share a file: name file instead, or nothing";
    Err(Error::because(NcError::Inval, why))
}

/// The status of an error together with the rank that has it: the greatest of these has the greatest status, and of the ranks with that the first.
fn status_on(rank: usize, error: &Error) -> u64 {
    status_of(error) << 32 | u64::from(!u32::try_from(rank).unwrap_or(u32::MAX))
}

/// What a rank makes of its own result, where rank 0 has the file open, and of the greatest status of all ranks ([`status_on`]).
fn found_by_all(own: Result<OpenedStorage>, worst: u64) -> Result<OpenedStorage> {
    let (status, rank) = (worst >> 32, !(worst as u32));
    let is_own = own.as_ref().err().map(status_of) == Some(status);
    with_worst(own, status).map_err(|error| match error.code() {
        NcError::System(ENOENT) => error.with_other_text(format!(
            "rank {rank} does not find the file that rank 0 has open: do all ranks pass the same path, in a folder that all nodes share?"
        )),
        _ if is_own => error,
        code => error.with_other_text(format!(
            "rank {rank} cannot open the file that rank 0 has open: {code}"
        )),
    })
}

/// How opening went, for the other ranks: the code and the text of an error.
fn said_of(opened: &Result<OpenedStorage>) -> Vec<u8> {
    match opened {
        Ok(_) => vec![FINE],
        Err(error) => {
            let mut said = vec![FINE + 1];
            said.extend_from_slice(&error.code().code().to_le_bytes());
            said.extend_from_slice(error.cause().as_bytes());
            said
        }
    }
}

fn error_of(said: &[u8]) -> Error {
    let code = said.get(1..).and_then(|rest| rest.split_first_chunk());
    let found =
        code.and_then(|(code, text)| Some((NcError::from_code(i32::from_le_bytes(*code))?, text)));
    let Some((code, text)) = found else {
        return Error::answered(
            NcError::Mpi,
            Answer::Request,
            "what rank 0 says of the file is damaged",
        );
    };
    let text = String::from_utf8_lossy(text);
    Error::answered(code, Answer::of_code(code), format!("on MPI rank 0: {text}"))
}

fn joined(made: OpenFile) -> Result<(Box<dyn Dispatch>, Mark)> {
    let (mut file, mark) = made.into_parts();
    ParallelFile::join(&mut *file)?;
    Ok((file, mark))
}

/// What a rank needs besides the file itself: its storage, what rank 0 holds, and the file at the bottom.
type Parts = (Arc<Replica>, Option<Box<dyn std::any::Any + Send + Sync>>, Option<Arc<File>>);

fn finish(
    team: &Arc<dyn Team>,
    path: &Path,
    (below, mark): (Box<dyn Dispatch>, Mark),
    (replica, lock, file): Parts,
    (equal_attributes, independent_filters, (hints, layout)): (bool, bool, (Hints, FileLayout)),
) -> Result<Dataset> {
    let queue = Arc::clone(replica.queue());
    let mut parallel =
        ParallelFile::new(below, Arc::clone(team), replica, &shown_name(path), lock)?;
    parallel.want_equal_attributes(equal_attributes);
    parallel.allow_independent_filters(independent_filters);
    parallel.take_hints(hints, layout);
    Ok(Dataset::of_ranks(path, OpenFile::new(Box::new(parallel), mark, None), file, queue))
}
