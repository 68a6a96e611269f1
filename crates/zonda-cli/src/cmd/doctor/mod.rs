//! `zonda doctor`: what is as it should be on this machine, and what is not.

mod place;
mod program;
mod settings;
mod system;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;

use crate::failure::Result;

/// Looks at what Zonda depends on: the library that a program loads, settings, filters, folders
///
/// Without arguments it looks at the machine, the settings of the environment, the filters that can be had, and the folder it is called in. Each
/// PLACE is a folder, or a file in it, that programs are to write to: there a small file is written, locked and renamed, and removed again. A
/// program after -- is not started: the loader is asked which libnetcdf it would load, which runs no code of the program but of audit
/// libraries that it names (DT_AUDIT).
///
/// The output is what a report of a bug needs, with the error's line (ZONDA_EXPLAIN=1 prints more of it) and `zonda info FILE`. It has no names of
/// files but those shown; settings that may hold a password are not shown.
///
/// The exit status is 1 if something is wrong.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folders to try, or files in them [default: .]
    #[arg(value_name = "PLACE")]
    places: Vec<PathBuf>,

    /// Folder of the library [default: ../lib, seen from this program]
    #[arg(long, value_name = "DIR")]
    lib: Option<PathBuf>,

    /// A running process: the libnetcdf that it has loaded
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,

    /// As a JSON object
    #[arg(long)]
    json: bool,

    /// A program, as it would be started
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// How a finding is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    /// As it should be.
    Ok,
    /// To be known.
    Note,
    /// Something will not work, or not as intended.
    Wrong,
}

/// One line.
#[derive(Debug, Serialize)]
struct Finding {
    level: Level,
    text: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

impl Finding {
    fn new(level: Level, text: impl Into<String>) -> Finding {
        Finding { level, text: text.into(), advice: None }
    }

    fn ok(text: impl Into<String>) -> Finding {
        Finding::new(Level::Ok, text)
    }

    fn note(text: impl Into<String>) -> Finding {
        Finding::new(Level::Note, text)
    }

    fn wrong(text: impl Into<String>) -> Finding {
        Finding::new(Level::Wrong, text)
    }

    fn advised(self, advice: impl Into<String>) -> Finding {
        Finding { advice: Some(advice.into()), ..self }
    }
}

/// Findings about one thing.
#[derive(Debug, Serialize)]
struct Section {
    title: String,
    findings: Vec<Finding>,
}

impl Section {
    fn new(title: impl Into<String>, findings: Vec<Finding>) -> Section {
        Section { title: title.into(), findings }
    }
}

/// Signals that end programs, held back while files are tried, so that none of these stays. What a limit of file sizes would end the program
/// by is an error of the call then.
struct HeldSignals(Vec<(i32, Arc<AtomicBool>)>);

impl HeldSignals {
    fn hold() -> HeldSignals {
        let held = [SIGINT, SIGTERM, SIGHUP, SIGXFSZ].map(|signal| {
            let came = Arc::new(AtomicBool::new(false));
            // Where it cannot be held, it ends the program as without this.
            let _ = flag::register(signal, Arc::clone(&came));
            (signal, came)
        });
        HeldSignals(held.into())
    }

    /// Ends the program by the signal that came meanwhile, if one did.
    fn give_back(self) {
        for (signal, came) in self.0.into_iter().filter(|(signal, _)| *signal != SIGXFSZ) {
            if came.load(Ordering::Relaxed) {
                // It ends the program; if it should fail, the command goes on to its end.
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        }
    }
}

pub(crate) fn execute(args: &Args, out: &mut dyn Write) -> Result<ExitCode> {
    let mut sections = vec![
        Section::new("machine", system::findings()),
        Section::new("library", program::library(args.lib.as_deref())),
    ];
    if let Some(name) = args.program.first() {
        let title = format!("program {}", name.to_string_lossy());
        sections.push(Section::new(title, program::loads(name, args.lib.as_deref())?));
    }
    if let Some(pid) = args.pid {
        sections.push(Section::new(format!("process {pid}"), program::running(pid)?));
    }
    sections.push(Section::new("settings", settings::findings()));
    sections.push(Section::new("filters", settings::filters()));
    let signals = HeldSignals::hold();
    let here = [PathBuf::from(".")];
    let asks_for_more = args.places.is_empty() && args.program.is_empty() && args.pid.is_none();
    for place in if asks_for_more { &here[..] } else { &args.places } {
        sections.push(Section::new(format!("place {}", place.display()), place::findings(place)));
    }
    signals.give_back();
    let n_wrong = sections.iter().flat_map(|section| &section.findings);
    let n_wrong = n_wrong.filter(|finding| finding.level == Level::Wrong).count();
    if args.json {
        serde_json::to_writer(&mut *out, &sections).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        show(&sections, n_wrong, out)?;
    }
    Ok(if n_wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn show(sections: &[Section], n_wrong: usize, out: &mut dyn Write) -> Result<()> {
    for Section { title, findings } in sections {
        writeln!(out, "{title}")?;
        for Finding { level, text, advice } in findings {
            let mark = match level {
                Level::Ok => "ok",
                Level::Note => "note",
                Level::Wrong => "WRONG",
            };
            writeln!(out, "  {mark:<5}  {text}")?;
            if let Some(advice) = advice {
                writeln!(out, "         {advice}")?;
            }
        }
    }
    match n_wrong {
        0 => writeln!(out, "nothing is wrong")?,
        1 => writeln!(out, "1 thing is wrong")?,
        n => writeln!(out, "{n} things are wrong")?,
    }
    Ok(())
}
