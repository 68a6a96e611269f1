//! Filter Pipeline message (0x000B): what is done to each chunk on its way into the file.
//! Spec: HDF5 File Format, "The Data Storage - Filter Pipeline Message". Versions 1 and
//! 2 read, 2 written.

use crate::{HdfError, ReadLimits, Reader, Result, Writer};

/// One filter, in the order in which a writer applies them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterDescription {
    /// Registered number.
    pub id: u16,
    /// Name that the writer gave, empty where there is none.
    pub name: Box<[u8]>,
    /// Bit 0: the filter is optional.
    pub flags: u16,
    /// Client data ("cd_values").
    pub params: Vec<u32>,
}

/// Decodes the message: the filters in the order in which a writer applies them.
///
/// # Errors
/// Also for more filters than the format allows.
pub fn decode_filter_pipeline(
    mut reader: Reader<'_>,
    limits: &ReadLimits,
) -> Result<Vec<FilterDescription>> {
    reader = reader.named("filter pipeline message");
    let version = reader.version(1..=2)?;
    let n_filters = usize::from(reader.u8()?);
    if n_filters > limits.filters {
        return Err(reader.bad("number of filters", n_filters as u64));
    }
    if version == 1 {
        reader.skip(6)?;
    }
    (0..n_filters).map(|_| filter(&mut reader, version)).collect()
}

/// Filters below this are the library's own.
const FIRST_NAMED: u16 = 256;

fn filter(reader: &mut Reader<'_>, version: u8) -> Result<FilterDescription> {
    let id = reader.u16()?;
    // Version 2 has names only for filters that the library does not define.
    let name_len = if version == 1 || id >= FIRST_NAMED { reader.u16()? } else { 0 };
    if version == 1 && name_len % 8 != 0 {
        return Err(reader.bad("length of a filter's name", u64::from(name_len)));
    }
    let flags = reader.u16()?;
    let n_params = reader.u16()?;
    let name = reader.take(usize::from(name_len))?;
    let name = name.split(|&byte| byte == 0).next().unwrap_or_default().into();
    let n_params = reader.count(u64::from(n_params), 4)?;
    let params = (0..n_params).map(|_| reader.u32()).collect::<Result<Vec<u32>>>()?;
    if version == 1 && n_params % 2 == 1 {
        reader.skip(4)?;
    }
    Ok(FilterDescription { id, name, flags, params })
}

/// Encodes the message. Names are written only of filters that the library does not define.
///
/// # Errors
/// [`HdfError::TooLarge`] for more filters or client data than there can be.
pub fn encode_filter_pipeline(filters: &[FilterDescription], writer: &mut Writer) -> Result<()> {
    let too_large =
        |n: usize| HdfError::TooLarge { structure: "filter pipeline message", value: n as u64 };
    if filters.len() > ReadLimits::default().filters {
        return Err(too_large(filters.len()));
    }
    writer.u8(2).u8(u8::try_from(filters.len()).map_err(|_| too_large(filters.len()))?);
    for FilterDescription { id, name, flags, params } in filters {
        let count = |n: usize| u16::try_from(n).map_err(|_| too_large(n));
        writer.u16(*id);
        let named = *id >= FIRST_NAMED && !name.is_empty();
        if *id >= FIRST_NAMED {
            writer.u16(if named { count(name.len().saturating_add(1))? } else { 0 });
        }
        writer.u16(*flags).u16(count(params.len())?);
        if named {
            writer.put(name).u8(0);
        }
        for &param in params {
            writer.u32(param);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sizes;
    use crate::testing::{encoded, hex};

    fn decode(bytes: &[u8]) -> Result<Vec<FilterDescription>> {
        decode_filter_pipeline(Reader::new("test", bytes, 0, Sizes::EIGHT), &ReadLimits::default())
    }

    #[test]
    fn both_versions() {
        let mut v1 = b"\x01\x02\0\0\0\0\0\0".to_vec();
        v1.extend(b"\x02\0\x08\0\x01\0\x01\0shuffle\0\x04\0\0\0\0\0\0\0");
        v1.extend(b"\x01\0\x00\0\x01\0\x01\0\x09\0\0\0\0\0\0\0");
        let filters = decode(&v1).unwrap();
        assert_eq!((filters[0].id, &*filters[0].name), (2, b"shuffle".as_slice()));
        assert_eq!((filters[0].flags, filters[0].params.as_slice()), (1, [4].as_slice()));
        assert_eq!((filters[1].id, filters[1].params.as_slice()), (1, [9].as_slice()));
        let v2 = b"\x02\x02\x03\0\0\0\0\0\x00\x7d\x03\0\x01\0\x02\0lzf\x05\0\0\0\x06\0\0\0";
        let filters = decode(v2).unwrap();
        assert_eq!((filters[0].id, filters[0].params.len()), (3, 0));
        assert_eq!((filters[1].id, &*filters[1].name), (32000, b"lzf".as_slice()));
        assert_eq!(filters[1].params, [5, 6]);
    }

    #[test]
    fn hostile_pipelines() {
        assert!(decode(b"\x02\x21").is_err(), "33 filters");
        assert!(decode(b"\x02\x01\x01\0\0\0\xff\xff").is_err(), "more values than bytes");
        assert!(decode(b"\x01\x01\0\0\0\0\0\0\x02\0\x07\0\x01\0\0\0shuffle").is_err(), "odd name");
        assert!(decode(b"\x01\x01\0\0\0\0\0\0\x01\0\0\0\0\0\x01\0\x09\0\0\0").is_err(), "padding");
    }

    #[test]
    fn written_as_libraries_do() {
        // netCDF-C 4.9.0 on HDF5 1.10.8: shuffle and deflate, fletcher32. h5py 3.16 on HDF5 2.0
        // with the bounds of version 1.8: shuffle and lzf, which has a name.
        let bodies = [
            "0202 0200 0100 0100 08000000 0100 0100 0100 04000000",
            "0201 0300 0000 0000",
            "0202 0200 0100 0100 04000000
             007d 0400 0100 0300 6c7a6600 04000000 05010000 28000000",
        ];
        for body in bodies.map(hex) {
            let filters = decode(&body).unwrap();
            assert_eq!(encoded(|writer| encode_filter_pipeline(&filters, writer)).unwrap(), body);
        }
        // A name that says nothing.
        let params = vec![1, 2];
        let filter = FilterDescription { id: 307, name: [].into(), flags: 0, params };
        let body = encoded(|writer| encode_filter_pipeline(&[filter], writer)).unwrap();
        assert_eq!(body, hex("0201 3301 0000 0000 0200 01000000 02000000"));
    }

    #[test]
    fn no_more_than_can_be_read() {
        let filter = FilterDescription { id: 1, name: [].into(), flags: 0, params: vec![9] };
        let encode = |filters: &[FilterDescription]| {
            encoded(|writer| encode_filter_pipeline(filters, writer))
        };
        assert!(encode(&vec![filter.clone(); 32]).is_ok());
        assert!(encode(&vec![filter.clone(); 33]).is_err());
        assert!(encode(&[FilterDescription { params: vec![0; 0x1_0000], ..filter }]).is_err());
    }
}
