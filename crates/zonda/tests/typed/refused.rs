//! What the typed interface refuses, and what it takes at the edges.

use super::*;

#[test]
fn what_is_refused_names_the_file_and_the_object() {
    let folder = Folder::new("refused");
    for format in [Format::Cdf2, Format::Cdf5, Format::NetCdf4, Format::NetCdf4Classic] {
        let path = folder.at("a.nc");
        let file = File::options().format(format).create(&path).unwrap();
        file.add_dimension("x", 3).unwrap();
        let v = file.add_variable::<f32>("v", &["x"]).unwrap();
        v.put_attribute("units", "K").unwrap();
        v.put(.., &[1.0, 2.0, 3.0]).unwrap();
        for (error, names) in [
            (file.add_dimension("x", 3).unwrap_err(), "x"),
            (file.add_dimension("huge", usize::MAX).unwrap_err(), "huge"),
            (file.add_variable::<f32>("n", &["nope"]).unwrap_err(), "\"nope\""),
            (file.add_variable::<f32>("a/b", &["x"]).unwrap_err(), "a/b"),
            (file.add_variable::<f32>("", &["x"]).unwrap_err(), "illegal"),
            (file.variable("none").unwrap_err(), "\"none\""),
            (file.dimension("none").unwrap_err(), "\"none\""),
            (file.group("none").unwrap_err(), "none"),
            (v.attribute::<f64>("none").unwrap_err(), "none"),
            (v.attribute::<f64>("units").unwrap_err(), "units"),
            (v.get::<Place>(..).unwrap_err(), "Place"),
            (v.get::<Char>(..).unwrap_err(), "Char"),
            (v.put_text(.., &["abc"]).unwrap_err(), "v: "),
            (v.get::<f32>(3).unwrap_err(), "v: "),
        ] {
            let error = error.to_string();
            let named = error.starts_with(&format!("{}: ", path.display()));
            assert!(named && error.contains(names), "{format:?}: {error} does not name {names}");
        }
        file.close().unwrap();
    }
}

#[test]
fn any_number_in_a_selection_is_an_answer_and_no_panic() {
    const MOST: usize = usize::MAX;
    let folder = Folder::new("numbers");
    for format in [Format::Cdf5, Format::NetCdf4] {
        let file = File::options().format(format).create(folder.at("a.nc")).unwrap();
        file.add_unlimited_dimension("t").unwrap();
        file.add_dimension("x", 3).unwrap();
        let v = file.add_variable::<i16>("v", &["t", "x"]).unwrap();
        let step = |n| AxisSelection::from(1..).step(n);
        for selection in [
            Selection::from((MOST, ..)),
            Selection::from((MOST - 1, ..)),
            Selection::from((isize::MAX as usize, ..)),
            Selection::from((1..MOST, ..)),
            Selection::from((MOST.., ..)),
            Selection::from((MOST..=MOST, ..)),
            Selection::from((step(0), AxisSelection::from(..))),
            Selection::from((step(MOST), AxisSelection::from(..))),
        ] {
            let put = v.put(selection.clone(), &[1, 2, 3, 4, 5, 6]);
            assert!(put.is_err(), "{format:?}: {selection:?} was put");
            assert_eq!(v.shape().unwrap(), [0, 3], "{format:?}: {selection:?} made records");
        }
        v.put((0..2, ..), &[1, 2, 3, 4, 5, 6]).unwrap();
        for selection in [(MOST, 0), (2, 0), (0, 3), (0, MOST)] {
            assert!(v.get::<i16>(selection).is_err(), "{format:?}: {selection:?} was read");
        }
        assert_eq!(v.get::<i16>((.., ..)).unwrap(), [1, 2, 3, 4, 5, 6]);
    }
}

