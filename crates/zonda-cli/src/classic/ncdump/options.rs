//! The options of `ncdump`, read in the order in which they stand: the first that is wrong ends it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use super::refusal::NcdumpRefusal;
use crate::cdl::times::TimeStyle;
use crate::cdl::values::{Digits, Precision};
use crate::cdl::{self, DataSelection, IndexOrder, names};
use crate::classic::getopt::{self, Argument};
use crate::input;

/// The option letters, in the form of `getopt`.
const LETTERS: &str = "b:cd:f:g:hikl:n:p:stv:xwFKL:X:";
/// Shortest line that `-l` accepts.
const LEAST_LINE: i64 = 10;
/// Most digits that `-p` accepts.
const MOST_DIGITS: i64 = 20;

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NcdumpOutput {
    /// `-k`
    Kind,
    /// `-K`
    ExtendedKind,
    /// The content: NcML with `-x`, else CDL.
    Text { ncml: bool },
}

/// The options of `ncdump`.
#[derive(Clone, Debug)]
pub(super) struct NcdumpOptions {
    pub(super) output: NcdumpOutput,
    pub(super) text: cdl::CdlOptions,
    /// `-c`. NcML needs it separately, because it may be combined with `-h`.
    pub(super) coordinates: bool,
    /// Whether the file is read into memory first.
    pub(super) in_memory: bool,
    pub(super) file: PathBuf,
}

/// Options whose effect depends on others.
#[derive(Default)]
struct NcdumpFlags {
    header: bool,
    kind: bool,
    extended_kind: bool,
    ncml: bool,
    name: Option<Vec<u8>>,
}

impl NcdumpOptions {
    /// Reads the arguments behind the name of the program.
    ///
    /// # Errors
    /// The refusal of the first wrong argument.
    pub(super) fn read(args: &[OsString]) -> Result<NcdumpOptions, NcdumpRefusal> {
        if args.is_empty() {
            return Err(NcdumpRefusal::Asked);
        }
        let mut options = NcdumpOptions {
            output: NcdumpOutput::Text { ncml: false },
            text: cdl::CdlOptions { exact: true, ..cdl::CdlOptions::default() },
            coordinates: false,
            in_memory: false,
            file: PathBuf::new(),
        };
        let mut flags = NcdumpFlags::default();
        let mut operands = Vec::new();
        for piece in getopt::split(args, LETTERS) {
            match piece {
                Argument::Option(letter, argument) => {
                    options.set(&mut flags, letter, argument.as_deref().unwrap_or_default())?;
                }
                Argument::Operand(operand) => operands.push(operand),
                Argument::Unknown(_) | Argument::Missing(_) => {
                    return Err(NcdumpRefusal::Usage(piece.complaint()));
                }
            }
        }
        let [file] = &operands[..] else { return Err(NcdumpRefusal::Usage(None)) };
        let file: PathBuf = OsString::from_vec(unescaped(file.as_bytes())).into();
        options.text.name = flags.name.unwrap_or_else(|| {
            // Of a URL neither query nor settings are part of the name.
            let label = input::label(&file);
            names::of_path(&with_slashes(label.as_os_str().as_bytes()))
        });
        options.text.selection = match (flags.header, options.coordinates) {
            (true, _) => DataSelection::Header,
            (false, true) => DataSelection::Coordinates,
            (false, false) => DataSelection::Data,
        };
        options.output = match (flags.kind, flags.extended_kind) {
            (true, _) => NcdumpOutput::Kind,
            (false, true) => NcdumpOutput::ExtendedKind,
            (false, false) => NcdumpOutput::Text { ncml: flags.ncml },
        };
        options.file = file;
        Ok(options)
    }

