//! The rules of `src/read_model.rs`, counted: chunks decoded, bytes inflated and bytes copied, for pairs of chunk shape and access.
//!
//! The rules are here once more, as a plain program that knows nothing of threads: which chunks a request touches, which of them
//! are there, and what that costs. The trace of the reads is what it is compared with.

mod arrays;

use std::collections::HashSet;
use std::path::PathBuf;

use arrays::{Flip, Made, Random, Recipe, for_each};
use zonda_chunk::{Decode, Engine};
use zonda_model::Hyperslab;
use zonda_trace::decode::{Decoder, TraceStep};
use zonda_trace::{Args, EventKind};

const EXTENT: [u64; 3] = [30, 16, 24];
const ELEM: usize = 4;
/// Maps, columns, blocks, blocks that do not divide the array, one chunk, and long rows.
const CHUNKS: [[u64; 3]; 6] =
    [[1, 16, 24], [30, 4, 4], [10, 8, 8], [7, 5, 9], [30, 16, 24], [2, 1, 24]];
const THREADS: [usize; 2] = [1, 3];

/// A hyperslab: start, count, stride.
#[derive(Clone, Debug)]
struct Request([usize; 3], [usize; 3], [isize; 3]);

/// What reads cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cost {
    chunks_decoded: u64,
    bytes_inflated: u64,
    bytes_copied: u64,
}

fn accesses() -> Vec<(&'static str, Vec<Request>)> {
    let all = EXTENT.map(|n| n as usize);
    let one = [1; 3];
    let slab = |start, count| Request(start, count, [1; 3]);
    let layers = |axis: usize| -> Vec<Request> {
        (0..all[axis])
            .map(|i| {
                let (mut start, mut count) = ([0; 3], all);
                (start[axis], count[axis]) = (i, 1);
                slab(start, count)
            })
            .collect()
    };
    let mut random = Random(7);
    let mut point = || EXTENT.map(|n| random.below(n) as usize);
    let series = |[_, y, x]: [usize; 3]| slab([0, y, x], [all[0], 1, 1]);
    let far_series: Vec<Request> = (0..40).map(|_| series(point())).collect();
    let near_series = (0..all[2]).map(|x| series([0, 5, x])).collect();
    let elements: Vec<Request> = (0..200).map(|_| slab(point(), one)).collect();
    let blocks: Vec<Request> = (0..40)
        .map(|_| {
            let start = point();
            let count = [6, 5, 7];
            slab([0, 1, 2].map(|d| start[d].min(all[d] - count[d])), count)
        })
        .collect();
    let bands = (0..all[1]).step_by(2).map(|y| slab([0, y, 0], [all[0], 2, all[2]])).collect();
    vec![
        ("all at once", vec![slab([0; 3], all)]),
        ("all, three times", vec![slab([0; 3], all); 3]),
        ("layers", layers(0)),
        ("layers across", layers(2)),
        ("bands", bands),
        ("series side by side", near_series),
        ("series anywhere", far_series),
        ("blocks anywhere", blocks),
        ("elements anywhere", elements),
        ("every other element", vec![Request([0; 3], [15, 8, 12], [2; 3]); 2]),
    ]
}

/// What the rules say of requests, one after the other, with memory for all chunks.
fn predicted(chunk: [u64; 3], requests: &[Request]) -> Cost {
    let chunk_bytes = chunk.iter().product::<u64>() * ELEM as u64;
    let mut cost = Cost::default();
    let mut kept: HashSet<Vec<u64>> = HashSet::new();
    let mut last: Option<&Request> = None;
    for request in requests {
        let Request(start, count, stride) = request;
        let end = |r: &Request, d: usize| r.0[d] + (r.1[d] - 1) * r.2[d].unsigned_abs();
        let shares = |other: &Request| {
            (0..3).all(|d| start[d] <= end(other, d) && other.0[d] <= end(request, d))
        };
        let overlaps = last.is_some_and(shares);
        last = Some(request);
        // Elements of each chunk, by its place in the grid.
        let mut parts: std::collections::BTreeMap<Vec<u64>, u64> = Default::default();
        for_each(&count.map(|n| n as u64), |i| {
            let at =
                |d: usize| (start[d] as u64 + i[d] * stride[d].unsigned_abs() as u64) / chunk[d];
            *parts.entry((0..3).map(at).collect()).or_default() += 1;
        });
        // A run of elements of one chunk that is there goes a short way, which the trace has no event for.
        let first_many = (0..3).find(|&d| count[d] > 1).unwrap_or(3);
        let is_run = parts.len() == 1
            && (first_many + 1..3).all(|d| count[d] as u64 == chunk[d])
            && (0..3).all(|d| count[d] == 1 || stride[d] == 1);
        for (key, elems) in parts {
            let part_bytes = elems * ELEM as u64;
            // A chunk is wanted whole where all is wanted of it that is inside of the array.
            let inside: u64 = (0..3).map(|d| chunk[d].min(EXTENT[d] - key[d] * chunk[d])).product();
            let is_whole = elems == inside;
            // One run of the caller's memory: it has all of each dimension behind the first that is cut.
            let spans = |d: usize| count[d] as u64 == chunk[d];
            let first_cut = (0..3).rfind(|&d| !spans(d)).unwrap_or(0);
            let one_run =
                elems * ELEM as u64 == chunk_bytes && chunk[..first_cut].iter().all(|&n| n == 1);
            if kept.contains(&key) {
                cost.bytes_copied += if is_run { 0 } else { part_bytes };
                continue;
            }
            cost.chunks_decoded += 1;
            cost.bytes_inflated += chunk_bytes;
            if !is_whole || overlaps {
                kept.insert(key);
                cost.bytes_copied += part_bytes;
            } else if !one_run {
                cost.bytes_copied += part_bytes;
            }
        }
    }
    cost
}

