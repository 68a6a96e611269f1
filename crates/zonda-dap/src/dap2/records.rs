//! How many records sequences have.

use std::collections::HashMap;

use crate::dap2::body::{Body, Visitor};
use crate::dap2::constraint::{Projection, Segment, Slice};
use crate::dap2::dataset::{find, lacks};
use crate::dap2::dds::{Dds, Kind};
use crate::dap2::fetch::ask;
use crate::dap2::limits::MAX_RECORDS;
use crate::error::{DapError, Document};
use crate::protocol::Server;

/// Counts records, and takes nothing.
struct Count {
    records: HashMap<usize, u64>,
    /// How many a sequence may have.
    most: u64,
}

impl Count {
    fn up_to(most: u64) -> Count {
        Count { records: HashMap::new(), most }
    }
}

impl Visitor for Count {
    fn wants(&self, _node: usize) -> Option<usize> {
        None
    }

    fn count(&mut self, _node: usize, _count: u64) -> Result<(), DapError> {
        Ok(())
    }

    fn numbers(&mut self, _node: usize, _elements: &[u8]) -> Result<(), DapError> {
        Ok(())
    }

    fn text(&mut self, _node: usize, _text: &[u8]) -> Result<(), DapError> {
        Ok(())
    }

    fn record(&mut self, node: usize) -> Result<(), DapError> {
        let records = self.records.entry(node).or_insert(0);
        *records = records.saturating_add(1);
        if *records > self.most {
            let most = self.most;
            let what = format!(
                "a sequence has more than {most} records: limit=N in the URL asks for the first N"
            );
            return Err(DapError::Unrepresentable { document: Document::Dods, what });
        }
        Ok(())
    }

    fn end(&mut self, node: usize) -> Result<(), DapError> {
        self.records.entry(node).or_insert(0);
        Ok(())
    }
}

/// The field of a sequence that takes the fewest bytes, as the reference chooses it: numbers before texts, scalars before arrays.
fn shortest_field(dds: &Dds, sequence: usize) -> usize {
    let mut at = sequence;
    loop {
        let fields = &dds.node(at).children;
        let cost = |id: &usize| match dds.node(*id).kind {
            Kind::Atomic(atomic) => Some((atomic.is_text(), !dds.node(*id).dims.is_empty())),
            _ => None,
        };
        let best =
            fields.iter().filter_map(|id| Some((cost(id)?, *id))).min_by_key(|(cost, _)| *cost);
        if let Some((_, id)) = best {
            return id;
        }
        let is_container =
            |id: &&usize| matches!(dds.node(**id).kind, Kind::Structure | Kind::Grid);
        match fields.iter().rfind(is_container) {
            Some(id) => at = *id,
            None => return at,
        }
    }
}

/// Numbers of records of all sequences, from the response to `query`, which has everything.
pub(super) fn count_all(
    server: &dyn Server,
    query: &str,
    dds: &Dds,
    sequences: &[usize],
) -> Result<HashMap<usize, u64>, DapError> {
    let mut body = ask(server, Document::Dods, ".dods", query)?;
    let body = Body::open(&mut body)?;
    let theirs = body.dds().clone();
    let mut count = Count::up_to(MAX_RECORDS);
    body.values(&mut count)?;
    let mut records = HashMap::new();
    for id in sequences {
        let path: Vec<&str> = dds.path(*id).iter().map(|id| dds.node(*id).name.as_str()).collect();
        let n = find(&theirs, &path).and_then(|id| count.records.get(&id));
        records.insert(*id, *n.ok_or_else(|| lacks(&path))?);
    }
    Ok(records)
}

/// The number of records of one sequence.
pub(super) fn count_one(
    server: &dyn Server,
    conditions: &str,
    dds: &Dds,
    id: usize,
    slice: Option<Slice>,
    most: Option<u64>,
) -> Result<u64, DapError> {
    let slice = slice
        .or_else(|| most.map(|most| Slice { first: 0, stride: 1, last: most.saturating_sub(1) }));
    let segment = |node: usize| Segment {
        name: dds.node(node).name.clone(),
        slices: if node == id {
            slice.into_iter().collect()
        } else {
            dds.node(node).dims.iter().map(|_| Slice { first: 0, stride: 1, last: 0 }).collect()
        },
    };
    let path: Vec<Segment> = dds.path(shortest_field(dds, id)).into_iter().map(segment).collect();
    let names: Vec<String> = dds.path(id).into_iter().map(|id| dds.node(id).name.clone()).collect();
    let query = format!("{}{}", Projection::Path(path), conditions);
    let mut body = ask(server, Document::Dods, ".dods", &query)?;
    let body = Body::open(&mut body)?;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let theirs = find(body.dds(), &names).ok_or_else(|| lacks(&names))?;
    let mut count = Count::up_to(most.unwrap_or(0).max(MAX_RECORDS));
    body.values(&mut count)?;
    Ok(count.records.get(&theirs).copied().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_without_end_are_not_counted_without_end() {
        let mut count = Count::up_to(3);
        (0..3).for_each(|_| count.record(0).unwrap());
        count.record(1).unwrap();
        let error = count.record(0).unwrap_err().to_string();
        assert!(error.contains("more than 3 records: limit=N"), "{error}");
        assert_eq!(count.records[&1], 1);
    }
}
