//! Random bodies come back; broken ones do not.

use std::io::{Cursor, Read};
use std::sync::Arc;

use fastrand::Rng;
use zonda_format::OwnedValues;
use zonda_storage::StorageError;

use super::{BodyWriter, Form};
use crate::dap4::dmr::{
    At, Atomic, DimRef, Dimension, Dmr, Enumeration, Group, Type, Variable, names,
};
use crate::dap4::layout::{Kind, Layout, Names};
use crate::dap4::settings::Settings;
use crate::dap4::{Dap4, open};
use crate::error::DapError;
use crate::protocol::{Asked, Part, Protocol, Request, Server, Sink};

const ATOMICS: [Atomic; 13] = [
    Atomic::Int8,
    Atomic::UInt8,
    Atomic::Int16,
    Atomic::UInt16,
    Atomic::Int32,
    Atomic::UInt32,
    Atomic::Int64,
    Atomic::UInt64,
    Atomic::Float32,
    Atomic::Float64,
    Atomic::Char,
    Atomic::String,
    Atomic::Url,
];

fn ty(random: &mut Rng, depth: usize) -> Type {
    match random.u8(if depth > 2 { 0..6 } else { 0..8 }) {
        0..4 => Type::Atomic(random.choice(ATOMICS).unwrap()),
        4 => Type::Enum("/e".into()),
        5 => Type::Opaque,
        6 => Type::Structure(fields(random, depth)),
        _ => Type::Sequence(fields(random, depth)),
    }
}

fn fields(random: &mut Rng, depth: usize) -> Vec<Variable> {
    (0..random.usize(1..4)).map(|i| variable(random, format!("f{i}"), depth + 1)).collect()
}

fn variable(random: &mut Rng, name: String, depth: usize) -> Variable {
    let least = u64::from(depth > 0);
    let dims = (0..random.usize(0..3)).map(|_| match random.bool() {
        true => DimRef::Shared("/d".into()),
        false => DimRef::Size(random.u64(least..4)),
    });
    let dims = dims.collect();
    let (at, maps, reserved, attributes) = Default::default();
    Variable { name, at, ty: ty(random, depth), dims, maps, reserved, attributes }
}

fn dmr(random: &mut Rng) -> Dmr {
    let mut root = Group { name: "/".into(), ..Group::default() };
    root.dims.push(Dimension { name: "d".into(), size: 3, ..Dimension::default() });
    let base = random.choice(&ATOMICS[..8]).copied().unwrap();
    let constants = vec![("a".into(), 1), ("b".into(), 2)];
    root.enums.push(Enumeration { name: "e".into(), at: At(0), base, constants });
    root.vars = (0..random.usize(0..4)).map(|i| variable(random, format!("v{i}"), 0)).collect();
    let vars = (0..random.usize(0..3)).map(|i| variable(random, format!("v{i}"), 0)).collect();
    root.groups.push(Group { name: "g".into(), vars, ..Group::default() });
    Dmr { name: "random".into(), dap_version: "4.0".into(), dmr_version: "1.0".into(), root }
}

fn element(random: &mut Rng, layout: &Layout, to: &mut Vec<u8>, owned: &mut OwnedValues) {
    match &layout.kind {
        Kind::Plain(_) | Kind::Opaque => to.extend((0..layout.size).map(|_| random.u8(..))),
        Kind::Text => {
            let text: String = (0..random.usize(0..9)).map(|_| random.alphanumeric()).collect();
            to.extend(owned.keep(text.into_bytes().into()).to_ne_bytes());
        }
        Kind::Structure(fields) => {
            let begin = to.len();
            for field in fields {
                to.resize(begin + field.offset, 0);
                (0..field.count).for_each(|_| element(random, &field.layout, to, owned));
            }
            to.resize(begin + layout.size, 0);
        }
        Kind::Sequence(record) => {
            let (n, mut records) = (random.u64(0..4), Vec::new());
            (0..n).for_each(|_| element(random, record, &mut records, owned));
            to.extend(n.to_ne_bytes());
            let address = if n == 0 { 0 } else { owned.keep(records.into()) };
            to.extend(address.to_ne_bytes());
        }
    }
}

