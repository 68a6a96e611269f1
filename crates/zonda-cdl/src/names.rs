//! Which object a name means.
//!
//! Dimensions are looked for in the group and those around it; types there, and then in the whole text,
//! where there must be one only; variables in the group itself. A path means exactly what it says.

use std::collections::HashMap;

use crate::schema::{Primitive, TypeRef};
use zonda_model::ExtType;

/// What has names of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Space {
    Group,
    Type,
    Dimension,
    Variable,
}

/// A name as it is written.
#[derive(Clone, Debug)]
pub(crate) enum Reference {
    Name(Vec<u8>),
    Path(Vec<Vec<u8>>),
    /// A type, by the word that is written: something may have that name all the same.
    Primitive(Primitive, Vec<u8>),
}

impl Reference {
    /// The name, if it is no path.
    pub(crate) fn into_name(self) -> Option<Vec<u8>> {
        match self {
            Reference::Name(name) | Reference::Primitive(_, name) => Some(name),
            Reference::Path(_) => None,
        }
    }

    /// As it is written, for messages.
    pub(crate) fn text(&self) -> String {
        match self {
            Reference::Name(name) => String::from_utf8_lossy(name).into_owned(),
            Reference::Path(parts) => {
                let parts = parts.iter().map(|part| String::from_utf8_lossy(part));
                parts.fold(String::new(), |text, part| text + "/" + &part)
            }
            Reference::Primitive(_, word) => String::from_utf8_lossy(word).into_owned(),
        }
    }
}

/// Names of all objects.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// By space, group and name.
    by_name: HashMap<(Space, usize, Vec<u8>), usize>,
    /// Types by name, whatever their group.
    types: HashMap<Vec<u8>, Vec<usize>>,
    /// The group around each one.
    parents: Vec<Option<usize>>,
}

impl Names {
    /// Gives an object its name; `false` where another one has it.
    pub(crate) fn add(&mut self, space: Space, group: usize, name: &[u8], index: usize) -> bool {
        let key = (space, group, name.to_vec());
        if self.by_name.contains_key(&key) {
            return false;
        }
        self.by_name.insert(key, index);
        if space == Space::Type {
            self.types.entry(name.to_vec()).or_default().push(index);
        }
        true
    }

    /// A group was made in another.
    pub(crate) fn add_group(&mut self, parent: Option<usize>) {
        self.parents.push(parent);
    }

    /// Groups around a group.
    pub(crate) fn depth(&self, group: usize) -> usize {
        let around = |group: &usize| self.parents.get(*group).copied().flatten();
        std::iter::successors(Some(group), around).count().saturating_sub(1)
    }

    fn find(&self, space: Space, group: usize, name: &[u8]) -> Option<usize> {
        self.by_name.get(&(space, group, name.to_vec())).copied()
    }

    /// The nearest one in the group and those around it.
    fn find_outwards(&self, space: Space, group: usize, name: &[u8]) -> Option<usize> {
        let mut next = Some(group);
        while let Some(group) = next {
            if let Some(found) = self.find(space, group, name) {
                return Some(found);
            }
            next = self.parents.get(group).copied().flatten();
        }
        None
    }

    fn at_path(&self, space: Space, parts: &[Vec<u8>]) -> Option<usize> {
        let (name, groups) = parts.split_last()?;
        let group = groups.iter().try_fold(0, |at, part| self.find(Space::Group, at, part))?;
        self.find(space, group, name)
    }

    pub(crate) fn dimension(&self, group: usize, reference: &Reference) -> Option<usize> {
        match reference {
            Reference::Name(name) | Reference::Primitive(_, name) => {
                self.find_outwards(Space::Dimension, group, name)
            }
            Reference::Path(parts) => self.at_path(Space::Dimension, parts),
        }
    }

    pub(crate) fn variable(&self, group: usize, reference: &Reference) -> Option<usize> {
        match reference {
            Reference::Name(name) | Reference::Primitive(_, name) => {
                self.find(Space::Variable, group, name)
            }
            Reference::Path(parts) => self.at_path(Space::Variable, parts),
        }
    }

    pub(crate) fn user_type(&self, group: usize, name: &[u8]) -> Option<usize> {
        if let Some(found) = self.find_outwards(Space::Type, group, name) {
            return Some(found);
        }
        match self.types.get(name).map(Vec::as_slice) {
            Some([only]) => Some(*only),
            _ => None,
        }
    }

    pub(crate) fn type_ref(&self, group: usize, reference: &Reference) -> Option<TypeRef> {
        match reference {
            Reference::Primitive(primitive, _) => Some(TypeRef::Primitive(*primitive)),
            Reference::Path(parts) => self.at_path(Space::Type, parts).map(TypeRef::User),
            Reference::Name(name) => match soft_primitive(name) {
                Some(primitive) => Some(TypeRef::Primitive(primitive)),
                None => self.user_type(group, name).map(TypeRef::User),
            },
        }
    }
}

/// Types whose names may be names of other things, too: the classic formats do not have them.
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
        let mut names = Names::default();
        // root > a > b, root > c
        for parent in [None, Some(0), Some(1), Some(0)] {
            names.add_group(parent);
        }
        for (group, name, index) in [(0, "a", 1), (1, "b", 2), (0, "c", 3)] {
            assert!(names.add(Space::Group, group, name.as_bytes(), index));
        }
        assert!(names.add(Space::Dimension, 0, b"x", 0) && names.add(Space::Dimension, 1, b"x", 1));
        assert!(!names.add(Space::Dimension, 1, b"x", 2));
        assert!(names.add(Space::Type, 3, b"t", 0) && names.add(Space::Type, 3, b"u", 1));
        assert!(names.add(Space::Type, 2, b"u", 2) && names.add(Space::Variable, 1, b"v", 0));

        let name = |name: &str| Reference::Name(name.as_bytes().to_vec());
        let path = |parts: &[&str]| {
            Reference::Path(parts.iter().map(|part| part.as_bytes().to_vec()).collect())
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
