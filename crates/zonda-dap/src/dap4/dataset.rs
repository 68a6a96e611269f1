//! A dataset by DAP4.

use std::collections::HashMap;
use std::io::{BufReader, Read};
use std::sync::Arc;

use zonda_format::OwnedValues;
use zonda_storage::StorageError;

use super::body::{Taker, Values};
use super::chunks::Chunks;
use super::constraint::Constraint;
use super::dmr::{AttributeValue, Dmr, Group, Variable, names};
use super::layout::Names;
use super::mapping::{self, Known};
use super::query::Query;
use super::settings::Settings;
use crate::error::{DapError, Document};
use crate::model::Model;
use crate::protocol::{Asked, Part, Protocol, Request, Server, Sink};

/// Longest DMR, in bytes.
const MOST_DMR: u64 = 64 << 20;

/// Bytes of a body that are read ahead.
const BUFFER: usize = 32 << 10;

/// A dataset by DAP4.
#[derive(Debug)]
pub struct Dap4 {
    model: Model,
    known: Vec<Known>,
    query: Query,
    settings: Settings,
    heeds_constraints: bool,
}

/// Asks a server for its DMR and makes definitions of it.
///
/// Asked for are `.dmr.xml`, then `.dmr`; where responses are saved ones, the values are last: they begin with a DMR.
///
/// # Errors
/// What the server, the connection or the system says; a document that is wrong, or has what netCDF has no form for.
pub fn open(server: &Arc<dyn Server>, asked: &Asked) -> Result<Dap4, DapError> {
    let query = Query::parse(&asked.constraint)?;
    let settings = Settings::of(asked);
    let heeds_constraints = server.heeds_constraints();
    if !heeds_constraints && !asked.constraint.is_empty() {
        return Err(DapError::malformed(Document::Constraint, 0, "nobody is there to heed it"));
    }
    let dmr = ask_dmr(&**server, &query.whole(), heeds_constraints)?;
    let (model, known) = mapping::model(&dmr, settings)?;
    Ok(Dap4 { model, known, query, settings, heeds_constraints })
}

fn ask_dmr(server: &dyn Server, query: &str, is_remote: bool) -> Result<Dmr, DapError> {
    let ask = |extension| server.ask(&Request { extension, query: query.to_owned() });
    let said = |error| DapError::Storage { document: Document::Dmr, error };
    let first = match ask(".dmr.xml").map_err(said).and_then(read_dmr) {
        Ok(dmr) => return Ok(dmr),
        Err(error) => error,
    };
    if !may_have_another(&first) {
        return Err(first);
    }
    let second = match ask(".dmr").map_err(said).and_then(read_dmr) {
        Ok(dmr) => return Ok(dmr),
        Err(error) => error,
    };
    if is_remote || !matches!(second, DapError::Storage { .. }) {
        // What the server says of the name that it should know is worth more than that it does not know the other.
        return Err(if matches!(first, DapError::Server { .. }) { first } else { second });
    }
    let body = ask(".dap").map_err(said)?;
    Dmr::parse(&Chunks::begin(body)?.0)
}

/// Whether another name for the document is worth a try. Nothing helps where nobody answers.
fn may_have_another(error: &DapError) -> bool {
    use zonda_storage::RemoteFailure::{Denied, NoMemory, TimedOut, Unreachable, Unusable};
    let fatal = |error: &StorageError| {
        let StorageError::Remote { kind, .. } = error else { return false };
        matches!(kind, Denied | NoMemory | TimedOut | Unreachable | Unusable)
    };
    match error {
        DapError::Storage { error, .. } => !fatal(error),
        DapError::Server { .. } => true,
        _ => false,
    }
}

fn read_dmr(body: Box<dyn Read + Send>) -> Result<Dmr, DapError> {
    let mut bytes = Vec::new();
    let read = body.take(MOST_DMR.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| DapError::of_io(Document::Dmr, &error))?;
    if bytes.len() as u64 > MOST_DMR {
        let what = format!("it is longer than {MOST_DMR} bytes");
        return Err(DapError::unrepresentable(Document::Dmr, what));
    }
    // Some servers answer with all of the values.
    if bytes.first().is_some_and(|first| *first < b' ' && !first.is_ascii_whitespace()) {
        return Dmr::parse(&Chunks::begin(bytes.as_slice())?.0);
    }
    Dmr::parse(&bytes)
}

impl Dap4 {
    fn known(&self, part: &Part<'_>) -> Result<&Known, DapError> {
        let missing = || DapError::malformed(Document::Constraint, 0, "there is no such variable");
        let known = self.known.get(part.var).ok_or_else(missing)?;
        let rank = known.dims.len();
        if [part.start.len(), part.count.len(), part.stride.len()] == [rank; 3] {
            return Ok(known);
        }
        let what = format!("{} has {rank} dimensions", known.fqn);
        Err(DapError::malformed(Document::Constraint, 0, what))
    }
}

