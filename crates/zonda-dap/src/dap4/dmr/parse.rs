//! Reads a DMR.

use roxmltree::Node;

use super::names::At;
use super::tree::{
    Atomic, Attribute, AttributeValue, DimRef, Dimension, Dmr, Enumeration, Group, MOST_DEPTH,
    Type, Variable,
};
use super::xml;
use crate::dap4::error;
use crate::error::{DapError, Document};

type Result<T> = std::result::Result<T, DapError>;

impl Dmr {
    /// Reads a document; where it is one of an error, that error is the result.
    ///
    /// # Errors
    /// XML that is not well formed, nested too deep or of something else; names, sizes and types that are missing or wrong.
    pub fn parse(bytes: &[u8]) -> Result<Dmr> {
        let text = xml::text(bytes)?;
        let text = text.trim_start();
        if !looks_like_dmr(text) {
            return Err(error::other(Document::Dmr, text));
        }
        let document = xml::parse(text)?;
        let root = document.root_element();
        match root.tag_name().name() {
            "Dataset" => {}
            "Error" => return Err(error::of_element(Document::Dmr, root)),
            "html" | "HTML" => return Err(error::other(Document::Dmr, text)),
            name => return wrong(root, format!("the root is <{name}>, not <Dataset>")),
        }
        let attribute = |name| root.attribute(name).unwrap_or_default().to_owned();
        let mut dmr = Dmr {
            name: attribute("name"),
            dap_version: attribute("dapVersion"),
            dmr_version: attribute("dmrVersion"),
            root: group(root, 0)?,
        };
        dmr.root.name = "/".into();
        Ok(dmr)
    }
}

fn looks_like_dmr(text: &str) -> bool {
    text.starts_with("<?xml") || text.starts_with("<Dataset") || text.starts_with("<Error")
}

fn at(node: Node<'_, '_>) -> At {
    At(node.range().start as u64)
}

fn wrong<T>(node: Node<'_, '_>, what: impl Into<String>) -> Result<T> {
    Err(DapError::malformed(Document::Dmr, at(node).0, what))
}

fn deeper(node: Node<'_, '_>, depth: usize) -> Result<usize> {
    if depth >= MOST_DEPTH {
        return wrong(node, format!("nested more than {MOST_DEPTH} deep"));
    }
    Ok(depth.saturating_add(1))
}

fn elements<'a, 'i>(node: Node<'a, 'i>) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(Node::is_element)
}

fn named<'a, 'i>(node: Node<'a, 'i>, name: &'static str) -> impl Iterator<Item = Node<'a, 'i>> {
    elements(node).filter(move |child| child.tag_name().name() == name)
}

fn name(node: Node<'_, '_>) -> Result<String> {
    match node.attribute("name") {
        Some(name) if !name.is_empty() => Ok(name.to_owned()),
        _ => wrong(node, format!("<{}> has no name", node.tag_name().name())),
    }
}

fn describe(node: Node<'_, '_>) -> String {
    format!("{} {:?}", node.tag_name().name(), node.attribute("name").unwrap_or_default())
}

fn size(node: Node<'_, '_>, text: &str) -> Result<u64> {
    match text.trim().parse() {
        Ok(size) => Ok(size),
        Err(_) => wrong(node, format!("{}: {text:?} is no size", describe(node))),
    }
}

fn reserved(node: Node<'_, '_>) -> Vec<(String, String)> {
    let all = node.attributes().filter(|attribute| attribute.name().starts_with('_'));
    all.map(|attribute| (attribute.name().to_owned(), attribute.value().to_owned())).collect()
}

fn group(node: Node<'_, '_>, depth: usize) -> Result<Group> {
    let depth = deeper(node, depth)?;
    let mut group = Group { at: at(node), ..Group::default() };
    let namespace = node.tag_name().namespace();
    for child in elements(node) {
        match child.tag_name().name() {
            "Dimension" => group.dims.push(dimension(child, depth)?),
            "Enumeration" => group.enums.push(enumeration(child)?),
            "Group" => {
                let name = name(child)?;
                group.groups.push(Group { name, ..self::group(child, depth)? });
            }
            "Attribute" | "OtherXML" => group.attributes.push(attribute(child, depth)?),
            // What others add has a namespace of its own, as that of DMR++.
            _ if child.tag_name().namespace() != namespace => {}
            _ => group.vars.push(variable(child, depth)?),
        }
    }
    Ok(group)
}

fn dimension(node: Node<'_, '_>, depth: usize) -> Result<Dimension> {
    let name = name(node)?;
    let Some(text) = node.attribute("size") else {
        return wrong(node, format!("{} has no size", describe(node)));
    };
    let size = size(node, text)?;
    let attributes = attributes(node, depth)?;
    Ok(Dimension { name, at: at(node), size, reserved: reserved(node), attributes })
}

