//! Attributes of an object that a commit writes: in its header, or in a heap outside of it.

use std::sync::Arc;

use zonda_hdf5::attributes::{DenseAttributes, DenseChange, NewAttribute};
use zonda_hdf5::message::AttributeInfo;
use zonda_hdf5::object_header::NewMessage;
use zonda_hdf5::{HdfError, NewBlocks};

use super::super::plan::ChangedMessages;
use super::{CommitLayout, hash_of};
use crate::fault::HdfResult;
use crate::write::att_list::AttListStamp;
use crate::write::objects::{AttMessage, Dense, DenseList, Outside, StoredObject};
use crate::write::{ObjectKey, header};

impl CommitLayout<'_> {
    /// Adds the attributes of an object to its messages, or writes them outside of the header, and adds the message about
    /// them.
    pub(super) fn attributes(
        &mut self,
        atts: &[&AttMessage],
        stored: &StoredObject,
        moves: bool,
        dense: Option<&mut Vec<Dense>>,
        out: &mut Vec<NewMessage>,
    ) -> HdfResult<()> {
        let tracked = stored.style.flags & header::TRACKED != 0;
        let indexed = stored.style.flags & header::INDEXED != 0;
        let too_many =
            HdfError::TooLarge { structure: "number of attributes", value: atts.len() as u64 };
        let count = u16::try_from(atts.len()).map_err(|_| too_many)?;
        let mut info = AttributeInfo {
            tracked,
            indexed,
            max_creation_index: tracked.then_some(count),
            heap: None,
            name_index: None,
            order_index: None,
        };
        // A header of version 1 has all attributes itself.
        let is_old = stored.style.version == 1;
        if is_old || fit_header(atts.iter().copied()) {
            if !is_old {
                out.push(header::attribute_info(&info, self.sizes)?);
            }
            out.extend((0..).zip(atts).map(|(order, att)| header::attribute(att, Some(order))));
            return Ok(());
        }
        if let Some(dense) = dense {
            let hash = Some(hash_of(atts));
            let before = stored.dense.iter().filter(|dense| dense.hash == hash && !moves);
            let mut before = before.filter_map(|dense| match dense.what {
                Outside::Attributes(info) => Some((dense, info)),
                _ => None,
            });
            if let Some((before, same)) = before.next() {
                info = same;
                dense.push(before.clone());
            } else {
                let new = (0..).zip(atts).map(|(order, att)| NewAttribute {
                    name: &att.name,
                    message: &att.body,
                    order: Some(order),
                });
                let new: Vec<_> = new.collect();
                let mut fresh = NewBlocks::new(&mut self.writing.space);
                let list = DenseAttributes::new(&new, &info, self.sizes, &mut fresh)?;
                let blocks = fresh.into_blocks();
                self.out.take(blocks);
                info = *list.info();
                dense.push(attribute_list(hash, list));
            }
        }
        out.push(header::attribute_info(&info, self.sizes)?);
        Ok(())
    }

    /// Writes changes of attributes that are outside of the header and stay there, and adds the message about them.
    pub(super) fn changed_attributes(
        &mut self,
        key: ObjectKey,
        changed: &ChangedMessages,
        stored: &StoredObject,
        dense: Option<&mut Vec<Dense>>,
        out: &mut Vec<NewMessage>,
    ) -> HdfResult<()> {
        let before = stored.dense.iter().find_map(|dense| Some((dense, dense.list.as_ref()?)));
        let missing = HdfError::Missing { structure: "object", at: 0, what: "its attributes" };
        let (before, list) = before.ok_or(missing)?;
        let mut info = *list.atts.info();
        if let Some(dense) = dense {
            // The list of changes does not have attributes that netCDF does not show.
            let known =
                self.writing.stored.objects.get(&key).map_or(&[][..], |known| &known.hidden);
            let is_new = |att: &&AttMessage| !known.contains(att);
            let is_gone = |att: &&AttMessage| !stored.says(&att.name);
            let new: Vec<_> = stored.hidden.iter().filter(is_new).collect();
            let gone: Vec<_> = known.iter().filter(is_gone).map(|att| &att.name).collect();
            let n = [new.len(), gone.len(), changed.set.len(), changed.gone.len()];
            if n == [0; 4] {
                dense.push(before.clone());
            } else {
                let mut atts = DenseAttributes::clone(&list.atts);
                gone.into_iter().chain(&changed.gone).for_each(|name| atts.remove(name));
                let mut fresh = NewBlocks::new(&mut self.writing.space);
                let set = changed.set.iter().map(|(att, stays)| (att, *stays));
                for (att, stays) in new.into_iter().map(|att| (att, true)).chain(set) {
                    atts.set(&att.name, &att.body, stays, &mut fresh)?;
                }
                let DenseChange { heap_header, freed } = atts.write(&mut fresh)?;
                let blocks = fresh.into_blocks();
                self.out.take(blocks);
                self.out.freed.extend(freed);
                self.out.decided.heaps.extend(heap_header);
                info = *atts.info();
                dense.push(attribute_list(None, atts));
            }
        }
        out.push(header::attribute_info(&info, self.sizes)?);
        Ok(())
    }
}

/// Whether a header of version 2 has these attributes itself.
pub(super) fn fit_header<'a>(atts: impl Iterator<Item = &'a AttMessage>) -> bool {
    let mut n = 0usize;
    let mut fits = true;
    for att in atts {
        n = n.saturating_add(1);
        fits &= att.body.len() <= usize::from(u16::MAX);
    }
    fits && n <= usize::from(header::PHASE_CHANGE.0)
}

/// A list of attributes outside of a header, as this commit lays it out.
fn attribute_list(hash: Option<u64>, atts: DenseAttributes) -> Dense {
    let what = Outside::Attributes(*atts.info());
    let list = Some(DenseList { stamp: AttListStamp::new(), atts: Arc::new(atts) });
    Dense { hash, what, extents: Vec::new(), list }
}
