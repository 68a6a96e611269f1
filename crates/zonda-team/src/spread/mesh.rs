//! Connections between the members of a group, one for each two of them.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::io::{self, BufReader};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use zonda_runtime::lock::{Mutex, Rank};
use zonda_runtime::worker::{self, Purpose};

use crate::threads::Shared;
use crate::tuning::{MOST_OVER, PEER_BUFFER_BYTES};

use super::TeamName;
use super::frame::{Frame, FrameKind, Head};

/// Who is told what members say besides letters of ranks. It is called by the threads that read, so it must not wait for others.
pub trait Watcher: Send + Sync {
    /// A member has said something about a team.
    fn noticed(&self, member: usize, team: TeamName, bytes: &[u8]);
    /// A member has ended. Ranks that wait for its ranks were told.
    fn lost(&self, member: usize);
}

/// The other members of a group, as one of them has them.
pub struct Mesh {
    me: usize,
    /// `None` at its own place.
    peers: Vec<Option<Peer>>,
    teams: Mutex<Teams>,
}

struct Peer {
    stream: UnixStream,
    /// Who writes a frame has it.
    writing: Mutex<()>,
    is_read: AtomicBool,
    is_gone: AtomicBool,
}

#[derive(Default)]
struct Teams {
    joined: HashMap<TeamName, Arc<Shared>>,
    /// What came for teams that are not here yet.
    early: HashMap<TeamName, Vec<(usize, Frame)>>,
    over: HashSet<TeamName>,
    over_in_order: VecDeque<TeamName>,
}

impl fmt::Debug for Mesh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mesh(member {} of {})", self.me, self.peers.len())
    }
}

impl Mesh {
    /// Member `me` of as many as there are streams, which lead to the others; there is none at its own place.
    ///
    /// # Errors
    /// `InvalidInput` where streams are others than that; what the system says.
    pub fn new(me: usize, streams: Vec<Option<UnixStream>>) -> io::Result<Arc<Mesh>> {
        let is_whole =
            |(member, stream): (usize, &Option<UnixStream>)| stream.is_none() == (member == me);
        if me >= streams.len() || !streams.iter().enumerate().all(is_whole) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let peer = |stream| Peer {
            stream,
            writing: Mutex::ranked(Rank::Mailbox, ()),
            is_read: AtomicBool::new(false),
            is_gone: AtomicBool::new(false),
        };
        let peers = streams.into_iter().map(|stream| stream.map(peer)).collect();
        let teams = Mutex::ranked(Rank::Helper, Teams::default());
        Ok(Arc::new(Mesh { me, peers, teams }))
    }

    /// Starts to take what the others say: a thread for each of them. Once.
    ///
    /// # Errors
    /// What the system says if it gives no thread.
    pub fn listen(self: &Arc<Mesh>, watcher: &Arc<dyn Watcher>) -> io::Result<()> {
        for (member, peer) in self.peers() {
            if peer.is_read.swap(true, Ordering::SeqCst) {
                continue;
            }
            let (mesh, watcher) = (Arc::clone(self), Arc::clone(watcher));
            let read = move || mesh.read_all(member, &*watcher);
            worker::spawn(format!("zonda-member-{member}"), Purpose::WriteBehind, read)?;
        }
        Ok(())
    }

    /// Which member this is.
    #[must_use]
    pub fn me(&self) -> usize {
        self.me
    }

    /// How many there are.
    #[must_use]
    pub fn size(&self) -> usize {
        self.peers.len()
    }

    /// Tells members something about a team. Those that have ended hear nothing.
    pub fn notify(&self, members: impl Iterator<Item = usize>, team: TeamName, bytes: &[u8]) {
        let head = Head { kind: FrameKind::Notice, team, step: 0, tag: 0, from: 0, to: 0 };
        for member in members {
            // Who reads from it finds that it has ended.
            let _ = self.send(member, &head, bytes);
        }
    }

