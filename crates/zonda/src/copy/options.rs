//! What a copy is asked to be.

use std::sync::Arc;

use crate::ranks::Lead;
use crate::tuning::COPY_MEMORY_BYTES;
use zonda_format::{FilterSpec, Format, Quantize};

/// How to copy. By default everything stays as it is.
///
/// See [`copy`](crate::copy::copy()).
#[derive(Clone, Debug)]
pub struct CopyOptions {
    /// The kind of the target; `None` for that of the source, or where no such files are made the one of netCDF's own with its
    /// data model.
    pub format: Option<Format>,
    /// Path of the group that becomes the root group of the target; `None` for all groups.
    pub group: Option<Vec<u8>>,
    /// Variables that are copied, with those that they need to be understood: variables named as their dimensions,
    /// and those named by the attributes `coordinates`, `bounds`, `climatology` and `grid_mapping`. Empty for all
    /// variables.
    pub vars: Vec<Pattern>,
    /// Variables that are not copied, whatever `vars` says.
    pub exclude: Vec<Pattern>,
    /// Shapes of chunks. Of several rules for an axis the last one counts.
    pub chunks: Vec<ChunkRule>,
    /// Variables that are stored in one run, without chunks and filters, if no dimension of theirs
    /// is unlimited.
    pub contiguous: Vec<Pattern>,
    /// Filters in place of those of the source. Of several rules for a variable the last one counts.
    pub filters: Vec<FilterRule>,
    /// Precision that is given up. Of several rules for a variable the last one counts.
    pub quantize: Vec<QuantizeRule>,
    /// Unlimited dimensions become fixed, with the length that they have.
    pub fix_unlimited: bool,
    /// Bytes of data in memory at a time. A chunk of source or target that is larger, and a string
    /// or a sequence, are held all the same.
    pub memory_bytes: u64,
    /// A target that exists is replaced; else it is an error.
    pub replace: bool,
    /// What cannot be read is left out or replaced by fill values, and listed in
    /// [`Copied::lost`](super::Copied::lost); else it is an error. Chunks that are copied as they are stored are
    /// decoded, too, to find damage.
    pub salvage: bool,
    /// Other ranks make parts of the copy, which this one leads: they call [`follow_copy`](super::follow_copy). The bytes are those of a copy by one
    /// process. A salvaged copy is not divided.
    pub lead: Option<Arc<Lead>>,
    /// What becomes of a copy that does not come to its end.
    pub unfinished: Unfinished,
}

/// What becomes of a copy that breaks off, or is killed.
///
/// See [`copy`](crate::copy::copy()).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unfinished {
    /// Nothing is left of it.
    #[default]
    Removed,
    /// The variables that are complete are kept beside the target, in `TARGET.zonda-part`, for a later copy. This one begins anew. Only one process may
    /// copy to that target meanwhile.
    Kept,
    /// The same, and the variables that an earlier copy has kept are not copied again, if that was of the same source with the same definitions, in the
    /// same form.
    Completed,
}

impl Default for CopyOptions {
    fn default() -> CopyOptions {
        CopyOptions {
            format: None,
            group: None,
            vars: Vec::new(),
            exclude: Vec::new(),
            chunks: Vec::new(),
            contiguous: Vec::new(),
            filters: Vec::new(),
            quantize: Vec::new(),
            fix_unlimited: false,
            memory_bytes: COPY_MEMORY_BYTES,
            replace: false,
            salvage: false,
            lead: None,
            unfinished: Unfinished::Removed,
        }
    }
}

/// Names of variables: `*` stands for any text, `?` for one byte. One without `/` is compared with
/// the name in whichever group, others with the path from the root, whose first `/` may be left out.
///
/// See [`copy`](crate::copy::copy()).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Vec<u8>);

impl Pattern {
    /// A pattern.
    #[must_use]
    pub fn new(text: impl Into<Vec<u8>>) -> Pattern {
        Pattern(text.into())
    }

    /// Its text.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.0
    }

    /// Whether the pattern is a plain name, without `*` and `?`.
    #[must_use]
    pub fn is_name(&self) -> bool {
        !self.0.iter().any(|byte| matches!(byte, b'*' | b'?'))
    }

    /// Whether it matches the variable of that path, which begins with `/`.
    #[must_use]
    pub fn matches(&self, path: &[u8]) -> bool {
        let own = self.0.strip_prefix(b"/").unwrap_or(&self.0);
        if self.0.contains(&b'/') {
            return glob(own, path.strip_prefix(b"/").unwrap_or(path));
        }
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
        glob(own, name)
    }

    pub(crate) fn any(patterns: &[Pattern], path: &[u8]) -> bool {
        patterns.iter().any(|pattern| pattern.matches(path))
    }
}

/// Whether a text matches a pattern. Takes no more steps than the product of both lengths.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Positions after the last star in the pattern, and after what it stands for so far in the text.
    let mut back: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                back = Some((p + 1, t));
                p += 1;
            }
            Some(&byte) if byte == b'?' || byte == text[t] => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((behind, taken)) = back else { return false };
                back = Some((behind, taken + 1));
                (p, t) = (behind, taken + 1);
            }
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

/// A shape of chunks along some dimensions.
///
/// See [`copy`](crate::copy::copy()).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkRule {
    /// Variables it is for; `None` for all that are in chunks, and those of at least 8 KiB.
    pub vars: Option<Pattern>,
    /// Names of dimensions, and elements of a chunk along them; 0 for the whole dimension.
    pub sizes: Vec<(Vec<u8>, u64)>,
}

/// Filters of some variables.
///
/// See [`copy`](crate::copy::copy()).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterRule {
    /// Variables it is for; empty for all. Scalars and variables of strings or sequences have none.
    pub vars: Vec<Pattern>,
    /// The filters, in the order in which they are applied; none to store chunks as they are.
    pub filters: Vec<FilterSpec>,
}

/// Precision of some variables.
///
/// See [`copy`](crate::copy::copy()).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantizeRule {
    /// Variables it is for; empty for all of type `float` and `double` but coordinate variables.
    pub vars: Vec<Pattern>,
    /// What is kept; `None` for all.
    pub quantize: Option<Quantize>,
}

/// Whether a rule for these variables is for this one.
pub(super) fn applies(vars: &[Pattern], path: &[u8]) -> bool {
    vars.is_empty() || Pattern::any(vars, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, path, is) in [
            ("T", "/T", true),
            ("T", "/ocean/T", true),
            ("/T", "/ocean/T", false),
            ("/T", "/T", true),
            ("ocean/T", "/ocean/T", true),
            ("ocean/*", "/ocean/deep/T", true),
            ("*", "/a/b", true),
            ("t?mp", "/temp", true),
            ("t?mp", "/tmp", false),
            ("*a*b*c", "/xxaxxbxxbxxc", true),
            ("*a*b*c", "/xxaxxbxxbxxcd", false),
            ("", "/T", false),
            ("a**", "/a", true),
        ] {
            assert_eq!(Pattern::new(pattern).matches(path.as_bytes()), is, "{pattern} {path}");
        }
        // Backtracks no further than to the last star.
        let long = vec![b'a'; 20_000];
        assert!(!Pattern::new("*a".repeat(200) + "b").matches(&long));
    }
}
