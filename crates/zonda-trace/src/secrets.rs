//! Command lines as recordings may have them: a URL among the words loses user, password, query and fragment, which can be secret.

/// What ends a URL inside of a word: scripts are words, too.
const ENDS: &[u8] = b"\0 \t\n\"'`<>";

/// The line without what URLs keep secret. A line that `is_cut` ends somewhere, maybe within a password.
pub(crate) fn without_secrets(line: &[u8], is_cut: bool) -> Vec<u8> {
    let mut told = Vec::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.windows(3).position(|three| three == b"://") {
        let (before, behind) = rest.split_at(at + 3);
        let len = behind.iter().position(|byte| ENDS.contains(byte));
        let (url, after) = behind.split_at(len.unwrap_or(behind.len()));
        told.extend_from_slice(before);
        if len.is_some() || !is_cut {
            told.extend_from_slice(shown(url));
        }
        rest = after;
    }
    told.extend_from_slice(rest);
    told
}

/// What may be shown of what stands behind `://`.
fn shown(url: &[u8]) -> &[u8] {
    let end = url.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(url.len());
    let (place, more) = url.split_at(end);
    // It may be a password that has a `?`.
    if more.contains(&b'@') {
        return b"";
    }
    let begin = place.iter().rposition(|byte| *byte == b'@').map_or(0, |at| at + 1);
    &place[begin..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_a_command_line_lose_their_secrets() {
        let told = |line: &str| String::from_utf8(without_secrets(line.as_bytes(), false)).unwrap();
        for (line, wanted) in [
            ("ncdump\0-h\0a.nc", "ncdump\0-h\0a.nc"),
            ("x\0https://me:se@cret@h:8/a.nc?token=secret#mode=bytes\0y", "x\0https://h:8/a.nc\0y"),
            (
                "py\0-c\0open('s3://b/k#aws.secret=secret'); f(\"http://h/x?secret\")",
                "py\0-c\0open('s3://b/k'); f(\"http://h/x\")",
            ),
            ("[bytes]http://secret@h/a", "[bytes]http://h/a"),
            ("http://me:se/cret@h/a", "http://h/a"),
            ("http://me:se?cret@h/a\0z", "http://\0z"),
            ("://", "://"),
            ("", ""),
        ] {
            assert_eq!(told(line), wanted);
        }
    }

    #[test]
    fn what_is_cut_off_within_a_url_is_left_out() {
        assert_eq!(without_secrets(b"x\0http://me:secr", true), b"x\0http://");
        assert_eq!(without_secrets(b"x\0http://h/a\0y", true), b"x\0http://h/a\0y");
    }
}
