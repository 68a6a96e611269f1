//! The check of a classic file.

use std::ops::ControlFlow;

use zonda_model::VarId;

use super::{Checked, Grade, Notes};
use crate::copy::Progress;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::tuning::CHECK_BLOCK_BYTES;

/// Where a variable lies in the file.
struct VarExtent {
    path: String,
    begin: u64,
    /// Bytes, or bytes in each record.
    len: u64,
    is_record: bool,
}

pub(super) fn check(
    file: &Dataset,
    checked: &mut Checked,
    notes: &mut Notes,
    progress: &mut dyn FnMut(&Progress<'_>) -> ControlFlow<()>,
) -> Result<()> {
    let (parts, layout, n_records) = file.meta(|meta| {
        let mut parts = Vec::with_capacity(meta.n_vars());
        for number in (0..meta.n_vars()).map_while(|number| i32::try_from(number).ok()) {
            let var = meta.var(VarId(number))?;
            if let Some(classic) = var.classic {
                parts.push(VarExtent {
                    path: format!("/{}", String::from_utf8_lossy(var.name)),
                    begin: classic.begin,
                    len: classic.slab_bytes,
                    is_record: classic.is_record,
                });
            }
        }
        Ok::<_, Error>((parts, meta.layout(), meta.n_records()))
    })?;
    let layout = layout.unwrap_or_default();
    checked.n_vars = parts.len();
    for part in parts.iter().filter(|part| part.begin < layout.header_len) {
        let (begin, header) = (part.begin, layout.header_len);
        let what = format!("data at byte {begin} begin in the header, which has {header} bytes");
        notes.add(Grade::Damage, Some(&part.path), Some(begin), what);
    }
    overlaps(&parts, layout.begin_rec, layout.record_len, n_records, notes);
    let mut used = layout.header_len;
    for part in &parts {
        let records = if part.is_record { n_records } else { 1 };
        let Some(before) = records.checked_sub(1) else { continue };
        let skipped = before.saturating_mul(layout.record_len);
        let end = part.begin.saturating_add(skipped).saturating_add(part.len);
        used = used.max(end);
        checked.data_bytes = checked.data_bytes.saturating_add(part.len.saturating_mul(records));
        if end > checked.file_bytes {
            missing(part, layout.record_len, checked.file_bytes, end, notes);
        }
    }
    let records_end = layout.begin_rec.saturating_add(n_records.saturating_mul(layout.record_len));
    if layout.n_record_vars > 0 {
        let behind = checked.file_bytes.saturating_sub(records_end);
        let more = behind.checked_div(layout.record_len).unwrap_or(0);
        if more > 0 {
            let what = format!(
                "the file has room for {more} more record{} than the {n_records} of its header, which \
                 zonda recover --records counts",
                if more == 1 { "" } else { "s" }
            );
            notes.add(Grade::Remark, None, Some(records_end), what);
        }
        used = used.max(records_end);
    }
    checked.unaccounted_bytes = checked.file_bytes.saturating_sub(used);
    read_all(file, checked.file_bytes, notes, progress)
}

impl Dataset {
    /// Bytes that the definitions of a classic file place behind its end: they read as zeros, as the reference reads
    /// them. 0 for other formats, whose reads fail there.
    ///
    /// # Errors
    /// What the storage reports.
    pub fn missing_bytes(&self) -> Result<u64> {
        let Some(storage) = self.storage().filter(|_| !self.is_hdf5()) else { return Ok(0) };
        let len = storage.len()?;
        self.meta(|meta| {
            let record_len = meta.layout().unwrap_or_default().record_len;
            let mut end = 0;
            for number in (0..meta.n_vars()).map_while(|number| i32::try_from(number).ok()) {
                let Some(var) = meta.var(VarId(number))?.classic else { continue };
                let records = if var.is_record { meta.n_records() } else { 1 };
                let Some(before) = records.checked_sub(1) else { continue };
                let begin = var.begin.saturating_add(before.saturating_mul(record_len));
                end = end.max(begin.saturating_add(var.slab_bytes));
            }
            Ok(u64::saturating_sub(end, len))
        })
    }
}

/// Notes what is missing at the end of the file.
fn missing(part: &VarExtent, record_len: u64, file_bytes: u64, end: u64, notes: &mut Notes) {
    let from = part.begin.max(file_bytes.min(end));
    let mut what = format!("data go to byte {end}, and the file ends at {file_bytes}");
    if part.is_record && record_len > 0 {
        // The first record of which something is missing.
        let there = file_bytes.saturating_sub(part.begin);
        let whole = if there < part.len { 0 } else { (there - part.len) / record_len + 1 };
        what.push_str(&format!(": complete up to record {whole}"));
    }
    notes.add(Grade::Damage, Some(&part.path), Some(from), what);
}

/// Notes variables that overlap in the file.
fn overlaps(
    parts: &[VarExtent],
    begin_rec: u64,
    record_len: u64,
    n_records: u64,
    notes: &mut Notes,
) {
    for is_record in [false, true] {
        let mut sorted: Vec<&VarExtent> =
            parts.iter().filter(|part| part.is_record == is_record && part.len > 0).collect();
        zonda_runtime::sort::sort_by_key(&mut sorted, |part| part.begin);
        for pair in sorted.windows(2) {
            let [first, second] = pair else { continue };
            let end = first.begin.saturating_add(first.len);
            if second.begin < end {
                lies_on(second, first, end, notes);
            }
        }
        let Some(last) = sorted.last() else { continue };
        let end = last.begin.saturating_add(last.len);
        if is_record {
            if end > begin_rec.saturating_add(record_len) && n_records > 1 {
                let what = format!(
                    "its part of a record ends at byte {end}, and the next record begins at {}",
                    begin_rec.saturating_add(record_len)
                );
                notes.add(Grade::Damage, Some(&last.path), Some(last.begin), what);
            }
        } else if let Some(record) =
            parts.iter().filter(|part| part.is_record).min_by_key(|part| part.begin)
            && record.begin < end
            && n_records > 0
        {
            lies_on(record, last, end, notes);
        }
    }
}

fn lies_on(part: &VarExtent, other: &VarExtent, end: u64, notes: &mut Notes) {
    let (at, path, begin) = (part.begin, &other.path, other.begin);
    let what =
        format!("data at byte {at} lie on those of {path}, which has bytes {begin} to {end}");
    notes.add(Grade::Damage, Some(&part.path), Some(at), what);
}

/// Reads the whole file. A classic file has no checksums, but reading finds faults of the device. Holes are on no device: the
/// work is that for what was written, not for what the definitions count.
fn read_all(
    file: &Dataset,
    len: u64,
    notes: &mut Notes,
    progress: &mut dyn FnMut(&Progress<'_>) -> ControlFlow<()>,
) -> Result<()> {
    let storage = file.bytes()?;
    // Layers do not say where holes are. What was opened once may not be opened again; then all is read.
    let holes = zonda_storage::backend::File::open_read(file.path()).ok();
    let mut block = vec![0; CHECK_BLOCK_BYTES];
    let mut at = 0u64;
    while at < len {
        at = holes.as_ref().map_or(at, |holes| holes.next_data(at));
        if at >= len {
            break;
        }
        match storage.read_at(at, &mut block) {
            Ok(0) => break,
            Ok(got) => at = at.saturating_add(got as u64),
            Err(error) => {
                notes.add(Grade::Damage, None, Some(at), error.to_string());
                at = at.saturating_add(CHECK_BLOCK_BYTES as u64);
            }
        }
        Progress { var: "", done_bytes: at.min(len), total_bytes: len }.report(progress)?;
    }
    Ok(())
}
