//! Filters against the chunks that the reference stored, against themselves, and against the
//! reference alive.

mod container;

use container::{Array, Chunk, Random, kept, pipeline, read, spec, write};
use zonda_chunk::FilterSpec;
use zonda_chunk::filter::{Decoded, FilterBuffers, shuffle};

/// Each filter as users apply it, for chunks of `bytes` bytes.
fn pipelines(size: usize, bytes: usize) -> Vec<(String, Vec<FilterSpec>)> {
    let (size, bytes) = (size as u32, bytes as u32);
    let on = |id, params: &[u32]| spec(id, true, params.to_vec());
    let shuffled = || on(2, &[size]);
    let mut all = vec![
        ("shuffle".to_string(), vec![shuffled()]),
        ("fletcher".into(), vec![spec(3, false, vec![])]),
        ("fletcher-shuffle".into(), vec![spec(3, false, vec![]), shuffled()]),
        ("lzf".into(), vec![on(32000, &[4, 0x105, bytes])]),
        ("shuffle-lzf".into(), vec![shuffled(), on(32000, &[4, 0x105, bytes])]),
        ("lz4".into(), vec![on(32004, &[0])]),
        ("lz4-blocks".into(), vec![on(32004, &[500])]),
        ("bitshuffle".into(), vec![on(32008, &[0, 4, size, 0, 0])]),
        ("bitshuffle-lz4".into(), vec![on(32008, &[0, 4, size, 0, 2])]),
        ("bitshuffle-lz4-136".into(), vec![on(32008, &[0, 4, size, 136, 2])]),
        ("bitshuffle-zstd".into(), vec![on(32008, &[0, 4, size, 0, 3, 3])]),
    ];
    for level in 0..=9 {
        all.push((format!("deflate-{level}"), vec![on(1, &[level])]));
        let three = vec![shuffled(), on(1, &[level]), spec(3, false, vec![])];
        all.push((format!("shuffle-deflate-{level}-fletcher"), three));
        if level > 0 {
            all.push((format!("bzip2-{level}"), vec![on(307, &[level])]));
        }
        for codec in 0..6 {
            for shuffle in 0..3 {
                let params = [2, 2, size, bytes, level, shuffle, codec];
                all.push((format!("blosc-{codec}-{shuffle}-{level}"), vec![on(32001, &params)]));
            }
        }
    }
    for level in [-7i32, -1, 1, 3, 9, 19] {
        all.push((format!("zstd-{level}"), vec![on(32015, &[level as u32])]));
    }
    all
}

#[test]
fn what_the_reference_stored_is_read() {
    let (arrays, chunks) = kept();
    let mut scratch = FilterBuffers::default();
    for chunk in &chunks {
        let Array { elem_size, raw } = &arrays[chunk.array];
        let made = pipeline(&chunk.specs, *elem_size, raw.len());
        let mut out = vec![0xaa; raw.len()];
        made.decode(&chunk.stored, chunk.mask, &mut scratch, &mut out)
            .unwrap_or_else(|error| panic!("{}: {error}", chunk.name));
        assert!(out == *raw, "{}: other bytes", chunk.name);
        // The same in runs of elements, as a hyperslab takes them.
        let decoded = made.decode_shuffled(&chunk.stored, chunk.mask, &mut scratch).unwrap();
        match decoded {
            Decoded::Plain(bytes) => assert!(bytes == raw, "{}: other plain bytes", chunk.name),
            Decoded::Shuffled { planes, elem_size } => {
                assert_eq!(chunk.specs[0].id, 2);
                let elems = raw.len() / elem_size;
                for (first, n) in [(0, elems), (0, 0), (7, 1), (elems / 3, elems / 2), (elems, 0)] {
                    let mut run = vec![0xaa; n * elem_size];
                    shuffle::unshuffle_run(planes, elem_size, first, n, &mut run);
                    assert!(run == raw[first * elem_size..][..n * elem_size], "{}", chunk.name);
                }
            }
        }
    }
    assert!(chunks.iter().any(|chunk| chunk.mask == 2), "a chunk that skipped its second filter");
}

#[test]
fn what_is_encoded_is_decoded() {
    let mut random = Random(7);
    let (mut scratch, mut stored) = (FilterBuffers::default(), Vec::new());
    let mut masked = 0;
    for size in [1usize, 2, 3, 4, 5, 7, 8, 12, 16, 17, 24, 300] {
        for elems in [0usize, 1, 2, 7, 8, 9, 127, 128, 129, 1000, 1024] {
            let raw = random.bytes(size * elems);
            for (name, specs) in pipelines(size, raw.len()) {
                if size == 300 && name.ends_with(['2', '3', '4', '6', '7', '8']) {
                    continue;
                }
                let made = pipeline(&specs, size, raw.len());
                let mask = made
                    .encode(&raw, &mut scratch, &mut stored)
                    .unwrap_or_else(|error| panic!("{name}, {elems} of {size}: {error}"));
                masked += u32::from(mask != 0);
                let mut out = vec![0xaa; raw.len()];
                made.decode(&stored, mask, &mut scratch, &mut out)
                    .unwrap_or_else(|error| panic!("{name}, {elems} of {size}: {error}"));
                assert!(out == raw, "{name}, {elems} of {size}: other bytes");
                let again = made.decode_shuffled(&stored, mask, &mut scratch).unwrap();
                if let Decoded::Plain(bytes) = again {
                    assert!(bytes == raw, "{name}, {elems} of {size}: other plain bytes");
                }
            }
        }
    }
    assert!(masked > 100, "lzf and blosc leave what does not become shorter: {masked}");
}

