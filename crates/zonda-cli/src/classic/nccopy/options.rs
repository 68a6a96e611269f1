//! The options of `nccopy`, read in the order in which they stand: the first that is wrong ends it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use zonda::{Format, NcError};

use super::filters::{self, FilterOption};
use super::refusal::NccopyRefusal;
use crate::classic::getopt::{self, Argument};

/// The option letters, in the form of `getopt`.
const LETTERS: &str = "k:3467d:sum:c:h:e:rwxg:G:v:V:F:L:M:";
/// Variables without an unlimited dimension whose chunks have fewer bytes get none.
const LEAST_CHUNK: u64 = 8192;

/// Kinds of files by the names that `-k` takes.
const KINDS: [(&str, Format); 26] = [
    ("classic", Format::Cdf1),
    ("nc3", Format::Cdf1),
    ("1", Format::Cdf1),
    ("64-bit offset", Format::Cdf2),
    ("nc6", Format::Cdf2),
    ("2", Format::Cdf2),
    ("64-bit-offset", Format::Cdf2),
    ("netCDF-4", Format::NetCdf4),
    ("nc4", Format::NetCdf4),
    ("3", Format::NetCdf4),
    ("netCDF4", Format::NetCdf4),
    ("hdf5", Format::NetCdf4),
    ("enhanced", Format::NetCdf4),
    ("netCDF-4 classic model", Format::NetCdf4Classic),
    ("nc7", Format::NetCdf4Classic),
    ("4", Format::NetCdf4Classic),
    ("netCDF-4-classic", Format::NetCdf4Classic),
    ("netCDF-4_classic", Format::NetCdf4Classic),
    ("netCDF4_classic", Format::NetCdf4Classic),
    ("hdf5-nc3", Format::NetCdf4Classic),
    ("enhanced-nc3", Format::NetCdf4Classic),
    ("5", Format::Cdf5),
    ("64-bit-data", Format::Cdf5),
    ("64-bit data", Format::Cdf5),
    ("nc5", Format::Cdf5),
    ("cdf5", Format::Cdf5),
];

/// Names of groups or variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedObjects {
    pub names: Vec<Vec<u8>>,
    /// Whether objects that are not named are defined, too, without data.
    pub defines_others: bool,
}

/// The options of `nccopy`.
#[derive(Clone, Debug)]
pub(super) struct NccopyOptions {
    pub kind: Option<Format>,
    /// Level of `-d`.
    pub deflate: Option<u32>,
    pub shuffle: bool,
    pub fix_unlimited: bool,
    /// Bytes of the copy buffer or of the chunk cache, whichever is larger; `None` if neither was
    /// given.
    pub buffer_bytes: Option<u64>,
    /// Whether the source is read into memory as a whole.
    pub read_whole: bool,
    /// Arguments of `-c`, which are parsed when the source is open.
    pub chunks: Vec<Vec<u8>>,
    pub groups: Option<NamedObjects>,
    pub vars: Option<NamedObjects>,
    pub filters: Vec<FilterOption>,
    /// Whether all filters are removed.
    pub no_filters: bool,
    pub least_chunk_bytes: u64,
    pub source: PathBuf,
    pub target: PathBuf,
}

impl NccopyOptions {
    /// Reads the arguments behind the name of the program.
    ///
    /// # Errors
    /// The refusal of the first wrong argument.
    pub(super) fn read(args: &[OsString]) -> Result<NccopyOptions, NccopyRefusal> {
        let mut options = NccopyOptions {
            kind: None,
            deflate: None,
            shuffle: false,
            fix_unlimited: false,
            buffer_bytes: None,
            read_whole: false,
            chunks: Vec::new(),
            groups: None,
            vars: None,
            filters: Vec::new(),
            no_filters: false,
            least_chunk_bytes: LEAST_CHUNK,
            source: PathBuf::new(),
            target: PathBuf::new(),
        };
        if args.is_empty() {
            return Err(NccopyRefusal::Usage(None));
        }
        let mut operands = Vec::new();
        for piece in getopt::split(args, LETTERS) {
            match piece {
                Argument::Option(letter, argument) => {
                    options.set(letter, argument.as_deref().unwrap_or_default())?;
                }
                Argument::Operand(operand) => operands.push(operand),
                Argument::Unknown(_) | Argument::Missing(_) => {
                    return Err(NccopyRefusal::Usage(piece.complaint()));
                }
            }
        }
        let [source, target] = &operands[..] else {
            return Err(NccopyRefusal::text("one input file and one output file required"));
        };
        options.source = unescaped(source);
        options.target = unescaped(target);
        if options.source == options.target {
            return Err(NccopyRefusal::text("output would overwrite input"));
        }
        Ok(options)
    }

