//! `zonda info --runtime`: how many threads and how much memory the library takes here, and why.

use std::io::Write;

use serde::Serialize;
use zonda_runtime::worker::{About, KINDS, alive};
use zonda_runtime::{CpuSet, Decision, Machine, memory, setting};

use super::super::table::{TextTable, wrapped};
use super::grouped;
use crate::failure::Result;

/// Characters of a line, at most.
const MOST_COLUMNS: usize = 100;
/// Those of what is before a value, and its name among them.
const INDENT: usize = 24;

/// All that `--runtime` shows, in the form of the JSON.
#[derive(Serialize)]
struct RuntimeFacts {
    threads: usize,
    threads_because: String,
    memory_bytes: u64,
    memory_because: String,
    processors: String,
    at_load: Option<String>,
    of_threads: Option<String>,
    of_openmp: Option<String>,
    online: usize,
    cgroup_processors: Option<String>,
    cgroup_quota: Option<usize>,
    cgroup_memory_bytes: Option<u64>,
    machine_memory_bytes: Option<u64>,
    ulimit_memory_bytes: Option<u64>,
    ranks: usize,
    ranks_told_by: Option<&'static str>,
    kinds_of_threads: Vec<ThreadFacts>,
    kinds_of_memory: Vec<MemoryFacts>,
}

/// Threads of a kind.
#[derive(Serialize)]
struct ThreadFacts {
    name: &'static str,
    now: usize,
    does: &'static str,
    ends: &'static str,
}

/// Memory of a kind.
#[derive(Serialize)]
struct MemoryFacts {
    name: &'static str,
    bytes: u64,
    what: &'static str,
    at_the_limit: &'static str,
}

impl RuntimeFacts {
    fn of(machine: &Machine) -> RuntimeFacts {
        let text = |set: &Option<CpuSet>| set.as_ref().map(CpuSet::to_string);
        let threads = machine.threads();
        let limit_text = setting::text("ZONDA_MEMORY");
        // Reads the variable in any case, because that warns of a value that is no number.
        let value = memory::budget();
        let memory = match limit_text.as_deref().map(setting::bytes_of) {
            Some(Some(_)) => Decision { value, because: "ZONDA_MEMORY says so".to_owned() },
            Some(None) | None => machine.default_memory(),
        };
        RuntimeFacts {
            threads: threads.value,
            threads_because: threads.because,
            memory_bytes: memory.value,
            memory_because: memory.because,
            processors: machine.cpus().to_string(),
            at_load: text(&machine.at_load),
            of_threads: text(&machine.of_threads),
            of_openmp: text(&machine.of_openmp),
            online: machine.online,
            cgroup_processors: text(&machine.limits.cpu_set),
            cgroup_quota: machine.limits.cpus,
            cgroup_memory_bytes: machine.limits.memory_bytes,
            machine_memory_bytes: machine.memory_bytes,
            ulimit_memory_bytes: machine.left_bytes,
            ranks: machine.ranks(),
            ranks_told_by: machine.ranks.told_by,
            kinds_of_threads: KINDS.iter().map(ThreadFacts::of).collect(),
            kinds_of_memory: memory::process().memory_use().iter().map(MemoryFacts::of).collect(),
        }
    }
}

impl ThreadFacts {
    fn of(kind: &About) -> ThreadFacts {
        let About { purpose, name, does, ends } = *kind;
        ThreadFacts { name, now: alive(purpose), does, ends }
    }
}

impl MemoryFacts {
    fn of(held: &memory::MemoryUse) -> MemoryFacts {
        let memory::MemoryUse { kind, bytes, .. } = *held;
        MemoryFacts {
            name: kind.name(),
            bytes,
            what: kind.what(),
            at_the_limit: kind.under_pressure(),
        }
    }
}

/// Prints it, as text or as a JSON object.
pub(super) fn write(out: &mut dyn Write, json: bool) -> Result<()> {
    let facts = RuntimeFacts::of(Machine::of_process());
    if json {
        serde_json::to_writer(&mut *out, &facts).map_err(std::io::Error::from)?;
        writeln!(out)?;
        return Ok(());
    }
    let none = || "no limit".to_owned();
    let bytes = |bytes: Option<u64>| bytes.map_or_else(none, |n| format!("{} bytes", grouped(n)));
    let set = |set: Option<String>| set.unwrap_or_else(|| "not known".to_owned());
    let mut line = |label: &str, text: String| {
        let lines = wrapped(&text, MOST_COLUMNS - INDENT).join(&format!("\n{:INDENT$}", ""));
        writeln!(out, "  {label:<21} {lines}")
    };
    line("threads", format!("{}: {}", facts.threads, facts.threads_because))?;
    line("memory", format!("{} bytes: {}", grouped(facts.memory_bytes), facts.memory_because))?;
    line("processors", format!("{} of {} online", facts.processors, facts.online))?;
    line("  when loaded", set(facts.at_load))?;
    line("  of its threads", set(facts.of_threads))?;
    line("  of OpenMP", facts.of_openmp.unwrap_or_else(|| "no OpenMP runtime".to_owned()))?;
    line("control groups", facts.cgroup_processors.unwrap_or_else(|| "all processors".to_owned()))?;
    let quota = facts.cgroup_quota.map_or_else(none, |n| format!("time of {n} processors"));
    line("  quota", quota)?;
    line("  memory", bytes(facts.cgroup_memory_bytes))?;
    line("machine's memory", bytes(facts.machine_memory_bytes))?;
    line("ulimit's memory", bytes(facts.ulimit_memory_bytes))?;
    let told_by =
        facts.ranks_told_by.map_or("no launcher says so".to_owned(), |by| format!("by {by}"));
    line("ranks on this node", format!("{} ({told_by})", facts.ranks))?;
    writeln!(out, "  kinds of threads")?;
    let mut table = TextTable::new(["name", "now", "what they do", "how they end"], 4);
    for ThreadFacts { name, now, does, ends } in facts.kinds_of_threads {
        table.rows.push([name.to_owned(), now.to_string(), does.to_owned(), ends.to_owned()]);
    }
    table.write_within(MOST_COLUMNS, out)?;
    writeln!(out, "  kinds of memory")?;
    let mut table =
        TextTable::new(["name", "bytes now", "what it is", "where there is no more"], 4);
    for MemoryFacts { name, bytes, what, at_the_limit } in facts.kinds_of_memory {
        let row = [name.to_owned(), grouped(bytes), what.to_owned(), at_the_limit.to_owned()];
        table.rows.push(row);
    }
    table.write_within(MOST_COLUMNS, out)
}
