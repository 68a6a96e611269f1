//! Metadata cache image: metadata that a writer left together instead of at their addresses.
//! Spec: HDF5 File Format, "Disk Format: Level 1H - Metadata Cache Image" (block `MDCI`, version 0).
//! Watch: while there is an image, the bytes at the addresses it names are old or zeros.

use crate::{File, FileAddr, HdfError, Result};

const NAME: &str = "metadata cache image";

/// Numbers of the kinds of metadata that a cache holds are below this.
const N_KINDS: u8 = 31;

/// A cache image, which covers bytes of a file.
#[derive(Debug)]
pub(crate) struct Overlay {
    /// The block that holds all images.
    bytes: Box<[u8]>,
    /// Where that is.
    addr: FileAddr,
    /// In ascending order; none overlaps another.
    images: Vec<Image>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Image {
    /// Byte of the file that it covers first, user block included.
    at: u64,
    /// Where it begins in the block.
    start: usize,
    len: usize,
}

impl Image {
    fn end(&self) -> u64 {
        self.at.saturating_add(self.len as u64)
    }
}

impl Overlay {
    /// Reads the block of `len` bytes at `addr`.
    ///
    /// # Errors
    /// Also where images lie over each other or go on after the end of the file.
    pub(crate) fn read(file: &File, addr: FileAddr, len: u64) -> Result<Overlay> {
        let bytes = file.read(NAME, addr, len)?;
        let mut reader = file.reader(NAME, addr, &bytes);
        reader.signature(*b"MDCI")?;
        reader.version(0..=0)?;
        reader.skip(1)?; // Flags: whether the cache was being resized.
        let stored_len = reader.length()?;
        if stored_len != len {
            return Err(reader.bad("bytes of the image", stored_len));
        }
        let n_images = reader.u32()?;
        // An entry has 14 bytes besides an address and a length.
        let n_images = reader.count(u64::from(n_images), 18)?;
        let mut images = Vec::with_capacity(n_images);
        for _ in 0..n_images {
            let kind = reader.u8()?;
            if kind >= N_KINDS {
                return Err(reader.bad("kind of metadata", u64::from(kind)));
            }
            reader.skip(3)?; // Flags, ring, age.
            reader.skip(4)?; // Numbers of children.
            let n_parents = usize::from(reader.u16()?);
            reader.skip(4)?; // Rank by age.
            let target = reader.defined_addr("what an image covers")?;
            let size = reader.length()?;
            if size == 0 {
                return Err(reader.bad("bytes of an entry", 0));
            }
            reader.skip(n_parents.saturating_mul(usize::from(reader.sizes().offset)))?;
            let at = file.locate(NAME, target, size)?;
            let start = bytes.len().saturating_sub(reader.left());
            let len = reader.take_u64(size)?.len();
            images.push(Image { at, start, len });
        }
        reader.checksum(&bytes)?;
        zonda_runtime::sort::sort_by_key(&mut images, |image| image.at);
        let pairs = images.iter().zip(images.iter().skip(1));
        if let Some((_, image)) = pairs.into_iter().find(|(one, next)| one.end() > next.at) {
            let (structure, at) = (NAME, image.at);
            let what = "bytes that two entries cover";
            return Err(HdfError::BadValue { structure, at, what, value: image.len as u64 });
        }
        Ok(Overlay { bytes: bytes.into(), addr, images })
    }

    /// The block that holds all images.
    pub(crate) fn extent(&self) -> (FileAddr, u64) {
        (self.addr, self.bytes.len() as u64)
    }

