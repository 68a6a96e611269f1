//! Datasets behind a server that heeds constraints, in the ways that servers have: whatever is asked for, the values are those that plain arithmetic gives.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::{Arc, Mutex};

use zonda_dap::dap2::body::Visitor;
use zonda_dap::dap2::constraint::{Constraint, Projection, Slice};
use zonda_dap::dap2::dds::{Atomic, Dds, DimDecl, Kind};
use zonda_dap::dap2::encode::Encoder;
use zonda_dap::dap2::{Dap2, open};
use zonda_dap::{Asked, DapError, Part, Protocol, Request, Server, Sink};
use zonda_format::OwnedValues;
use zonda_storage::{RemoteFailure, StorageError};

const DDS: &str = "Dataset {
    Byte b;
    Int16 top[y=4][6];
    String text[y=4];
    Grid {
     ARRAY:
        Float32 SST[t=5][x=3];
     MAPS:
        Int32 t[t=5];
        Float64 x[x=3];
    } SST;
    Structure {
        UInt16 u;
        Structure {
            Float64 f[2];
            Url l;
        } in[3];
    } st[2];
    Structure {
        Sequence {
            String s;
            Int32 i;
            Float32 a[2][3];
        } q;
    } around;
} made;";

const DAS: &str = "Attributes { NC_GLOBAL { String title \"made\"; } top { Int16 _FillValue 7; } SST { Float32 scale 2; } }";

#[derive(Clone, Copy, Debug, PartialEq)]
enum Manner {
    /// As libdap has it: a grid with some of its fields is a structure.
    Structures,
    /// Fields of grids come without their grid.
    Flat,
    /// All values of each variable come, whatever slices are asked for.
    Whole,
}

#[derive(Debug)]
struct Made {
    dds: Dds,
    records: Mutex<u64>,
    manner: Manner,
    asked: Mutex<Vec<String>>,
}

impl Made {
    fn new(manner: Manner) -> Arc<Made> {
        let dds = Dds::decode(DDS.as_bytes()).unwrap();
        Arc::new(Made { dds, records: Mutex::new(4), manner, asked: Mutex::new(Vec::new()) })
    }
}

/// Bytes that `%HH` stand for.
fn unescaped(query: &str) -> String {
    let mut out = Vec::new();
    let mut rest = query.as_bytes();
    while let [first, after @ ..] = rest {
        if *first == b'%' {
            out.push(u8::from_str_radix(std::str::from_utf8(&after[..2]).unwrap(), 16).unwrap());
            rest = &after[2..];
        } else {
            out.push(*first);
            rest = after;
        }
    }
    String::from_utf8(out).unwrap()
}

/// The value of an element of a variable, as its place in all of the dataset decides.
fn number(name: &str, place: u64) -> u64 {
    name.bytes().map(u64::from).sum::<u64>() % 50 + place
}

fn text(name: &str, place: u64) -> String {
    format!("{name}\\t{}", number(name, place))
}

fn bytes(atomic: Atomic, value: u64) -> Vec<u8> {
    match atomic {
        Atomic::Byte => vec![value as u8],
        Atomic::Int16 | Atomic::UInt16 => (value as u16).to_ne_bytes().to_vec(),
        Atomic::Int32 | Atomic::UInt32 => (value as u32).to_ne_bytes().to_vec(),
        Atomic::Float32 => (value as f32).to_ne_bytes().to_vec(),
        Atomic::Float64 => (value as f64).to_ne_bytes().to_vec(),
        Atomic::String | Atomic::Url => unreachable!("texts are no numbers"),
    }
}

/// A constrained dataset: the node of the whole one for each node, and slices.
struct Chosen {
    dds: Dds,
    of: Vec<(usize, Vec<Slice>)>,
}

impl Made {
    fn whole(&self, id: usize) -> Vec<Slice> {
        let node = self.dds.node(id);
        let lens = node.dims.iter().map(|dim| dim.len);
        let records = (node.kind == Kind::Sequence).then(|| *self.records.lock().unwrap());
        records
            .into_iter()
            .chain(lens)
            .map(|len| Slice { first: 0, stride: 1, last: len.max(1) - 1 })
            .collect()
    }

    fn leaves(&self, id: usize, out: &mut Vec<usize>) {
        match self.dds.node(id).kind {
            Kind::Atomic(_) => out.push(id),
            _ => self.dds.node(id).children.iter().for_each(|child| self.leaves(*child, out)),
        }
    }

