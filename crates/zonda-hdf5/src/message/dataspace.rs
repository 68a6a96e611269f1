//! Dataspace message (0x0001): how many elements there are.
//! Spec: HDF5 File Format, "The Dataspace Message". Versions 1 and 2 read, 2 written.
//! Watch: version 1 knows no null space and says "scalar" by a rank of 0.

use crate::{HdfError, ReadLimits, Reader, Result, Writer};

/// What kind of space it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpaceKind {
    /// One element, no dimensions.
    Scalar,
    /// An array.
    Simple,
    /// No element at all.
    Null,
}

/// The extent of a dataset or attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dataspace {
    /// Kind.
    pub kind: SpaceKind,
    /// Length of each dimension in elements, slowest first; empty unless simple.
    pub dims: Vec<u64>,
    /// What each dimension may grow to, `u64::MAX` for unlimited; empty where it is `dims`.
    pub max_dims: Vec<u64>,
}

impl Dataspace {
    /// Decodes the message.
    ///
    /// # Errors
    /// Also where a dimension is longer than it may grow to, or there are more dimensions than the
    /// format allows.
    pub fn decode(mut reader: Reader<'_>, limits: &ReadLimits) -> Result<Dataspace> {
        reader = reader.named("dataspace message");
        let version = reader.version(1..=2)?;
        let rank = usize::from(reader.u8()?);
        if rank > limits.rank {
            return Err(reader.bad("number of dimensions", rank as u64));
        }
        let flags = reader.u8()?;
        let kind = if version == 1 {
            reader.skip(5)?;
            if rank == 0 { SpaceKind::Scalar } else { SpaceKind::Simple }
        } else {
            match (reader.u8()?, rank) {
                (0, 0) | (1, 0) => SpaceKind::Scalar,
                (1, _) => SpaceKind::Simple,
                (2, 0) => SpaceKind::Null,
                (kind @ 0..=2, _) => {
                    return Err(reader.bad("kind of a space with dimensions", u64::from(kind)));
                }
                (kind, _) => return Err(reader.bad("kind of space", u64::from(kind))),
            }
        };
        // Bit 1 announces a permutation of the dimensions, which no library has ever written.
        if flags & !1 != 0 {
            return Err(reader.bad("flags", u64::from(flags)));
        }
        let mut dims = Vec::with_capacity(rank);
        for _ in 0..rank {
            dims.push(reader.length()?);
        }
        let mut max_dims = Vec::new();
        if flags & 1 != 0 {
            let width = u32::from(reader.sizes().length).saturating_mul(8);
            let unlimited = u64::MAX.checked_shr(64u32.saturating_sub(width)).unwrap_or(0);
            for (index, &dim) in dims.iter().enumerate() {
                let max = match reader.length()? {
                    max if max == unlimited => u64::MAX,
                    max => max,
                };
                if max < dim {
                    return Err(reader.bad("most elements of a dimension", max));
                }
                // The list stays empty as long as it would be that of the lengths.
                if max != dim && max_dims.is_empty() {
                    max_dims.reserve_exact(rank);
                    max_dims.extend_from_slice(dims.get(..index).unwrap_or_default());
                }
                if max != dim || !max_dims.is_empty() {
                    max_dims.push(max);
                }
            }
        }
        Ok(Dataspace { kind, dims, max_dims })
    }

