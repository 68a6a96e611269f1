//! Which servers run: by the list of processes, and by the sockets in a folder.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundServer {
    pub(super) name: String,
    pub(super) socket: PathBuf,
    /// `None` for a socket that no process of this user is at.
    pub(super) pid: Option<u32>,
}

/// The servers in a folder, or all of this user; those of a job together, in the order of their names.
pub(super) fn servers(folder: Option<&Path>) -> Vec<FoundServer> {
    let mut found = BTreeMap::new();
    if let Some(folder) = folder {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            // Servers of a group meet at others.
            let is_between = entry.path().extension() == Some(OsStr::new("members"));
            if !is_between && entry.file_type().is_ok_and(|kind| kind.is_socket()) {
                found.insert(entry.path(), None);
            }
        }
    }
    for (pid, socket) in processes() {
        match folder {
            // As the folder is called here.
            Some(folder) => {
                let is_there = socket.parent().is_some_and(|parent| is_same(parent, folder));
                if let Some(name) = socket.file_name().filter(|_| is_there) {
                    found.insert(folder.join(name), Some(pid));
                }
            }
            None => drop(found.insert(socket, Some(pid))),
        }
    }
    let mut servers: Vec<FoundServer> = found
        .into_iter()
        .map(|(socket, pid)| {
            let name = zonda::servers::name_of(&socket);
            FoundServer { name, socket, pid }
        })
        .collect();
    // server10 behind server9.
    servers.sort_by_cached_key(|server| {
        let parent = server.socket.parent().map(Path::to_owned);
        (parent, server.name.len(), server.name.clone())
    });
    servers
}

fn is_same(one: &Path, other: &Path) -> bool {
    one == other
        || fs::canonicalize(one)
            .ok()
            .zip(fs::canonicalize(other).ok())
            .is_some_and(|(one, other)| one == other)
}

/// Processes of this user that are servers, and their sockets.
fn processes() -> Vec<(u32, PathBuf)> {
    let own = rustix::process::geteuid().as_raw();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // A process that has ended meanwhile is no server.
        if !entry.metadata().is_ok_and(|about| about.uid() == own) {
            continue;
        }
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        found.extend(socket_of(&words).map(|socket| (pid, socket)));
    }
    found
}

/// The socket of a server, by its words: `zonda iod --group SOCKET`.
fn socket_of(words: &[u8]) -> Option<PathBuf> {
    let words: Vec<&[u8]> = words.split(|byte| *byte == 0).collect();
    let [program, b"iod", b"--group", socket, ..] = words[..] else { return None };
    let is_ours = program.rsplit(|byte| *byte == b'/').next() == Some(b"zonda");
    (is_ours && !socket.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(socket)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_by_their_words() {
        let socket = |words: &[u8]| socket_of(words);
        assert_eq!(
            socket(b"/o/bin/zonda\0iod\0--group\0/tmp/z x/1.1\0"),
            Some("/tmp/z x/1.1".into())
        );
        for other in [
            &b""[..],
            b"/o/bin/zonda\0iod\0--program\x0077\0",
            b"zonda\0iod\0--group\0",
            b"grep\0iod\0--group\0/tmp/0\0",
            b"zonda\0info\0iod\0--group\0x\0",
        ] {
            assert_eq!(socket(other), None, "{}", String::from_utf8_lossy(other));
        }
    }

    #[test]
    fn a_socket_without_a_process_is_listed() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("1"), "no socket").unwrap();
        let listens =
            |name: &str| std::os::unix::net::UnixListener::bind(folder.path().join(name)).unwrap();
        let _there = ["10.1", "1.1", "2.1", "2.2", "2.2.members"].map(listens);
        let found = servers(Some(folder.path()));
        let names: Vec<_> = found.iter().map(|server| &server.name[..]).collect();
        assert_eq!(names, ["server1", "server2", "server10", "server2.2"]);
        assert!(found.iter().all(|server| server.pid.is_none()));
        assert!(servers(Some(&folder.path().join("nowhere"))).is_empty());
    }
}