    fn choose(&self, query: &str) -> Chosen {
        let constraint = Constraint::decode(query).unwrap();
        let mut leaves = Vec::new();
        let mut slices: BTreeMap<usize, Vec<Slice>> = BTreeMap::new();
        for projection in &constraint.projections {
            let Projection::Path(path) = projection else { panic!("{query}") };
            let mut at = 0;
            for segment in path {
                at = self
                    .dds
                    .child(at, &segment.name)
                    .unwrap_or_else(|| panic!("{query}: {}", segment.name));
                if segment.slices.is_empty()
                    || self.manner == Manner::Whole && self.dds.node(at).kind != Kind::Sequence
                {
                    continue;
                }
                let node = self.dds.node(at);
                if node.kind == Kind::Grid {
                    slices.insert(node.children[0], segment.slices.clone());
                    for (map, slice) in node.children[1..].iter().zip(&segment.slices) {
                        slices.insert(*map, vec![*slice]);
                    }
                } else {
                    slices.insert(at, segment.slices.clone());
                }
            }
            self.leaves(at, &mut leaves);
        }
        if constraint.projections.is_empty() {
            self.leaves(0, &mut leaves);
        }
        let mut chosen = Chosen { dds: Dds::new("made"), of: vec![(0, Vec::new())] };
        self.add(0, 0, &leaves, &slices, &mut chosen);
        chosen
    }

    fn add(
        &self,
        from: usize,
        to: usize,
        leaves: &[usize],
        slices: &BTreeMap<usize, Vec<Slice>>,
        chosen: &mut Chosen,
    ) {
        for id in self.dds.node(from).children.clone() {
            let mut below = Vec::new();
            self.leaves(id, &mut below);
            let n_chosen = below.iter().filter(|leaf| leaves.contains(leaf)).count();
            if n_chosen == 0 {
                continue;
            }
            let node = self.dds.node(id);
            let is_part = node.kind == Kind::Grid && n_chosen < below.len();
            if is_part && self.manner == Manner::Flat {
                self.add(id, to, leaves, slices, chosen);
                continue;
            }
            let own = slices.get(&id).cloned().unwrap_or_else(|| self.whole(id));
            let dims = node.dims.iter().zip(&own);
            let dims = dims
                .map(|(dim, slice)| DimDecl { name: dim.name.clone(), len: slice.count() })
                .collect();
            let kind = if is_part { Kind::Structure } else { node.kind };
            let new = chosen.dds.add(to, &node.name, kind, dims);
            chosen.of.push((id, own));
            assert_eq!(chosen.of.len(), new + 1);
            self.add(id, new, leaves, slices, chosen);
        }
    }

    /// Places that slices are of, behind `place`.
    fn places(&self, id: usize, slices: &[Slice], place: u64) -> Vec<u64> {
        let mut places = vec![place];
        for (whole, slice) in self.whole(id).iter().zip(slices) {
            let len = whole.last + 1;
            let indices = (0..slice.count()).map(|at| slice.first + at * slice.stride);
            places = places
                .iter()
                .flat_map(|place| indices.clone().map(move |at| place * len + at))
                .collect();
        }
        places
    }

    fn write(
        &self,
        chosen: &Chosen,
        id: usize,
        place: u64,
        out: &mut Encoder<'_>,
    ) -> Result<(), DapError> {
        for child in chosen.dds.node(id).children.clone() {
            let (old, slices) = &chosen.of[child];
            let node = chosen.dds.node(child);
            let mut places = self.places(*old, slices, place);
            if *self.records.lock().unwrap() == 0 && node.kind == Kind::Sequence {
                places.clear();
            }
            if !node.dims.is_empty() {
                out.count(child, places.len() as u64)?;
            }
            for place in places {
                match node.kind {
                    Kind::Atomic(atomic) if atomic.is_text() => {
                        out.text(child, text(&node.name, place).as_bytes())?
                    }
                    Kind::Atomic(atomic) => {
                        out.numbers(child, &bytes(atomic, number(&node.name, place)))?
                    }
                    Kind::Sequence => {
                        out.record(child)?;
                        self.write(chosen, child, place, out)?;
                    }
                    _ => self.write(chosen, child, place, out)?,
                }
            }
            if node.kind == Kind::Sequence {
                out.end(child)?;
            }
        }
        Ok(())
    }
}

