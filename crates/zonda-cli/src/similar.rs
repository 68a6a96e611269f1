//! Names that are nearly the same as one that is not there.

use zonda::{Dataset, GroupId, Meta, VarId};

/// What to add to a message about a name that is not there: the known one that it is most like, if it is like one at all.
pub(crate) fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, known).map_or_else(String::new, |meant| format!("; did you mean {meant}?"))
}

/// The same for the name of a variable that a group does not have.
pub(crate) fn similar_variable(meta: &Meta<'_>, name: &str) -> String {
    let names: Vec<String> = variable_names(meta).collect();
    did_you_mean(name, names.iter().map(String::as_str))
}

fn variable_names(meta: &Meta<'_>) -> impl Iterator<Item = String> {
    let ids = (0..meta.n_vars()).map_while(|number| i32::try_from(number).ok().map(VarId));
    ids.filter_map(|id| meta.var(id).ok()).map(|var| String::from_utf8_lossy(var.name).into_owned())
}

/// The paths of all variables of a file: `/group/name`.
pub(crate) fn variable_paths(file: &Dataset) -> zonda::Result<Vec<String>> {
    let (mut groups, mut paths) = (vec![GroupId::ROOT], Vec::new());
    while let Some(group) = groups.pop() {
        file.in_group(group, |meta| {
            groups.extend(meta.groups());
            let group = String::from_utf8_lossy(&meta.group_path()).into_owned();
            let group = group.trim_end_matches('/');
            paths.extend(variable_names(meta).map(|name| format!("{group}/{name}")));
        })?;
    }
    Ok(paths)
}

/// The known name that another one is most like: at most a third of its letters differ, and no more than three; or the case of any.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = name.to_lowercase();
    let distance = |known: &str| strsim::damerau_levenshtein(&folded, &known.to_lowercase());
    let scored = known.into_iter().map(|known| (distance(known), known));
    let most = (name.chars().count() / 3).min(3);
    scored.min().filter(|(distance, _)| *distance <= most).map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_nearly_right() {
        let known = ["temperature", "time", "t2m", "u"];
        let near = |name| nearest(name, known);
        assert_eq!(near("temprature"), Some("temperature"));
        assert_eq!(near("Time"), Some("time"));
        assert_eq!(near("tmie"), Some("time"));
        assert_eq!(near("t3m"), Some("t2m"));
        assert_eq!((near("pressure"), near("x"), near("U")), (None, None, Some("u")));
        assert_eq!(nearest("x", []), None);
        assert_eq!(did_you_mean("tiem", known), "; did you mean time?");
        assert_eq!(did_you_mean("nothing", known), "");
    }
}
