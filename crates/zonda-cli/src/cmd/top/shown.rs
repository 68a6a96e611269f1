//! The table, for a terminal or once.

use std::collections::BTreeMap;
use std::io::Write;

use zonda::servers::FileLook;

use super::{State, TopServer, a_second};
use crate::cmd::trace::size;
use crate::failure::Result;
use std::time::Duration;

/// Cursor to the upper left corner; what is behind a line, and below the last one, goes.
const HOME: &str = "\x1b[H";
const REST_OF_LINE: &str = "\x1b[K";
const REST_OF_SCREEN: &str = "\x1b[J";

/// Rows and columns of the terminal.
pub(super) fn terminal_size() -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    let size = (usize::from(size.ws_row), usize::from(size.ws_col));
    (size.0 > 1 && size.1 > 1).then_some(size)
}

/// Writes the table; where it is drawn anew, no more of it than the terminal shows.
pub(super) fn write(
    servers: &[TopServer],
    is_live: bool,
    size: Option<(usize, usize)>,
    out: &mut dyn Write,
) -> Result<()> {
    let lines = lines(servers);
    if !is_live {
        for line in lines {
            writeln!(out, "{line}")?;
        }
        return Ok(());
    }
    let (rows, columns) = size.unwrap_or((24, 80));
    write!(out, "{HOME}")?;
    for line in lines.iter().take(rows - 1) {
        let cut: String = line.chars().take(columns - 1).collect();
        writeln!(out, "{cut}{REST_OF_LINE}")?;
    }
    write!(out, "{REST_OF_SCREEN}")?;
    Ok(())
}

/// Clients of a server that have the same file open.
#[derive(Default)]
struct OneFile<'a> {
    clients: Vec<&'a FileLook>,
}

impl OneFile<'_> {
    fn sum(&self, of: impl Fn(&FileLook) -> u64) -> u64 {
        self.clients.iter().map(|file| of(file)).sum()
    }

    /// Who has it open.
    fn clients(&self) -> String {
        match self.clients[..] {
            [file] if file.n_ranks.is_none() => format!("process {}", file.pid),
            _ => match self.clients.iter().find_map(|file| file.n_ranks) {
                Some(n) => format!("{} of {n} ranks", self.clients.len()),
                None => format!("{} processes", self.clients.len()),
            },
        }
    }

    fn waits_for(&self) -> String {
        let mut ranks: Vec<usize> =
            self.clients.iter().flat_map(|file| file.waits_for_ranks.iter().copied()).collect();
        ranks.sort_unstable();
        ranks.dedup();
        const MOST: usize = 5;
        let mut named: Vec<String> = ranks.iter().take(MOST).map(usize::to_string).collect();
        if ranks.len() > MOST {
            named.push(format!("{} more", ranks.len() - MOST));
        }
        let plural = if ranks.len() == 1 { "" } else { "s" };
        if named.is_empty() { String::new() } else { format!("rank{plural} {}", named.join(", ")) }
    }
}

