//! Writes a recording as one HTML page that needs no other files: tables, and plots as SVG. It is
//! made as text, because template crates write no line ends between elements, and the page is to be
//! readable.

use std::fmt::Write as _;

use zonda_plot::{
    Axis, AxisKind, BarOptions, BarSeries, Chart, Curve, Format, LineOptions, OffsetOptions, bars,
    lines, offsets,
};

use super::job::{Job, Overview};
use super::summary::{FileSummary, ProcessSummary, Stage, Sum, TransferSum};
use super::{RecordingSummary, panel};
use crate::cmd::info::grouped;
use crate::markup;

/// The most processes that get plots. The tables of `zonda trace` have all processes.
const MOST_PROCESSES: usize = 50;
/// The most rows of a table.
const MOST_ROWS: usize = 30;
const WIDTH: u32 = 1100;
/// What the last of the stages is.
const ABOUT_REST: &str = "Rest of calls: what no other stage is. Variables are looked up, arguments checked, values copied into pages, \
                          files opened and created; and a thread may have waited for a processor.";

/// Charts are drawn for white paper: in the dark their few neutral colours change places, and the
/// colours of data stay.
const STYLE: &str = "
:root { color-scheme: light dark; --ink: #1c1e21; --faint: #5b6067; --line: #dfe2e6; --page: #f6f7f9; --card: #ffffff; --accent: #0072b2; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8eaed; --faint: #a2a8b0; --line: #363a41; --page: #121417; --card: #1b1e23; --accent: #56b4e9; }
  svg [fill='#FFFFFF'] { fill: #1b1e23; }
  svg [fill='#262626'] { fill: #e8eaed; } svg [stroke='#262626'] { stroke: #e8eaed; }
  svg [fill='#606060'] { fill: #a2a8b0; } svg [fill='#E2E2E2'] { fill: #363a41; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, 'DejaVu Sans', sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 28px 20px 60px; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 19px; margin: 38px 0 10px; overflow-wrap: anywhere; }
h3 { font-size: 15px; margin: 22px 0 8px; overflow-wrap: anywhere; }
p { margin: 6px 0; color: var(--faint); } code { font: 13px/1.4 'DejaVu Sans Mono', monospace; overflow-wrap: anywhere; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(170px, 1fr)); gap: 12px; margin: 18px 0; }
.tile, figure, .table { background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
.tile { padding: 12px 16px; } .tile b { display: block; font-size: 22px; font-variant-numeric: tabular-nums; } .tile span { color: var(--faint); font-size: 13px; }
figure { margin: 14px 0; padding: 12px; } figure svg { display: block; width: 100%; height: auto; }
.table { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: 13.5px; font-variant-numeric: tabular-nums; }
th, td { padding: 5px 12px; text-align: right; white-space: nowrap; } th { color: var(--faint); font-weight: 600; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; } tr + tr td { border-top: 1px solid var(--line); }
";

/// The page up to its heading.
fn begun(label: &str) -> String {
    let label = escaped(label);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{label}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{label}</h1>\n"
    )
}

/// Makes the page of one recording.
pub(super) fn make(recording: &RecordingSummary, speed: f64) -> zonda_plot::Result<String> {
    let mut page = begun(&recording.label);
    if recording.lost > 0 {
        let lost = grouped(recording.lost);
        let _ = writeln!(page, "<p>{lost} events were lost: the trace could not be written.</p>");
    }
    if let Some(at) = recording.torn {
        let _ = writeln!(
            page,
            "<p>The trace breaks off at byte {at}, as when a process is killed.</p>"
        );
    }
    let processes: Vec<_> = recording.processes.iter().collect();
    push_processes(&mut page, &processes, speed)?;
    page.push_str("</main>\n</body>\n</html>\n");
    Ok(page)
}

/// Makes the page of the recordings of a job.
pub(super) fn of_job(job: &Job, speed: f64) -> zonda_plot::Result<String> {
    let mut page = begun(&job.title());
    for note in &job.notes {
        let _ = writeln!(page, "<p>{}</p>", escaped(note));
    }
    push_chart(&mut page, job.timeline(WIDTH))?;
    for (title, overview) in
        [("Programs", job.programs(size, time)), ("I/O servers", job.servers(size, time))]
    {
        push_overview(&mut page, title, &overview);
    }
    push_chart(&mut page, job.levels(WIDTH))?;
    push_processes(&mut page, &job.processes(), speed)?;
    page.push_str("</main>\n</body>\n</html>\n");
    Ok(page)
}

fn push_overview(page: &mut String, title: &str, overview: &Overview) {
    if !overview.rows.is_empty() {
        let _ = writeln!(page, "<h2>{title}</h2>");
        push_rows(page, &overview.head, &overview.rows, overview.rows.len());
    }
}

fn push_processes(
    page: &mut String,
    processes: &[&ProcessSummary],
    speed: f64,
) -> zonda_plot::Result<()> {
    for process in processes.iter().take(MOST_PROCESSES) {
        push_process(page, process, speed)?;
    }
    if let Some(more) = processes.len().checked_sub(MOST_PROCESSES).filter(|n| *n > 0) {
        let _ = writeln!(
            page,
            "<p>And {more} more processes, which <code>zonda trace</code> lists.</p>"
        );
    }
    Ok(())
}

/// Text for the page. Characters that a browser would not show are replaced.
fn escaped(text: &str) -> String {
    let shown = text.chars().map(|letter| match letter {
        '\n' | '\t' => ' ',
        letter if letter.is_control() => '\u{fffd}',
        letter => letter,
    });
    let shown: String = shown.collect();
    let mut out = Vec::with_capacity(shown.len());
    markup::push_escaped(&mut out, shown.as_bytes());
    String::from_utf8_lossy(&out).into_owned()
}

/// A time in the unit that makes it short.
fn time(ns: u64) -> String {
    let number = ns as f64;
    match ns {
        0 => "0".to_owned(),
        1..1000 => format!("{ns} ns"),
        1000..1_000_000 => format!("{:.1} µs", number / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", number / 1e6),
        _ => format!("{:.2} s", number / 1e9),
    }
}

fn size(bytes: u64) -> String {
    super::super::size(bytes)
}

fn share(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}

/// Numbers as people write them.
fn number(number: u64) -> String {
    grouped(number).replace('_', "\u{202f}")
}

fn push_process(page: &mut String, process: &ProcessSummary, speed: f64) -> zonda_plot::Result<()> {
    let _ = writeln!(
        page,
        "<h2>{}Process {}: <code>{}</code></h2>",
        process.role.as_ref().map_or(String::new(), |role| format!("{}: ", escaped(role))),
        process.pid,
        escaped(&process.program())
    );
    let whole = process.ns;
    page.push_str("<div class=\"tiles\">\n");
    let mut tile = |value: String, what: String| {
        let _ = writeln!(page, "<div class=\"tile\"><b>{value}</b><span>{what}</span></div>");
    };
    tile(time(whole), "from the first event to the last".to_owned());
    let called = process.called_ns;
    tile(share(called, whole), format!("of it the callers were in the library ({})", time(called)));
    tile(size(process.put_bytes), format!("put, in {}", time(process.put_ns)));
    tile(size(process.get_bytes), format!("got, in {}", time(process.get_ns)));
    // What servers write is behind already.
    let is_served = !process.served.told.is_empty() || process.is_server();
    if !is_served && (process.ranks_put_bytes == 0 || process.own_puts().1 > 0) {
        let hidable = process.hidable_ns(speed);
        let what = format!("({}) that write-behind could hide at most", share(hidable, whole));
        tile(time(hidable), what);
    }
    page.push_str("</div>\n");

    push_chart(page, stages(process))?;
    if called > 0 {
        let _ = writeln!(page, "<p>{ABOUT_REST}</p>");
    }
    let title = "Where in the file, over time".to_owned();
    let options = OffsetOptions { title, width: WIDTH, ..OffsetOptions::default() };
    push_chart(page, offsets(&[panel(process)], &options))?;
    push_chart(page, throughput(process))?;
    push_chart(page, stages_over_time(process))?;
    push_chart(page, queue(process))?;
    push_chart(page, requests(process))?;
    for (title, top) in
        [("Sizes that the format asked for", true), ("Sizes that reached the file system", false)]
    {
        push_chart(page, sizes(process, title, top))?;
    }
    tables(page, process);
    Ok(())
}

/// Appends a chart, unless it is empty.
fn push_chart(page: &mut String, chart: zonda_plot::Result<Chart>) -> zonda_plot::Result<()> {
    let chart = match chart {
        Ok(chart) => chart,
        Err(zonda_plot::Error::Empty) => return Ok(()),
        Err(error) => return Err(error),
    };
    let svg = String::from_utf8_lossy(&chart.encode(Format::Svg)?).into_owned();
    let _ = writeln!(page, "<figure>{svg}</figure>");
    Ok(())
}

/// Time per stage, of callers and of other threads.
fn stages(process: &ProcessSummary) -> zonda_plot::Result<Chart> {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let of = |sums: &std::collections::BTreeMap<Stage, u64>, stage| {
        sums.get(&stage).copied().map_or(0.0, seconds)
    };
    let mut names: Vec<String> = Stage::ALL.iter().map(|stage| stage.text().to_owned()).collect();
    let mut callers: Vec<f64> =
        Stage::ALL.iter().map(|stage| of(&process.caller_ns, *stage)).collect();
    let mut others: Vec<f64> =
        Stage::ALL.iter().map(|stage| of(&process.other_ns, *stage)).collect();
    names.push("rest of calls".to_owned());
    callers.push(seconds(process.rest_ns()));
    others.push(0.0);
    let mut series = vec![BarSeries { name: "calling threads".to_owned(), values: callers }];
    if others.iter().any(|value| *value > 0.0) {
        series.push(BarSeries { name: "other threads".to_owned(), values: others });
    }
    let options = BarOptions {
        title: "Time per stage".to_owned(),
        y: Axis::new("time", AxisKind::Seconds),
        width: WIDTH,
        ..BarOptions::default()
    };
    bars(&names, &series, &options)
}

fn throughput(process: &ProcessSummary) -> zonda_plot::Result<Chart> {
    let charts = &process.charts;
    let curves = [
        ("put by the program", &charts.put),
        ("written to the file", &charts.written),
        ("got by the program", &charts.got),
        ("read from the file", &charts.read),
        ("fetched from servers", &charts.fetched),
    ];
    let curves = curves.into_iter().filter(|(_, bins)| !bins.is_empty());
    let curves: Vec<Curve> = curves
        .map(|(name, bins)| Curve { name: name.to_owned(), points: bins.rates().collect() })
        .collect();
    let options = LineOptions {
        title: "Throughput, bytes a second".to_owned(),
        x: Axis::new("time", AxisKind::Seconds),
        y: Axis::new("a second", AxisKind::Bytes),
        width: WIDTH,
        ..LineOptions::default()
    };
    lines(&curves, &options)
}

fn stages_over_time(process: &ProcessSummary) -> zonda_plot::Result<Chart> {
    let curves = process.charts.stages.iter().filter(|(_, bins)| !bins.is_empty());
    let curves: Vec<Curve> = curves
        .map(|(stage, bins)| Curve {
            name: stage.text().to_owned(),
            points: bins.rates().collect(),
        })
        .collect();
    let options = LineOptions {
        title: "Threads at work on each stage".to_owned(),
        x: Axis::new("time", AxisKind::Seconds),
        y: Axis::new("threads", AxisKind::Number),
        width: WIDTH,
        ..LineOptions::default()
    };
    lines(&curves, &options)
}

fn queue(process: &ProcessSummary) -> zonda_plot::Result<Chart> {
    let points = process.charts.queue_bytes.points();
    let curves = [Curve { name: "bytes".to_owned(), points }];
    let options = LineOptions {
        title: if process.is_server() {
            "Bytes that wait in the I/O server".to_owned()
        } else {
            "Write-behind: bytes accepted and not yet written".to_owned()
        },
        x: Axis::new("time", AxisKind::Seconds),
        y: Axis::new("in the queue", AxisKind::Bytes),
        width: WIDTH,
        ..LineOptions::default()
    };
    lines(&curves, &options)
}

/// How many requests to servers are under way.
fn requests(process: &ProcessSummary) -> zonda_plot::Result<Chart> {
    let requests = &process.charts.requests;
    let points = if requests.is_empty() { Vec::new() } else { requests.rates().collect() };
    let options = LineOptions {
        title: "Remote files: requests under way".to_owned(),
        x: Axis::new("time", AxisKind::Seconds),
        y: Axis::new("requests", AxisKind::Number),
        width: WIDTH,
        ..LineOptions::default()
    };
    lines(&[Curve { name: "requests".to_owned(), points }], &options)
}

/// How many ranges have which size, at the top or at the bottom of the stacks.
fn sizes(process: &ProcessSummary, title: &str, top: bool) -> zonda_plot::Result<Chart> {
    let mut sums = [Vec::new(), Vec::new()];
    for file in &process.files {
        let mut layers = file.layers.values();
        let layer = if top { layers.next() } else { layers.next_back() };
        let Some(layer) = layer else { continue };
        for (sum, moved) in sums.iter_mut().zip([&layer.read, &layer.write]) {
            add(sum, moved);
        }
    }
    let len = sums.iter().map(Vec::len).max().unwrap_or(0);
    let first = (0..len).find(|&i| sums.iter().any(|sum| sum.get(i).is_some_and(|n| *n > 0.0)));
    let first = first.unwrap_or(0);
    let names: Vec<String> = (first..len).map(|power| binary(1u64 << power.min(63))).collect();
    let series: Vec<BarSeries> = ["reads", "writes"]
        .into_iter()
        .zip(sums)
        .map(|(name, sum)| BarSeries {
            name: name.to_owned(),
            values: sum.into_iter().skip(first).collect(),
        })
        .collect();
    let options = BarOptions {
        title: title.to_owned(),
        x_title: "bytes, from this size up to twice as many".to_owned(),
        y: Axis::new("transfers", AxisKind::Number),
        width: WIDTH,
        ..BarOptions::default()
    };
    bars(&names, &series, &options)
}

fn add(sum: &mut Vec<f64>, moved: &TransferSum) {
    if sum.len() < moved.sizes.len() {
        sum.resize(moved.sizes.len(), 0.0);
    }
    sum.iter_mut().zip(&moved.sizes).for_each(|(sum, n)| *sum += *n as f64);
}

/// A power of two in bytes.
fn binary(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let unit = (bytes.checked_ilog2().unwrap_or(0) / 10) as usize;
    format!("{} {}", bytes >> (10 * unit), units.get(unit).copied().unwrap_or("EiB"))
}

fn push_table(page: &mut String, head: &[&str], rows: &[Vec<String>]) {
    push_rows(page, head, rows, MOST_ROWS);
}

fn push_rows(page: &mut String, head: &[&str], rows: &[Vec<String>], most_rows: usize) {
    if rows.is_empty() {
        return;
    }
    page.push_str("<div class=\"table\"><table>\n<tr>");
    head.iter().for_each(|cell| {
        let _ = write!(page, "<th>{cell}</th>");
    });
    page.push_str("</tr>\n");
    for row in rows.iter().take(most_rows) {
        page.push_str("<tr>");
        row.iter().for_each(|cell| {
            let _ = write!(page, "<td>{}</td>", escaped(cell));
        });
        page.push_str("</tr>\n");
    }
    page.push_str("</table></div>\n");
    if rows.len() > most_rows {
        let _ = writeln!(page, "<p>And {} more.</p>", rows.len() - most_rows);
    }
}

fn tables(page: &mut String, process: &ProcessSummary) {
    let served = &process.served;
    for (title, what, kinds) in [
        ("Calls", "function", &process.calls),
        ("Handed over to I/O servers", "call", &served.told),
        ("Asked of I/O servers", "question", &served.asked),
        ("Taken from clients", "call", &served.taken),
        ("Carried out", "call", &served.carried_out),
    ] {
        if !kinds.is_empty() {
            let _ = writeln!(page, "<h3>{title}</h3>");
            sums(page, what, kinds.iter().map(|(n, s)| (&n[..], s)));
        }
    }
    variables(page, process);
    for file in &process.files {
        layers(page, file);
    }
    for (title, what) in [("Stages", "stage"), ("Filters", "filter"), ("Waits", "for")] {
        let rows: Vec<(&str, &Sum)> = match what {
            "stage" => process.stages.iter().map(|(n, s)| (*n, s)).collect(),
            "filter" => process.filters.iter().map(|(n, s)| (&n[..], s)).collect(),
            _ => process.waits.iter().map(|(n, s)| (*n, s)).collect(),
        };
        if !rows.is_empty() {
            let _ = writeln!(page, "<h3>{title}</h3>");
            sums(page, what, rows.into_iter());
        }
    }
}

fn variables(page: &mut String, process: &ProcessSummary) {
    let mut variables: Vec<_> = process.variables.iter().collect();
    variables.sort_by_key(|v| std::cmp::Reverse(v.put.ns.saturating_add(v.get.ns)));
    if !variables.is_empty() {
        let _ = writeln!(page, "<h3>Variables</h3>");
    }
    let rows = variables.into_iter().map(|v| {
        let mut row = vec![format!("{}: {}", v.file, v.name)];
        for sum in [&v.put, &v.get] {
            row.extend([number(sum.count), size(sum.bytes), time(sum.ns)]);
        }
        row
    });
    let rows: Vec<Vec<String>> = rows.collect();
    push_table(page, &["variable", "puts", "bytes", "time", "gets", "bytes", "time"], &rows);
}

fn layers(page: &mut String, file: &FileSummary) {
    let _ = writeln!(page, "<h3>Layers of {}</h3>", escaped(&file.path));
    let rows = file.layers.values().flat_map(|layer| {
        let transfers = [("read", &layer.read), ("write", &layer.write)];
        transfers.into_iter().filter(|(_, sum)| sum.calls > 0).map(|(operation, sum)| {
            let place = |byte: Option<u64>| byte.map_or(String::new(), number);
            vec![
                layer.token.clone(),
                operation.to_owned(),
                number(sum.calls),
                number(sum.ranges),
                size(sum.bytes),
                size(sum.bytes / sum.ranges.max(1)),
                format!("{:.1} %", 100.0 * sum.sequential_share()),
                place(sum.first),
                place(sum.end),
                time(sum.ns),
            ]
        })
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let head = [
        "layer",
        "operation",
        "calls",
        "ranges",
        "bytes",
        "mean",
        "sequential",
        "first byte",
        "end",
        "time",
    ];
    push_table(page, &head, &rows);
}

fn sums<'a>(page: &mut String, what: &str, sums: impl Iterator<Item = (&'a str, &'a Sum)>) {
    let mut sums: Vec<_> = sums.collect();
    sums.sort_by_key(|(name, sum)| (std::cmp::Reverse(sum.ns), *name));
    let rows: Vec<Vec<String>> = sums
        .into_iter()
        .map(|(name, sum)| {
            vec![
                name.to_owned(),
                number(sum.count),
                number(sum.errors),
                size(sum.bytes),
                time(sum.ns),
                time(sum.ns / sum.count.max(1)),
                time(sum.most_ns),
            ]
        })
        .collect();
    push_table(page, &[what, "count", "errors", "bytes", "time", "mean", "longest"], &rows);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_the_page() {
        assert_eq!(escaped("<a&\"b\">\n\u{1b}"), "&lt;a&amp;&quot;b&quot;&gt; \u{fffd}");
    }

    #[test]
    fn sizes_are_named() {
        let names = [0, 10, 19, 20, 63].map(|power| binary(1 << power));
        assert_eq!(names, ["1 B", "1 KiB", "512 KiB", "1 MiB", "8 EiB"]);
    }
}
