//! What client and server say to each other: over the socket what is rare, and through the ring the calls.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use zonda_convert::Converted;
use zonda_format::{Error, Format};
use zonda_model::{Answer, NcError};
use zonda_parallel::Hints;
use zonda_served::{Reply, Told};

use super::reading::ReadOpening;
use crate::error::Result;
use crate::open::CreateOptions;

/// Client and server are of one build.
pub(super) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " protocol 4");

/// What a client says first. The ring comes with it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) version: String,
    pub(super) pid: u32,
    /// Where it has that number: processes in containers have others than outside.
    pub(super) numbers: Option<FileIdentity>,
    /// Whether a ring comes with it: the system drops it where the server may have no more open files.
    pub(super) brings_ring: bool,
    /// The file that this process is going to open, which wants to know nothing else: the server answers when it has closed what clients have closed before.
    pub(super) settles: Option<NamedFile>,
}

/// The numbers of processes that this one sees.
pub(super) fn own_numbers() -> Option<FileIdentity> {
    identity_at(Path::new("/proc/self/ns/pid"))
}

impl Hello {
    /// That of this process.
    pub(super) fn of_process(brings_ring: bool) -> Hello {
        Hello { version: VERSION.to_owned(), pid: std::process::id(), numbers: own_numbers(), brings_ring, settles: None }
    }
}

/// What a server says over the socket.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Notice {
    /// The answer to [`Hello`]: the version of the server, and why it does not serve this client, if it does not.
    Welcome { version: String, refused: Option<String> },
    /// What became of the call that was asked last. Values that do not fit a message come as memory with it.
    Reply { outcome: Outcome, len: Option<u64> },
    /// The first failure of a call of a file that was told, since the last one.
    Failure { file: u64, error: SentError },
}

/// What a call gave.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Outcome {
    Done { out_of_range: u64, values: Vec<u8>, shape: Vec<usize> },
    Failed(SentError),
}

/// An error as it travels: its code and its text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SentError {
    code: i32,
    text: String,
}

impl From<&Error> for SentError {
    fn from(error: &Error) -> SentError {
        SentError { code: error.code().code(), text: error.to_string() }
    }
}

impl SentError {
    pub(super) fn error(&self) -> Error {
        let code = NcError::from_code(self.code).unwrap_or(NcError::Io);
        Error::answered(code, Answer::of_code(code), format!("I/O server: {}", self.text))
    }
}

impl Outcome {
    pub(super) fn of(done: Result<Reply>) -> Outcome {
        match done {
            Ok(Reply { converted, values, shape }) => {
                Outcome::Done { out_of_range: converted.out_of_range, values, shape }
            }
            Err(error) => Outcome::Failed((&error).into()),
        }
    }

    pub(super) fn reply(self) -> Result<Reply> {
        match self {
            Outcome::Done { out_of_range, values, shape } => {
                Ok(Reply { converted: Converted { out_of_range }, values, shape })
            }
            Outcome::Failed(error) => Err(error.error()),
        }
    }
}

/// The head of a frame in the ring; values come behind it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FrameHead {
    /// The number that the client gave its file.
    pub(super) file: u64,
    /// The client waits for a reply.
    pub(super) is_asked: bool,
    /// More values of the same call come in the next frame of this file, which has the same head.
    pub(super) has_more: bool,
    pub(super) what: What,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum What {
    Create(Creation),
    /// Opens a file for reading; gets and the last call come as [`What::Call`].
    Read(Box<ReadOpening>),
    Call(Told),
    /// Is answered when no such file, or none at all, is being written: see [`settle`](super::settle).
    Settle {
        file: Option<NamedFile>,
    },
    /// Is answered with the bytes that wait, as the first length of the shape.
    Load,
}

/// Device and inode of a file: the same by all of its names.
pub(super) type FileIdentity = (u64, u64);

/// Which file is at a path, links followed; `None` where none can be found there.
pub(super) fn identity_at(path: &Path) -> Option<FileIdentity> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

/// A file that somebody waits for: what is written by that name, and what the name leads to. It may have been created by another name.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct NamedFile {
    pub(super) path: Vec<u8>,
    pub(super) identity: Option<FileIdentity>,
}

/// A file that is created.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Creation {
    path: Vec<u8>,
    format: String,
    exclusive: bool,
    share: bool,
    no_attribute_order: bool,
    no_scales_attached: bool,
    alignment: Option<(u64, u64)>,
    io: Option<String>,
    equal_attributes: bool,
    independent_filters: bool,
    hints: String,
    /// Bits of the mode that the client's files do not have (`umask`), where it could be found.
    pub(super) umask: Option<u32>,
    /// Of a file of several ranks.
    pub(super) ranks: Option<RankOf>,
}

/// Which of several ranks a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RankOf {
    /// The same for all ranks of a file, and for no others.
    pub(super) team: [u64; 2],
    pub(super) rank: usize,
    pub(super) size: usize,
}

/// The `umask` of this process. The call that gives it would change it for a moment, for all threads.
fn umask() -> Option<u32> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(line.trim(), 8).ok()
}