impl Server for Made {
    fn ask(&self, request: &Request) -> Result<Box<dyn Read + Send>, StorageError> {
        let query = unescaped(&request.query);
        self.asked.lock().unwrap().push(format!("{}?{query}", request.extension));
        let out = match request.extension {
            ".das" => DAS.as_bytes().to_vec(),
            ".dds" => self.choose(&query).dds.encode().into_bytes(),
            _ => {
                let chosen = self.choose(&query);
                let mut out = Vec::new();
                let mut encoder = Encoder::new(&chosen.dds, &mut out).unwrap();
                self.write(&chosen, 0, 0, &mut encoder).unwrap();
                out
            }
        };
        Ok(Box::new(std::io::Cursor::new(out)))
    }

    fn heeds_constraints(&self) -> bool {
        true
    }

    fn parallel(&self) -> usize {
        1
    }
}

fn opened(
    server: &Arc<Made>,
    constraint: &str,
    settings: &[(&str, &str)],
) -> Result<Dap2, DapError> {
    let settings = settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let server: Arc<dyn Server> = server.clone();
    open(&server, &Asked { constraint: constraint.into(), settings })
}

#[derive(Default)]
struct Taken(BTreeMap<usize, Vec<u8>>);

impl Sink for Taken {
    fn plain(&mut self, part: usize, elements: &[u8]) -> Result<(), DapError> {
        self.0.entry(part).or_default().extend_from_slice(elements);
        Ok(())
    }

    fn owned(&mut self, _part: usize, _elements: OwnedValues) -> Result<(), DapError> {
        panic!("DAP2 has no elements with pointers");
    }
}

fn get(server: &Made, dataset: &Dap2, parts: &[Part<'_>]) -> Result<Taken, DapError> {
    let request = dataset.request(parts).unwrap();
    let mut body = server.ask(&request).unwrap();
    let mut taken = Taken::default();
    dataset.read(parts, &mut body, &mut taken)?;
    Ok(taken)
}

/// A dimension of a variable of the model: its length in the whole dataset, and the slice of it that the URL asks for.
type Base = (u64, Slice);

/// What a part should bring.
fn expected(name: &str, atomic: Atomic, bases: &[Base], text_len: u64, part: &Part<'_>) -> Vec<u8> {
    let mut places = vec![0u64];
    for (at, (len, slice)) in bases.iter().enumerate() {
        let indices = (0..part.count[at]).map(|n| part.start[at] + n * part.stride[at]);
        let indices = indices.map(|index| slice.first + index * slice.stride);
        places = places
            .iter()
            .flat_map(|place| indices.clone().map(move |at| place * len + at))
            .collect();
    }
    let own = name.rsplit('.').next().unwrap();
    let mut out = Vec::new();
    for place in places {
        if !atomic.is_text() {
            out.extend(bytes(atomic, number(own, place)));
            continue;
        }
        let mut chars = text(own, place).into_bytes();
        chars.resize(usize::try_from(text_len).unwrap(), 0);
        let last = bases.len();
        let indices = (0..part.count[last]).map(|n| part.start[last] + n * part.stride[last]);
        out.extend(indices.map(|at| chars[usize::try_from(at).unwrap()]));
    }
    out
}

/// Variables of the model: name, type, dimensions.
fn variables(records: u64) -> Vec<(&'static str, Atomic, Vec<u64>)> {
    vec![
        ("b", Atomic::Byte, vec![]),
        ("top", Atomic::Int16, vec![4, 6]),
        ("text", Atomic::String, vec![4]),
        ("SST", Atomic::Float32, vec![5, 3]),
        ("st.u", Atomic::UInt16, vec![2]),
        ("st.in.f", Atomic::Float64, vec![2, 3, 2]),
        ("st.in.l", Atomic::Url, vec![2, 3]),
        ("around.q.s", Atomic::String, vec![records]),
        ("around.q.i", Atomic::Int32, vec![records]),
        ("around.q.a", Atomic::Float32, vec![records, 2, 3]),
    ]
}

fn all(len: u64) -> Slice {
    Slice { first: 0, stride: 1, last: len - 1 }
}

/// Selections of several variables at once compare with what they should bring.
fn compare(
    server: &Made,
    dataset: &Dap2,
    bases: &BTreeMap<&str, (Atomic, Vec<Base>)>,
    text_len: u64,
    seed: u64,
) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let model = dataset.model();
    for _ in 0..60 {
        let mut vars: Vec<usize> = (0..model.vars.len()).collect();
        rng.shuffle(&mut vars);
        vars.truncate(rng.usize(1..=vars.len()));
        let selections: Vec<[Vec<u64>; 3]> = vars
            .iter()
            .map(|var| {
                let mut selection = [Vec::new(), Vec::new(), Vec::new()];
                for dim in &model.vars[*var].dims {
                    let len = model.dims[*dim].len;
                    let is_whole = rng.u8(0..3) == 0;
                    let stride = if is_whole { 1 } else { rng.u64(1..4) };
                    let start = if is_whole { 0 } else { rng.u64(0..len) };
                    let most = (len - start - 1) / stride + 1;
                    selection[0].push(start);
                    selection[1].push(if is_whole { most } else { rng.u64(1..=most) });
                    selection[2].push(stride);
                }
                selection
            })
            .collect();
        let parts: Vec<Part<'_>> = vars
            .iter()
            .zip(&selections)
            .map(|(var, [start, count, stride])| Part { var: *var, start, count, stride })
            .collect();
        let taken = get(server, dataset, &parts).unwrap();
        for (at, part) in parts.iter().enumerate() {
            let name = model.vars[part.var].name.as_str();
            let (atomic, bases) = &bases[name];
            let expected = expected(name, *atomic, bases, text_len, part);
            assert_eq!(
                taken.0[&at],
                expected,
                "{name} {part:?} {:?}",
                server.asked.lock().unwrap().last()
            );
        }
    }
}

