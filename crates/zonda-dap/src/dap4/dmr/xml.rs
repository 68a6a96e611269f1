//! Text of a server as XML. What the parser would take much time or memory for is refused before.

use std::fmt::Write as _;

use roxmltree::{Document as Xml, ParsingOptions};

use crate::error::{DapError, Document};

/// Elements in elements: groups and fields have two of them a level at most.
const MOST_NESTED: usize = 2 * super::MOST_DEPTH + 8;
/// Attributes of one element. The parser compares each with all before it.
const MOST_ATTRIBUTES: usize = 64;
/// Declarations of namespaces in a document. Each element may have a list of all around it.
const MOST_NAMESPACES: usize = 1024;
/// Elements, texts and comments of a document.
const MOST_NODES: u32 = 4_000_000;

/// The document as text: without NULs, which some servers end it with, and without a mark of the byte order. ISO-8859-1 is read where the document says
/// that it is in it.
pub(in crate::dap4) fn text(bytes: &[u8]) -> Result<String, DapError> {
    let without = |text: &str| text.replace(['\0', '\u{feff}'], "");
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(without(text)),
        Err(_) if says_latin1(bytes) => {
            let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
            Ok(without(&text))
        }
        Err(error) => {
            Err(DapError::malformed(Document::Dmr, error.valid_up_to() as u64, "it is not UTF-8"))
        }
    }
}

fn says_latin1(bytes: &[u8]) -> bool {
    let end = bytes.iter().position(|byte| *byte == b'>').unwrap_or(0);
    let declaration = String::from_utf8_lossy(bytes.get(..end).unwrap_or_default());
    let declaration = declaration.to_ascii_lowercase();
    declaration.contains("iso-8859-1") || declaration.contains("latin1")
}

/// All characters that XML would change or not take as they are.
pub(in crate::dap4) fn escape(text: &str, to: &mut String) {
    for ch in text.chars() {
        match ch {
            '&' => to.push_str("&amp;"),
            '<' => to.push_str("&lt;"),
            '>' => to.push_str("&gt;"),
            '"' => to.push_str("&quot;"),
            '\t' | '\n' | '\r' => _ = write!(to, "&#{};", u32::from(ch)),
            _ => to.push(ch),
        }
    }
}

/// Parses a text.
pub(in crate::dap4) fn parse(text: &str) -> Result<Xml<'_>, DapError> {
    check(text)?;
    let options =
        ParsingOptions { allow_dtd: false, nodes_limit: MOST_NODES, ..ParsingOptions::default() };
    Xml::parse_with_options(text, options).map_err(|error| {
        DapError::malformed(Document::Dmr, offset(text, error.pos()), format!("XML: {error}"))
    })
}

/// The byte of a line and column, both of which count from 1; a column is a character.
fn offset(text: &str, pos: roxmltree::TextPos) -> u64 {
    let row = usize::try_from(pos.row).unwrap_or(usize::MAX);
    let mut at = 0_usize;
    for line in text.split_inclusive('\n').take(row.saturating_sub(1)) {
        at = at.saturating_add(line.len());
    }
    let col = usize::try_from(pos.col).unwrap_or(usize::MAX).saturating_sub(1);
    let line = text.get(at..).unwrap_or_default();
    let inside = line.char_indices().nth(col).map_or(line.len(), |(byte, _)| byte);
    at.saturating_add(inside) as u64
}

/// Refuses what is nested too deep, has too many attributes or too many namespaces. What is not well formed is left to the parser.
fn check(text: &str) -> Result<(), DapError> {
    let refuse = |at: usize, what: String| Err(DapError::malformed(Document::Dmr, at as u64, what));
    let (mut at, mut depth, mut namespaces) = (0_usize, 0_usize, 0_usize);
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('<')) {
        at = at.saturating_add(found);
        let rest = text.get(at..).unwrap_or_default();
        let skipped = [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")];
        if let Some((_, end)) = skipped.iter().find(|(begin, _)| rest.starts_with(begin)) {
            let Some(len) = rest.find(end) else { return Ok(()) };
            at = at.saturating_add(len.max(1));
            continue;
        }
        let (len, attributes) = tag(rest);
        let tag = rest.get(..len).unwrap_or_default();
        if tag.starts_with("</") {
            depth = depth.saturating_sub(1);
        } else if !tag.ends_with('/') {
            depth = depth.saturating_add(1);
        }
        namespaces = namespaces.saturating_add(tag.matches("xmlns").count());
        if depth > MOST_NESTED {
            return refuse(at, format!("elements are nested more than {MOST_NESTED} deep"));
        }
        if attributes > MOST_ATTRIBUTES {
            return refuse(at, format!("an element has more than {MOST_ATTRIBUTES} attributes"));
        }
        if namespaces > MOST_NAMESPACES {
            return refuse(at, format!("more than {MOST_NAMESPACES} namespaces"));
        }
        at = at.saturating_add(len.max(1));
    }
    Ok(())
}

/// Bytes of a tag up to its `>`, and how many attributes it has.
fn tag(rest: &str) -> (usize, usize) {
    let (mut quote, mut attributes) = (None, 0_usize);
    for (at, byte) in rest.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return (at, attributes),
            (None, b'"' | b'\'') => {
                quote = Some(byte);
                attributes = attributes.saturating_add(1);
            }
            (Some(open), _) if open == byte => quote = None,
            _ => {}
        }
    }
    (rest.len(), attributes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn a_hundred_thousand_nested_elements_are_refused() {
        let text = "<Group name=\"g\">".repeat(100_000);
        assert!(refused(&text).contains("nested"), "{}", refused(&text));
        // A closing tag in a comment or a value closes nothing.
        let text = "<a x=\"</a>\"><!--</a>--><![CDATA[</a>]]>".repeat(1000);
        assert!(refused(&text).contains("nested"));
    }

    #[test]
    fn many_attributes_and_namespaces_are_refused() {
        let many: String = (0..100_000).map(|i| format!(" a{i}=''")).collect();
        assert!(refused(&format!("<a{many}/>")).contains("attributes"));
        let many: String = (0..2000).map(|i| format!("<b xmlns:n{i}='u'/>")).collect();
        assert!(refused(&format!("<a>{many}</a>")).contains("namespaces"));
    }

    #[test]
    fn document_types_are_refused() {
        let text = "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>";
        assert!(parse(text).is_err());
    }

    #[test]
    fn errors_have_their_byte() {
        let text = "<a>\n <ü>\n</a>";
        let DapError::Malformed { at, .. } = parse(text).unwrap_err() else { panic!() };
        assert_eq!(at, 10);
    }

    #[test]
    fn encodings() {
        assert_eq!(text(b"<a>\0\0").unwrap(), "<a>");
        assert_eq!(text(b"\xef\xbb\xbf<a>").unwrap(), "<a>");
        assert_eq!(
            text(b"<?xml encoding='ISO-8859-1'?><a>\xe9").unwrap(),
            "<?xml encoding='ISO-8859-1'?><a>\u{e9}"
        );
        assert!(text(b"<a>\xe9").is_err());
    }
}
