//! Fill Value message (0x0005) and its old form (0x0004): the value of elements that were never
//! written.
//! Spec: HDF5 File Format, "The Data Storage - Fill Value Message". Versions 1 to 3 and the old form
//! read, 3 written.

use crate::{HdfError, Reader, Result, Writer};

/// When space is allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocTime {
    /// When the dataset is created.
    Early,
    /// With the first write.
    Late,
    /// Chunk by chunk.
    Incremental,
}

/// When allocated space is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillTime {
    /// When it is allocated.
    OnAllocation,
    /// Never.
    Never,
    /// When it is allocated, if the user gave a value.
    IfSet,
}

/// The value of elements that were never written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FillValue {
    /// When space is allocated; `None` in the old form of the message and where it is left open.
    pub alloc_time: Option<AllocTime>,
    /// When it is filled; `None` in the old form.
    pub fill_time: Option<FillTime>,
    /// Whether the value is explicitly undefined.
    pub undefined: bool,
    /// One element in file form; `None` for zeros, the default, and where it is undefined.
    pub value: Option<Box<[u8]>>,
}

impl FillValue {
    /// Decodes the message. The caller checks whether the value has the size of an element.
    ///
    /// # Errors
    /// Also for flags that contradict each other and times that are not defined.
    pub fn decode(mut reader: Reader<'_>) -> Result<FillValue> {
        reader = reader.named("fill value message");
        if reader.version(1..=3)? < 3 {
            let [alloc, fill] = reader.array()?;
            let (alloc_time, fill_time) = (alloc_time(&reader, alloc)?, fill_time(&reader, fill)?);
            let defined = reader.u8()? != 0;
            let value = if defined { value(&mut reader)? } else { None };
            return Ok(FillValue { alloc_time, fill_time, undefined: !defined, value });
        }
        let flags = reader.u8()?;
        if flags & 0xc0 != 0 || flags & 0x30 == 0x30 {
            return Err(reader.bad("flags", u64::from(flags)));
        }
        let alloc_time = alloc_time(&reader, flags & 3)?;
        let fill_time = fill_time(&reader, flags >> 2 & 3)?;
        let value = if flags & 0x20 == 0 { None } else { value(&mut reader)? };
        Ok(FillValue { alloc_time, fill_time, undefined: flags & 0x10 != 0, value })
    }

    /// Decodes the old form of the message, in which a value of no bytes is an undefined one.
    ///
    /// # Errors
    /// Where the value is longer than the message.
    pub fn decode_old(mut reader: Reader<'_>) -> Result<FillValue> {
        reader = reader.named("old fill value message");
        let value = value(&mut reader)?;
        Ok(FillValue { alloc_time: None, fill_time: None, undefined: value.is_none(), value })
    }

    /// Encodes the message.
    ///
    /// # Errors
    /// [`HdfError::TooLarge`] for a value of 4 GiB and more.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        let alloc = match self.alloc_time {
            None => 0,
            Some(AllocTime::Early) => 1,
            Some(AllocTime::Late) => 2,
            Some(AllocTime::Incremental) => 3,
        };
        let fill = match self.fill_time {
            Some(FillTime::OnAllocation) => 0,
            Some(FillTime::Never) => 1,
            Some(FillTime::IfSet) | None => 2,
        };
        let value = self.value.as_deref().filter(|value| !self.undefined && !value.is_empty());
        let flags = alloc | fill << 2;
        writer.u8(3).u8(match (self.undefined, value) {
            (true, _) => flags | 0x10,
            (false, Some(_)) => flags | 0x20,
            (false, None) => flags,
        });
        if let Some(value) = value {
            let too_large = |_| HdfError::TooLarge {
                structure: "fill value message",
                value: value.len() as u64,
            };
            writer.u32(u32::try_from(value.len()).map_err(too_large)?).put(value);
        }
        Ok(())
    }
}

fn alloc_time(reader: &Reader<'_>, code: u8) -> Result<Option<AllocTime>> {
    match code {
        // "Default", which the library resolves before it writes; some writers leave it.
        0 => Ok(None),
        1 => Ok(Some(AllocTime::Early)),
        2 => Ok(Some(AllocTime::Late)),
        3 => Ok(Some(AllocTime::Incremental)),
        _ => Err(reader.bad("time of allocation", u64::from(code))),
    }
}

