//! Finds the object that a name means.
//!
//! Dimensions are looked up in the group and those around it. So are types; if none is found, the
//! only type of that name in the whole text is meant. Variables are looked up in the group itself.
//! A path means exactly one object.

use std::collections::HashMap;

use crate::schema::{Primitive, TypeRef};
use zonda_model::ExtType;

/// Kinds of objects. Objects of different kinds may have the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum NameSpace {
    Group,
    Type,
    Dimension,
    Variable,
}

/// A name as it is written.
#[derive(Clone, Debug)]
pub(crate) enum NameReference {
    Name(Vec<u8>),
    Path(Vec<Vec<u8>>),
    /// A keyword for a type. An object may have this name all the same.
    Primitive(Primitive, Vec<u8>),
}

impl NameReference {
    /// The name; `None` for a path.
    pub(crate) fn into_name(self) -> Option<Vec<u8>> {
        match self {
            NameReference::Name(name) | NameReference::Primitive(_, name) => Some(name),
            NameReference::Path(_) => None,
        }
    }

    /// The name as it is written, for messages.
    pub(crate) fn text(&self) -> String {
        match self {
            NameReference::Name(name) => String::from_utf8_lossy(name).into_owned(),
            NameReference::Path(parts) => {
                let parts = parts.iter().map(|part| String::from_utf8_lossy(part));
                parts.fold(String::new(), |text, part| text + "/" + &part)
            }
            NameReference::Primitive(_, word) => String::from_utf8_lossy(word).into_owned(),
        }
    }
}

/// Names of all objects.
#[derive(Debug, Default)]
pub(crate) struct ObjectNames {
    /// Objects by kind, group and name.
    by_name: HashMap<(NameSpace, usize, Vec<u8>), usize>,
    /// Types by name, whatever their group.
    types: HashMap<Vec<u8>, Vec<usize>>,
    /// The group around each group.
    parents: Vec<Option<usize>>,
}

impl ObjectNames {
    /// Adds an object; `false` if another one has the name.
    pub(crate) fn add(
        &mut self,
        space: NameSpace,
        group: usize,
        name: &[u8],
        index: usize,
    ) -> bool {
        let key = (space, group, name.to_vec());
        if self.by_name.contains_key(&key) {
            return false;
        }
        self.by_name.insert(key, index);
        if space == NameSpace::Type {
            self.types.entry(name.to_vec()).or_default().push(index);
        }
        true
    }

    /// Adds a group, inside of another one.
    pub(crate) fn add_group(&mut self, parent: Option<usize>) {
        self.parents.push(parent);
    }

    /// How many groups are around a group.
    pub(crate) fn depth(&self, group: usize) -> usize {
        let around = |group: &usize| self.parents.get(*group).copied().flatten();
        std::iter::successors(Some(group), around).count().saturating_sub(1)
    }

    fn find(&self, space: NameSpace, group: usize, name: &[u8]) -> Option<usize> {
        self.by_name.get(&(space, group, name.to_vec())).copied()
    }

    /// The nearest object with this name in the group and those around it.
    fn find_outwards(&self, space: NameSpace, group: usize, name: &[u8]) -> Option<usize> {
        let mut next = Some(group);
        while let Some(group) = next {
            if let Some(found) = self.find(space, group, name) {
                return Some(found);
            }
            next = self.parents.get(group).copied().flatten();
        }
        None
    }

    fn at_path(&self, space: NameSpace, parts: &[Vec<u8>]) -> Option<usize> {
        let (name, groups) = parts.split_last()?;
        let group = groups.iter().try_fold(0, |at, part| self.find(NameSpace::Group, at, part))?;
        self.find(space, group, name)
    }

    pub(crate) fn dimension(&self, group: usize, reference: &NameReference) -> Option<usize> {
        match reference {
            NameReference::Name(name) | NameReference::Primitive(_, name) => {
                self.find_outwards(NameSpace::Dimension, group, name)
            }
            NameReference::Path(parts) => self.at_path(NameSpace::Dimension, parts),
        }
    }

