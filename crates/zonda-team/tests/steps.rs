//! Each step against what it is by definition, and what it costs.

mod common;

use common::{Data, REDUCTIONS, STEP, ends};
use zonda_team::algorithms::rounds;
use zonda_team::threads::{self, End, Options, Threads};
use zonda_team::{Count, Kind, Message, Reduction, Team, TeamError, Traffic};

/// All steps with some data, on one rank.
fn take_all_steps(team: &Threads, data: &Data) -> Result<(), TeamError> {
    let (rank, n) = (team.rank(), team.size());
    let mut bytes = data.bytes[rank].clone();
    team.broadcast(STEP, data.root, &mut bytes)?;
    assert_eq!(bytes, data.bytes[data.root], "broadcast at rank {rank} of {n}");
    for how in REDUCTIONS {
        let mut numbers = data.numbers[rank].clone();
        team.reduce(STEP, how, &mut numbers)?;
        assert_eq!(numbers, data.reduced(how), "{how:?} at rank {rank} of {n}");
    }
    let mut numbers = data.numbers[rank].clone();
    team.scan(STEP, &mut numbers)?;
    assert_eq!(numbers, data.scanned()[rank], "scan at rank {rank} of {n}");
    let gathered = team.gather(STEP, data.root, &data.bytes[rank])?;
    if rank == data.root {
        assert_eq!(gathered, data.bytes, "gather at rank {rank} of {n}");
    } else {
        assert!(gathered.is_empty());
    }
    let got = team.exchange(STEP, data.messages[rank].clone())?;
    assert_eq!(got, data.exchanged()[rank], "exchange at rank {rank} of {n}");
    team.meet(STEP)
}

/// All steps with the data of a seed on all ranks.
fn all_steps(n: usize, seed: u64) {
    let data = Data::of(n, seed);
    for end in threads::all(n, |team| take_all_steps(team, &data)) {
        end.unwrap();
    }
}

#[test]
fn steps_do_what_they_are_defined_to() {
    ends(|| {
        for n in 1..=17 {
            (0..6).for_each(|seed| all_steps(n, seed * 100 + n as u64));
        }
        (0..3).for_each(|seed| all_steps(64, seed));
    });
}

#[test]
fn a_thousand_ranks_do_the_same() {
    ends(|| {
        let n = 1024;
        let mut data = Data::of(n, 0);
        data.messages.truncate(n);
        let (reduced, scanned) = (data.reduced(Reduction::Sum), data.scanned());
        let exchanged = data.exchanged();
        let body = |team: &Threads| -> Result<(), TeamError> {
            let rank = team.rank();
            let mut bytes = data.bytes[rank].clone();
            team.broadcast(STEP, data.root, &mut bytes)?;
            assert_eq!(bytes, data.bytes[data.root]);
            let mut numbers = data.numbers[rank].clone();
            team.reduce(STEP, Reduction::Sum, &mut numbers)?;
            assert_eq!(numbers, reduced);
            let mut numbers = data.numbers[rank].clone();
            team.scan(STEP, &mut numbers)?;
            assert_eq!(numbers, scanned[rank]);
            let gathered = team.gather(STEP, data.root, &data.bytes[rank])?;
            assert!(gathered.is_empty() || gathered == data.bytes);
            assert_eq!(gathered.len(), if rank == data.root { n } else { 0 });
            assert_eq!(team.exchange(STEP, data.messages[rank].clone())?, exchanged[rank]);
            Ok(())
        };
        threads::all(n, body).into_iter().for_each(Result::unwrap);
    });
}

#[test]
fn long_messages_arrive_whole() {
    ends(|| {
        let long = |rank: usize| -> Vec<u8> {
            let mut rng = fastrand::Rng::with_seed(rank as u64);
            let seed: Vec<u8> = (0..251).map(|_| rng.u8(..)).collect();
            seed.iter().copied().cycle().take((1 << 20) + 17 + rank).collect()
        };
        let all: Vec<Vec<u8>> = (0..5).map(long).collect();
        let body = |team: &Threads| -> Result<(), TeamError> {
            let (rank, n) = (team.rank(), team.size());
            let mut bytes = if rank == 3 { all[3].clone() } else { Vec::new() };
            team.broadcast(STEP, 3, &mut bytes)?;
            assert!(bytes == all[3]);
            let gathered = team.gather(STEP, 2, &all[rank])?;
            assert!(rank != 2 || gathered == all);
            let next = Message { rank: (rank + 1) % n, bytes: all[rank].clone() };
            let got = team.exchange(STEP, vec![next])?;
            let before = (rank + n - 1) % n;
            assert!(got == [Message { rank: before, bytes: all[before].clone() }]);
            let mut numbers = vec![rank as u64; 150_000];
            team.reduce(STEP, Reduction::Max, &mut numbers)?;
            assert!(numbers.iter().all(|number| *number == 4));
            Ok(())
        };
        threads::all(5, body).into_iter().for_each(Result::unwrap);
    });
}

