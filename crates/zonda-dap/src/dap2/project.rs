//! What the constraint of a URL does to the variables of a dataset: which slices the variables of the constrained DDS are of, and which of them are fields of
//! grids that the server gave without their grid.

use std::collections::HashMap;

use crate::dap2::constraint::{Projection, Segment, Slice};
use crate::dap2::dds::{Dds, Kind};
use crate::error::{DapError, Document};

fn error(what: String) -> DapError {
    DapError::malformed(Document::Constraint, 0, what)
}

/// The node of the whole DDS that a path means: the first names may be left out, as the reference and libdap have it. Of several the one with the
/// shortest full name.
fn resolve(full: &Dds, path: &[Segment]) -> Result<usize, DapError> {
    let shown = || path.iter().map(|segment| segment.name.as_str()).collect::<Vec<_>>().join(".");
    let Some(last) = path.last() else { return Err(error("a projection is empty".into())) };
    let mut best: Option<(usize, usize)> = None;
    let mut is_ambiguous = false;
    for id in full.ids().filter(|id| full.node(*id).name == last.name) {
        let nodes = full.path(id);
        let Some(from) = nodes.len().checked_sub(path.len()) else { continue };
        let fits = nodes.iter().skip(from).zip(path).all(|(id, segment)| {
            let node = full.node(*id);
            let rank = match node.kind {
                Kind::Sequence => 1,
                // Slices of a grid are those of its array.
                Kind::Grid => node.children.first().map_or(0, |array| full.node(*array).dims.len()),
                _ => node.dims.len(),
            };
            node.name == segment.name && (segment.slices.is_empty() || segment.slices.len() == rank)
        });
        if !fits {
            continue;
        }
        match best {
            Some((_, len)) if len < nodes.len() => {}
            Some((_, len)) if len == nodes.len() => is_ambiguous = true,
            _ => {
                best = Some((id, nodes.len()));
                is_ambiguous = false;
            }
        }
    }
    match best {
        Some((id, _)) if !is_ambiguous => Ok(id),
        Some(_) => Err(error(format!("{} may be several variables", shown()))),
        None => Err(error(format!("there is no {} with so many dimensions", shown()))),
    }
}

/// Slices that projections make of the nodes of a whole DDS.
#[derive(Debug, Default)]
pub(crate) struct Slices {
    of: HashMap<usize, Vec<Slice>>,
}

impl Slices {
    /// Those of all projections. A function of the server says nothing of slices.
    pub(crate) fn of(full: &Dds, projections: &[Projection]) -> Result<Slices, DapError> {
        let mut slices = Slices::default();
        for projection in projections {
            let Projection::Path(path) = projection else { continue };
            let id = resolve(full, path)?;
            let nodes = full.path(id);
            let from = nodes.len().saturating_sub(path.len());
            for (id, segment) in nodes.iter().skip(from).zip(path) {
                slices.add(full, *id, &segment.slices)?;
            }
        }
        Ok(slices)
    }

    fn add(&mut self, full: &Dds, id: usize, list: &[Slice]) -> Result<(), DapError> {
        if list.is_empty() {
            return Ok(());
        }
        let node = full.node(id);
        if node.kind == Kind::Grid {
            let mut fields = node.children.iter();
            if let Some(array) = fields.next() {
                self.add(full, *array, list)?;
            }
            return fields
                .zip(list)
                .try_for_each(|(map, slice)| self.add(full, *map, std::slice::from_ref(slice)));
        }
        if self.of.get(&id).is_some_and(|before| before != list) {
            return Err(error(format!(
                "{} is asked for with different slices",
                full.full_name(id)
            )));
        }
        self.of.insert(id, list.to_vec());
        Ok(())
    }

    /// The slice of a dimension of a node; the whole of `len` elements where there is none.
    pub(crate) fn slice(&self, id: usize, dim: usize) -> Option<Slice> {
        self.of.get(&id).and_then(|list| list.get(dim)).copied()
    }
}

/// A constrained DDS beside the whole one.
#[derive(Debug)]
pub(crate) struct Matched {
    /// The node of the whole DDS for each node.
    pub(crate) full: HashMap<usize, usize>,
    /// Fields of grids that the server gave without their grid, and the name of it.
    pub(crate) grids: HashMap<usize, String>,
}

/// Whether a node can be the other one: a grid of which only some fields were asked for comes as a structure.
fn is_like(one: &Dds, id: usize, other: &Dds, other_id: usize) -> bool {
    let (node, wanted) = (one.node(id), other.node(other_id));
    let is_container = |kind: Kind| matches!(kind, Kind::Grid | Kind::Structure);
    let is_kind =
        node.kind == wanted.kind || (is_container(node.kind) && is_container(wanted.kind));
    is_kind && node.name == wanted.name && node.dims.len() == wanted.dims.len()
}

impl Matched {
    /// A DDS beside itself.
    pub(crate) fn same(dds: &Dds) -> Matched {
        Matched {
            full: std::iter::once(0).chain(dds.ids()).map(|id| (id, id)).collect(),
            grids: HashMap::new(),
        }
    }
}

