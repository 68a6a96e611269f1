//! Options of one letter, read as `getopt(3)` of the GNU C library reads them for the reference.
//!
//! Options may stand between and behind operands, several behind one dash, and an argument may follow
//! its letter at once. `--` ends them; with `POSIXLY_CORRECT` in the environment, so does the first
//! operand.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// A piece of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Argument {
    /// An option, with its argument where it takes one.
    Option(char, Option<OsString>),
    /// Any other argument.
    Operand(OsString),
    /// A letter that is no option.
    Unknown(char),
    /// An option without the argument that it needs.
    Missing(char),
}

impl Argument {
    /// The first line of the complaint about a piece that is wrong, without the name of the program.
    pub(super) fn complaint(&self) -> Option<String> {
        match self {
            Argument::Unknown(letter) => Some(format!("invalid option -- '{letter}'")),
            Argument::Missing(letter) => Some(format!("option requires an argument -- '{letter}'")),
            Argument::Option(..) | Argument::Operand(_) => None,
        }
    }
}

/// Splits arguments, without the name of the program. `letters` are those of `getopt`: one with a
/// colon behind it takes an argument.
pub(super) fn split(args: &[OsString], letters: &str) -> Vec<Argument> {
    split_for(args, letters, std::env::var_os("POSIXLY_CORRECT").is_some())
}

fn split_for(args: &[OsString], letters: &str, stops_at_operand: bool) -> Vec<Argument> {
    let mut args: VecDeque<&OsStr> = args.iter().map(OsString::as_os_str).collect();
    let mut pieces = Vec::new();
    let mut ended = false;
    while let Some(arg) = args.pop_front() {
        let bytes = arg.as_bytes();
        if ended || bytes.len() < 2 || bytes[0] != b'-' {
            pieces.push(Argument::Operand(arg.to_owned()));
            ended |= stops_at_operand;
            continue;
        }
        if bytes == b"--" {
            ended = true;
            continue;
        }
        let mut rest = &bytes[1..];
        while let Some((&byte, behind)) = rest.split_first() {
            rest = behind;
            let letter = char::from(byte);
            match takes(letters, letter) {
                None => pieces.push(Argument::Unknown(letter)),
                Some(false) => pieces.push(Argument::Option(letter, None)),
                Some(true) => {
                    let argument = match rest {
                        b"" => args.pop_front().map(OsStr::to_owned),
                        given => Some(OsString::from_vec(given.to_vec())),
                    };
                    rest = b"";
                    pieces.push(match argument {
                        Some(argument) => Argument::Option(letter, Some(argument)),
                        None => Argument::Missing(letter),
                    });
                }
            }
        }
    }
    pieces
}

/// Whether an option takes an argument; `None` for a letter that is no option.
fn takes(letters: &str, letter: char) -> Option<bool> {
    let at = letters.find(letter).filter(|_| letter != ':')?;
    Some(letters[at + letter.len_utf8()..].starts_with(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(line: &str, stops: bool) -> Vec<Argument> {
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        split_for(&args, "k:d:su", stops)
    }

    fn option(letter: char, argument: &str) -> Argument {
        let argument = (!argument.is_empty()).then(|| OsString::from(argument));
        Argument::Option(letter, argument)
    }

    fn operand(text: &str) -> Argument {
        Argument::Operand(OsString::from(text))
    }

    #[test]
    fn options_between_operands() {
        let expected = [option('d', "1"), option('s', ""), operand("a"), option('u', "")];
        assert_eq!(pieces("-d1 -s a -u", false), expected);
        assert_eq!(pieces("-sud 1", false)[2], option('d', "1"));
        assert_eq!(pieces("-d -1 -", false), [option('d', "-1"), operand("-")]);
        assert_eq!(pieces("-- -s", false), [operand("-s")]);
        assert_eq!(pieces("a -s", true), [operand("a"), operand("-s")]);
    }

    #[test]
    fn what_is_wrong() {
        let complaint = |line| pieces(line, false).last().unwrap().complaint();
        assert_eq!(complaint("-k").unwrap(), "option requires an argument -- 'k'");
        assert_eq!(complaint("-5").unwrap(), "invalid option -- '5'");
        assert_eq!(complaint("-:").unwrap(), "invalid option -- ':'");
        assert_eq!(pieces("--help", false)[0], Argument::Unknown('-'));
        assert_eq!(complaint("-s"), None);
    }
}
