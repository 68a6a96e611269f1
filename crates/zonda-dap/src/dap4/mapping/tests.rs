//! Definitions of DMRs, as the reference shows them.

use zonda_format::{NC_STRING, UserClass};

use super::*;

fn made(inside: &str, settings: Settings) -> Result<Model, DapError> {
    let text = format!("<Dataset name=\"d\">{inside}</Dataset>");
    Ok(model(&Dmr::parse(text.as_bytes())?, settings)?.0)
}

fn plain(inside: &str) -> Model {
    made(inside, Settings::default()).unwrap()
}

fn name_of(model: &Model, nc_type: i32) -> String {
    let index = zonda_format::UserType::index(nc_type);
    let ty = index.and_then(|index| model.types.get(index));
    ty.map_or(nc_type.to_string(), |ty| String::from_utf8_lossy(&ty.name).into_owned())
}

/// Types, each with its parts in short.
fn types(model: &Model) -> Vec<String> {
    let all = model.types.iter().map(|ty| {
        let inside = match &ty.class {
            UserClass::Compound(fields) => fields
                .iter()
                .map(|field| {
                    let name = String::from_utf8_lossy(&field.name);
                    let ty = name_of(model, field.nc_type);
                    format!("{name}@{}:{ty}{:?}", field.offset, field.dims)
                })
                .collect::<Vec<_>>()
                .join(" "),
            UserClass::Enum { base, members } => format!("{base} {}", members.len()),
            UserClass::Vlen { base } => format!("{}*", name_of(model, *base)),
            _ => String::new(),
        };
        format!("{} {} ({inside})", String::from_utf8_lossy(&ty.name), ty.size)
    });
    all.collect()
}

#[test]
fn structures_and_sequences() {
    let model = plain(
        "<Structure name='v1'><Int8 name='b'/><Sequence name='v'><Int32 name='v'/><String name='t'/></Sequence>\
         <Int16 name='a'><Dim size='2'/><Dim size='3'/></Int16><Dim name='/d'/></Structure>\
         <Sequence name='s'><Structure name='x'><Float64 name='y'/></Structure></Sequence>\
         <Opaque name='o'/><Dimension name='d' size='2'/>",
    );
    assert_eq!(
        types(&model),
        [
            "opaque16_t 16 ()",
            "v1_v_base_t 16 (v@0:4[] t@8:12[])",
            "v1_v_t 16 (v1_v_base_t*)",
            "v1_t 40 (b@0:1[] v@8:v1_v_t[] a@24:3[2, 3])",
            "s_base_x_t 8 (y@0:6[])",
            "s_base_t 8 (x@0:s_base_x_t[])",
            "s_t 16 (s_base_t*)",
        ]
    );
    let vars: Vec<_> =
        model.vars.iter().map(|var| (var.name.as_str(), name_of(&model, var.nc_type))).collect();
    assert_eq!(vars, [("v1", "v1_t".into()), ("s", "s_t".into()), ("o", "opaque16_t".into())]);
    // The lengths without a name in a field are dimensions, too.
    let dims: Vec<_> = model.dims.iter().map(|dim| (dim.name.as_str(), dim.len)).collect();
    assert_eq!(dims, [("d", 2), ("_Anonymous2", 2), ("_Anonymous3", 3)]);
}

#[test]
fn groups_and_dimensions() {
    let model = plain(
        "<Dimension name='x' size='3'/><Dimension name='_Anonymous5' size='1'/>\
         <Dimension name='t' size='2' _edu.ucar.isunlimited='1'/><Dimension name='z' size='0'/>\
         <Group name='g'><Dimension name='x' size='4'/><Int8 name='a'><Dim name='/x'/><Dim name='/g/x'/><Dim size='5'/></Int8>\
         <Group name='h'><Int8 name='a'><Dim size='5'/></Int8></Group></Group><Group name='i'/>",
    );
    let groups: Vec<_> = model.groups.iter().map(|g| (g.name.as_str(), g.parent)).collect();
    assert_eq!(groups, [("/", None), ("g", Some(0)), ("h", Some(1)), ("i", Some(0))]);
    let dims: Vec<_> = model
        .dims
        .iter()
        .map(|dim| (dim.group, dim.name.as_str(), dim.len, dim.is_unlimited))
        .collect();
    assert_eq!(
        dims,
        [
            (0, "x", 3, false),
            (0, "_Anonymous5", 1, false),
            (0, "t", 2, true),
            (0, "z", 0, true),
            (1, "x", 4, false),
            (0, "_Anonymous5_", 5, false),
        ]
    );
    let vars: Vec<_> = model.vars.iter().map(|var| (var.group, var.dims.clone())).collect();
    assert_eq!(vars, [(1, vec![0, 4, 5]), (2, vec![5])]);
}

