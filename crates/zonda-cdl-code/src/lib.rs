#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod c;
mod fortran;
mod java;
mod names;

use std::path::Path;

use zonda_cdl::{CdlFault, CdlText, DataSink, NetCdfKind, Nowhere, Schema, stream};

/// What program to write.
#[derive(Clone, Copy, Debug)]
pub struct ProgramOptions<'a> {
    /// The language of the program.
    pub language: Language,
    /// The file that the program makes.
    pub target: &'a Path,
    /// The kind of that file. Fortran and Java know the classic one only.
    pub kind: NetCdfKind,
    /// Name of the main function, of the program or of the class; `None` for that of the reference.
    pub main: Option<&'a str>,
    /// Whether the program turns filling off.
    pub no_fill: bool,
    /// Whether the program only defines, and puts no data.
    pub header_only: bool,
}

/// The language of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// C, for the netCDF-C library.
    C,
    /// Fortran 77 in fixed form, for the netCDF-Fortran library.
    Fortran,
    /// Java, for the library of Unidata.
    Java,
}

/// Writes a program that makes the file which `schema` describes. Warnings about data go to `warn`.
///
/// # Errors
/// What is wrong with data and attributes of the text; storage that only a netCDF-4 file can have, where
/// another kind is asked for.
pub fn write(
    source: &CdlText,
    schema: &mut Schema,
    options: &ProgramOptions<'_>,
    warn: &dyn Fn(&CdlFault),
) -> Result<Vec<u8>, CdlFault> {
    // The other kinds cannot store variables in several ways: the program would fail.
    let special = schema.vars.iter().find_map(|var| var.special.at);
    if let Some(place) = special.filter(|_| !options.kind.is_hdf5()) {
        let why = "how variables are stored can be chosen in netCDF-4 files only";
        return Err(CdlFault::at(place, why));
    }
    let put_data = |schema: &mut Schema, sink: &mut dyn DataSink| match options.header_only {
        true => Ok(()),
        false => stream(source, schema, sink),
    };
    match options.language {
        Language::C => {
            let mut program = c::CProgram::new(schema, options, warn);
            program.definitions(schema)?;
            put_data(schema, &mut program)?;
            program.end(schema)
        }
        Language::Fortran => {
            let mut program = fortran::FortranProgram::new(schema, options, warn);
            program.definitions(schema)?;
            put_data(schema, &mut program)?;
            Ok(program.end())
        }
        Language::Java => {
            // The length of the record dimension is part of the definition. Reading the data finds it.
            let mut lengths = schema.clone();
            put_data(&mut lengths, &mut Nowhere)?;
            let mut program = java::JavaProgram::new(&lengths, options, warn);
            program.definitions(&lengths)?;
            put_data(schema, &mut program)?;
            Ok(program.end())
        }
    }
}
