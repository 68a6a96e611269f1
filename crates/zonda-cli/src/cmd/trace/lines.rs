//! Reads a trace of the `event` layer line by line and adds it up.

use std::collections::BTreeMap;
use std::io::BufRead;

use serde::Serialize;
use zonda_plot::{AccessDirection, FileAccess};

/// A trace, by the number of the layer in its stack.
#[derive(Debug, Default)]
pub(super) struct LineTrace {
    pub(super) layers: BTreeMap<usize, TracedLayer>,
    /// When each opening began, in seconds from the first.
    begins: Vec<f64>,
    /// When the last operation that was read ended.
    end_s: f64,
}

/// The operations of one layer.
#[derive(Debug, Default)]
pub(super) struct TracedLayer {
    /// Number of openings. The time of each begins at zero.
    pub(super) openings: usize,
    /// Operations in the order of their first occurrence.
    pub(super) operations: Vec<Operation>,
    /// Reads and writes that transferred bytes.
    pub(super) accesses: Vec<FileAccess>,
    /// The opening of the trace that the layer has reached.
    opening: usize,
    /// Whether the summary that ends an opening was read.
    closed: bool,
    /// When its last operation ended, in seconds from the beginning of the opening.
    last_end_s: f64,
    /// The call that the line before belongs to.
    took_s: f64,
}

/// All calls of one operation.
#[derive(Debug, Default, Serialize)]
pub(super) struct Operation {
    pub(super) name: String,
    pub(super) calls: u64,
    pub(super) errors: u64,
    /// Ranges of reads and writes: at least one for each call.
    pub(super) ranges: u64,
    pub(super) bytes: u64,
    /// Ranges that began where the one before of the same operation ended.
    pub(super) sequential: u64,
    /// Lowest byte, and the one behind the highest.
    pub(super) first: Option<u64>,
    pub(super) end: Option<u64>,
    /// Time in calls, in microseconds.
    pub(super) us: f64,
    #[serde(skip)]
    last: Option<u64>,
}

impl Operation {
    /// Share of ranges that began where the one before ended, of all but the first.
    pub(super) fn sequential_share(&self) -> f64 {
        self.sequential as f64 / self.ranges.saturating_sub(1).max(1) as f64
    }

    /// Mean bytes of a range.
    pub(super) fn mean_bytes(&self) -> u64 {
        self.bytes.checked_div(self.ranges).unwrap_or(0)
    }
}

/// A line.
#[derive(Debug, PartialEq)]
struct LineEvent<'a> {
    since_s: f64,
    layer: usize,
    operation: &'a str,
    offset: u64,
    /// Only the first line of a call has this.
    us: Option<f64>,
    /// Bytes transferred, unless the call failed.
    moved: Option<u64>,
}

/// The direction in which an operation transfers bytes, if it does.
fn direction(operation: &str) -> Option<AccessDirection> {
    match operation {
        "read" => Some(AccessDirection::Read),
        "write" => Some(AccessDirection::Write),
        _ => None,
    }
}

/// A number without a sign that is finite.
fn amount(word: &str) -> Option<f64> {
    word.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

fn parse(line: &str) -> Option<LineEvent<'_>> {
    let mut words = line.split(' ');
    let since_s = amount(words.next()?)?;
    let layer = words.next()?.strip_prefix("event#")?.parse().ok()?;
    let operation = words.next()?;
    let operation = match operation {
        "readv" => "read",
        "writev" => "write",
        // All other operations of a storage are counted by their names.
        other if !other.is_empty() && other.bytes().all(|b| b.is_ascii_lowercase()) => other,
        _ => return None,
    };
    let offset = words.next()?.parse().ok()?;
    let _asked: u64 = words.next()?.parse().ok()?;
    let us = match words.next()? {
        "-" => None,
        us => Some(amount(us)?),
    };
    let moved = match words.next()? {
        "error" => {
            let _number: i32 = words.next()?.parse().ok()?;
            None
        }
        moved => Some(moved.parse().ok()?),
    };
    let over = moved.is_none() || words.next().is_none();
    over.then_some(LineEvent { since_s, layer, operation, offset, us, moved })
}

