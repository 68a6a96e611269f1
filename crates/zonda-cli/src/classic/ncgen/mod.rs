//! `ncgen` and `ncgen3`: netCDF files from CDL, and programs that make them.
//!
//! Options, names of files and exit statuses are those of the reference. Messages also show the
//! line, with a mark at the place. If a file cannot be completed, none is made, and an existing
//! file of the same name stays as it was.

mod options;
mod write;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use zonda_cdl::{CdlFault, CdlText, Dialect, NetCdfKind, Nowhere, Schema, parse, stream};

use options::{NcgenOptions, NcgenOutput, NcgenRefusal, ProgramLanguage, usage};
use write::{OutputFile, write_file};

/// `ncgen`
pub(super) fn run(args: &[OsString]) -> ExitCode {
    generate(args, Dialect::Enhanced)
}

/// `ncgen3`
pub(super) fn run_classic(args: &[OsString]) -> ExitCode {
    generate(args, Dialect::Classic)
}

fn generate(args: &[OsString], dialect: Dialect) -> ExitCode {
    let (called, args) =
        args.split_first().map_or((None, args), |(first, rest)| (Some(first), rest));
    let program = called.and_then(|called| Path::new(called).file_name());
    let program =
        program.map_or_else(|| "ncgen".to_owned(), |name| name.to_string_lossy().into_owned());
    let options = match options::read(&program, args, dialect) {
        Ok(options) => options,
        Err(refusal) => return refuse(&program, dialect, &refusal),
    };
    let source = match &options.input {
        Some(path) => CdlText::open(path),
        None => CdlText::read(io::stdin().lock()),
    };
    let source = match source {
        Ok(source) => source,
        Err(error) => {
            let label = options.label();
            eprintln!("{program}: can't open file {label} for reading: {error}");
            return ExitCode::from(if error.kind() == io::ErrorKind::InvalidData { 1 } else { 7 });
        }
    };
    match make(&program, &options, &source) {
        Ok(()) => ExitCode::SUCCESS,
        Err(NcgenFailure::Text(fault)) => {
            eprintln!("{program}: {}", fault.explain(&options.label(), &source));
            ExitCode::FAILURE
        }
        // The reader of the program has seen enough.
        Err(NcgenFailure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(NcgenFailure::Output(error)) => {
            eprintln!("{program}: standard output: {error}");
            ExitCode::FAILURE
        }
    }
}

fn refuse(program: &str, dialect: Dialect, refusal: &NcgenRefusal) -> ExitCode {
    for line in &refusal.lines {
        eprintln!("{line}");
    }
    if refusal.usage {
        eprintln!("{}", usage(program, dialect));
        eprintln!("netcdf library version 4.9.0 of Zonda {}", env!("CARGO_PKG_VERSION"));
    }
    ExitCode::from(refusal.status)
}

/// Why no file or program was made.
enum NcgenFailure {
    /// Something is wrong with the text, or with the file that is made of it.
    Text(CdlFault),
    /// Standard output could not be written.
    Output(io::Error),
}

impl From<CdlFault> for NcgenFailure {
    fn from(fault: CdlFault) -> NcgenFailure {
        NcgenFailure::Text(fault)
    }
}

fn make(program: &str, options: &NcgenOptions, source: &CdlText) -> Result<(), NcgenFailure> {
    let mut schema = parse(source, options.dialect, options.dataset.as_deref(), options.kind)?;
    let kind = kind(options, &schema)?;
    schema.settle(kind);
    let warn =
        |fault: &CdlFault| eprintln!("{program}: {}", fault.explain(&options.label(), source));
    let target = options.target(&schema.groups[0].name);
    match options.output {
        NcgenOutput::Nothing => Ok(stream(source, &mut schema, &mut Nowhere)?),
        NcgenOutput::File => {
            let file_options = OutputFile {
                target: &target,
                text: options.input.as_deref().unwrap_or(Path::new("-")),
                kind,
                no_fill: options.no_fill,
                header_only: options.header_only,
                in_memory: options.in_memory,
            };
            Ok(write_file(source, &mut schema, &file_options, &warn)?)
        }
        NcgenOutput::Program(language) => {
            let text =
                program_text(source, &mut schema, options, (language, kind, &target), &warn)?;
            let mut out = io::stdout().lock();
            let written = out.write_all(&text).and_then(|()| crate::ended(&mut out));
            written.map_err(NcgenFailure::Output)
        }
    }
}

/// The text of a program that makes the file.
#[cfg(feature = "ncgen-code")]
fn program_text(
    source: &CdlText,
    schema: &mut Schema,
    options: &NcgenOptions,
    (language, kind, target): (ProgramLanguage, NetCdfKind, &Path),
    warn: &dyn Fn(&CdlFault),
) -> Result<Vec<u8>, NcgenFailure> {
    let program = zonda_cdl_code::ProgramOptions {
        language: match language {
            ProgramLanguage::C => zonda_cdl_code::Language::C,
            ProgramLanguage::Fortran => zonda_cdl_code::Language::Fortran,
            ProgramLanguage::Java => zonda_cdl_code::Language::Java,
        },
        target,
        kind,
        main: options.main.as_deref(),
        no_fill: options.no_fill,
        header_only: options.header_only,
    };
    Ok(zonda_cdl_code::write(source, schema, &program, warn)?)
}

/// This is not reached: reading the options refuses languages that this build cannot write.
#[cfg(not(feature = "ncgen-code"))]
fn program_text(
    _: &CdlText,
    _: &mut Schema,
    _: &NcgenOptions,
    _: (ProgramLanguage, NetCdfKind, &Path),
    _: &dyn Fn(&CdlFault),
) -> Result<Vec<u8>, NcgenFailure> {
    Err(NcgenFailure::Text(CdlFault::nowhere(options::NO_WRITERS.to_owned())))
}

/// The kind of file: that of the options, else the one that the text asks for or needs. Fortran and
/// Java only know the classic kind.
fn kind(options: &NcgenOptions, schema: &Schema) -> Result<NetCdfKind, CdlFault> {
    let needs = schema.enhanced();
    if matches!(
        options.output,
        NcgenOutput::Program(ProgramLanguage::Fortran | ProgramLanguage::Java)
    ) {
        return match needs {
            Some((at, what)) => {
                let why = format!("{what}: Java or Fortran requires classic model CDL input");
                Err(CdlFault::at(at, why))
            }
            None => Ok(NetCdfKind::Classic),
        };
    }
    let kind = options.kind.unwrap_or_else(|| match options.dialect {
        Dialect::Enhanced => schema.kind(),
        Dialect::Classic => NetCdfKind::Classic,
    });
    match needs {
        Some((at, what)) if kind.is_classic_model() => {
            let why = format!("{what}: -k or _Format conflicts with enhanced CDL input");
            Err(CdlFault::at(at, why))
        }
        _ => Ok(kind),
    }
}
