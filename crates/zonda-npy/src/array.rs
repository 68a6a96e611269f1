//! The values of a variable: a file of NumPy's format 1.0.

use std::path::PathBuf;
use std::sync::Arc;

use zonda_format::Result;
use zonda_model::{ExtType, NcError};
use zonda_plain::Var;
use zonda_storage::{Create, Spec, Storage};

use crate::{damaged, storage};

const MAGIC: &[u8; 8] = b"\x93NUMPY\x01\x00";
/// Bytes in front of the description: the magic number, and the length of the description.
const PREFIX: usize = 10;
/// Digits that the number of records may get.
const DIGITS: usize = 20;

/// The open file of a variable.
#[derive(Debug)]
pub(crate) struct NpyArray {
    pub(crate) storage: Arc<dyn Storage>,
    path: PathBuf,
    /// Where its elements begin.
    pub(crate) begin: u64,
}

/// What NumPy calls a type.
fn descr(ty: ExtType) -> &'static str {
    match ty {
        ExtType::Byte => "|i1",
        ExtType::Char => "|S1",
        ExtType::Short => "<i2",
        ExtType::Int => "<i4",
        ExtType::Float => "<f4",
        ExtType::Double => "<f8",
        ExtType::UByte => "|u1",
        ExtType::UShort => "<u2",
        ExtType::UInt => "<u4",
        ExtType::Int64 => "<i8",
        ExtType::UInt64 => "<u8",
    }
}

/// The header of an array with these lengths, and with room for more records. `begin` is the length of a header that
/// exists already.
fn header(ty: ExtType, shape: &[u64], begin: Option<u64>) -> Option<Vec<u8>> {
    let lens: String = shape.iter().map(|len| format!("{len}, ")).collect();
    // A tuple of one length needs the comma.
    let lens = if shape.len() == 1 { lens.trim_end() } else { lens.trim_end_matches(", ") };
    let text = format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({lens}), }}", descr(ty));
    let own = PREFIX.checked_add(text.len())?.checked_add(1)?;
    let total = match begin {
        Some(begin) => usize::try_from(begin).ok().filter(|&begin| begin >= own)?,
        None => own.checked_add(DIGITS)?.checked_next_multiple_of(64)?,
    };
    let len = u16::try_from(total.checked_sub(PREFIX)?).ok()?;
    let mut bytes = [&MAGIC[..], &len.to_le_bytes(), text.as_bytes()].concat();
    bytes.extend(std::iter::repeat_n(b' ', total.checked_sub(own)?));
    bytes.push(b'\n');
    Some(bytes)
}

/// The lengths in the description of an array; `None` where its type or order is another one.
fn shape_of(text: &str, ty: ExtType) -> Option<Vec<u64>> {
    let value = |key: &str| {
        let (_, behind) = text.split_once(&format!("'{key}'"))?;
        Some(behind.trim_start().strip_prefix(':')?.trim_start())
    };
    let is_ours = value("descr")?.strip_prefix('\'')?.strip_prefix(descr(ty))?.starts_with('\'')
        && value("fortran_order")?.starts_with("False");
    let (lens, _) = value("shape")?.strip_prefix('(')?.split_once(')')?;
    let lens = lens.split(',').map(str::trim).filter(|len| !len.is_empty());
    let lens: Option<Vec<u64>> = lens.map(|len| len.parse().ok()).collect();
    lens.filter(|_| is_ours)
}

impl NpyArray {
    /// Makes the file of a new variable, without its values.
    pub(crate) fn create(path: PathBuf, var: &Var, records: u64) -> Result<NpyArray> {
        let bytes = header(var.ty, &var.extent(records), None).ok_or(NcError::VarSize)?;
        let storage = storage(&path, true, Create::Truncate, Spec::from_env())?;
        storage.write_at(0, &bytes)?;
        Ok(NpyArray { storage, path, begin: bytes.len() as u64 })
    }

    /// Opens the file of a variable, which must have at least so many records.
    pub(crate) fn open(path: PathBuf, write: bool, var: &Var, records: u64) -> Result<NpyArray> {
        let storage = storage(&path, write, Create::MustExist, Spec::from_env())?;
        let fault = |what: &str| damaged(&path, NcError::VarMeta, what);
        let mut bytes = vec![0; PREFIX.saturating_add(usize::from(u16::MAX))];
        let got = storage.read_at(0, &mut bytes)?;
        bytes.truncate(got);
        let after_magic =
            bytes.strip_prefix(MAGIC).and_then(|after_magic| after_magic.split_first_chunk());
        let what = "header at byte 0: no array of NumPy's format 1.0";
        let (len, text) = after_magic.ok_or_else(|| fault(what))?;
        let len = u16::from_le_bytes(*len);
        let text = text.get(..len.into()).and_then(|text| std::str::from_utf8(text).ok());
        let text = text.ok_or_else(|| fault("header at byte 8: it is cut off, or no text"))?;
        let found = shape_of(text, var.ty).ok_or_else(|| {
            let wanted = format!("'{}' in C order", descr(var.ty));
            fault(&format!("header at byte 10: it does not describe an array of {wanted}"))
        })?;
        let wanted = var.extent(records);
        let mut pairs = found.iter().zip(&wanted).enumerate();
        // A writer that was killed may have left more records than the definitions count.
        let fits = pairs.all(|(at, (a, b))| a == b || (at == 0 && var.is_record() && a > b));
        if found.len() != wanted.len() || !fits {
            let text = format!("header at byte 10: shape {found:?}, where {wanted:?} is defined");
            return Err(fault(&text));
        }
        let begin = (PREFIX as u64).saturating_add(len.into());
        let end = var.bytes(records).unwrap_or(u64::MAX).saturating_add(begin);
        let len = storage.len()?;
        if end > len && !found.contains(&0) {
            let text = format!("values at byte {len}: the file ends, and they go on to {end}");
            return Err(damaged(&path, NcError::Trunc, text));
        }
        Ok(NpyArray { storage, path, begin })
    }

    /// Writes the number of records into the header.
    pub(crate) fn count(&self, var: &Var, records: u64) -> Result<()> {
        let what = "header at byte 8: there is no room for the number of records";
        let bytes = header(var.ty, &var.extent(records), Some(self.begin));
        let bytes = bytes.ok_or_else(|| damaged(&self.path, NcError::VarMeta, what))?;
        Ok(self.storage.write_at(0, &bytes)?)
    }
}
