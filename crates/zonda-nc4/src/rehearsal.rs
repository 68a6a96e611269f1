//! The objects of a remote file come before the walk does: each level of the structures in one go ([`Rehearsal`]).
//!
//! What is looked at here is what the walk and inquiries look at later: headers, links, types, attributes and the strings that these
//! refer to. What is found is dropped; only the storage keeps it.

use std::sync::Arc;

use hashbrown::HashSet;
use zonda_hdf5::message::{Class, Datatype, LinkTarget};
use zonda_hdf5::{Attributes, File, FileAddr, Object, ObjectKind, Reader, Rehearsal};
use zonda_storage::Storage;

use crate::element_form::ElementForm;
use crate::fault::HdfResult;
use crate::tuning::REHEARSAL_ROUNDS;
use crate::values::add_collections;
use crate::var_data::{FilterFinder, unfilter};

/// Has the metadata of all objects come that hard links of a remote file lead to. Does nothing where a read is a system call.
///
/// # Errors
/// What the server did not send. Damage is met again by the walk.
pub(crate) fn fetch_objects(main: &File, find: &FilterFinder) -> HdfResult<()> {
    let Some(rehearsal) = Rehearsal::on(main.storage()) else { return Ok(()) };
    let Some(file) = open(&rehearsal, find)? else { return Ok(()) };
    let mut seen: HashSet<FileAddr> = HashSet::new();
    seen.insert(file.root());
    let mut waiting = vec![file.root()];
    for _ in 0..REHEARSAL_ROUNDS {
        let mut again = Vec::new();
        // Objects that a group leads to are visited with the others of this round.
        while let Some(addr) = waiting.pop() {
            let before = rehearsal.n_misses();
            let visited = visit(&file, addr, &mut |member| {
                if seen.insert(member) {
                    waiting.push(member);
                }
            });
            match visited {
                _ if rehearsal.n_misses() != before => again.push(addr),
                Err(error) if error.is_remote() => return Err(error),
                _ => {}
            }
        }
        if again.is_empty() || !rehearsal.fetch() {
            break;
        }
        // In the order in which they were met.
        again.reverse();
        waiting = again;
    }
    Ok(())
}

/// Opens the file on the rehearsal; `None` where the walk will say what is wrong with it.
fn open(rehearsal: &Arc<Rehearsal>, find: &FilterFinder) -> HdfResult<Option<File>> {
    loop {
        let before = rehearsal.n_misses();
        match File::open(Arc::clone(rehearsal) as Arc<dyn Storage>) {
            Ok(file) => return Ok(Some(file.with_unfilter(unfilter(find.clone())))),
            Err(_) if rehearsal.n_misses() != before => {
                if !rehearsal.fetch() {
                    return Ok(None);
                }
            }
            Err(error) if error.is_remote() => return Err(error),
            Err(_) => return Ok(None),
        }
    }
}

/// Reads what the walk and inquiries read of an object, and tells of the members that a group has. Goes on where something is not here
/// yet, so that all of it is asked for together.
fn visit(file: &File, addr: FileAddr, member: &mut dyn FnMut(FileAddr)) -> HdfResult<()> {
    let object = file.object(addr)?;
    let mut first = Ok(());
    let mut keep = |read: HdfResult<()>| {
        if let Err(error) = read
            && error.is_remote()
            && first.is_ok()
        {
            first = Err(error);
        }
    };
    let kind = object.kind();
    if kind == ObjectKind::Group {
        keep(object.links(file).map(|links| {
            for link in links {
                if let LinkTarget::Hard(addr) = link.target {
                    member(addr);
                }
            }
        }));
    }
    if matches!(kind, ObjectKind::Dataset | ObjectKind::Datatype) {
        keep(object.datatype(file).map(drop));
    }
    if kind == ObjectKind::Dataset {
        keep(object.dataspace(file).map(drop));
        keep(object.fill_value(file).map(drop));
        keep(object.filters(file).map(drop));
        keep(object.layout(file).map(drop));
        keep(object.external_files(file).map(drop));
    }
    keep(object.attributes(file).and_then(|attributes| fetch_values(file, &object, &attributes)));
    first
}

/// Has the strings and sequences of attributes come.
fn fetch_values(file: &File, object: &Object, attributes: &Attributes) -> HdfResult<()> {
    let mut collections = Vec::new();
    for i in 0..attributes.len() {
        let attribute = match attributes.decode(i, file) {
            Ok(attribute) => attribute,
            Err(error) if error.is_remote() => return Err(error),
            Err(_) => continue,
        };
        match ElementForm::of(&attribute.datatype) {
            Some(form) => {
                add_collections(&form, &attribute.data, file.sizes(), &mut collections);
            }
            None => add_outer(file, object, &attribute.datatype, &attribute.data, &mut collections),
        }
    }
    file.fetch_collections(collections)
}

/// Adds the collections of sequences whose items netCDF does not know, such as references to regions.
fn add_outer(
    file: &File,
    object: &Object,
    datatype: &Datatype,
    data: &[u8],
    found: &mut Vec<FileAddr>,
) {
    let size = usize::try_from(datatype.size).unwrap_or(0);
    if !matches!(datatype.class, Class::VarLenSequence { .. }) || size == 0 {
        return;
    }
    for element in data.chunks_exact(size) {
        let mut reader: Reader<'_> = file.reader("sequence", object.addr(), element);
        let n_items = reader.u32().unwrap_or(0);
        let addr = reader.addr().ok().flatten().filter(|addr| n_items > 0 && addr.0 != 0);
        found.extend(addr);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_rehearsed_where_a_read_is_a_system_call() {
        let storage: Arc<dyn Storage> = Arc::new(zonda_storage::backend::Memory::new());
        assert!(Rehearsal::on(&storage).is_none());
        let file = File::create(storage, 0).unwrap();
        assert!(fetch_objects(&file, &None).is_ok());
    }
}
