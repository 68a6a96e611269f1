//! Files with bytes changed: answers or errors, in bounded time, and no panic.

#[allow(dead_code, reason = "each test uses a part")]
mod support;

use std::path::Path;
use std::sync::Arc;

use zonda_nc4::{Damaged, Nc4File, Nc4OpenOptions};
use zonda_storage::backend::Memory;

/// Rounds a file; more with `ZONDA_DAMAGE_ROUNDS`.
const ROUNDS: u64 = 300;

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn damage(name: &str) -> (u64, u64) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let path = folder.join(name);
    let whole = std::fs::read(&path).unwrap();
    let rounds = std::env::var("ZONDA_DAMAGE_ROUNDS").ok().and_then(|n| n.parse().ok());
    let (mut opened, mut state) = (0, 0x9e37_79b9_7f4a_7c15);
    let rounds = rounds.unwrap_or(ROUNDS);
    for _ in 0..rounds {
        let mut bytes = whole.clone();
        for _ in 0..1 + random(&mut state) % 4 {
            let at = (random(&mut state) % bytes.len() as u64) as usize;
            bytes[at] = match random(&mut state) % 4 {
                0 => 0,
                1 => 0xff,
                2 => bytes[at].wrapping_add(1),
                _ => random(&mut state) as u8,
            };
        }
        if random(&mut state).is_multiple_of(16) {
            bytes.truncate((random(&mut state) % whole.len() as u64) as usize);
        }
        let storage = Arc::new(Memory::from_slice(&bytes));
        let how = Nc4OpenOptions { path: Some(path.clone()), ..Nc4OpenOptions::default() };
        if let Ok(file) = Nc4File::open(storage, &path, how) {
            opened += u64::from(file.model().is_ok());
            support::touch(&file);
        }
        // What is left of it, every fourth time: a search reads the whole file.
        if random(&mut state).is_multiple_of(4) {
            let storage = Arc::new(Memory::from_slice(&bytes));
            let damaged = Damaged::Search;
            let how = Nc4OpenOptions {
                path: Some(folder.join("file")),
                damaged,
                ..Nc4OpenOptions::default()
            };
            if let Ok(file) = Nc4File::open(storage, &path, how) {
                let _ = file.faults();
                support::touch(&file);
            }
        }
    }
    (opened, rounds)
}

#[test]
fn of_netcdf() {
    let (opened, rounds) = damage("model.nc");
    assert!(opened > rounds / 4, "{opened} of {rounds} were readable at all");
}

#[test]
fn of_plain_hdf5() {
    let (opened, rounds) = damage("plain.h5");
    assert!(opened > rounds / 4, "{opened} of {rounds} were readable at all");
}
