//! Random datasets of DAP2: documents and bodies come back as they were written, and broken ones are errors or other values, never anything worse.

use std::io::Read;

use fastrand::Rng;
use zonda_dap::DapError;
use zonda_dap::dap2::body::{Body, Visitor};
use zonda_dap::dap2::constraint::{
    Condition, Constraint, Function, Projection, Segment, Slice, Value,
};
use zonda_dap::dap2::das::{Attribute, Entry, Set};
use zonda_dap::dap2::dds::{Atomic, Dds, DimDecl, Kind};
use zonda_dap::dap2::encode::Encoder;

fn name(rng: &mut Rng) -> String {
    const LETTERS: &[char] =
        &['a', 'b', 'Z', '0', '_', '-', '.', '%', ' ', '{', '"', 'é', '[', '#', '/'];
    let n = rng.usize(1..6);
    let name: String = (0..n).map(|_| LETTERS[rng.usize(0..LETTERS.len())]).collect();
    // What an escape could be is one in the document, and decoded.
    let name = name.replace('%', "%z");
    // Of what is escaped only some is decoded: these names are as they are found in a document.
    let name = name.replace(' ', "%20").replace('{', "%7B").replace('[', "%5B");
    if name.starts_with('#') { format!("x{name}") } else { name }
}

fn fields(rng: &mut Rng, dds: &mut Dds, parent: usize, depth: usize) {
    let mut taken = Vec::new();
    for _ in 0..rng.usize(1..5) {
        let name = name(rng);
        if taken.contains(&name) {
            continue;
        }
        taken.push(name.clone());
        let dims = |rng: &mut Rng| -> Vec<DimDecl> {
            let n = rng.usize(0..3);
            (0..n)
                .map(|at| DimDecl {
                    name: rng.bool().then(|| format!("d{at}")),
                    len: rng.u64(0..4),
                })
                .collect()
        };
        let atomic = Kind::Atomic(Atomic::ALL[rng.usize(0..9)]);
        match rng.u8(0..10) {
            0 if depth < 4 => {
                let dims = dims(rng);
                let id = dds.add(parent, name, Kind::Structure, dims);
                fields(rng, dds, id, depth + 1);
            }
            1 if depth < 4 => {
                let id = dds.add(parent, name, Kind::Sequence, Vec::new());
                fields(rng, dds, id, depth + 1);
            }
            2 => {
                let id = dds.add(parent, name, Kind::Grid, Vec::new());
                let dims = dims(rng);
                dds.add(id, "array", atomic, dims.clone());
                for (at, dim) in dims.into_iter().enumerate() {
                    dds.add(id, format!("map{at}"), Kind::Atomic(Atomic::Float64), vec![dim]);
                }
            }
            _ => {
                let dims = dims(rng);
                dds.add(parent, name, atomic, dims);
            }
        }
    }
}

fn values(rng: &mut Rng, dds: &Dds, id: usize, out: &mut Encoder<'_>) -> Result<(), DapError> {
    for child in &dds.node(id).children {
        let node = dds.node(*child);
        let n: u64 = node.dims.iter().map(|dim| dim.len).product();
        if !node.dims.is_empty() {
            out.count(*child, n)?;
        }
        match node.kind {
            Kind::Atomic(atomic) if atomic.is_text() => {
                for _ in 0..n {
                    let text: Vec<u8> = (0..rng.usize(0..9)).map(|_| rng.u8(..)).collect();
                    out.text(*child, &text)?;
                }
            }
            Kind::Atomic(atomic) => {
                let all: Vec<u8> = (0..n * atomic.size() as u64).map(|_| rng.u8(..)).collect();
                let mut rest = &all[..];
                while !rest.is_empty() {
                    let (now, later) =
                        rest.split_at((rng.usize(1..4) * atomic.size()).min(rest.len()));
                    out.numbers(*child, now)?;
                    rest = later;
                }
            }
            Kind::Sequence => {
                for _ in 0..rng.usize(0..3) {
                    out.record(*child)?;
                    values(rng, dds, *child, out)?;
                }
                out.end(*child)?;
            }
            _ => {
                for _ in 0..n {
                    values(rng, dds, *child, out)?;
                }
            }
        }
    }
    Ok(())
}

/// Gives a few bytes a call.
struct Drips<'a>(&'a [u8], Rng);

impl Read for Drips<'_> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let n = self.1.usize(1..40).min(self.0.len()).min(buf.len());
        buf[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        Ok(n)
    }
}

fn again(body: &mut dyn Read) -> Result<Vec<u8>, DapError> {
    let body = Body::open(body)?;
    let dds = body.dds().clone();
    let mut out = Vec::new();
    body.values(&mut Encoder::new(&dds, &mut out)?)?;
    Ok(out)
}

