//! Attributes that are messages of the header, looked at where they are: for a walk over many objects, which asks each
//! for a few attributes by name and needs no list of all.

use super::ATTRIBUTE;
use crate::message::{AttributeParts, kind};
use crate::object_header::Message;
use crate::{File, Object, Reader, Result};

/// An attribute in the header of an object.
#[derive(Clone, Copy, Debug)]
pub struct HeaderAttribute<'a> {
    /// Its name, if the message is sound: it was not looked at otherwise.
    pub name: &'a [u8],
    message: Reader<'a>,
}

impl<'a> HeaderAttribute<'a> {
    fn of(message: Reader<'a>) -> Option<HeaderAttribute<'a>> {
        let bytes = message.rest();
        let &[version, _, a, b, ..] = bytes else { return None };
        // The name follows eight bytes, and its character set in version 3. A NUL ends it.
        let start = if version == 3 { 9usize } else { 8 };
        let end = start.checked_add(usize::from(u16::from_le_bytes([a, b])))?.checked_sub(1)?;
        Some(HeaderAttribute { name: bytes.get(start..end)?, message })
    }

    /// Its parts.
    ///
    /// # Errors
    /// As [`AttributeParts::decode`].
    pub fn parts(&self) -> Result<AttributeParts<'a>> {
        AttributeParts::decode(self.message)
    }
}

impl Object {
    /// The attributes of an object that has all of them in its header, in the order of the header; `None` where some
    /// are elsewhere, as [`Object::attributes`] gives them.
    ///
    /// # Errors
    /// Damage of the message that says where they are.
    pub fn attributes_in_header<'a>(
        &'a self,
        file: &File,
    ) -> Result<Option<impl Iterator<Item = HeaderAttribute<'a>>>> {
        let header = self.header();
        let is_attribute = |message: &&Message| message.kind == kind::ATTRIBUTE;
        if self.has_dense_attributes(file)?
            || header.messages.iter().filter(is_attribute).any(Message::is_shared)
        {
            return Ok(None);
        }
        let sizes = file.sizes();
        let all = header.messages.iter().filter(is_attribute);
        Ok(Some(all.filter_map(move |message| {
            let body = Reader::new(ATTRIBUTE, header.body(message), message.at, sizes);
            HeaderAttribute::of(body)
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sizes;

    #[test]
    fn names_are_those_of_the_parts() {
        let v1 = b"\x01\x09\x06\0\x04\0\x02\0units\0\0\0TYPE\0\0\0\0SP\0\0\0\0\0\0data";
        let v2 = b"\x02\x01\x06\0\x04\0\x02\0units\0TYPESPdata";
        let v3 = b"\x03\x00\x06\0\x04\0\x02\0\x01units\0TYPESPdata";
        for bytes in [&v1[..], v2, v3] {
            let found = HeaderAttribute::of(Reader::new("test", bytes, 0, Sizes::EIGHT)).unwrap();
            assert_eq!((found.name, found.parts().unwrap().name), (&b"units"[..], &b"units"[..]));
        }
        for bytes in [&b""[..], b"\x03\0\0", b"\x03\0\0\0", b"\x03\0\xff\xff\x04\0\x02\0\0units\0"]
        {
            let found = HeaderAttribute::of(Reader::new("test", bytes, 0, Sizes::EIGHT));
            assert!(found.is_none_or(|found| found.parts().is_err()), "{bytes:?}");
        }
    }
}
