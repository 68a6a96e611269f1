//! What the tests of teams share.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::sync::mpsc;
use std::time::Duration;

use fastrand::Rng;
use zonda_team::{Message, Reduction, Step};

/// A step of the tests.
pub(crate) const STEP: Step<'static> = Step { call: "nc_enddef", file: "x.nc" };

/// All reductions.
pub(crate) const REDUCTIONS: [Reduction; 4] =
    [Reduction::Sum, Reduction::Max, Reduction::Min, Reduction::Or];

/// A test that would take longer hangs: it fails instead of keeping the others from being run. No test is near it.
pub(crate) fn ends<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let value = body();
        let _ = tell.send(());
        value
    });
    // It is disconnected if the body panicked.
    if let Err(mpsc::RecvTimeoutError::Timeout) = told.recv_timeout(Duration::from_secs(120)) {
        panic!("ranks wait for each other for ever");
    }
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// What the ranks bring to a step of each kind.
#[derive(Clone, Debug)]
pub(crate) struct Data {
    pub(crate) root: usize,
    /// For broadcast and gather.
    pub(crate) bytes: Vec<Vec<u8>>,
    /// For reductions and scans.
    pub(crate) numbers: Vec<Vec<u64>>,
    /// For an exchange.
    pub(crate) messages: Vec<Vec<Message>>,
}

fn bytes(rng: &mut Rng, most: usize) -> Vec<u8> {
    let len = rng.usize(0..=most);
    (0..len).map(|_| rng.u8(..)).collect()
}

impl Data {
    /// Some of a seed: lists, bytes and messages that may be empty, messages to oneself, several to the same rank.
    pub(crate) fn of(n: usize, seed: u64) -> Data {
        let rng = &mut Rng::with_seed(seed);
        let n_numbers = rng.usize(0..=5);
        let most_messages = *rng.choice(&[0, 1, 4, 9]).unwrap();
        Data {
            root: rng.usize(0..n),
            bytes: (0..n).map(|_| bytes(rng, 40)).collect(),
            numbers: (0..n).map(|_| (0..n_numbers).map(|_| rng.u64(..)).collect()).collect(),
            messages: (0..n)
                .map(|_| {
                    let n_messages = rng.usize(0..=most_messages);
                    // Some talk to few ranks only, so these get several.
                    let most = if rng.bool() { n } else { n.min(2) };
                    let message = |_| Message { rank: rng.usize(0..most), bytes: bytes(rng, 30) };
                    (0..n_messages).map(message).collect()
                })
                .collect(),
        }
    }

    /// What a reduction is, in the plainest way.
    pub(crate) fn reduced(&self, how: Reduction) -> Vec<u64> {
        let column = |i| self.numbers.iter().map(move |list| list[i]);
        let places = 0..self.numbers[0].len();
        let one = |i| match how {
            Reduction::Sum => column(i).fold(0, u64::wrapping_add),
            Reduction::Max => column(i).max().unwrap(),
            Reduction::Min => column(i).min().unwrap(),
            Reduction::Or => column(i).fold(0, |a, b| a | b),
        };
        places.map(one).collect()
    }

    /// What a scan gives each rank.
    pub(crate) fn scanned(&self) -> Vec<Vec<u64>> {
        let mut sums = vec![0_u64; self.numbers[0].len()];
        let mut all = Vec::new();
        for list in &self.numbers {
            all.push(sums.clone());
            sums.iter_mut().zip(list).for_each(|(sum, number)| *sum = sum.wrapping_add(*number));
        }
        all
    }

    /// What an exchange gives each rank.
    pub(crate) fn exchanged(&self) -> Vec<Vec<Message>> {
        let mut all = vec![Vec::new(); self.messages.len()];
        for (rank, messages) in self.messages.iter().enumerate() {
            for message in messages {
                all[message.rank].push(Message { rank, bytes: message.bytes.clone() });
            }
        }
        all
    }
}
