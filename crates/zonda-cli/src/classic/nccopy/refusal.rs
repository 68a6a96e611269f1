//! Why `nccopy` makes no copy, and its usage.

use std::fmt::Display;

use zonda::NcError;

use crate::classic::text_of;
use crate::failure::CommandFailure;

/// Why no copy was made.
#[derive(Debug)]
pub(super) enum NccopyRefusal {
    /// The call is wrong: an optional complaint, followed by the usage.
    Usage(Option<String>),
    /// A message.
    Text(String),
    /// An error of the library, and the object that it concerns.
    Code(NcError, String),
}

impl NccopyRefusal {
    pub(super) fn text(text: impl Into<String>) -> NccopyRefusal {
        NccopyRefusal::Text(text.into())
    }

    pub(super) fn code(code: NcError, about: impl Display) -> NccopyRefusal {
        NccopyRefusal::Code(code, about.to_string())
    }

    /// The same as an error of the library, for rank 0.
    pub(super) fn into_error(self) -> zonda::Error {
        match self {
            NccopyRefusal::Usage(_) => NcError::Inval.into(),
            NccopyRefusal::Text(text) => zonda::Error::with_text(NcError::Inval, text),
            NccopyRefusal::Code(code, about) => zonda::Error::with_text(code, about),
        }
    }

    /// Prints the message on standard error as the reference does. Where that has a line number of
    /// its source, this has what went wrong.
    pub(super) fn report(&self, program: &str) {
        match self {
            NccopyRefusal::Usage(complaint) => {
                if let Some(complaint) = complaint {
                    eprintln!("{program}: {complaint}");
                }
                let version = env!("CARGO_PKG_VERSION");
                eprintln!("{program}: {program} {USAGE}");
                eprintln!("netCDF library version 4.9.0 of Zonda {version} $");
            }
            NccopyRefusal::Text(text) => eprintln!("{program}: {text}"),
            NccopyRefusal::Code(code, about) => eprintln!("{}\nLocation: {about}", text_of(*code)),
        }
    }
}

impl From<zonda::Error> for NccopyRefusal {
    fn from(error: zonda::Error) -> NccopyRefusal {
        NccopyRefusal::code(error.code(), error.line())
    }
}

impl From<CommandFailure> for NccopyRefusal {
    fn from(failure: CommandFailure) -> NccopyRefusal {
        NccopyRefusal::text(failure.into_text())
    }
}

/// The usage, which is printed after a wrong call.
const USAGE: &str = "\
[-k kind] [-[3|4|6|7]] [-d n] [-s] [-c chunkspec] [-u] [-w] [-[v|V] varlist] [-[g|G] grplist] \
[-m n] [-h n] [-e n] [-r] [-F filterspec] [-Mn] infile outfile
  [-k kind]      format of the copy, by default that of the source: 'classic', '64-bit offset',
                 'cdf5', 'netCDF-4' or 'netCDF-4 classic model'
  [-3]           the same as -k classic
  [-6]           the same as -k '64-bit offset'
  [-4]           the same as -k netCDF-4
  [-7]           the same as -k 'netCDF-4 classic model'
  [-d n]         deflate at level n, from 1 to 9; 0 to undo compression
  [-s]           shuffle bytes before they are deflated (with -d)
  [-c chunkspec] shapes of chunks: 'dim/n,...' for all variables, 'var:n,...', 'var:contiguous' or
                 'var:compact' for one; 'dim/' is the whole dimension, '/' no chunks; repeatable
  [-u]           unlimited dimensions become fixed
  [-w]           accepted; the copy is written in large pieces anyway
  [-v var,...]   data of these variables only, definitions of all
  [-V var,...]   these variables only
  [-g grp,...]   data of these groups only, definitions of all
  [-G grp,...]   these groups only
  [-m n]         memory for data, with K, M, G, T or P; 256 MiB by default
  [-h n]         the same, as a size of the chunk cache; the larger one counts
  [-e n]         accepted; the cache has as many chunks as fit
  [-r]           read the source into memory at once
  [-F filterspec] filters of variables: 'var,id,param,...|...', 'var,none', '*,...', 'none'; repeatable
  [-Mn]          fixed-size variables whose chunks would have fewer than n bytes get none (8192)
  infile         file to be copied
  outfile        the copy; one that exists is replaced
";
