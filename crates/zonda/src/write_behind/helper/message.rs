//! Messages to a helper.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use zonda_format::{GroupId, VarRef};
use zonda_model::VarId;

/// A message. Files have numbers of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::write_behind) enum HelperMessage {
    /// The process that is watched.
    Hello { pid: u32 },
    /// A file. Comes with a descriptor of the memory that holds its values. Sent again when its path or memory may
    /// have changed.
    File { file: u64, identity: Option<(u64, u64)>, path: PathBuf },
    /// Comes with a descriptor of the open file, which shows its later name and holds its locks.
    Open { file: u64 },
    /// Name of a variable, and the path of its group.
    Var { file: u64, var: VarRef, group: Vec<u8>, name: Vec<u8> },
    /// The file needs no helper any more.
    End { file: u64 },
}

impl HelperMessage {
    pub(super) fn encode(&self) -> Vec<u8> {
        let (kind, words, texts): (u8, Vec<u64>, [&[u8]; 2]) = match self {
            HelperMessage::Hello { pid } => (0, vec![u64::from(*pid)], [b"", b""]),
            HelperMessage::File { file, identity, path } => {
                let (device, inode) = identity.unwrap_or_default();
                let is_known = u64::from(identity.is_some());
                (1, vec![*file, is_known, device, inode], [path.as_os_str().as_bytes(), b""])
            }
            HelperMessage::Open { file } => (2, vec![*file], [b"", b""]),
            HelperMessage::Var { file, var, group, name } => {
                let words =
                    vec![*file, u64::from(var.group.0), u64::from(var.var.0.cast_unsigned())];
                (3, words, [group, name])
            }
            HelperMessage::End { file } => (4, vec![*file], [b"", b""]),
        };
        let mut bytes = vec![kind];
        words.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        bytes.extend_from_slice(&(texts[0].len() as u64).to_le_bytes());
        texts.iter().for_each(|text| bytes.extend_from_slice(text));
        bytes
    }

    /// `None` for bytes that are no message.
    pub(super) fn decode(bytes: &[u8]) -> Option<HelperMessage> {
        let (&kind, mut rest) = bytes.split_first()?;
        let mut word = || {
            let (word, behind) = rest.split_first_chunk()?;
            rest = behind;
            Some(u64::from_le_bytes(*word))
        };
        Some(match kind {
            0 => HelperMessage::Hello { pid: u32::try_from(word()?).ok()? },
            1 => {
                let (file, is_known, device, inode) = (word()?, word()?, word()?, word()?);
                let len = usize::try_from(word()?).ok()?;
                let path = OsString::from_vec(rest.get(..len)?.to_vec());
                let identity = (is_known == 1).then_some((device, inode));
                HelperMessage::File { file, identity, path: path.into() }
            }
            2 => HelperMessage::Open { file: word()? },
            3 => {
                let (file, group, var) = (word()?, word()?, word()?);
                let len = usize::try_from(word()?).ok()?;
                let (path, name) = rest.split_at_checked(len)?;
                let group = GroupId(u16::try_from(group).ok()?);
                let var = VarRef { group, var: VarId(i32::try_from(var).ok()?) };
                HelperMessage::Var { file, var, group: path.to_vec(), name: name.to_vec() }
            }
            4 => HelperMessage::End { file: word()? },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_as_they_went() {
        let var = VarRef { group: GroupId(2), var: VarId(9) };
        let messages = [
            HelperMessage::Hello { pid: 17 },
            HelperMessage::File { file: 3, identity: Some((5, 1 << 40)), path: PathBuf::from("/") },
            HelperMessage::File { file: 3, identity: None, path: PathBuf::from("/a b") },
            HelperMessage::Open { file: 4 },
            HelperMessage::Var { file: 5, var, group: b"/g".to_vec(), name: b"temp".to_vec() },
            HelperMessage::End { file: u64::MAX },
        ];
        for message in messages {
            let bytes = message.encode();
            assert_eq!(HelperMessage::decode(&bytes), Some(message.clone()));
            let cut = HelperMessage::decode(&bytes[..8]);
            assert_eq!(cut, None, "{message:?}");
        }
        assert_eq!(HelperMessage::decode(&[9; 20]), None);
        assert_eq!(HelperMessage::decode(b""), None);
    }
}