    fn set(
        &mut self,
        flags: &mut NcdumpFlags,
        letter: char,
        argument: &OsStr,
    ) -> Result<(), NcdumpRefusal> {
        let text = &mut self.text;
        let bytes = argument.as_bytes();
        match letter {
            'h' => flags.header = true,
            'c' => self.coordinates = true,
            'k' => flags.kind = true,
            'K' => flags.extended_kind = true,
            'x' => flags.ncml = true,
            's' => text.special = true,
            'F' => text.filters = true,
            't' => text.times = Some(TimeStyle { separator: b' ' }),
            'i' => text.times = Some(TimeStyle { separator: b'T' }),
            'n' => flags.name = Some(bytes.to_vec()),
            'v' => text.variables = names::list(argument),
            'g' => text.groups = names::list(argument),
            'b' => {
                text.brief = true;
                text.order = order(letter, argument)?;
            }
            'f' => {
                text.full = true;
                text.order = order(letter, argument)?;
            }
            'l' => text.line_len = line_len(bytes)?,
            'd' => text.precision = precision(bytes, text.precision, false)?,
            'p' => text.precision = precision(bytes, text.precision, true)?,
            'X' => match bytes.first().map(u8::to_ascii_lowercase) {
                Some(b'm') => self.in_memory = true,
                // The option hides an attribute, but the reference shows it all the same.
                Some(b'p') => {}
                _ => return Err(invalid(letter, argument)),
            },
            // `-w` is for servers, and `-L` for a log that release builds do not have.
            _ => {}
        }
        Ok(())
    }
}

fn invalid(letter: char, argument: &OsStr) -> NcdumpRefusal {
    let argument = argument.to_string_lossy();
    NcdumpRefusal::Text(format!("invalid value for -{letter} option: {argument}"))
}

/// Reads the order of indices. Only the first letter counts.
fn order(letter: char, argument: &OsStr) -> Result<IndexOrder, NcdumpRefusal> {
    match argument.as_bytes().first().map(u8::to_ascii_lowercase) {
        Some(b'c') => Ok(IndexOrder::C),
        Some(b'f') => Ok(IndexOrder::Fortran),
        _ => Err(invalid(letter, argument)),
    }
}

fn line_len(text: &[u8]) -> Result<usize, NcdumpRefusal> {
    // C cuts the number to an `int`.
    let len = i64::from(strtol(text, 0).0 as i32);
    match usize::try_from(len) {
        Ok(line_len) if len >= LEAST_LINE => Ok(line_len),
        _ => Err(NcdumpRefusal::Text(format!("unreasonably small line length specified: {len}"))),
    }
}

/// Reads `FLOAT[,DOUBLE]`, numbers of digits. A missing one keeps its default, but stays forced if
/// it was before.
fn precision(text: &[u8], before: Precision, forced: bool) -> Result<Precision, NcdumpRefusal> {
    let refused = |what: &str, digits: i64| {
        NcdumpRefusal::Text(format!("unreasonable value for {what} significant digits: {digits}"))
    };
    let mut new = Precision::default();
    new.float.forced = before.float.forced;
    new.double.forced = before.double.forced;
    if text.is_empty() || text[0] == b',' {
        // The reference ignores the text after this.
        return Ok(new);
    }
    let digits = |what: &str, value: i64| {
        let value = i64::from(value as i32);
        let known = usize::try_from(value).ok().filter(|_| (1..=MOST_DIGITS).contains(&value));
        known.ok_or_else(|| refused(what, value))
    };
    let (value, rest) = strtol(text, 10);
    new.float = Digits { number: digits("float", value)?, forced: forced || new.float.forced };
    if let Some(double) = rest.strip_prefix(b",") {
        let (value, rest) = strtol(double, 10);
        // A text that is no number counts as 0, which is refused.
        let value = if rest.len() == double.len() { 0 } else { value };
        let number = digits("double", value)?;
        new.double = Digits { number, forced: forced || new.double.forced };
    }
    Ok(new)
}