const MANNERS: [Manner; 3] = [Manner::Structures, Manner::Flat, Manner::Whole];

#[test]
fn any_selection_of_any_variables_brings_their_values() {
    for (seed, manner) in (0..).zip(MANNERS) {
        let server = Made::new(manner);
        let dataset = opened(&server, "", &[("stringlength", "9")]).unwrap();
        let variables = variables(4);
        let bases = variables
            .iter()
            .map(|(name, atomic, dims)| {
                (*name, (*atomic, dims.iter().map(|len| (*len, all(*len))).collect()))
            })
            .collect();
        let names: Vec<&str> = dataset.model().vars.iter().map(|var| var.name.as_str()).collect();
        assert_eq!(
            names.join(" "),
            "b top text SST st.u st.in.f st.in.l around.q.s around.q.i around.q.a"
        );
        compare(&server, &dataset, &bases, 9, seed);
    }
}

#[test]
fn selections_are_of_what_the_url_asks_for() {
    let url = "top[1:2][0:2:5],SST[0:2:4][1:2],st[1].in[0:2:2].f,around.q[1:3].i,text[3]";
    for (seed, manner) in (10..).zip([Manner::Structures, Manner::Flat]) {
        let server = Made::new(manner);
        let dataset = opened(&server, url, &[]).unwrap();
        let slice = |first, stride, last| Slice { first, stride, last };
        let bases: BTreeMap<&str, (Atomic, Vec<Base>)> = [
            ("top", (Atomic::Int16, vec![(4, slice(1, 1, 2)), (6, slice(0, 2, 5))])),
            ("text", (Atomic::String, vec![(4, slice(3, 1, 3))])),
            ("SST", (Atomic::Float32, vec![(5, slice(0, 2, 4)), (3, slice(1, 1, 2))])),
            (
                "st.in.f",
                (Atomic::Float64, vec![(2, slice(1, 1, 1)), (3, slice(0, 2, 2)), (2, all(2))]),
            ),
            ("around.q.i", (Atomic::Int32, vec![(4, slice(1, 1, 3))])),
        ]
        .into();
        let names: Vec<&str> = dataset.model().vars.iter().map(|var| var.name.as_str()).collect();
        assert_eq!(names.join(" "), "top text SST st.in.f around.q.i");
        let dims = &dataset.model().dims;
        let shown: Vec<String> =
            dims.iter().map(|dim| format!("{}={}", dim.name, dim.len)).collect();
        assert_eq!(
            shown.join(" "),
            "maxStrlen64=64 q=3 st.in.f_0=1 st.in.f_1=2 st.in.f_2=2 t=3 top_1=3 x=2 y=2 y_1=1"
        );
        compare(&server, &dataset, &bases, 64, seed);
    }
}