#[test]
fn what_netcdf_would_cut_or_leave_undefined_is_refused() {
    #[derive(Clone, Debug, PartialEq)]
    struct Wind {
        wind: [f32; 2],
    }
    zonda::compound!(Wind { wind: [f32; 2] });

    let folder = Folder::new("cut");
    let file = File::create(folder.at("a.nc")).unwrap();
    file.add_dimension("x", 1).unwrap();
    let text = file.add_variable::<String>("text", &["x"]).unwrap();
    text.put(.., &["ab".to_owned()]).unwrap();
    let put = text.put(.., &["a\0b".to_owned()]);
    assert!(matches!(put, Err(TypedError::Nul { at: 1, .. })), "{put:?}");
    assert_eq!(text.get::<String>(..).unwrap(), ["ab"]);

    // A field that is not there would be written as whatever the memory has.
    let s = file.add_variable::<Sounding>("s", &["x"]).unwrap();
    s.put(.., &[sounding(3)]).unwrap();
    let put = s.put(.., &[Wind { wind: [0.0; 2] }]).unwrap_err().to_string();
    assert!(put.contains("without field level"), "{put}");
    assert_eq!(s.get::<Sounding>(..).unwrap(), [sounding(3)]);
    assert_eq!(s.get::<Wind>(..).unwrap(), [Wind { wind: [1.5, -2.0] }]);
}

#[test]
fn a_closed_and_a_read_only_file_say_so() {
    let folder = Folder::new("ends");
    let path = folder.at("a.nc");
    let file = File::create(&path).unwrap();
    file.add_dimension("x", 2).unwrap();
    file.add_variable::<i32>("v", &["x"]).unwrap().put(.., &[1, 2]).unwrap();
    file.close().unwrap();
    let file = File::open(&path).unwrap();
    let v = file.variable("v").unwrap();
    for refused in
        [v.put(0, &[3]), file.put_attribute("a", 1), file.add_dimension("y", 1).map(drop)]
    {
        let error = refused.unwrap_err().to_string();
        let is_said = error.ends_with("opened for reading only") || error.ends_with("read only");
        assert!(is_said, "{error}");
    }
    file.dataset().close().unwrap();
    let Err(TypedError::Dataset(error)) = v.get::<i32>(..) else { panic!("it was read") };
    assert_eq!(error.code(), NcError::BadId, "{error}");
}

/// The message of an error, which has to name the file and what else is asked of it.
#[track_caller]
fn message<T: std::fmt::Debug>(result: Result<T, TypedError>, names: &[&str]) -> String {
    let text = result.unwrap_err().to_string();
    for name in [".nc: "].iter().chain(names) {
        assert!(text.contains(name), "{name} is not in: {text}");
    }
    text
}

#[track_caller]
fn code<T: std::fmt::Debug>(result: Result<T, TypedError>) -> NcError {
    match result {
        Err(TypedError::Dataset(error)) => error.code(),
        other => panic!("{other:?}"),
    }
}

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|&text| text.to_owned()).collect()
}

/// Strings go to the dataset as numbers of 8 bytes that stand for them: variables of such numbers took these.
#[test]
fn strings_go_into_variables_of_strings_only() {
    let folder = Folder::new("strings");
    let path = folder.at("a.nc");
    let file = File::create(&path).unwrap();
    file.add_dimension("x", 2).unwrap();
    let double = file.add_variable::<f64>("double", &["x"]).unwrap();
    double.put(.., &[0.5, 1.5]).unwrap();
    let long = file.add_variable::<i64>("long", &["x"]).unwrap();
    long.put(.., &[-1, -2]).unwrap();
    for variable in [double, long] {
        let put = variable.put(.., &texts(&["a", "b"]));
        message(put, &[&variable.name(), "read or written as String"]);
    }
    let string = file.add_variable::<String>("string", &["x"]).unwrap();
    message(string.put(.., &[1u64, 2]), &["string: its type is string", "u64"]);
    message(string.put(.., &texts(&["a\0b", "c"])), &["string: ", "NUL at byte 1"]);
    message(file.put_attribute("s", ["a\0b"]), &["attribute s", "NUL at byte 1"]);
    string.put(.., &texts(&["ab", "c"])).unwrap();
    file.close().unwrap();
    let Some(text) = dumped(&path) else { return };
    assert!(text.contains("double=0.5,1.5;long=-1,-2;string=\"ab\",\"c\";"), "{text}");
}