/// Elements without addresses, which depend on who numbers them.
fn flat(layout: &Layout, bytes: &[u8], owned: &OwnedValues, to: &mut Vec<u8>) {
    for bytes in bytes.chunks_exact(layout.size) {
        match &layout.kind {
            Kind::Plain(_) | Kind::Opaque => to.extend(bytes),
            Kind::Text => {
                let text = owned.part(super::word(bytes)).unwrap();
                to.extend((text.len() as u64).to_ne_bytes());
                to.extend(text);
            }
            Kind::Structure(fields) => {
                for field in fields {
                    let len = field.count * field.layout.size;
                    flat(&field.layout, &bytes[field.offset..][..len], owned, to);
                }
            }
            Kind::Sequence(record) => {
                to.extend(&bytes[..8]);
                let records = owned.part(super::word(&bytes[8..])).unwrap_or_default();
                flat(record, records, owned, to);
            }
        }
    }
}

#[derive(Debug)]
struct Fixed(Vec<u8>);

impl Server for Fixed {
    fn ask(&self, _: &Request) -> Result<Box<dyn Read + Send>, StorageError> {
        Ok(Box::new(Cursor::new(self.0.clone())))
    }

    fn heeds_constraints(&self) -> bool {
        false
    }

    fn parallel(&self) -> usize {
        1
    }
}

/// Flat values by part.
struct Flat<'a>(&'a [Layout], Vec<Vec<u8>>);

impl Sink for Flat<'_> {
    fn plain(&mut self, part: usize, elements: &[u8]) -> Result<(), DapError> {
        self.owned(part, OwnedValues::plain(elements))
    }

    fn owned(&mut self, part: usize, elements: OwnedValues) -> Result<(), DapError> {
        flat(&self.0[part], elements.bytes(), &elements, &mut self.1[part]);
        Ok(())
    }
}

fn opened(dmr: &Dmr) -> Dap4 {
    let server: Arc<dyn Server> = Arc::new(Fixed(dmr.write().into_bytes()));
    open(&server, &Asked::default()).unwrap()
}

/// A body of random values, the layouts of its variables that have elements, and their values without addresses.
fn body(random: &mut Rng, dmr: &Dmr, form: Form) -> (Vec<u8>, Vec<Layout>, Vec<Vec<u8>>) {
    let known = Names::of(dmr, Settings::default());
    let mut writer = BodyWriter::begin(Vec::new(), dmr, form).unwrap();
    let (mut layouts, mut values) = (Vec::new(), Vec::new());
    for group in [&dmr.root, &dmr.root.groups[0]] {
        for var in &group.vars {
            let layout = known.layout(var).unwrap();
            let count: u64 = known.shape(var).unwrap().iter().product();
            let (mut bytes, mut owned) = (Vec::new(), OwnedValues::default());
            (0..count).for_each(|_| element(random, &layout, &mut bytes, &mut owned));
            let owned = owned.with_bytes(bytes);
            writer.variable(&owned).unwrap();
            if count > 0 {
                let mut to = Vec::new();
                flat(&layout, owned.bytes(), &owned, &mut to);
                values.push(to);
                layouts.push(layout);
            }
        }
    }
    (writer.end().unwrap(), layouts, values)
}

fn read(dataset: &Dap4, layouts: &[Layout], body: &[u8]) -> Result<Vec<Vec<u8>>, DapError> {
    let model = dataset.model();
    let dims = |var: &crate::Var| var.dims.iter().map(|dim| model.dims[*dim].len).collect();
    let shapes: Vec<Vec<u64>> = model.vars.iter().map(dims).collect();
    let (zeros, ones) = ([0; 4], [1; 4]);
    let parts = shapes.iter().enumerate().map(|(var, count)| Part {
        var,
        start: &zeros[..count.len()],
        count,
        stride: &ones[..count.len()],
    });
    let parts: Vec<_> = parts.filter(|part| !part.count.contains(&0)).collect();
    let mut sink = Flat(layouts, vec![Vec::new(); layouts.len()]);
    dataset.read(&parts, &mut &body[..], &mut sink)?;
    Ok(sink.1)
}

fn form(random: &mut Rng) -> Form {
    let chunk = random.choice([1, 2, 3, 7, 64, 1000, 1 << 20]).unwrap();
    Form { little_endian: random.bool(), checksums: random.bool(), chunk }
}

