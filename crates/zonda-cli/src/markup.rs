//! Text within XML and HTML.

/// Appends a text with the characters escaped that mean something in XML and HTML: `<`, `>`, `&`, `"` and
/// ASCII control characters, for which there are references (`&#xA;` for the newline). Other bytes stay.
pub(crate) fn push_escaped(out: &mut Vec<u8>, text: &[u8]) {
    for &byte in text {
        let reference: &[u8] = match byte {
            b'"' => b"&quot;",
            b'<' => b"&lt;",
            b'>' => b"&gt;",
            b'&' => b"&amp;",
            b'\n' => b"&#xA;",
            b'\r' => b"&#xD;",
            b'\t' => b"&#x9;",
            _ if byte.is_ascii_control() => {
                out.extend_from_slice(format!("&#{byte};").as_bytes());
                continue;
            }
            _ => &[byte],
        };
        out.extend_from_slice(reference);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_something_is_escaped() {
        let mut out = Vec::new();
        push_escaped(&mut out, b"a<\"&\n\x01b\xC3\xA9>");
        assert_eq!(out, b"a&lt;&quot;&amp;&#xA;&#1;b\xC3\xA9&gt;");
    }
}