#[test]
fn variables_come_behind_their_maps() {
    let model = plain(
        "<Int8 name='v'><Map name='/a'/><Map name='/g/b'/><Map name='/gone'/></Int8>\
         <Int8 name='a'><Map name='/c'/></Int8><Int8 name='c'><Map name='/v'/></Int8><Group name='g'><Int8 name='b'/></Group>",
    );
    let names: Vec<_> = model.vars.iter().map(|var| var.name.as_str()).collect();
    assert_eq!(names, ["c", "a", "b", "v"]);
    let maps = &model.vars[3].atts[0];
    assert_eq!((maps.name.as_str(), maps.nc_type, maps.len), ("_edu.ucar.maps", NC_STRING, 3));
    assert_eq!(maps.values.part(2), Some(&b"/g/b"[..]));
}

#[test]
fn thousands_of_maps_in_a_row() {
    let var = |i: u32| format!("<Int8 name='v{i}'><Map name='/v{}'/></Int8>", i + 1);
    let model = plain(&(0..20_000).map(var).collect::<String>());
    assert_eq!(model.vars[0].name, "v19999");
}

#[test]
fn enumerations() {
    let one = "<Enumeration name='e' basetype='UInt8'><EnumConst name='a' value='1'/><EnumConst name='b' value='255'/></Enumeration>";
    let model = plain(&format!(
        "{one}<Enum name='v' enum='/e'><Attribute name='_FillValue' type='/e'><Value value='b'/></Attribute></Enum>\
         <Group name='g'><Attribute name='x' type='/e'><Value>1</Value></Attribute></Group>"
    ));
    assert_eq!(types(&model), ["e 1 (7 2)"]);
    let fill = &model.vars[0].atts[0];
    assert_eq!((fill.nc_type, fill.values.bytes()), (zonda_format::FIRST_USER_TYPE, &[255][..]));
    assert_eq!(model.groups[1].atts[0].values.bytes(), [1]);
    let no = format!("{one}<Attribute name='x' type='/e'><Value>2</Value></Attribute>");
    assert!(made(&no, Settings::default()).is_err());
    assert!(made("<Enum name='v' enum='/no'/>", Settings::default()).is_err());
}

#[test]
fn fill_values_of_another_type() {
    let text = "<Int16 name='v'><Attribute name='_FillValue' type='Int32'><Value value='-5'/></Attribute></Int16>";
    let fill = &plain(text).vars[0].atts[0];
    assert_eq!((fill.nc_type, fill.values.bytes()), (3, &(-5_i16).to_ne_bytes()[..]));
    let strict = Settings { fixes_fill: false, ..Settings::default() };
    let error = made(text, strict).unwrap_err().to_string();
    assert!(error.contains("attribute _FillValue of /v: the variable has another type"), "{error}");
    let text = "<Int16 name='v'><Attribute name='_FillValue' type='String'><Value>many</Value></Attribute></Int16>";
    assert!(made(text, Settings::default()).is_err());
}

#[test]
fn attributes() {
    let model = plain(
        "<Attribute name='a' type='String'><Value>x &amp; \"y\"</Value><Value/></Attribute>\
         <Attribute name='c' type='Char'><Value value='q'/></Attribute>\
         <Attribute name='f' type='Float32'><Value value='NaN'/><Value value='1e3'/></Attribute>\
         <Attribute name='_DAP4_Little_Endian' type='UInt8'><Value value='1'/></Attribute>\
         <Attribute name='_edu.ucar.x' type='UInt8'><Value value='1'/></Attribute>\
         <Attribute name='k' type='Container'><Attribute name='l' type='Int8'><Value>1</Value></Attribute></Attribute>\
         <Attribute name='u' type='URL'><Value>http://x</Value></Attribute>\
         <Attribute name='a/b' type='Int64' value='7'/>\
         <Attribute name='c' type='Int8'><Value value='1'/></Attribute>",
    );
    let atts: Vec<_> =
        model.groups[0].atts.iter().map(|att| (att.name.as_str(), att.nc_type, att.len)).collect();
    let same = [("a", 12, 2), ("c", 1, 1), ("f", 5, 2), ("u", 12, 1), ("a%2fb", 10, 1)];
    assert_eq!(atts, same);
    assert_eq!(model.groups[0].atts[0].values.part(1), Some(&b"x & \"y\""[..]));
}

