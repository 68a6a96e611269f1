use super::*;
use crate::kind::NetCdfKind;
use crate::schema::{Endian, StorageLayout, TypeClass};
use proptest::prelude::*;

fn schema(text: &str) -> Result<Schema, CdlFault> {
    let source = CdlText::from_bytes(text.as_bytes().to_vec()).unwrap();
    parse(&source, Dialect::Enhanced, None, None)
}

fn body(text: &str) -> Schema {
    schema(&format!("netcdf x {{ {text} }}")).unwrap()
}

#[test]
fn definitions() {
    let made = body(
        "types: int enum e { A = 1, B = 0x2s } ; dimensions: x = 3, t = UNLIMITED ; \
         variables: int a(t, x), b ; e c(x) ; data: a = 1, 2 ; b = 3 ; ",
    );
    assert_eq!(
        made.dims.iter().map(|dim| (dim.len, dim.unlimited)).collect::<Vec<_>>(),
        [(3, false), (0, true)]
    );
    assert_eq!(
        made.vars.iter().map(|var| &var.dims[..]).collect::<Vec<_>>(),
        [&[1, 0][..], &[], &[0]]
    );
    assert_eq!(made.vars[2].ty, TypeRef::User(0));
    assert!(made.vars[0].data.is_some() && made.vars[2].data.is_none());
    match &made.types[0].class {
        TypeClass::Enum { members, .. } => assert_eq!(members[1].value[..4], 2i32.to_ne_bytes()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn data_are_where_they_are_said_to_be() {
    let text =
        "netcdf x { variables: int a ; string s ; data: a = 1 ; s = \"a;b\" /* ; */ ; a =2; }";
    let made = schema(text).unwrap();
    let data = |var: usize| {
        let (begin, end) = made.vars[var].data.unwrap();
        &text[usize::try_from(begin).unwrap()..usize::try_from(end).unwrap()]
    };
    assert_eq!((data(0), data(1)), ("2", " \"a;b\" /* ; */ "));
}

#[test]
fn groups_and_scopes() {
    let made = body(
        "types: opaque(2) o ; dimensions: x = 1 ; \
         group: a { dimensions: x = 2 ; variables: o v(x) ; o w(/x) ; group: b { variables: float v(x) ; } } \
         :after = 1 ; variables: int v(x) ;",
    );
    let dims: Vec<_> = made.vars.iter().map(|var| (var.group, var.dims[0])).collect();
    assert_eq!(dims, [(1, 1), (1, 0), (2, 1), (0, 0)]);
    assert_eq!((made.atts[0].group, made.group_path(2)), (0, b"/a/b".to_vec()));
    assert_eq!(made.group_path(0), b"/");
}

#[test]
fn attributes() {
    let made = body(
        "types: int(*) l ; variables: int v ; string t ; v:a = 1, 2 ; float v:b = 1 ; :c = \"x\" ; \
         double :d = 1 ; l :e = {1} ; l v:f = {1} ; v:_FillValue = -1 ; v : int = 3 ;",
    );
    let types: Vec<String> = made.atts.iter().map(|att| made.type_name(att.ty)).collect();
    assert_eq!(types, ["int", "float", "char", "double", "l", "l", "int", "int"]);
    let owners: Vec<_> = made.atts.iter().map(|att| att.var.is_some()).collect();
    assert_eq!(owners, [true, true, false, false, false, true, true, true]);
    assert!(made.vars[0].fill.is_some());
    assert_eq!(made.atts[7].name, b"int");
}

#[test]
fn special_attributes() {
    let made = body(
        "dimensions: x = 4 ; variables: int v(x) ; v:_ChunkSizes = 2 ; v:_DeflateLevel = 3 ; \
         v:_Shuffle = \"true\" ; v:_Fletcher32 = 0 ; v:_Endianness = \"big\" ; v:_NoFill = \"true\" ; \
         v:_Filter = \"2,4|1,9\" ; v:_Codecs = \"[]\" ; :_Format = \"netCDF-4 classic model\" ; \
         v:_Other = 1 ; :_Filter = 2 ;",
    );
    let special = &made.vars[0].special;
    assert_eq!(special.storage, Some(StorageLayout::Chunked));
    assert_eq!(special.chunk_sizes, Some(vec![2]));
    assert_eq!(
        (special.deflate, special.shuffle, special.fletcher32),
        (Some(3), Some(true), Some(false))
    );
    assert_eq!((special.endianness, special.no_fill), (Some(Endian::Big), Some(true)));
    assert_eq!(special.filters, [(2, vec![4]), (1, vec![9])]);
    assert_eq!(made.kind(), NetCdfKind::NetCdf4Classic);
    assert_eq!(made.atts.len(), 2);
}

#[test]
fn kinds_follow_from_what_is_used() {
    for (text, kind) in [
        ("variables: int v ;", NetCdfKind::Classic),
        ("variables: ubyte v ;", NetCdfKind::Data64),
        (":a = 3000000000 ;", NetCdfKind::Data64),
        ("variables: string v ;", NetCdfKind::NetCdf4),
        ("group: g { }", NetCdfKind::NetCdf4),
        ("types: opaque(1) o ;", NetCdfKind::NetCdf4),
        ("dimensions: a = UNLIMITED ; b = UNLIMITED ;", NetCdfKind::NetCdf4),
        ("variables: int v ; v:_NoFill = 1 ;", NetCdfKind::NetCdf4),
        (":_Format = \"64-bit offset\" ;", NetCdfKind::Offset64),
        ("variables: int v ; v:_FillValue = 1 ;", NetCdfKind::Classic),
    ] {
        assert_eq!(body(text).kind(), kind, "{text}");
    }
    let mut made = body("variables: int64 v ; ubyte u ;");
    made.settle(NetCdfKind::Classic);
    let types: Vec<String> = made.vars.iter().map(|var| made.type_name(var.ty)).collect();
    assert_eq!(types, ["int", "ubyte"]);
}

#[test]
fn keywords_can_be_names() {
    let made = body(
        "dimensions: float = 2 ; variables: int char(float) ; double string, enum ; \
         char:units = \"m\" ; string:x = 1 ; enum:y = 2 ; data: char = 1, 2 ; group: int { variables: byte short ; }",
    );
    assert_eq!(
        made.vars.iter().map(|var| &var.name[..]).collect::<Vec<_>>(),
        [&b"char"[..], b"string", b"enum", b"short"]
    );
    assert_eq!(
        made.atts.iter().map(|att| att.var).collect::<Vec<_>>(),
        [Some(0), Some(1), Some(2)]
    );
    assert!(made.vars[0].data.is_some());
}

#[test]
fn types_of_the_kind_are_keywords() {
    let text = b"netcdf x { dimensions: int64 = 1 ; string = 1 ; variables: int uint64(string) ; }";
    let source = CdlText::from_bytes(text.to_vec()).unwrap();
    for (kind, at) in [
        (None, None),
        (Some(NetCdfKind::Classic), None),
        (Some(NetCdfKind::Data64), Some(23)),
        (Some(NetCdfKind::NetCdf4), Some(23)),
    ] {
        let made = parse(&source, Dialect::Enhanced, None, kind);
        assert_eq!(made.err().and_then(|fault| fault.at), at, "{kind:?}");
    }
}

#[test]
fn types_made_of_others_come_later() {
    let made = body(
        "types: int(*) a ; a(*) b ; opaque(1) c ; compound d { c x ; } ; compound e { int y ; } ;",
    );
    assert_eq!(made.type_order(), [0, 2, 4, 1, 3]);
}

#[test]
fn classic_language() {
    let read = |text: &str| {
        let source = CdlText::from_bytes(text.as_bytes().to_vec()).unwrap();
        parse(&source, Dialect::Classic, Some(b"other"), None)
    };
    let made = read("netcdf x { variables: int v ; v:a = 0x10 ; v:_Storage = \"x\" ; }").unwrap();
    assert_eq!((made.atts.len(), made.groups[0].name.clone()), (2, b"other".to_vec()));
    for refused in ["types:", "group: g { }", "variables: string s ;", "variables: ubyte s ;"] {
        assert!(read(&format!("netcdf x {{ {refused} }}")).is_err(), "{refused}");
    }
}

#[test]
fn layout_of_compounds() {
    let made = body(
        "types: compound c { byte a ; double b ; short d(3) ; } ; compound e { byte x ; c y ; } ;",
    );
    assert_eq!((made.types[0].size, made.types[0].align), (24, 8));
    match &made.types[1].class {
        TypeClass::Compound(fields) => assert_eq!(fields[1].offset, 8),
        other => panic!("{other:?}"),
    }
    for large in ["int a(2000000000)", "byte a(2147483647), b(2)", "double a(9999999999)"] {
        assert!(schema(&format!("netcdf x {{ types: compound c {{ {large} ; }} }}")).is_err());
    }
}

#[test]
fn faults_have_places() {
    for (text, at) in [
        ("netcdf x { variables: int v(q) ; }", 28),
        ("netcdf x { variables: int v v ; }", 28),
        ("netcdf x { data: v = 1 ; }", 17),
        ("netcdf x { variables: int v ; data: v = 1, 2", 36),
        ("netcdf x { variables: int v ; data: v = 1 2 }", 42),
        ("netcdf x { dimensions: x = -1 ; }", 27),
        ("netcdf x { variables: foo v ; }", 22),
        ("netcdf x { } x", 13),
        ("cdf", 0),
        ("netcdf x", 6),
    ] {
        let fault = schema(text).unwrap_err();
        assert_eq!(fault.at, Some(at), "{text}: {fault}");
    }
}

#[test]
fn deep_nesting_ends() {
    let deep = "{".repeat(100_000);
    assert!(schema(&format!("netcdf x {{ :a = {deep} ; }}")).is_err());
    let groups = "group: g { ".repeat(20_000);
    assert!(schema(&format!("netcdf x {{ {groups}")).is_err());
    let closed = format!("{}{}", "group: g { ".repeat(900), "}".repeat(900));
    assert_eq!(body(&closed).groups.len(), 901);
}

proptest! {
    #[test]
    fn any_tokens(words in proptest::collection::vec(
        prop::sample::select(vec![
            "types:", "dimensions:", "variables:", "data:", "group:", "int", "float", "string", "ubyte",
            "enum", "compound", "opaque", "(", ")", "*", "{", "}", "=", ",", ";", ":", "a", "b", "/a", "_",
            "1", "2.5", "0x12", "\"s\"", "'c'", "NIL", "NaN", "UNLIMITED", "_FillValue", "_ChunkSizes", "//",
            "/*", "*/", "\n", "\\", "-", "x\\ y",
        ]), 0..60)) {
        let text = format!("netcdf x {{ {} }}", words.join(" "));
        let source = CdlText::from_bytes(text.clone().into_bytes()).unwrap();
        for dialect in [Dialect::Enhanced, Dialect::Classic] {
            match parse(&source, dialect, None, None) {
                Ok(mut schema) => {
                    let _ = crate::data::stream(&source, &mut schema, &mut crate::data::Nowhere);
                }
                Err(fault) => {
                    prop_assert!(fault.at.is_none_or(|at| at <= text.len() as u64));
                    let _ = fault.explain("a.cdl", &source);
                }
            }
        }
    }
}
