//! How long steps take. Timings decide nothing; rank 0 prints them.

use crate::STEP;
use std::io::Write;
use std::time::Instant;
use zonda_mpi::MpiTeam;
use zonda_team::{Message, Reduction, Team};

/// The middle one of the times of a step in microseconds, as this rank sees them.
fn median(mut step: impl FnMut() -> Result<(), String>, times: usize) -> Result<f64, String> {
    let mut taken = Vec::new();
    for _ in 0..times {
        let begin = Instant::now();
        step()?;
        taken.push(begin.elapsed().as_secs_f64() * 1e6);
    }
    taken.sort_by(f64::total_cmp);
    Ok(taken[times / 2])
}

pub(crate) fn measure(comm: usize) -> Result<(), String> {
    let failed = |why: zonda_team::TeamError| why.to_string();
    let make = || MpiTeam::new(STEP, comm).map_err(|why| why.to_string());
    let team = make()?;
    let size = team.size();
    let say = |name: &str, time: f64| {
        if team.rank() == 0 {
            let _ =
                writeln!(std::io::stdout().lock(), "measured {size} ranks: {name} {time:.1} us");
        }
    };
    say("new team", median(|| make().map(drop), 30)?);
    let reduce = |n: usize| {
        let mut numbers = vec![1; n];
        median(|| team.reduce(STEP, Reduction::Max, &mut numbers).map_err(failed), 300)
    };
    say("reduce of 1", reduce(1)?);
    say("reduce of 1000", reduce(1000)?);
    let broadcast = |n: usize, times| {
        let mut bytes = vec![1; n];
        median(
            || team.broadcast(STEP, 0, &mut bytes).and_then(|()| team.meet(STEP)).map_err(failed),
            times,
        )
    };
    say("broadcast of 100 bytes and meet", broadcast(100, 300)?);
    say("broadcast of 10 MB and meet", broadcast(10_000_000, 10)?);
    let exchange = |n: usize, times| {
        let next = (team.rank() + 1) % size;
        let step = || {
            let message = Message { rank: next, bytes: vec![1; n] };
            team.exchange(STEP, vec![message]).map(drop).map_err(failed)
        };
        median(step, times)
    };
    say("exchange of 100 bytes with a neighbour", exchange(100, 300)?);
    say("exchange of 10 MB with a neighbour", exchange(10_000_000, 10)?);
    Ok(())
}
