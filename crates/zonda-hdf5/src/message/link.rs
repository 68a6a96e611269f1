//! Link message (0x0006): a name in a group and what it stands for.
//! Spec: HDF5 File Format, "The Link Message". Version 1.
//! Watch: a link without a type field is a hard link.

use crate::message::Charset;
use crate::{FileAddr, HdfError, Reader, Result, Writer};

/// A name in a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Name.
    pub name: Box<[u8]>,
    /// Its character set.
    pub charset: Charset,
    /// When it was made, as a rank among its group's, where the group keeps that.
    pub creation_order: Option<i64>,
    /// What it stands for.
    pub target: LinkTarget,
}

/// What a link stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkTarget {
    /// An object of this file.
    Hard(FileAddr),
    /// A path in this file, which need not lead anywhere.
    Soft(Box<[u8]>),
    /// A path in another file.
    External {
        /// The file.
        file: Box<[u8]>,
        /// The path in it.
        path: Box<[u8]>,
    },
    /// Something only the writer's program knows.
    UserDefined {
        /// Type, 65 and above.
        kind: u8,
        /// Its bytes.
        data: Box<[u8]>,
    },
}

impl Link {
    /// Decodes the message.
    ///
    /// # Errors
    /// Also for an empty name and for link types that the format does not define.
    pub fn decode(mut reader: Reader<'_>) -> Result<Link> {
        reader = reader.named("link message");
        reader.version(1..=1)?;
        let flags = reader.u8()?;
        if flags & !0x1f != 0 {
            return Err(reader.bad("flags", u64::from(flags)));
        }
        let kind = if flags & 0x08 != 0 { reader.u8()? } else { 0 };
        let creation_order = match flags & 0x04 {
            0 => None,
            _ => Some(i64::from_le_bytes(reader.array()?)),
        };
        let charset = match flags & 0x10 {
            0 => Charset::Ascii,
            _ => Charset::decode(&mut reader)?,
        };
        let name_len = reader.uint(1usize << (flags & 3))?;
        if name_len == 0 {
            return Err(reader.bad("length of the name", 0));
        }
        let name = reader.take_u64(name_len)?.into();
        let target = match kind {
            0 => LinkTarget::Hard(reader.defined_addr("object")?),
            1 => {
                let len = reader.u16()?;
                if len == 0 {
                    return Err(reader.bad("length of a soft link's path", 0));
                }
                LinkTarget::Soft(reader.take(usize::from(len))?.into())
            }
            64 => {
                let len = reader.u16()?;
                let mut value = reader.sub(usize::from(len))?;
                let flags = value.u8()?;
                if flags != 0 {
                    return Err(value.bad("version and flags of an external link", flags.into()));
                }
                let file = value.until_nul()?.into();
                LinkTarget::External { file, path: value.until_nul()?.into() }
            }
            65.. => {
                let len = reader.u16()?;
                LinkTarget::UserDefined { kind, data: reader.take(usize::from(len))?.into() }
            }
            _ => return Err(reader.bad("type of link", u64::from(kind))),
        };
        Ok(Link { name, charset, creation_order, target })
    }

    /// Encodes the message. The character set is named only where it is not ASCII, and the type
    /// only where the link is not a hard one, as libraries do.
    ///
    /// # Errors
    /// [`HdfError::TooLarge`] for targets of 64 KiB and more.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        let name_len = self.name.len() as u64;
        let width: u8 = match name_len {
            0..=0xff => 0,
            0x100..=0xffff => 1,
            0x1_0000..=0xffff_ffff => 2,
            _ => 3,
        };
        let kind = match &self.target {
            LinkTarget::Hard(_) => None,
            LinkTarget::Soft(_) => Some(1),
            LinkTarget::External { .. } => Some(64),
            LinkTarget::UserDefined { kind, .. } => Some(*kind),
        };
        let charset = Some(self.charset).filter(|&charset| charset != Charset::Ascii);
        let ordered = u8::from(self.creation_order.is_some()) << 2;
        let typed = u8::from(kind.is_some()) << 3;
        let flags = width | ordered | typed | u8::from(charset.is_some()) << 4;
        writer.u8(1).u8(flags).put(kind.as_slice());
        if let Some(order) = self.creation_order {
            writer.put(&order.to_le_bytes());
        }
        if let Some(charset) = charset {
            writer.u8(charset.code());
        }
        writer.uint(name_len, 1u8 << width)?.put(&self.name);
        match &self.target {
            LinkTarget::Hard(addr) => writer.addr(Some(*addr))?,
            LinkTarget::Soft(path) => target(writer, &[path])?,
            LinkTarget::External { file, path } => target(writer, &[&[0], file, &[0], path, &[0]])?,
            LinkTarget::UserDefined { data, .. } => target(writer, &[data])?,
        };
        Ok(())
    }
}

