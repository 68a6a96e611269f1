//! Steps of teams of any size, with any data, in any order.

mod common;

use common::{Data, REDUCTIONS, STEP, ends};
use proptest::prelude::*;
use zonda_team::threads::{self, Fault, Moment, Options, Threads, Trouble};
use zonda_team::{Kind, Team, TeamError};

/// Takes steps in the order of `kinds` and compares what comes of each with its definition.
fn walk(team: &Threads, data: &Data, kinds: &[Kind]) -> Result<(), TeamError> {
    let rank = team.rank();
    for (i, kind) in kinds.iter().enumerate() {
        // The root changes, so ranks run ahead of each other in different directions.
        let root = (data.root + i) % team.size();
        match kind {
            Kind::Broadcast => {
                let mut bytes = data.bytes[rank].clone();
                team.broadcast(STEP, root, &mut bytes)?;
                assert_eq!(bytes, data.bytes[root]);
            }
            Kind::Reduce => {
                let how = REDUCTIONS[i % 4];
                let mut numbers = data.numbers[rank].clone();
                team.reduce(STEP, how, &mut numbers)?;
                assert_eq!(numbers, data.reduced(how));
            }
            Kind::Scan => {
                let mut numbers = data.numbers[rank].clone();
                team.scan(STEP, &mut numbers)?;
                assert_eq!(numbers, data.scanned()[rank]);
            }
            Kind::Gather => {
                let gathered = team.gather(STEP, root, &data.bytes[rank])?;
                assert!(gathered == if rank == root { &data.bytes[..] } else { &[] });
            }
            Kind::Exchange => {
                let got = team.exchange(STEP, data.messages[rank].clone())?;
                assert_eq!(got, data.exchanged()[rank]);
            }
        }
    }
    Ok(())
}

fn kinds() -> impl Strategy<Value = Vec<Kind>> {
    prop::collection::vec(prop::sample::select(&Kind::ALL[..]), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any steps in any order, with ranks that come late: before some steps, or in the middle of one.
    #[test]
    fn steps_in_any_order_are_what_they_are(
        n in 1_usize..40,
        seed: u64,
        kinds in kinds(),
        late in prop::collection::vec((0_usize..40, 0_u64..12, any::<bool>()), 0..4),
    ) {
        let data = Data::of(n, seed);
        let fault = |&(rank, number, in_step): &(usize, u64, bool)| Fault {
            rank,
            before: if in_step { Moment::Message(number) } else { Moment::Step(number) },
            what: Trouble::Delay(std::time::Duration::from_millis(2)),
        };
        let faults = late.iter().map(fault).collect();
        let options = Options { faults, ..Options::default() };
        let finished = ends(move || threads::run(n, &options, |team| walk(team, &data, &kinds)));
        for one in finished {
            prop_assert_eq!(one.end, threads::End::Returned(Ok(())));
        }
    }

    /// What goes wrong anywhere ends in an error everywhere, once ranks meet; and it ends.
    #[test]
    fn trouble_anywhere_reaches_all(
        n in 2_usize..20,
        seed: u64,
        kinds in kinds(),
        who: prop::sample::Index,
        number in 0_u64..30,
        in_step: bool,
        dies: bool,
    ) {
        let data = Data::of(n, seed);
        let rank = who.index(n);
        let n_steps = kinds.len() as u64 + 2;
        let before = if in_step { Moment::Message(number) } else { Moment::Step(number) };
        let what = if dies { Trouble::Death } else { Trouble::Error };
        let options = Options {
            faults: vec![Fault { rank, before, what }],
            timeout: Some(std::time::Duration::from_millis(20)),
            ..Options::default()
        };
        let finished = ends(move || threads::run(n, &options, |team| {
            // A rank that is late on a busy machine may time out without a fault: then that is the trouble.
            let walked = walk(team, &data, &kinds);
            walked.and_then(|()| team.meet(STEP)).and_then(|()| team.meet(STEP)).is_ok()
        }));
        let is_ok = |one: &threads::Finished<bool>| one.end == threads::End::Returned(true);
        // Nobody comes out of the last meeting before all have come to it.
        let n_begun = finished.iter().map(|one| one.traffic.total().steps);
        if n_begun.min() < Some(n_steps) {
            prop_assert!(!finished.iter().any(is_ok));
        }
        let has_begun = finished[rank].traffic.total();
        let strikes = if in_step { has_begun.messages > number } else { has_begun.steps > number };
        prop_assert!(!strikes, "the fault did not strike: {has_begun:?}");
        prop_assert!(!finished.iter().any(|one| matches!(one.end, threads::End::Panicked(_))));
    }
}