/// The layer whose summary a line belongs to: `# event#2 read: 5 calls, …`.
fn summary(line: &str) -> Option<usize> {
    line.strip_prefix("# event#")?.split(' ').next()?.parse().ok()
}

impl LineTrace {
    /// Reads a trace to its end.
    ///
    /// # Errors
    /// The number and the text of the first line that no trace has; errors of reading.
    pub(super) fn read(mut input: impl BufRead) -> Result<LineTrace, String> {
        let mut trace = LineTrace::default();
        let mut bytes = Vec::new();
        for number in 1u64.. {
            bytes.clear();
            let n = input.read_until(b'\n', &mut bytes).map_err(|error| error.to_string())?;
            if n == 0 {
                break;
            }
            let line = String::from_utf8_lossy(&bytes);
            let line = line.trim_end_matches(['\n', '\r']);
            if let Some(layer) = summary(line) {
                trace.layers.entry(layer).or_default().closed = true;
            } else if let Some(event) = parse(line) {
                trace.add(&event);
            } else if !line.starts_with('#') && !line.trim().is_empty() {
                let shown: String = line.chars().take(60).collect();
                let shown = shown.escape_debug();
                if trace.layers.is_empty() {
                    return Err(format!(
                        "line {number}: the file is no recording: it has neither what ZONDA_TRACE leaves nor lines of the event layer, but `{shown}`"
                    ));
                }
                return Err(format!(
                    "line {number}: expected seconds, event#N, operation, offset, bytes, microseconds and \
                     outcome, found `{shown}`"
                ));
            }
        }
        Ok(trace)
    }

    fn add(&mut self, event: &LineEvent<'_>) {
        let layer = self.layers.entry(event.layer).or_default();
        let took_s = event.us.map_or(layer.took_s, |us| us / 1e6);
        let end_s = event.since_s + took_s;
        // Times of an opening begin at zero. If a process was killed, there is no summary before
        // them; then they go back by far more than threads that overtake each other do.
        let back = end_s < layer.last_end_s / 2.0 - 0.005;
        if layer.openings == 0 || layer.closed || back {
            // Another layer of the stack may have begun this opening already.
            let next = if layer.openings == 0 { 0 } else { layer.opening + 1 };
            if next >= self.begins.len() {
                self.begins.push(self.end_s);
            }
            layer.opening = next.max(if layer.openings == 0 { self.begins.len() - 1 } else { 0 });
            layer.openings += 1;
            layer.closed = false;
        }
        layer.took_s = took_s;
        layer.last_end_s = end_s;
        let start_s = self.begins[layer.opening] + event.since_s;
        self.end_s = self.end_s.max(start_s + took_s);
        layer.count(event, start_s, took_s);
    }
}