/// Reads, and checks what comes.
fn read(made: &Made, requests: &[Request], threads: usize) {
    let engine = Engine::new(threads, 1 << 30);
    let array = made.array(&engine);
    for Request(start, count, stride) in requests {
        let mut out = vec![0; count.iter().product::<usize>() * ELEM];
        let slab = Hyperslab { start, count, stride: Some(stride) };
        let decode = Decode::Raw { elem_size: ELEM };
        let _ = array.read(&made.recipe.extent, &slab, decode, &mut out).expect("reads");
        assert!(out == made.expected(start, count, stride), "at {start:?}");
    }
    // Ends what runs in the background.
    drop(array);
    assert_eq!(engine.bytes_in_use(), 0);
}

/// Events of a trace between two marks, which are numbered from 0 on.
fn counted(path: PathBuf) -> Vec<Cost> {
    let (mut marks, mut events) = (Vec::new(), Vec::new());
    let mut decoder =
        Decoder::new(std::io::BufReader::new(std::fs::File::open(path).expect("there")));
    while let Some(step) = decoder.step().expect("a trace") {
        let TraceStep::Events(some) = step else { continue };
        for event in some {
            match event.kind {
                Some(EventKind::ChunkHit) if event.code == MARK => {
                    marks.push((event.offset, event.begin_ns))
                }
                Some(EventKind::ChunkDecode | EventKind::ChunkScatter) => events.push(*event),
                _ => {}
            }
        }
    }
    assert_eq!(decoder.lost(), 0);
    marks.sort_unstable();
    let mut costs = vec![Cost::default(); marks.len()];
    for event in events {
        let number = marks.iter().rposition(|(_, from)| *from <= event.begin_ns).expect("a mark");
        let cost = &mut costs[number];
        match event.kind {
            Some(EventKind::ChunkDecode) => {
                cost.chunks_decoded += 1;
                cost.bytes_inflated += event.offset;
            }
            _ => cost.bytes_copied += event.bytes,
        }
    }
    costs
}

/// A code that no event of reads has.
const MARK: i32 = 4711;

#[test]
fn sixty_pairs_cost_what_the_rules_say() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace");
    zonda_trace::record_to(&path);
    assert!(zonda_trace::on());
    let accesses = accesses();
    let (mut names, mut asked, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    for chunk in CHUNKS {
        let made = Made::new(Recipe::new(&EXTENT, &chunk, ELEM, &[9999]), Flip::default());
        for (access, requests) in &accesses {
            for threads in THREADS {
                zonda_trace::instant(EventKind::ChunkHit, || Args {
                    offset: names.len() as u64,
                    code: MARK,
                    ..Args::default()
                });
                names.push(format!("chunks {chunk:?}, {access}, {threads} threads"));
                let elems = |Request(_, count, _): &Request| count.iter().product::<usize>();
                asked.push((requests.iter().map(elems).sum::<usize>() * ELEM) as u64);
                expected.push(predicted(chunk, requests));
                read(&made, requests, threads);
            }
        }
    }
    assert_eq!(names.len(), 60 * THREADS.len());
    zonda_trace::flush();
    let found = counted(path);
    assert_eq!(found.len(), names.len());
    let mut wrong = Vec::new();
    for (((name, asked), expected), found) in names.iter().zip(&asked).zip(&expected).zip(&found) {
        // With threads to spare a chunk may be decoded ahead or by its request, as it comes: then it is copied, or not.
        let may_copy = name.ends_with(" 1 threads") || found.bytes_copied > *asked;
        let copied = if may_copy { found.bytes_copied } else { expected.bytes_copied };
        let found = &Cost { bytes_copied: copied, ..*found };
        if found != expected {
            wrong.push(format!("{name}: {found:?}, and not {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}\n{} of {}", wrong.join("\n"), wrong.len(), names.len());
}
