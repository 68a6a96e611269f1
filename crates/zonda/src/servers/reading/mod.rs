//! Reading by servers: a server has a file open once for all clients, reads what they ask for, and what they are going to ask for. Design:
//! `docs/dev/servers.md`, "Reading by servers".
//!
//! | | Where |
//! |---|---|
//! | a client's file: what it asks, and when it reads by itself | `client.rs` |
//! | which file it is that a client has open | `identity.rs` |
//! | what a server does for one client | `session.rs` |
//! | a file of all clients, and results that several of them want | `file.rs` |
//! | gets that come next | `walk.rs`, `ahead.rs` |
//! | memory in which values come to clients | `sheets.rs` |

mod ahead;
mod client;
mod file;
mod identity;
mod session;
mod sheets;
mod walk;

pub(super) use client::forget;
pub(crate) use client::reader;
pub(super) use file::Readings;
pub(super) use identity::ReadOpening;
pub(super) use session::SessionReads;

/// What servers read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// Nothing.
    #[default]
    Off,
    /// What costs work: variables with filters. Bytes of others are in the memory of the node already when one of its processes has read them. From a
    /// server on another node all comes.
    On,
    /// Other variables, too.
    All,
}

impl Reading {
    /// The word for it in specs: `read=WORD`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Reading::Off => "off",
            Reading::On => "on",
            Reading::All => "all",
        }
    }

    /// What a word says.
    #[must_use]
    pub fn of(word: &str) -> Option<Reading> {
        [Reading::Off, Reading::On, Reading::All].into_iter().find(|one| one.word() == word)
    }
}
