//! Where hosts are, within a time.
//!
//! The system's resolver cannot be told how long it may take, and with a server of names that is silent it takes long. So a thread asks it, and
//! who waits for the answer gives it up when the time is over. A lookup that was given up runs until the resolver ends it; whoever asks for
//! the same host meanwhile waits for that one, and there are at most [`MOST_LOOKUPS`] of them: so a silent resolver costs no more threads than
//! these, however often it is asked. A program may end while they run.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use zonda_runtime::fork::process_id;
use zonda_runtime::lock::{Condvar, Global, Mutex, Rank};
use zonda_runtime::worker::{self, Purpose};

use crate::entered;

/// Lookups at the same time, those that were given up among them; more wait for them.
const MOST_LOOKUPS: usize = 8;
/// Addresses of a host that are tried.
const MOST_ADDRESSES: usize = 8;
/// How long a lookup waits before it looks whether there are fewer.
const NAP: Duration = Duration::from_millis(5);

/// Why there is no address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoAddress {
    /// The resolver knows none.
    Unknown,
    /// It did not answer in time.
    TimedOut,
}

/// Asks the resolver, for as long as that takes.
type Resolve = fn(&str) -> Option<Vec<SocketAddr>>;

/// A lookup that runs.
struct Lookup {
    pid: u32,
    host: String,
    /// The addresses, once they are known; none of a host that is not.
    found: Mutex<Option<Vec<SocketAddr>>>,
    is_done: Condvar,
}

static RUNNING: Global<Vec<Arc<Lookup>>> = Global::new(Rank::Servers, Vec::new(), Vec::new);

/// The addresses of a host, at most until `deadline`.
pub(super) fn addresses(
    host: &str,
    port: u16,
    deadline: Instant,
) -> Result<Vec<SocketAddr>, NoAddress> {
    let mut found = match host.parse::<IpAddr>() {
        Ok(address) => vec![SocketAddr::new(address, port)],
        Err(_) => resolved(host, deadline, by_system)?,
    };
    if found.is_empty() {
        return Err(NoAddress::Unknown);
    }
    found.iter_mut().for_each(|address| address.set_port(port));
    Ok(found)
}

fn by_system(host: &str) -> Option<Vec<SocketAddr>> {
    Some((host, 0).to_socket_addrs().ok()?.take(MOST_ADDRESSES).collect())
}

fn resolved(host: &str, deadline: Instant, resolve: Resolve) -> Result<Vec<SocketAddr>, NoAddress> {
    let Some(lookup) = joined(host, deadline, resolve)? else {
        // There is no thread to be had: better late than never.
        return Ok(resolve(host).unwrap_or_default());
    };
    let mut found = lookup.found.lock();
    loop {
        if let Some(found) = &*found {
            return Ok(found.clone());
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(NoAddress::TimedOut);
        }
        found = lookup.is_done.wait_timeout(found, left).0;
    }
}

/// The lookup of a host that runs, or a new one; `None` where no thread can be had.
fn joined(
    host: &str,
    deadline: Instant,
    resolve: Resolve,
) -> Result<Option<Arc<Lookup>>, NoAddress> {
    let pid = process_id();
    let lookup = loop {
        let mut running = RUNNING.lock();
        // Those of a process that forked this one have no thread here, and their locks are as they were.
        running.retain(|lookup| lookup.pid == pid);
        if let Some(lookup) = running.iter().find(|lookup| lookup.host == host) {
            return Ok(Some(Arc::clone(lookup)));
        }
        if running.len() < MOST_LOOKUPS {
            let lookup = Arc::new(Lookup {
                pid,
                host: host.to_owned(),
                found: Mutex::ranked(Rank::Servers, None),
                is_done: Condvar::new(),
            });
            running.push(Arc::clone(&lookup));
            break lookup;
        }
        drop(running);
        if Instant::now() >= deadline {
            return Err(NoAddress::TimedOut);
        }
        std::thread::sleep(NAP);
    };
    let run = {
        let lookup = Arc::clone(&lookup);
        move || {
            // A panic would leave others waiting until their time is over, and a place taken.
            let found = std::panic::catch_unwind(|| resolve(&lookup.host)).ok().flatten();
            end(&lookup, found.unwrap_or_default());
        }
    };
    if worker::spawn("zonda-net".to_owned(), Purpose::Remote, run).is_err() {
        end(&lookup, Vec::new());
        return Ok(None);
    }
    Ok(Some(lookup))
}

