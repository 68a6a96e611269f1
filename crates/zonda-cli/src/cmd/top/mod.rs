//! `zonda top`: the I/O servers of a running job.

mod find;
mod shown;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde::Serialize;
use zonda::servers::{Looked, ServerLook, Watcher};

use crate::failure::{CommandFailure, Result};
use crate::tuning::{TOP_EVERY, TOP_PATIENCE, TOP_PATIENCE_ONCE};
use find::FoundServer;

/// Shows the I/O servers of running jobs: their clients and files, what waits, who is waited for
///
/// Servers are those that `zonda run --servers` started: of the job whose folder is given or named by ZONDA_SERVERS, else all of this user on
/// this node. On a terminal the table is drawn anew each second until they have ended (or Ctrl-C); else, and with --once, it is printed once.
/// A server that does not answer within two seconds (ten with --once and --json), as one that is stopped, is listed as such. The exit status is
/// 1 where there is no server.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  zonda top                      the servers of all jobs of this user
  zonda top --once /tmp/zonda-x  those of one job, once
  zonda top --json | jq '.servers[].look.waiting_bytes'")]
pub(crate) struct Args {
    /// Prints one table and ends
    #[arg(long)]
    once: bool,

    /// For machines: one JSON object, once
    #[arg(long)]
    json: bool,

    /// The folder with the servers' sockets, as ZONDA_SERVERS names it
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// A server, and what it says.
struct TopServer {
    found: FoundServer,
    watcher: Watcher,
    state: State,
    /// What it said when it answered last, and when.
    last: Option<(Instant, Box<ServerLook>)>,
    before: Option<(Instant, Box<ServerLook>)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Answers,
    Silent,
    Gone,
    Fails(String),
}

pub(crate) fn execute(args: &Args, out: &mut dyn Write) -> Result<ExitCode> {
    let given = args.folder.clone().map(std::path::PathBuf::into_os_string);
    let named = given.or_else(|| std::env::var_os(zonda::servers::VARIABLE));
    let folder = named.filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let mut servers: Vec<TopServer> = Vec::new();
    let is_live = !args.once && !args.json && std::io::stdout().is_terminal();
    let mut is_first = true;
    loop {
        let drawn = Instant::now();
        update(&mut servers, find::servers(folder.as_deref()));
        look(&mut servers, if is_live { TOP_PATIENCE } else { TOP_PATIENCE_ONCE });
        // What a killed job leaves are sockets that nobody is at.
        let is_left =
            |server: &TopServer| server.state == State::Gone && server.found.pid.is_none();
        let is_nobody_there = servers.iter().all(is_left);
        if is_nobody_there && !is_first {
            writeln!(out, "the I/O servers have ended")?;
            return crate::done();
        }
        if is_nobody_there {
            let text = match &folder {
                Some(folder) => format!("{}: no I/O server runs there", folder.display()),
                None => "no I/O server of this user runs on this node: `zonda run --servers` starts them".to_owned(),
            };
            return Err(CommandFailure::text(text));
        }
        if args.json {
            writeln!(out, "{}", json(&servers)?)?;
        } else {
            let size = is_live.then(shown::terminal_size).flatten();
            shown::write(&servers, is_live, size, out)?;
        }
        if !is_live {
            return crate::done();
        }
        out.flush()?;
        is_first = false;
        std::thread::sleep(TOP_EVERY.saturating_sub(drawn.elapsed()));
    }
}

/// Keeps what is known of servers that are there still.
fn update(servers: &mut Vec<TopServer>, found: Vec<FoundServer>) {
    let mut known = std::mem::take(servers);
    for found in found {
        let at = known.iter().position(|server| server.found == found);
        servers.push(match at {
            Some(at) => known.swap_remove(at),
            None => TopServer {
                found,
                watcher: Watcher::default(),
                state: State::Silent,
                last: None,
                before: None,
            },
        });
    }
}

/// Asks all servers. Those that do not answer cost the patience once, together.
fn look(servers: &mut [TopServer], patience: Duration) {
    let (began, at_once) = (Instant::now(), Duration::from_millis(1));
    servers.iter_mut().for_each(|server| server.look_within(at_once));
    for server in servers.iter_mut().filter(|server| server.state == State::Silent) {
        server.look_within(patience.saturating_sub(began.elapsed()).max(at_once));
    }
}

impl TopServer {
    fn look_within(&mut self, within: Duration) {
        self.state = match self.watcher.look(&self.found.socket, within) {
            Ok(Looked::Seen(look)) => {
                self.before = self.last.replace((Instant::now(), look));
                State::Answers
            }
            Ok(Looked::Silent) => State::Silent,
            Ok(Looked::Gone) => State::Gone,
            Ok(Looked::Refused(why)) => State::Fails(why),
            Err(error) => State::Fails(error.to_string()),
        };
    }

    fn look(&self) -> Option<&ServerLook> {
        let (_, look) = self.last.as_ref().filter(|_| self.state == State::Answers)?;
        Some(look)
    }

    /// Bytes a second that it carried out: since the look before, or since it began.
    fn rate(&self) -> f64 {
        let Some((at, now)) = &self.last else { return 0.0 };
        match &self.before {
            Some((before_at, before)) => {
                let bytes = now.done.bytes.saturating_sub(before.done.bytes);
                a_second(bytes, at.saturating_duration_since(*before_at))
            }
            None => a_second(now.done.bytes, Duration::from_nanos(now.age_ns)),
        }
    }
}

fn a_second(bytes: u64, time: Duration) -> f64 {
    bytes as f64 / time.as_secs_f64().max(1e-9)
}

/// What `--json` prints.
#[derive(Serialize)]
struct TopJson<'a> {
    servers: Vec<ServerJson<'a>>,
}

#[derive(Serialize)]
struct ServerJson<'a> {
    name: &'a str,
    socket: String,
    pid: Option<u32>,
    /// `answers`, `silent`, `gone`, or `fails`, with a reason.
    state: &'static str,
    why: Option<&'a str>,
    look: Option<&'a ServerLook>,
}

fn json(servers: &[TopServer]) -> Result<String> {
    let of = |server: &'_ TopServer| -> (&'static str, Option<String>) {
        match &server.state {
            State::Answers => ("answers", None),
            State::Silent => ("silent", None),
            State::Gone => ("gone", None),
            State::Fails(why) => ("fails", Some(why.clone())),
        }
    };
    let states: Vec<_> = servers.iter().map(of).collect();
    let servers = servers.iter().zip(&states).map(|(server, (state, why))| ServerJson {
        name: &server.found.name,
        socket: server.found.socket.display().to_string(),
        pid: server.found.pid,
        state,
        why: why.as_deref(),
        look: server.look(),
    });
    let json = TopJson { servers: servers.collect() };
    serde_json::to_string(&json).map_err(|error| CommandFailure::text(error.to_string()))
}