    /// Whether a team of that name was here, and all of its ranks that ran here have ended. Names of teams that were over long ago are forgotten.
    #[must_use]
    pub fn is_over(&self, team: TeamName) -> bool {
        self.teams.lock().over.contains(&team)
    }

    /// Ends all connections.
    pub fn shut(&self) {
        for (_, peer) in self.peers() {
            // One that has ended has none.
            let _ = peer.stream.shutdown(Shutdown::Both);
        }
    }

    fn peers(&self) -> impl Iterator<Item = (usize, &Peer)> {
        (0..).zip(&self.peers).filter_map(|(member, peer)| Some((member, peer.as_ref()?)))
    }

    /// Hands a frame over to a member. Waits while that one does not read, which it always does.
    pub(crate) fn send(&self, member: usize, head: &Head, bytes: &[u8]) -> io::Result<()> {
        let peer = self.peers.get(member).and_then(Option::as_ref);
        let peer = peer.ok_or(io::ErrorKind::NotFound)?;
        if peer.is_gone.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let _one_at_a_time = peer.writing.lock();
        head.write(&mut &peer.stream, bytes)
    }

    /// Has a team take what came for it. False where there is, or was, another one of its name.
    pub(crate) fn join(&self, name: TeamName, team: &Arc<Shared>) -> bool {
        let mut teams = self.teams.lock();
        if teams.over.contains(&name) || teams.joined.contains_key(&name) {
            return false;
        }
        for (member, frame) in teams.early.remove(&name).unwrap_or_default() {
            // Others are not asked again what they meant.
            let _ = team.take(member, frame);
        }
        teams.joined.insert(name, Arc::clone(team));
        drop(teams);
        // Who is lost later finds the team.
        let lost = self.peers().filter(|(_, peer)| peer.is_gone.load(Ordering::SeqCst));
        lost.for_each(|(member, _)| team.lose_member(member));
        true
    }

    /// All ranks of a team that ran here have ended: what comes for it is dropped.
    pub(crate) fn leave(&self, name: TeamName) {
        let mut teams = self.teams.lock();
        teams.joined.remove(&name);
        teams.early.remove(&name);
        if teams.over.insert(name) {
            teams.over_in_order.push_back(name);
        }
        if teams.over_in_order.len() > MOST_OVER {
            let oldest = teams.over_in_order.pop_front();
            oldest.map(|oldest| teams.over.remove(&oldest));
        }
    }

    fn read_all(&self, member: usize, watcher: &dyn Watcher) {
        let Some(Some(peer)) = self.peers.get(member) else { return };
        let mut reader = BufReader::with_capacity(PEER_BUFFER_BYTES, &peer.stream);
        // A frame that is none is the end, as the end itself is.
        while let Ok(Some(frame)) = Frame::read(&mut reader) {
            if frame.head.kind == FrameKind::Notice {
                watcher.noticed(member, frame.head.team, &frame.bytes);
            } else if self.deliver(member, frame).is_none() {
                break;
            }
        }
        // Who sends to it hears of it at once.
        let _ = peer.stream.shutdown(Shutdown::Both);
        peer.is_gone.store(true, Ordering::SeqCst);
        let joined: Vec<Arc<Shared>> = self.teams.lock().joined.values().cloned().collect();
        joined.iter().for_each(|team| team.lose_member(member));
        watcher.lost(member);
    }

    /// Gives a frame to its team; `None` where it is none that the member could have sent.
    fn deliver(&self, member: usize, frame: Frame) -> Option<()> {
        let name = frame.head.team;
        let mut teams = self.teams.lock();
        if let Some(team) = teams.joined.get(&name) {
            let team = Arc::clone(team);
            drop(teams);
            return team.take(member, frame);
        }
        if !teams.over.contains(&name) {
            teams.early.entry(name).or_default().push((member, frame));
        }
        Some(())
    }
}