/// A structure without some of the fields put zeros in their place.
#[test]
fn structures_are_written_with_all_fields_or_not_at_all() {
    #[derive(Clone, Debug, PartialEq)]
    struct OnlyLevel {
        level: i16,
    }
    zonda::compound!(OnlyLevel { level: i16 });
    mod other {
        #[derive(Debug)]
        pub(crate) struct Place {
            pub(crate) lat: f64,
        }
        zonda::compound!(Place { lat: f64 });
    }

    let folder = Folder::new("whole");
    let path = folder.at("a.nc");
    let file = File::create(&path).unwrap();
    file.add_dimension("x", 2).unwrap();
    let v = file.add_variable::<Sounding>("v", &["x"]).unwrap();
    v.put(.., &[sounding(1), sounding(2)]).unwrap();
    assert_eq!(v.get::<OnlyLevel>(1).unwrap(), [OnlyLevel { level: 2 }]);
    message(v.put(0, &[OnlyLevel { level: 9 }]), &["v: ", "OnlyLevel (without field at)"]);
    message(
        file.add_variable::<other::Place>("p", &[]),
        &["type Place: its type is a compound of other fields", "(field lat)"],
    );
    assert_eq!(other::Place { lat: 1.0 }.lat, 1.0);
    file.close().unwrap();
    let Some(text) = dumped(&path) else { return };
    assert!(text.contains("v={1,{0.25,{\"ab\"}},{1.5,-2}},{2,{0.5,"), "{text}");
}

/// A type of another maker, with fields in another order, at odd offsets, and bytes between them.
#[test]
fn structures_fit_types_with_padding() {
    let folder = Folder::new("padding");
    let path = folder.at("a.nc");
    let file = File::create(&path).unwrap();
    let x = file.add_dimension("x", 2).unwrap();
    let (dataset, root) = (file.dataset(), file.root().id());
    let place = dataset.def_compound(root, 24, b"Place").unwrap();
    dataset.insert_field((root, place), b"code", 3, 2, &[2]).unwrap();
    dataset.insert_field((root, place), b"lon", 8, 6, &[]).unwrap();
    let outer = dataset.def_compound(root, 64, b"Theirs").unwrap();
    dataset.insert_field((root, outer), b"wind", 4, 5, &[2]).unwrap();
    dataset.insert_field((root, outer), b"at", 16, place, &[]).unwrap();
    dataset.insert_field((root, outer), b"level", 51, 3, &[]).unwrap();
    dataset.def_var_in(root, b"v", outer, &[x.id.0]).unwrap();
    let v = file.variable("v").unwrap();
    v.put(.., &[sounding(4), sounding(-5)]).unwrap();
    assert_eq!(v.get::<Sounding>(..).unwrap(), [sounding(4), sounding(-5)]);
    file.close().unwrap();
    let Some(text) = dumped(&path) else { return };
    assert!(text.contains("v={{1.5,-2},{{\"ab\"},1},4},{{1.5,-2},{{\"ab\"},-1.25},-5};"), "{text}");
}