#[test]
fn a_field_of_a_grid_is_called_by_both_names() {
    for manner in [Manner::Structures, Manner::Flat] {
        let server = Made::new(manner);
        let dataset = opened(&server, "SST.SST[1:3][0],SST.t[0:1]&b>1&b=~\"a b\"", &[]).unwrap();
        let names: Vec<&str> = dataset.model().vars.iter().map(|var| var.name.as_str()).collect();
        assert_eq!(names, ["SST.SST", "SST.t"], "{manner:?}");
        assert_eq!(dataset.model().vars[0].atts.len(), 1);
        let parts = [
            Part { var: 0, start: &[1, 0], count: &[2, 1], stride: &[1, 1] },
            Part { var: 1, start: &[1], count: &[1], stride: &[1] },
        ];
        let taken = get(&server, &dataset, &parts).unwrap();
        let slices = [
            (5, Slice { first: 1, stride: 1, last: 3 }),
            (3, Slice { first: 0, stride: 1, last: 0 }),
        ];
        assert_eq!(taken.0[&0], expected("SST", Atomic::Float32, &slices, 0, &parts[0]));
        assert_eq!(taken.0[&1], expected("t", Atomic::Int32, &[(5, all(5))], 0, &parts[1]));
        let last = server.asked.lock().unwrap().last().unwrap().clone();
        assert_eq!(last, ".dods?SST.SST[2:3][0],SST.t[1]&b>1&b=~\"a b\"");
    }
}

#[test]
fn opening_asks_for_no_more_than_it_needs() {
    let server = Made::new(Manner::Structures);
    opened(&server, "", &[]).unwrap();
    assert_eq!(server.asked.lock().unwrap()[..], [".dds?", ".das?", ".dods?around.q.i"]);
    server.asked.lock().unwrap().clear();
    let dataset = opened(&server, "b&b>1", &[]).unwrap();
    assert_eq!(server.asked.lock().unwrap()[..], [".dds?b&b>1", ".dds?", ".das?"]);
    assert_eq!(dataset.model().vars.len(), 1);
    let request = dataset.request(&[Part { var: 0, start: &[], count: &[], stride: &[] }]).unwrap();
    assert_eq!((request.extension, request.query.as_str()), (".dods", "b&b%3E1"));
    assert!(dataset.request(&[Part { var: 9, start: &[], count: &[], stride: &[] }]).is_err());
    let wrong = |constraint: &str| opened(&server, constraint, &[]).unwrap_err().to_string();
    assert!(wrong("b[").contains("constraint, byte 2"));
}

#[test]
fn limits_and_lengths_are_those_of_the_settings() {
    let server = Made::new(Manner::Structures);
    let dim = |settings: &[(&str, &str)]| {
        let dataset = opened(&server, "", settings).unwrap();
        let dims = dataset.model().dims.clone();
        let q = dims.iter().find(|dim| dim.name == "q").unwrap().len;
        (
            q,
            dims.iter()
                .filter(|dim| dim.name.starts_with("maxStrlen"))
                .map(|dim| dim.len)
                .collect::<Vec<_>>(),
        )
    };
    assert_eq!(dim(&[]), (4, vec![64]));
    assert_eq!(dim(&[("limit", "2"), ("maxstrlen", "3")]), (2, vec![3]));
    assert_eq!(
        dim(&[("limit", "2"), ("nolimit_around.q", ""), ("stringlength_text", "8")]),
        (4, vec![64, 8])
    );
    assert_eq!(
        dim(&[("limit_around.q", "9"), ("stringlength", "0"), ("noseqdims", "")]),
        (1, vec![64])
    );
    // Fewer records than there are: the others are left out, however they are asked for.
    let dataset = opened(&server, "", &[("limit", "2")]).unwrap();
    let names: Vec<&str> = dataset.model().vars.iter().map(|var| var.name.as_str()).collect();
    let var = |name: &str| names.iter().position(|found| *found == name).unwrap();
    let parts = [
        Part { var: var("around.q.i"), start: &[0], count: &[1], stride: &[2] },
        Part { var: var("around.q.a"), start: &[1, 0, 1], count: &[1, 2, 1], stride: &[1, 1, 1] },
        Part { var: var("around.q.s"), start: &[1, 1], count: &[1, 5], stride: &[1, 1] },
    ];
    let taken = get(&server, &dataset, &parts).unwrap();
    let records = (4, all(4));
    assert_eq!(taken.0[&0], expected("i", Atomic::Int32, &[records], 0, &parts[0]));
    assert_eq!(
        taken.0[&1],
        expected("a", Atomic::Float32, &[records, (2, all(2)), (3, all(3))], 0, &parts[1])
    );
    assert_eq!(taken.0[&2], expected("s", Atomic::String, &[records], 64, &parts[2]));
}

