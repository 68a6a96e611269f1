//! `.netrc`: users and passwords by server.

/// User and password for a host; the entry `default` where there is none for it and `takes_default`.
pub(crate) fn find(text: &str, host: &str, takes_default: bool) -> Option<(String, String)> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut words = words(text).into_iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "machine" => entries.push(Entry { host: Some(words.next()?), ..Entry::default() }),
            "default" => entries.push(Entry::default()),
            "login" => entries.last_mut()?.user = words.next(),
            "password" => entries.last_mut()?.password = words.next(),
            "account" => drop(words.next()),
            _ => {}
        }
    }
    let is_for = |entry: &&Entry| {
        entry.host.as_ref().map_or(takes_default, |name| name.eq_ignore_ascii_case(host))
    };
    let entry = entries.iter().find(is_for)?;
    Some((entry.user.clone()?, entry.password.clone().unwrap_or_default()))
}

#[derive(Default)]
struct Entry {
    host: Option<String>,
    user: Option<String>,
    password: Option<String>,
}

/// Words, also in quotes; without comments and macros.
fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_macro = false;
    for line in text.lines() {
        let line = line.trim();
        is_macro = if line.starts_with("macdef") { true } else { is_macro && !line.is_empty() };
        if is_macro || line.starts_with('#') {
            continue;
        }
        let mut chars = line.chars().peekable();
        while let Some(&first) = chars.peek() {
            if first.is_whitespace() {
                chars.next();
            } else if first == '"' {
                chars.next();
                let mut word = String::new();
                while let Some(ch) = chars.next().filter(|ch| *ch != '"') {
                    word.push(if ch == '\\' { chars.next().unwrap_or(ch) } else { ch });
                }
                found.push(word);
            } else {
                let mut word = String::new();
                while let Some(ch) = chars.next_if(|ch| !ch.is_whitespace()) {
                    word.push(ch);
                }
                found.push(word);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_in_every_layout() {
        let text = "# comment login x\nmachine a login me password one\nmachine B\n  login you\n  password \"t w\\\"o\"\nmacdef init\nmachine c login no password no\n\ndefault login anyone password any\n";
        let of = |host| find(text, host, true).unwrap();
        assert_eq!(of("a"), ("me".into(), "one".into()));
        assert_eq!(of("b"), ("you".into(), "t w\"o".into()));
        assert_eq!(of("c"), ("anyone".into(), "any".into()));
        assert_eq!(find("login x", "a", true), None);
        assert_eq!(find("machine", "a", true), None);
        assert_eq!(find("machine b login x", "a", true), None);
    }
}
