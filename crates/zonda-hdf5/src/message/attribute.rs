//! Attribute message (0x000C): a name with a small array.
//! Spec: HDF5 File Format, "The Attribute Message". Versions 1 to 3 read, 3 written.
//! Watch: version 1 fills name, type and space up to multiples of 8 bytes, though the stored sizes
//! do not count that. A shared type is a reference where the type would be.

use super::{Charset, Dataspace, Datatype, kind};
use crate::shared::{self, SharedReference};
use crate::{Attribute, File, FileAddr, HdfError, Reader, Result, Writer};

/// An attribute.
#[derive(Clone, Debug)]
pub struct AttributeMessage<'a> {
    /// Name.
    pub name: &'a [u8],
    /// Its character set.
    pub charset: Charset,
    /// Type of an element.
    pub datatype: Datatype,
    /// The committed type that the message refers to.
    pub committed: Option<FileAddr>,
    /// Shape.
    pub dataspace: Dataspace,
    /// All elements in file form.
    pub data: &'a [u8],
}

/// The parts of an attribute message, with type and space not decoded, which a list of names does
/// not need.
#[derive(Clone, Copy, Debug)]
pub struct AttributeParts<'a> {
    /// Version of the message.
    pub version: u8,
    /// Name.
    pub name: &'a [u8],
    /// Its character set.
    pub charset: Charset,
    /// Whether `datatype` is a reference to a message elsewhere.
    pub datatype_shared: bool,
    /// Datatype message or reference.
    pub datatype: Reader<'a>,
    /// Whether `dataspace` is a reference to a message elsewhere.
    pub dataspace_shared: bool,
    /// Dataspace message or reference.
    pub dataspace: Reader<'a>,
    /// The elements and what may follow.
    pub data: Reader<'a>,
}

impl<'a> AttributeParts<'a> {
    /// Splits the message into its parts.
    ///
    /// # Errors
    /// Also for a name that is empty or does not end where it should.
    pub fn decode(reader: Reader<'a>) -> Result<AttributeParts<'a>> {
        let mut reader = reader.named("attribute message");
        let version = reader.version(1..=3)?;
        let flags = match reader.u8()? {
            // Reserved in version 1, where it has no meaning.
            _ if version == 1 => 0,
            flags if flags & !3 == 0 => flags,
            flags => return Err(reader.bad("flags", u64::from(flags))),
        };
        let name_len = usize::from(reader.u16()?);
        let datatype_len = usize::from(reader.u16()?);
        let dataspace_len = usize::from(reader.u16()?);
        let charset = if version == 3 { Charset::decode(&mut reader)? } else { Charset::Ascii };
        let mut part = |len: usize| -> Result<Reader<'a>> {
            let part = reader.sub(len)?;
            if version == 1 {
                reader.skip(8usize.saturating_sub(len % 8) % 8)?;
            }
            Ok(part)
        };
        let mut name = part(name_len)?;
        let datatype = part(datatype_len)?;
        let dataspace = part(dataspace_len)?;
        let text = name.until_nul()?;
        if text.is_empty() || !name.is_empty() {
            return Err(name.bad("length of an attribute's name", text.len() as u64));
        }
        Ok(AttributeParts {
            version,
            name: text,
            charset,
            datatype_shared: flags & 1 != 0,
            datatype,
            dataspace_shared: flags & 2 != 0,
            dataspace,
            data: reader,
        })
    }

    /// Decodes type and space, wherever they are, and takes the elements.
    ///
    /// # Errors
    /// Also where the message is shorter than its elements.
    pub fn resolve(&self, file: &File) -> Result<AttributeMessage<'a>> {
        let (datatype, committed) = if self.datatype_shared {
            let body = shared::resolve(file, self.datatype, kind::DATATYPE)?;
            (Datatype::decode(body.reader(file), file.limits())?, body.committed)
        } else {
            (Datatype::decode(self.datatype, file.limits())?, None)
        };
        let dataspace = if self.dataspace_shared {
            let body = shared::resolve(file, self.dataspace, kind::DATASPACE)?;
            Dataspace::decode(body.reader(file), file.limits())?
        } else {
            Dataspace::decode(self.dataspace, file.limits())?
        };
        let len = dataspace.elements().saturating_mul(u64::from(datatype.size));
        let data = { self.data }.take_u64(len)?;
        let (name, charset) = (self.name, self.charset);
        Ok(AttributeMessage { name, charset, datatype, committed, dataspace, data })
    }
}