#[test]
fn a_sequence_may_have_no_records_and_must_not_change_their_number() {
    let server = Made::new(Manner::Structures);
    let dataset = opened(&server, "around.q", &[]).unwrap();
    let part = Part { var: 1, start: &[0], count: &[4], stride: &[1] };
    assert_eq!(get(&server, &dataset, &[part]).unwrap().0[&0].len(), 16);
    for n in [3, 5, 0] {
        *server.records.lock().unwrap() = n;
        let error = get(&server, &dataset, &[part]).err().unwrap().to_string();
        assert!(error.contains(&format!("sequence q has {n} records, it had 4")), "{error}");
    }
    let dataset = opened(&server, "", &[]).unwrap();
    let dim = dataset.model().dims.iter().find(|dim| dim.name == "q").unwrap();
    assert_eq!((dim.len, dim.is_unlimited), (0, true));
    assert!(dataset.model().vars.iter().any(|var| var.name == "around.q.a"));
}

/// A server whose answers are not what was asked for.
#[derive(Debug)]
struct Other(Arc<Made>, &'static str, u16);

impl Server for Other {
    fn ask(&self, request: &Request) -> Result<Box<dyn Read + Send>, StorageError> {
        match request.extension {
            ".dods" => self.0.ask(&Request { extension: ".dods", query: self.1.into() }),
            ".das" => Err(StorageError::Remote {
                url: "x".into(),
                range: None,
                kind: RemoteFailure::Broken,
                status: Some(self.2),
                what: "404".into(),
            }),
            _ => self.0.ask(request),
        }
    }

    fn heeds_constraints(&self) -> bool {
        true
    }

    fn parallel(&self) -> usize {
        1
    }
}

#[test]
fn a_response_to_another_question_is_an_error_and_no_das_is_none() {
    let dataset = |answer| {
        let server: Arc<dyn Server> = Arc::new(Other(Made::new(Manner::Structures), answer, 404));
        (
            server.clone(),
            open(&server, &Asked { constraint: "top,b,SST".into(), settings: Vec::new() }).unwrap(),
        )
    };
    let read = |answer: &'static str| {
        let (server, dataset) = dataset(answer);
        assert!(dataset.model().vars.iter().all(|var| var.atts.is_empty()));
        let parts = [Part { var: 1, start: &[1, 1], count: &[2, 3], stride: &[1, 2] }];
        let request = dataset.request(&parts).unwrap();
        assert_eq!(request.query, "top%5B1:2%5D%5B1:2:5%5D");
        let mut body = server.ask(&request).unwrap();
        let mut taken = Taken::default();
        dataset.read(&parts, &mut body, &mut taken).map(|()| taken.0)
    };
    assert_eq!(read("top[1:2][1:2:5]").unwrap(), read("top,b,SST").unwrap());
    assert!(read("b").unwrap_err().to_string().contains("the response lacks top"));
    assert!(
        read("top[0:2][1:2:5]")
            .unwrap_err()
            .to_string()
            .contains("top has 3 elements along dimension 0, 2 were")
    );
    assert!(
        read("top[1:2][1]")
            .unwrap_err()
            .to_string()
            .contains("top has 1 elements along dimension 1, 3 were")
    );
}

