//! Differences that `zonda::diff` finds between two datasets.

use std::ops::ControlFlow;
use std::path::Path;

use zonda::copy::{CopyOptions, Pattern, copy};
use zonda::diff::{DiffOptions, Difference, DifferenceKind, ObjectKind, Side, Tolerance, diff};
use zonda::{
    CreateOptions, Dataset, ExtType, Format, GroupId, Hyperslab, NC_STRING, OpenOptions, Reserve,
    Values, VarRef, VlenSink,
};
use zonda_testkit::TempFolder;

/// Strings by their numbers.
#[derive(Default)]
struct Texts(Vec<Vec<u8>>);

impl VlenSink for Texts {
    fn place(&mut self, bytes: &[u8], _: bool) -> Option<u64> {
        self.0.push(bytes.to_vec());
        Some(self.0.len() as u64)
    }
}

impl zonda::VlenSource for Texts {
    fn text(&mut self, number: u64) -> Option<&[u8]> {
        self.0.get(usize::try_from(number).ok()?.checked_sub(1)?).map(|text| &text[..])
    }

    fn items(&mut self, number: u64, _: usize) -> &[u8] {
        self.text(number).unwrap_or_default()
    }
}

/// The contents of a test file.
struct Made<'a> {
    format: Format,
    x: usize,
    values: &'a [f64],
    ty: ExtType,
    units: &'a str,
    texts: &'a [&'a str],
}

const VALUES: [f64; 4] = [1.0, 2.0, f64::NAN, -4.0];

impl Default for Made<'_> {
    fn default() -> Self {
        let (format, ty) = (Format::NetCdf4, ExtType::Double);
        Made { format, x: 4, values: &VALUES, ty, units: "m", texts: &["one", "two"] }
    }
}

impl Made<'_> {
    fn at(&self, path: &Path) {
        let options = CreateOptions { format: self.format, ..CreateOptions::default() };
        let file = Dataset::create(path, &options).unwrap();
        let x = file.def_dim(b"x", self.x).unwrap().0;
        let v: VarRef = file.def_var(b"v", self.ty.nc_type(), &[x]).unwrap().into();
        let units = self.units.as_bytes();
        let char_type = ExtType::Char.nc_type();
        file.put_att(v, b"units", char_type, units.len(), None, units).map(drop).unwrap();
        let mut strings = None;
        if self.format == Format::NetCdf4 {
            let n = file.def_dim(b"n", self.texts.len()).unwrap().0;
            let group = file.def_group(GroupId::ROOT, b"g").unwrap();
            let var = file.def_var_in(group, b"s", NC_STRING, &[n]).unwrap();
            strings = Some(VarRef { group, var });
        }
        file.enddef(Reserve::Default).unwrap();
        let bytes: Vec<u8> = self.values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        let slab = Hyperslab { start: &[0], count: &[self.values.len()], stride: None };
        let mem = Some(zonda::MemType::F64);
        file.put(v, &slab, mem, &bytes).map(drop).unwrap();
        if let Some(var) = strings {
            let mut texts = Texts(self.texts.iter().map(|text| text.as_bytes().to_vec()).collect());
            let numbers: Vec<u8> =
                (1..=self.texts.len() as u64).flat_map(u64::to_ne_bytes).collect();
            let slab = Hyperslab { start: &[0], count: &[self.texts.len()], stride: None };
            let values = Values { bytes: &numbers, fetch: Some(&mut texts) };
            file.put_values(var, &slab, values).map(drop).unwrap();
        }
        file.close().unwrap();
    }
}

fn found(a: &Made<'_>, b: &Made<'_>, options: &DiffOptions) -> Vec<Difference> {
    let folder = TempFolder::new("diff");
    let paths = [folder.file("a.nc"), folder.file("b.nc")];
    a.at(&paths[0]);
    b.at(&paths[1]);
    of_files(&paths[0], &paths[1], options)
}

fn of_files(a: &Path, b: &Path, options: &DiffOptions) -> Vec<Difference> {
    let open = |path: &Path| Dataset::open(path, &OpenOptions::default()).unwrap();
    let mut found = Vec::new();
    let go_on = &mut |_: &zonda::copy::Progress<'_>| ControlFlow::Continue(());
    let n = diff(&open(a), &open(b), options, &mut |one| found.push(one), go_on).unwrap();
    assert_eq!(n, found.len() as u64);
    found
}

fn one(found: Vec<Difference>) -> (ObjectKind, String, DifferenceKind) {
    let [one] = <[Difference; 1]>::try_from(found).unwrap();
    (one.thing, one.path, one.how)
}

fn defined(what: &'static str, first: &str, second: &str) -> DifferenceKind {
    DifferenceKind::Defined { what, first: first.to_owned(), second: second.to_owned() }
}