impl<'a> AttributeMessage<'a> {
    /// Decodes the message.
    ///
    /// # Errors
    /// Those of [`AttributeParts::decode`] and [`AttributeParts::resolve`].
    pub fn decode(file: &File, reader: Reader<'a>) -> Result<AttributeMessage<'a>> {
        AttributeParts::decode(reader)?.resolve(file)
    }
}

impl Attribute {
    /// Encodes the message, which may be longer than a header can hold. A committed type is
    /// referred to, not copied.
    ///
    /// # Errors
    /// [`HdfError::BadValue`] where `data` has not as many bytes as type and space say, or the name
    /// is empty or holds a NUL; [`HdfError::TooLarge`] for names and types of 64 KiB and more.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        let structure = "attribute message";
        let bad = |what, value| HdfError::BadValue { structure, at: 0, what, value };
        if self.name.is_empty() || self.name.contains(&0) {
            return Err(bad("length of an attribute's name", self.name.len() as u64));
        }
        let len = u64::from(self.datatype.size).checked_mul(self.dataspace.elements());
        if len != Some(self.data.len() as u64) {
            return Err(bad("bytes of an attribute's elements", self.data.len() as u64));
        }
        // The lengths of the name, the datatype and the dataspace come before these.
        let start = writer.len();
        writer.u8(3).u8(u8::from(self.committed.is_some())).zeros(6);
        writer.u8(self.charset.code());
        let name = writer.len();
        writer.put(&self.name).u8(0);
        let datatype = writer.len();
        match self.committed {
            Some(addr) => SharedReference::Committed(addr).encode(writer)?,
            None => self.datatype.encode(writer)?,
        }
        let dataspace = writer.len();
        self.dataspace.encode(writer)?;
        let ends = [(name, datatype), (datatype, dataspace), (dataspace, writer.len())];
        for (place, (begin, end)) in (start.saturating_add(2)..).step_by(2).zip(ends) {
            writer.set_u16(place, end.saturating_sub(begin))?;
        }
        writer.put(&self.data);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{encoded, file, hex};
    use crate::{HdfError, Sizes};

    fn decode(bytes: &[u8]) -> Result<AttributeParts<'_>> {
        AttributeParts::decode(Reader::new("test", bytes, 0, Sizes::EIGHT))
    }

    #[test]
    fn versions_differ_in_padding_and_charset() {
        let mut v1 = b"\x01\x09\x06\0\x04\0\x02\0".to_vec();
        v1.extend(b"units\0\0\0TYPE\0\0\0\0SP\0\0\0\0\0\0data");
        let v1 = decode(&v1).unwrap();
        assert_eq!(
            (v1.name, v1.charset, v1.datatype_shared),
            (&b"units"[..], Charset::Ascii, false)
        );
        assert_eq!((v1.datatype.rest(), v1.dataspace.rest()), (&b"TYPE"[..], &b"SP"[..]));
        assert_eq!(v1.data.rest(), b"data");
        let whole = b"\x01\0\x08\0\x08\0\x10\0seven77\0DATATYPEDATASPACEDATASPAdata";
        let whole = decode(whole).unwrap();
        assert_eq!((whole.name, whole.data.rest()), (&b"seven77"[..], &b"data"[..]));
        let v2 = decode(b"\x02\x01\x06\0\x04\0\x02\0units\0TYPESPdata").unwrap();
        assert!(v2.datatype_shared && !v2.dataspace_shared);
        assert_eq!((v2.name, v2.data.rest()), (&b"units"[..], &b"data"[..]));
        let v3 = decode(b"\x03\x00\x06\0\x04\0\x02\0\x01units\0TYPESPdata").unwrap();
        assert_eq!((v3.charset, v3.data.at()), (Charset::Utf8, 21));
    }

