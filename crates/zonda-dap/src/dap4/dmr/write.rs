//! Writes a DMR.

use std::fmt::Write as _;

use super::tree::{
    Attribute, AttributeValue, DimRef, Dimension, Dmr, Enumeration, Group, Type, Variable,
};
use super::xml::escape;

impl Dmr {
    /// The document, from which [`Dmr::parse`] makes the same tree.
    #[must_use]
    pub fn write(&self) -> String {
        let mut out = Out { text: String::new(), depth: 0 };
        out.text.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let attributes = [
            ("name", self.name.as_str()),
            ("dapVersion", &self.dap_version),
            ("dmrVersion", &self.dmr_version),
            ("xmlns", "http://xml.opendap.org/ns/DAP/4.0#"),
        ];
        out.element("Dataset", &attributes, &[], |out| out.group(&self.root));
        out.text
    }
}

struct Out {
    text: String,
    depth: usize,
}

impl Out {
    fn indent(&mut self) {
        for _ in 0..self.depth {
            self.text.push_str("    ");
        }
    }

    /// An element, closed at once where `inside` writes nothing.
    fn element(
        &mut self,
        tag: &str,
        attributes: &[(&str, &str)],
        reserved: &[(String, String)],
        inside: impl FnOnce(&mut Out),
    ) {
        self.indent();
        _ = write!(self.text, "<{tag}");
        let reserved = reserved.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in attributes.iter().copied().chain(reserved) {
            _ = write!(self.text, " {name}=\"");
            escape(value, &mut self.text);
            self.text.push('"');
        }
        let begin = self.text.len();
        self.text.push_str(">\n");
        let empty = self.text.len();
        self.depth = self.depth.saturating_add(1);
        inside(self);
        self.depth = self.depth.saturating_sub(1);
        if self.text.len() == empty {
            self.text.truncate(begin);
            self.text.push_str("/>\n");
        } else {
            self.indent();
            _ = writeln!(self.text, "</{tag}>");
        }
    }

    fn group(&mut self, group: &Group) {
        group.dims.iter().for_each(|dim| self.dimension(dim));
        group.enums.iter().for_each(|one| self.enumeration(one));
        group.vars.iter().for_each(|var| self.variable(var));
        group.attributes.iter().for_each(|attribute| self.attribute(attribute));
        for group in &group.groups {
            self.element("Group", &[("name", &group.name)], &[], |out| out.group(group));
        }
    }

    fn dimension(&mut self, dim: &Dimension) {
        let size = dim.size.to_string();
        let attributes = [("name", dim.name.as_str()), ("size", &size)];
        self.element("Dimension", &attributes, &dim.reserved, |out| {
            dim.attributes.iter().for_each(|attribute| out.attribute(attribute));
        });
    }

    fn enumeration(&mut self, one: &Enumeration) {
        let attributes = [("name", one.name.as_str()), ("basetype", one.base.name())];
        self.element("Enumeration", &attributes, &[], |out| {
            for (name, value) in &one.constants {
                let value = value.to_string();
                let attributes = [("name", name.as_str()), ("value", &value)];
                out.element("EnumConst", &attributes, &[], |_| {});
            }
        });
    }

    fn variable(&mut self, var: &Variable) {
        let mut attributes = vec![("name", var.name.as_str())];
        let (tag, fields) = match &var.ty {
            Type::Atomic(atomic) => (atomic.name(), None),
            Type::Enum(name) => {
                attributes.push(("enum", name));
                ("Enum", None)
            }
            Type::Opaque => ("Opaque", None),
            Type::Structure(fields) => ("Structure", Some(fields)),
            Type::Sequence(fields) => ("Sequence", Some(fields)),
        };
        self.element(tag, &attributes, &var.reserved, |out| {
            fields.into_iter().flatten().for_each(|field| out.variable(field));
            for dim in &var.dims {
                match dim {
                    DimRef::Shared(name) => out.element("Dim", &[("name", name)], &[], |_| {}),
                    DimRef::Size(size) => {
                        out.element("Dim", &[("size", &size.to_string())], &[], |_| {});
                    }
                }
            }
            var.attributes.iter().for_each(|attribute| out.attribute(attribute));
            for map in &var.maps {
                out.element("Map", &[("name", map)], &[], |_| {});
            }
        });
    }

    fn attribute(&mut self, attribute: &Attribute) {
        let name = ("name", attribute.name.as_str());
        match &attribute.value {
            AttributeValue::Values(kind, values) => {
                self.element("Attribute", &[name, ("type", kind)], &[], |out| {
                    for value in values {
                        out.element("Value", &[("value", value)], &[], |_| {});
                    }
                });
            }
            AttributeValue::Container(inner) => {
                self.element("Attribute", &[name, ("type", "Container")], &[], |out| {
                    inner.iter().for_each(|attribute| out.attribute(attribute));
                });
            }
            AttributeValue::OtherXml(text) => {
                self.indent();
                let mut written = String::new();
                escape(&attribute.name, &mut written);
                _ = writeln!(self.text, "<OtherXML name=\"{written}\">{text}</OtherXML>");
            }
        }
    }
}
