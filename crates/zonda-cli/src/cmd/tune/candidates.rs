//! The stacks that are tried: the default, rules of thumb, and settings around them.

use zonda::storage::{BLOCK_BYTES, Spec};

use super::accesses::Accesses;
use crate::tuning::CANDIDATE_CACHE_BYTES;

/// A stack that is tried.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) spec: Spec,
    /// Why it is tried.
    pub(super) why: &'static str,
}

/// The stacks to try for these accesses, the default first. `below` is text for the layers below
/// all of them, such as `throttle:100M,`; it may be empty.
pub(super) fn of(accesses: &Accesses, below: &str) -> Vec<Candidate> {
    let default = Spec::default_stack().to_string();
    let default = default.strip_suffix(",file").unwrap_or(&default).to_owned();
    let mut texts: Vec<(String, &'static str)> =
        vec![(default, "the default"), (String::new(), "no layer at all")];
    for &(record, parts, _) in accesses.advice.iter().take(2) {
        if record > 0 {
            texts.extend(rules_of_thumb(record, parts));
        }
    }
    for (page_blocks, pages) in [(4, 512), (16, 512), (64, 128), (256, 64), (1024, 32)] {
        for layer in ["cache", "cachea"] {
            texts.push((format!("{layer}:{page_blocks}:{pages}"), "a usual size"));
        }
    }
    for blocks in [256, 1024] {
        texts.push((format!("bufa:{blocks}:2"), "a usual size"));
    }
    texts.push(("cache:64:128,eie.sds:1024:16:1".to_owned(), "a usual size"));
    texts.push(("direct".to_owned(), "past the system's cache"));
    texts.push(("cache:1024:16,direct".to_owned(), "past the system's cache"));
    if accesses.openings.iter().all(|opening| !opening.writes) {
        texts.push(("mmap".to_owned(), "the file as memory"));
    }
    let mut candidates: Vec<Candidate> = Vec::new();
    for (text, why) in texts {
        let separator = if text.is_empty() { "" } else { "," };
        let Ok(spec) = format!("{text}{separator}{below}file").parse::<Spec>() else { continue };
        // A layer that this build lacks is replaced by another one, which is tried under its own
        // name.
        let known = candidates.iter().any(|candidate| candidate.spec == spec);
        if spec.replaced().is_empty() && !known {
            candidates.push(Candidate { spec, why });
        }
    }
    candidates
}

/// Settings like those that the paper of 1995 on netCDF over FFIO chose by hand for its case study
/// (62 record variables: `cache:29:141`, `bufa:336:2`): pages as large as a variable's part of a
/// record, two for each variable and some for header and others; two buffers of a record.
fn rules_of_thumb(record_bytes: u64, parts: u32) -> Vec<(String, &'static str)> {
    const WHY: &str = "a rule of thumb of 1995";
    let parts = u64::from(parts.max(1));
    let page = record_bytes.div_ceil(parts).div_ceil(BLOCK_BYTES).clamp(1, 16 << 10);
    let most = (CANDIDATE_CACHE_BYTES / (page * BLOCK_BYTES)).max(4);
    let pages = (2 * parts + 17).min(most);
    let buffer = record_bytes.div_ceil(BLOCK_BYTES).clamp(16, 16 << 10);
    vec![
        (format!("cache:{page}:{pages}"), WHY),
        (format!("cachea:{page}:{pages}"), WHY),
        (format!("cache:{page}:{pages},eie.sds:4096:4:1"), WHY),
        (format!("bufa:{buffer}:2"), WHY),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_give_the_stacks_of_the_case_study() {
        let specs = rules_of_thumb(62 * 29 * 4096, 62);
        assert_eq!(specs[0].0, "cache:29:141");
        assert_eq!(rules_of_thumb(2 * 29 * 4096, 2)[3].0, "bufa:58:2");
        // Neither nothing nor everything is asked of memory.
        assert_eq!(rules_of_thumb(1, 0)[0].0, "cache:1:19");
        for (text, _) in rules_of_thumb(u64::MAX, u32::MAX) {
            assert!(text.parse::<Spec>().is_ok(), "{text}");
        }
    }

    #[test]
    fn every_candidate_runs_as_it_says() {
        let mut accesses = Accesses::default();
        accesses.advice.push((1 << 20, 10, 0));
        let candidates = of(&accesses, "throttle:100M,");
        assert!(candidates.len() > 5, "{candidates:?}");
        assert_eq!(candidates[0].why, "the default");
        for (i, candidate) in candidates.iter().enumerate() {
            assert!(candidate.spec.to_string().ends_with("throttle:100M,file"));
            assert!(candidates[..i].iter().all(|other| other.spec != candidate.spec));
        }
    }
}
