//! A check that several ranks divide: rank 0 walks the file, and has ranks read boxes of variables. What they find it notes in the order in which
//! one process would, so the text is the same.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use zonda_format::{GroupId, VarRef};
use zonda_model::{NcError, VarId};
use zonda_team::{Step, Team};

use super::data::{BoxReader, VarPlace};
use super::opened;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::ranks::wire::{Reader, Writer, error, put_error};
use crate::ranks::{self, Lead, Reply};

/// A box of a variable that a rank reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BoxOfVar {
    pub rank: usize,
    pub var: VarRef,
    pub start: Vec<u64>,
    pub count: Vec<u64>,
}

/// The order that tells all ranks which boxes of a file they read.
fn order(path: &Path, boxes: &[BoxOfVar]) -> Vec<u8> {
    let mut order = Writer::default();
    order.text(path.as_os_str().as_encoded_bytes());
    order.number(ranks::inode(path));
    for part in boxes {
        order.number(part.rank as u64);
        order.number(part.var.group.0.into());
        order.number(u64::from(part.var.var.0.cast_unsigned()));
        order.numbers(&part.start);
        order.numbers(&part.count);
    }
    order.bytes
}

/// The file of an order, its inode, and the boxes that are for one rank.
fn of_order(order: &[u8], own: usize) -> Result<(PathBuf, u64, Vec<BoxOfVar>)> {
    use std::os::unix::ffi::OsStrExt;
    let mut from = Reader::new(order);
    let path = PathBuf::from(std::ffi::OsStr::from_bytes(from.text()?));
    let inode = from.number()?;
    let mut boxes = Vec::new();
    while !from.is_at_end() {
        let rank = from.len()?;
        let group = u16::try_from(from.number()?).map_err(|_| ranks::wire::unreadable())?;
        let var = u32::try_from(from.number()?).map_err(|_| ranks::wire::unreadable())?;
        let var = VarRef { group: GroupId(group), var: VarId(var.cast_signed()) };
        let (start, count) = (from.numbers()?, from.numbers()?);
        if rank == own {
            boxes.push(BoxOfVar { rank, var, start, count });
        }
    }
    Ok((path, inode, boxes))
}

/// What reading boxes met: of each how many errors, and these.
fn reply(found: impl Iterator<Item = Result<Vec<Error>>>) -> Result<Vec<u8>> {
    let mut reply = Writer::default();
    for errors in found {
        let errors = errors?;
        reply.number(errors.len() as u64);
        errors.iter().for_each(|error| put_error(&mut reply, error));
    }
    Ok(reply.bytes)
}

/// Has all ranks read boxes, this one with `read`; gives the errors of each.
pub(super) fn read_by_ranks(
    lead: &Lead,
    path: &Path,
    boxes: &[BoxOfVar],
    read: &mut dyn FnMut(&BoxOfVar) -> Result<Vec<Error>>,
) -> Result<Vec<Vec<Error>>> {
    lead.order(&order(path, boxes))?;
    let own = reply(boxes.iter().filter(|part| part.rank == 0).map(read));
    let mut replies = lead.replies()?;
    replies.push(Reply { rank: 0, said: own });
    let mut readers = BTreeMap::new();
    for Reply { rank, said } in &replies {
        if let Ok(said) = said {
            readers.insert(*rank, Reader::new(said));
        }
    }
    let mut found = Vec::with_capacity(boxes.len());
    for part in boxes {
        let Some(from) = readers.get_mut(&part.rank) else {
            let failed = replies.iter().find(|reply| reply.rank == part.rank);
            let why = failed.and_then(|reply| reply.said.as_ref().err()).map(ranks::again);
            return Err(why.unwrap_or_else(ranks::wire::unreadable));
        };
        let n = from.number()?;
        let mut errors = Vec::new();
        for _ in 0..n {
            if from.is_at_end() {
                return Err(ranks::wire::unreadable());
            }
            // Where a file is damaged it is damaged for all ranks.
            errors.push(error(from, None));
        }
        found.push(errors);
    }
    Ok(found)
}

/// Reads what rank 0 orders in checks ([`check_with`](super::check_with)), on another rank.
///
/// # Errors
/// `NC_EMPI` where the ranks do not come together. All other errors are rank 0's to tell.
pub fn follow_check(team: &dyn Team, step: Step<'_>) -> Result<()> {
    let own = team.rank();
    let mut file: Option<(PathBuf, Dataset)> = None;
    ranks::follow(team, step, &mut |order| {
        let (path, inode, boxes) = of_order(order, own)?;
        if boxes.is_empty() {
            return Ok(None);
        }
        ranks::check_file(&path, inode)?;
        if file.as_ref().is_none_or(|(known, _)| *known != path) {
            file = Some((path.clone(), opened(&path)?));
        }
        let Some((_, file)) = &file else { return Err(NcError::Internal.into()) };
        let mut reader = BoxReader::default();
        let read = |part: &BoxOfVar| {
            let place = VarPlace::of(file, part.var)?;
            reader.errors(file, &place, (&part.start, &part.count), &mut || Ok(()))
        };
        reply(boxes.iter().map(read)).map(Some)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_by_whom_they_are_for() {
        let part = |rank, var| BoxOfVar {
            rank,
            var: VarRef { group: GroupId(7), var: VarId(var) },
            start: vec![0, 5],
            count: vec![1, 2],
        };
        let path = Path::new("/a/b.nc");
        let said = order(path, &[part(1, 0), part(2, 1), part(1, 2)]);
        let (file, _, boxes) = of_order(&said, 1).unwrap();
        assert_eq!((&*file, boxes), (path, vec![part(1, 0), part(1, 2)]));
        assert!(of_order(&said, 5).unwrap().2.is_empty());
        assert!(of_order(&said[..said.len() - 1], 1).is_err());
    }
}
