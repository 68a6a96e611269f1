//! Errors that a server sends: `<Error httpcode="404"><Message>...</Message></Error>`, alone, in place of a body, or in a chunk in the middle of one; and what
//! comes from who is no server of DAP at all: pages.

use roxmltree::Node;

use crate::dap4::dmr::xml;
use crate::error::{DapError, Document};

/// Characters of a message that are shown.
const MOST_SHOWN: usize = 400;

/// The error of an `<Error>`.
pub(super) fn of_element(document: Document, node: Node<'_, '_>) -> DapError {
    let code = ["httpcode", "httpCode", "code"].iter().find_map(|name| node.attribute(*name));
    let text = |name: &str| {
        let mut inside = node.children().filter(|child| child.tag_name().name() == name);
        let text =
            inside.next()?.descendants().filter_map(|node| node.text().filter(|_| node.is_text()));
        Some(shown(&text.collect::<String>())).filter(|text| !text.is_empty())
    };
    let mut message = text("Message").unwrap_or_else(|| "an error without a message".into());
    for more in ["Context", "OtherInformation"].iter().filter_map(|name| text(name)) {
        message.push_str("; ");
        message.push_str(&more);
    }
    let number = code.and_then(|code| code.trim().parse().ok());
    DapError::Server { document, number, message }
}

/// The error that the text of an error chunk, or of a body that is none, says.
pub(super) fn of_text(document: Document, bytes: &[u8]) -> DapError {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_matches(['\0', ' ', '\n', '\r', '\t', '\u{feff}']);
    if text.starts_with('<')
        && let Ok(xml) = xml::parse(text)
        && xml.root_element().tag_name().name() == "Error"
    {
        return of_element(document, xml.root_element());
    }
    other(document, text)
}

/// The document of an error.
pub(super) fn write(http_code: u16, message: &str) -> String {
    let mut escaped = String::new();
    xml::escape(message, &mut escaped);
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error xmlns=\"http://xml.opendap.org/ns/DAP/4.0#\" httpcode=\"{http_code}\">\n    <Message>{escaped}</Message>\n</Error>\n"
    )
}

/// What a text that is no document of DAP4 says: a page in HTML, an error of DAP2, anything.
pub(super) fn other(document: Document, text: &str) -> DapError {
    let message = if is_page(text) {
        format!("it sent a page in HTML: {}", shown(&without_tags(text)))
    } else if text.trim().is_empty() {
        "it sent nothing".into()
    } else {
        format!("it sent something else: {}", shown(text))
    };
    DapError::Server { document, number: None, message }
}

/// Whether a text is in HTML, with or without a declaration of XML.
pub(super) fn is_page(text: &str) -> bool {
    let begin = text.get(..text.len().min(2000)).unwrap_or(text).to_ascii_lowercase();
    begin.starts_with("<!doctype html") || begin.contains("<html")
}

/// In one line, and not all of it where it is long.
fn shown(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(word.chars().filter(|ch| !ch.is_control()).take(MOST_SHOWN));
        if line.chars().count() > MOST_SHOWN {
            line = line.chars().take(MOST_SHOWN).collect();
            line.push_str("...");
            break;
        }
    }
    line
}

/// The text between tags; that of scripts and styles is left out.
fn without_tags(page: &str) -> String {
    let (mut text, mut rest) = (String::new(), page);
    while let Some((before, tag)) = rest.split_once('<') {
        text.push_str(before);
        text.push(' ');
        let Some((inside, after)) = tag.split_once('>') else { return text };
        rest = after;
        for hidden in ["script", "style"] {
            let is_hidden =
                inside.get(..hidden.len()).is_some_and(|tag| tag.eq_ignore_ascii_case(hidden));
            if is_hidden && let Some((_, after)) = after.split_once("</") {
                rest = after.split_once('>').map_or("", |(_, after)| after);
            }
        }
        if text.len() > 4 * MOST_SHOWN {
            return text;
        }
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(bytes: &[u8]) -> (Option<i64>, String) {
        match of_text(Document::Dap, bytes) {
            DapError::Server { number, message, .. } => (number, message),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn errors_of_servers() {
        let text = b"<?xml version=\"1.0\"?>\n<dap:Error xmlns:dap=\"http://xml.opendap.org/ns/DAP/4.0#\" httpcode=\"404\"><dap:Message>no\n such &lt;file&gt;</dap:Message><dap:Context>here</dap:Context></dap:Error>";
        assert_eq!(said(text), (Some(404), "no such <file>; here".into()));
        let text = b"<d:Error xmlns:d='u' httpcode='500'><d:Message>no</d:Message></d:Error>";
        assert_eq!(said(text), (Some(500), "no".into()));
        assert_eq!(said(b"<Error/>").1, "an error without a message");
        assert_eq!(said(b"").1, "it sent nothing");
        let page = b"<!DOCTYPE html><html><style>b {}</style><h1>Log in</h1>please</html>";
        assert_eq!(said(page).1, "it sent a page in HTML: Log in please");
        assert!(said(&b"x".repeat(100_000)).1.len() < 500);
        assert!(said("ü ".repeat(100_000).as_bytes()).1.len() < 1000);
    }
}
