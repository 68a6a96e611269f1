//! A client's file that servers read.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use zonda_format::Dispatch;
use zonda_runtime::lock::{Global, Mutex, Rank};
use zonda_served::{Call, Got, ReadFile, ReadLine};
use zonda_storage::backend::File;

use super::super::client::{Servers, absolute, connection, servers};
use super::super::connection::{Asked, Connection};
use super::super::way::Address;
use super::super::wire::{Outcome, What};
use super::Reading;
use super::identity::{FileIdentity, ReadOpening};
use crate::error::Result;
use crate::open::OpenOptions;
use crate::open_file::OpenFile;

/// Connections for gets, so that these wait for no puts. Only this list keeps them: a rank that is over drops them for all files.
static READERS: Global<Option<HashMap<Address, Arc<Connection>>>> =
    Global::new(Rank::Files, None, || None);

/// The connection for gets to a server. By messages of MPI there is one way only.
fn reading_connection(server: &Address) -> Result<Arc<Connection>> {
    if let Address::Rank(_) = server {
        return connection(server);
    }
    let mut readers = READERS.lock();
    let readers = readers.get_or_insert_default();
    if let Some(known) = readers.get(server).filter(|known| known.is_own()) {
        return Ok(Arc::clone(known));
    }
    let new = Arc::new(Connection::to(server)?);
    readers.insert(server.clone(), Arc::clone(&new));
    Ok(new)
}

/// Drops the connections to some servers, which go.
pub(in super::super) fn forget(servers: &[Address]) {
    if let Some(readers) = READERS.lock().as_mut() {
        readers.retain(|server, _| !servers.contains(server));
    }
}

/// What reads a file that is being opened: made before its definitions are read.
#[derive(Debug)]
pub(crate) struct Reader {
    server: Server,
    file: Arc<File>,
    identity: FileIdentity,
    /// It is asked for variables without filters, too.
    is_all: bool,
}

#[derive(Clone, Debug)]
struct Server {
    path: PathBuf,
    connection: Weak<Connection>,
    is_same_node: bool,
}

/// What reads the file at a path for a process that opens it with these options; `None` where the process reads it itself.
pub(crate) fn reader(
    path: &Path,
    options: &OpenOptions,
    file: Option<&Arc<File>>,
) -> Option<Reader> {
    let is_plain = !options.write && !options.share && options.in_memory.is_none();
    if !is_plain || options.io.is_some() {
        return None;
    }
    let Servers { addresses, spec } = servers().ok()??;
    if spec.read == Reading::Off {
        return None;
    }
    let file = Arc::clone(file?);
    let identity = FileIdentity::of(&file)?;
    let path = absolute(path).ok()?;
    // All clients come to the same one.
    let place = usize::try_from(number_of(&path) % (addresses.len() as u64).max(1)).ok()?;
    let address = addresses.get(place)?;
    let connection = match reading_connection(address) {
        Ok(connection) => Arc::downgrade(&connection),
        Err(_) => {
            say_gone();
            return None;
        }
    };
    let is_same_node = matches!(address, Address::Socket(_));
    let is_all = spec.read == Reading::All || !is_same_node;
    Some(Reader { server: Server { path, connection, is_same_node }, file, identity, is_all })
}

/// A number that follows from a path (FNV-1a).
fn number_of(path: &Path) -> u64 {
    let bytes = std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str());
    let mix = |so_far: u64, byte: &u8| (so_far ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

impl Reader {
    /// Has the server read an open file.
    pub(crate) fn of(self, own: Box<dyn Dispatch>) -> Box<dyn Dispatch> {
        let Reader { server, file, identity, is_all } = self;
        let link = Mutex::ranked(Rank::Watch, Link::NotYet(Some(identity)));
        let read = ReadFile::new(own, Arc::new(FileLine { server, file, link }));
        Box::new(if is_all { read.asking_for_all() } else { read })
    }

    /// The same for one that this process opened for itself.
    pub(crate) fn of_open(self, made: OpenFile) -> OpenFile {
        let (own, mark) = made.into_parts();
        OpenFile::new(self.of(own), mark, None)
    }
}

/// How gets to one file come to its server.
#[derive(Debug)]
struct FileLine {
    server: Server,
    file: Arc<File>,
    link: Mutex<Link>,
}

#[derive(Debug)]
enum Link {
    /// The server is asked at the first get: many programs look at definitions only.
    NotYet(Option<FileIdentity>),
    /// The server has it under this number.
    There(u64),
    /// The process reads it itself.
    Alone,
}

impl FileLine {
    /// The number of the file, and the connection.
    fn link(&self) -> Option<(Arc<Connection>, u64)> {
        let mut link = self.link.lock();
        let connection =
            self.server.connection.upgrade().filter(|connection| connection.is_own())?;
        match &*link {
            Link::There(file) => Some((connection, *file)),
            Link::Alone => None,
            Link::NotYet(identity) => {
                let identity = *identity;
                *link = Link::Alone;
                let opening =
                    ReadOpening::new(&self.server.path, identity?, self.server.is_same_node);
                let file = connection.new_file();
                match connection.ask_for_values(file, What::Read(opening.into()), &mut []) {
                    Ok(Asked { outcome: Outcome::Done { .. }, .. }) => {
                        *link = Link::There(file);
                        Some((connection, file))
                    }
                    Ok(_) => None,
                    Err(_) => {
                        say_gone();
                        None
                    }
                }
            }
        }
    }

    /// Puts another state in the place of the link, which ends.
    fn end(&self, next: Link) {
        let before = std::mem::replace(&mut *self.link.lock(), next);
        if let (Link::There(file), Some(connection)) = (before, self.server.connection.upgrade()) {
            // A server that is gone has closed it.
            let _ = connection.tell_close(file);
        }
    }
}

impl ReadLine for FileLine {
    fn get(&self, call: &Call, room: &mut [u8]) -> Option<Got> {
        let (connection, file) = self.link()?;
        let what = What::Call(call.clone().into());
        let Ok(Asked { outcome, is_in_room }) = connection.ask_for_values(file, what, room) else {
            *self.link.lock() = Link::Alone;
            say_gone();
            return None;
        };
        // An error is found again by who reads it itself, with what else is known there.
        let reply = outcome.reply().ok()?;
        let apart = (!is_in_room).then_some(reply.values);
        Some(Got { converted: reply.converted, apart })
    }

    fn renew(&self) {
        self.end(Link::NotYet(FileIdentity::of(&self.file)));
    }
}

impl Drop for FileLine {
    fn drop(&mut self) {
        self.end(Link::Alone);
    }
}

/// Says once that a server is gone.
fn say_gone() {
    static IS_SAID: AtomicBool = AtomicBool::new(false);
    if !IS_SAID.swap(true, Ordering::Relaxed) {
        let why =
            "an I/O server that read for this program is gone: the program reads by itself now";
        // Nobody may be there to read it.
        let _ = writeln!(std::io::stderr().lock(), "zonda: {why}");
    }
}
