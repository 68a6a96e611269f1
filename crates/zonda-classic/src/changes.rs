//! What completing a journal would change, in words: for the user who has to decide whether to trust another user's journal.

use std::fmt::Write;

use zonda_model::ExtType;

use crate::atts::{AttRef, Atts};
use crate::codec::decode_header;
use crate::error::shown;
use crate::header::{Header, Var};
use crate::journal::{ChangeKind, JournalBody};
use crate::moving::MovedRuns;

/// The most characters of a text that are shown.
const TEXT: usize = 60;

impl JournalBody {
    /// What completing it changes, one line each.
    pub(crate) fn changes(&self) -> Vec<String> {
        let mut lines =
            vec![format!("bytes 0 to {}: the header", self.new.len().saturating_sub(1))];
        // A torn header is no longer the old one; the new header says what there will be.
        let (old, new) = (decode_header(&self.old), decode_header(&self.new));
        let (Ok((old, old_records)), Ok((new, new_records))) = (old, new) else {
            lines.push("its new or its old definitions cannot be read".to_owned());
            return lines;
        };
        if matches!(self.kind, ChangeKind::Move { .. }) {
            let bytes = MovedRuns::new(&old, &new, self.n_records, self.stored).moved_bytes();
            lines.push(format!("{bytes} bytes of data move towards the end of the file"));
        }
        if old_records != new_records {
            lines.push(format!("number of records: {old_records} becomes {new_records}"));
        }
        definitions(&old, &new, &mut lines);
        lines
    }
}

fn definitions(old: &Header, new: &Header, lines: &mut Vec<String>) {
    for (id, dim) in new.dims.iter().enumerate() {
        let name = shown(&dim.name);
        match old.dims.get(id) {
            None => lines.push(format!("dimension {name}: new, of length {}", dim.len)),
            Some(before) if before != dim => lines.push(format!(
                "dimension {} of length {}: becomes {name} of length {}",
                shown(&before.name),
                before.len,
                dim.len
            )),
            Some(_) => {}
        }
    }
    attributes("", &old.atts, &new.atts, lines);
    for (id, var) in new.vars.iter().enumerate() {
        let name = shown(&var.name);
        let Some(before) = old.vars.get(id) else {
            lines.push(format!("variable {name}: new, of type {}", var.ty.name()));
            attributes(&name, &Atts::default(), &var.atts, lines);
            continue;
        };
        if before.name != var.name {
            lines.push(format!("variable {}: becomes {name}", shown(&before.name)));
        }
        let stored = |var: &Var| (var.ty, var.dims.clone());
        if stored(before) != stored(var) {
            lines.push(format!("variable {name}: gets another type or other dimensions"));
        } else if before.begin != var.begin {
            let (from, to) = (before.begin, var.begin);
            lines.push(format!("variable {name}: its data begin at byte {to}, not {from}"));
        }
        attributes(&name, &before.atts, &var.atts, lines);
    }
    if new.dims.len() < old.dims.len() || new.vars.len() < old.vars.len() {
        lines.push("dimensions or variables go".to_owned());
    }
}

fn attributes(of: &str, old: &Atts, new: &Atts, lines: &mut Vec<String>) {
    for att in new.iter() {
        let name = shown(att.name);
        match old.iter().find(|before| before.name == att.name) {
            None => lines.push(format!("attribute {of}:{name}: new, {}", value(&att))),
            Some(before) if before != att => {
                let (before, after) = (value(&before), value(&att));
                lines.push(format!("attribute {of}:{name}: {before} becomes {after}"));
            }
            Some(_) => {}
        }
    }
    for att in old.iter().filter(|att| !new.iter().any(|after| after.name == att.name)) {
        lines.push(format!("attribute {of}:{}: goes", shown(att.name)));
    }
}

/// `"text"`, or type and number of values.
fn value(att: &AttRef<'_>) -> String {
    if att.ty != ExtType::Char {
        return format!("{} of type {}", att.len, att.ty.name());
    }
    let text = String::from_utf8_lossy(att.bytes);
    let mut short: String = text.chars().take(TEXT).flat_map(char::escape_debug).collect();
    short.insert(0, '"');
    short.push('"');
    if text.chars().count() > TEXT {
        let _ = write!(short, " and so on ({} characters)", text.chars().count());
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::encode_header;
    use crate::header::Version;

    #[test]
    fn changes_are_told_by_name() {
        let old = Header::new(Version::Cdf1);
        let mut new = Header::new(Version::Cdf1);
        new.dims.push(crate::header::Dim { name: (&b"x"[..]).into(), len: 4 });
        let mut new = encode_header(&new, 3).unwrap();
        let mut old = encode_header(&old, 2).unwrap();
        old.resize(new.len(), 0);
        new.resize(old.len(), 0);
        let no_fill = Vec::new();
        let kind = ChangeKind::Header;
        let body = JournalBody { id: None, kind, old, new, n_records: 3, stored: 0, no_fill };
        let changes = body.changes();
        assert_eq!(changes[1], "number of records: 2 becomes 3");
        assert_eq!(changes[2], "dimension x: new, of length 4");
    }
}
