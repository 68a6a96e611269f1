//! `zonda man`: the manual pages, from the same description as the help.

use std::io::Write;
use std::process::ExitCode;

use crate::failure::{CommandFailure, Result};

/// Writes a manual page to standard output
///
/// For instance: zonda man run | man -l -
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The command that the page is about; without it, zonda as a whole
    command: Option<String>,
}

pub(crate) fn execute(args: &Args, out: &mut dyn Write) -> Result<ExitCode> {
    let mut zonda = crate::definition();
    // Gives subcommands their full names: `zonda run`.
    zonda.build();
    let page = match &args.command {
        None => zonda,
        Some(name) => zonda
            .find_subcommand(name)
            .cloned()
            .ok_or_else(|| CommandFailure::Usage(format!("there is no command `{name}`")))?,
    };
    // Subcommands have no version of their own, so they get that of `zonda`.
    clap_mangen::Man::new(page).source(concat!("zonda ", env!("CARGO_PKG_VERSION"))).render(out)?;
    write_environment(args.command.as_deref().unwrap_or("zonda"), out)?;
    crate::done()
}

/// Which variables matter to which page.
const ENVIRONMENT: &str = include_str!("environment.txt");
/// Commands that `files` stands for there.
const FILES: [&str; 7] = ["info", "dump", "copy", "check", "diff", "recover", "view"];

/// The variables of a page, and what each of them decides.
fn variables(page: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let rows = ENVIRONMENT.lines().filter(|line| !line.starts_with('#'));
    rows.filter_map(move |line| {
        let mut columns = line.splitn(3, '\t');
        let (name, pages, about) = (columns.next()?, columns.next()?, columns.next()?);
        let is_here =
            pages.split(' ').any(|one| one == page || (one == "files" && FILES.contains(&page)));
        is_here.then_some((name, about))
    })
}

fn write_environment(page: &str, out: &mut dyn Write) -> std::io::Result<()> {
    let mut variables = variables(page).peekable();
    if variables.peek().is_none() {
        return Ok(());
    }
    writeln!(out, ".SH ENVIRONMENT")?;
    for (name, about) in variables {
        let about = about.replace('-', "\\-");
        let (first, rest) = about.split_at(about.len().min(1));
        writeln!(out, ".TP\n\\fB{name}\\fR\n{}{rest}.", first.to_uppercase())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_is_on_a_page() {
        let tools = ["ncdump", "ncgen", "ncgen3", "nccopy", "zonda"];
        let mut zonda = crate::definition();
        zonda.build();
        for line in ENVIRONMENT.lines().filter(|line| !line.starts_with('#')) {
            let columns: Vec<&str> = line.split('\t').collect();
            let [_, pages, about] = columns[..] else { panic!("{line}") };
            assert!(about.is_ascii() && !about.ends_with('.'), "{line}");
            for page in pages.split(' ') {
                let known = tools.contains(&page)
                    || page == "files"
                    || zonda.find_subcommand(page).is_some();
                assert!(known, "{page}: {line}");
            }
        }
        assert!(FILES.iter().all(|name| zonda.find_subcommand(name).is_some()));
    }

    #[test]
    fn pages_have_their_variables() {
        assert!(variables("view").any(|(name, _)| name == "NO_COLOR, TERM"));
        assert!(!variables("view").any(|(name, _)| name == "ZONDA_IOD"));
        assert_eq!(variables("completions").count(), 0);
        let mut text = Vec::new();
        write_environment("iod", &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.starts_with(".SH ENVIRONMENT\n.TP\n\\fBZONDA_ASYNC\\fR\nWhether puts "),
            "{text}"
        );
    }
}
