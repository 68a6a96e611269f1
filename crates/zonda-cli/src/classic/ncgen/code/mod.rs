//! Programs that make the file that a text describes.
//!
//! Each language is a [`Sink`], which makes statements of definitions and of data. The text of the
//! program is kept until it is complete: nobody is to compile half of one.

mod c;
mod c_text;
mod fortran;
mod java;
mod names;

use std::path::Path;

use zonda_cdl::{Fault, Kind, Schema, Source, stream};

/// What program to make.
pub(super) struct How<'a> {
    /// The file that the program makes.
    pub(super) target: &'a Path,
    pub(super) kind: Kind,
    /// Name of the main function, if one is asked for.
    pub(super) main: Option<&'a str>,
    pub(super) no_fill: bool,
    pub(super) header_only: bool,
}

/// A language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    C,
    Fortran,
    Java,
}

/// The text of the program.
pub(super) fn write(
    source: &Source,
    schema: &mut Schema,
    how: &How<'_>,
    language: Language,
    warn: &dyn Fn(&Fault),
) -> Result<Vec<u8>, Fault> {
    // Only netCDF-4 cares how variables are stored; the program would fail.
    let specials = schema.vars.iter().find_map(|var| var.special.at);
    if let Some(place) = specials.filter(|_| !how.kind.is_hdf5()) {
        let why = "how variables are stored can be chosen in netCDF-4 files only";
        return Err(Fault::at(place, why));
    }
    let data = |schema: &mut Schema, sink: &mut dyn zonda_cdl::Sink| match how.header_only {
        true => Ok(()),
        false => stream(source, schema, sink),
    };
    match language {
        Language::C => {
            let mut program = c::Program::new(schema, how, warn);
            program.definitions(schema)?;
            data(schema, &mut program)?;
            program.end(schema)
        }
        Language::Fortran => {
            let mut program = fortran::Program::new(schema, how, warn);
            program.definitions(schema)?;
            data(schema, &mut program)?;
            Ok(program.end())
        }
        Language::Java => {
            // The length of the record dimension is part of the definition.
            let mut lengths = schema.clone();
            data(&mut lengths, &mut zonda_cdl::Nowhere)?;
            let mut program = java::Program::new(&lengths, how, warn);
            program.definitions(&lengths)?;
            data(schema, &mut program)?;
            Ok(program.end())
        }
    }
}
