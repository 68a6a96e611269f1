//! Folders of servers in which plain URLs led to files: the next one there is opened as a file first, so that only the first costs a question for a DDS.

use std::hash::{BuildHasher, RandomState};

use zonda_runtime::Settled;
use zonda_runtime::lock::{Global, Rank};

/// Folders that are remembered.
const MOST_FOLDERS: usize = 64;

/// The last ones; no names, since URLs may have secrets.
static FOLDERS: Global<Vec<u64>> = Global::new(Rank::Servers, Vec::new(), Vec::new);

fn number(url: &str) -> u64 {
    static STATE: Settled<RandomState> = Settled::new();
    let path = url.split(['#', '?']).next().unwrap_or_default();
    let folder = path.rsplit_once('/').map_or(path, |(folder, _)| folder);
    STATE.get_or_make(RandomState::new).hash_one(folder)
}

/// Whether a URL in the same folder was one of a file.
pub(super) fn are_beside(url: &str) -> bool {
    FOLDERS.lock().contains(&number(url))
}

/// A URL was one of a file.
pub(super) fn note(url: &str) {
    let number = number(url);
    let mut folders = FOLDERS.lock();
    folders.retain(|&other| other != number);
    if folders.len() >= MOST_FOLDERS {
        folders.remove(0);
    }
    folders.push(number);
}

/// A URL was one of a dataset.
pub(super) fn forget(url: &str) {
    let number = number(url);
    FOLDERS.lock().retain(|&other| other != number);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_what_its_urls_have_in_common() {
        let url = "http://folder.test/a/b.nc#x/y";
        assert!(!are_beside(url));
        note(url);
        assert!(are_beside("http://folder.test/a/c.nc?q=/1"));
        assert!(
            !are_beside("http://folder.test/b/c.nc") && !are_beside("http://folder.test/a/b/c")
        );
        (0..MOST_FOLDERS).for_each(|n| note(&format!("http://folder.test/n{n}/x")));
        assert!(!are_beside(url));
        forget("http://folder.test/n9/y");
        assert!(!are_beside("http://folder.test/n9/x") && are_beside("http://folder.test/n8/x"));
    }
}
