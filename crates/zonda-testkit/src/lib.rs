//! What tests of several crates share. Unpublished.
#![forbid(unsafe_code)]

mod distant;
pub mod storage;

pub use distant::{DistantMemory, TripCounts};

use std::path::{Path, PathBuf};

/// How much of what a test can do without end it does: the first, or with `ZONDA_LONG` set the second.
#[must_use]
pub fn by<N>(short: N, long: N) -> N {
    if std::env::var_os("ZONDA_LONG").is_some() { long } else { short }
}

/// Seeded random numbers: the same seed gives the same test on every machine.
#[derive(Debug, Clone)]
pub struct Rng(fastrand::Rng);

impl Rng {
    /// A generator for `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Rng {
        Rng(fastrand::Rng::with_seed(seed))
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.u64(..)
    }

    /// A number from 0 to `n` - 1; 0 if `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.bits() % n.max(1)
    }

    /// A length from 0 to `n` - 1, short ones as often as long ones (evenly over powers of two).
    pub fn length(&mut self, n: usize) -> usize {
        let bits = usize::BITS - n.max(1).leading_zeros();
        let bound = 1_u64 << self.below(u64::from(bits) + 1);
        (self.below(bound) as usize).min(n.saturating_sub(1))
    }

    /// `n` random bytes.
    pub fn bytes(&mut self, n: usize) -> Vec<u8> {
        let mut bytes = vec![0; n];
        self.0.fill(&mut bytes);
        bytes
    }
}

/// A folder that goes, with what is in it, when the test passes; a failing test keeps it and says
/// where it is.
#[derive(Debug)]
pub struct TempFolder(tempfile::TempDir);

impl TempFolder {
    /// Makes a new folder whose name begins with `name`.
    ///
    /// # Panics
    /// If it cannot be made.
    #[must_use]
    pub fn new(name: &str) -> TempFolder {
        let made = tempfile::Builder::new().prefix(&format!("zonda-{name}-")).tempdir();
        TempFolder(made.unwrap_or_else(|why| panic!("cannot make a folder for {name}: {why}")))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The path of `name` in it.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        if std::thread::panicking() {
            use std::io::Write;
            self.0.disable_cleanup(true);
            let _ = writeln!(std::io::stderr(), "files kept in {}", self.path().display());
        }
    }
}
