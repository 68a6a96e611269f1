//! Predicts how long the calls that all ranks of a file make take with up to 32,768 ranks: `zonda_team::model`, on two machines.
//!
//!     cargo run --release -p zonda-team --example messages
//!
//! A row is a call on one machine, a column a number of ranks, and a cell is in microseconds. `bench/parallel_model.py` draws it. What the calls
//! say to each other is what `crates/zonda/tests/parallel_counts.rs` counts, and holds to this: a file of 100 variables.

#![allow(clippy::print_stdout, reason = "that is what it is for")]

use zonda_team::model::{Machine, Planned, seconds};

/// Bytes of the header of a CDF-5 file of 100 variables, which rank 0 hands on.
const DEFINITIONS: u64 = 8400;
/// Bytes of a record of what rank 0 did, where it read nothing.
const RECORD: u64 = 200;
/// Numbers in the reduction by which ranks see whether all make the same call, with what else they tell each other then.
const AGREEMENT: u64 = 25;

const RANKS: [usize; 7] = [2, 16, 64, 256, 1024, 8192, 32_768];

fn main() {
    let agree = Planned::reduce(AGREEMENT);
    let one = Planned::reduce(1);
    let record = Planned::broadcast(RECORD);
    let definitions = Planned::broadcast(DEFINITIONS);
    let calls: [(&str, &[Planned]); 4] = [
        ("open", &[agree, Planned::broadcast(1), one, definitions, one]),
        // The agreement; places and the commit, by the record of rank 0. Fill values take two steps more.
        ("enddef", &[agree, record, one]),
        // The agreement; how the puts went. Growth takes no more, but where new elements have fill values.
        ("a collective put", &[agree, one]),
        ("close", &[agree, record, one]),
    ];
    print!("| Call | Machine |");
    RANKS.iter().for_each(|n| print!(" {n} |"));
    println!("\n|---|---|{}", "--:|".repeat(RANKS.len()));
    for (machine, name) in [(Machine::CLUSTER, "cluster"), (Machine::ETHERNET, "Ethernet")] {
        for (call, steps) in calls {
            print!("| {call} | {name} |");
            RANKS.iter().for_each(|&n| print!(" {:.0} |", 1e6 * seconds(&machine, n, steps)));
            println!();
        }
    }
}