const FORMATS: [Format; 5] =
    [Format::Cdf1, Format::Cdf2, Format::Cdf5, Format::NetCdf4, Format::NetCdf4Classic];

impl Creation {
    /// A file at an absolute path.
    pub(super) fn new(path: &Path, options: &CreateOptions, ranks: Option<RankOf>) -> Creation {
        Creation {
            path: path.as_os_str().as_bytes().to_vec(),
            format: options.format.kind().to_owned(),
            exclusive: options.exclusive,
            share: options.share,
            no_attribute_order: options.no_attribute_order,
            no_scales_attached: options.no_scales_attached,
            alignment: options.alignment,
            io: options.io.clone(),
            equal_attributes: options.equal_attributes,
            independent_filters: options.independent_filters,
            hints: options.hints.to_text(),
            umask: umask(),
            ranks,
        }
    }

    pub(super) fn path(&self) -> PathBuf {
        OsString::from_vec(self.path.clone()).into()
    }

    /// The options of the file, which has no write-behind: what is told is behind already.
    ///
    /// # Errors
    /// `NC_EINVAL` for a format that servers do not write.
    pub(super) fn options(&self) -> Result<CreateOptions> {
        let known = FORMATS.into_iter().find(|format| format.kind() == self.format);
        let why = "I/O servers do not write files of this format";
        let format = known.ok_or_else(|| Error::because(NcError::Inval, why))?;
        let mut hints = Hints::default();
        // They were read by the client, which has said what is wrong with them.
        let _ = hints.set_all(&self.hints);
        Ok(CreateOptions {
            format,
            exclusive: self.exclusive,
            share: self.share,
            io: self.io.clone(),
            no_attribute_order: self.no_attribute_order,
            no_scales_attached: self.no_scales_attached,
            alignment: self.alignment,
            write_behind: Some(crate::WriteBehind::Off),
            equal_attributes: self.equal_attributes,
            independent_filters: self.independent_filters,
            hints,
            ..CreateOptions::default()
        })
    }
}

/// Whether servers write files of a format.
pub(super) fn is_served(format: Format) -> bool {
    FORMATS.contains(&format)
}

pub(super) fn encode(message: &impl Serialize) -> Result<Vec<u8>> {
    let why = "bug in Zonda: a message to or from an I/O server that cannot be written";
    postcard::to_allocvec(message).map_err(|_| Error::because(NcError::Internal, why))
}

/// `None` for what is no such message.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let (message, rest) = postcard::take_from_bytes(bytes).ok()?;
    rest.is_empty().then_some(message)
}

/// A frame: the length of the head, the head, the values.
pub(super) fn head_with_length(head: &FrameHead) -> Result<Vec<u8>> {
    let head = encode(head)?;
    let mut bytes = zonda_model::memory::room(WORD.saturating_add(head.len()))?;
    bytes.extend((head.len() as u64).to_le_bytes());
    bytes.extend(head);
    Ok(bytes)
}

/// The head of a frame, and where its values begin; `None` for what is no frame.
pub(super) fn frame(bytes: &[u8]) -> Option<(FrameHead, usize)> {
    let (len, rest) = bytes.split_first_chunk::<WORD>()?;
    let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
    let head = rest.get(..len)?;
    Some((decode(head)?, WORD + len))
}

/// Bytes of a length.
const WORD: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_and_files_come_as_they_went() {
        let options = CreateOptions {
            format: Format::NetCdf4Classic,
            exclusive: true,
            io: Some(String::from("file")),
            alignment: Some((1, 4096)),
            ..CreateOptions::default()
        };
        let ranks = Some(RankOf { team: [7, u64::MAX], rank: 3, size: 9 });
        let creation = Creation::new(Path::new("/a b/c.nc"), &options, ranks);
        let what = What::Create(creation);
        let mut bytes =
            head_with_length(&FrameHead { file: 5, is_asked: true, has_more: false, what })
                .unwrap();
        bytes.extend(b"values");
        for cut in 0..bytes.len() - 6 {
            assert!(frame(&bytes[..cut]).is_none(), "{cut}");
        }
        let (head, values_at) = frame(&bytes).unwrap();
        assert_eq!((head.file, head.is_asked, &bytes[values_at..]), (5, true, &b"values"[..]));
        let What::Create(creation) = head.what else { panic!("{head:?}") };
        assert_eq!((creation.path(), creation.ranks), (PathBuf::from("/a b/c.nc"), ranks));
        let read = creation.options().unwrap();
        assert_eq!((read.format, read.exclusive, read.io), (options.format, true, options.io));
        assert_eq!(read.alignment, Some((1, 4096)));
    }

    #[test]
    fn errors_keep_code_and_text() {
        let error = Error::answered(NcError::System(28), Answer::System, "no room for x.nc");
        let sent = decode::<SentError>(&encode(&SentError::from(&error)).unwrap()).unwrap();
        assert_eq!(sent.error().code(), NcError::System(28));
        assert!(sent.error().to_string().contains("no room for x.nc"));
    }
}