impl TracedLayer {
    fn count(&mut self, event: &LineEvent<'_>, start_s: f64, took_s: f64) {
        let position = self.operations.iter().position(|known| known.name == event.operation);
        let position = position.unwrap_or_else(|| {
            let name = event.operation.to_owned();
            self.operations.push(Operation { name, ..Operation::default() });
            self.operations.len() - 1
        });
        let operation = &mut self.operations[position];
        if let Some(us) = event.us {
            operation.calls += 1;
            operation.errors += u64::from(event.moved.is_none());
            operation.us += us;
        }
        let Some((direction, moved)) = direction(event.operation).zip(event.moved) else {
            return;
        };
        let end = event.offset.saturating_add(moved);
        operation.ranges += 1;
        operation.bytes = operation.bytes.saturating_add(moved);
        operation.sequential += u64::from(operation.last == Some(event.offset));
        operation.last = Some(end);
        if moved > 0 {
            operation.first = Some(operation.first.map_or(event.offset, |f| f.min(event.offset)));
            operation.end = Some(operation.end.map_or(end, |e| e.max(end)));
            let (offset, len_bytes) = (event.offset, moved);
            self.accesses.push(FileAccess { start_s, took_s, offset, len_bytes, direction });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        assert_eq!(
            parse("0.000123 event#2 read 0 8 12.5 8"),
            Some(LineEvent {
                since_s: 0.000_123,
                layer: 2,
                operation: "read",
                offset: 0,
                us: Some(12.5),
                moved: Some(8)
            })
        );
        let many = parse("1.5 event#1 writev 4096 10 - 10").unwrap();
        assert_eq!((many.operation, many.us), ("write", None));
        let failed = parse("1.5 event#1 write 0 10 3.0 error 28 No space left on device").unwrap();
        assert_eq!(failed.moved, None);
        for bad in [
            "",
            "x event#1 read 0 8 1.0 8",
            "inf event#1 read 0 8 1.0 8",
            "0.1 event read 0 8 1.0 8",
            "0.1 event#1 7 0 8 1.0 8",
            "0.1 event#1 read 0 8 1.0",
            "0.1 event#1 read 0 8 1.0 8 8",
            "0.1 event#1 read -1 8 1.0 8",
            "0.1 event#1 read 0 8 -1.0 8",
            "0.1 event#1 read 0 99999999999999999999 1.0 8",
            "0.1 event#1 read 0 8 1.0 error",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn adding_up() {
        let text = "0.001 event#1 write 100 50 1000.0 50\n\
                    0.002 event#1 writev 150 10 500.0 10\n\
                    0.002 event#1 writev 160 10 - 10\n\
                    0.003 event#1 write 0 4 10.0 error 5 Input/output error\n\
                    0.004 event#1 len 0 0 1.0 170\n\
                    # event#1 write: 3 calls\n\
                    0.001 event#1 read 100 70 100.0 30\n";
        let trace = LineTrace::read(text.as_bytes()).unwrap();
        let layer = &trace.layers[&1];
        assert_eq!(layer.openings, 2);
        let write = &layer.operations[0];
        assert_eq!((write.calls, write.errors, write.ranges, write.bytes), (3, 1, 3, 70));
        assert_eq!((write.sequential, write.first, write.end), (2, Some(100), Some(170)));
        assert_eq!((write.mean_bytes(), write.sequential_share()), (23, 1.0));
        assert!((write.us - 1510.0).abs() < 1e-9);
        assert_eq!(layer.operations[1].name, "len");
        assert_eq!(layer.accesses.len(), 4);
        // The second opening begins where the first ended.
        let read = layer.accesses[3];
        assert!((read.start_s - 0.005_001).abs() < 1e-9, "{read:?}");
        assert_eq!((read.len_bytes, read.direction), (30, AccessDirection::Read));
    }

    /// Two layers of one stack have the same openings; a process that was killed ends one, too.
    #[test]
    fn openings() {
        let text = "0.0 event#3 read 0 8 10.0 8\n\
                    0.0 event#1 read 0 8 20.0 8\n\
                    1.0 event#1 read 0 8 10.0 8\n\
                    # event#1 read: 2 calls\n# event#3 read: 1 calls\n\
                    0.5 event#3 read 0 8 10.0 8\n\
                    0.5 event#1 read 0 8 20.0 8\n\
                    0.0 event#1 read 0 8 20.0 8\n";
        let trace = LineTrace::read(text.as_bytes()).unwrap();
        let starts = |layer: usize| {
            let accesses = trace.layers[&layer].accesses.iter();
            accesses.map(|access| (access.start_s * 1e5).round() / 1e5).collect::<Vec<f64>>()
        };
        assert_eq!(starts(3), [0.0, 1.50001]);
        assert_eq!(starts(1), [0.0, 1.0, 1.50001, 1.50003]);
        assert_eq!(trace.layers[&1].openings, 3);
    }

    #[test]
    fn a_bad_line_is_named() {
        let error =
            LineTrace::read("0.0 event#1 read 0 8 1.0 8\n\n# x\noops\n".as_bytes()).unwrap_err();
        assert!(
            error.starts_with("line 4: expected ") && error.ends_with("found `oops`"),
            "{error}"
        );
        let error = LineTrace::read(&b"\xff\xfe\x00"[..]).unwrap_err();
        assert!(error.starts_with("line 1: "), "{error}");
        assert!(LineTrace::read(&b""[..]).unwrap().layers.is_empty());
    }
}
