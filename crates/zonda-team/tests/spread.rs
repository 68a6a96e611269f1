//! Teams whose ranks are in several members of a group, which are in one process here, with sockets between them.

mod common;

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use common::{Data, REDUCTIONS, STEP, ends};
use zonda_team::spread::{self, Mesh, TeamName, Watcher};
use zonda_team::threads::{End, Fault, Finished, Moment, Options, Threads, Trouble};
use zonda_team::{Message, Reduction, Team, TeamError};

type Ended = Result<(), TeamError>;
/// What a member heard: a member and what that one said, or that it has ended.
type Heard = (usize, Option<(TeamName, Vec<u8>)>);

/// Sends on what a member hears.
struct Hears(Mutex<mpsc::Sender<Heard>>);

impl Watcher for Hears {
    fn noticed(&self, member: usize, team: TeamName, bytes: &[u8]) {
        let _ = self.0.lock().unwrap().send((member, Some((team, bytes.to_vec()))));
    }

    fn lost(&self, member: usize) {
        let _ = self.0.lock().unwrap().send((member, None));
    }
}

/// The sockets of each of some members.
fn sockets(n_members: usize) -> Vec<Vec<Option<UnixStream>>> {
    let mut all: Vec<Vec<Option<UnixStream>>> =
        (0..n_members).map(|_| (0..n_members).map(|_| None).collect()).collect();
    for low in 0..n_members {
        for high in low + 1..n_members {
            let (one, other) = UnixStream::pair().unwrap();
            all[low][high] = Some(one);
            all[high][low] = Some(other);
        }
    }
    all
}

fn listening(me: usize, streams: Vec<Option<UnixStream>>) -> (Arc<Mesh>, mpsc::Receiver<Heard>) {
    let mesh = Mesh::new(me, streams).unwrap();
    let (tell, heard) = mpsc::channel();
    let watcher: Arc<dyn Watcher> = Arc::new(Hears(Mutex::new(tell)));
    mesh.listen(&watcher).unwrap();
    (mesh, heard)
}

fn meshes(n_members: usize) -> Vec<(Arc<Mesh>, mpsc::Receiver<Heard>)> {
    let members = sockets(n_members).into_iter().enumerate();
    members.map(|(me, streams)| listening(me, streams)).collect()
}

