//! Code of others that runs in the middle of a call: filter plugins.
//!
//! Such code may call the library again, on the same thread. The call around it has its file, and goes on only when that code
//! returns, so who calls from within must not wait without end for what another call has: that one may be waiting for this
//! thread, or come from such code itself. What a call from within does not get, of its own file at once, of others
//! after a time, is an error ([`give_up`]). It takes no threads of the pool, which would come to the plugin that this thread is in.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::lock;

/// Which file code of others is at work for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(u64);

impl Mark {
    /// For no file.
    pub const NONE: Mark = Mark(0);

    /// One that nobody else has.
    #[must_use]
    pub fn next() -> Mark {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Mark(LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1))
    }
}

/// How deep such code may lie in such code: a filter that reads, each time, what went through itself, has no end.
const MOST_DEPTH: usize = 8;

/// One call of such code.
#[derive(Clone, Copy, Debug)]
struct Callout {
    mark: Mark,
    /// Where what is called is kept.
    who: usize,
}

thread_local! {
    /// What this thread is in the middle of, the outermost first. No memory is taken for it.
    static CALLOUTS: [Cell<Callout>; MOST_DEPTH] =
        const { [const { Cell::new(Callout { mark: Mark::NONE, who: 0 }) }; MOST_DEPTH] };
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// What unwinds a call from within that cannot go on.
#[derive(Debug)]
pub struct Stuck;

/// Ends a call from within that would have to wait, as a panic would, but without a word: the C boundary makes `EDEADLK` of it.
pub fn give_up() -> ! {
    std::panic::resume_unwind(Box::new(Stuck))
}

/// Whether this thread is in the middle of code of others, in the middle of a call.
#[must_use]
pub fn is_within() -> bool {
    DEPTH.get() > 0
}

fn any(is_meant: impl Fn(Callout) -> bool) -> bool {
    CALLOUTS.with(|all| all.iter().take(DEPTH.get()).any(|callout| is_meant(callout.get())))
}

/// Whether it is at work for that file.
#[must_use]
pub fn is_for(mark: Mark) -> bool {
    mark != Mark::NONE && any(|callout| callout.mark == mark)
}

/// Whether it is in the middle of what `who` stands for: its address.
#[must_use]
pub fn is_in(who: usize) -> bool {
    any(|callout| callout.who == who)
}

/// Runs such code, at work for a file; `None` where this thread is too deep in it already.
pub fn run<T>(mark: Mark, who: usize, code: impl FnOnce() -> T) -> Option<T> {
    /// Also where it unwinds.
    struct End(usize);
    impl Drop for End {
        fn drop(&mut self) {
            DEPTH.set(self.0);
        }
    }
    let depth = DEPTH.get();
    CALLOUTS.with(|all| all.get(depth).map(|place| place.set(Callout { mark, who })))?;
    DEPTH.set(depth + 1);
    let _end = End(depth);
    // What the call around it has is not given back before it returns. Calls from within begin anew.
    let _aside = lock::set_aside();
    Some(code())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::{Mutex, Rank, RwLock};
    use std::time::Instant;

    #[test]
    fn a_thread_knows_what_it_is_in() {
        let (one, other) = (Mark::next(), Mark::next());
        assert!(!is_within() && !is_for(one) && !is_for(Mark::NONE) && !is_in(0));
        run(one, 1, || {
            assert!(is_within() && is_for(one) && !is_for(other) && is_in(1) && !is_in(2));
            run(other, 2, || assert!(is_for(one) && is_for(other) && is_in(1) && is_in(2)));
            assert!(!is_for(other) && !is_in(2));
            std::thread::scope(|scope| {
                let other_thread = scope.spawn(|| assert!(!is_within()));
                other_thread.join().unwrap();
            });
        });
        assert!(!is_within());
        fn down(n: usize) -> usize {
            run(Mark::NONE, 1, || down(n + 1)).unwrap_or(n)
        }
        assert_eq!((down(0), is_within()), (MOST_DEPTH, false));
    }

    #[test]
    fn a_call_from_within_gets_other_files_and_does_not_wait_for_its_own() {
        let (mine, yours) = (Mark::next(), Mark::next());
        let (file, other) = (RwLock::ranked(Rank::File, ()), RwLock::ranked(Rank::File, ()));
        let deeper = Mutex::ranked(Rank::ChunkCache, ());
        let stuck = |body: &dyn Fn()| {
            let end = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
            end.is_err_and(|why| why.is::<Stuck>())
        };
        let held = (file.write(), deeper.lock());
        run(mine, 1, || {
            // In any order, as in a call from nowhere.
            drop((other.write_for(yours), deeper.try_lock()));
            let begin = Instant::now();
            assert!(stuck(&|| drop(file.read_for(mine))) && stuck(&|| drop(file.write_for(mine))));
            assert!(begin.elapsed() < crate::fork::MOST_WAIT);
            let begin = Instant::now();
            assert!(stuck(&|| drop(file.read_for(yours))), "for a time, where it is another one's");
            assert!(begin.elapsed() >= crate::fork::MOST_WAIT);
        });
        drop(held);
        let reads = file.read();
        run(mine, 1, || {
            drop(file.read_for(mine));
            assert!(stuck(&|| drop(file.write_for(mine))));
        });
        drop(reads);
        drop(file.write_for(mine));
    }
}