#[test]
fn bodies_come_back_and_broken_ones_do_no_harm() {
    let mut n_broken = 0;
    for seed in 0..400 {
        let mut rng = Rng::with_seed(seed);
        let mut dds = Dds::new(name(&mut rng));
        fields(&mut rng, &mut dds, 0, 1);
        assert_eq!(Dds::decode(dds.encode().as_bytes()).unwrap(), dds, "{seed}");
        let mut bytes = Vec::new();
        values(&mut rng, &dds, 0, &mut Encoder::new(&dds, &mut bytes).unwrap()).unwrap();
        let written =
            again(&mut Drips(&bytes, rng.fork())).unwrap_or_else(|error| panic!("{seed}: {error}"));
        assert!(written == bytes, "{seed}");
        let values = dds.encode().len() + "\nData:\n".len();
        for _ in 0..20 {
            let cut = rng.usize(0..bytes.len());
            assert!(
                again(&mut &bytes[..cut]).is_err(),
                "{seed}: {cut} of {}, values from {values}",
                bytes.len()
            );
            let mut flipped = bytes.clone();
            flipped[cut] ^= 1 << rng.u8(0..8);
            n_broken += usize::from(again(&mut &flipped[..]).is_err());
        }
    }
    assert!(n_broken > 1000, "{n_broken}");
}

fn set(rng: &mut Rng, depth: usize) -> Set {
    let entries = (0..rng.usize(0..5))
        .map(|_| {
            if depth < 4 && rng.u8(0..3) == 0 {
                return Entry::Set(Set { name: name(rng), ..set(rng, depth + 1) });
            }
            let atomic = Atomic::ALL[rng.usize(0..9)];
            let value = |rng: &mut Rng| match atomic.is_text() {
                true => {
                    ["", "a b", "\\\"x\\\"", "\\\\", "{};,#"][rng.usize(0..5)].as_bytes().to_vec()
                }
                false => ["1", "-2.5e-3", "NaN", "0x1"][rng.usize(0..4)].as_bytes().to_vec(),
            };
            let values = (0..rng.usize(1..4)).map(|_| value(rng)).collect();
            Entry::Attribute(Attribute { name: name(rng), atomic, values })
        })
        .collect();
    Set { name: String::new(), entries }
}

#[test]
fn attributes_come_back() {
    for seed in 0..500 {
        let set = set(&mut Rng::with_seed(seed), 0);
        assert_eq!(Set::decode(&set.encode()).unwrap(), set, "{seed}");
    }
}

fn path(rng: &mut Rng) -> Vec<Segment> {
    let slice = |rng: &mut Rng| {
        let first = rng.u64(0..9);
        Slice { first, stride: rng.u64(1..3), last: first + rng.u64(0..9) }
    };
    let segment = |rng: &mut Rng| Segment {
        name: ["a", "b-c", "d%20e", "é", "x!y"][rng.usize(0..5)].into(),
        slices: (0..rng.usize(0..3)).map(|_| slice(rng)).collect(),
    };
    (0..rng.usize(1..4)).map(|_| segment(rng)).collect()
}

fn value(rng: &mut Rng, depth: usize) -> Value {
    match rng.u8(0..4) {
        0 => Value::Number(["1", "-2.5", "3e10"][rng.usize(0..3)].into()),
        1 => Value::Text(["", "a\"b", "\\", "&,()"][rng.usize(0..4)].into()),
        2 if depth < 3 => Value::Function(function(rng, depth + 1)),
        _ => Value::Path(path(rng)),
    }
}

fn function(rng: &mut Rng, depth: usize) -> Function {
    Function {
        name: "f".into(),
        arguments: (0..rng.usize(0..3)).map(|_| value(rng, depth)).collect(),
    }
}

#[test]
fn constraints_come_back() {
    for seed in 0..1000 {
        let mut rng = Rng::with_seed(seed);
        let projections = (0..rng.usize(0..3))
            .map(|_| match rng.u8(0..4) {
                0 => Projection::Function(function(&mut rng, 0)),
                _ => Projection::Path(path(&mut rng)),
            })
            .collect();
        let conditions = (0..rng.usize(0..3))
            .map(|_| match rng.u8(0..4) {
                0 => Condition::Function(function(&mut rng, 0)),
                _ => Condition::Compare {
                    left: value(&mut rng, 0),
                    relation: ["=", "!=", "<", "<=", ">", ">=", "=~"][rng.usize(0..7)],
                    right: (0..rng.usize(1..3)).map(|_| value(&mut rng, 0)).collect(),
                },
            })
            .collect();
        let constraint = Constraint { projections, conditions };
        let written = constraint.to_string();
        // A step makes no difference to a slice of one element.
        let read =
            Constraint::decode(&written).unwrap_or_else(|error| panic!("{written}: {error}"));
        assert_eq!(read.to_string(), written, "{seed}");
        assert_eq!(read, constraint, "{seed}");
    }
}
