//! `ZONDA_MEMORY`: all caches of a process together keep to it, and lose nothing by it.

use std::process::Command;
use zonda_storage::{Advice, Create, Storage, StorageOptions, open};
use zonda_testkit::TempFolder;

const MIB: u64 = 1 << 20;
/// Bytes of each of two files.
const FILE: u64 = 96 * MIB;
/// What lies between two gaps.
const PIECE: u64 = 60_000;

/// The most memory that this process ever had, in bytes.
fn peak() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("status");
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM");
    line.trim().trim_end_matches("kB").trim().parse::<u64>().expect("a number") * 1024
}

/// The child: two files at once, written in pieces with gaps, so that no page is ever complete.
#[test]
#[ignore = "the child of caches_keep_to_the_budget"]
fn child_writes_pieces() {
    let folder = TempFolder::new("memory");
    let options = StorageOptions { create: Create::Truncate, ..StorageOptions::default() };
    let before = peak();
    let files: Vec<_> =
        ["a", "b"].map(|name| open(&folder.path().join(name), &options).expect("open")).into();
    for file in &files {
        let advice = Advice { record_bytes: FILE, n_record_parts: 1, file_bytes: FILE };
        file.advise(advice);
    }
    let piece = vec![7; PIECE as usize - 1];
    for round in 0..2 {
        for at in (0..FILE - PIECE).step_by(PIECE as usize) {
            // From both ends, so that pages come back after they had to leave.
            let at = if round == 0 { at } else { FILE - PIECE - at };
            files.iter().for_each(|file| file.write_at(at, &piece).expect("write"));
        }
    }
    let grown = peak() - before;
    for file in &files {
        file.sync().expect("sync");
        let mut back = vec![0; piece.len()];
        for at in (0..FILE - PIECE).step_by(PIECE as usize) {
            assert_eq!(file.read_at(at, &mut back).expect("read"), piece.len());
            assert!(back == piece, "{at}");
        }
    }
    std::io::Write::write_all(&mut std::io::stdout(), format!("grown {grown}\n").as_bytes())
        .expect("stdout");
}

fn grown_with(memory: &str) -> u64 {
    let exe = std::env::current_exe().expect("this test");
    let out = Command::new(exe)
        .args(["--ignored", "--exact", "child_writes_pieces", "--nocapture"])
        .env("ZONDA_MEMORY", memory)
        .output()
        .expect("the child");
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{text}{}", String::from_utf8_lossy(&out.stderr));
    let number = text.split("grown ").nth(1).and_then(|rest| rest.split_whitespace().next());
    number.and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("no figure in {text}"))
}

#[test]
fn caches_keep_to_the_budget() {
    let little = grown_with("24M");
    let much = grown_with("512M");
    // A slab more for each file, and what the test itself takes.
    assert!(little < 40 * MIB, "{little} bytes with 24M");
    assert!(much > 2 * FILE * 9 / 10, "{much} bytes with 512M: the test would notice nothing");
}