/// The parts of what a link stands for, with their length before them.
fn target<'a>(writer: &'a mut Writer, parts: &[&[u8]]) -> Result<&'a mut Writer> {
    let parts = parts.concat();
    let too_large = |_| HdfError::TooLarge { structure: "link message", value: parts.len() as u64 };
    Ok(writer.u16(u16::try_from(parts.len()).map_err(too_large)?).put(&parts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sizes;
    use crate::testing::{encoded, hex};

    fn decode(bytes: &[u8]) -> Result<Link> {
        Link::decode(Reader::new("test", bytes, 0, Sizes { offset: 4, length: 4 }))
    }

    #[test]
    fn hard_link_without_a_type() {
        let link = decode(b"\x01\x00\x02uv\x10\x20\x00\x00").unwrap();
        assert_eq!((&*link.name, link.charset), (b"uv".as_slice(), Charset::Ascii));
        assert_eq!(link.target, LinkTarget::Hard(FileAddr(0x2010)));
        assert_eq!(link.creation_order, None);
    }

    #[test]
    fn all_fields_and_other_targets() {
        let mut bytes = b"\x01\x1d\x01\x07\0\0\0\0\0\0\0\x01\x01\0a".to_vec();
        bytes.extend(b"\x03\0b/c");
        let link = decode(&bytes).unwrap();
        assert_eq!((link.creation_order, link.charset), (Some(7), Charset::Utf8));
        assert_eq!(link.target, LinkTarget::Soft(b"b/c".as_slice().into()));
        let link = decode(b"\x01\x08\x40\x01x\x08\0\0f.h5\0/\0").unwrap();
        let (file, path) = (b"f.h5".as_slice().into(), b"/".as_slice().into());
        assert_eq!(link.target, LinkTarget::External { file, path });
        let link = decode(b"\x01\x08\x41\x01x\x02\0hi").unwrap();
        assert!(matches!(link.target, LinkTarget::UserDefined { kind: 65, .. }));
    }

    #[test]
    fn hostile_links() {
        assert!(decode(b"\x01\x00\x00\x10\x20\x00\x00").is_err(), "no name");
        assert!(decode(b"\x01\x03\xff\xff\xff\xff\xff\xff\xff\xffuv").is_err(), "long name");
        assert!(decode(b"\x01\x00\x01a\xff\xff\xff\xff").is_err(), "no object");
        assert!(decode(b"\x01\x08\x02\x01aaaaa").is_err(), "unknown type");
        assert!(decode(b"\x01\x08\x40\x01x\x06\0\0f.h5\0").is_err(), "no path");
        assert!(decode(b"\x01\x08\x01\x01x\x00\0").is_err(), "soft link to nothing");
        assert!(decode(b"\x01\x20\x01x\0\0\0\0").is_err(), "unknown flag");
    }

    #[test]
    fn written_as_libraries_do() {
        // netCDF-C 4.9.0 on HDF5 1.10.8, "uv" and "h\u{f6}he", both said to be ASCII, and a name of
        // 256 bytes; h5py 3.16 with the order of creation, a name in UTF-8, a soft link, an
        // external one; HDF5 1.10.8 without the order.
        let long = format!("0105 0300000000000000 0001 {} 4b04000000000000", "6e".repeat(256));
        let bodies = [
            "0104 0100000000000000 02 7576 3302000000000000",
            "0104 0200000000000000 05 68c3b66865 3f03000000000000",
            &long,
            "0114 0200000000000000 01 04 68c3b66d ef00000000000000",
            "010c01 0000000000000000 04 736f6674 0400 2f6c7a66",
            "010c40 0100000000000000 03 657874 0900 00 6f2e683500 2f7800",
            "0100 01 67 c300000000000000",
        ];
        for body in bodies.map(hex) {
            let link = Link::decode(Reader::new("test", &body, 0, Sizes::EIGHT)).unwrap();
            assert_eq!(encoded(|writer| link.encode(writer)).unwrap(), body);
        }
        let target = LinkTarget::UserDefined { kind: 65, data: vec![7; 0x1_0000].into() };
        let (name, charset) = (b"x".as_slice().into(), Charset::Ascii);
        let long = Link { name, charset, creation_order: None, target };
        assert!(matches!(encoded(|writer| long.encode(writer)), Err(HdfError::TooLarge { .. })));
    }
}