    /// Its entries: the byte of the file where each belongs, user block included, and its bytes.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.images.iter().map(|image| {
            let from = self.bytes.get(image.start..).and_then(|all| all.get(..image.len));
            (image.at, from.unwrap_or_default())
        })
    }

    /// Lays its entries over `buf`, the bytes of the file from `at` on.
    pub(crate) fn cover(&self, at: u64, buf: &mut [u8]) {
        let end = at.saturating_add(buf.len() as u64);
        let first = self.images.partition_point(|image| image.end() <= at);
        let over = self.images.iter().skip(first).take_while(|image| image.at < end);
        for image in over {
            // One of the two is 0: what the image has before the buffer, or the buffer before it.
            let skip = usize::try_from(at.saturating_sub(image.at)).unwrap_or(usize::MAX);
            let to = usize::try_from(image.at.saturating_sub(at)).unwrap_or(usize::MAX);
            let from = self.bytes.get(image.start..).and_then(|all| all.get(..image.len));
            let source = from.and_then(|image| image.get(skip..)).unwrap_or_default();
            let target = buf.get_mut(to..).unwrap_or_default();
            for (target, source) in target.iter_mut().zip(source) {
                *target = *source;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{StructureBytes, file};

    fn entry(kind: u8, target: u64, parents: &[u64], bytes: &[u8]) -> StructureBytes {
        let mut entry = StructureBytes::default().bytes(&[kind, 0, 1, 0, 0, 0, 0, 0]);
        entry = entry.u16(u16::try_from(parents.len()).unwrap()).u32(0);
        entry = entry.u64(target).u64(bytes.len() as u64);
        parents.iter().fold(entry, |entry, &parent| entry.u64(parent)).bytes(bytes)
    }

    fn image(entries: &[StructureBytes]) -> (Vec<u8>, u64) {
        let body: Vec<u8> = entries.iter().flat_map(|entry| entry.bytes.clone()).collect();
        let len = 18 + body.len() as u64 + 4;
        let block = StructureBytes::default().bytes(b"MDCI\0\0").u64(len);
        let block = block.u32(u32::try_from(entries.len()).unwrap()).bytes(&body).checksum();
        (StructureBytes::new(256).then(block).bytes, len)
    }

    fn read(entries: &[StructureBytes]) -> Result<Overlay> {
        let (bytes, len) = image(entries);
        Overlay::read(&file(&bytes), FileAddr(256), len)
    }

    #[test]
    fn images_cover_what_is_read() {
        let overlay = read(&[entry(5, 100, &[7, 8], b"abcdef"), entry(6, 40, &[], b"XY")]).unwrap();
        let covered = |at, len| {
            let mut buf = vec![b'.'; len];
            overlay.cover(at, &mut buf);
            String::from_utf8(buf).unwrap()
        };
        assert_eq!(covered(98, 4), "..ab");
        assert_eq!(covered(103, 6), "def...");
        assert_eq!(covered(102, 2), "cd");
        assert_eq!(covered(40, 2), "XY");
        assert_eq!(covered(39, 2), ".X");
        assert_eq!(covered(42, 58), ".".repeat(58));
        assert_eq!(covered(106, 2), "..");
    }

    #[test]
    fn hostile_images() {
        assert!(read(&[entry(5, 100, &[], b"abc"), entry(5, 102, &[], b"d")]).is_err(), "overlap");
        assert!(read(&[entry(5, 1 << 40, &[], b"abc")]).is_err(), "out of the file");
        assert!(read(&[entry(5, 100, &[], b"")]).is_err(), "empty");
        assert!(read(&[entry(31, 100, &[], b"abc")]).is_err(), "kind");
        let (mut bytes, len) = image(&[entry(5, 100, &[], b"abc")]);
        assert!(Overlay::read(&file(&bytes), FileAddr(256), len - 1).is_err(), "length");
        *bytes.last_mut().unwrap() ^= 1;
        let error = Overlay::read(&file(&bytes), FileAddr(256), len).unwrap_err();
        assert!(matches!(error, HdfError::BadChecksum { at: 256, .. }));
        bytes[256 + 14] = 0xff;
        let error = Overlay::read(&file(&bytes), FileAddr(256), len).unwrap_err();
        assert!(matches!(error, HdfError::Truncated { .. }), "{error}");
    }
}
