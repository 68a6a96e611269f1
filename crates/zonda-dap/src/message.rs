//! The message in an answer that is no success: servers put error documents there, well formed or not.

/// What a server says in an error document of either version; `None` for anything else, such as a page of HTML.
#[must_use]
pub fn server_message(body: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(body);
    let start = text.trim_start();
    if let Some(inside) = start.strip_prefix("Error").map(str::trim_start) {
        return of_dap2(inside.strip_prefix('{')?);
    }
    // A name may have a prefix: `<dap:Error`.
    let at = start.find("Error").filter(|_| start.starts_with('<'))?;
    let before = start.get(..at)?;
    let is_tag = before.rfind('<').is_some_and(|tag| {
        let prefix = before.get(tag.saturating_add(1)..).unwrap_or_default();
        prefix.is_empty() || (prefix.ends_with(':') && !prefix.contains(char::is_whitespace))
    });
    if is_tag { of_dap4(start.get(at..)?) } else { None }
}

/// `code = 404; message = "text";`, in any order.
fn of_dap2(inside: &str) -> Option<String> {
    let (_, rest) = inside.split_once("message")?;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start();
    let Some(quoted) = rest.strip_prefix('"') else {
        return said(rest.split([';', '}']).next()?);
    };
    let (mut text, mut is_escaped) = (String::new(), false);
    for ch in quoted.chars() {
        match ch {
            '"' if !is_escaped => break,
            '\\' if !is_escaped => is_escaped = true,
            ch => {
                is_escaped = false;
                text.push(ch);
            }
        }
    }
    said(&text)
}

fn of_dap4(element: &str) -> Option<String> {
    let (_, rest) = element.split_once("Message>")?;
    let inside = rest.split('<').next()?;
    let named = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    let text = named.iter().fold(inside.to_owned(), |text, (name, ch)| text.replace(name, ch));
    said(&text)
}

fn said(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    Some(words.join(" ")).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_found_and_pages_are_none() {
        let of = |text: &str| server_message(text.as_bytes());
        let said = |text: &str| Some(text.to_owned());
        assert_eq!(
            of("Error {\n code = 404;\n message = \"no \\\"x\\\"\n here\";\n};"),
            said("no \"x\" here")
        );
        assert_eq!(of("Error { message = bare words; code=5; }"), said("bare words"));
        assert_eq!(of("Error { message = \"cut"), said("cut"));
        let dap4 =
            "<?xml version='1.0'?>\n<Error httpcode='400'><Message>a &lt; b</Message></Error>";
        assert_eq!(of(dap4), said("a < b"));
        assert_eq!(
            of("<dap:Error xmlns:dap='x'><dap:Message>m</dap:Message></dap:Error>"),
            said("m")
        );
        for none in [
            "",
            "Error",
            "Error {",
            "<html><title>Error</title></html>",
            "not Error { message = \"x\" }",
            "<Error/>",
        ] {
            assert_eq!(of(none), None, "{none}");
        }
        assert_eq!(server_message(&[0xff; 100]), None);
    }
}