#[test]
fn types_of_the_file_are_numbers_or_errors() {
    let folder = Folder::new("user-types");
    let path = folder.at("a.nc");
    let file = File::create(&path).unwrap();
    let x = file.add_dimension("x", 2).unwrap();
    let (dataset, root) = (file.dataset(), file.root().id());
    let opaque = dataset.def_opaque(root, 8, b"blob").unwrap();
    let vlen = dataset.def_vlen(root, b"row", 4).unwrap();
    let kind = dataset.def_enum(root, 1, b"kind").unwrap();
    dataset.insert_member((root, kind), b"rain", &[1]).unwrap();
    for (name, nc_type) in [("b", opaque), ("r", vlen), ("k", kind)] {
        dataset.def_var_in(root, name.as_bytes(), nc_type, &[x.id.0]).unwrap();
    }
    for (name, said) in [("b", "blob (opaque)"), ("r", "row (sequence of int)")] {
        let v = file.variable(name).unwrap();
        let said = format!("{name}: its type is {said}, which cannot");
        message(v.get::<u64>(..), &[&said, "as u64"]);
        message(v.get::<String>(..), &[&said, "as String"]);
        message(v.get::<Char>(..), &[&said, "as Char"]);
        message(v.get::<Place>(..), &[&said, "as Place"]);
        message(v.put(.., &[1u64, 2]), &[&said]);
        message(v.put(.., &texts(&["a", "b"])), &[&said]);
    }
    let k = file.variable("k").unwrap();
    k.put(.., &[1i8, 1]).unwrap();
    assert_eq!(k.get::<i8>(..).unwrap(), [1, 1]);
    assert_eq!((k.number_type().unwrap(), k.type_name().unwrap()), (None, "kind".to_owned()));
    message(k.get::<i32>(..), &["k: its type is kind (enumeration of byte), which cannot"]);
    message(k.put(.., &texts(&["a", "b"])), &["kind (enumeration of byte)"]);
    file.close().unwrap();
    let Some(text) = dumped(&path) else { return };
    assert!(text.contains("k=rain,rain;"), "{text}");
}

#[test]
fn nan_fits_no_integer() {
    let folder = Folder::new("nan");
    for format in [Format::Cdf2, Format::NetCdf4] {
        let file = File::options().format(format).create(folder.at("a.nc")).unwrap();
        file.add_dimension("x", 3).unwrap();
        let float = file.add_variable::<f32>("f", &["x"]).unwrap();
        float.put_attribute("_FillValue", f32::NAN).unwrap();
        assert!(float.get::<f64>(..).unwrap().iter().all(|value| value.is_nan()));
        let got = float.get::<i32>(..);
        assert!(matches!(&got, Err(TypedError::OutOfRange { count: 3, .. })), "{got:?}");
        assert_eq!(float.get_into(.., &mut [0u8; 3]).unwrap().out_of_range, 3);
        let int = file.add_variable::<i32>("i", &["x"]).unwrap();
        let put = int.put(.., &[f64::NAN, 1e300, 7.0]);
        assert!(matches!(&put, Err(TypedError::OutOfRange { count: 2, .. })), "{put:?}");
        message(put, &["i: 2 of the values", "from f64 to int"]);
        assert_eq!(int.get::<i32>(2).unwrap(), [7]);
    }
}

