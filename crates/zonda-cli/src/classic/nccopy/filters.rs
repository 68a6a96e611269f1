//! Filters that `-F` asks for, and those that a variable gets in the end.

use zonda::{FilterSpec, filter_text};

/// A filter for some variables, or the request that they have none.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FilterOption {
    /// Path of the variable with `\` before special characters; `*` for all variables.
    vars: Vec<u8>,
    /// Number and parameters; `None` for no filters.
    filter: Option<filter_text::FilterIdAndParams>,
}

/// Reads `VAR&VAR,ID,PARAMETER,…|…` or `VAR,none`; `None` where it is malformed.
pub(super) fn parse(text: &[u8]) -> Option<Vec<FilterOption>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    let (vars, rest) = split_at(text, b',');
    if vars.is_empty() {
        return None;
    }
    let filters: Vec<Option<filter_text::FilterIdAndParams>> = match rest.unwrap_or_default() {
        none if none.eq_ignore_ascii_case(b"none") => vec![None],
        list => filter_text::list(list)?.1.into_iter().map(Some).collect(),
    };
    let mut options = Vec::new();
    let mut rest = Some(vars);
    while let Some(vars) = rest {
        let (var, behind) = split_at(vars, b'&');
        rest = behind;
        let slash: &[u8] = if var == b"*" || var.starts_with(b"/") { b"" } else { b"/" };
        if !var.is_empty() {
            let path = [slash, var].concat();
            options.extend(
                filters
                    .iter()
                    .map(|filter| FilterOption { vars: path.clone(), filter: filter.clone() }),
            );
        }
    }
    Some(options)
}

/// Splits at the first `separator` that has no `\` before it.
fn split_at(text: &[u8], separator: u8) -> (&[u8], Option<&[u8]>) {
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'\\' => at += 1,
            byte if byte == separator => return (&text[..at], Some(&text[at + 1..])),
            _ => {}
        }
        at += 1;
    }
    (text, None)
}

/// A path as `-F` has to name it: `\` before special characters of the variable's name.
pub(super) fn escaped(path: &[u8]) -> Vec<u8> {
    let name_at = path.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let mut escaped = path[..name_at].to_vec();
    for (index, &byte) in path[name_at..].iter().enumerate() {
        let is_special = b" !\"#$%&'()*,:;<=>?[]\\^`{|}~".contains(&byte);
        if is_special || (index == 0 && byte.is_ascii_digit()) {
            escaped.push(b'\\');
        }
        escaped.push(byte);
    }
    escaped
}

/// What the options say about one variable.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct VarFilters {
    /// Whether it is to have no filters.
    pub none: bool,
    /// Whether an option has a filter for another variable. As in the reference, this variable then
    /// gets chunks, too.
    pub others_have: bool,
    /// Its filters.
    pub filters: Vec<FilterSpec>,
}

impl VarFilters {
    pub(super) fn of(path: &[u8], options: &[FilterOption], no_filters: bool) -> VarFilters {
        let name = escaped(path);
        let mut requested =
            VarFilters { none: no_filters, others_have: false, filters: Vec::new() };
        for option in options {
            if option.vars != b"*" && option.vars != name {
                requested.others_have = true;
                continue;
            }
            match &option.filter {
                None => requested.none = true,
                Some((id, params)) => requested.filters.push(spec(*id, params.clone())),
            }
        }
        requested
    }
}

/// Numbers of filters that have calls of their own in netCDF.
pub(super) const DEFLATE: u32 = 1;
pub(super) const SHUFFLE: u32 = 2;
pub(super) const FLETCHER32: u32 = 3;

/// The specification of a filter.
pub(super) fn spec(id: u32, params: Vec<u32>) -> FilterSpec {
    FilterSpec { id, optional: id != FLETCHER32, name: String::new(), params }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requested(path: &str, texts: &[&str]) -> VarFilters {
        let options: Vec<FilterOption> =
            texts.iter().flat_map(|text| parse(text.as_bytes()).unwrap()).collect();
        VarFilters::of(path.as_bytes(), &options, false)
    }

    #[test]
    fn of_which_variables() {
        let two = requested("/g/v", &["/g/v,307,9|32015,3"]).filters;
        assert_eq!(two, [spec(307, vec![9]), spec(32015, vec![3])]);
        assert_eq!(requested("/v", &["v&w,307,9"]).filters.len(), 1);
        assert_eq!(requested("/g/w", &["v&w,307,9"]).filters.len(), 0);
        assert!(requested("/g/w", &["v&w,307,9"]).others_have);
        assert_eq!(requested("/g/w", &["*,307,9"]).filters.len(), 1);
        assert!(requested("/v", &["v,none", "*,307,9"]).none);
        assert_eq!(requested("/a b", &[r"a\ b,307,9"]).filters.len(), 1);
        assert_eq!(requested("/a&b", &[r"/a\&b,307,9"]).filters.len(), 1);
        assert_eq!(escaped(b"/1 g/1a,b"), b"/1 g/\\1a\\,b");
    }

    #[test]
    fn what_is_malformed() {
        for text in [",307", "v,foo", "v,307,x", "v,307||1"] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
        // Nothing is asked for.
        for text in ["", "v", "v,", "&,307"] {
            assert_eq!(parse(text.as_bytes()), Some(Vec::new()), "{text}");
        }
    }
}
