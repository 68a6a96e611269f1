//! Link message (0x0006): a name in a group and what it stands for.
//! Spec: HDF5 File Format, "The Link Message". Version 1.

use crate::FileAddr;
use crate::message::Charset;

/// A name in a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Name.
    pub name: Box<[u8]>,
    /// Its character set.
    pub charset: Charset,
    /// When it was made, as a rank among its group's, where the group keeps that.
    pub creation_order: Option<i64>,
    /// What it stands for.
    pub target: LinkTarget,
}

/// What a link stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkTarget {
    /// An object of this file.
    Hard(FileAddr),
    /// A path in this file, which need not lead anywhere.
    Soft(Box<[u8]>),
    /// A path in another file.
    External {
        /// The file.
        file: Box<[u8]>,
        /// The path in it.
        path: Box<[u8]>,
    },
    /// Something only the writer's program knows.
    UserDefined {
        /// Type, 65 and above.
        kind: u8,
        /// Its bytes.
        data: Box<[u8]>,
    },
}