    fn set(&mut self, letter: char, argument: &OsStr) -> Result<(), NccopyRefusal> {
        let bytes = argument.as_bytes();
        match letter {
            'k' => {
                let kind = KINDS.iter().find(|(name, _)| name.as_bytes() == bytes);
                let (_, kind) = kind.ok_or_else(|| {
                    NccopyRefusal::text(format!("invalid output format: {}", argument.display()))
                })?;
                self.kind = Some(*kind);
            }
            '3' => self.kind = Some(Format::Cdf1),
            '4' => self.kind = Some(Format::NetCdf4),
            '6' => self.kind = Some(Format::Cdf2),
            '7' => self.kind = Some(Format::NetCdf4Classic),
            'd' => {
                // What is no number is 0, as `strtol` has it.
                let level = integer(bytes, 10).map_or(0, |(level, _)| level);
                let known = u32::try_from(level).ok().filter(|&level| level <= 9);
                self.deflate = Some(known.ok_or_else(|| {
                    NccopyRefusal::text(format!("invalid deflation level: {level}"))
                })?);
            }
            's' => self.shuffle = true,
            'u' => self.fix_unlimited = true,
            'm' | 'h' => {
                let bytes = with_suffix(letter, argument)?;
                self.buffer_bytes = self.buffer_bytes.max(Some(bytes));
            }
            // Of the cache, only the bytes mean something here.
            'e' => {
                with_suffix(letter, argument)?;
            }
            'r' => self.read_whole = true,
            // The target is written in large pieces anyway, and chunk caches choose themselves.
            'w' | 'x' => {}
            'c' => self.chunks.push(bytes.to_vec()),
            'g' | 'G' => self.groups = Some(NamedObjects::of(bytes, letter == 'g')),
            'v' | 'V' => self.vars = Some(NamedObjects::of(bytes, letter == 'v')),
            'L' => {
                return Err(NccopyRefusal::text("-L specified, but logging support not enabled"));
            }
            'F' if bytes == b"none" || bytes.eq_ignore_ascii_case(b"*,none") => {
                self.no_filters = true;
            }
            'F' => {
                let malformed = || NccopyRefusal::code(NcError::Inval, argument.display());
                self.filters.extend(filters::parse(bytes).ok_or_else(malformed)?);
                self.kind = Some(Format::NetCdf4);
            }
            'M' => {
                let least = integer(bytes, 10).map_or(0, |(least, _)| least);
                // A negative number of bytes is a large one there.
                self.least_chunk_bytes = least.cast_unsigned();
            }
            _ => return Err(NccopyRefusal::Usage(None)),
        }
        Ok(())
    }
}

impl NamedObjects {
    fn of(list: &[u8], defines_others: bool) -> NamedObjects {
        let names = list.split(|&byte| byte == b',').filter(|name| !name.is_empty());
        let mut names: Vec<Vec<u8>> = names.map(<[u8]>::to_vec).collect();
        if names.is_empty() {
            // Means the root as a group, and no variable.
            names.push(Vec::new());
        }
        NamedObjects { names, defines_others }
    }
}

