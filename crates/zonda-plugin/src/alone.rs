//! Allows one call of a plugin at a time.

use std::time::{Duration, Instant};

use zonda_runtime::callout;
use zonda_runtime::fork::MOST_WAIT;
use zonda_runtime::lock::{Condvar, Mutex, MutexGuard, Rank, take_until};

use crate::tuning::{LOOK_INTERVAL, MAX_LOOKS};

/// Lets one thread at a time into a plugin, since HDF5 never calls a filter from two threads, and some plugins rely
/// on it. Other threads wait. The same thread may enter again from within the plugin.
#[derive(Debug)]
pub(crate) struct Alone {
    state: Mutex<PluginUse>,
    /// Signalled when a call has ended.
    ended: Condvar,
}

#[derive(Debug, Default)]
struct PluginUse {
    /// The process whose thread is in the plugin. In a forked child that may be the parent, whose thread does not
    /// exist there.
    busy: Option<u32>,
    /// Calls that have begun, including those from within the plugin.
    n_calls: u64,
}

/// Permission to call the plugin, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    of: &'a Alone,
    is_outermost: bool,
}

impl Alone {
    pub(crate) fn new() -> Alone {
        Alone { state: Mutex::ranked(Rank::Plugin, PluginUse::default()), ended: Condvar::new() }
    }

    /// Identifies the plugin in the list of plugins that a thread is in.
    pub(crate) fn id(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Waits until no other thread is in the plugin. The error says why it does not wait any longer.
    pub(crate) fn enter(&self) -> Result<Turn<'_>, &'static str> {
        self.enter_with(LOOK_INTERVAL)
    }

    fn enter_with(&self, look: Duration) -> Result<Turn<'_>, &'static str> {
        if callout::is_in(self.id()) {
            self.lock().n_calls += 1;
            return Ok(Turn { of: self, is_outermost: false });
        }
        if callout::is_within() {
            // Called from within another plugin: the thread in this one may be waiting for that one.
            let taken = take_until(Instant::now() + MOST_WAIT, || self.lock().take());
            taken.ok_or("another thread is in its plugin, and a plugin that calls the library does not wait for it")?;
            return Ok(Turn { of: self, is_outermost: true });
        }
        let mut state = self.lock();
        let (mut seen, mut looks) = (state.n_calls, 0);
        while state.take().is_none() {
            if looks == MAX_LOOKS {
                return Err("its plugin does not come back from a call of another thread");
            }
            let (again, is_late) = self.ended.wait_timeout(state, look);
            state = again;
            looks = if state.n_calls == seen { looks + u32::from(is_late) } else { 0 };
            seen = state.n_calls;
        }
        Ok(Turn { of: self, is_outermost: true })
    }

    fn lock(&self) -> MutexGuard<'_, PluginUse> {
        self.state.lock()
    }
}

impl PluginUse {
    /// Takes the plugin if no thread of this process is in it.
    fn take(&mut self) -> Option<()> {
        let pid = std::process::id();
        if self.busy == Some(pid) {
            return None;
        }
        self.busy = Some(pid);
        self.n_calls += 1;
        Some(())
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.is_outermost {
            self.of.lock().busy = None;
            self.of.ended.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zonda_runtime::callout::Mark;

    #[test]
    fn a_thread_comes_again_and_others_wait_for_its_end() {
        let alone = Alone::new();
        let turn = alone.enter().unwrap();
        callout::run(Mark::NONE, alone.id(), || drop(alone.enter().unwrap()));
        std::thread::scope(|threads| {
            let other = threads.spawn(|| drop(alone.enter().unwrap()));
            std::thread::sleep(Duration::from_millis(20));
            assert!(!other.is_finished(), "what comes again ends no turn");
            drop(turn);
            other.join().unwrap();
        });
    }

    #[test]
    fn nobody_waits_for_a_plugin_that_stays_away() {
        let (one, other) = (Alone::new(), Alone::new());
        let enter = |alone: &Alone| alone.enter_with(Duration::from_millis(1)).map(drop);
        let _turn = one.enter().unwrap();
        std::thread::scope(|threads| {
            let late = threads.spawn(|| enter(&one));
            assert!(late.join().unwrap().unwrap_err().contains("does not come back"));
            let from_within = || callout::run(Mark::NONE, other.id(), || enter(&one)).unwrap();
            let refused = threads.spawn(from_within).join().unwrap();
            assert!(refused.unwrap_err().contains("does not wait"));
        });
    }

    #[test]
    fn a_child_does_not_wait_for_a_thread_of_its_parent() {
        let alone = Alone::new();
        alone.lock().busy = Some(std::process::id() + 1);
        drop(alone.enter().unwrap());
    }
}
