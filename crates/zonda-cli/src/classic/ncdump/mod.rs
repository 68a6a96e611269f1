//! `ncdump`: a file as CDL or, its header, as NcML.
//!
//! Options, output, messages and exit statuses are those of `ncdump` 4.9.0. The text itself is that
//! of `zonda dump` ([`crate::cdl`]). Where a message of the reference ends with a line number of
//! its source, this one says what went wrong.

mod options;
mod refusal;

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use zonda::{Dataset, Format, OpenOptions, Persist};

use crate::cdl::select::{find_groups, missing_variable};
use crate::cdl::{self, DataSelection};
use crate::classic::text_of;
use crate::tuning::OUTPUT_BUFFER_BYTES;
use crate::{input, ncml};
use options::{NcdumpOptions, NcdumpOutput};
use refusal::NcdumpRefusal;

/// Runs `ncdump`; exit status 0 for a dump, else 1.
pub(super) fn run(args: &[OsString]) -> ExitCode {
    let (program, args) = match args.split_first() {
        Some((program, args)) => (program.to_string_lossy(), args),
        None => ("ncdump".into(), args),
    };
    zonda::report_gaps(|what| eprintln!("ncdump: {what}"));
    let mut out = BufWriter::with_capacity(OUTPUT_BUFFER_BYTES, io::stdout().lock());
    let done = NcdumpOptions::read(args).and_then(|options| dump(&options, &mut out));
    // What was written before a failure is correct, so it is written out, too.
    let flushed = crate::ended(&mut out).map_err(NcdumpRefusal::from);
    match done.and(flushed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(refusal) => refusal.report(program),
    }
}

/// Whether only a dataset of OPeNDAP has the code: `NC_EDAP` to `NC_EAUTH`.
fn is_dap_code(code: zonda::NcError) -> bool {
    (zonda::NcError::Auth.code()..=zonda::NcError::Dap.code()).contains(&code.code())
}

fn dump(options: &NcdumpOptions, out: &mut dyn Write) -> Result<(), NcdumpRefusal> {
    let in_memory = options.in_memory.then_some(Persist::No);
    let open = OpenOptions { in_memory, ..OpenOptions::default() };
    let file = Dataset::open(&input::place(&options.file), &open).map_err(|error| {
        let label = input::label(&options.file);
        let message = format!("{}: {}", label.display(), text_of(error.code()));
        // Error codes say neither how many bytes were missing, nor what a server answered, nor what is wrong with a constraint or a document.
        let place = input::place(&options.file);
        let is_of_server =
            zonda::is_url(&place) || zonda::names_dap(&place) || is_dap_code(error.code());
        let is_more = error.code() == zonda::NcError::NoMem || is_of_server;
        match is_more {
            true => NcdumpRefusal::Text(format!("{message}\nLocation: {}", error.line())),
            false => NcdumpRefusal::Text(message),
        }
    })?;
    match options.output {
        NcdumpOutput::Kind => writeln!(out, "{}", file.format().kind())?,
        NcdumpOutput::ExtendedKind => writeln!(out, "{}", extended_kind(file.format()))?,
        NcdumpOutput::Text { ncml } => {
            let label = input::label(&options.file);
            write(options, ncml, &file, out).map_err(|refusal| refusal.within(&label))?;
        }
    }
    Ok(file.close()?)
}

/// Writes CDL or NcML, after checking that all objects exist that the options name.
fn write(
    options: &NcdumpOptions,
    as_ncml: bool,
    file: &Dataset,
    out: &mut dyn Write,
) -> Result<(), NcdumpRefusal> {
    let text = &options.text;
    if let Some(name) = missing_variable(file, &text.variables)? {
        return Err(NcdumpRefusal::none("variable", name));
    }
    if !text.groups.is_empty() {
        if file.format() != Format::NetCdf4 {
            return Err(NcdumpRefusal::Silent);
        }
        if let Err(name) = find_groups(file, &text.groups)? {
            return Err(NcdumpRefusal::none("group", name));
        }
    }
    if !as_ncml {
        return Ok(cdl::write(out, file, text)?);
    }
    if file.format() == Format::NetCdf4 {
        let text = "NcML output (-x) currently only permitted for netCDF classic model";
        return Err(NcdumpRefusal::text(text));
    }
    Ok(ncml::write(
        out,
        file,
        &ncml::NcmlOptions {
            location: input::label(&options.file).as_os_str().as_bytes().to_vec(),
            has_data: text.selection != DataSelection::Header,
            coordinates_only: options.coordinates,
            variables: text.variables.clone(),
            precision: text.precision,
        },
    )?)
}

/// The format and the mode flags that stand for it in `netcdf.h`.
fn extended_kind(format: Format) -> String {
    let (name, mode) = match format {
        Format::Cdf1 => ("classic", 0),
        Format::Cdf2 => ("64-bit offset", 0x200),
        Format::Cdf5 => ("64-bit data", 0x20),
        Format::NetCdf4 | Format::NetCdf4Classic => ("HDF5", 0x1000),
        Format::Other(other) => (other.name, 0),
    };
    format!("{name} mode={mode:08x}")
}
