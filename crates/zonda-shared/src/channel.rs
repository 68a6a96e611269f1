//! Messages between two processes, and what tells the one that the other is gone.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind,
    connect, listen, recvmsg, sendmsg, socket_with, socketpair,
    sockopt::{Timeout, set_socket_timeout, socket_peercred, socket_type},
};
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, getrlimit, pidfd_open, setrlimit};

/// How many may come to a listener that has no time for them.
const BACKLOG: i32 = 4096;
/// Bytes of the longest message.
pub const MOST_MESSAGE_BYTES: usize = 64 << 10;
/// How long a message waits for room, and an answer for somebody who limits the wait.
const MESSAGE_WAIT: Duration = Duration::from_secs(5);

/// One end. A message comes whole or not at all, and may bring an open file.
#[derive(Debug)]
pub struct Channel(OwnedFd);

/// A place in the file system to which other processes of the user come for a channel.
#[derive(Debug)]
pub struct Listener(OwnedFd);

/// A process that can be waited for, whoever started it.
#[derive(Debug)]
pub struct Process(OwnedFd);

/// What [`Channel::wait`] waits for.
#[derive(Debug)]
pub enum Happened {
    /// A message.
    Message(Vec<u8>, Option<OwnedFd>),
    /// Nobody has the other end any more, or the process has ended and all messages were read.
    Ended,
}

/// Lets this process have as many open files as it may, and says how many that is.
#[must_use]
pub fn raise_open_files() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let most = if raised.is_ok() { maximum } else { current };
    most.unwrap_or(u64::MAX)
}

/// Memory that holds a copy of some bytes, for a message to bring.
///
/// # Errors
/// What the system says if it has none.
pub fn memory_of(bytes: &[u8]) -> io::Result<OwnedFd> {
    let fd = memfd_create("zonda-values", MemfdFlags::CLOEXEC)?;
    let fd = behind_standard(fd)?;
    let file = std::fs::File::from(fd);
    file.write_all_at(bytes, 0)?;
    Ok(file.into())
}

/// Moves a descriptor behind standard input, output and error: what a program writes to one of these that
/// it has closed is no message, and not for memory that others see.
pub(crate) fn behind_standard(fd: OwnedFd) -> io::Result<OwnedFd> {
    const FIRST: i32 = 3;
    if fd.as_raw_fd() < FIRST { Ok(fcntl_dupfd_cloexec(&fd, FIRST)?) } else { Ok(fd) }
}

impl Process {
    /// The process of that number; `None` where there is none, or where the system cannot say.
    #[must_use]
    pub fn find(pid: u32) -> Option<Process> {
        let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
        pidfd_open(pid, PidfdFlags::empty()).ok().map(Process)
    }

    /// Whether it has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let seen = ready(&[(&self.0.as_fd(), PollFlags::IN)], Some(Duration::ZERO));
        seen.is_ok_and(|seen| seen.first() == Some(&true))
    }
}

impl Listener {
    /// Makes the place.
    ///
    /// # Errors
    /// What the system says: where something is there already, and for paths of more than about 100 bytes.
    pub fn at(path: &Path) -> io::Result<Listener> {
        let fd = behind_standard(new_socket()?)?;
        bind(&fd, &SocketAddrUnix::new(path)?)?;
        listen(&fd, BACKLOG)?;
        Ok(Listener(fd))
    }

    /// The next one that comes, within a time. Others than this user are sent away.
    ///
    /// # Errors
    /// What the system says.
    pub fn accept(&self, within: Duration) -> io::Result<Option<Channel>> {
        if !ready(&[(&self.0.as_fd(), PollFlags::IN)], Some(within))?[0] {
            return Ok(None);
        }
        let fd = match accept_with(&self.0, SocketFlags::CLOEXEC) {
            // Who came has gone again.
            Err(Errno::INTR | Errno::AGAIN | Errno::CONNABORTED) => return Ok(None),
            fd => behind_standard(fd?)?,
        };
        let is_own = socket_peercred(&fd).is_ok_and(|peer| peer.uid == rustix::process::geteuid());
        Ok(is_own.then_some(Channel(fd)))
    }
}

fn new_socket() -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

