//! Filters against the reference library: chunks that it wrote, kept in `data/` and made afresh,
//! and what it reads from chunks written here. `random_chunks.py` is its side; without the variable
//! `ZONDA_PYTHON`, an interpreter with h5py and hdf5plugin, only the kept chunks are tested.

use std::io::Write;
use std::process::{Command, Stdio};

use zonda_chunk::filter::{ChunkShape, FilterBuffers, FilterError, FilterSpec, Pipeline};

struct Case {
    name: String,
    pipeline: Pipeline,
    stored: Vec<u8>,
    raw: Vec<u8>,
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.chars().map(|c| c.to_digit(16).expect("hexadecimal") as u8).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn cases(lines: &str) -> Vec<Case> {
    lines
        .lines()
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let [name, id, params, dims, elem_size, stored, raw] = fields[..] else {
                panic!("seven fields: {line}");
            };
            let id = id.parse().unwrap();
            let params =
                params.split(',').filter(|p| !p.is_empty()).map(|p| p.parse().unwrap()).collect();
            let dims = dims.split(',').map(|dim| dim.parse().unwrap()).collect();
            let shape = ChunkShape { dims, elem_size: elem_size.parse().unwrap() };
            let spec = FilterSpec { id, optional: true, name: String::new(), params };
            Case {
                name: format!("{name} {spec:?} {shape:?}"),
                pipeline: Pipeline::new(&[spec], shape, &|_| None),
                stored: bytes(stored),
                raw: bytes(raw),
            }
        })
        .collect()
}

fn decode(case: &Case, stored: &[u8]) -> Result<Vec<u8>, FilterError> {
    let mut out = vec![0x55; case.raw.len()];
    case.pipeline.decode(stored, 0, &mut FilterBuffers::default(), &mut out)?;
    Ok(out)
}

/// The chunk as it would be stored, or none where the filter says that it does not pay.
fn encode(case: &Case) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mask = case.pipeline.encode(&case.raw, &mut FilterBuffers::default(), &mut out);
    let mask = mask.unwrap_or_else(|error| panic!("{}: {error}", case.name));
    (mask == 0).then_some(out)
}

fn assert_decodes(cases: &[Case]) {
    for case in cases {
        match decode(case, &case.stored) {
            Ok(out) => assert!(
                out == case.raw,
                "{}\nstored {}\nwanted {}\ngot    {}",
                case.name,
                hex(&case.stored),
                hex(&case.raw),
                hex(&out)
            ),
            Err(error) => panic!("{}: {error}\nstored {}", case.name, hex(&case.stored)),
        }
    }
}

/// Runs the reference's side on `count` cases.
fn python(what: &str, filter: &str, count: usize, seed: u64, input: &str) -> Option<String> {
    let Some(python) = std::env::var_os("ZONDA_PYTHON") else {
        eprintln!("skipped: ZONDA_PYTHON is not set");
        return None;
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/random_chunks.py");
    let (count, seed) = (count.to_string(), seed.to_string());
    let mut child = Command::new(python)
        .args([script, what, filter, &count, &seed])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the interpreter starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(input.as_bytes()).expect("the script reads");
    drop(stdin);
    let output = child.wait_with_output().expect("the script ends");
    assert!(output.status.success(), "random_chunks.py {what} {filter} {count} {seed} failed");
    Some(String::from_utf8(output.stdout).expect("text"))
}

/// Chunks of the reference are decoded; chunks encoded here are read by the reference as they are
/// decoded here. Where `exact`, that is what they were made from.
fn both_ways(filter: &str, count: usize, exact: bool) {
    let seed = 20;
    let Some(made) = python("make", filter, count, seed, "") else { return };
    let cases = cases(&made);
    assert!(cases.len() > count / 2, "{filter}: {} cases of {count}", cases.len());
    assert_decodes(&cases);
    let mut input = String::new();
    let mut expected = Vec::new();
    let mut same = 0;
    for case in &cases {
        let Some(stored) = encode(case) else { continue };
        let out = decode(case, &stored).unwrap_or_else(|error| panic!("{}: {error}", case.name));
        assert!(!exact || out == case.raw, "{}: another chunk", case.name);
        same += usize::from(stored == case.stored);
        let key = case.name.split(' ').next().unwrap_or_default();
        input += &format!("{key}\t{}\n", hex(&stored));
        expected.push((key, case, stored, out));
    }
    assert!(expected.len() > count / 4, "{filter}: {} encoded of {count}", expected.len());
    let Some(read) = python("check", filter, count, seed, &input) else { return };
    let mut lines = read.lines();
    for (key, case, stored, out) in &expected {
        let line = lines.next().unwrap_or_default();
        assert!(
            line == format!("{key}\t{}", hex(out)),
            "{}\nstored {}\ntheirs {}\nhere   {key}\t{}\nread   {line}",
            case.name,
            hex(stored),
            hex(&case.stored),
            hex(out)
        );
    }
    eprintln!("{filter}: {same} of {} encoded to the reference's bytes", expected.len());
}

#[test]
fn nbit_chunks_that_were_kept() {
    assert_decodes(&cases(include_str!("data/nbit.tsv")));
}

#[test]
fn nbit_both_ways() {
    both_ways("nbit", 400, true);
}

#[test]
fn scaleoffset_chunks_that_were_kept() {
    assert_decodes(&cases(include_str!("data/scaleoffset.tsv")));
}

#[test]
fn scaleoffset_both_ways() {
    both_ways("scaleoffset", 400, false);
}

#[test]
fn szip_chunks_that_were_kept() {
    assert_decodes(&cases(include_str!("data/szip.tsv")));
}

#[test]
fn szip_both_ways() {
    both_ways("szip", 400, true);
}

#[test]
fn zfp_chunks_that_were_kept() {
    assert_decodes(&cases(include_str!("data/zfp.tsv")));
}

#[test]
fn zfp_both_ways() {
    both_ways("zfp", 400, false);
}

#[test]
fn blosc2_chunks_that_were_kept() {
    assert_decodes(&cases(include_str!("data/blosc2.tsv")));
}

#[test]
fn blosc2_both_ways() {
    both_ways("blosc2", 400, false);
}
