//! Attributes of an object that a commit writes: all of them, or those that changed.

use super::Planner;
use crate::Result;
use crate::attribute::AttList;
use crate::hidden_atts;
use crate::write::att_list::ChangedAtts;
use crate::write::objects::AttMessage;
use crate::write::{EditedAtts, ObjectKey, element, header};

/// Most attributes that netCDF does not show which a commit can give an object.
const MARKS: usize = 8;

/// The attributes of an object that is written.
#[derive(Debug)]
pub(in crate::write::commit) enum PlannedAtts {
    /// All of them.
    All(Vec<AttMessage>),
    /// Changes of those that the file has outside of the header.
    Changed(ChangedMessages),
}

/// Changes of attributes, as messages: see [`ChangedAtts`].
#[derive(Debug, Default)]
pub(in crate::write::commit) struct ChangedMessages {
    pub(in crate::write::commit) gone: Vec<Box<[u8]>>,
    pub(in crate::write::commit) set: Vec<(AttMessage, bool)>,
}

impl Planner<'_> {
    /// The attributes that a commit writes, without those that netCDF keeps for itself.
    pub(super) fn attributes(&mut self, key: ObjectKey) -> Result<PlannedAtts> {
        let details = match key {
            ObjectKey::Group(id) => self.model.group(id).and_then(|group| group.details.get()),
            ObjectKey::Var(group, id) => {
                self.model.var(group, id).and_then(|var| var.details.get())
            }
            ObjectKey::Scale(_) | ObjectKey::Type(_) => None,
        };
        let file = self.files.main();
        let edited = match details.map(|details| &details.atts) {
            Some(Ok(AttList::Edited(list))) => Some(&**list),
            _ => None,
        };
        if let Some(changed) = self.changed_attributes(key, edited)? {
            return Ok(PlannedAtts::Changed(changed));
        }
        let mut out = Vec::new();
        if let Some(list) = edited {
            let (heap, space) = self.writing.heap_and_space();
            let attributes = list.attributes(self.model, &mut |form, fetch, src, dst| {
                element::encode(form, heap, space, fetch, src, dst)
            });
            let attributes = attributes.map_err(|fault| self.fault(key, fault))?;
            self.count_released(list);
            for attribute in attributes {
                let message = AttMessage::new(file, &attribute);
                out.push(message.map_err(|error| self.fault(key, error))?);
            }
            return Ok(PlannedAtts::All(out));
        }
        let fail = |error| self.fault(key, error);
        let Some(at) = self.place(key) else { return Ok(PlannedAtts::All(out)) };
        let attributes = file.object(at.addr).and_then(|object| object.attributes(file));
        let attributes = attributes.map_err(fail)?;
        for index in 0..attributes.len() {
            if !hidden_atts::is_reserved(attributes.name(index)) {
                let attribute = attributes.decode(index, file).map_err(fail)?;
                out.push(AttMessage::new(file, &attribute).map_err(fail)?);
            }
        }
        Ok(PlannedAtts::All(out))
    }

    /// Changes of the attributes of an object that has them outside of its header; `None` where all of them have to be
    /// written: if the changes are not known, or the attributes come into the header, or more than a quarter changed.
    fn changed_attributes(
        &mut self,
        key: ObjectKey,
        edited: Option<&EditedAtts>,
    ) -> Result<Option<ChangedMessages>> {
        let stored = self.writing.stored.objects.get(&key);
        let known = stored.and_then(|stored| Some((stored, stored.att_list()?)));
        let Some((stored, before)) = known.filter(|_| !self.writing.commits.tidying.contains(&key))
        else {
            return Ok(None);
        };
        let n_hidden = stored.hidden.len();
        let n_before = usize::try_from(before.atts.len()).unwrap_or(usize::MAX);
        let (n_left, n_changed) = match edited {
            Some(list) => (list.n_stored(), list.n_changed(before.stamp)),
            None => (n_before.saturating_sub(n_hidden), Some(0)),
        };
        let Some(n_changed) = n_changed.filter(|n| *n <= n_before / 4) else { return Ok(None) };
        // Attributes that netCDF does not show may change, too.
        let can_take =
            before.atts.can_take(n_changed.saturating_add(n_hidden).saturating_add(MARKS));
        if n_left <= usize::from(header::PHASE_CHANGE.0) || !can_take {
            return Ok(None);
        }
        let mut out = ChangedMessages::default();
        let Some(list) = edited else { return Ok(Some(out)) };
        let (heap, space) = self.writing.heap_and_space();
        let changes = list.changes(self.model, &mut |form, fetch, src, dst| {
            element::encode(form, heap, space, fetch, src, dst)
        });
        let ChangedAtts { gone, set } = changes.map_err(|fault| self.fault(key, fault))?;
        self.count_released(list);
        out.gone = gone;
        for (attribute, stays) in set {
            let message = AttMessage::new(self.files.main(), &attribute);
            out.set.push((message.map_err(|error| self.fault(key, error))?, stays));
        }
        Ok(Some(out))
    }

    /// Counts the committed types of attributes that were removed from a list.
    fn count_released(&mut self, list: &EditedAtts) {
        for addr in list.released() {
            let count = self.released.entry(*addr).or_default();
            *count = count.saturating_add(1);
        }
    }
}
