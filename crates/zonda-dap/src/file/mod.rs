//! A dataset behind a server of OPeNDAP, as any other: inquiries look at a copy of the definitions, elements come from the server.
//!
//! | Module | |
//! |---|---|
//! | `copy`, `definitions` | the definitions, in a file in memory |
//! | `dispatch` | what a format has to do |
//! | `get` | a get: from what is kept, or by a request |
//! | `companions` | which other variables come with it |
//! | `split` | long selections in parts, several at a time |
//! | `sink` | where the elements of a response go |
//! | `whole`, `kept` | whole variables, and which of them are kept |

mod companions;
mod copy;
mod definitions;
mod dispatch;
mod get;
mod kept;
mod sink;
mod split;
mod tuning;
mod whole;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use zonda_convert::RangeRule;
use zonda_format::{Dispatch, Format, Pointers, Result, UserClass, UserType, VarRef};
use zonda_model::{ExtType, NcError};

pub use copy::define;

use crate::error::Document;
use crate::protocol::{Asked, Protocol, Server};
use definitions::Copy;
use kept::Kept;
use tuning::{MOST_PREFETCH_BYTES, SMALL_ELEMS};
use whole::Form;

/// An open dataset.
pub struct DapFile {
    copy: Copy,
    protocol: Box<dyn Protocol>,
    server: Arc<dyn Server>,
    /// In the order of the model.
    vars: Vec<FileVar>,
    place_of: HashMap<VarRef, usize>,
    /// Variables that are asked for whole, and with others: coordinates first.
    small: Vec<usize>,
    kept: Arc<Kept>,
    controls: Controls,
    /// Requests for several variables failed where those for one did not.
    asks_alone: AtomicBool,
    /// What brings elements, for errors.
    document: Document,
}

/// A variable.
#[derive(Debug)]
struct FileVar {
    shape: Vec<u64>,
    form: Form,
}

/// What the user set.
#[derive(Clone, Copy, Debug)]
struct Controls {
    /// Variables are kept.
    cache: bool,
    /// Variables are asked for with others.
    prefetch: bool,
}

impl Controls {
    fn of(asked: &Asked) -> Controls {
        let has = |name| asked.setting(name).is_some();
        // As in the reference what switches on takes precedence.
        let is_on = |on, off| has(on) || !has(off);
        Controls { cache: is_on("cache", "nocache"), prefetch: is_on("prefetch", "noprefetch") }
    }
}

/// Without URLs.
impl fmt::Debug for DapFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DapFile({} variables)", self.vars.len())
    }
}

impl DapFile {
    /// A dataset, of which `file` has the definitions and `vars` says which of its variables is which of the model ([`define`]).
    ///
    /// # Errors
    /// `NC_EBADTYPE` for a variable of a type that the file does not have.
    pub fn new(
        protocol: Box<dyn Protocol>,
        server: Arc<dyn Server>,
        asked: &Asked,
        (file, vars): (Box<dyn Dispatch>, Vec<VarRef>),
    ) -> Result<DapFile> {
        let model = protocol.model();
        let (format, rule, document) = match model.is_netcdf4 {
            true => (Format::NetCdf4, RangeRule::Cast, Document::Dap),
            false => (Format::Cdf1, RangeRule::ByteIsUnsigned, Document::Dods),
        };
        let mut of_file = Vec::new();
        for var in &model.vars {
            let pointers = Pointers::of(file.definitions(), var.nc_type)?;
            let ext = number_type(&model.types, var.nc_type);
            let form = Form { elem: pointers.size(), ext, pointers, rule };
            let dims = var.dims.iter().map(|&at| model.dims.get(at).map(|dim| dim.len));
            let shape = dims.collect::<Option<Vec<u64>>>().ok_or(NcError::BadDim)?;
            of_file.push(FileVar { shape, form });
        }
        let place_of = vars.iter().enumerate().map(|(at, &var)| (var, at)).collect();
        let limit = asked.setting("cachelimit").and_then(|text| text.parse().ok());
        let mut file = DapFile {
            copy: Copy { file, format },
            protocol,
            server,
            vars: of_file,
            place_of,
            small: Vec::new(),
            kept: Kept::new(limit),
            controls: Controls::of(asked),
            asks_alone: AtomicBool::new(false),
            document,
        };
        if file.controls.prefetch {
            file.small = file.find_small();
        }
        Ok(file)
    }

    /// Variables of few elements, those of dimensions before others.
    fn find_small(&self) -> Vec<usize> {
        let model = self.protocol.model();
        let is_small = |var: &usize| {
            let n = self.vars.get(*var).map(|var| product(&var.shape));
            n.is_some_and(|n| n > 0 && n <= SMALL_ELEMS)
                && self.bytes_of(*var) <= MOST_PREFETCH_BYTES
                // How long strings and sequences are, nobody knows before they are here.
                && !self.protocol.has_pointers(*var)
        };
        let mut small: Vec<usize> = (0..self.vars.len()).filter(is_small).collect();
        zonda_runtime::sort::sort_by_key(&mut small, |&var| {
            let of = model.vars.get(var);
            let is_coordinate = of.is_some_and(|of| {
                let dim = of.dims.first().and_then(|&dim| model.dims.get(dim));
                dim.is_some_and(|dim| dim.name == of.name)
            });
            !is_coordinate
        });
        small
    }

    fn of(&self, var: usize) -> Result<&FileVar> {
        self.vars.get(var).ok_or_else(|| NcError::NotVar.into())
    }

    /// Bytes of all elements of a variable, without what they point to.
    fn bytes_of(&self, var: usize) -> u64 {
        let of = self.vars.get(var);
        of.map_or(0, |of| product(&of.shape).saturating_mul(of.form.elem as u64))
    }
}

fn product(shape: &[u64]) -> u64 {
    shape.iter().fold(1, |n, &len| n.saturating_mul(len))
}

/// The type that values of a type are converted from; that of its numbers for an enumeration.
fn number_type(types: &[UserType], nc_type: i32) -> Option<ExtType> {
    let user = UserType::index(nc_type).and_then(|at| types.get(at));
    match user.map(|of| &of.class) {
        Some(UserClass::Enum { base, .. }) => ExtType::from_nc_type(*base),
        Some(_) => None,
        None => ExtType::from_nc_type(nc_type),
    }
}