#[test]
fn messages_of_a_pair_keep_their_order() {
    ends(|| {
        let body = |team: &Threads| {
            let message = |i: u32| Message {
                rank: i as usize % team.size(),
                bytes: i.to_le_bytes().to_vec(),
            };
            team.exchange(STEP, (0..3000).map(message).collect())
        };
        for (rank, got) in threads::all(3, body).into_iter().enumerate() {
            let expected = (0..3).flat_map(|from| {
                let numbers = (0..3000_u32).filter(move |i| *i as usize % 3 == rank);
                numbers.map(move |i| Message { rank: from, bytes: i.to_le_bytes().to_vec() })
            });
            assert!(got.unwrap().into_iter().eq(expected));
        }
    });
}

#[test]
fn exchanges_one_after_the_other_keep_apart() {
    ends(|| {
        let body = |team: &Threads| -> Result<(), TeamError> {
            let (rank, n) = (team.rank(), team.size());
            for round in 0..50_usize {
                // Ranks that have nothing to do in a round come early to the next one.
                let to = (rank + round) % n;
                let sends = (rank + round).is_multiple_of(3);
                let bytes = round.to_le_bytes().to_vec();
                let messages =
                    if sends { vec![Message { rank: to, bytes: bytes.clone() }] } else { vec![] };
                let got = team.exchange(STEP, messages)?;
                let from = (rank + n * round - round) % n;
                let expected = (from + round).is_multiple_of(3).then_some(from);
                assert_eq!(got.len(), usize::from(expected.is_some()));
                for message in got {
                    assert_eq!((Some(message.rank), message.bytes), (expected, bytes.clone()));
                }
            }
            Ok(())
        };
        threads::all(9, body).into_iter().for_each(Result::unwrap);
    });
}

#[test]
fn who_leaves_after_an_exchange_had_sent_all() {
    ends(|| {
        // So many that some look around just when others leave.
        let n = 600;
        let body = |team: &Threads| {
            let to = (1..4).map(|above| (team.rank() + above * 99) % n);
            team.exchange(STEP, to.map(|rank| Message { rank, bytes: vec![1] }).collect())
        };
        for _ in 0..5 {
            let got = threads::all(n, body);
            assert!(got.into_iter().all(|got| got.is_ok_and(|got| got.len() == 3)));
        }
    });
}

/// What each rank sends in one step of each kind: of 5 numbers, 100 bytes, and in the exchange 3 messages of 10 bytes to ranks spread over the
/// team.
fn traffic_of_steps(n: usize) -> Vec<Traffic> {
    let body = |team: &Threads| -> Result<(), TeamError> {
        let (rank, n) = (team.rank(), team.size());
        team.broadcast(STEP, n / 2, &mut vec![7; 100])?;
        team.reduce(STEP, Reduction::Max, &mut [rank as u64; 5])?;
        team.scan(STEP, &mut [1; 5])?;
        team.gather(STEP, n / 3, &[1; 100])?;
        let to = [1, n / 2, n - 1].map(|above| (rank + above) % n);
        let message = |rank| Message { rank, bytes: vec![0; 10] };
        team.exchange(STEP, to.map(message).to_vec())?;
        Ok(())
    };
    let finished = threads::run(n, &Options::default(), body);
    assert!(finished.iter().all(|one| one.end == End::Returned(Ok(()))));
    finished.into_iter().map(|one| one.traffic).collect()
}

/// The most of any rank.
fn most(all: &[Traffic], kind: Kind, what: fn(Count) -> u64) -> u64 {
    all.iter().map(|one| what(one.of(kind))).max().unwrap()
}