#[test]
fn selections_of_what_is_not_there_are_errors_before_memory_is_asked_for() {
    let folder = Folder::new("outside");
    for format in
        [Format::Cdf1, Format::Cdf2, Format::Cdf5, Format::NetCdf4, Format::NetCdf4Classic]
    {
        let file = File::options().format(format).create(folder.at("a.nc")).unwrap();
        file.add_unlimited_dimension("t").unwrap();
        file.add_dimension("x", 3).unwrap();
        let v = file.add_variable::<f64>("v", &["x"]).unwrap();
        v.put(.., &[0.0, 1.0, 2.0]).unwrap();
        let most = usize::MAX;
        for index in [3, most - 1, most] {
            assert_eq!(code(v.get::<f64>(index)), NcError::InvalidCoords);
            assert_eq!(code(v.put(index, &[1.0])), NcError::InvalidCoords);
        }
        assert_eq!(code(v.get::<f64>(..=most)), NcError::Edge);
        assert_eq!(code(v.get::<f64>(1..most)), NcError::Edge);
        assert_eq!(code(v.get::<f64>(most..=most)), NcError::InvalidCoords);
        assert_eq!(code(v.get::<f64>(4..)), NcError::InvalidCoords);
        assert!(v.get::<f64>(3..).unwrap().is_empty());
        let every = |step| AxisSelection::from(..).step(step);
        assert_eq!(code(v.get::<f64>(every(0))), NcError::Stride);
        assert_eq!(code(v.put(every(0), &[1.0, 2.0, 3.0])), NcError::Stride);
        assert_eq!(v.get::<f64>(every(most)).unwrap(), [0.0]);
        assert_eq!(v.get::<f64>(every(2)).unwrap(), [0.0, 2.0]);
        message(
            v.get::<f64>(1..7),
            &["v: ", "6 elements from 1 on are selected of dimension x, which has 3"],
        );
        message(v.get::<f64>(every(0)), &["/v: ", "a step of 0"]);
        assert!(matches!(v.put(.., &[1.0]), Err(TypedError::Length { given: 1, selected: 3, .. })));

        let u = file.add_variable::<i16>("u", &["t", "x"]).unwrap();
        for start in [most, most - 1, most / 2] {
            assert!(u.put((start, ..), &[1, 2, 3]).is_err());
            assert!(u.put((start.., ..), &[1, 2, 3]).is_err());
        }
        let far = AxisSelection::from(1..).step(most);
        assert!(u.put((far, ..), &[1, 2, 3, 4, 5, 6]).is_err());
        assert!(matches!(u.put((..most, ..), &[1, 2, 3]), Err(TypedError::Length { .. })));
        assert_eq!(u.shape().unwrap(), [0, 3]);
        u.put::<i16>((.., ..), &[]).unwrap();
        assert!(u.get::<i16>(..).unwrap().is_empty());
        u.put((every(2), 0), &[1, 2]).unwrap();
        assert_eq!(u.shape().unwrap(), [3, 3]);
        assert_eq!(u.get::<i16>((every(2), 0)).unwrap(), [1, 2]);
        assert_eq!(code(u.get::<i16>((..4, 0))), NcError::Edge);

        let scalar = file.add_variable::<i8>("s", &[]).unwrap();
        scalar.put((), &[3]).unwrap();
        assert_eq!(scalar.get::<i8>(..).unwrap(), [3]);
        assert!(matches!(scalar.get::<i8>(0), Err(TypedError::Rank { given: 1, rank: 0, .. })));
        assert!(matches!(scalar.put((), &[1, 2]), Err(TypedError::Length { .. })));
        file.close().unwrap();
    }
}

#[test]
fn more_than_memory_holds_is_an_error() {
    let folder = Folder::new("memory");
    let file = File::create(folder.at("a.nc")).unwrap();
    file.add_dimension("x", 1 << 50).unwrap();
    let v = file.add_variable::<Char>("v", &["x"]).unwrap();
    assert_eq!(code(v.get::<Char>(..)), NcError::NoMem);
    assert_eq!(code(v.get_text(..)), NcError::NoMem);
    assert_eq!(code(v.put_text(.., &["a"])), NcError::NoMem);
    message(v.put_text(.., &["a"]), &["/v: ", "no memory for 1125899906842624 bytes"]);
}