#[test]
fn a_server_that_does_not_understand_steps_is_asked_without() {
    let server = Made::new(Manner::Structures);
    let dataset = opened(&server, "", &[]).unwrap();
    let part = Part { var: 1, start: &[0, 1], count: &[2, 2], stride: &[3, 3] };
    let read = |query: &str| {
        let mut body = server.ask(&Request { extension: ".dods", query: query.into() }).unwrap();
        let mut taken = Taken::default();
        dataset.read(&[part], &mut body, &mut taken).map(|()| taken.0[&0].clone())
    };
    let expected = expected("top", Atomic::Int16, &[(4, all(4)), (6, all(6))], 0, &part);
    assert_eq!(dataset.request(&[part]).unwrap().query, "top%5B0:3:3%5D%5B1:3:4%5D");
    assert_eq!(read("top[0:3:3][1:3:4]").unwrap(), expected);
    // The elements between them, too, and all of a dimension.
    assert_eq!(read("top[0:3][1:4]").unwrap(), expected);
    assert_eq!(read("top[0:3][0:5]").unwrap(), expected);
    assert_eq!(dataset.request(&[part]).unwrap().query, "top%5B0:3:3%5D%5B1:3:4%5D");
    // Something else: the next request is another one.
    assert!(read("top[0:2][1:4]").is_err());
    assert_eq!(dataset.request(&[part]).unwrap().query, "top%5B0:3%5D%5B1:4%5D");
    assert_eq!(get(&server, &dataset, &[part]).unwrap().0[&0], expected);
}

/// What a function of a server makes: always the same.
#[derive(Debug)]
struct Computed(Mutex<Vec<String>>);

const COMPUTED: &str = "Dataset { Float64 mean[t=3]; Sequence { Int16 i; } found; } computed;";

impl Server for Computed {
    fn ask(&self, request: &Request) -> Result<Box<dyn Read + Send>, StorageError> {
        self.0.lock().unwrap().push(format!("{}?{}", request.extension, unescaped(&request.query)));
        let mut out = COMPUTED.as_bytes().to_vec();
        match request.extension {
            ".das" => out = b"Error { code = 404; message = \"none\"; };".to_vec(),
            ".dods" => {
                let dds = Dds::decode(COMPUTED.as_bytes()).unwrap();
                out.clear();
                let mut encoder = Encoder::new(&dds, &mut out).unwrap();
                encoder.count(1, 3).unwrap();
                encoder.numbers(1, &[1.0f64, 2.0, 3.0].map(f64::to_ne_bytes).concat()).unwrap();
                for n in 0..2i16 {
                    encoder.record(2).unwrap();
                    encoder.numbers(3, &n.to_ne_bytes()).unwrap();
                }
                encoder.end(2).unwrap();
            }
            _ => {}
        }
        Ok(Box::new(std::io::Cursor::new(out)))
    }

    fn heeds_constraints(&self) -> bool {
        true
    }

    fn parallel(&self) -> usize {
        1
    }
}

#[test]
fn what_functions_make_comes_whole_and_is_taken_from() {
    let server = Arc::new(Computed(Mutex::new(Vec::new())));
    let query = "mean(SST,\"t\"),find(SST>3)";
    assert!(Constraint::decode(query).is_err());
    let query = "mean(SST,\"t\"),b&find(SST,3)";
    let asked = Asked { constraint: query.into(), settings: Vec::new() };
    let as_server: Arc<dyn Server> = server.clone();
    let dataset = open(&as_server, &asked).unwrap();
    let expected = [format!(".dds?{query}"), ".das?".into(), format!(".dods?{query}")];
    assert_eq!(server.0.lock().unwrap()[..], expected);
    let parts = [
        Part { var: 0, start: &[2], count: &[1], stride: &[1] },
        Part { var: 1, start: &[1], count: &[1], stride: &[1] },
    ];
    let request = dataset.request(&parts).unwrap();
    assert_eq!(unescaped(&request.query), query);
    let mut taken = Taken::default();
    dataset.read(&parts, &mut server.ask(&request).unwrap(), &mut taken).unwrap();
    assert_eq!(
        (&taken.0[&0][..], &taken.0[&1][..]),
        (&3.0f64.to_ne_bytes()[..], &1i16.to_ne_bytes()[..])
    );
}

#[test]
fn a_das_that_cannot_be_had_now_is_an_error() {
    let opened = |status| {
        let server: Arc<dyn Server> = Arc::new(Other(Made::new(Manner::Structures), "b", status));
        open(&server, &Asked { constraint: "b".into(), settings: Vec::new() })
    };
    for status in [400, 404, 405, 406, 410, 501] {
        assert!(opened(status).is_ok(), "{status}");
    }
    for status in [401, 403, 429, 500, 503] {
        assert!(opened(status).is_err(), "{status}");
    }
}
