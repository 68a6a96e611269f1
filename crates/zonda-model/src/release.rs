//! Which release of netCDF-C the answers are those of, where releases differ.
//!
//! That is 4.9.0, unless the library stands in front of another one that the program brought along: such a
//! program was tested with the answers of that one. Every place where releases differ and both can be
//! followed asks [`answers_as`]; the C interface finds out what there is ([`find_by`]).

use zonda_runtime::Settled;

/// A release of netCDF-C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release {
    /// Of 4.9.0 the 4.
    pub major: u32,
    /// The 9.
    pub minor: u32,
    /// The 0.
    pub patch: u32,
}

impl Release {
    /// The release that is followed where nothing else is known.
    pub const FOLLOWED: Release = Release::new(4, 9, 0);

    /// A release by its numbers.
    #[must_use]
    pub const fn new(major: u32, minor: u32, patch: u32) -> Release {
        Release { major, minor, patch }
    }

    /// The release that a version text begins with, such as that of `nc_inq_libvers`:
    /// `4.10.1 of Feb 26 2026 08:19:03 $`. `None` for what begins with none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Release> {
        let word = text.split_ascii_whitespace().next()?;
        let mut numbers = word.split('.').map(|part| {
            let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            part.get(..digits)?.parse().ok()
        });
        let mut next = || numbers.next().flatten();
        Some(Release { major: next()?, minor: next()?, patch: next().unwrap_or(0) })
    }
}

/// Looks for a release that was displaced.
pub type Finder = fn() -> Option<Release>;

static FINDER: Settled<Finder> = Settled::new();

/// Says how a displaced library is found. The first one counts, and only before anybody asked.
pub fn find_by(finder: Finder) {
    FINDER.settle(finder);
}

/// The release whose answers are given, which stays the same for the process.
#[must_use]
pub fn answers_as() -> Release {
    static KNOWN: Settled<Release> = Settled::new();
    *KNOWN.get_or_make(|| FINDER.get().and_then(|find| find()).unwrap_or(Release::FOLLOWED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_releases() {
        for (text, release) in [
            ("4.9.0 of Jan 01 2023 00:00:00 $", Some(Release::new(4, 9, 0))),
            ("4.10.1 of Feb 26 2026 08:19:03 $", Some(Release::new(4, 10, 1))),
            ("4.9.4-development of x", Some(Release::new(4, 9, 4))),
            ("4.7", Some(Release::new(4, 7, 0))),
            ("4", None),
            ("", None),
            ("x.y.z", None),
        ] {
            assert_eq!(Release::parse(text), release, "{text}");
        }
        assert!(Release::new(4, 10, 1) > Release::new(4, 9, 3));
        assert_eq!(answers_as(), Release::FOLLOWED);
    }
}