#[test]
fn text_is_not_cut_unsaid() {
    let folder = Folder::new("cut");
    let path = folder.at("a.nc");
    let file = File::options().classic().create(&path).unwrap();
    file.add_dimension("n", 2).unwrap();
    file.add_dimension("len", 3).unwrap();
    let v = file.add_variable::<Char>("v", &["n", "len"]).unwrap();
    v.put_text((.., ..), &["é", "abc"]).unwrap();
    assert_eq!(v.get_text((.., ..)).unwrap(), ["é", "abc"]);
    assert!(matches!(v.put_text((0, ..), &["abcd"]), Err(TypedError::Length { given: 4, .. })));
    assert!(matches!(v.put_text((0, ..), &["a\0b"]), Err(TypedError::Nul { at: 1, .. })));
    assert!(matches!(v.get_text((.., ..1)), Err(TypedError::Utf8 { .. })));
    message(v.get::<u8>((.., ..)), &["v: its type is char", "as u8"]);
    message(v.get::<String>((.., ..)), &["v: its type is char", "as String"]);
    message(v.put((0, ..), &[1i32, 2, 3]), &["v: its type is char", "as i32"]);
    // Programs in C write the NUL at the end of text.
    v.put_attribute("units", "K\0").unwrap();
    assert_eq!(v.attribute::<String>("units").unwrap(), "K");
    file.close().unwrap();
    let Some(text) = dumped(&path) else { return };
    assert!(text.contains(r#"v="\303\251","abc";"#), "{text}");
}

#[test]
fn attributes_are_had_whatever_they_are() {
    let folder = Folder::new("any");
    let file = File::create(folder.at("a.nc")).unwrap();
    let all = [
        AttributeValue::Text("Grüße".into()),
        AttributeValue::Strings(texts(&["a", ""])),
        AttributeValue::Byte(vec![-1]),
        AttributeValue::UByte(vec![255]),
        AttributeValue::Short(vec![-2]),
        AttributeValue::UShort(vec![2]),
        AttributeValue::Int(vec![3, 4]),
        AttributeValue::UInt(vec![u32::MAX]),
        AttributeValue::Int64(vec![i64::MIN]),
        AttributeValue::UInt64(vec![u64::MAX]),
        AttributeValue::Float(vec![0.5]),
        AttributeValue::Double(vec![]),
    ];
    for value in all {
        file.put_attribute("a", value.clone()).unwrap();
        assert_eq!(file.attribute::<AttributeValue>("a").unwrap(), value);
    }
    message(file.attribute::<f64>("a"), &["attribute a: it has 0 values, not one"]);
    file.put_attribute("big", u64::MAX).unwrap();
    message(file.attribute::<i8>("big"), &["attribute big: ", "from uint64 to i8"]);
}

#[test]
fn what_a_format_has_not_is_said_with_names() {
    let folder = Folder::new("has-not");
    for format in [Format::Cdf1, Format::Cdf2, Format::Cdf5, Format::NetCdf4Classic] {
        let file = File::options().format(format).create(folder.at("a.nc")).unwrap();
        file.add_unlimited_dimension("t").unwrap();
        file.add_dimension("x", 1).unwrap();
        message(file.add_unlimited_dimension("u"), &["u"]);
        message(file.add_group("inner"), &["/inner: "]);
        message(file.group("inner"), &["inner"]);
        message(file.add_variable::<String>("text", &["x"]), &["text: "]);
        message(file.add_variable::<Place>("place", &["x"]), &["Place: "]);
        message(file.put_attribute("list", ["a", "b"]), &["attribute list"]);
        if format == Format::Cdf5 {
            file.add_variable::<u64>("big", &["x"]).unwrap().put(0, &[u64::MAX]).unwrap();
        } else {
            message(file.add_variable::<u64>("big", &["x"]), &["big: "]);
            message(file.put_attribute("big", 1u64), &["attribute big"]);
        }
        message(file.add_variable::<i8>("b", &["y"]), &["\"y\""]);
        message(file.variable("no"), &["\"no\""]);
        message(file.dimension("no"), &["\"no\""]);
        message(file.attribute::<i32>("no"), &["no attribute no"]);
        file.add_variable::<i8>("b", &["x"]).unwrap();
        for name in ["b", "a/b", "", "a\0b"] {
            assert!(file.add_variable::<i8>(name, &["x"]).is_err(), "{name:?}");
        }
        assert!(file.add_dimension("a/b", 1).is_err() && file.put_attribute("a/b", 1).is_err());
        let b = file.variable("b").unwrap();
        message(b.chunked(&[1, 1]).map(drop), &["b: 2 axes were given, the variable has 1"]);
        file.close().unwrap();
    }
}

#[test]
fn names_that_are_not_utf_8_can_be_listed() {
    let folder = Folder::new("names");
    let path = folder.at("a.nc");
    // A name of a classic file is bytes that any program may have written.
    let file = File::options().classic().create(&path).unwrap();
    file.add_dimension("len_name", 2).unwrap();
    file.add_variable::<i8>("var_name", &["len_name"]).unwrap().put(.., &[1, 2]).unwrap();
    file.close().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    for name in ["len_name", "var_name"] {
        let at = bytes.windows(8).position(|bytes| bytes == name.as_bytes()).unwrap();
        bytes[at + 3] = 0xff;
    }
    std::fs::write(&path, bytes).unwrap();
    let file = File::open(&path).unwrap();
    let variable = file.variables().unwrap().next().unwrap();
    assert_eq!(variable.name(), "var\u{fffd}name");
    assert_eq!(variable.dimensions().unwrap()[0].name, "len\u{fffd}name");
    assert_eq!(variable.get::<i8>(..).unwrap(), [1, 2]);
    message(file.variable("var\u{fffd}name"), &["no variable"]);
}

#[test]
fn files_in_memory() {
    let folder = Folder::new("in-memory");
    let path = folder.at("a.nc");
    for persist in [Persist::No, Persist::Yes] {
        for format in [Format::Cdf5, Format::NetCdf4] {
            let options = File::options().format(format).in_memory(persist);
            let file = options.create(&path).unwrap();
            file.add_dimension("x", 2).unwrap();
            file.add_variable::<u16>("v", &["x"]).unwrap().put(.., &[1, 2]).unwrap();
            assert_eq!(file.variable("v").unwrap().get::<f32>(..).unwrap(), [1.0, 2.0]);
            file.close().unwrap();
            assert_eq!(path.exists(), persist == Persist::Yes);
        }
    }
    let Some(text) = dumped(&path) else { return };
    assert!(text.contains("v=1,2;"), "{text}");
}

#[test]
fn threads_share_a_file() {
    let folder = Folder::new("threads");
    for format in [Format::Cdf2, Format::NetCdf4] {
        let path = folder.at("a.nc");
        let file = File::options().format(format).create(&path).unwrap();
        file.add_dimension("row", 4).unwrap();
        file.add_dimension("x", 1000).unwrap();
        let v = file.add_variable::<i32>("v", &["row", "x"]).unwrap();
        std::thread::scope(|scope| {
            for row in 0..4 {
                scope.spawn(move || {
                    let values: Vec<i32> = (0..1000).map(|x| x + 1000 * row).collect();
                    let row = usize::try_from(row).unwrap();
                    for part in 0..10 {
                        let range = part * 100..(part + 1) * 100;
                        v.put((row, range.clone()), &values[range]).unwrap();
                    }
                    assert_eq!(v.get::<i32>((row, ..)).unwrap(), values);
                });
            }
        });
        assert_eq!(v.get::<i32>(..).unwrap(), (0..4000).collect::<Vec<i32>>());
        file.close().unwrap();
    }
}

#[test]
fn arrays_have_the_shape_of_what_is_selected() {
    let folder = Folder::new("arrays");
    let path = folder.at("a.nc");
    let file = File::create(&path).unwrap();
    file.add_unlimited_dimension("t").unwrap();
    file.add_dimension("x", 3).unwrap();
    let v = file.add_variable::<i32>("v", &["t", "x"]).unwrap();
    let array = ndarray::array![[1, 2, 3], [4, 5, 6]];
    v.put_array((.., ..), &array).unwrap();
    v.put_array((2, ..), &ndarray::array![7, 8, 9]).unwrap();
    // A view that is not in the order of memory.
    let turned = ndarray::array![[10, 13], [11, 14], [12, 15]];
    v.put_array((3.., ..), &turned.t()).unwrap();
    assert_eq!(v.get::<i32>(..).unwrap(), (1..=15).collect::<Vec<i32>>());
    // As many values, and rows for columns.
    let wrong = v.put_array((..2, ..), &array.t());
    assert!(matches!(&wrong, Err(TypedError::Shape { .. })), "{wrong:?}");
    message(wrong, &["v: the array has the shape [3, 2], the selection [2, 3]"]);
    let got = v.get_array::<f64>((1..3, 1..)).unwrap();
    assert_eq!(got, ndarray::array![[5.0, 6.0], [8.0, 9.0]].into_dyn());
    assert_eq!(v.get_array::<f64>((0, ..0)).unwrap().shape(), [1, 0]);
    file.close().unwrap();
    let Some(text) = dumped(&path) else { return };
    assert!(text.contains("v=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15;"), "{text}");
}
