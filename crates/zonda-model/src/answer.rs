//! What kind of answer an error is: whether a file is to blame, and if so for what.

use std::fmt;

use crate::NcError;

/// What kind of answer an error is. "Damaged", "cannot be represented in netCDF" and "cannot be decoded
/// here" are three different ones: after the first, a copy of the file from elsewhere helps; after the
/// second, a program that reads the format itself; after the third, a filter or another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Answer {
    /// What was asked for cannot be had of any file, or not of this one as it is.
    Request,
    /// There is nothing under a name: no such file, variable, dimension.
    Missing,
    /// The operating system, or a device, said no.
    System,
    /// Memory does not suffice.
    NoMemory,
    /// It is sound, and the data model of netCDF cannot represent it.
    Unrepresentable,
    /// It exists, and is not read, because its file is not trusted or is in a folder that is not allowed.
    Refused,
    /// It may be sound, and Zonda cannot decode it: a filter is missing, or Zonda does not read that part of the format.
    Undecodable,
    /// The file is of no format that is read here. What it is, or was, nobody can tell.
    Unknown,
    /// Bytes are not what a writer wrote.
    Damaged,
}

impl Answer {
    /// Its name for machines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Answer::Request => "request",
            Answer::Missing => "missing",
            Answer::System => "system",
            Answer::NoMemory => "memory",
            Answer::Unrepresentable => "unrepresentable",
            Answer::Refused => "refused",
            Answer::Undecodable => "undecodable",
            Answer::Unknown => "unknown",
            Answer::Damaged => "damaged",
        }
    }

    /// What a message adds in brackets for this kind. Messages of the other kinds say it themselves.
    #[must_use]
    pub fn words(self) -> Option<&'static str> {
        match self {
            Answer::Damaged => Some("damaged"),
            Answer::Unrepresentable => Some("cannot be represented in netCDF"),
            Answer::Undecodable => Some("cannot be decoded here"),
            Answer::Refused
            | Answer::Unknown
            | Answer::Request
            | Answer::Missing
            | Answer::System
            | Answer::NoMemory => None,
        }
    }

    /// A message, and what kind of answer it is in brackets.
    #[must_use]
    pub fn said_of(self, message: impl fmt::Display) -> String {
        match self.words() {
            Some(words) => format!("{message} ({words})"),
            None => message.to_string(),
        }
    }

    /// The kind of an error of the operating system.
    #[must_use]
    pub fn of_errno(errno: i32) -> Answer {
        match errno {
            ENOENT | ENOTDIR => Answer::Missing,
            ENOMEM => Answer::NoMemory,
            EUCLEAN => Answer::Damaged,
            EINTR => Answer::Request,
            _ => Answer::System,
        }
    }

    /// The kind of an error of which only the code is known.
    #[must_use]
    pub fn of_code(code: NcError) -> Answer {
        match code {
            NcError::System(errno) => Answer::of_errno(errno),
            NcError::NoMem => Answer::NoMemory,
            NcError::NotNc => Answer::Unknown,
            NcError::NotBuilt | NcError::NoFilter => Answer::Undecodable,
            NcError::AttMeta => Answer::Unrepresentable,
            NcError::HdfErr
            | NcError::Filter
            | NcError::Trunc
            | NcError::DimMeta
            | NcError::VarMeta => Answer::Damaged,
            NcError::NotVar
            | NcError::NotAtt
            | NcError::BadDim
            | NcError::NoGrp
            | NcError::BadGrpId => Answer::Missing,
            _ => Answer::Request,
        }
    }
}

/// `ENOENT` of Linux on every architecture.
const ENOENT: i32 = 2;
/// `EINTR`: a caller stopped the call.
const EINTR: i32 = 4;
/// `ENOMEM`.
const ENOMEM: i32 = 12;
/// `ENOTDIR`: something on the way to the file is no folder.
const ENOTDIR: i32 = 20;
/// `EUCLEAN`, "structure needs cleaning".
const EUCLEAN: i32 = 117;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_answers_are_said_and_others_are_not() {
        let said: Vec<String> = [Answer::Damaged, Answer::Unrepresentable, Answer::Undecodable]
            .map(|answer| answer.said_of("x"))
            .into();
        assert_eq!(
            said,
            ["x (damaged)", "x (cannot be represented in netCDF)", "x (cannot be decoded here)"]
        );
        for answer in [Answer::Refused, Answer::Missing, Answer::Request, Answer::NoMemory] {
            assert_eq!(answer.said_of("x"), "x");
        }
    }

    #[test]
    fn of_codes() {
        for (code, answer) in [
            (NcError::System(2), Answer::Missing),
            (NcError::System(12), Answer::NoMemory),
            (NcError::System(5), Answer::System),
            (NcError::NotNc, Answer::Unknown),
            (NcError::NoFilter, Answer::Undecodable),
            (NcError::HdfErr, Answer::Damaged),
            (NcError::Inval, Answer::Request),
        ] {
            assert_eq!(Answer::of_code(code), answer, "{code}");
        }
    }
}