fn fill_time(reader: &Reader<'_>, code: u8) -> Result<Option<FillTime>> {
    match code {
        0 => Ok(Some(FillTime::OnAllocation)),
        1 => Ok(Some(FillTime::Never)),
        2 => Ok(Some(FillTime::IfSet)),
        _ => Err(reader.bad("time of filling", u64::from(code))),
    }
}

fn value(reader: &mut Reader<'_>) -> Result<Option<Box<[u8]>>> {
    let len = reader.u32()?;
    let bytes = reader.take_u64(u64::from(len))?;
    Ok((!bytes.is_empty()).then(|| bytes.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sizes;
    use crate::testing::{encoded, hex};

    fn reader(bytes: &[u8]) -> Reader<'_> {
        Reader::new("test", bytes, 0, Sizes::EIGHT)
    }

    #[test]
    fn all_versions() {
        let fill = FillValue::decode(reader(b"\x03\x2a\x02\0\0\0ab")).unwrap();
        assert_eq!(fill.alloc_time, Some(AllocTime::Late));
        assert_eq!(fill.fill_time, Some(FillTime::IfSet));
        assert_eq!(fill.value.as_deref(), Some(b"ab".as_slice()));
        let never = FillValue::decode(reader(b"\x03\x07")).unwrap();
        assert_eq!(never.fill_time, Some(FillTime::Never));
        assert!(!never.undefined && never.value.is_none());
        assert!(FillValue::decode(reader(b"\x03\x1a")).unwrap().undefined);
        let v2 = FillValue::decode(reader(b"\x02\x01\x00\x01\x01\0\0\0x")).unwrap();
        assert_eq!((v2.alloc_time, v2.value.as_deref()), (Some(AllocTime::Early), Some(&b"x"[..])));
        assert!(FillValue::decode(reader(b"\x02\x01\x00\x00")).unwrap().undefined);
        let zeros = FillValue::decode(reader(b"\x01\x02\x02\x01\0\0\0\0")).unwrap();
        assert!(!zeros.undefined && zeros.value.is_none());
        let old = FillValue::decode_old(reader(b"\x01\0\0\0z\0\0\0")).unwrap();
        assert_eq!((old.alloc_time, old.value.as_deref()), (None, Some(&b"z"[..])));
        assert!(!old.undefined && FillValue::decode_old(reader(b"\0\0\0\0")).unwrap().undefined);
    }

    #[test]
    fn hostile_values() {
        assert!(FillValue::decode(reader(b"\x03\x2a\xff\xff\xff\xffab")).is_err(), "too long");
        assert!(FillValue::decode(reader(b"\x03\x3a\0\0\0\0")).is_err(), "undefined and a value");
        assert!(FillValue::decode(reader(b"\x03\x0e")).is_err(), "time of filling");
        assert!(FillValue::decode(reader(b"\x02\x04\x00\x00")).is_err(), "time of allocation");
        assert!(FillValue::decode(reader(b"\x04\x00")).is_err(), "version");
        assert!(FillValue::decode_old(reader(b"\x01\0\0")).is_err(), "no length");
    }

    #[test]
    fn written_as_libraries_do() {
        // netCDF-C 4.9.0 on HDF5 1.10.8: contiguous, chunked, compact, not filled, a placeholder of
        // a dimension. HDF5 1.10.8: undefined, and a dataset of sequences.
        let bodies = [
            "032a 04000000 0000f07c",
            "032b 08000000 0000000000009e47",
            "0329 08000000 feffffffffffffff",
            "0306",
            "030a",
            "031a",
            "0302",
        ];
        for body in bodies.map(hex) {
            let fill = FillValue::decode(reader(&body)).unwrap();
            assert_eq!(encoded(|writer| fill.encode(writer)).unwrap(), body);
        }
        let old = FillValue::decode_old(reader(b"\x01\0\0\0z")).unwrap();
        assert_eq!(encoded(|writer| old.encode(writer)).unwrap(), hex("0328 01000000 7a"));
    }
}