    pub(crate) fn variable(&self, group: usize, reference: &NameReference) -> Option<usize> {
        match reference {
            NameReference::Name(name) | NameReference::Primitive(_, name) => {
                self.find(NameSpace::Variable, group, name)
            }
            NameReference::Path(parts) => self.at_path(NameSpace::Variable, parts),
        }
    }

    pub(crate) fn user_type(&self, group: usize, name: &[u8]) -> Option<usize> {
        if let Some(found) = self.find_outwards(NameSpace::Type, group, name) {
            return Some(found);
        }
        match self.types.get(name).map(Vec::as_slice) {
            Some([only]) => Some(*only),
            _ => None,
        }
    }

    pub(crate) fn type_ref(&self, group: usize, reference: &NameReference) -> Option<TypeRef> {
        match reference {
            NameReference::Primitive(primitive, _) => Some(TypeRef::Primitive(*primitive)),
            NameReference::Path(parts) => self.at_path(NameSpace::Type, parts).map(TypeRef::User),
            NameReference::Name(name) => match soft_primitive(name) {
                Some(primitive) => Some(TypeRef::Primitive(primitive)),
                None => self.user_type(group, name).map(TypeRef::User),
            },
        }
    }
}

/// Types whose names may also be names of objects, because classic formats do not have these types.
pub(crate) fn soft_primitive(name: &[u8]) -> Option<Primitive> {
    Some(match name {
        b"ubyte" => Primitive::Atomic(ExtType::UByte),
        b"ushort" => Primitive::Atomic(ExtType::UShort),
        b"uint" | b"ulong" | b"uinteger" => Primitive::Atomic(ExtType::UInt),
        b"int64" => Primitive::Atomic(ExtType::Int64),
        b"uint64" => Primitive::Atomic(ExtType::UInt64),
        b"string" => Primitive::String,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes() {
        let mut names = ObjectNames::default();
        // root > a > b, root > c
        for parent in [None, Some(0), Some(1), Some(0)] {
            names.add_group(parent);
        }
        for (group, name, index) in [(0, "a", 1), (1, "b", 2), (0, "c", 3)] {
            assert!(names.add(NameSpace::Group, group, name.as_bytes(), index));
        }
        assert!(
            names.add(NameSpace::Dimension, 0, b"x", 0)
                && names.add(NameSpace::Dimension, 1, b"x", 1)
        );
        assert!(!names.add(NameSpace::Dimension, 1, b"x", 2));
        assert!(names.add(NameSpace::Type, 3, b"t", 0) && names.add(NameSpace::Type, 3, b"u", 1));
        assert!(
            names.add(NameSpace::Type, 2, b"u", 2) && names.add(NameSpace::Variable, 1, b"v", 0)
        );

        let name = |name: &str| NameReference::Name(name.as_bytes().to_vec());
        let path = |parts: &[&str]| {
            NameReference::Path(parts.iter().map(|part| part.as_bytes().to_vec()).collect())
        };
        assert_eq!(names.dimension(2, &name("x")), Some(1));
        assert_eq!(names.dimension(3, &name("x")), Some(0));
        assert_eq!(names.dimension(3, &path(&["a", "x"])), Some(1));
        assert_eq!(names.dimension(3, &path(&["a", "b", "x"])), None);
        assert_eq!(names.variable(1, &name("v")), Some(0));
        assert_eq!(names.variable(2, &name("v")), None);
        assert_eq!(names.variable(2, &path(&["a", "v"])), Some(0));
        assert_eq!(names.type_ref(1, &name("t")), Some(TypeRef::User(0)));
        assert_eq!(names.type_ref(0, &name("u")), None, "there are two");
        assert_eq!(names.type_ref(2, &name("u")), Some(TypeRef::User(2)));
        let uint = TypeRef::Primitive(Primitive::Atomic(ExtType::UInt));
        assert_eq!(names.type_ref(0, &name("ulong")), Some(uint));
        assert_eq!(path(&["a", "b"]).text(), "/a/b");
    }
}