#[test]
fn the_same_in_other_formats_and_chunks_is_the_same() {
    let all = DiffOptions::default();
    assert_eq!(found(&Made::default(), &Made::default(), &all), []);
    let folder = TempFolder::new("diff-same");
    let (a, b) = (folder.file("a.nc"), folder.file("b.nc"));
    Made { format: Format::Cdf1, ..Made::default() }.at(&a);
    let options = CopyOptions { format: Some(Format::NetCdf4), ..CopyOptions::default() };
    copy(&a, &b, &options, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(of_files(&a, &b, &all), []);
}

#[test]
fn values_that_differ_are_counted_and_the_first_and_the_largest_told() {
    let other = Made { values: &[1.0, 2.5, f64::NAN, -3.0], ..Made::default() };
    let (thing, path, how) = one(found(&Made::default(), &other, &DiffOptions::default()));
    assert_eq!((thing, &*path), (ObjectKind::Variable, "/v"));
    let DifferenceKind::Values(values) = how else { panic!("{how:?}") };
    assert_eq!((values.n, values.of, values.at), (2, 4, vec![1]));
    assert_eq!((&*values.first, &*values.second), ("2", "2.5"));
    assert_eq!(values.largest, Some((1.0, vec![3])));
    let within = |absolute, relative| {
        let tolerance = Tolerance { absolute, relative };
        let options = DiffOptions { tolerance, ..DiffOptions::default() };
        found(&Made::default(), &other, &options).is_empty()
    };
    assert!(within(1.0, 0.0) && within(0.0, 0.25) && !within(0.9, 0.0) && !within(0.0, 0.24));
    // NaN differs from each number, and infinity from each finite number.
    for values in [[1.0, 2.0, 3.0, -4.0], [f64::INFINITY, 2.0, f64::NAN, -4.0]] {
        let tolerance = Tolerance { absolute: 1e300, relative: 1.0 };
        let options = DiffOptions { tolerance, ..DiffOptions::default() };
        let other = Made { values: &values, ..Made::default() };
        assert_eq!(found(&Made::default(), &other, &options).len(), 1, "{values:?}");
    }
}

#[test]
fn strings_in_groups() {
    let other = Made { texts: &["one", "zwei"], ..Made::default() };
    let (_, path, how) = one(found(&Made::default(), &other, &DiffOptions::default()));
    let DifferenceKind::Values(values) = how else { panic!("{how:?}") };
    assert_eq!((&*path, values.at, values.largest), ("/g/s", vec![1], None));
    assert_eq!((&*values.first, &*values.second), ("\"two\"", "\"zwei\""));
    let options = DiffOptions { exclude: vec![Pattern::new("g/*")], ..DiffOptions::default() };
    assert_eq!(found(&Made::default(), &other, &options), []);
}

#[test]
fn definitions() {
    let all = DiffOptions::default();
    let other = Made { units: "km", ..Made::default() };
    let (thing, path, how) = one(found(&Made::default(), &other, &all));
    assert_eq!((thing, &*path), (ObjectKind::Attribute, "/v@units"));
    assert_eq!(how, defined("value", "\"m\"", "\"km\""));
    let ignore_attributes = vec![Pattern::new("unit*")];
    let options = DiffOptions { ignore_attributes, ..all.clone() };
    assert_eq!(found(&Made::default(), &other, &options), []);

    let longer = Made { x: 5, values: &[1.0, 2.0, f64::NAN, -4.0, 5.0], ..Made::default() };
    let differences = found(&Made::default(), &longer, &all);
    let told: Vec<&DifferenceKind> = differences.iter().map(|one| &one.how).collect();
    assert_eq!(told, [&defined("length", "4", "5"), &defined("dimensions", "(x=4)", "(x=5)")]);
    let options = DiffOptions { definitions: false, ..all.clone() };
    let (_, _, how) = one(found(&Made::default(), &longer, &options));
    assert!(matches!(how, DifferenceKind::NotComparable(_)), "{how:?}");

    // Another type with the same values.
    let float = Made { ty: ExtType::Float, ..Made::default() };
    let (_, _, how) = one(found(&Made::default(), &float, &all));
    assert_eq!(how, defined("type", "double", "float"));

    let classic = Made { format: Format::Cdf1, ..Made::default() };
    let differences = found(&Made::default(), &classic, &all);
    let told: Vec<(ObjectKind, &str)> =
        differences.iter().map(|one| (one.thing, &*one.path)).collect();
    assert_eq!(told, [(ObjectKind::Group, "/g"), (ObjectKind::Dimension, "/n")]);
    assert!(differences.iter().all(|one| one.how == DifferenceKind::OnlyIn(Side::First)));
    let options = DiffOptions { values: false, ..all };
    let other = Made { values: &[0.0; 4], ..Made::default() };
    assert_eq!(found(&Made::default(), &other, &options), []);
}