#[test]
fn random_bodies_come_back() {
    let mut random = Rng::with_seed(28);
    for _ in 0..300 {
        let dmr = dmr(&mut random);
        assert_eq!(Dmr::parse(dmr.write().as_bytes()).unwrap(), dmr);
        let form = form(&mut random);
        let (body, layouts, values) = body(&mut random, &dmr, form);
        let came = read(&opened(&dmr), &layouts, &body);
        assert_eq!(came.unwrap_or_else(|error| panic!("{error}: {form:?}")), values);
    }
}

#[test]
fn random_bodies_cut_anywhere_are_errors() {
    let mut random = Rng::with_seed(29);
    for _ in 0..8 {
        let dmr = dmr(&mut random);
        let form = form(&mut random);
        let (body, layouts, _) = body(&mut random, &dmr, form);
        let dataset = opened(&dmr);
        for len in 0..body.len().min(3000) {
            assert!(read(&dataset, &layouts, &body[..len]).is_err(), "{len} of {}", body.len());
        }
        let longer = [&body[..], b"\0"].concat();
        assert!(read(&dataset, &layouts, &longer).is_err());
    }
}

#[test]
fn flipped_bits_are_found_by_checksums() {
    let mut random = Rng::with_seed(30);
    for _ in 0..300 {
        let dmr = dmr(&mut random);
        let form = Form { checksums: true, chunk: 1 << 20, ..form(&mut random) };
        let (mut body, layouts, values) = body(&mut random, &dmr, form);
        let begin = 8 + dmr.write().len();
        if values.is_empty() {
            continue;
        }
        let at = random.usize(begin..body.len());
        body[at] ^= 1 << random.u8(0..8);
        assert!(read(&opened(&dmr), &layouts, &body).is_err());
    }
}

#[test]
fn an_error_in_the_middle_is_the_servers() {
    let mut random = Rng::with_seed(31);
    let mut dmr = dmr(&mut random);
    dmr.root.vars.clear();
    for name in ["a", "b"] {
        let mut var = variable(&mut random, name.into(), 0);
        (var.ty, var.dims) = (Type::Atomic(Atomic::Int32), vec![DimRef::Size(3)]);
        dmr.root.vars.push(var);
    }
    dmr.root.groups[0].vars.clear();
    let form = Form { little_endian: true, checksums: true, chunk: 4 };
    let mut writer = BodyWriter::begin(Vec::new(), &dmr, form).unwrap();
    writer.variable(&OwnedValues::plain([1; 12])).unwrap();
    let body = writer.fail(500, "the disk <is> gone").unwrap();
    let layouts = vec![Names::of(&dmr, Settings::default()).layout(&dmr.root.vars[0]).unwrap(); 2];
    match read(&opened(&dmr), &layouts, &body) {
        Err(DapError::Server { number, message, .. }) => {
            assert_eq!((number, message.as_str()), (Some(500), "the disk <is> gone"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn another_dmr_than_that_of_the_dataset_is_an_error() {
    let mut random = Rng::with_seed(32);
    let form = Form { little_endian: false, checksums: true, chunk: 100 };
    let mut one = dmr(&mut random);
    one.root.groups.clear();
    one.root.groups.push(Group { name: "g".into(), ..Group::default() });
    let base = variable(&mut random, "a".into(), 0);
    let make = |dmr: &Dmr, ty: Type, len: u64, name: &str| {
        let mut dmr = dmr.clone();
        let (name, dims) = (name.to_owned(), vec![DimRef::Size(len)]);
        dmr.root.vars = vec![Variable { name, ty, dims, ..base.clone() }];
        dmr
    };
    let right = make(&one, Type::Atomic(Atomic::Int32), 3, "a");
    let dataset = opened(&right);
    let others = [
        (Type::Atomic(Atomic::UInt32), 3, "a"),
        (Type::Atomic(Atomic::Float32), 3, "a"),
        (Type::Atomic(Atomic::Int32), 4, "a"),
        (Type::Atomic(Atomic::Int32), 2, "a"),
        (Type::Atomic(Atomic::Int32), 3, "b"),
    ];
    for (ty, len, name) in others {
        let other = make(&one, ty, len, name);
        let (body, layouts, _) = body(&mut random, &other, form);
        assert!(read(&dataset, &layouts, &body).is_err(), "{len} {name}");
    }
    let (body, layouts, values) = body(&mut random, &right, form);
    assert_eq!(read(&dataset, &layouts, &body).unwrap(), values);
    assert_eq!(names::canonical("a"), "/a");
}
