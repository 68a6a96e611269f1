//! The calls of the system that this crate makes.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::CpuSet;
use crate::cpus::MOST_CPUS;

/// Words of a set of processors that the kernel is asked for: 65,536 processors.
const MASK_WORDS: usize = 1024;

/// The processors that thread `tid` of this process may run on (0: the calling one); `None` where
/// the system does not say.
pub(crate) fn affinity(tid: libc::pid_t) -> Option<CpuSet> {
    let mut words = vec![0_u64; MASK_WORDS];
    // The plain system call, since the wrapper of the C library knows 1,024 processors.
    // SAFETY: the kernel writes at most the bytes that it is told of into `words`, which has them.
    let written = unsafe {
        libc::syscall(libc::SYS_sched_getaffinity, tid, size_of_val(&words[..]), words.as_mut_ptr())
    };
    (written > 0).then(|| CpuSet::of_words(words)).filter(|set| !set.is_empty())
}

/// Has the calling thread run on `cpus` only; false where the system refuses.
pub(crate) fn set_affinity(cpus: &CpuSet) -> bool {
    let words = cpus.words(1);
    // SAFETY: the kernel reads the bytes that it is told of from `words`, which has them.
    let done = unsafe {
        libc::syscall(libc::SYS_sched_setaffinity, 0, size_of_val(&words[..]), words.as_ptr())
    };
    done == 0
}

/// How often the calling thread gave its processor up to wait for something; `None` where the system does
/// not count that.
pub(crate) fn voluntary_switches() -> Option<u64> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call writes a `rusage` to the address of one.
    let done = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    // SAFETY: all zero is a `rusage`, too.
    let usage = unsafe { usage.assume_init() };
    (done == 0).then(|| u64::try_from(usage.ru_nvcsw).unwrap_or(0))
}

/// Whether memory that is mapped and not used counts: under a limit on addresses (`ulimit -v`), and where the program has memory locked, what it maps
/// later included, as far as can be told.
pub(crate) fn counts_unused_memory() -> bool {
    let mut limit = MaybeUninit::<libc::rlimit>::zeroed();
    // SAFETY: the call writes an `rlimit` to the address of one.
    let done = unsafe { libc::getrlimit(libc::RLIMIT_AS, limit.as_mut_ptr()) };
    // SAFETY: all zero is an `rlimit`, too.
    let limit = unsafe { limit.assume_init() };
    let is_locked = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let locked = status.lines().find_map(|line| line.strip_prefix("VmLck:"));
        locked.is_some_and(|words| words.split_whitespace().next() != Some("0"))
    };
    (done == 0 && limit.rlim_cur != libc::RLIM_INFINITY) || is_locked()
}