    /// Encodes the message. What dimensions may grow to is always written, as libraries do.
    ///
    /// # Errors
    /// [`HdfError::TooLarge`] for more dimensions, or longer ones, than the file has room for.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        let rank = self.dims.len();
        let too_large = |value| HdfError::TooLarge { structure: "dataspace message", value };
        let code = u8::try_from(rank).map_err(|_| too_large(rank as u64))?;
        let (has_dims, kind) = match self.kind {
            SpaceKind::Scalar => (false, 0),
            SpaceKind::Simple => (rank > 0, 1),
            SpaceKind::Null => (false, 2),
        };
        writer.u8(2).u8(if has_dims { code } else { 0 }).u8(u8::from(has_dims)).u8(kind);
        if !has_dims {
            return Ok(());
        }
        for &dim in &self.dims {
            writer.length(dim)?;
        }
        for index in 0..rank {
            match self.max_dim(index) {
                Some(u64::MAX) | None => writer.unlimited(),
                Some(max) => writer.length(max)?,
            };
        }
        Ok(())
    }

    /// Number of elements, `u64::MAX` for more: a chunked dataset need not have what it declares.
    #[must_use]
    pub fn elements(&self) -> u64 {
        match self.kind {
            SpaceKind::Null => 0,
            SpaceKind::Scalar => 1,
            SpaceKind::Simple if self.dims.contains(&0) => 0,
            SpaceKind::Simple => self.dims.iter().fold(1, |n, &dim| n.saturating_mul(dim)),
        }
    }

    /// What dimension `index` may grow to, `u64::MAX` for unlimited.
    #[must_use]
    pub fn max_dim(&self, index: usize) -> Option<u64> {
        self.max_dims.get(index).or_else(|| self.dims.get(index)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{encoded, hex};
    use crate::{HdfError, Sizes};

    fn decode(bytes: &[u8], sizes: Sizes) -> Result<Dataspace> {
        Dataspace::decode(Reader::new("test", bytes, 0, sizes), &ReadLimits::default())
    }

    #[test]
    fn versions_kinds_and_unlimited() {
        let sizes = Sizes { offset: 8, length: 2 };
        let v1 = [1, 2, 1, 0, 0, 0, 0, 0, 3, 0, 4, 0, 0xff, 0xff, 4, 0];
        let space = decode(&v1, sizes).unwrap();
        assert_eq!(space.kind, SpaceKind::Simple);
        assert_eq!((space.dims.as_slice(), space.elements()), ([3, 4].as_slice(), 12));
        assert_eq!(space.max_dims, [u64::MAX, 4]);
        assert_eq!(space.max_dim(1), Some(4));
        assert_eq!(decode(&[1, 0, 0, 0, 0, 0, 0, 0], sizes).unwrap().kind, SpaceKind::Scalar);
        assert_eq!(decode(&[2, 0, 0, 0], sizes).unwrap().elements(), 1);
        assert_eq!(decode(&[2, 0, 0, 2], sizes).unwrap().elements(), 0);
        let same = decode(&[2, 1, 1, 1, 5, 0, 5, 0], sizes).unwrap();
        assert!(same.max_dims.is_empty() && same.max_dim(0) == Some(5));
    }

    #[test]
    fn impossible_extents() {
        let sizes = Sizes { offset: 8, length: 2 };
        assert!(matches!(decode(&[3, 0, 0, 0], sizes), Err(HdfError::BadVersion { .. })));
        assert!(decode(&[2, 33, 0, 1], sizes).is_err());
        assert!(decode(&[2, 1, 0, 2, 1, 0], sizes).is_err(), "null with a dimension");
        assert!(decode(&[2, 1, 2, 1, 1, 0], sizes).is_err(), "permutation");
        assert!(decode(&[2, 1, 1, 1, 5, 0, 4, 0], sizes).is_err(), "longer than it may be");
        assert!(matches!(decode(&[2, 2, 0, 1, 5, 0], sizes), Err(HdfError::Truncated { .. })));
        let mut huge = vec![2, 8, 0, 1];
        huge.extend([0xfe, 0xff].repeat(8));
        assert_eq!(decode(&huge, sizes).unwrap().elements(), u64::MAX, "more than can be counted");
        huge.truncate(18);
        huge.extend([0, 0]);
        assert_eq!(decode(&huge, sizes).unwrap().elements(), 0, "one empty dimension");
    }

    #[test]
    fn written_as_libraries_do() {
        // netCDF-C 4.9.0 on HDF5 1.10.8: a record dimension, one of 5, a scalar, an empty
        // attribute.
        let bodies = [
            "02010101 0000000000000000 ffffffffffffffff",
            "02010101 0500000000000000 0500000000000000",
            "02000000",
            "02000002",
        ];
        for body in bodies.map(hex) {
            let space = decode(&body, Sizes::EIGHT).unwrap();
            assert_eq!(encoded(|writer| space.encode(writer)).unwrap(), body);
        }
        let sizes = Sizes { offset: 8, length: 2 };
        let (kind, dims) = (SpaceKind::Simple, vec![1, 0xfffe]);
        let space = Dataspace { kind, dims, max_dims: vec![u64::MAX, 0xfffe] };
        let mut narrow = Writer::new("test", sizes);
        space.encode(&mut narrow).unwrap();
        assert_eq!(decode(narrow.bytes(), sizes).unwrap(), space);
        let longer = Dataspace { kind, dims: vec![0x1_0000], max_dims: Vec::new() };
        let error = longer.encode(&mut narrow).unwrap_err();
        assert!(matches!(error, HdfError::TooLarge { value: 0x1_0000, .. }), "{error}");
    }
}