fn lines(servers: &[TopServer]) -> Vec<String> {
    let head = [
        "server", "process", "clients", "waiting", "files", "calls", "taken", "waits", "written",
        "a second", "memory", "most",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let mut notes = Vec::new();
    let file_head = ["file", "server", "by", "calls", "waits", "written", "a second", "waits for"];
    let mut file_rows = vec![file_head.map(str::to_owned).to_vec()];
    for server in servers {
        let name = &server.found.name;
        let pid = server.found.pid.map_or("none".to_owned(), |pid| pid.to_string());
        let Some(look) = server.look() else {
            rows.push(vec![name.clone(), pid]);
            notes.push(match &server.state {
                State::Fails(why) => format!("{name}: {why}"),
                State::Gone => format!("{name} has ended"),
                _ => format!("{name} does not answer"),
            });
            continue;
        };
        let mut files: BTreeMap<&str, OneFile<'_>> = BTreeMap::new();
        for file in &look.files {
            files.entry(&file.path).or_default().clients.push(file);
        }
        rows.push(vec![
            name.clone(),
            look.pid.to_string(),
            look.clients.len().to_string(),
            look.clients.iter().filter(|client| client.waits).count().to_string(),
            files.len().to_string(),
            look.done.calls.to_string(),
            size(look.taken.bytes),
            size(look.waiting_bytes),
            size(look.done.bytes),
            size(server.rate() as u64),
            size(look.memory_bytes),
            size(look.most_memory_bytes),
        ]);
        if look.n_failed > 0 {
            let plural = if look.n_failed == 1 { "" } else { "s" };
            notes
                .push(format!("{name} reported {} error{plural} on standard error", look.n_failed));
        }
        for (path, file) in &files {
            let age = file.clients.iter().map(|file| file.age_ns).max().unwrap_or(0);
            let written = file.sum(|file| file.done.bytes);
            // Nobody remembers a file from look to look: its clients come and go.
            let rate = match &server.before {
                Some((before_at, before)) => {
                    let of_path = before.files.iter().filter(|old| old.path == *path);
                    let old: u64 = of_path.map(|old| old.done.bytes).sum();
                    let now = server.last.as_ref().map_or(*before_at, |(at, _)| *at);
                    let time = now.saturating_duration_since(*before_at);
                    a_second(written.saturating_sub(old), time)
                }
                None => a_second(written, Duration::from_nanos(age)),
            };
            file_rows.push(vec![
                printable(path),
                name.clone(),
                file.clients(),
                file.sum(|file| file.done.calls).to_string(),
                size(file.sum(|file| file.waiting_bytes)),
                size(written),
                size(rate as u64),
                file.waits_for(),
            ]);
        }
    }
    let mut lines = aligned(&rows);
    lines.extend(notes);
    if file_rows.len() > 1 {
        lines.push(String::new());
        lines.extend(aligned(&file_rows));
    }
    lines
}

/// A path that does nothing to a terminal.
fn printable(path: &str) -> String {
    path.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}

/// Columns side by side: the first to the left, others to the right.
fn aligned(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let mut line = String::new();
        for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            match column {
                0 => line.push_str(&format!("{cell:<width$}")),
                _ => line.push_str(&format!("  {cell:>width$}")),
            }
        }
        line.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Instant;

    use zonda::servers::{CallCount, ClientLook, ServerLook, Watcher};

    use super::super::find::FoundServer;
    use super::*;

    fn file(path: &str, rank: Option<usize>, bytes: u64) -> FileLook {
        FileLook {
            path: path.to_owned(),
            pid: 70,
            rank,
            n_ranks: rank.map(|_| 8),
            age_ns: 2_000_000_000,
            taken: CallCount { calls: 9, bytes: 2 * bytes },
            done: CallCount { calls: 4, bytes },
            waiting_bytes: bytes,
            waits_for_ranks: if rank.is_some() { vec![7, 2] } else { Vec::new() },
        }
    }

    fn server(name: &str, state: State, done: u64) -> TopServer {
        let look = ServerLook {
            pid: 44,
            age_ns: 2_000_000_000,
            taken: CallCount { calls: 30, bytes: 9000 },
            done: CallCount { calls: 12, bytes: done },
            waiting_bytes: 3000,
            n_failed: 1,
            memory_bytes: 50_000_000,
            most_memory_bytes: 60_000_000,
            clients: vec![ClientLook { pid: 70, n_files: 1, waits: true }],
            files: vec![
                file("/b\x1b.nc", None, 500),
                file("/a.nc", Some(0), 1000),
                file("/a.nc", Some(1), 2000),
            ],
        };
        TopServer {
            found: FoundServer {
                name: name.to_owned(),
                socket: PathBuf::from("/tmp/x/0"),
                pid: Some(44),
            },
            watcher: Watcher::default(),
            state,
            last: Some((Instant::now(), Box::new(look))),
            before: None,
        }
    }

    #[test]
    fn tables() {
        let servers = [
            server("server1", State::Answers, 6000),
            server("server2", State::Silent, 0),
            server("server3", State::Fails("another version".to_owned()), 0),
        ];
        let lines = lines(&servers);
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let is_of_one = "server1 44 1 1 2 12 9.0 kB 3.0 kB 6.0 kB 3.0 kB 50.0 MB 60.0 MB";
        assert_eq!(words(&lines[1]), words(is_of_one), "{lines:#?}");
        assert_eq!(lines[2], "server2       44");
        assert!(lines.contains(&"server2 does not answer".to_owned()), "{lines:#?}");
        assert!(lines.contains(&"server3: another version".to_owned()), "{lines:#?}");
        let of_ranks = "/a.nc server1 2 of 8 ranks 8 3.0 kB 3.0 kB 1.5 kB ranks 2, 7";
        assert!(lines.iter().any(|line| words(line) == words(of_ranks)), "{lines:#?}");
        let alone = "/b\u{fffd}.nc server1 process 70 4 500 B 500 B 250 B";
        assert!(lines.iter().any(|line| words(line) == words(alone)), "{lines:#?}");
        assert!(lines.iter().all(|line| !line.contains('\x1b')));
    }

    #[test]
    fn rates_are_those_since_the_look_before() {
        let mut one = server("server1", State::Answers, 6000);
        let (at, mut look) = one.last.take().unwrap();
        one.before = Some((at, look.clone()));
        look.done.bytes += 1000;
        one.last = at.checked_add(Duration::from_millis(500)).map(|at| (at, look));
        assert!((one.rate() - 2000.0).abs() < 1.0, "{}", one.rate());
    }

    #[test]
    fn a_terminal_shows_what_fits() {
        let mut out = Vec::new();
        let servers = [server("server1", State::Answers, 6000)];
        write(&servers, true, Some((3, 20)), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), 3, "{text:?}");
        assert!(text.starts_with(HOME) && text.ends_with(REST_OF_SCREEN));
        assert!(
            text.lines().all(|line| line.chars().count() <= 20 + HOME.len() + REST_OF_LINE.len())
        );
    }
}