impl Channel {
    /// A channel to the process that listens at a place.
    ///
    /// # Errors
    /// `ConnectionRefused` or `NotFound` where none does; what the system says.
    pub fn to(path: &Path) -> io::Result<Channel> {
        let fd = behind_standard(new_socket()?)?;
        connect(&fd, &SocketAddrUnix::new(path)?)?;
        Ok(Channel(fd))
    }

    /// The same, for who does not wait longer than a time where nobody takes in those who come.
    ///
    /// # Errors
    /// As [`Channel::to`]; `WouldBlock` when the time is over.
    pub fn to_within(path: &Path, within: Duration) -> io::Result<Channel> {
        let fd = behind_standard(new_socket()?)?;
        // Of no time at all it would be none.
        let within = within.max(Duration::from_millis(1));
        set_socket_timeout(&fd, Timeout::Send, Some(within))?;
        connect(&fd, &SocketAddrUnix::new(path)?)?;
        Ok(Channel(fd))
    }

    /// The next message, within a time; with none, one that is there.
    ///
    /// # Errors
    /// What the system says.
    pub fn take_within(&self, within: Duration) -> io::Result<Option<Happened>> {
        if ready(&[(&self.0.as_fd(), PollFlags::IN)], Some(within))?[0] {
            self.receive().map(Some)
        } else {
            Ok(None)
        }
    }

