//! Options of `ncgen` and of `ncgen3`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use zonda_cdl::{Dialect, Kind};

use crate::classic::getopt::{Piece, split};

/// Letters of `ncgen`, as `getopt` has them.
const LETTERS: &str = "134567bcdD:fhHk:l:M:no:Pv:xL:N:B:W:";
/// Letters of `ncgen3`.
const LETTERS_CLASSIC: &str = "bcfk:l:no:v:x";

/// What is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    /// Nothing: the text is only read.
    Nothing,
    /// A netCDF file.
    File,
    /// A program that makes the file.
    Program(Language),
}

/// The language of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    C,
    /// Fortran 77.
    Fortran,
    Java,
}

/// What a build without the feature `ncgen-code` says where a program is asked for.
pub(super) const NO_WRITERS: &str =
    "this build cannot write programs (it was made without the feature ncgen-code of zonda-cli)";

const C: Output = Output::Program(Language::C);
const FORTRAN: Output = Output::Program(Language::Fortran);

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) dialect: Dialect,
    pub(super) output: Output,
    pub(super) kind: Option<Kind>,
    /// `-o`
    pub(super) path: Option<PathBuf>,
    /// The ending of a file whose name `-o` does not give.
    pub(super) extension: &'static str,
    /// `-N`
    pub(super) dataset: Option<Vec<u8>>,
    /// `-M`
    pub(super) main: Option<String>,
    /// `-x`
    pub(super) no_fill: bool,
    /// `-H`
    pub(super) header_only: bool,
    /// `-P`
    pub(super) in_memory: bool,
    /// The text; `None` for standard input.
    pub(super) input: Option<PathBuf>,
}

/// Why the tool makes nothing: what it says, and its exit status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// Lines for standard error, with the name of the program where the reference has it.
    pub(super) lines: Vec<String>,
    /// Whether the usage follows.
    pub(super) usage: bool,
    pub(super) status: u8,
}

impl Refusal {
    fn new(line: String, status: u8) -> Refusal {
        Refusal { lines: vec![line], usage: false, status }
    }
}

/// The usage of a program, in one line.
pub(super) fn usage(program: &str, dialect: Dialect) -> String {
    match dialect {
        Dialect::Enhanced => format!(
            "Usage: {program} [-1] [-3] [-4] [-5] [-6] [-7] [-b] [-d] [-D debuglevel] [-h] [-k kind ] \
             [-l language=b|c|f77|java] [-M <name>] [-n] [-o outfile] [-P] [-x] [-N datasetname] \
             [-L loglevel] [-H] [-W generate whole var upload] [file ... ]"
        ),
        Dialect::Classic => format!(
            "Usage: {program} [ -b ] [ -c ] [ -f ] [ -k kind ] [ -x ] [ -o outfile]  [ file ... ]"
        ),
    }
}

/// A language by its name.
fn language(name: &OsStr, dialect: Dialect) -> Option<Output> {
    Some(match (name.as_bytes(), dialect) {
        (b"b", _) => Output::File,
        (b"c" | b"C", _) => C,
        (b"f77" | b"fortran77" | b"Fortran77", _) => FORTRAN,
        (b"f" | b"F" | b"fortran" | b"Fortran", Dialect::Classic) => FORTRAN,
        (b"j" | b"java", Dialect::Enhanced) => Output::Program(Language::Java),
        _ => return None,
    })
}

/// Reads arguments, without the name of the program.
pub(super) fn read(program: &str, args: &[OsString], dialect: Dialect) -> Result<Options, Refusal> {
    let letters = match dialect {
        Dialect::Enhanced => LETTERS,
        Dialect::Classic => LETTERS_CLASSIC,
    };
    let mut output = None;
    let mut options = Options::new(dialect);
    let mut inputs = Vec::new();
    for piece in split(args, letters) {
        match piece {
            Piece::Operand(path) => inputs.push(path),
            Piece::Option(letter @ ('b' | 'c' | 'f' | 'n' | 'l'), value) => {
                let name = value.unwrap_or_default();
                output = Some(options.read_output(program, output, letter, &name)?);
            }
            Piece::Option(letter, value) => {
                options.read_other(letter, value.unwrap_or_default())?
            }
            wrong => {
                let complaint = wrong.complaint().unwrap_or_default();
                let lines = vec![format!("{program}: {complaint}")];
                return Err(Refusal { lines, usage: true, status: 8 });
            }
        }
    }
    if inputs.len() > 1 {
        let line = format!("{program}: only one input file argument permitted");
        return Err(Refusal::new(line, 6));
    }
    if matches!(output, Some(Output::Program(_))) && !cfg!(feature = "ncgen-code") {
        return Err(Refusal::new(format!("{program}: {NO_WRITERS}"), 1));
    }
    options.input = inputs.pop().filter(|path| path != "-").map(PathBuf::from);
    options.output = match output {
        Some(output) => output,
        // A kind or a name asks for a file.
        None if options.path.is_some() => Output::File,
        None if options.kind.is_some() && dialect == Dialect::Enhanced => Output::File,
        None => Output::Nothing,
    };
    Ok(options)
}

/// A name in which `\` stands before a blank or another `\`, as some shells leave it.
fn unescaped(path: &OsStr) -> PathBuf {
    let mut bytes = Vec::with_capacity(path.len());
    let mut unread = path.as_bytes();
    while let Some((byte, behind)) = unread.split_first() {
        unread = behind;
        if *byte == b'\\' && unread.first().is_some_and(|next| b"\\ ".contains(next)) {
            continue;
        }
        bytes.push(*byte);
    }
    PathBuf::from(OsString::from_vec(bytes))
}