/// Runs a team on all members, and ends their connections: what became of each rank, in their order.
fn run<T: Send>(
    n_members: usize,
    n: usize,
    options: &Options,
    body: impl Fn(&Threads) -> T + Sync,
) -> Vec<Finished<T>> {
    let meshes = meshes(n_members);
    let body = &body;
    let finished = std::thread::scope(|scope| {
        let run = |mesh| spread::run(mesh, [1, 2], n, options, body).unwrap();
        let threads: Vec<_> =
            meshes.iter().map(|(mesh, _)| scope.spawn(move || run(mesh))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    meshes.iter().for_each(|(mesh, _)| mesh.shut());
    finished
}

/// All kinds of steps, against what they are by definition.
fn walk(team: &Threads, data: &Data) -> Ended {
    let rank = team.rank();
    let mut bytes = data.bytes[rank].clone();
    team.broadcast(STEP, data.root, &mut bytes)?;
    assert_eq!(bytes, data.bytes[data.root]);
    for how in REDUCTIONS {
        let mut numbers = data.numbers[rank].clone();
        team.reduce(STEP, how, &mut numbers)?;
        assert_eq!(numbers, data.reduced(how));
    }
    let mut numbers = data.numbers[rank].clone();
    team.scan(STEP, &mut numbers)?;
    assert_eq!(numbers, data.scanned()[rank]);
    let gathered = team.gather(STEP, data.root, &data.bytes[rank])?;
    assert!(gathered == if rank == data.root { &data.bytes[..] } else { &[] });
    assert_eq!(team.exchange(STEP, data.messages[rank].clone())?, data.exchanged()[rank]);
    team.meet(STEP)
}

/// Steps of [`walk`].
const N_STEPS: u64 = 9;

/// Each rank of which one is so.
#[track_caller]
fn all_are(finished: &[Finished<Ended>], is_so: impl Fn(usize, &End<Ended>) -> bool) {
    for (rank, one) in finished.iter().enumerate() {
        assert!(is_so(rank, &one.end), "rank {rank}: {:?}", one.end);
    }
}

fn failed_with(end: &End<Ended>, text: &str) -> bool {
    matches!(end, End::Returned(Err(TeamError::Failed { what, .. })) if what.contains(text))
}

#[test]
fn steps_do_what_they_do_in_one_process() {
    ends(|| {
        for n_members in 1..=4 {
            // With fewer ranks than members, too.
            for n in [1, 2, 3, 4, 5, 7, 8, 13, 40] {
                for seed in 0..3 {
                    let data = Data::of(n, seed * 100 + n as u64);
                    let finished = run(n_members, n, &Options::default(), |team| walk(team, &data));
                    assert_eq!(finished.len(), n);
                    all_are(&finished, |_, end| *end == End::Returned(Ok(())));
                }
            }
        }
    });
}

#[test]
fn long_messages_in_all_directions_at_once_arrive_whole() {
    ends(|| {
        let long = |from: usize, to: usize| -> Vec<u8> {
            let mut rng = fastrand::Rng::with_seed((from * 100 + to) as u64);
            let part: Vec<u8> = (0..509).map(|_| rng.u8(..)).collect();
            part.into_iter().cycle().take((3 << 20) + from).collect()
        };
        let finished = run(3, 7, &Options::default(), |team| {
            let (rank, n) = (team.rank(), team.size());
            let messages = (0..n).map(|to| Message { rank: to, bytes: long(rank, to) });
            let got = team.exchange(STEP, messages.collect())?;
            assert_eq!(got.len(), n);
            assert!(got.iter().all(|message| message.bytes == long(message.rank, rank)));
            let mut numbers = vec![rank as u64; 300_000];
            team.reduce(STEP, Reduction::Max, &mut numbers)?;
            assert!(numbers.iter().all(|number| *number == n as u64 - 1));
            Ok(())
        });
        all_are(&finished, |_, end| *end == End::Returned(Ok(())));
    });
}

#[test]
fn teams_share_connections_and_members_come_late() {
    ends(|| {
        let meshes = meshes(3);
        std::thread::scope(|scope| {
            for (mesh, _) in &meshes {
                for team in 0..6_u64 {
                    scope.spawn(move || {
                        let late = (mesh.me() as u64 * 7 + team * 5) % 11;
                        std::thread::sleep(Duration::from_millis(late));
                        let n = 4 + team as usize;
                        let data = Data::of(n, team);
                        let finished =
                            spread::run(mesh, [team, 0], n, &Options::default(), |team| {
                                (0..5).try_for_each(|_| walk(team, &data))
                            });
                        all_are(&finished.unwrap(), |_, end| *end == End::Returned(Ok(())));
                    });
                }
            }
        });
        for (mesh, _) in &meshes {
            assert!(mesh.is_over([3, 0]) && !mesh.is_over([3, 1]));
            let again = spread::run(mesh, [3, 0], 4, &Options::default(), |_| ());
            assert!(again.is_none(), "a name is used once");
            mesh.shut();
        }
    });
}

#[test]
fn a_member_that_ends_is_an_error_of_all_who_wait_for_its_ranks() {
    ends(|| {
        for (n_members, n) in [(2, 2), (2, 5), (3, 8), (4, 6)] {
            for dies in 0..n_members {
                for step in 0..N_STEPS {
                    let meshes = meshes(n_members);
                    let data = Data::of(n, step);
                    let first_lost = spread::ranks_of(dies, n, n_members).start;
                    // The connections end before the others can hear that this rank leaves.
                    let fault = Fault {
                        rank: first_lost,
                        before: Moment::Step(step),
                        what: Trouble::Error,
                    };
                    let options = Options { faults: vec![fault], ..Options::default() };
                    let (options, data) = (&options, &data);
                    let finished: Vec<_> = std::thread::scope(|scope| {
                        let threads: Vec<_> = meshes
                            .iter()
                            .map(|(mesh, _)| {
                                let body = move |team: &Threads| {
                                    let cut = Cut((team.rank() == first_lost).then_some(mesh));
                                    let done = walk(team, data).and_then(|()| team.meet(STEP));
                                    drop(cut);
                                    done
                                };
                                let run = move || spread::run(mesh, [9, 9], n, options, body);
                                scope.spawn(run)
                            })
                            .collect();
                        let joined = threads.into_iter().map(|thread| thread.join().unwrap());
                        joined.flat_map(Option::unwrap).collect()
                    });
                    all_are(&finished, |rank, end| {
                        // Who is told first leaves after an error itself.
                        failed_with(end, if rank == first_lost { "a fault" } else { "rank " })
                    });
                    let told =
                        |one: &Finished<Ended>| failed_with(&one.end, "the process that ran rank");
                    assert!(finished.iter().any(told), "{finished:?}");
                    meshes.iter().for_each(|(mesh, _)| mesh.shut());
                }
            }
        }
    });
}

/// Ends the connections of a member, as its death would.
struct Cut<'a>(Option<&'a Arc<Mesh>>);

impl Drop for Cut<'_> {
    fn drop(&mut self) {
        if let Some(mesh) = self.0 {
            mesh.shut();
        }
    }
}

#[test]
fn errors_panics_and_early_ends_of_a_rank_reach_other_members() {
    ends(|| {
        for step in 0..N_STEPS {
            let data = Data::of(6, step);
            let fault = Fault { rank: 4, before: Moment::Step(step), what: Trouble::Error };
            let options = Options { faults: vec![fault], ..Options::default() };
            let finished = run(3, 6, &options, |team| walk(team, &data));
            all_are(&finished, |rank, end| {
                failed_with(end, if rank == 4 { "a fault" } else { "left after an error" })
            });
        }
        let data = Data::of(5, 1);
        let body = |team: &Threads| {
            assert_ne!(team.rank(), 1, "on purpose");
            walk(team, &data)
        };
        let finished = run(2, 5, &Options::default(), body);
        all_are(&finished, |rank, end| match rank {
            1 => matches!(end, End::Panicked(text) if text.contains("on purpose")),
            _ => failed_with(end, "rank "),
        });
        assert!(finished.iter().any(|one| failed_with(&one.end, "rank 1 panicked")));
        let body = |team: &Threads| if team.rank() == 3 { Ok(()) } else { walk(team, &data) };
        let finished = run(2, 5, &Options::default(), body);
        let told = finished.iter().any(|one| failed_with(&one.end, "rank 3 has ended without"));
        assert!(told, "{finished:?}");
    });
}

#[test]
fn a_team_with_a_member_that_ended_before_fails_at_once() {
    ends(|| {
        let mut meshes = meshes(2);
        let (other, _) = meshes.pop().unwrap();
        other.shut();
        let (mesh, heard) = meshes.pop().unwrap();
        assert_eq!(heard.recv().unwrap(), (1, None));
        let body = |team: &Threads| team.meet(STEP);
        let finished = spread::run(&mesh, [1, 1], 4, &Options::default(), body).unwrap();
        assert_eq!(finished.len(), 2);
        all_are(&finished, |_, end| failed_with(end, "rank "));
    });
}

#[test]
fn notices_come_in_order_and_the_end_last() {
    ends(|| {
        let meshes = meshes(3);
        let sends = &meshes[1].0;
        assert_eq!(spread::others_of(sends, 2).collect::<Vec<_>>(), [0]);
        assert_eq!(spread::others_of(sends, 3).collect::<Vec<_>>(), [0, 2]);
        for number in 0..1000_u64 {
            sends.notify([0, 2].into_iter(), [number, 7], &number.to_le_bytes());
        }
        sends.shut();
        for (_, heard) in [&meshes[0], &meshes[2]] {
            for number in 0..1000_u64 {
                let said = ([number, 7], number.to_le_bytes().to_vec());
                assert_eq!(heard.recv().unwrap(), (1, Some(said)));
            }
            assert_eq!(heard.recv().unwrap(), (1, None));
        }
        meshes.iter().for_each(|(mesh, _)| mesh.shut());
    });
}

#[test]
fn what_no_member_says_ends_its_connection() {
    ends(|| {
        // Nothing that is a frame; a letter to a rank of another member; one from a rank that the member does not run; a part of a frame.
        let letter = |from: u32, to: u32| {
            let words = [5, 5, 0, 1, u64::from(from) | u64::from(to) << 32, 0];
            words.map(u64::to_le_bytes).concat()
        };
        for bytes in [vec![0xff; 100], letter(1, 1), letter(0, 0), letter(1, 0)[..40].to_vec()] {
            let (one, other) = UnixStream::pair().unwrap();
            let (mesh, heard) = listening(0, vec![None, Some(one)]);
            let body = |team: &Threads| {
                // The team is there: what comes now is looked at.
                (&other).write_all(&bytes).unwrap();
                other.shutdown(std::net::Shutdown::Write).unwrap();
                team.meet(STEP)
            };
            let finished = spread::run(&mesh, [5, 5], 2, &Options::default(), body).unwrap();
            all_are(&finished, |_, end| failed_with(end, "the process that ran rank 1 has ended"));
            assert_eq!(heard.recv().unwrap(), (1, None));
        }
        let (one, _) = UnixStream::pair().unwrap();
        assert!(Mesh::new(1, vec![None, Some(one)]).is_err());
        assert!(Mesh::new(0, vec![]).is_err());
    });
}