    /// Both ends. Neither is kept by a program that this process starts.
    ///
    /// # Errors
    /// What the system says.
    pub fn pair() -> io::Result<(Channel, Channel)> {
        let flags = SocketFlags::CLOEXEC;
        let (one, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        Ok((Channel(behind_standard(one)?), Channel(behind_standard(other)?)))
    }

    /// An end that this process was started with.
    ///
    /// # Errors
    /// `InvalidInput` for anything else.
    pub fn of(fd: BorrowedFd<'_>) -> io::Result<Channel> {
        if socket_type(fd) != Ok(SocketType::SEQPACKET) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(Channel(fd.try_clone_to_owned()?))
    }

    /// The end itself, for a process that is started with it.
    #[must_use]
    pub fn into_fd(self) -> OwnedFd {
        self.0
    }

    /// Sends a message. Nobody who stopped reading is waited for longer than some seconds.
    ///
    /// # Errors
    /// `BrokenPipe` where nobody has the other end; `WouldBlock` where nobody reads; what the system
    /// says.
    pub fn send(&self, message: &[u8], fd: Option<BorrowedFd<'_>>) -> io::Result<()> {
        self.send_within(message, fd, MESSAGE_WAIT)
    }

    /// The same, if there is room for it now.
    ///
    /// # Errors
    /// As [`Channel::send`].
    pub fn send_now(&self, message: &[u8]) -> io::Result<()> {
        self.send_within(message, None, Duration::ZERO)
    }

    fn send_within(
        &self,
        message: &[u8],
        fd: Option<BorrowedFd<'_>>,
        within: Duration,
    ) -> io::Result<()> {
        loop {
            let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut extra = SendAncillaryBuffer::new(&mut room);
            let fds: Vec<BorrowedFd<'_>> = fd.into_iter().collect();
            if !fds.is_empty() && !extra.push(SendAncillaryMessage::ScmRights(&fds)) {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match sendmsg(&self.0, &[IoSlice::new(message)], &mut extra, flags) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    if !ready(&[(&self.0.as_fd(), PollFlags::OUT)], Some(within))?[0] {
                        return Err(io::ErrorKind::WouldBlock.into());
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The next message, or that there will be none. Sleeps until then, or for some seconds where a
    /// limit is asked for.
    ///
    /// # Errors
    /// `TimedOut`; what the system says.
    pub fn wait(&self, process: Option<&Process>, is_patient: bool) -> io::Result<Happened> {
        let within = if is_patient { None } else { Some(MESSAGE_WAIT) };
        let channel = self.0.as_fd();
        loop {
            let mut files = vec![(&channel, PollFlags::IN)];
            let ended = process.map(|process| process.0.as_fd());
            files.extend(ended.as_ref().map(|process| (process, PollFlags::IN)));
            let ready = ready(&files, within)?;
            if ready.first() == Some(&true) {
                return self.receive();
            }
            if ready.get(1) == Some(&true) {
                return Ok(Happened::Ended);
            }
            if !is_patient {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }

    /// Whether nobody has the other end any more.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        let mut file = [PollFd::new(&self.0, PollFlags::RDHUP)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let gone = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        matches!(poll(&mut file, Some(&now)), Ok(1)) && file[0].revents().intersects(gone)
    }

    fn receive(&self) -> io::Result<Happened> {
        let mut bytes = vec![0; MOST_MESSAGE_BYTES];
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut extra = RecvAncillaryBuffer::new(&mut room);
        let got = loop {
            let into = &mut [IoSliceMut::new(&mut bytes)];
            match recvmsg(&self.0, into, &mut extra, RecvFlags::CMSG_CLOEXEC) {
                Err(Errno::INTR) => {}
                Err(Errno::CONNRESET) => return Ok(Happened::Ended),
                got => break got?.bytes,
            }
        };
        if got == 0 {
            return Ok(Happened::Ended);
        }
        bytes.truncate(got);
        let fd = extra.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
            _ => None,
        });
        Ok(Happened::Message(bytes, fd))
    }
}

/// Which of some files have something to be done.
fn ready(
    files: &[(&BorrowedFd<'_>, PollFlags)],
    within: Option<Duration>,
) -> io::Result<Vec<bool>> {
    let mut polled: Vec<PollFd<'_>> =
        files.iter().map(|(file, flags)| PollFd::new(*file, *flags)).collect();
    let within = within.map(|within| Timespec {
        tv_sec: i64::try_from(within.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: within.subsec_nanos().into(),
    });
    loop {
        match poll(&mut polled, within.as_ref()) {
            Err(Errno::INTR) => {}
            done => {
                done?;
                return Ok(polled.iter().map(|file| !file.revents().is_empty()).collect());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn who_takes_nobody_in_is_not_waited_for() {
        let place = std::env::temp_dir().join(format!("zonda-place-{}", std::process::id()));
        let _ = std::fs::remove_file(&place);
        let fd = new_socket().unwrap();
        bind(&fd, &SocketAddrUnix::new(&place).unwrap()).unwrap();
        listen(&fd, 0).unwrap();
        let come = |_| Channel::to_within(&place, Duration::from_millis(20));
        let came: Vec<_> = (0..9).map(come).collect();
        assert!(came.first().is_some_and(Result::is_ok));
        std::fs::remove_file(&place).unwrap();
        let why = came.last().and_then(|last| last.as_ref().err()).map(io::Error::kind);
        assert_eq!(why, Some(io::ErrorKind::WouldBlock));
    }

    #[test]
    fn messages_bring_files_and_the_end_is_told() {
        let (one, other) = Channel::pair().unwrap();
        let (file, mut pipe) = std::io::pipe().unwrap();
        one.send(b"first", Some(file.as_fd())).unwrap();
        one.send(&[7; 1000], None).unwrap();
        drop(file);
        let Happened::Message(text, Some(file)) = other.wait(None, true).unwrap() else {
            panic!("a message with a file")
        };
        assert_eq!(text, b"first");
        pipe.write_all(b"!").unwrap();
        drop(pipe);
        let read = std::io::read_to_string(std::fs::File::from(file)).unwrap();
        assert_eq!(read, "!");
        assert!(!other.is_cut());
        drop(one);
        // What was sent before the end is still there.
        let Happened::Message(text, None) = other.wait(None, true).unwrap() else {
            panic!("a message without a file")
        };
        assert_eq!(text, [7; 1000]);
        assert!(matches!(other.wait(None, true).unwrap(), Happened::Ended));
        assert!(other.is_cut() && other.send(b"to nobody", None).is_err());
    }

    #[test]
    fn who_does_not_read_is_not_waited_for() {
        let (one, other) = Channel::pair().unwrap();
        let full = loop {
            if let Err(error) = one.send_now(&[7; 4096]) {
                break error;
            }
        };
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        assert!(matches!(other.wait(None, true).unwrap(), Happened::Message(..)));
        one.send_now(b"there is room").unwrap();
    }

    #[test]
    fn processes_are_seen_to_end() {
        let (mine, _kept) = Channel::pair().unwrap();
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let process = Process::find(child.id()).unwrap();
        child.kill().unwrap();
        assert!(matches!(mine.wait(Some(&process), true).unwrap(), Happened::Ended));
        child.wait().unwrap();
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(Channel::of(file.as_fd()).is_err());
    }
}
