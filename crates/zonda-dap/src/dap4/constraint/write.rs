//! Writes constraints, and what they are part of: the query of a URL.

use std::fmt::{self, Display, Write as _};

use super::{Clause, Constraint, Segment, Slice};

impl Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, clause) in self.clauses.iter().enumerate() {
            if i > 0 {
                f.write_char(';')?;
            }
            clause.fmt(f)?;
        }
        Ok(())
    }
}

impl Display for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Clause::Dimension { name, slice } => write!(f, "{name}={slice}"),
            Clause::Variable { path, filter: None } => path.fmt(f),
            Clause::Variable { path, filter: Some(filter) } => write!(f, "{path}|{filter}"),
        }
    }
}

impl Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.slices.iter().try_for_each(|slice| slice.fmt(f))?;
        match self.fields.as_slice() {
            [] => Ok(()),
            [field] => write!(f, ".{field}"),
            fields => {
                for (i, field) in fields.iter().enumerate() {
                    f.write_char(if i == 0 { '{' } else { ';' })?;
                    field.fmt(f)?;
                }
                f.write_char('}')
            }
        }
    }
}

impl Display for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Slice::All => f.write_str("[]"),
            Slice::Part { first, last: Some(last), .. } if first == last => write!(f, "[{first}]"),
            Slice::Part { first, stride: 1, last: Some(last) } => write!(f, "[{first}:{last}]"),
            Slice::Part { first, stride: 1, last: None } => write!(f, "[{first}:]"),
            Slice::Part { first, stride, last: Some(last) } => {
                write!(f, "[{first}:{stride}:{last}]")
            }
            Slice::Part { first, stride, last: None } => write!(f, "[{first}:{stride}:]"),
        }
    }
}

/// A character of a name, with a backslash where it would mean something.
pub(super) fn character(ch: char, to: &mut String) {
    if matches!(ch, '\\' | '/' | '.' | '[' | ']' | '{' | '}' | ';' | '|' | '=' | ',') {
        to.push('\\');
    }
    to.push(ch);
}

/// A name without groups.
pub(in crate::dap4) fn name(text: &str, to: &mut String) {
    text.chars().for_each(|ch| character(ch, to));
}

/// Text as part of the query of a URL: bytes that have a meaning there, or that servers do not take, as `%XX`.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/:,=*()!$@'".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    #[test]
    fn queries_are_escaped() {
        let text = "/ü v[0:2:9];/s|x<5&y+1#\"%";
        assert_eq!(super::escape(text), "/%C3%BC%20v%5B0:2:9%5D%3B/s%7Cx%3C5%26y%2B1%23%22%25");
    }
}
