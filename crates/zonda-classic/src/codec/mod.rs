//! The header grammar, both ways.
//!
//! Spec: NetCDF File Format Specifications, "The Format in Detail", and the CDF-5 text of PnetCDF.
//! One function per production; `N` is 4 bytes in CDF-1/2 and 8 in CDF-5.
//!
//! ```text
//! header   = magic numrecs(N) dim_list gatt_list var_list
//! list     = ABSENT | tag(4) nelems(N) item*
//! name     = nbytes(N) bytes padded to 4
//! dim      = name length(N)
//! att      = name nc_type(4) nelems(N) values padded to 4
//! var      = name ndims(N) dimid(N)* att_list nc_type(4) vsize(N) begin(4 in CDF-1, else 8)
//! ```

mod decode;
mod encode;

pub use decode::{DecodeLimits, decode_header};
pub(crate) use decode::{att, decode_damaged, decode_read, up_to_nul};
pub use encode::encode_header;
pub(crate) use encode::{encode_numrecs, encoded_len};

/// Tag of a dimension list.
const NC_DIMENSION: u32 = 0x0A;
/// Tag of a variable list.
const NC_VARIABLE: u32 = 0x0B;
/// Tag of an attribute list.
const NC_ATTRIBUTE: u32 = 0x0C;

/// Byte offset of `numrecs` in every classic file.
pub(crate) const NUMRECS_AT: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atts::Att;
    use crate::header::{Dim, Header, Var, Version};
    use crate::layout;
    use smallvec::SmallVec;
    use zonda_format::{FormatError as _, Reserve};
    use zonda_model::{DimId, ExtType, VarId};

    fn sample(version: Version) -> Header {
        let mut header = Header::new(version);
        let dim = |name: &str, len| Dim { name: name.as_bytes().into(), len };
        header.push_dim(dim("time", 0));
        header.push_dim(dim("x", 3));
        header.push_dim(dim("naïve", 7));
        header.atts.push(Att {
            name: b"title"[..].into(),
            ty: ExtType::Char,
            len: 5,
            bytes: SmallVec::from_slice(b"hello"),
        });
        header.atts.push(Att {
            name: b"none"[..].into(),
            ty: ExtType::Int,
            len: 0,
            bytes: SmallVec::new(),
        });
        for (name, dims, ty) in [
            ("s", &[][..], ExtType::Double),
            ("f", &[1, 2][..], ExtType::Short),
            ("r", &[0, 1][..], ExtType::Byte),
            ("t", &[0][..], ExtType::Float),
        ] {
            header.push_var(Var {
                name: name.as_bytes().into(),
                dims: dims.iter().map(|&d| DimId(d)).collect(),
                shape: dims.iter().map(|&d| header.dims[d as usize].len).collect(),
                atts: header.atts.clone(),
                ty,
                begin: 0,
                no_fill: false,
            });
        }
        layout::assign(&mut header, None, Reserve::Default).unwrap();
        header
    }

    #[test]
    fn round_trip_in_every_version() {
        for version in [Version::Cdf1, Version::Cdf2, Version::Cdf5] {
            let header = sample(version);
            let bytes = encode_header(&header, 9).unwrap();
            assert_eq!(bytes.len() as u64, encoded_len(&header));
            let (back, n_records) = decode_header(&bytes).unwrap();
            assert_eq!(n_records, 9);
            assert_eq!(back.dims, header.dims);
            assert_eq!(back.atts, header.atts);
            assert_eq!(back.vars, header.vars);
            assert_eq!(back.layout, header.layout);
            assert_eq!(encode_header(&back, 9).unwrap(), bytes);
            assert_eq!(back.find_var(b"r").unwrap(), VarId(2));
        }
    }

    #[test]
    fn empty_files_have_the_specified_lengths() {
        for (version, len) in [(Version::Cdf1, 32), (Version::Cdf2, 32), (Version::Cdf5, 48)] {
            assert_eq!(encode_header(&Header::new(version), 0).unwrap().len(), len);
        }
    }

    #[test]
    fn every_prefix_and_every_flipped_byte_ends_in_an_answer() {
        for version in [Version::Cdf1, Version::Cdf2, Version::Cdf5] {
            let bytes = encode_header(&sample(version), 2).unwrap();
            for len in 0..bytes.len() {
                assert!(decode_header(&bytes[..len]).is_err(), "prefix of {len} bytes");
            }
            let mut damaged = bytes.clone();
            for at in 0..bytes.len() {
                for value in [0, 1, 0x7f, 0x80, 0xff, bytes[at] ^ 1] {
                    damaged[at] = value;
                    let _ = decode_header(&damaged);
                }
                damaged[at] = bytes[at];
            }
        }
    }

    #[test]
    fn damage_is_reported_where_it_is() {
        let mut bytes = encode_header(&sample(Version::Cdf1), 2).unwrap();
        bytes[8..12].copy_from_slice(&0x0Bu32.to_be_bytes());
        let error = decode_header(&bytes).unwrap_err();
        assert_eq!(error.to_string(), "dim_list at byte 8: tag 0x0a expected, got 0x0b");
        assert_eq!(error.nc_error().code(), 22);
    }
}