/// Bytes of a page of memory.
pub(crate) fn page_bytes() -> usize {
    // SAFETY: the call reads a number of the system.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// The name that the loader has for the file with the code at an address.
pub(crate) fn file_of(address: usize) -> Option<Vec<u8>> {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: any address may be asked about, and `info` is valid for the answer.
    let found =
        unsafe { libc::dladdr(std::ptr::with_exposed_provenance(address), info.as_mut_ptr()) != 0 };
    // SAFETY: all zero is a `Dl_info`, too.
    let info = unsafe { info.assume_init() };
    if !found || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: not null, so the NUL-terminated name of a loaded file: that of this code, which is there during the call.
    Some(unsafe { std::ffi::CStr::from_ptr(info.dli_fname) }.to_bytes().to_vec())
}

/// Runs `body` while no signal is delivered to this thread.
pub(crate) fn with_signals_blocked<T>(body: impl FnOnce() -> T) -> T {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigfillset` makes a set of `all`, and cannot fail for memory that is ours; the other
    // call reads it and makes one of `before`.
    let is_masked = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) == 0
    };
    let done = body();
    if is_masked {
        // SAFETY: the call above succeeded, so `before` is a set.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut());
        }
    }
    done
}

/// The places of an OpenMP runtime that is in the process (OpenMP 4.5, section 3.2.23 and on): the
/// processors that it may bind its threads to. `None` where there is none, or it has no places.
pub(crate) fn openmp_places() -> Option<CpuSet> {
    type NumPlaces = unsafe extern "C" fn() -> libc::c_int;
    type NumProcs = unsafe extern "C" fn(libc::c_int) -> libc::c_int;
    type ProcIds = unsafe extern "C" fn(libc::c_int, *mut libc::c_int);
    // SAFETY: the names end with NUL; what is looked up in the whole process is not unloaded between
    // here and the calls, since the program uses it.
    let find = |name: &std::ffi::CStr| unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    let (places, procs, ids) = (
        find(c"omp_get_num_places"),
        find(c"omp_get_place_num_procs"),
        find(c"omp_get_place_proc_ids"),
    );
    if places.is_null() || procs.is_null() || ids.is_null() {
        return None;
    }
    // SAFETY: functions of these names have these types by OpenMP's specification.
    let (places, procs, ids) = unsafe {
        (
            std::mem::transmute::<*mut libc::c_void, NumPlaces>(places),
            std::mem::transmute::<*mut libc::c_void, NumProcs>(procs),
            std::mem::transmute::<*mut libc::c_void, ProcIds>(ids),
        )
    };
    let mut set = CpuSet::default();
    // SAFETY: takes nothing.
    let n_places = unsafe { places() };
    for place in 0..n_places {
        // SAFETY: `place` is less than the number of places.
        let n = usize::try_from(unsafe { procs(place) }).unwrap_or(0);
        if n > MOST_CPUS {
            continue;
        }
        let mut found: Vec<libc::c_int> = vec![-1; n];
        // SAFETY: `found` has room for as many numbers as the runtime just said.
        unsafe { ids(place, found.as_mut_ptr()) };
        found
            .into_iter()
            .filter_map(|cpu| usize::try_from(cpu).ok())
            .for_each(|cpu| set.insert(cpu));
    }
    Some(set).filter(|set| !set.is_empty())
}

/// The name of this host, as far as the system says one.
pub(crate) fn host() -> String {
    let mut name = [0_u8; 256];
    // SAFETY: the call writes at most the bytes that it is told of into `name`, which has them.
    let done = unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len()) };
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    if done == 0 { String::from_utf8_lossy(&name[..end]).into_owned() } else { String::new() }
}

/// Has the C library call these before each `fork`, and after it in parent and child. Where it has no memory
/// for that, it does not.
pub(crate) fn at_fork(
    before: extern "C" fn(),
    in_parent: extern "C" fn(),
    in_child: extern "C" fn(),
) {
    // SAFETY: the handlers are functions of this library, which is never unloaded (it is linked with `nodelete`).
    unsafe {
        libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child));
    }
}

/// The mask when the library was loaded: words that were not written are zero.
static AT_LOAD: [AtomicU64; MASK_WORDS] = [const { AtomicU64::new(0) }; MASK_WORDS];

/// Runs before `main`, or when the library is loaded later. Nothing of Rust's is ready then for sure: it
/// makes one system call and stores numbers.
extern "C" fn at_load() {
    let mut words = [0_u64; MASK_WORDS];
    // SAFETY: as in `affinity`.
    let written = unsafe {
        libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(&words), words.as_mut_ptr())
    };
    if written > 0 {
        for (kept, word) in AT_LOAD.iter().zip(words) {
            kept.store(word, Ordering::Relaxed);
        }
    }
}

#[used]
// SAFETY: the section holds pointers to functions without arguments that are used, which this is.
#[unsafe(link_section = ".init_array")]
static REGISTERED: extern "C" fn() = at_load;

/// The processors that the process might run on when the library was loaded.
pub(crate) fn affinity_at_load() -> Option<CpuSet> {
    let words = AT_LOAD.iter().map(|word| word.load(Ordering::Relaxed)).collect();
    Some(CpuSet::of_words(words)).filter(|set| !set.is_empty())
}

/// The processors of the node that are switched on, at least 1.
pub(crate) fn processors_online() -> usize {
    // SAFETY: takes a number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).unwrap_or(1).max(1)
}

/// A page that a forked child finds zeroed, however it was forked; null before it is made, [`NO_PAGE`] where it
/// cannot be.
static WIPED: AtomicPtr<AtomicU32> = AtomicPtr::new(std::ptr::null_mut());

/// Where the kernel wipes no pages.
const NO_PAGE: *mut AtomicU32 = std::ptr::without_provenance_mut(align_of::<AtomicU32>());

/// The number of this process, at the price of two loads: `getpid` is a call of the system, which took a tenth of each
/// small write.
#[inline]
pub(crate) fn process_id() -> u32 {
    let page = WIPED.load(Ordering::Acquire);
    if page.is_null() || page == NO_PAGE {
        return asked_process_id(page);
    }
    // SAFETY: it is neither null nor the mark, so it is the page, which holds one and is never unmapped.
    let known = unsafe { &*page };
    match known.load(Ordering::Relaxed) {
        0 => {
            let now = std::process::id();
            known.store(now, Ordering::Relaxed);
            now
        }
        id => id,
    }
}

#[cold]
fn asked_process_id(page: *mut AtomicU32) -> u32 {
    if page.is_null() {
        let made = wiped_page().unwrap_or(NO_PAGE);
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        let first = WIPED.compare_exchange(page, made, success, failure).is_ok();
        if !first && made != NO_PAGE {
            // SAFETY: another thread was first, and nobody has seen this one.
            unsafe { libc::munmap(made.cast(), size_of::<AtomicU32>()) };
        }
    }
    std::process::id()
}

/// A page of zeros, which every child finds so.
fn wiped_page() -> Option<*mut AtomicU32> {
    let (access, kind) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, of at least one page.
    let page =
        unsafe { libc::mmap(std::ptr::null_mut(), size_of::<AtomicU32>(), access, kind, -1, 0) };
    if page == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the mapping above, whole.
    let is_wiped =
        unsafe { libc::madvise(page, size_of::<AtomicU32>(), libc::MADV_WIPEONFORK) == 0 };
    if !is_wiped {
        // SAFETY: as above; nobody else knows it.
        unsafe { libc::munmap(page, size_of::<AtomicU32>()) };
        return None;
    }
    Some(page.cast())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a child says of its own number; `fork` is how it is made.
    fn told_by_child(fork: impl FnOnce() -> libc::pid_t) -> (u32, u32) {
        let mut ends = [0; 2];
        // SAFETY: two numbers for the ends of a pipe.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        let child = fork();
        if child == 0 {
            let told = process_id().to_ne_bytes();
            // SAFETY: four bytes to the pipe, and the end of a child that did nothing else.
            unsafe {
                libc::write(ends[1], told.as_ptr().cast(), told.len());
                libc::_exit(0);
            }
        }
        let mut told = [0; 4];
        // SAFETY: four bytes of the pipe; the child is ours.
        unsafe {
            assert_eq!(libc::read(ends[0], told.as_mut_ptr().cast(), 4), 4);
            libc::waitpid(child, std::ptr::null_mut(), 0);
            let _closed = ends.map(|end| libc::close(end));
        }
        (u32::from_ne_bytes(told), u32::try_from(child).unwrap())
    }

    #[test]
    fn a_child_knows_its_own_number_however_it_was_forked() {
        assert_eq!((process_id(), process_id()), (std::process::id(), std::process::id()));
        // SAFETY: the child calls what is safe in a child of several threads.
        let (told, child) = told_by_child(|| unsafe { libc::fork() });
        assert_eq!(told, child);
        // Past the C library, whose handlers do not run.
        let raw = || {
            // SAFETY: as above; no flags but the signal: a plain fork.
            let made = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
            libc::pid_t::try_from(made).unwrap()
        };
        let (told, child) = told_by_child(raw);
        assert_eq!(told, child);
        assert_eq!(process_id(), std::process::id());
    }
}
