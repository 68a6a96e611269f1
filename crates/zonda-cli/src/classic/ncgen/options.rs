//! Options of `ncgen` and of `ncgen3`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use zonda_cdl::{Dialect, NetCdfKind};

use crate::classic::getopt::{Argument, split};

/// Letters of `ncgen`, as `getopt` has them.
const LETTERS: &str = "134567bcdD:fhHk:l:M:no:Pv:xL:N:B:W:";
/// Letters of `ncgen3`.
const LETTERS_CLASSIC: &str = "bcfk:l:no:v:x";

/// What to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NcgenOutput {
    /// Nothing: the text is only read.
    Nothing,
    /// A netCDF file.
    File,
    /// A program that makes the file.
    Program(ProgramLanguage),
}

/// The language of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProgramLanguage {
    C,
    /// Fortran 77.
    Fortran,
    Java,
}

/// What a build without the feature `ncgen-code` says where a program is asked for.
pub(super) const NO_WRITERS: &str =
    "this build cannot write programs (it was made without the feature ncgen-code of zonda-cli)";

const C: NcgenOutput = NcgenOutput::Program(ProgramLanguage::C);
const FORTRAN: NcgenOutput = NcgenOutput::Program(ProgramLanguage::Fortran);

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NcgenOptions {
    pub(super) dialect: Dialect,
    pub(super) output: NcgenOutput,
    pub(super) kind: Option<NetCdfKind>,
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
pub(super) struct NcgenRefusal {
    /// Lines for standard error, with the name of the program where the reference has it.
    pub(super) lines: Vec<String>,
    /// Whether the usage follows.
    pub(super) usage: bool,
    pub(super) status: u8,
}

impl NcgenRefusal {
    fn new(line: String, status: u8) -> NcgenRefusal {
        NcgenRefusal { lines: vec![line], usage: false, status }
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
fn language(name: &OsStr, dialect: Dialect) -> Option<NcgenOutput> {
    Some(match (name.as_bytes(), dialect) {
        (b"b", _) => NcgenOutput::File,
        (b"c" | b"C", _) => C,
        (b"f77" | b"fortran77" | b"Fortran77", _) => FORTRAN,
        (b"f" | b"F" | b"fortran" | b"Fortran", Dialect::Classic) => FORTRAN,
        (b"j" | b"java", Dialect::Enhanced) => NcgenOutput::Program(ProgramLanguage::Java),
        _ => return None,
    })
}

/// Reads arguments, without the name of the program.
pub(super) fn read(
    program: &str,
    args: &[OsString],
    dialect: Dialect,
) -> Result<NcgenOptions, NcgenRefusal> {
    let letters = match dialect {
        Dialect::Enhanced => LETTERS,
        Dialect::Classic => LETTERS_CLASSIC,
    };
    let mut output = None;
    let mut options = NcgenOptions::new(dialect);
    let mut inputs = Vec::new();
    for piece in split(args, letters) {
        match piece {
            Argument::Operand(path) => inputs.push(path),
            Argument::Option(letter @ ('b' | 'c' | 'f' | 'n' | 'l'), value) => {
                let name = value.unwrap_or_default();
                output = Some(options.read_output(program, output, letter, &name)?);
            }
            Argument::Option(letter, value) => {
                options.read_other(letter, value.unwrap_or_default())?
            }
            wrong => {
                let complaint = wrong.complaint().unwrap_or_default();
                let lines = vec![format!("{program}: {complaint}")];
                return Err(NcgenRefusal { lines, usage: true, status: 8 });
            }
        }
    }
    if inputs.len() > 1 {
        let line = format!("{program}: only one input file argument permitted");
        return Err(NcgenRefusal::new(line, 6));
    }
    if matches!(output, Some(NcgenOutput::Program(_))) && !cfg!(feature = "ncgen-code") {
        return Err(NcgenRefusal::new(format!("{program}: {NO_WRITERS}"), 1));
    }
    options.input = inputs.pop().filter(|path| path != "-").map(PathBuf::from);
    options.output = match output {
        Some(output) => output,
        // A kind or a name asks for a file.
        None if options.path.is_some() => NcgenOutput::File,
        None if options.kind.is_some() && dialect == Dialect::Enhanced => NcgenOutput::File,
        None => NcgenOutput::Nothing,
    };
    Ok(options)
}

/// Removes `\` before a blank or another `\` from a name; some shells leave them there.
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

impl NcgenOptions {
    fn new(dialect: Dialect) -> NcgenOptions {
        NcgenOptions {
            dialect,
            output: NcgenOutput::Nothing,
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
        before: Option<NcgenOutput>,
        letter: char,
        name: &OsStr,
    ) -> Result<NcgenOutput, NcgenRefusal> {
        if before.is_some() && self.dialect == Dialect::Enhanced {
            return Err(NcgenRefusal::new("Please specify only one language".to_owned(), 1));
        }
        let output = match letter {
            'c' => Some(C),
            'f' => Some(FORTRAN),
            'l' => language(name, self.dialect),
            _ => Some(NcgenOutput::File),
        };
        let Some(output) = output else {
            let name = name.to_string_lossy();
            let line = format!("{program}: output language {name} not implemented");
            return Err(NcgenRefusal::new(line, 1));
        };
        if letter == 'n' {
            self.extension = ".cdf";
        }
        if matches!((before, output), (Some(C), FORTRAN) | (Some(FORTRAN), C)) {
            return Err(NcgenRefusal::new("Only one of -c or -f may be specified".to_owned(), 8));
        }
        Ok(output)
    }

    /// Reads any other option.
    fn read_other(&mut self, letter: char, value: OsString) -> Result<(), NcgenRefusal> {
        match letter {
            'h' => return Err(NcgenRefusal { lines: Vec::new(), usage: true, status: 0 }),
            'H' => self.header_only = true,
            'k' | 'v' => match NetCdfKind::named(value.as_bytes()) {
                Some(kind) => self.kind = Some(kind),
                None => {
                    let line = format!("Invalid format: {}", value.to_string_lossy());
                    return Err(NcgenRefusal::new(line, 2));
                }
            },
            '3' => self.kind = Some(NetCdfKind::Classic),
            '4' => self.kind = Some(NetCdfKind::NetCdf4),
            '5' => self.kind = Some(NetCdfKind::Data64),
            '6' => self.kind = Some(NetCdfKind::Offset64),
            '7' => self.kind = Some(NetCdfKind::NetCdf4Classic),
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

    /// The path of the file: that of `-o`, else in the current folder the name of the text with
    /// another ending. For standard input it is the name of the dataset.
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

    /// The name of the text in messages.
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

    fn options(args: &[&str]) -> Result<NcgenOptions, u8> {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        read("ncgen", &args, Dialect::Enhanced).map_err(|refusal| refusal.status)
    }

    #[test]
    fn what_is_made() {
        for (args, output) in [
            (&["a.cdl"][..], NcgenOutput::Nothing),
            (&["-b", "a.cdl"], NcgenOutput::File),
            (&["-o", "x.nc"], NcgenOutput::File),
            (&["-knc4"], NcgenOutput::File),
            (&["-4"], NcgenOutput::File),
            (&["-lc", "-o", "x.nc"], NcgenOutput::Program(ProgramLanguage::C)),
            (&["-f"], NcgenOutput::Program(ProgramLanguage::Fortran)),
            (&["-l", "java"], NcgenOutput::Program(ProgramLanguage::Java)),
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
        assert_eq!(args(&["-v2", "-b"]), Ok((NcgenOutput::File, Some(NetCdfKind::Offset64))));
        assert_eq!(args(&["-c", "-b"]), Ok((NcgenOutput::File, None)));
        assert_eq!(args(&["-c", "-f"]), Err(8));
        assert_eq!(args(&["-4"]), Err(8));
        assert_eq!(args(&["-knc4"]), Ok((NcgenOutput::Nothing, Some(NetCdfKind::NetCdf4))));
    }
}
