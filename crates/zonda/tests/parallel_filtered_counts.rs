//! What puts through filters cost with many ranks: messages of a rank grow with the logarithm of their number, but for those that carry parts of
//! chunks to their owners; and no more bytes go there than owners do not have themselves. How long chunks have become all ranks are told at once.
//!
//! 1,024 ranks are for `ZONDA_LONG=1`.

use std::path::Path;
use std::sync::Arc;

use zonda::team::{Kind, Team, Traffic, threads};
use zonda::{CreateOptions, Dataset, Format, Hyperslab, MemType, Reserve, StorageRequest, VarId};

/// Elements of a rank.
const EACH: usize = 50;

/// What a rank sends in a put of a record that is one chunk for so many ranks, and in the commit.
fn live(team: &threads::Threads, path: &Path, ranks_of_chunk: usize) -> [Traffic; 2] {
    let (rank, n) = (team.rank(), team.size());
    let of_team: Arc<dyn Team> = Arc::new(team.clone());
    let options = CreateOptions { format: Format::NetCdf4, ..CreateOptions::default() };
    let file = Dataset::create_parallel(of_team, path, &options).unwrap();
    let time = file.def_dim(b"time", 0).unwrap();
    let x = file.def_dim(b"x", EACH * n).unwrap();
    let var = file.def_var(b"v", 4, &[time.0, x.0]).unwrap();
    let chunk = [1, EACH * ranks_of_chunk];
    file.def_var_chunking(var.into(), StorageRequest::Chunked, Some(&chunk)).unwrap();
    file.def_var_deflate(var.into(), true, Some(1)).unwrap();
    file.enddef(Reserve::Default).unwrap();
    let put = |record: usize| {
        let bytes = vec![7; EACH * 4];
        let (start, count) = ([record, EACH * rank], [1, EACH]);
        let slab = Hyperslab { start: &start, count: &count, stride: None };
        let done = file.put(VarId(0), &slab, Some(MemType::I32), &bytes).unwrap();
        assert_eq!(done.out_of_range, 0);
    };
    put(0);
    let before = team.traffic();
    put(1);
    let between = team.traffic();
    file.sync().unwrap();
    let sent = [between.since(&before), team.traffic().since(&between)];
    file.close().unwrap();
    sent
}

#[test]
fn messages_grow_with_the_logarithm_and_only_parts_of_others_are_sent() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.nc");
    let is_long = std::env::var_os("ZONDA_LONG").is_some_and(|value| value == "1");
    let sizes = [16, 64, 256, 1024];
    for n in sizes.into_iter().filter(|n| is_long || *n < 1024) {
        let log = u64::from(usize::ilog2(n));
        for ranks_of_chunk in [1, 4, 16] {
            let sent = threads::all(n, |team| live(team, &path, ranks_of_chunk));
            let what = format!("{n} ranks, {ranks_of_chunk} to a chunk");
            let most = |call: usize, which: &dyn Fn(&Traffic) -> u64| {
                sent.iter().map(|calls| which(&calls[call])).max().unwrap()
            };
            // To agree; that it is longer; that all is written. What each puts and how long chunks have become: few bytes by a reduction, others by a
            // gather and a broadcast.
            let n_chunks = n / ranks_of_chunk;
            let told = [8 + 48 * n, 8 * n + 12 * n_chunks];
            let long = told.iter().filter(|&&bytes| bytes > 4096).count() as u64;
            let [reductions, gathers, broadcasts] = [Kind::Reduce, Kind::Gather, Kind::Broadcast]
                .map(|kind| most(0, &|sent| sent.of(kind).steps));
            assert_eq!([reductions, gathers, broadcasts], [5 - long, long, long], "{what}");
            let exchanges = most(0, &|sent| sent.of(Kind::Exchange).steps);
            assert_eq!(exchanges, u64::from(ranks_of_chunk > 1), "{what}");
            let others = |sent: &Traffic| sent.total().messages - sent.of(Kind::Exchange).messages;
            let messages = most(0, &others);
            assert!(messages <= 8 * log + 2, "{what}: {messages}");
            let shipped: u64 = sent.iter().map(|calls| calls[0].of(Kind::Exchange).bytes).sum();
            let foreign = EACH * 4 * (n - n / ranks_of_chunk);
            let overhead = 200 * n as u64 * u64::from(ranks_of_chunk > 1);
            assert!(shipped <= foreign as u64 + overhead, "{what}: {shipped}, not {foreign}");
            // Nothing waits.
            assert_eq!(most(1, &|sent| sent.of(Kind::Gather).steps), 0, "{what}");
            eprintln!("{what}: {messages} messages of a rank, {shipped} bytes to owners");
        }
    }
}