#[test]
fn what_netcdf_has_no_form_for() {
    let long = format!("<Int8 name='{}'/>", "n".repeat(257));
    let huge = "<Structure name='s'><Int64 name='a'><Dim size='99999999999'/><Dim size='99999999999'/></Int64></Structure>";
    let faults = [
        "<Int8 name='a'/><Int8 name='a'/>",
        "<Int8 name='a'/><Group name='a'/>",
        "<Dimension name='a' size='1'/><Dimension name='a' size='2'/>",
        "<Structure name='s'/>",
        "<Structure name='s'><Int8 name='a'/><Int8 name='a'/></Structure>",
        "<Structure name='s'><Int8 name='a'><Dim size='0'/></Int8></Structure>",
        "<Int8 name='a'><Dim name='/no'/></Int8>",
        "<Int8 name='a'><Attribute name='b' type='no'/></Int8>",
        huge,
        &long,
    ];
    for text in faults {
        assert!(made(text, Settings::default()).is_err(), "{text}");
    }
}

#[test]
fn names_of_types_are_free_ones() {
    let model = plain(
        "<Int8 name='s_t'/><Structure name='s'><Int8 name='a'/></Structure>\
         <Structure name='a'><Structure name='b'><Int8 name='c'/></Structure></Structure><Structure name='a_b'><Int16 name='c'/></Structure>",
    );
    let names: Vec<_> = model.types.iter().map(|ty| String::from_utf8_lossy(&ty.name)).collect();
    assert_eq!(names, ["s_t_", "a_b_t", "a_t", "a_b_t_"]);
}

#[test]
fn what_a_server_says_of_its_file() {
    let text = "<Opaque name='o' _edu.ucar.opaque.size='8' _edu.ucar.orig.type='/g/raw'/>\
         <Sequence name='s' _edu.ucar.isvlen='1'><Int32 name='s'/></Sequence>\
         <Structure name='c' _edu.ucar.orig.type='/pair'><Int8 name='a'/></Structure>\
         <Structure name='d' _edu.ucar.orig.type='/pair'><Int8 name='a'/></Structure><Group name='g'/>";
    let translated = Settings { translates: true, ..Settings::default() };
    let model = made(text, translated).unwrap();
    assert_eq!(types(&model), ["raw 8 ()", "s_t 16 (4*)", "pair 1 (a@0:1[])"]);
    assert_eq!(model.types[0].group.0, 1);
    assert_eq!(model.vars[2].nc_type, model.vars[3].nc_type);
    assert_eq!(types(&plain(text))[0], "opaque16_t 16 ()");
}

#[test]
fn many_of_everything_take_no_time_with_the_square() {
    let many = |one: &dyn Fn(u32) -> String| (0..8_000).map(one).collect::<String>();
    let attributes = |i| format!("<Attribute name='a{i}' type='Int8'><Value>1</Value></Attribute>");
    assert_eq!(plain(&many(&attributes)).groups[0].atts.len(), 8_000);
    let fields = many(&|i| format!("<Opaque name='f{i}'/>"));
    assert_eq!(plain(&format!("<Structure name='s'>{fields}</Structure>")).types.len(), 2);
    let structures = |i| format!("<Structure name='s{i}'><Int8 name='a'/></Structure>");
    assert_eq!(plain(&many(&structures)).types.len(), 8_000);
    let one = "<Enumeration name='e' basetype='Int8'><EnumConst name='a' value='1'/></Enumeration>";
    let error = made(&one.repeat(8_000), Settings::default()).unwrap_err().to_string();
    assert!(error.contains("too long"), "{error}");
}
