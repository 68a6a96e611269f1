//! Slices as drawings in text.

use std::io::{IsTerminal, Write};

use zonda_plot::{Depth, TextOptions};

use super::picture::{Look, field, map_options};
use super::slice::Slice;
use crate::failure::{CommandFailure, Result};

/// What a drawing in text is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Kind {
    /// What the terminal can show.
    Auto,
    /// Half blocks in all colours.
    True,
    /// Half blocks in the 256 colours of xterm.
    #[value(name = "256")]
    Indexed,
    /// Shades.
    Plain,
    /// Shades of letters.
    Ascii,
}

/// Lines and columns for a drawing on a terminal whose size is unknown.
const LINES: usize = 20;
const COLUMNS: usize = 80;
/// Lines of the terminal that are left for the prompt and the description.
const OTHER_LINES: usize = 9;
const MOST_LINES: usize = 60;
const MOST_COLUMNS: usize = 400;

/// What the environment says of the terminal.
struct Environment<'a> {
    is_terminal: bool,
    says: &'a dyn Fn(&str) -> String,
}

impl Environment<'_> {
    /// Colours, and whether there are no letters but those of ASCII.
    fn shows(&self, kind: Kind) -> (Depth, bool) {
        let is_ascii = !self.has_unicode();
        match kind {
            Kind::Auto => (self.depth(), is_ascii),
            Kind::True => (Depth::True, is_ascii),
            Kind::Indexed => (Depth::Indexed, is_ascii),
            Kind::Plain => (Depth::None, false),
            Kind::Ascii => (Depth::None, true),
        }
    }

    fn depth(&self) -> Depth {
        /// Terminals with 256 colours whose names do not say so.
        const KNOWN: [&str; 9] =
            ["xterm", "screen", "tmux", "rxvt", "alacritty", "foot", "konsole", "gnome", "putty"];
        let term = (self.says)("TERM");
        if !self.is_terminal
            || !(self.says)("NO_COLOR").is_empty()
            || term.is_empty()
            || term == "dumb"
        {
            return Depth::None;
        }
        match (self.says)("COLORTERM").as_str() {
            "truecolor" | "24bit" => Depth::True,
            _ if term.ends_with("-direct") => Depth::True,
            _ if term.contains("256") || KNOWN.iter().any(|known| term.starts_with(known)) => {
                Depth::Indexed
            }
            _ => Depth::None,
        }
    }

    /// Whether the locale has other letters than ASCII; where it says nothing, it is taken to have.
    fn has_unicode(&self) -> bool {
        let all = ["LC_ALL", "LC_CTYPE", "LANG"].map(self.says);
        let said = all.into_iter().find(|said| !said.is_empty()).unwrap_or_default().to_lowercase();
        said.is_empty() || said.contains("utf-8") || said.contains("utf8")
    }
}

/// Columns and lines: of a pager's terminal, where the output goes to a pipe and messages to the terminal.
fn size() -> (usize, usize) {
    let stdout = rustix::termios::tcgetwinsize(std::io::stdout());
    let size = stdout.or_else(|_| rustix::termios::tcgetwinsize(std::io::stderr())).ok();
    let known = size.filter(|size| size.ws_col > 0 && size.ws_row > 0);
    let (columns, lines) = known.map_or((COLUMNS, LINES), |size| {
        (size.ws_col.into(), usize::from(size.ws_row).saturating_sub(OTHER_LINES))
    });
    (columns.min(MOST_COLUMNS), lines.clamp(4, MOST_LINES))
}

/// Draws a slice, as large as the terminal allows. One without values is not drawn.
pub(super) fn draw(slice: &Slice, look: &Look, kind: Kind, out: &mut dyn Write) -> Result<()> {
    if !slice.values.iter().any(|value| value.is_finite()) {
        return Ok(());
    }
    let says = |name: &str| std::env::var(name).unwrap_or_default();
    let is_terminal = std::io::stdout().is_terminal();
    let (depth, is_ascii) = Environment { is_terminal, says: &says }.shows(kind);
    let (columns, lines) = size();
    let text = TextOptions { columns, lines, depth, is_ascii };
    let drawn = match field(slice) {
        Some(field) => zonda_plot::map_text(&field, &map_options(slice, look), text),
        None => zonda_plot::line_text(&slice.values, text).map(|mut lines| {
            let width = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
            let ends = slice.coordinates().last().and_then(|x| x.ends.as_ref());
            lines.extend(ends.map(|ends| below(ends, width)));
            lines
        }),
    };
    for line in drawn.map_err(|error| CommandFailure::text(error.to_string()))? {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// The line below a drawing of so many columns: the labels of its two ends.
fn below((first, last): &(String, String), columns: usize) -> String {
    let room = columns.saturating_sub(first.chars().count());
    if room > last.chars().count() {
        format!("{first}{last:>room$}")
    } else {
        format!("{first} to {last}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(kind: Kind, is_terminal: bool, variables: &[(&str, &str)]) -> (Depth, bool) {
        let says = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map_or(String::new(), |(_, value)| (*value).to_owned())
        };
        Environment { is_terminal, says: &says }.shows(kind)
    }

    #[test]
    fn what_terminals_show() {
        use Depth::{Indexed, None, True};
        for (variables, want) in [
            (
                &[("TERM", "xterm-256color"), ("COLORTERM", "truecolor"), ("LANG", "de_DE.UTF-8")]
                    [..],
                (True, false),
            ),
            (&[("TERM", "xterm-256color"), ("LANG", "C.UTF-8")], (Indexed, false)),
            (&[("TERM", "screen")], (Indexed, false)),
            (&[("TERM", "xterm-direct")], (True, false)),
            (&[("TERM", "vt100"), ("LANG", "de_DE.utf8")], (None, false)),
            (&[("TERM", "linux"), ("LANG", "C")], (None, true)),
            (&[("TERM", "xterm"), ("LC_ALL", "POSIX"), ("LANG", "C.UTF-8")], (Indexed, true)),
            (&[("TERM", "xterm"), ("NO_COLOR", "1")], (None, false)),
            (&[("TERM", "dumb"), ("COLORTERM", "truecolor")], (None, false)),
            (&[], (None, false)),
        ] {
            assert_eq!(shown(Kind::Auto, true, variables), want, "{variables:?}");
            assert_eq!(shown(Kind::Auto, false, variables).0, None);
            assert_eq!(shown(Kind::True, false, variables), (True, want.1));
            assert_eq!(shown(Kind::Indexed, false, variables).0, Indexed);
            assert_eq!(shown(Kind::Plain, true, variables), (None, false));
            assert_eq!(shown(Kind::Ascii, true, variables), (None, true));
        }
    }

    #[test]
    fn ends_below() {
        let ends = ("1990".to_owned(), "2000".to_owned());
        assert_eq!(below(&ends, 12), "1990    2000");
        assert_eq!(below(&ends, 8), "1990 to 2000");
    }
}