    #[test]
    fn hostile_attributes() {
        assert!(decode(b"\x03\0\0\0\x04\0\x02\0\0TYPESP").is_err(), "name of length 0");
        assert!(decode(b"\x03\0\x01\0\x04\0\x02\0\0\0TYPESP").is_err(), "empty name");
        assert!(decode(b"\x03\0\x06\0\x04\0\x02\0\0unit\0\0TYPESP").is_err(), "shorter name");
        assert!(decode(b"\x03\0\x05\0\x04\0\x02\0\0unitsTYPESP").is_err(), "no NUL");
        assert!(decode(b"\x03\x04\x06\0\x04\0\x02\0\0units\0TYPESP").is_err(), "flags");
        let cut = decode(b"\x03\0\x06\0\xff\xff\x02\0\0units\0TYPESP");
        assert!(matches!(cut, Err(HdfError::Truncated { need: 0xffff, .. })));
    }

    /// An attribute whose message this is.
    fn attribute(file: &File, body: &[u8]) -> Attribute {
        let reader = Reader::new("test", body, 0, Sizes::EIGHT);
        let message = AttributeMessage::decode(file, reader).unwrap();
        Attribute {
            name: message.name.into(),
            charset: message.charset,
            creation_order: None,
            datatype: message.datatype,
            committed: message.committed,
            dataspace: message.dataspace,
            data: message.data.into(),
        }
    }

    #[test]
    fn written_as_libraries_do() {
        // netCDF-C 4.9.0 on HDF5 1.10.8: text, three integers, empty text, two strings, scales of
        // dimensions. h5py 3.16 on HDF5 2.0: a string in UTF-8.
        let bodies = [
            "0300 0600 0800 0400 00 756e69747300 13000000 05000000 02000000 686f757273",
            "0300 0300 0c00 1400 00 693300 10080000 04000000 0000 2000
             02010101 0300000000000000 0300000000000000 010000000200000003000000",
            "0300 0600 0800 0400 00 656d70747900 13000000 01000000 02000002",
            "0300 0500 1400 1400 00 7374727300 19010100 10000000 10000000 01000000 0000 0800
             02010101 0200000000000000 0200000000000000
             01000000001000000000000001000000 02000000001000000000000002000000",
            "0300 0f00 1000 1400 00 44494d454e53494f4e5f4c49535400 19000000 10000000
             17000000 08000000 02010101 0100000000000000 0100000000000000
             01000000001000000000000004000000",
            "0300 0200 1400 0400 00 7300 19010100 10000000 10000000 01000000 0000 0800
             02000000 07000000000800000000000001000000",
        ];
        for body in bodies.map(hex) {
            let attribute = attribute(&file(b""), &body);
            assert_eq!(encoded(|writer| attribute.encode(writer)).unwrap(), body);
        }
    }

    #[test]
    fn a_committed_type_is_referred_to() {
        // h5py 3.16: the type of this attribute is a committed one; here it is at byte 64.
        let body = hex("0301 0300 0a00 1400 00 636100 0202 4000000000000000
             02010101 0200000000000000 0200000000000000 0000000000000000 0000000000000000");
        let integer = hex("10080000 08000000 0000 4000");
        let header = crate::built_file::object(&[(3, integer)]);
        let mut bytes = [vec![0; 64], header].concat();
        let sum = crate::checksum::lookup3(&bytes[64..], 0);
        bytes.extend(sum.to_le_bytes());
        let attribute = attribute(&file(&bytes), &body);
        assert_eq!((attribute.committed, attribute.datatype.size), (Some(FileAddr(64)), 8));
        assert_eq!(encoded(|writer| attribute.encode(writer)).unwrap(), body);
    }

    #[test]
    fn attributes_that_cannot_be() {
        let body = hex("0300 0600 0800 0400 00 756e69747300 13000000 05000000 02000000 686f757273");
        let good = attribute(&file(b""), &body);
        let refused = |attribute: Attribute| encoded(|writer| attribute.encode(writer)).is_err();
        assert!(!refused(good.clone()));
        assert!(refused(Attribute { name: b"".as_slice().into(), ..good.clone() }));
        assert!(refused(Attribute { name: b"a\0b".as_slice().into(), ..good.clone() }));
        assert!(refused(Attribute { name: vec![b'x'; 0xffff].into(), ..good.clone() }));
        assert!(!refused(Attribute { name: vec![b'x'; 0xfffe].into(), ..good.clone() }));
        assert!(refused(Attribute { data: b"hour".to_vec(), ..good.clone() }));
    }
}
