//! Each step beside its definition. What the ranks give is random, and the same numbers are made on all ranks: so each knows what it has
//! to get.

use crate::STEP;
use fastrand::Rng;
use zonda_mpi::MpiTeam;
use zonda_team::{Message, Reduction, Team, TeamError};

/// The random numbers of one rank in one step.
fn random(seed: u64, step: u64, rank: usize) -> Rng {
    let rank = rank as u64 + 1;
    Rng::with_seed(seed ^ (step << 32) ^ rank.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Random bytes; many are none, most are few.
fn some_bytes(rng: &mut Rng) -> Vec<u8> {
    let length = match rng.u8(0..8) {
        0 | 1 => 0,
        2 | 3 => rng.usize(..20),
        4 => rng.usize(480..530),
        5 => rng.usize(..5_000),
        6 => 504,
        _ => rng.usize(..90_000),
    };
    (0..length).map(|_| rng.u8(..)).collect()
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, expected: &T) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    let cut = |value: &T| format!("{value:?}").chars().take(200).collect::<String>();
    Err(format!("{what}: {} instead of {}", cut(found), cut(expected)))
}

fn failed(why: TeamError) -> String {
    why.to_string()
}

pub(crate) fn check(team: &MpiTeam, seed: u64) -> Result<(), String> {
    let (rank, size) = (team.rank(), team.size());
    if rank >= size || team.n_on_node() != size {
        return Err(format!("rank {rank} of {size}, {} on the node", team.n_on_node()));
    }
    count(team, seed)?;
    for round in 0..12_u64 {
        // No step is told from its neighbour by its length or its kind alone.
        let at =
            |step: u64| format!("rank {rank} of {size}, seed {seed}, round {round}, step {step}");
        let mut order: Vec<u64> = (0..8).collect();
        random(seed, round, 1_000_000).shuffle(&mut order);
        for which in order {
            let step = round * 8 + which;
            let checked = match which {
                0 | 1 => broadcast(team, seed, step),
                2 => reduce(team, seed, step),
                3 => scan(team, seed, step),
                4 | 5 => gather(team, seed, step),
                6 => exchange(team, seed, step),
                7 => exchange_known(team, seed, step),
                _ => Ok(()),
            };
            checked.map_err(|why| format!("{}: {why}", at(which)))?;
        }
        team.meet(STEP).map_err(failed)?;
    }
    outsider(team)
}

/// As if ranks were on several nodes.
fn count(team: &MpiTeam, seed: u64) -> Result<(), String> {
    let node = |rank| random(seed, 0, rank).u64(..3).wrapping_sub(1);
    let own = node(team.rank());
    let expected = (0..team.size()).filter(|&rank| node(rank) == own).count();
    let found = team.count_alike(STEP, own).map_err(failed)?;
    same("ranks with the same number", &found, &expected)
}

fn broadcast(team: &MpiTeam, seed: u64, step: u64) -> Result<(), String> {
    let root = random(seed, step, usize::MAX / 2).usize(..team.size());
    let sent = some_bytes(&mut random(seed, step, root));
    let mut bytes = if team.rank() == root {
        sent.clone()
    } else {
        some_bytes(&mut random(seed, step, team.rank()))
    };
    team.broadcast(STEP, root, &mut bytes).map_err(failed)?;
    same("broadcast", &bytes, &sent)
}

/// A list of numbers of each rank, all of one length.
fn lists(team: &MpiTeam, seed: u64, step: u64) -> Vec<Vec<u64>> {
    let mut common = random(seed, step, usize::MAX / 2);
    let length = if common.bool() { common.usize(..4) } else { common.usize(..300) };
    let list = |rank| {
        let mut rng = random(seed, step, rank);
        (0..length).map(|_| if rng.bool() { rng.u64(..) } else { rng.u64(..9) }).collect()
    };
    (0..team.size()).map(list).collect()
}

fn reduce(team: &MpiTeam, seed: u64, step: u64) -> Result<(), String> {
    let lists = lists(team, seed, step);
    type Combine = fn(u64, u64) -> u64;
    let ways: [(Reduction, Combine); 4] = [
        (Reduction::Sum, u64::wrapping_add),
        (Reduction::Max, u64::max),
        (Reduction::Min, u64::min),
        (Reduction::Or, |a, b| a | b),
    ];
    for (how, combine) in ways {
        let mut numbers = lists[team.rank()].clone();
        team.reduce(STEP, how, &mut numbers).map_err(failed)?;
        let mut expected = lists[0].clone();
        for list in &lists[1..] {
            expected.iter_mut().zip(list).for_each(|(sum, &number)| *sum = combine(*sum, number));
        }
        same(&format!("{how:?}"), &numbers, &expected)?;
    }
    Ok(())
}

fn scan(team: &MpiTeam, seed: u64, step: u64) -> Result<(), String> {
    let lists = lists(team, seed, step);
    let mut numbers = lists[team.rank()].clone();
    team.scan(STEP, &mut numbers).map_err(failed)?;
    let mut expected = vec![0_u64; numbers.len()];
    for list in &lists[..team.rank()] {
        expected.iter_mut().zip(list).for_each(|(sum, &number)| *sum = sum.wrapping_add(number));
    }
    same("scan", &numbers, &expected)
}

fn gather(team: &MpiTeam, seed: u64, step: u64) -> Result<(), String> {
    let root = random(seed, step, usize::MAX / 2).usize(..team.size());
    let given = |rank| some_bytes(&mut random(seed, step, rank));
    let all = team.gather(STEP, root, &given(team.rank())).map_err(failed)?;
    let expected: Vec<Vec<u8>> =
        if team.rank() == root { (0..team.size()).map(given).collect() } else { Vec::new() };
    same("gather", &all, &expected)
}

/// What a rank sends: to some ranks, itself too, in any order, several to one, and sometimes very many.
fn messages(size: usize, seed: u64, step: u64, rank: usize) -> Vec<Message> {
    let mut rng = random(seed, step, rank);
    let count = match rng.u8(0..6) {
        0 => 0,
        1 => 70,
        _ => rng.usize(..size * 2 + 1),
    };
    let one = rng.usize(..size);
    let to = |rng: &mut Rng| if count == 70 { one } else { rng.usize(..size) };
    (0..count)
        .map(|_| {
            let rank = to(&mut rng);
            let mut bytes = some_bytes(&mut rng);
            bytes.truncate(if count == 70 { 300 } else { usize::MAX });
            Message { rank, bytes }
        })
        .collect()
}

fn exchange(team: &MpiTeam, seed: u64, step: u64) -> Result<(), String> {
    let size = team.size();
    let received = team.exchange(STEP, messages(size, seed, step, team.rank())).map_err(failed)?;
    let expected: Vec<Message> = (0..size)
        .flat_map(|from| {
            let to_us = messages(size, seed, step, from).into_iter();
            to_us
                .filter(|message| message.rank == team.rank())
                .map(move |message| Message { rank: from, bytes: message.bytes })
        })
        .collect();
    same("exchange", &received, &expected)
}

/// What a rank sends where all know who sends what: one message to each of some ranks, how long its receiver expects it, and some are shorter.
fn known(size: usize, seed: u64, step: u64, rank: usize) -> Vec<(Message, usize)> {
    let mut rng = random(seed, step, rank + size);
    let mut all: Vec<Message> = messages(size, seed, step, rank);
    all.retain(|message| message.rank != rank);
    all.sort_by_key(|message| message.rank);
    all.dedup_by_key(|message| message.rank);
    let with_len = |mut message: Message| {
        let len = message.bytes.len();
        message.bytes.truncate(if rng.u8(0..4) == 0 { len / 3 } else { len });
        (message, len)
    };
    all.into_iter().map(with_len).collect()
}

fn exchange_known(team: &MpiTeam, seed: u64, step: u64) -> Result<(), String> {
    let (size, me) = (team.size(), team.rank());
    let to_us = |from: usize| {
        let sent = known(size, seed, step, from).into_iter();
        sent.filter(|(message, _)| message.rank == me).map(move |(message, len)| {
            let mut bytes = message.bytes;
            bytes.resize(len, 0);
            Message { rank: from, bytes }
        })
    };
    let comes: Vec<Message> = (0..size).flat_map(to_us).collect();
    let expected: Vec<_> = comes.iter().map(|one| (one.rank, one.bytes.len())).collect();
    let received = team.exchange_known(STEP, known(size, seed, step, me), &expected);
    same("exchange of what is known", &received.map_err(failed)?, &comes)
}

/// A rank that there is not, on all ranks: an error each, and the team is of no use.
fn outsider(team: &MpiTeam) -> Result<(), String> {
    match team.broadcast(STEP, team.size(), &mut Vec::new()) {
        Err(TeamError::Failed { what, .. }) if what.contains("there is no rank") => {}
        other => return Err(format!("broadcast of a rank that is none: {other:?}")),
    }
    match team.meet(STEP) {
        Err(TeamError::Broken { .. }) => Ok(()),
        other => Err(format!("after a failure: {other:?}")),
    }
}

/// More bytes than 32 bits count, from rank 0 to all, from each rank to the next one, and to rank 0.
pub(crate) fn large(team: &MpiTeam) -> Result<(), String> {
    const LENGTH: usize = (9 << 28) + 5;
    let (rank, size) = (team.rank(), team.size());
    let byte = |rank: usize, at: usize| (at >> 20) as u8 ^ at as u8 ^ (rank as u8).wrapping_mul(91);
    let made = |rank| (0..LENGTH).map(|at| byte(rank, at)).collect::<Vec<u8>>();
    let check = |what: &str, rank: usize, bytes: &[u8]| {
        if bytes.len() == LENGTH
            && bytes.iter().enumerate().all(|(at, found)| *found == byte(rank, at))
        {
            return Ok(());
        }
        Err(format!("{what}: {} bytes, or others", bytes.len()))
    };
    let mut bytes = if rank == 0 { made(0) } else { Vec::new() };
    team.broadcast(STEP, 0, &mut bytes).map_err(failed)?;
    check("broadcast", 0, &bytes)?;
    let message = Message { rank: (rank + 1) % size, bytes: made(rank) };
    bytes.clear();
    for received in team.exchange(STEP, vec![message]).map_err(failed)? {
        check("exchange", received.rank, &received.bytes)?;
        same("sender", &received.rank, &((rank + size - 1) % size))?;
        bytes = received.bytes;
    }
    let gathered = team.gather(STEP, 0, &bytes).map_err(failed)?;
    same("gathered", &gathered.len(), &if rank == 0 { size } else { 0 })?;
    gathered
        .iter()
        .enumerate()
        .try_for_each(|(from, bytes)| check("gather", (from + size - 1) % size, bytes))
}
