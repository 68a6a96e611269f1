//! Reads a DMR.

use roxmltree::Node;

use super::names::At;
use super::relative;
use super::tree::{
    Atomic, Attribute, AttributeValue, DimRef, Dimension, Dmr, Enumeration, Group, MOST_DEPTH,
    MOST_OBJECTS, Type, Variable,
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
        if !text.starts_with('<') || error::is_page(text) {
            return Err(error::other(Document::Dmr, text));
        }
        let document = xml::parse(text)?;
        let root = document.root_element();
        match root.tag_name().name() {
            "Dataset" => {}
            "Error" => return Err(error::of_element(Document::Dmr, root)),
            name => return wrong(root, format!("the root is <{name}>, not <Dataset>")),
        }
        if let Some(node) = document.descendants().filter(is_object).nth(MOST_OBJECTS) {
            let what = "variables, fields, dimensions, types and groups";
            return wrong(node, format!("there are more than {MOST_OBJECTS} {what}"));
        }
        let attribute = |name| root.attribute(name).unwrap_or_default().to_owned();
        let mut dmr = Dmr {
            name: attribute("name"),
            dap_version: attribute("dapVersion"),
            dmr_version: attribute("dmrVersion"),
            root: group(root, 0)?,
        };
        dmr.root.name = "/".into();
        relative::resolve(&mut dmr);
        Ok(dmr)
    }
}

/// Whether an element becomes a definition, each of which takes some kilobytes of memory.
fn is_object(node: &Node<'_, '_>) -> bool {
    const OTHERS: [&str; 8] =
        ["Structure", "Sequence", "Enum", "Opaque", "Group", "Dimension", "Enumeration", "Array"];
    let name = node.tag_name().name();
    node.is_element() && (OTHERS.contains(&name) || Atomic::named(name).is_some())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(inside: &str) -> (u64, String) {
        let text = format!("<Dataset name=\"d\">{inside}</Dataset>");
        match Dmr::parse(text.as_bytes()).unwrap_err() {
            DapError::Malformed { at, what, .. } => (at, what),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn faults_name_object_and_byte() {
        let begin = "<Dataset name=\"d\">".len() as u64;
        let faults = [
            ("<Dimension name=\"x\"/>", "Dimension \"x\" has no size"),
            ("<Dimension size=\"3\"/>", "<Dimension> has no name"),
            ("<Dimension name=\"x\" size=\"-3\"/>", "Dimension \"x\": \"-3\" is no size"),
            ("<Group/>", "<Group> has no name"),
            ("<Group name=\"\"/>", "<Group> has no name"),
            ("<Int32/>", "<Int32> has no name"),
            ("<Int33 name=\"x\"/>", "<Int33> is no element of a DMR"),
            ("<Enum name=\"x\"/>", "Enum \"x\" does not say which"),
            ("<Enumeration name=\"x\" basetype=\"Int8\"/>", "Enumeration \"x\" has no values"),
            (
                "<Enumeration name=\"x\" basetype=\"String\"/>",
                "Enumeration \"x\": \"String\" is no integer type",
            ),
        ];
        for (inside, what) in faults {
            assert_eq!(refused(inside), (begin, what.into()), "{inside}");
        }
        let inside = "<Int32 name=\"x\"><Dim/></Int32>";
        assert_eq!(refused(inside).0, begin + 16);
    }

    #[test]
    fn depth_is_bounded() {
        let deep = |n: usize| {
            let (begin, end) = ("<Structure name=\"s\">".repeat(n), "</Structure>".repeat(n));
            format!("<Dataset>{begin}<Int8 name=\"x\"/>{end}</Dataset>")
        };
        assert!(Dmr::parse(deep(MOST_DEPTH - 2).as_bytes()).is_ok());
        let error = Dmr::parse(deep(MOST_DEPTH).as_bytes()).unwrap_err();
        assert!(error.to_string().contains("nested more than"), "{error}");
    }

    #[test]
    fn values_of_attributes_come_in_three_ways() {
        let text = "<Dataset><Attribute name=\"a\" type=\"Int32\"><Value value=\"1\"/><Value> 2\n</Value><Value/></Attribute><Attribute name=\"b\" type=\"String\" value=\"x &amp; y\"/><Attribute name=\"c\"><Attribute name=\"d\" type=\"Byte\"/></Attribute><OtherXML name=\"e\"><f g=\"1\"/></OtherXML></Dataset>";
        let dmr = Dmr::parse(text.as_bytes()).unwrap();
        let values: Vec<_> = dmr.root.attributes.iter().map(|a| a.value.clone()).collect();
        let AttributeValue::Values(_, a) = &values[0] else { panic!() };
        assert_eq!(*a, ["1", " 2\n", ""]);
        assert_eq!(values[1], AttributeValue::Values("String".into(), vec!["x & y".into()]));
        assert!(matches!(&values[2], AttributeValue::Container(inner) if inner.len() == 1));
        assert_eq!(values[3], AttributeValue::OtherXml("<f g=\"1\"/>".into()));
        assert_eq!(Dmr::parse(dmr.write().as_bytes()).unwrap(), dmr);
    }

    #[test]
    fn foreign_elements_are_passed_over() {
        let text = "<Dataset xmlns=\"d\" xmlns:p=\"p\"><p:x/><Structure name=\"s\"><Int8 name=\"a\"><p:chunks/></Int8><p:y/></Structure></Dataset>";
        let dmr = Dmr::parse(text.as_bytes()).unwrap();
        assert_eq!(dmr.root.vars.len(), 1);
        assert!(matches!(&dmr.root.vars[0].ty, Type::Structure(fields) if fields.len() == 1));
    }

    #[test]
    fn names_without_groups_are_the_nearest_ones() {
        let text = "<Dataset><Dimension name=\"x\" size=\"1\"/><Group name=\"g\"><Dimension name=\"x\" size=\"2\"/><Group name=\"h\"><Int8 name=\"a\"><Dim name=\"x\"/><Dim name=\"/x\"/><Dim name=\"no\"/></Int8></Group></Group></Dataset>";
        let dmr = Dmr::parse(text.as_bytes()).unwrap();
        let var = &dmr.root.groups[0].groups[0].vars[0];
        let dims = ["/g/x", "/x", "no"].map(|name| DimRef::Shared(name.into()));
        assert_eq!(var.dims, dims);
    }

    #[test]
    fn an_error_in_place_of_a_document() {
        for text in [
            "<Error httpcode=\"404\"><Message>gone</Message></Error>",
            "<html>gone</html>",
            "gone",
            "",
        ] {
            let error = Dmr::parse(text.as_bytes()).unwrap_err();
            assert!(matches!(error, DapError::Server { .. }), "{error}");
        }
        let error = Dmr::parse(b"<?xml version='1.0'?><DDS/>").unwrap_err();
        assert!(matches!(error, DapError::Malformed { .. }), "{error}");
    }

    #[test]
    fn definitions_are_bounded_in_number() {
        let of = |n: usize| {
            let vars: String = (0..n).map(|i| format!("<Int8 name=\"v{i}\"/>")).collect();
            Dmr::parse(format!("<Dataset name=\"d\">{vars}</Dataset>").as_bytes())
        };
        assert_eq!(of(MOST_OBJECTS).unwrap().root.vars.len(), MOST_OBJECTS);
        let error = of(MOST_OBJECTS + 1).unwrap_err().to_string();
        assert!(error.contains("more than 65536 variables"), "{error}");
    }
}