/// A lookup is over.
fn end(lookup: &Arc<Lookup>, found: Vec<SocketAddr>) {
    let _gate = entered();
    RUNNING.lock().retain(|running| !Arc::ptr_eq(running, lookup));
    *lookup.found.lock() = Some(found);
    lookup.is_done.notify_all();
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;

    static ASKED: AtomicUsize = AtomicUsize::new(0);
    static ANSWERS: AtomicBool = AtomicBool::new(false);

    /// Is silent until it answers.
    fn silent(_: &str) -> Option<Vec<SocketAddr>> {
        ASKED.fetch_add(1, Ordering::SeqCst);
        until(|| ANSWERS.load(Ordering::SeqCst));
        Some(vec!["10.1.2.3:0".parse().unwrap()])
    }

    fn until(is_so: impl Fn() -> bool) {
        while !is_so() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn asked(n: usize) {
        until(|| ASKED.load(Ordering::SeqCst) >= n);
        assert_eq!(ASKED.load(Ordering::SeqCst), n);
    }

    fn panics(_: &str) -> Option<Vec<SocketAddr>> {
        panic!("a resolver that panics")
    }

    /// One test: all lookups of a process are in one list.
    #[test]
    fn a_silent_resolver_takes_the_time_that_it_is_given_and_few_threads() {
        let soon = || Instant::now() + Duration::from_millis(30);
        let far = || Instant::now() + Duration::from_secs(20);
        let ask = |host: String, deadline: Instant| {
            let one = move || resolved(&host, deadline, silent);
            worker::spawn("test".to_owned(), Purpose::Remote, one).unwrap()
        };
        assert_eq!(resolved("one.invalid", soon(), silent), Err(NoAddress::TimedOut));
        assert_eq!(resolved("one.invalid", soon(), silent), Err(NoAddress::TimedOut));
        // The same host is asked for once.
        asked(1);
        let threads: Vec<_> = (0..20).map(|i| ask(format!("host{i}.invalid"), soon())).collect();
        let found = threads.into_iter().map(|thread| thread.join().unwrap());
        assert!(found.into_iter().all(|found| found == Err(NoAddress::TimedOut)));
        // No more than may run.
        asked(MOST_LOOKUPS);
        let waits = ask("one.invalid".to_owned(), far());
        // The list, the lookup's thread, and who waits.
        until(|| Arc::strong_count(&RUNNING.lock()[0]) > 2);
        ANSWERS.store(true, Ordering::SeqCst);
        let found = waits.join().unwrap().unwrap();
        assert_eq!(found, ["10.1.2.3:0".parse::<SocketAddr>().unwrap()]);
        // The one that was given up has the answer.
        asked(MOST_LOOKUPS);
        // There is room again when those are over.
        assert!(resolved("last.invalid", far(), silent).is_ok());
        assert_eq!(resolved("panic.invalid", far(), panics), Ok(vec![]));
        assert!(RUNNING.lock().is_empty());
    }

    #[test]
    fn addresses_are_known_without_a_resolver() {
        let now = Instant::now();
        assert_eq!(addresses("127.0.0.1", 80, now), Ok(vec!["127.0.0.1:80".parse().unwrap()]));
        assert_eq!(addresses("::1", 80, now), Ok(vec!["[::1]:80".parse().unwrap()]));
    }
}
