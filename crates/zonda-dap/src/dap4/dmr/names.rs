//! Names with all of their groups, as `/g/h/v`, in which a backslash takes its meaning from `/`, `.` and itself; places in a document.

/// Where something stands in a document, in bytes. Trees are equal wherever their parts stand.
#[derive(Clone, Copy, Debug, Default)]
pub struct At(pub u64);

impl PartialEq for At {
    fn eq(&self, _: &At) -> bool {
        true
    }
}

impl Eq for At {}

/// The names between the slashes, without escapes. A slash at the begin changes nothing: all names begin at the root.
#[must_use]
pub(in crate::dap4) fn split(fqn: &str) -> Vec<String> {
    let fqn = fqn.strip_prefix('/').unwrap_or(fqn);
    let (mut names, mut name) = (Vec::new(), String::new());
    let mut chars = fqn.chars();
    while let Some(ch) = chars.next() {
        match ch {
            '\\' => name.extend(chars.next()),
            '/' => names.push(std::mem::take(&mut name)),
            _ => name.push(ch),
        }
    }
    if !name.is_empty() || !names.is_empty() {
        names.push(name);
    }
    names
}

/// Adds a name to that of a group, `""` for the root.
#[must_use]
pub(in crate::dap4) fn join(group: &str, name: &str) -> String {
    let mut joined = format!("{group}/");
    for ch in name.chars() {
        if matches!(ch, '\\' | '/' | '.') {
            joined.push('\\');
        }
        joined.push(ch);
    }
    joined
}

/// The same name in the one way in which [`join`] writes it.
#[must_use]
pub(in crate::dap4) fn canonical(fqn: &str) -> String {
    split(fqn).iter().fold(String::new(), |group, name| join(&group, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for name in ["a", "a.b", "a/b", "\\", "ü", "a b"] {
            let fqn = join("/g", name);
            assert_eq!(split(&fqn), ["g", name]);
            assert_eq!(canonical(&fqn), fqn);
        }
        assert_eq!(canonical("g/v"), "/g/v");
        assert_eq!(canonical("/a.b"), "/a\\.b");
        assert_eq!(split("/"), Vec::<String>::new());
        assert_eq!(split("a\\"), ["a"]);
    }
}
