//! The error document of DAP2 (`Error { code = 404; message = "..."; };`), and pages in HTML, which servers and proxies send in place of any
//! document.

use crate::dap2::limits::MAX_MESSAGE_BYTES;
use crate::error::{DapError, Document};
use crate::text::{Lexer, What, shown};

/// What a server says went wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerError {
    /// The server's number for it.
    pub code: Option<i64>,
    /// Its message.
    pub message: String,
}

impl ServerError {
    /// The error that it is for who wanted `document`.
    #[must_use]
    pub fn into_error(self, document: Document) -> DapError {
        DapError::Server { document, number: self.code, message: self.message }
    }

    /// The error document that `bytes` begin with; what comes behind its closing brace does not matter.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<ServerError> {
        let mut lexer = Lexer::new(Document::Dds, bytes);
        if !lexer.next().ok()?.is_word("Error") || lexer.mark(b'{', "an error").is_err() {
            return None;
        }
        let mut error = ServerError::default();
        // Whatever stands in it, it is an error: what cannot be read is left out.
        while let Ok(key) = lexer.next() {
            if matches!(key.what, What::Mark(b'}') | What::End) {
                break;
            }
            if !matches!(lexer.peek(), Ok(token) if token.what == What::Mark(b'=')) {
                continue;
            }
            let _equals = lexer.next();
            let Ok(value) = lexer.next() else { break };
            let text = match value.what {
                What::Word(text) | What::Text(text) => text,
                What::Mark(_) | What::End => continue,
            };
            if key.is_word("code") {
                error.code =
                    std::str::from_utf8(text).ok().and_then(|text| text.trim().parse().ok());
            } else if key.is_word("message") {
                error.message = message(text);
            }
        }
        if error.message.is_empty() {
            error.message = "an error without a message".into();
        }
        Some(error)
    }

    /// The document.
    #[must_use]
    pub fn encode(&self) -> String {
        let code = self.code.map_or(String::new(), |code| format!("    code = {code};\n"));
        let message = self.message.replace('\\', "\\\\").replace('"', "\\\"");
        format!("Error {{\n{code}    message = \"{message}\";\n}};\n")
    }
}

/// A message of a server as it is shown: one line, without escapes.
fn message(text: &[u8]) -> String {
    let text = text.get(..MAX_MESSAGE_BYTES).unwrap_or(text);
    let text = String::from_utf8_lossy(text).replace("\\\"", "\"").replace("\\\\", "\\");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What is inside of the first element `name` of a page.
fn inside<'a>(page: &'a str, small: &str, name: &str) -> Option<&'a str> {
    let begin = small.find(&format!("<{name}"))?;
    let begin = begin.checked_add(small.get(begin..)?.find('>')?)?.checked_add(1)?;
    let len = small.get(begin..)?.find("</")?;
    let text = page.get(begin..begin.checked_add(len)?)?.trim();
    (!text.is_empty()).then_some(text)
}

/// Refuses what is no document of the protocol but an error document or a page in HTML.
///
/// # Errors
/// [`DapError::Server`] with the message, or the title of the page.
pub fn refuse(document: Document, bytes: &[u8]) -> Result<(), DapError> {
    if let Some(error) = ServerError::decode(bytes) {
        return Err(error.into_error(document));
    }
    let begin = bytes.get(..bytes.len().min(4096)).unwrap_or_default().trim_ascii_start();
    if begin.first() != Some(&b'<') {
        return Ok(());
    }
    let page = String::from_utf8_lossy(begin);
    let small = page.to_ascii_lowercase();
    let found =
        ["title", "h1", "message", "body"].iter().find_map(|name| inside(&page, &small, name));
    let message = match found {
        Some(text) => format!("a page: {}", message(text.as_bytes())),
        None => format!("a page that begins with {}", shown(begin)),
    };
    Err(DapError::Server { document, number: None, message })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(bytes: &[u8]) -> String {
        refuse(Document::Das, bytes).unwrap_err().to_string()
    }

    #[test]
    fn error_documents_are_read_and_written() {
        let text = b"\nError {\n code = 404;\n message = \"no \\\"such\\\"\n file\";\n};\n";
        let error = ServerError::decode(text).unwrap();
        assert_eq!((error.code, error.message.as_str()), (Some(404), "no \"such\" file"));
        assert_eq!(ServerError::decode(error.encode().as_bytes()), Some(error));
        // Without an end, without a message, with more in it.
        assert_eq!(
            ServerError::decode(b"Error { message = \"a").unwrap().message,
            "an error without a message"
        );
        let more = ServerError::decode(b"error{message=bad;program_type = 1; x ; code = \"-3\" }")
            .unwrap();
        assert_eq!((more.code, more.message.as_str()), (Some(-3), "bad"));
        assert_eq!(ServerError::decode(b"Errors { }"), None);
        assert_eq!(ServerError::decode(b"Dataset { } Error;"), None);
    }

    #[test]
    fn pages_are_refused_with_their_title() {
        let page =
            b"<!DOCTYPE html>\n<HTML><head><Title>404 Not\n Found</title></head><body>x</body>";
        assert_eq!(said(page), "DAS: the server says: a page: 404 Not Found");
        assert_eq!(said(b"<html><body>x</body>"), "DAS: the server says: a page: x");
        assert_eq!(said(b" <?xml?>"), "DAS: the server says: a page that begins with <?xml?>");
        assert_eq!(said(b"Error {code=1;}"), "DAS: the server says: an error without a message");
        refuse(Document::Das, b"Attributes {}").unwrap();
        refuse(Document::Das, b"").unwrap();
    }
}