#[test]
fn blocks_of_large_chunks_are_put_together() {
    let mut random = Random(11);
    let (mut scratch, mut stored) = (FilterBuffers::default(), Vec::new());
    for (size, elems) in [(4, 300_000), (2, 520_001), (8, 140_003)] {
        let raw = random.bytes(size * elems);
        for (name, specs) in pipelines(size, raw.len()) {
            if name.starts_with("blosc") && !name.ends_with(['1', '5'])
                || name.starts_with("bzip2") && !name.ends_with('1')
                || name.ends_with("19")
            {
                continue;
            }
            let made = pipeline(&specs, size, raw.len());
            let mask = made.encode(&raw, &mut scratch, &mut stored).unwrap();
            let mut out = vec![0xaa; raw.len()];
            made.decode(&stored, mask, &mut scratch, &mut out)
                .unwrap_or_else(|error| panic!("{name}, {elems} of {size}: {error}"));
            assert!(out == raw, "{name}, {elems} of {size}: other bytes");
        }
    }
}

/// Every prefix and many changed bytes of every kind of chunk: a result or an error, and no bytes
/// beside the chunk's.
#[test]
fn damaged_chunks_end_in_errors() {
    let (arrays, chunks) = kept();
    let mut random = Random(3);
    let mut scratch = FilterBuffers::default();
    let (mut errors, mut same) = (0, 0);
    for chunk in chunks.iter().filter(|chunk| chunk.stored.len() < 2000) {
        let Array { elem_size, raw } = &arrays[chunk.array];
        let made = pipeline(&chunk.specs, *elem_size, raw.len());
        let mut out = vec![0; raw.len()];
        let mut attempt = |stored: &[u8]| {
            let result = made.decode(stored, chunk.mask, &mut scratch, &mut out);
            let shuffled = made.decode_shuffled(stored, chunk.mask, &mut scratch);
            assert_eq!(result.is_ok(), shuffled.is_ok(), "{}", chunk.name);
            errors += u32::from(result.is_err());
            same += u32::from(result.is_ok());
        };
        for len in (0..chunk.stored.len()).step_by(1 + chunk.stored.len() / 100) {
            attempt(&chunk.stored[..len]);
        }
        for _ in 0..60 {
            let mut stored = chunk.stored.clone();
            for _ in 0..1 + random.below(3) {
                // The beginning is where the headers are.
                let end = if random.below(2) == 0 { stored.len() } else { stored.len().min(40) };
                let at = random.below(end);
                stored[at] = match random.below(4) {
                    0 => 0,
                    1 => 0xff,
                    2 => stored[at] ^ 1 << random.below(8),
                    _ => random.next() as u8,
                };
            }
            attempt(&stored);
        }
    }
    assert!(errors > 10_000 && same > 500, "{errors} errors, {same} without");
}

/// What Zonda encodes is read by the reference, and what the reference encodes by Zonda, for chunks
/// larger than those that are kept.
#[test]
fn reference_alive() {
    let Some(python) = std::env::var_os("ZONDA_PYTHON") else {
        eprintln!("skipped: ZONDA_PYTHON names no Python with h5py and hdf5plugin");
        return;
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference.py");
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let done = std::process::Command::new(&python).arg(script).args(args).output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(done.status.success(), "{said}{}", String::from_utf8_lossy(&done.stderr));
        said
    };

    let made = folder.path().join("made.bin");
    run(&["make", made.to_str().unwrap(), "23"]);
    let (arrays, chunks) = read(&std::fs::read(&made).unwrap());
    let mut scratch = FilterBuffers::default();
    for chunk in &chunks {
        let Array { elem_size, raw } = &arrays[chunk.array];
        let mut out = vec![0xaa; raw.len()];
        pipeline(&chunk.specs, *elem_size, raw.len())
            .decode(&chunk.stored, chunk.mask, &mut scratch, &mut out)
            .unwrap_or_else(|error| panic!("{}: {error} ({})", chunk.name, made.display()));
        assert!(out == *raw, "{}: other bytes ({})", chunk.name, made.display());
    }

    // Fewer elements than Blosc splits into streams by byte.
    let mut arrays = arrays;
    arrays.push(Array { elem_size: 4, raw: (0..400).map(|i| i as u8 / 40).collect() });
    let mut ours = Vec::new();
    for (array, Array { elem_size, raw }) in arrays.iter().enumerate() {
        for (name, specs) in pipelines(*elem_size, raw.len()) {
            let mut stored = Vec::new();
            let made = pipeline(&specs, *elem_size, raw.len());
            let mask = made.encode(raw, &mut scratch, &mut stored).unwrap();
            ours.push(Chunk { name: format!("{array}-{name}"), array, mask, specs, stored });
        }
    }
    let written = folder.path().join("written.bin");
    std::fs::write(&written, write(&arrays, &ours)).unwrap();
    let said = run(&["check", written.to_str().unwrap()]);
    assert!(said.contains(&format!("checked {}, 0 bad", ours.len())), "{said}");
}