fn enumeration(node: Node<'_, '_>) -> Result<Enumeration> {
    let name = name(node)?;
    let base = node.attribute("basetype").unwrap_or_default();
    let (base, (least, most)) = match Atomic::named(base.trim_start_matches('/')) {
        Some(base) if base.range().is_some() => (base, base.range().unwrap_or_default()),
        _ => return wrong(node, format!("{}: {base:?} is no integer type", describe(node))),
    };
    let mut constants = Vec::new();
    for child in named(node, "EnumConst") {
        let name = self::name(child)?;
        let text = child.attribute("value").unwrap_or_default();
        match text.trim().parse::<i128>() {
            Ok(value) if (least..=most).contains(&value) => constants.push((name, value)),
            _ => {
                let what = format!("{}: {name} has {text:?} as value", describe(node));
                return wrong(child, what);
            }
        }
    }
    if constants.is_empty() {
        return wrong(node, format!("{} has no values", describe(node)));
    }
    Ok(Enumeration { name, at: at(node), base, constants })
}

fn variable(node: Node<'_, '_>, depth: usize) -> Result<Variable> {
    let depth = deeper(node, depth)?;
    let tag = node.tag_name().name();
    let ty = if let Some(atomic) = Atomic::named(tag) {
        Type::Atomic(atomic)
    } else if tag.eq_ignore_ascii_case("Enum") {
        match node.attribute("enum") {
            Some(name) => Type::Enum(name.to_owned()),
            None => return wrong(node, format!("{} does not say which", describe(node))),
        }
    } else if tag.eq_ignore_ascii_case("Opaque") {
        Type::Opaque
    } else if tag.eq_ignore_ascii_case("Structure") {
        Type::Structure(fields(node, depth)?)
    } else if tag.eq_ignore_ascii_case("Sequence") {
        Type::Sequence(fields(node, depth)?)
    } else {
        return wrong(node, format!("<{tag}> is no element of a DMR"));
    };
    let name = name(node)?;
    let mut dims = Vec::new();
    for child in named(node, "Dim") {
        dims.push(match (child.attribute("name"), child.attribute("size")) {
            (Some(name), _) => DimRef::Shared(name.to_owned()),
            (None, Some(text)) => DimRef::Size(size(child, text)?),
            (None, None) => {
                let what = format!("{}: a <Dim> has neither name nor size", describe(node));
                return wrong(child, what);
            }
        });
    }
    let maps = named(node, "Map").map(self::name).collect::<Result<_>>()?;
    let attributes = attributes(node, depth)?;
    Ok(Variable { name, at: at(node), ty, dims, maps, reserved: reserved(node), attributes })
}

fn fields(node: Node<'_, '_>, depth: usize) -> Result<Vec<Variable>> {
    let namespace = node.tag_name().namespace();
    let fields = elements(node).filter(|child| {
        let tag = child.tag_name();
        !matches!(tag.name(), "Dim" | "Map" | "Attribute" | "OtherXML")
            && tag.namespace() == namespace
    });
    fields.map(|child| variable(child, depth)).collect()
}

fn attributes(node: Node<'_, '_>, depth: usize) -> Result<Vec<Attribute>> {
    let all =
        elements(node).filter(|child| matches!(child.tag_name().name(), "Attribute" | "OtherXML"));
    all.map(|child| attribute(child, depth)).collect()
}

fn attribute(node: Node<'_, '_>, depth: usize) -> Result<Attribute> {
    let depth = deeper(node, depth)?;
    if node.tag_name().name() == "OtherXML" {
        let name = node.attribute("name").unwrap_or_default().to_owned();
        return Ok(Attribute { name, at: at(node), value: other_xml(node) });
    }
    let name = name(node)?;
    let kind = node.attribute("type").unwrap_or("Container");
    let value = if kind.eq_ignore_ascii_case("Container") {
        AttributeValue::Container(attributes(node, depth)?)
    } else if kind.eq_ignore_ascii_case("OtherXML") {
        other_xml(node)
    } else {
        AttributeValue::Values(kind.to_owned(), values(node))
    };
    Ok(Attribute { name, at: at(node), value })
}

/// What is between the tags, as it stands.
fn other_xml(node: Node<'_, '_>) -> AttributeValue {
    let (first, last) = (node.first_child(), node.last_child());
    let range = match (first, last) {
        (Some(first), Some(last)) => first.range().start..last.range().end,
        _ => 0..0,
    };
    let text = node.document().input_text().get(range).unwrap_or_default();
    AttributeValue::OtherXml(text.to_owned())
}

/// A value is an XML attribute of the attribute, one of a `<Value>`, or the text in one.
fn values(node: Node<'_, '_>) -> Vec<String> {
    if let Some(value) = node.attribute("value") {
        return vec![value.to_owned()];
    }
    let value = |child: Node<'_, '_>| match child.attribute("value") {
        Some(value) => value.to_owned(),
        None => {
            child.descendants().filter_map(|node| node.text().filter(|_| node.is_text())).collect()
        }
    };
    named(node, "Value").map(value).collect()
}