impl Protocol for Dap4 {
    fn model(&self) -> &Model {
        &self.model
    }

    fn request(&self, parts: &[Part<'_>]) -> Result<Request, DapError> {
        let extension = ".dap";
        if !self.heeds_constraints {
            return Ok(Request { extension, query: String::new() });
        }
        let mut clauses = Vec::new();
        for part in parts {
            let known = self.known(part)?;
            let numbers = part.start.iter().zip(part.count).zip(part.stride);
            let dims =
                known.dims.iter().zip(numbers).map(|((name, _), ((start, count), stride))| {
                    (name.as_deref(), *start, *count, *stride)
                });
            clauses.extend(self.query.part(&known.fqn, dims)?);
        }
        Ok(Request { extension, query: self.query.with(&Constraint { clauses }) })
    }

    fn read(
        &self,
        parts: &[Part<'_>],
        body: &mut dyn Read,
        sink: &mut dyn Sink,
    ) -> Result<(), DapError> {
        let mut wanted: HashMap<&str, usize> = HashMap::new();
        for (i, part) in parts.iter().enumerate() {
            wanted.insert(&self.known(part)?.fqn, i);
        }
        // Strings and records are read by a few bytes.
        let body = BufReader::with_capacity(BUFFER, body);
        let (dmr, chunks) = Chunks::begin(body)?;
        let dmr = Dmr::parse(&dmr)?;
        let reading = Names::of(&dmr, self.settings);
        let mut vars = Vec::new();
        list(&dmr.root, "", &mut vars);
        let mut values = Values::new(chunks, self.settings.ignores_checksums);
        for (fqn, var) in vars {
            let layout = reading.layout(var)?;
            let shape = reading.shape(var)?;
            let count = shape.iter().try_fold(1_u64, |product, len| product.checked_mul(*len));
            let part = wanted.remove(fqn.as_str());
            let wrong =
                |what: String| Err(DapError::malformed(Document::Dap, 0, format!("{fqn} {what}")));
            let Some(count) = count else {
                return wrong(format!("has the shape {shape:?}"));
            };
            let asked = part.and_then(|i| Some((i, parts.get(i)?)));
            match asked {
                Some((_, part)) => {
                    let known = self.known(part)?;
                    if layout != known.layout {
                        return wrong("has another type than in the DMR".into());
                    }
                    if shape != part.count {
                        let count = part.count;
                        return wrong(format!(
                            "comes with the shape {shape:?}; {count:?} was asked for"
                        ));
                    }
                }
                None if self.heeds_constraints && count > 0 => {
                    return wrong("comes without having been asked for".into());
                }
                None => {}
            }
            let says_sum = has_checksum(var);
            let mut taker = To { sink, part: asked.map(|(i, _)| i) };
            values.variable(&fqn, &layout, count, says_sum, &mut taker)?;
        }
        if let Some(fqn) = wanted.keys().min() {
            return Err(DapError::malformed(
                Document::Dap,
                0,
                format!("{fqn} was asked for and does not come"),
            ));
        }
        values.finish()
    }

    fn has_pointers(&self, var: usize) -> bool {
        self.known.get(var).is_some_and(|known| known.layout.has_pointers)
    }
}

/// Variables in the order of their values: those of a group, then those of the groups in it.
pub(super) fn list<'a>(group: &'a Group, path: &str, to: &mut Vec<(String, &'a Variable)>) {
    to.extend(group.vars.iter().map(|var| (names::join(path, &var.name), var)));
    for inner in &group.groups {
        list(inner, &names::join(path, &inner.name), to);
    }
}

pub(super) fn has_checksum(var: &Variable) -> bool {
    var.attributes.iter().any(|attribute| {
        attribute.name == super::CHECKSUM && matches!(attribute.value, AttributeValue::Values(..))
    })
}

/// Hands elements on as those of a part, or to nobody.
struct To<'a> {
    sink: &'a mut dyn Sink,
    part: Option<usize>,
}

impl Taker for To<'_> {
    fn plain(&mut self, elements: &[u8]) -> Result<(), DapError> {
        self.part.map_or(Ok(()), |part| self.sink.plain(part, elements))
    }

    fn owned(&mut self, elements: OwnedValues) -> Result<(), DapError> {
        self.part.map_or(Ok(()), |part| self.sink.owned(part, elements))
    }
}

#[cfg(test)]
#[path = "tests/dataset.rs"]
mod tests;
