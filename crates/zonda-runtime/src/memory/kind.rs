//! What memory is taken for.

/// What memory is taken for. Who takes it knows what that is; here it is a name and a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(usize)]
pub enum Kind {
    /// Pages of files.
    Pages,
    /// Decoded chunks that are kept for later reads.
    Chunks,
    /// Values that were accepted and wait to be written.
    Queues,
    /// Chunks that wait for more data.
    Incomplete,
    /// Memory that nobody needs, kept to be used again.
    Spare,
    /// Events of a trace that are not written yet.
    Trace,
}

impl Kind {
    /// How many there are.
    pub const COUNT: usize = 6;

    /// All of them.
    pub const ALL: [Kind; Kind::COUNT] =
        [Kind::Pages, Kind::Chunks, Kind::Queues, Kind::Incomplete, Kind::Spare, Kind::Trace];

    /// How it is called, with a NUL behind it for C.
    const NAMES: [&'static str; Kind::COUNT] =
        ["pages\0", "chunks\0", "queues\0", "incomplete\0", "spare\0", "trace\0"];

    /// How it is called: one word.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.c_name().trim_end_matches('\0')
    }

    /// The same with a NUL at its end.
    #[must_use]
    pub fn c_name(self) -> &'static str {
        Kind::NAMES[self as usize]
    }

    /// What it is, in words.
    #[must_use]
    pub fn what(self) -> &'static str {
        match self {
            Kind::Pages => "pages of files",
            Kind::Chunks => "decoded chunks, for later reads",
            Kind::Queues => "puts that were accepted and wait",
            Kind::Incomplete => "chunks that wait for more data",
            Kind::Spare => "kept to be used again",
            Kind::Trace => "events that are not written yet",
        }
    }

    /// What becomes of it where the limit is reached, in words.
    #[must_use]
    pub fn under_pressure(self) -> &'static str {
        match self {
            Kind::Pages | Kind::Chunks => "the longest unused goes",
            Kind::Queues => "stays; puts wait at the queue's own limit",
            Kind::Incomplete => "goes to a file without a name",
            Kind::Spare => "goes first",
            Kind::Trace => "stays",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_place_and_a_name_of_its_own() {
        for (place, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place);
            assert!(kind.c_name().ends_with('\0') && !kind.name().contains('\0'));
            let same = Kind::ALL.iter().filter(|other| other.name() == kind.name());
            assert_eq!(same.count(), 1, "{}", kind.name());
        }
    }
}
