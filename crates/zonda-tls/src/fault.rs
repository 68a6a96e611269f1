//! What can be wrong with TLS.

/// What kind of failure it is. The numbers are those of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// A certificate or a key of the settings: [`Fault::place`] says of which of them.
    Setting = 1,
    /// No certificate is trusted.
    NoRoots = 2,
    /// Our key is not that of our certificate.
    OtherKey = 3,
    /// No certificate can have the name of the server.
    Name = 4,
    /// The server does not speak TLS.
    NotTls = 5,
    /// The server, or what is between, breaks the rules or is not trusted.
    Peer = 6,
    /// The connection ended without a word.
    Ended = 7,
    /// A mistake in what does the work.
    Internal = 8,
}

impl Kind {
    /// The kind with a number of the table; a number that is none is a mistake.
    #[must_use]
    pub fn of_number(number: u32) -> Kind {
        match number {
            1 => Kind::Setting,
            2 => Kind::NoRoots,
            3 => Kind::OtherKey,
            4 => Kind::Name,
            5 => Kind::NotTls,
            6 => Kind::Peer,
            7 => Kind::Ended,
            _ => Kind::Internal,
        }
    }
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Fault {
    /// Its kind.
    pub kind: Kind,
    /// Which part of the settings it is about: a source, by its place in their list, our certificates, behind all sources, or our key, behind these.
    pub place: usize,
    /// In words, some of which may be those of a server.
    pub text: String,
}

impl Fault {
    /// A failure that is about no source.
    #[must_use]
    pub fn new(kind: Kind, text: impl Into<String>) -> Fault {
        Fault { kind, place: 0, text: text.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_one_number() {
        let kinds: Vec<Kind> = (1..=8).map(Kind::of_number).collect();
        for (kind, number) in kinds.iter().zip(1..) {
            assert_eq!(*kind as u32, number);
        }
        assert_eq!([0, 9, u32::MAX].map(Kind::of_number), [Kind::Internal; 3]);
    }
}
