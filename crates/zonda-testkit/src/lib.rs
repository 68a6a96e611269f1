//! What tests of several crates share. Unpublished.
#![forbid(unsafe_code)]

pub mod storage;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// How much of what a test can do without end it does: the first, or with `ZONDA_LONG` set the second.
#[must_use]
pub fn by<N>(short: N, long: N) -> N {
    if std::env::var_os("ZONDA_LONG").is_some() { long } else { short }
}

/// Seeded random numbers (splitmix64): the same seed gives the same test on every machine.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// A generator for `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
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
        let mut bytes = Vec::with_capacity(n + 8);
        while bytes.len() < n {
            bytes.extend_from_slice(&self.bits().to_le_bytes());
        }
        bytes.truncate(n);
        bytes
    }
}

/// A folder that goes, with what is in it, when the test passes; a failing test keeps it and says
/// where it is.
#[derive(Debug)]
pub struct TempFolder(PathBuf);

impl TempFolder {
    /// Makes a new folder whose name begins with `name`.
    ///
    /// # Panics
    /// If it cannot be made.
    #[must_use]
    pub fn new(name: &str) -> TempFolder {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("zonda-{name}-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&path)
            .unwrap_or_else(|why| panic!("cannot make {}: {why}", path.display()));
        TempFolder(path)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The path of `name` in it.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        if std::thread::panicking() {
            use std::io::Write;
            let _ = writeln!(std::io::stderr(), "files kept in {}", self.0.display());
        } else {
            // Left-overs in the system's temporary folder harm nobody.
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}
