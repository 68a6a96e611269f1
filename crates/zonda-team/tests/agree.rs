//! Ranks look whether they do the same.

mod common;

use common::{STEP, ends};
use zonda_team::threads::{self, End, Fault, Moment, Options, Threads, Trouble};
use zonda_team::{Agreed, Count, Differing, Kind, Mine, Team, TeamError, agree};

/// What all ranks learn if they bring these hashes, and what it costs each.
fn agreed(hashes: Vec<u128>, statuses: Vec<u64>) -> Vec<(Agreed, [Count; 5])> {
    ends(move || {
        let body = |team: &Threads| {
            let rank = team.rank();
            let what = format!("nc_def_var(x, {:x})", hashes[rank]);
            let mine = Mine { what: &what, hash: hashes[rank], status: statuses[rank] };
            let agreed = agree(team, STEP, &mine).unwrap();
            (agreed, Kind::ALL.map(|kind| team.traffic().of(kind)))
        };
        threads::all(hashes.len(), body)
    })
}

#[test]
fn ranks_that_agree_need_one_reduction() {
    for n in (1..=17).chain([64]) {
        let hash = u128::MAX / n as u128;
        let statuses: Vec<u64> = (0..n as u64).map(|rank| rank * 31 % 17).collect();
        let status = statuses.iter().copied().max().unwrap();
        for (agreed, counts) in agreed(vec![hash; n], statuses.clone()) {
            assert_eq!(agreed, Agreed { status, differing: None });
            assert_eq!(counts.map(|count| count.steps), [0, 1, 0, 0, 0]);
            assert_eq!(counts[1].bytes, counts[1].messages * 40);
        }
    }
}

#[test]
fn two_ranks_that_differ_are_named_to_all() {
    for n in [2, 3, 4, 7, 16, 17] {
        for odd in 0..n {
            // Halves of a hash that differ alone, and both.
            for hash in [1, 1 << 64, 1 << 127, (1 << 64) | 1] {
                let mut hashes = vec![0; n];
                hashes[odd] = hash;
                let other = if odd == 0 { 1 } else { odd };
                let text = |rank: usize| (rank, format!("nc_def_var(x, {:x})", hashes[rank]));
                let differing = Some(Differing { first: text(0), other: text(other) });
                let expected = Agreed { status: 5, differing };
                for (agreed, counts) in agreed(hashes.clone(), vec![5; n]) {
                    assert_eq!(agreed, expected);
                    assert_eq!(counts.map(|count| count.steps), [1, 1, 0, 1, 0]);
                }
            }
        }
    }
}

#[test]
fn hashes_that_swap_their_halves_differ() {
    let hashes = vec![(1 << 64) | 2, (2 << 64) | 1, (1 << 64) | 1];
    for (agreed, _) in agreed(hashes, vec![0, u64::MAX, 3]) {
        assert_eq!(agreed.status, u64::MAX);
        assert_eq!(agreed.differing.unwrap().other.0, 1);
    }
}

#[test]
fn long_descriptions_are_cut() {
    let body = |team: &Threads| {
        let what = "ü".repeat(3000 + team.rank());
        agree(team, STEP, &Mine { what: &what, hash: team.rank() as u128, status: 0 })
    };
    for end in threads::all(3, body) {
        let differing = end.unwrap().differing.unwrap();
        assert_eq!(differing.first, (0, "ü".repeat(512)));
        assert_eq!(differing.other, (1, "ü".repeat(512)));
    }
}

#[test]
fn a_rank_that_dies_while_they_agree_is_an_error() {
    // In the reduction, in the gather, and in the broadcast.
    for step in 0..3 {
        let ended = ends(move || {
            let fault = Fault { rank: 1, before: Moment::Step(step), what: Trouble::Death };
            let options = Options {
                faults: vec![fault],
                timeout: Some(std::time::Duration::from_millis(10)),
                ..Options::default()
            };
            threads::run(4, &options, |team| {
                let hash = team.rank() as u128;
                agree(team, STEP, &Mine { what: "", hash, status: 0 })?;
                team.meet(STEP)
            })
        });
        for (rank, one) in ended.into_iter().enumerate() {
            match one.end {
                End::Died => assert_eq!(rank, 1),
                End::Returned(Err(TeamError::TimedOut { .. })) => {}
                other => panic!("rank {rank}: {other:?}"),
            }
        }
    }
}