#[test]
fn messages_grow_with_the_logarithm_of_the_ranks() {
    ends(|| {
        for n in (1..=17).chain([64, 100, 256, 1000, 1024]) {
            let all = traffic_of_steps(n);
            let log = u64::from(rounds(n));
            let sum = |kind| all.iter().map(|one| one.of(kind).messages).sum::<u64>();
            for kind in Kind::ALL {
                let (a, b) = match kind {
                    Kind::Broadcast | Kind::Scan => (0, log),
                    Kind::Reduce => (1, u64::from(n.ilog2())),
                    Kind::Gather => (u64::from(n > 1), 0),
                    Kind::Exchange => (3, log),
                };
                let messages = most(&all, kind, |count| count.messages);
                assert!(messages <= a + b, "{kind:?} at {n} ranks: {messages}");
                let received = most(&all, kind, |count| count.received);
                assert!(received <= 3 + log, "{kind:?} at {n} ranks gets {received}");
                assert_eq!(most(&all, kind, |count| count.steps), 1);
                let got = all.iter().map(|one| one.of(kind).received).sum::<u64>();
                assert_eq!(sum(kind), got, "all that is sent is received");
            }
            assert_eq!(sum(Kind::Broadcast), n as u64 - 1);
            assert_eq!(sum(Kind::Gather), n as u64 - 1);
            if n.is_power_of_two() {
                assert_eq!(sum(Kind::Reduce), n as u64 * log);
            }
            // Counts that are 0 are not sent.
            let bytes = most(&all, Kind::Exchange, |count| count.bytes);
            assert!(bytes <= 30 + 3 * 16 * (log + 1) * 4, "{bytes} at {n} ranks");
            if [16, 256, 1024].contains(&n) {
                for kind in Kind::ALL {
                    let of = |what| most(&all, kind, what);
                    let (sent, bytes) = (of(|count| count.messages), of(|count| count.bytes));
                    let received = of(|count| count.received);
                    eprintln!(
                        "{n} ranks, {}: at most {sent} messages, {bytes} bytes sent; {received} received",
                        kind.name()
                    );
                }
            }
        }
    });
}

#[test]
fn an_exchange_of_nothing_costs_its_rounds() {
    ends(|| {
        let body = |team: &Threads| team.exchange(STEP, Vec::new());
        for finished in threads::run(100, &Options::default(), body) {
            let count = finished.traffic.of(Kind::Exchange);
            assert_eq!(count, Count { steps: 1, messages: 7, bytes: 0, received: 7 });
            assert_eq!(finished.returned(), Some(Ok(Vec::new())));
        }
    });
}

#[test]
fn a_message_to_oneself_is_not_sent() {
    ends(|| {
        let body = |team: &Threads| {
            let mine = Message { rank: team.rank(), bytes: vec![1, 2, 3] };
            team.exchange(STEP, vec![mine])
        };
        for (rank, finished) in threads::run(4, &Options::default(), body).into_iter().enumerate() {
            assert_eq!(finished.traffic.total().messages, 2);
            let mine = Message { rank, bytes: vec![1, 2, 3] };
            assert_eq!(finished.returned(), Some(Ok(vec![mine])));
        }
    });
}

#[test]
fn ranks_are_on_nodes_in_blocks() {
    let options = Options { n_on_node: 4, ..Options::default() };
    let on_node = |options: &Options| -> Vec<usize> {
        let finished = threads::run(10, options, |team| team.n_on_node());
        finished.into_iter().filter_map(threads::Finished::returned).collect()
    };
    assert_eq!(on_node(&options), [4, 4, 4, 4, 4, 4, 4, 4, 2, 2]);
    assert_eq!(on_node(&Options::default()), [10; 10]);
}

#[test]
fn a_rank_is_a_team_of_any_kind() {
    ends(|| {
        let body = |team: &Threads| -> Result<usize, TeamError> {
            let other: std::sync::Arc<dyn Team> = std::sync::Arc::new(team.clone());
            other.meet(STEP)?;
            let by_reference: &dyn Team = team;
            by_reference.meet(STEP)?;
            assert_eq!(team.traffic().of(Kind::Reduce).steps, 2);
            assert_eq!(format!("{team:?}"), format!("Threads(rank {} of 3)", team.rank()));
            Ok(other.rank())
        };
        assert_eq!(threads::all(3, body), [Ok(0), Ok(1), Ok(2)]);
    });
}
