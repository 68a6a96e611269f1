//! A recording as text.

use std::io::Write;

use super::RecordingSummary;
use super::summary::{LayerSummary, ProcessSummary, ServedSummary, Stage, Sum, TransferSum};
use crate::cmd::info::grouped;
use crate::failure::Result;

/// The most rows of a table that are shown. The others have the least time or bytes.
const MOST_ROWS: usize = 20;

/// A table of text whose first column is aligned to the left, others to the right.
pub(super) struct RecordingTable {
    pub(super) rows: Vec<Vec<String>>,
}

impl RecordingTable {
    fn new<const N: usize>(head: [&str; N]) -> RecordingTable {
        RecordingTable { rows: vec![head.map(str::to_owned).to_vec()] }
    }

    pub(super) fn write(&self, out: &mut dyn Write) -> Result<()> {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width = |column: usize| {
            self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let mut line = format!("    {:<1$}", row[0], widths[0]);
            for (cell, width) in row.iter().zip(&widths).skip(1) {
                line.push_str(&format!("  {cell:>width$}"));
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

pub(super) fn seconds(ns: u64) -> String {
    format!("{:.6}", ns as f64 / 1e9)
}

fn percent(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}

pub(super) fn write(recording: &RecordingSummary, speed: f64, out: &mut dyn Write) -> Result<()> {
    for (index, process) in recording.processes.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        write_process(&recording.label, process, speed, out)?;
    }
    if recording.lost > 0 {
        writeln!(out, "\n{} events were lost: the trace could not be written", recording.lost)?;
    }
    if let Some(at) = recording.torn {
        writeln!(out, "\nthe trace breaks off at byte {at}, as when a process is killed")?;
    }
    Ok(())
}

fn write_process(
    label: &str,
    process: &ProcessSummary,
    speed: f64,
    out: &mut dyn Write,
) -> Result<()> {
    let ProcessSummary { pid, events, threads, ns, .. } = process;
    writeln!(
        out,
        "{label}: {}process {pid}, {} events of {threads} thread{}, {} s",
        process.role.as_ref().map_or(String::new(), |role| format!("{role}, ")),
        grouped(*events),
        if *threads == 1 { "" } else { "s" },
        seconds(*ns)
    )?;
    if !process.command.is_empty() {
        writeln!(out, "    {}", process.program())?;
    }
    time(process, speed, out)?;
    calls(process, out)?;
    variables(process, out)?;
    for file in &process.files {
        writeln!(out, "\n{}", file.path)?;
        let layers = file.layers.values();
        layers_table(layers, out)?;
    }
    hints(process, out)?;
    sums("stages", process.stages.iter().map(|(n, s)| (*n, s)), out)?;
    sums("filters", process.filters.iter().map(|(n, s)| (&n[..], s)), out)?;
    sums("waits", process.waits.iter().map(|(n, s)| (*n, s)), out)?;
    sums("waits for ranks", process.waits_for_ranks.iter().map(|(n, s)| (&n[..], s)), out)?;
    let queue = &process.queue;
    if queue.accepted.count > 0 {
        writeln!(
            out,
            "\nwrite-behind: {} puts of {} bytes accepted, {} carried out; at most {} bytes waited; \
             callers waited {} s for room and {} s for what was before them",
            grouped(queue.accepted.count),
            grouped(queue.accepted.bytes),
            grouped(queue.executed.count),
            grouped(queue.most_bytes),
            seconds(queue.blocked.ns),
            seconds(queue.drained.ns)
        )?;
    }
    served(process, out)
}

/// Writes what a client says to I/O servers, or what a server does.
fn served(process: &ProcessSummary, out: &mut dyn Write) -> Result<()> {
    let served = &process.served;
    for (title, kinds) in [
        ("handed over to servers", &served.told),
        ("asked of servers", &served.asked),
        ("taken from clients", &served.taken),
        ("carried out", &served.carried_out),
    ] {
        sums(title, kinds.iter().map(|(name, sum)| (&name[..], sum)), out)?;
    }
    let queue = &process.queue;
    if !served.told.is_empty() {
        writeln!(
            out,
            "\nI/O servers: callers waited {} s for room and {} s for answers",
            seconds(queue.blocked.ns),
            seconds(ServedSummary::whole(&served.asked).ns)
        )?;
    }
    let ServedSummary { queued, gathered, .. } = served;
    if let Some(mean_ns) = queued.ns.checked_div(queued.count) {
        writeln!(
            out,
            "\nqueue: at most {} bytes waited, {} s after the server began; a call waited {} s on average and {} s at most, \
             of all this time {} s for calls of other ranks; in {} s no more was taken from a client, since too much waited",
            grouped(queue.most_bytes),
            seconds(queue.most_bytes_ns),
            seconds(mean_ns),
            seconds(queued.most_ns),
            seconds(gathered.ns),
            seconds(queue.blocked.ns)
        )?;
    }
    Ok(())
}

/// Writes what the callers' time went into.
fn time(process: &ProcessSummary, speed: f64, out: &mut dyn Write) -> Result<()> {
    let mut table = RecordingTable::new(["time", "seconds", "share", "others"]);
    let whole = process.ns;
    let row = |name: &str, ns: u64, other: Option<u64>| {
        let other = other.filter(|ns| *ns > 0).map_or(String::new(), seconds);
        vec![name.to_owned(), seconds(ns), percent(ns, whole), other]
    };
    table.rows.push(row("caller in the library", process.called_ns, None));
    for stage in Stage::ALL {
        let of = |sums: &std::collections::BTreeMap<Stage, u64>| sums.get(&stage).copied();
        let (caller, other) = (of(&process.caller_ns), of(&process.other_ns));
        if caller.is_some() || other.is_some() {
            let name = format!("  {}", stage.text());
            table.rows.push(row(&name, caller.unwrap_or(0), other));
        }
    }
    table.rows.push(row("  the rest of it", process.rest_ns(), None));
    table.rows.push(row("caller elsewhere", whole.saturating_sub(process.called_ns), None));
    writeln!(out)?;
    table.write(out)?;
    if process.calls.is_empty() {
        writeln!(
            out,
            "    no call of the C interface is in it: Zonda's own tools, its servers and its Python package do without"
        )?;
    }
    if process.ranks_put_bytes > 0 {
        writeln!(
            out,
            "    puts to files of several ranks took {} s for {} bytes: what write-behind would hide of these is not estimated",
            seconds(process.ranks_put_ns),
            grouped(process.ranks_put_bytes)
        )?;
    }
    let (put_ns, put_bytes) = process.own_puts();
    // What servers write is behind already.
    if put_bytes > 0 && process.served.told.is_empty() {
        let hidable = process.hidable_ns(speed);
        if process.queue.accepted.count > 0 {
            writeln!(
                out,
                "    puts took {} s for {} bytes, of which a copy takes {} s; write-behind had {} of them: the rest is its queue, \
                 and waiting for room in it",
                seconds(put_ns),
                grouped(put_bytes),
                seconds((put_bytes as f64 / speed * 1e9) as u64),
                grouped(process.queue.accepted.count)
            )?;
            return Ok(());
        }
        writeln!(
            out,
            "    puts took {} s for {} bytes, of which a copy takes {} s: write-behind could hide up to \
             {} s more than now ({})",
            seconds(put_ns),
            grouped(put_bytes),
            seconds((put_bytes as f64 / speed * 1e9) as u64),
            seconds(hidable),
            percent(hidable, whole)
        )?;
    }
    Ok(())
}

fn calls(process: &ProcessSummary, out: &mut dyn Write) -> Result<()> {
    sums("calls", process.calls.iter().map(|(name, sum)| (&name[..], sum)), out)
}

/// Writes a table of sums, the longest time first.
fn sums<'a>(
    title: &str,
    sums: impl Iterator<Item = (&'a str, &'a Sum)>,
    out: &mut dyn Write,
) -> Result<()> {
    let mut rows: Vec<_> = sums.collect();
    if rows.is_empty() {
        return Ok(());
    }
    rows.sort_by_key(|(name, sum)| (std::cmp::Reverse(sum.ns), *name));
    let mut table =
        RecordingTable::new([title, "count", "errors", "bytes", "seconds", "mean us", "most us"]);
    for (name, sum) in rows.iter().take(MOST_ROWS) {
        let us = |ns: u64| format!("{:.1}", ns as f64 / 1e3);
        table.rows.push(vec![
            (*name).to_owned(),
            grouped(sum.count),
            grouped(sum.errors),
            grouped(sum.bytes),
            seconds(sum.ns),
            us(sum.ns / sum.count.max(1)),
            us(sum.most_ns),
        ]);
    }
    writeln!(out)?;
    table.write(out)?;
    more(rows.len(), out)
}

fn more(n_rows: usize, out: &mut dyn Write) -> Result<()> {
    if n_rows > MOST_ROWS {
        writeln!(out, "    and {} more (--json has all)", n_rows - MOST_ROWS)?;
    }
    Ok(())
}

fn variables(process: &ProcessSummary, out: &mut dyn Write) -> Result<()> {
    if process.variables.is_empty() {
        return Ok(());
    }
    let mut variables: Vec<_> = process.variables.iter().collect();
    variables
        .sort_by_key(|variable| std::cmp::Reverse(variable.put.ns.saturating_add(variable.get.ns)));
    let head = ["variable", "puts", "bytes", "seconds", "gets", "bytes", "seconds"];
    let mut table = RecordingTable::new(head);
    for variable in variables.iter().take(MOST_ROWS) {
        let mut row = vec![format!("{}: {}", variable.file, variable.name)];
        for sum in [&variable.put, &variable.get] {
            let only = |text: String| if sum.count > 0 { text } else { String::new() };
            row.extend([grouped(sum.count), grouped(sum.bytes), seconds(sum.ns)].map(only));
        }
        table.rows.push(row);
    }
    writeln!(out)?;
    table.write(out)?;
    more(variables.len(), out)
}

/// Writes what hints to files of several ranks did.
fn hints(process: &ProcessSummary, out: &mut dyn Write) -> Result<()> {
    if process.hints.is_empty() {
        return Ok(());
    }
    let mut table = RecordingTable::new(["hints", "given", "in effect", "error", "file"]);
    for hint in &process.hints {
        let number = |number: u64| if number == 0 { String::new() } else { grouped(number) };
        let code = if hint.code == 0 { String::new() } else { hint.code.to_string() };
        let (given, real) = (number(hint.given), number(hint.real));
        table.rows.push(vec![hint.effect.clone(), given, real, code, hint.file.clone()]);
    }
    writeln!(out)?;
    table.write(out)
}

fn layers_table<'a>(
    layers: impl Iterator<Item = &'a LayerSummary>,
    out: &mut dyn Write,
) -> Result<()> {
    let head = [
        "layer",
        "operation",
        "calls",
        "errors",
        "ranges",
        "bytes",
        "mean",
        "most",
        "sequential",
        "first",
        "end",
        "seconds",
    ];
    let mut table = RecordingTable::new(head);
    for layer in layers {
        for (name, moved) in [("read", &layer.read), ("write", &layer.write)] {
            if moved.calls > 0 {
                table.rows.push(moved_row(layer, name, moved));
            }
        }
        for (name, sum) in [("fill", &layer.fill), ("other", &layer.other)] {
            if sum.count > 0 {
                let mut row = vec![String::new(); 12];
                row[0].clone_from(&layer.token);
                row[1] = name.to_owned();
                row[2] = grouped(sum.count);
                row[3] = grouped(sum.errors);
                if name == "fill" {
                    row[5] = grouped(sum.bytes);
                }
                row[11] = seconds(sum.ns);
                table.rows.push(row);
            }
        }
    }
    table.write(out)
}

fn moved_row(layer: &LayerSummary, name: &str, moved: &TransferSum) -> Vec<String> {
    let place = |byte: Option<u64>| byte.map_or(String::new(), grouped);
    vec![
        layer.token.clone(),
        name.to_owned(),
        grouped(moved.calls),
        grouped(moved.errors),
        grouped(moved.ranges),
        grouped(moved.bytes),
        grouped(moved.bytes / moved.ranges.max(1)),
        grouped(moved.most),
        format!("{:.1} %", 100.0 * moved.sequential_share()),
        place(moved.first),
        place(moved.end),
        seconds(moved.ns),
    ]
}
