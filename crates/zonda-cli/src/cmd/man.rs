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
    out.write_all(&rendered(page)?)?;
    write_environment(args.command.as_deref().unwrap_or("zonda"), out)?;
    crate::done()
}

/// The page, with the values of options in its synopsis.
fn rendered(page: clap::Command) -> std::io::Result<Vec<u8>> {
    let synopsis = synopsis(&page);
    let mut text = Vec::new();
    clap_mangen::Man::new(page)
        .source(concat!("zonda ", env!("CARGO_PKG_VERSION")))
        .render(&mut text)?;
    let find = |what: &[u8], from: usize| {
        let at = text.get(from..)?.windows(what.len()).position(|bytes| bytes == what)?;
        Some(from + at)
    };
    const HEAD: &[u8] = b"\n.SH SYNOPSIS\n";
    let begin = find(HEAD, 0).map(|at| at + HEAD.len());
    let range = begin.and_then(|begin| Some(begin..find(b"\n.SH ", begin)?));
    if let Some(range) = range {
        text.splice(range, synopsis.into_bytes());
    }
    Ok(text)
}

/// `zonda copy [-d|--deflate LEVEL] ... SOURCE TARGET`, for roff.
fn synopsis(page: &clap::Command) -> String {
    let font = |font: char, text: &str| {
        let text = text.replace('\\', "\\e").replace('-', "\\-");
        format!("\\f{font}{text}\\fR")
    };
    let values = |arg: &clap::Arg| {
        let names = arg.get_value_names().unwrap_or_default();
        let names: Vec<String> = names.iter().map(|name| font('I', name.as_str())).collect();
        if names.is_empty() {
            font('I', &arg.get_id().as_str().to_uppercase())
        } else {
            names.join(" ")
        }
    };
    let several = |is_it: bool| if is_it { "..." } else { "" };
    let mut words = vec![font('B', page.get_bin_name().unwrap_or_else(|| page.get_name()))];
    for option in page.get_opts().chain(page.get_arguments().filter(|arg| is_flag(arg))) {
        if option.is_hide_set() {
            continue;
        }
        let short = option.get_short().map(|short| format!("-{short}"));
        let long = option.get_long().map(|long| format!("--{long}"));
        let names: Vec<String> = short.iter().chain(&long).map(|name| font('B', name)).collect();
        let mut text = names.join("|");
        if option.get_action().takes_values() {
            text += &match (option.is_require_equals_set(), option.get_num_args()) {
                (true, Some(many)) if many.min_values() == 0 => format!("[={}]", values(option)),
                (true, _) => format!("={}", values(option)),
                (false, _) => format!(" {}", values(option)),
            };
        }
        let again = several(matches!(option.get_action(), clap::ArgAction::Append));
        words.push(if option.is_required_set() {
            format!("{text}{again}")
        } else {
            format!("[{text}]{again}")
        });
    }
    for positional in page.get_positionals().filter(|arg| !arg.is_hide_set()) {
        let before = if positional.is_last_set() { "\\-\\- " } else { "" };
        let text = before.to_owned() + &values(positional);
        let many = positional.get_num_args();
        let again = several(many.is_some_and(|many| many.max_values() > 1));
        words.push(if positional.is_required_set() {
            format!("{text}{again}")
        } else {
            format!("[{text}]{again}")
        });
    }
    if page.has_subcommands() {
        words.push(format!("{} {}", font('I', "COMMAND"), "..."));
    }
    words.join(" ")
}

/// Whether an argument is an option without a value.
fn is_flag(arg: &clap::Arg) -> bool {
    !arg.is_positional() && !arg.get_action().takes_values()
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
    fn a_synopsis_shows_the_values_of_options() {
        let page = |name: &str| {
            let mut zonda = crate::definition();
            zonda.build();
            let page = zonda.find_subcommand(name).cloned().unwrap();
            String::from_utf8(rendered(page).unwrap()).unwrap()
        };
        let copy = page("copy");
        let (head, rest) = copy.split_once("\n.SH SYNOPSIS\n").unwrap();
        assert!(head.contains(".TH ") && head.contains(".SH NAME\n"), "{head}");
        let (synopsis, rest) = rest.split_once("\n.SH ").unwrap();
        assert!(rest.starts_with("DESCRIPTION\n") && rest.contains("\n.SH OPTIONS\n"), "{rest}");
        assert!(synopsis.starts_with("\\fBzonda copy\\fR ["), "{synopsis}");
        assert!(synopsis.ends_with(" \\fISOURCE\\fR \\fITARGET\\fR"), "{synopsis}");
        for part in [
            "[\\fB\\-d\\fR|\\fB\\-\\-deflate\\fR \\fILEVEL\\fR]",
            "[\\fB\\-v\\fR|\\fB\\-\\-var\\fR \\fIVAR,...\\fR]...",
            "[\\fB\\-q\\fR|\\fB\\-\\-quiet\\fR]",
        ] {
            assert!(synopsis.contains(part), "{part}: {synopsis}");
        }
        assert!(page("info").contains("[\\fIFILE\\fR]...\n.SH DESCRIPTION"), "{}", page("info"));
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