impl Options {
    fn new(dialect: Dialect) -> Options {
        Options {
            dialect,
            output: Output::Nothing,
            kind: None,
            path: None,
            extension: ".nc",
            dataset: None,
            main: None,
            no_fill: false,
            header_only: false,
            in_memory: false,
            input: None,
        }
    }

    /// Reads an option that says what to make; `before` is what another one said.
    fn read_output(
        &mut self,
        program: &str,
        before: Option<Output>,
        letter: char,
        name: &OsStr,
    ) -> Result<Output, Refusal> {
        if before.is_some() && self.dialect == Dialect::Enhanced {
            return Err(Refusal::new("Please specify only one language".to_owned(), 1));
        }
        let output = match letter {
            'c' => Some(C),
            'f' => Some(FORTRAN),
            'l' => language(name, self.dialect),
            _ => Some(Output::File),
        };
        let Some(output) = output else {
            let name = name.to_string_lossy();
            let line = format!("{program}: output language {name} not implemented");
            return Err(Refusal::new(line, 1));
        };
        if letter == 'n' {
            self.extension = ".cdf";
        }
        if matches!((before, output), (Some(C), FORTRAN) | (Some(FORTRAN), C)) {
            return Err(Refusal::new("Only one of -c or -f may be specified".to_owned(), 8));
        }
        Ok(output)
    }

    /// Reads any other option.
    fn read_other(&mut self, letter: char, value: OsString) -> Result<(), Refusal> {
        match letter {
            'h' => return Err(Refusal { lines: Vec::new(), usage: true, status: 0 }),
            'H' => self.header_only = true,
            'k' | 'v' => match Kind::named(value.as_bytes()) {
                Some(kind) => self.kind = Some(kind),
                None => {
                    let line = format!("Invalid format: {}", value.to_string_lossy());
                    return Err(Refusal::new(line, 2));
                }
            },
            '3' => self.kind = Some(Kind::Classic),
            '4' => self.kind = Some(Kind::NetCdf4),
            '5' => self.kind = Some(Kind::Data64),
            '6' => self.kind = Some(Kind::Offset64),
            '7' => self.kind = Some(Kind::NetCdf4Classic),
            'M' => self.main = Some(value.to_string_lossy().into_owned()),
            'N' => self.dataset = Some(value.into_vec()),
            'o' => self.path = Some(unescaped(&value)),
            'P' => self.in_memory = true,
            'x' => self.no_fill = true,
            // Levels of debugging and of logging, sizes of puts: nothing of a file depends on them.
            _ => {}
        }
        Ok(())
    }

    /// The file that is made: that of `-o`, or else in this folder the name of the text with another
    /// ending, or for standard input that of the dataset.
    pub(super) fn target(&self, dataset: &[u8]) -> PathBuf {
        if let Some(path) = &self.path {
            return path.clone();
        }
        let name = match &self.input {
            Some(input) => {
                let stem = input.file_stem().unwrap_or(input.as_os_str());
                stem.as_bytes().to_vec()
            }
            None => dataset.to_vec(),
        };
        PathBuf::from(OsString::from_vec([&name, self.extension.as_bytes()].concat()))
    }

    /// The text in messages.
    pub(super) fn label(&self) -> String {
        match &self.input {
            Some(path) => path.display().to_string(),
            None => "standard input".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(args: &[&str]) -> Result<Options, u8> {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        read("ncgen", &args, Dialect::Enhanced).map_err(|refusal| refusal.status)
    }

    #[test]
    fn what_is_made() {
        for (args, output) in [
            (&["a.cdl"][..], Output::Nothing),
            (&["-b", "a.cdl"], Output::File),
            (&["-o", "x.nc"], Output::File),
            (&["-knc4"], Output::File),
            (&["-4"], Output::File),
            (&["-lc", "-o", "x.nc"], Output::Program(Language::C)),
            (&["-f"], Output::Program(Language::Fortran)),
            (&["-l", "java"], Output::Program(Language::Java)),
        ] {
            assert_eq!(options(args).map(|options| options.output), Ok(output), "{args:?}");
        }
        for (args, status) in [
            (&["-b", "-c"][..], 1),
            (&["-l", "perl"], 1),
            (&["-k", "nc9"], 2),
            (&["a", "b"], 6),
            (&["-z"], 8),
            (&["-o"], 8),
            (&["-h"], 0),
        ] {
            assert_eq!(options(args), Err(status), "{args:?}");
        }
    }

    #[test]
    fn names_of_files() {
        let target = |args: &[&str]| options(args).unwrap().target(b"data");
        assert_eq!(target(&["-b", "dir/a.b.cdl"]), PathBuf::from("a.b.nc"));
        assert_eq!(target(&["-n", "dir/a"]), PathBuf::from("a.cdf"));
        assert_eq!(target(&["-b"]), PathBuf::from("data.nc"));
        assert_eq!(target(&["-b", "-"]), PathBuf::from("data.nc"));
        assert_eq!(target(&["-o", r"dir/my\ file\\x", "-"]), PathBuf::from(r"dir/my file\x"));
    }

    #[test]
    fn classic_tool() {
        let args = |args: &[&str]| {
            let args: Vec<OsString> = args.iter().map(OsString::from).collect();
            let read = read("ncgen3", &args, Dialect::Classic);
            read.map(|options| (options.output, options.kind)).map_err(|refusal| refusal.status)
        };
        assert_eq!(args(&["-v2", "-b"]), Ok((Output::File, Some(Kind::Offset64))));
        assert_eq!(args(&["-c", "-b"]), Ok((Output::File, None)));
        assert_eq!(args(&["-c", "-f"]), Err(8));
        assert_eq!(args(&["-4"]), Err(8));
        assert_eq!(args(&["-knc4"]), Ok((Output::Nothing, Some(Kind::NetCdf4))));
    }
}
