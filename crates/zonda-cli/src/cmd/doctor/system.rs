//! The machine, as a report of a bug needs it.

use std::fs;

use zonda_runtime::{Machine, memory};

use super::Finding;

pub(super) fn findings() -> Vec<Finding> {
    let system = rustix::system::uname();
    let word = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    let mut found = vec![
        Finding::ok(format!("zonda {}", env!("CARGO_PKG_VERSION"))),
        Finding::ok(format!(
            "{} {} {}{}",
            word(system.sysname()),
            word(system.release()),
            word(system.machine()),
            distribution().map_or(String::new(), |name| format!(", {name}")),
        )),
    ];
    if let Some(processor) = processor() {
        found.push(Finding::ok(processor));
    }
    let machine = Machine::of_process();
    let threads = machine.threads();
    found.push(Finding::ok(format!("threads: {} ({})", threads.value, threads.because)));
    let budget = memory::budget();
    let text = format!("memory for caches and queues: {} MiB", budget >> 20);
    found.push(if budget < 16 << 20 {
        Finding::note(text)
            .advised("this is little: chunks may be decoded more than once (ZONDA_MEMORY, control groups, ulimit -v)")
    } else {
        Finding::ok(text)
    });
    found.push(descriptors());
    found
}

fn distribution() -> Option<String> {
    let text = fs::read_to_string("/etc/os-release").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(line.trim_matches('"').to_owned())
}

/// Model and the instructions that matter to Zonda.
fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let field = |names: [&str; 2]| {
        text.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            names.contains(&name.trim()).then(|| value.trim().to_owned())
        })
    };
    let model = field(["model name", "CPU part"])?;
    let flags = field(["flags", "Features"]).unwrap_or_default();
    let has: Vec<&str> = flags
        .split_whitespace()
        .filter(|flag| ["avx2", "avx512f", "asimd", "sve"].contains(flag))
        .collect();
    Some(if has.is_empty() { model } else { format!("{model} ({})", has.join(", ")) })
}

/// Each open file takes two or three.
fn descriptors() -> Finding {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    match limit {
        Some(n) if n < 256 => Finding::note(format!("open files: {n} at most"))
            .advised("each open netCDF file takes up to three descriptors (ulimit -n)"),
        Some(n) => Finding::ok(format!("open files: {n} at most")),
        None => Finding::ok("open files: no limit"),
    }
}