/// A number at the start of a text, 0 if there is none, and what follows it, as C's function of that
/// name reads it. Base 0 takes it from the prefix `0x` or `0`.
fn strtol(text: &[u8], base: u32) -> (i64, &[u8]) {
    let start = text.trim_ascii_start();
    let (negative, digits) = match start {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let is_hex = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    let (base, digits) = match (base, digits) {
        (0, [b'0', b'x' | b'X', rest @ ..]) if is_hex(rest.first()) => (16, rest),
        (0, [b'0', ..]) => (8, digits),
        (0, _) => (10, digits),
        (base, _) => (base, digits),
    };
    let mut value = 0i64;
    let mut len = 0;
    while let Some(digit) = digits.get(len).and_then(|&byte| char::from(byte).to_digit(base)) {
        let digit = if negative { -i64::from(digit) } else { i64::from(digit) };
        value = value.saturating_mul(i64::from(base)).saturating_add(digit);
        len += 1;
    }
    if len == 0 { (0, text) } else { (value, &digits[len..]) }
}

/// A path without the backslashes that shells need before a `#`.
fn unescaped(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    for (at, &byte) in path.iter().enumerate() {
        if byte != b'\\' || path.get(at + 1) != Some(&b'#') {
            out.push(byte);
        }
    }
    out
}

/// A path as the name of the dataset is cut out of: a backslash separates as a slash does.
fn with_slashes(path: &[u8]) -> Vec<u8> {
    path.iter().map(|&byte| if byte == b'\\' { b'/' } else { byte }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<NcdumpOptions, NcdumpRefusal> {
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        NcdumpOptions::read(&args)
    }

    fn refusal(line: &str) -> String {
        match read(line).unwrap_err() {
            NcdumpRefusal::Text(text) | NcdumpRefusal::Usage(Some(text)) => text,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn what_is_asked_for() {
        let options = read("-hc -v a,,b dir/x.y.nc -l 0x20 -t -i").unwrap();
        assert_eq!(options.text.selection, DataSelection::Header);
        assert!(options.coordinates);
        assert_eq!(options.text.variables, [b"a".to_vec(), b"b".to_vec()]);
        assert_eq!(options.text.name, b"x.y");
        assert_eq!(options.text.line_len, 32);
        assert_eq!(options.text.times, Some(TimeStyle { separator: b'T' }));
        assert_eq!(read("-xkK a").unwrap().output, NcdumpOutput::Kind);
        assert_eq!(read("-xK a").unwrap().output, NcdumpOutput::ExtendedKind);
        assert_eq!(read("-x a").unwrap().output, NcdumpOutput::Text { ncml: true });
        assert_eq!(read("-bFort a").unwrap().text.order, IndexOrder::Fortran);
        assert_eq!(read("a\\b\\#c.nc").unwrap().text.name, b"b#c");
        assert_eq!(read("a\\b\\#c.nc").unwrap().file, PathBuf::from("a\\b#c.nc"));
        assert_eq!(read("-n q -w -L3 -Xp -XM a.nc").unwrap().text.name, b"q");
    }

    #[test]
    fn what_is_refused() {
        for (line, text) in [
            ("-b x a", "invalid value for -b option: x"),
            ("-X q a", "invalid value for -X option: q"),
            ("-l 9 a", "unreasonably small line length specified: 9"),
            ("-l z a", "unreasonably small line length specified: 0"),
            ("-p 30 a", "unreasonable value for float significant digits: 30"),
            ("-p 3, a", "unreasonable value for double significant digits: 0"),
            ("-d -1 a", "unreasonable value for float significant digits: -1"),
            ("-z a", "invalid option -- 'z'"),
            ("a -v", "option requires an argument -- 'v'"),
            ("a b", "Usage(None)"),
            ("-h", "Usage(None)"),
        ] {
            assert_eq!(refusal(line), text, "{line}");
        }
        assert_eq!(NcdumpOptions::read(&[]).unwrap_err(), NcdumpRefusal::Asked);
    }

    #[test]
    fn digits() {
        let of = |line: &str| {
            let Precision { float, double } = read(line).unwrap().text.precision;
            (float.number, float.forced, double.number, double.forced)
        };
        assert_eq!(of("-p 3 a"), (3, true, 15, false));
        assert_eq!(of("-p 3,17 a"), (3, true, 17, true));
        assert_eq!(of("-d 3,17 a"), (3, false, 17, false));
        assert_eq!(of("-p ,17 a"), (7, false, 15, false));
        assert_eq!(of("-p 3x a"), (3, true, 15, false));
        assert_eq!(of("-p 3,4 -p 5 a"), (5, true, 15, true));
    }

    #[test]
    fn numbers_of_c() {
        for (text, base, value, rest) in [
            (&b" -12a"[..], 10, -12, &b"a"[..]),
            (b"0x1fg", 0, 31, b"g"),
            (b"0x", 0, 0, b"x"),
            (b"017", 0, 15, b""),
            (b"99999999999999999999", 10, i64::MAX, b""),
            (b"-", 10, 0, b"-"),
            (b"", 10, 0, b""),
        ] {
            assert_eq!(strtol(text, base), (value, rest));
        }
    }
}