/// A path as the shell's user meant it: `\#` is `#`.
fn unescaped(path: &OsStr) -> PathBuf {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        if byte != b'\\' || !behind.starts_with(b"#") {
            bytes.push(byte);
        }
        rest = behind;
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// The integer that a text begins with and what is behind it, as `strtoll` reads it; base 0 knows
/// `0x` and `0`. `None` where there is none.
pub(super) fn integer(text: &[u8], base: u32) -> Option<(i64, &[u8])> {
    let text = text.trim_ascii_start();
    let (negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    };
    let is_hex = |digits: &[u8]| {
        digits.len() > 2 && digits[..2].eq_ignore_ascii_case(b"0x") && digits[2].is_ascii_hexdigit()
    };
    let (base, digits) = match base {
        0 if is_hex(digits) => (16, &digits[2..]),
        0 if digits.first() == Some(&b'0') => (8, digits),
        0 => (10, digits),
        other => (other, digits),
    };
    let n = digits.iter().take_while(|&&byte| char::from(byte).is_digit(base)).count();
    if n == 0 {
        return None;
    }
    let value = digits[..n].iter().fold(0i64, |value, &byte| {
        let digit = i64::from(char::from(byte).to_digit(base).unwrap_or(0));
        value.saturating_mul(i64::from(base)).saturating_add(digit)
    });
    Some((if negative { -value } else { value }, &digits[n..]))
}

/// A number of bytes with a suffix for a power of thousand.
fn with_suffix(letter: char, argument: &OsStr) -> Result<u64, NccopyRefusal> {
    let refused = || {
        NccopyRefusal::text(format!(
            "Suffix used for '-{letter}' option value must be K, M, G, T, or P"
        ))
    };
    let text = argument.to_str().ok_or_else(refused)?.trim_ascii_start();
    let ends = (0..=text.len()).rev().filter(|&end| text.is_char_boundary(end));
    let number = |end: usize| text[..end].parse::<f64>().ok().map(|number| (number, end));
    let (number, end) = ends.filter_map(number).next().unwrap_or((0.0, 0));
    let unit = match text[end..].bytes().next().map(|byte| byte.to_ascii_lowercase()) {
        None => 1.0,
        Some(b'k') => 1e3,
        Some(b'm') => 1e6,
        Some(b'g') => 1e9,
        Some(b't') => 1e12,
        Some(b'p') => 1e15,
        Some(_) => return Err(refused()),
    };
    if number < 0.0 || number.is_nan() {
        return Err(refused());
    }
    // Casts of floats saturate.
    Ok((number * unit) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<NccopyOptions, NccopyRefusal> {
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        NccopyOptions::read(&args)
    }

    fn refused(line: &str) -> String {
        match read(line) {
            Err(NccopyRefusal::Text(text)) => text,
            Err(NccopyRefusal::Usage(complaint)) => {
                format!("usage {}", complaint.unwrap_or_default())
            }
            Err(NccopyRefusal::Code(code, why)) => format!("{code} {why}"),
            Ok(options) => panic!("{line} is {options:?}"),
        }
    }

    #[test]
    fn kinds_by_name_and_number() {
        for (line, kind) in [
            ("-k nc3 a b", Format::Cdf1),
            ("-k 5 a b", Format::Cdf5),
            ("-3 a b -7", Format::NetCdf4Classic),
            ("-6 a b", Format::Cdf2),
            ("-7 -F *,307,9 a b", Format::NetCdf4),
            ("-F *,307,9 -7 a b", Format::NetCdf4Classic),
        ] {
            assert_eq!(read(line).unwrap().kind, Some(kind), "{line}");
        }
        assert_eq!(read("-F none a b").unwrap().kind, None);
        assert_eq!(refused("-k hdf4 a b"), "invalid output format: hdf4");
        assert_eq!(refused("-5 a b"), "usage invalid option -- '5'");
    }

    #[test]
    fn numbers_as_the_c_library_reads_them() {
        assert_eq!(read("-d x a b").unwrap().deflate, Some(0));
        assert_eq!(read("-d 3q a b").unwrap().deflate, Some(3));
        assert_eq!(refused("-d 12 a b"), "invalid deflation level: 12");
        assert_eq!(refused("-d -1 a b"), "invalid deflation level: -1");
        assert_eq!(read("-m 1.5M -h 2k a b").unwrap().buffer_bytes, Some(1_500_000));
        assert_eq!(read("-h 1G -m 2k a b").unwrap().buffer_bytes, Some(1_000_000_000));
        assert_eq!(read("-M 0 a b").unwrap().least_chunk_bytes, 0);
        for line in ["-m 5Q a b", "-h -1 a b", "-e 1x a b"] {
            assert!(refused(line).starts_with("Suffix used for '-"), "{line}");
        }
        assert_eq!(integer(b"0x1f,", 0), Some((31, &b","[..])));
        assert_eq!(integer(b"010", 0), Some((8, &b""[..])));
        assert_eq!(integer(b"0x", 0), Some((0, &b"x"[..])));
        assert_eq!(integer(b" -12", 10), Some((-12, &b""[..])));
        assert_eq!(integer(b"", 10), None);
    }

    #[test]
    fn files() {
        assert_eq!(refused("a"), "one input file and one output file required");
        assert_eq!(refused("a b c"), "one input file and one output file required");
        assert_eq!(refused("a a"), "output would overwrite input");
        assert_eq!(read(r"a\#1 b\c").unwrap().source, PathBuf::from("a#1"));
        assert_eq!(read(r"a\#1 b\c").unwrap().target, PathBuf::from(r"b\c"));
        assert!(matches!(NccopyOptions::read(&[]), Err(NccopyRefusal::Usage(None))));
    }

    #[test]
    fn lists_of_names() {
        let chosen = read("-V a,,/g/b a b").unwrap().vars.unwrap();
        assert_eq!(chosen.names, [&b"a"[..], b"/g/b"]);
        assert!(!chosen.defines_others);
        assert!(read("-g a a b").unwrap().groups.unwrap().defines_others);
    }
}