/// Finds each node of a constrained DDS in the whole one.
pub(crate) fn matched(dds: &Dds, full: &Dds) -> Result<Matched, DapError> {
    // By container and name: fields, and fields of the grids in it.
    let mut fields: HashMap<(usize, &str), usize> = HashMap::new();
    let mut in_grids: HashMap<(usize, &str), Vec<(usize, usize)>> = HashMap::new();
    for id in full.ids() {
        let node = full.node(id);
        let parent = node.parent.unwrap_or(0);
        fields.entry((parent, &node.name)).or_insert(id);
        if full.node(parent).kind == Kind::Grid {
            let around = full.node(parent).parent.unwrap_or(0);
            in_grids.entry((around, &node.name)).or_default().push((parent, id));
        }
    }
    let mut found = Matched { full: HashMap::from([(0, 0)]), grids: HashMap::new() };
    for id in dds.ids() {
        let node = dds.node(id);
        let Some(parent) = node.parent.and_then(|parent| found.full.get(&parent)).copied() else {
            continue;
        };
        let key = (parent, node.name.as_str());
        let same = fields.get(&key).copied().filter(|other| is_like(dds, id, full, *other));
        // The array or a map of a grid, without the grid.
        let in_grid = || {
            in_grids.get(&key)?.iter().copied().find(|(_, field)| is_like(dds, id, full, *field))
        };
        if let Some(other) = same {
            found.full.insert(id, other);
        } else if let Some((grid, field)) = in_grid() {
            found.full.insert(id, field);
            found.grids.insert(id, full.node(grid).name.clone());
        } else {
            let what = format!("{} came, which the dataset does not have so", dds.full_name(id));
            return Err(DapError::malformed(Document::Dds, 0, what));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dap2::constraint::Constraint;

    const FULL: &str = "Dataset {
        Grid { ARRAY: Byte SST[t=5][x=4]; MAPS: Int32 t[t=5]; Int32 x[x=4]; } SST;
        Structure { Int32 i[3]; Structure { Int32 deep; } in; } s;
        Sequence { Int32 a; } q;
        Structure { Int32 deep; } other;
    } d;";

    fn slices(constraint: &str) -> Result<Slices, DapError> {
        let full = Dds::decode(FULL.as_bytes()).unwrap();
        Slices::of(&full, &Constraint::decode(constraint).unwrap().projections)
    }

    #[test]
    fn projections_become_slices_of_nodes() {
        let full = Dds::decode(FULL.as_bytes()).unwrap();
        let of = |constraint: &str, name: &str, dim| {
            let id = full.ids().find(|id| full.full_name(*id) == name).unwrap();
            slices(constraint).unwrap().slice(id, dim).map(|slice| slice.to_string())
        };
        assert_eq!(of("SST[0:2:4][3]", "SST.SST", 1).unwrap(), "[3]");
        assert_eq!(of("SST[0:2:4][3]", "SST.x", 0).unwrap(), "[3]");
        assert_eq!(of("SST.t[1:2]", "SST.t", 0).unwrap(), "[1:2]");
        assert_eq!(of("SST.t[1:2]", "SST.SST", 0), None);
        assert_eq!(of("i[2]", "s.i", 0).unwrap(), "[2]");
        assert_eq!(of("q[1:3].a", "q", 0).unwrap(), "[1:3]");
        let wrong = |constraint: &str| slices(constraint).unwrap_err().to_string();
        assert!(wrong("SST[1]").contains("no SST with so many dimensions"));
        assert!(wrong("none").contains("there is no none"));
        assert!(wrong("s.i[1],s.i[2]").contains("s.i is asked for with different slices"));
        slices("other.deep,in.deep,deep").unwrap();
    }

    #[test]
    fn fields_of_grids_are_found_without_their_grid() {
        let full = Dds::decode(FULL.as_bytes()).unwrap();
        let dds =
            Dds::decode(b"Dataset { Byte SST[t=2][x=1]; Structure { Int32 x[x=1]; } SST1; } d;")
                .unwrap();
        assert!(matched(&dds, &full).is_err());
        let dds = Dds::decode(
            b"Dataset { Byte SST[t=2][x=1]; Int32 x[x=1]; Structure { Int32 i[1]; } s; } d;",
        )
        .unwrap();
        let found = matched(&dds, &full).unwrap();
        let name = |id: usize| full.full_name(found.full[&id]);
        assert_eq!(dds.ids().map(name).collect::<Vec<_>>().join(" "), "SST.SST SST.x s s.i");
        assert_eq!((found.grids.len(), found.grids[&2].as_str()), (2, "SST"));
        let dds = Dds::decode(b"Dataset { Structure { Byte SST[t=2][x=1]; } SST; } d;").unwrap();
        let found = matched(&dds, &full).unwrap();
        assert!(found.grids.is_empty());
    }
}
