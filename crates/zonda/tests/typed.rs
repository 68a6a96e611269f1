//! The typed interface: other programs read what it writes, and errors say what is wrong.

use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "typed/refused.rs"]
mod refused;

use zonda::typed::{AttributeValue, AxisSelection, Char, File, Selection, TypedError};
use zonda::{Format, NcError, Persist};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("zonda-typed-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Output of the reference's ncdump for the file, without white space; `None` where it is not installed.
fn dumped(path: &Path) -> Option<String> {
    let output = Command::new("/usr/bin/ncdump").arg(path).env_remove("LD_PRELOAD").output();
    let Ok(output) = output else {
        eprintln!("skip: there is no /usr/bin/ncdump");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap().split_whitespace().collect())
}

#[derive(Clone, Debug, PartialEq)]
struct Place {
    lon: f64,
    code: [Char; 2],
}
zonda::compound!(Place { lon: f64, code: [Char; 2] });

#[derive(Clone, Debug, PartialEq)]
struct Sounding {
    level: i16,
    at: Place,
    wind: [f32; 2],
}
zonda::compound!(Sounding { level: i16, at: Place, wind: [f32; 2] });

fn sounding(level: i16) -> Sounding {
    let at = Place { lon: f64::from(level) / 4.0, code: [Char(b'a'), Char(b'b')] };
    Sounding { level, at, wind: [1.5, -2.0] }
}

#[test]
fn others_read_what_is_written() {
    let folder = Folder::new("written");
    let path = folder.at("a.nc");
    let file = File::create(&path).unwrap();
    file.add_unlimited_dimension("time").unwrap();
    file.add_dimension("x", 3).unwrap();
    file.put_attribute("title", "typed").unwrap();
    let t = file.add_variable::<f32>("t", &["time", "x"]).unwrap().chunked(&[1, 3]).unwrap();
    let t = t.deflated(4).unwrap();
    t.put_attribute("valid_range", [-5.0f32, 40.0]).unwrap();
    t.put_attribute("notes", ["one", "zwei"]).unwrap();
    t.put((.., ..), &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    let name = file.add_variable::<String>("name", &["x"]).unwrap();
    name.put(.., &["α".to_owned(), String::new(), "c".to_owned()]).unwrap();
    let inner = file.add_group("inner").unwrap();
    let s = inner.add_variable::<Sounding>("s", &["x"]).unwrap();
    s.put(.., &[sounding(1), sounding(2), sounding(3)]).unwrap();
    assert_eq!(s.get::<Sounding>(1..).unwrap(), [sounding(2), sounding(3)]);
    file.close().unwrap();

    let Some(text) = dumped(&path) else { return };
    for wanted in [
        "time=UNLIMITED;//(2currently)",
        ":title=\"typed\";",
        "t:valid_range=-5.f,40.f;",
        "stringt:notes=\"one\",\"zwei\";",
        "t=1,2,3,4,5,6;",
        "name=\"α\",_,\"c\";", // ncdump shows the default fill value so, which an empty string is
        "compoundPlace{doublelon;charcode(2);};",
        "compoundSounding{shortlevel;Placeat;floatwind(2);};",
        "s={1,{0.25,{\"ab\"}},{1.5,-2}},{2,{0.5,{\"ab\"}},{1.5,-2}},{3,{0.75,{\"ab\"}},{1.5,-2}};",
    ] {
        assert!(text.contains(wanted), "{wanted} is not in {text}");
    }
}

#[test]
fn every_format_has_numbers_and_text() {
    let folder = Folder::new("formats");
    for format in
        [Format::Cdf1, Format::Cdf2, Format::Cdf5, Format::NetCdf4, Format::NetCdf4Classic]
    {
        let path = folder.at(&format!("{}.nc", format.nc_format()));
        let file = File::options().format(format).create(&path).unwrap();
        file.add_dimension("x", 2).unwrap();
        let v = file.add_variable::<i16>("v", &["x"]).unwrap();
        v.put(.., &[1i64, -2]).unwrap();
        // Definitions after data, and data after them.
        v.put_attribute("units", "K").unwrap();
        let scalar = file.add_variable::<f64>("scalar", &[]).unwrap();
        scalar.put((), &[0.5]).unwrap();
        file.sync().unwrap();
        assert_eq!(v.get::<f64>(..).unwrap(), [1.0, -2.0]);
        file.close().unwrap();

        let file = File::open(&path).unwrap();
        let names: Vec<String> = file.variables().unwrap().map(|v| v.name()).collect();
        assert_eq!(names, ["v", "scalar"]);
        let v = file.variable("v").unwrap();
        assert_eq!(v.attribute::<String>("units").unwrap(), "K");
        assert_eq!(v.get::<i8>(1).unwrap(), [-2]);
        assert_eq!(file.variable("scalar").unwrap().get::<f32>(..).unwrap(), [0.5]);
        drop(file);
        if let Some(text) = dumped(&path) {
            assert!(text.contains("v=1,-2;scalar=0.5;"), "{text}");
        }
    }
}

#[test]
fn selections() {
    let folder = Folder::new("selections");
    let file = File::create(folder.at("a.nc")).unwrap();
    file.add_dimension("y", 4).unwrap();
    file.add_dimension("x", 5).unwrap();
    let v = file.add_variable::<i32>("v", &["y", "x"]).unwrap();
    v.put(.., &(0..20).collect::<Vec<i32>>()).unwrap();
    let every = |start: usize, step| AxisSelection::from(start..).step(step);
    for (selection, wanted) in [
        (Selection::from((1, 2)), vec![7]),
        (Selection::from((2.., ..2)), vec![10, 11, 15, 16]),
        (Selection::from((1..=2, 4)), vec![9, 14]),
        (Selection::from([every(0, 3), every(1, 2)]), vec![1, 3, 16, 18]),
        (Selection::from((4.., ..)), vec![]),
        (Selection::from((3..3, ..)), vec![]),
    ] {
        assert_eq!(v.get::<i32>(selection.clone()).unwrap(), wanted, "{selection:?}");
    }
    assert!(matches!(v.get::<i32>(2), Err(TypedError::Rank { given: 1, rank: 2, .. })));
    let Err(TypedError::Dataset(error)) = v.get::<i32>((3..5, ..)) else { panic!() };
    assert_eq!(error.code(), NcError::Edge);
    assert!(matches!(v.put((0, ..), &[1]), Err(TypedError::Length { given: 1, selected: 5, .. })));
}

#[test]
fn a_put_makes_an_unlimited_dimension_as_long_as_its_values() {
    let folder = Folder::new("grows");
    for format in [Format::Cdf2, Format::NetCdf4] {
        let file = File::options().format(format).create(folder.at("a.nc")).unwrap();
        file.add_unlimited_dimension("time").unwrap();
        file.add_dimension("x", 2).unwrap();
        let v = file.add_variable::<f64>("v", &["time", "x"]).unwrap();
        v.put(.., &[1.0, 2.0, 3.0, 4.0]).unwrap();
        v.put((2.., ..), &[5.0, 6.0]).unwrap();
        assert_eq!(v.shape().unwrap(), [3, 2]);
        assert_eq!(v.get::<f64>((.., 1)).unwrap(), [2.0, 4.0, 6.0]);
        let wrong = v.put((.., ..), &[1.0, 2.0, 3.0]);
        assert!(
            matches!(wrong, Err(TypedError::Length { given: 3, selected: 2, .. })),
            "{wrong:?}"
        );
    }
}

#[test]
fn values_that_do_not_fit_are_said_and_the_others_are_there() {
    let folder = Folder::new("range");
    let file = File::create(folder.at("a.nc")).unwrap();
    file.add_dimension("x", 3).unwrap();
    let v = file.add_variable::<i32>("v", &["x"]).unwrap();
    v.put(.., &[1, 300, -1]).unwrap();
    let got = v.get::<u8>(..);
    assert!(matches!(&got, Err(TypedError::OutOfRange { count: 2, .. })), "{got:?}");
    let mut out = [0u8; 3];
    assert_eq!(v.get_into(.., &mut out).unwrap().out_of_range, 2);
    assert_eq!(out[0], 1);
    assert!(v.get_into(.., &mut [0u8; 2]).is_err());
    assert!(matches!(v.put(.., &[1i64 << 40, 2, 3]), Err(TypedError::OutOfRange { count: 1, .. })));
    assert_eq!(v.get::<i64>(1..).unwrap(), [2, 3]);
}

#[test]
fn wrong_types_are_named() {
    let folder = Folder::new("types");
    let file = File::create(folder.at("a.nc")).unwrap();
    file.add_dimension("x", 1).unwrap();
    let number = file.add_variable::<f32>("number", &["x"]).unwrap();
    let place = file.add_variable::<Place>("place", &["x"]).unwrap();
    let text = number.get::<String>(..).unwrap_err().to_string();
    assert!(
        text.ends_with(
            "a.nc: number: its type is float, which cannot be read or written as String"
        ),
        "{text}"
    );
    let text = place.get::<Sounding>(..).unwrap_err().to_string();
    assert!(
        text.contains("its type is Place (compound)") && text.contains("Sounding (field level)"),
        "{text}"
    );
    let text = place.get::<f64>(..).unwrap_err().to_string();
    assert!(
        text.ends_with(
            "place: its type is Place (compound), which cannot be read or written as f64"
        ),
        "{text}"
    );
    let put = number.put(.., &["a".to_owned()]);
    assert!(put.is_err(), "{put:?}");
}

#[test]
fn attributes_come_back_as_they_went() {
    let folder = Folder::new("attributes");
    let file = File::create(folder.at("a.nc")).unwrap();
    for (name, value) in [
        ("text", AttributeValue::from("words")),
        ("empty", AttributeValue::from("")),
        ("one", AttributeValue::from(7u64)),
        ("list", AttributeValue::from(vec![1i8, -1])),
        ("strings", AttributeValue::from(["a", "", "ü"])),
    ] {
        file.put_attribute(name, value).unwrap();
    }
    assert_eq!(file.attribute_names().unwrap(), ["text", "empty", "one", "list", "strings"]);
    assert_eq!(file.attribute::<String>("text").unwrap(), "words");
    assert_eq!(file.attribute::<String>("empty").unwrap(), "");
    assert_eq!(file.attribute::<f64>("one").unwrap(), 7.0);
    assert_eq!(file.attribute::<Vec<i32>>("list").unwrap(), [1, -1]);
    assert_eq!(file.attribute::<Vec<String>>("strings").unwrap(), ["a", "", "ü"]);
    assert!(matches!(file.attribute::<i32>("list"), Err(TypedError::NotSingle { found: 2, .. })));
    assert!(matches!(file.attribute::<String>("one"), Err(TypedError::Type { .. })));
    let Err(TypedError::Dataset(error)) = file.attribute::<i32>("none") else { panic!() };
    assert_eq!(error.code(), NcError::NotAtt);
}

#[test]
fn fields_are_found_by_name_wherever_they_are() {
    #[derive(Debug, PartialEq)]
    struct Turned {
        wind: [f32; 2],
        level: i16,
    }
    zonda::compound!(Turned { wind: [f32; 2], level: i16 });

    let folder = Folder::new("fields");
    let path = folder.at("a.nc");
    let file = File::create(&path).unwrap();
    file.add_dimension("x", 2).unwrap();
    let v = file.add_variable::<Sounding>("v", &["x"]).unwrap();
    v.put(.., &[sounding(8), sounding(9)]).unwrap();
    file.close().unwrap();
    let file = File::options().write().open(&path).unwrap();
    let v = file.variable("v").unwrap();
    let wanted = [8, 9].map(|level| Turned { wind: [1.5, -2.0], level });
    assert_eq!(v.get::<Turned>(..).unwrap(), wanted);
}
