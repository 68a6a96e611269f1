use super::*;
use crate::dialect::Dialect;
use crate::parser::parse;

/// Variable, start, count and bytes of a put.
type Put = (usize, Vec<u64>, Vec<u64>, Vec<u8>);

/// Keeps everything, and says whether it fills.
#[derive(Default)]
struct Kept {
    puts: Vec<Put>,
    fills: bool,
    warnings: Vec<String>,
}

impl DataSink for Kept {
    fn put(
        &mut self,
        _: &Schema,
        var: usize,
        slab: DataSlab<'_>,
        values: &mut Elements,
    ) -> Result<(), String> {
        self.puts.push((var, slab.start.to_vec(), slab.count.to_vec(), values.bytes.clone()));
        Ok(())
    }

    fn fills(&self, _: &Schema, _: usize) -> bool {
        self.fills
    }

    fn warn(&mut self, fault: &CdlFault) {
        self.warnings.push(fault.message.clone());
    }
}

fn read(text: &str, fills: bool) -> Result<(Kept, Schema), CdlFault> {
    let text = format!("netcdf x {{ {text} }}");
    let source = CdlText::from_bytes(text.into_bytes()).unwrap();
    let mut schema = parse(&source, Dialect::Enhanced, None, None)?;
    let mut kept = Kept { fills, ..Kept::default() };
    stream(&source, &mut schema, &mut kept)?;
    Ok((kept, schema))
}

/// The variable as one array of bytes, `missing` where nothing was put.
fn array(kept: &Kept, schema: &Schema, var: usize, missing: u8) -> Vec<u8> {
    let variable = &schema.vars[var];
    let (shape, size) = (lengths(schema, variable), schema.size_of(variable.ty));
    let mut out = vec![missing; usize::try_from(product(&shape)).unwrap() * size];
    for (_, start, count, bytes) in kept.puts.iter().filter(|put| put.0 == var) {
        for (n, value) in bytes.chunks(size).enumerate() {
            let within = slab::index(count, n as u64);
            let at =
                within.iter().zip(start).zip(&shape).fold(0, |at, ((w, s), len)| at * len + w + s);
            let at = usize::try_from(at).unwrap() * size;
            out[at..at + size].copy_from_slice(value);
        }
    }
    out
}

fn bytes(text: &str, var: usize) -> Vec<u8> {
    let (kept, schema) = read(text, false).unwrap();
    array(&kept, &schema, var, 99)
}

#[test]
fn values_and_what_is_missing() {
    let text = "dimensions: x = 3 ; y = 2 ; variables: byte v(x, y) ; v:_FillValue = 7 ; data: v = 1, 2, _, 4 ;";
    assert_eq!(bytes(text, 0), [1, 2, 7, 4, 7, 7]);
    let (kept, schema) = read(text, true).unwrap();
    assert_eq!(array(&kept, &schema, 0, 99), [1, 2, 7, 4, 99, 99]);
    let text = "dimensions: x = 2 ; variables: byte v(x) ; data: v = 1, 2, 3, 4 ;";
    let (kept, schema) = read(text, true).unwrap();
    assert_eq!((array(&kept, &schema, 0, 99), kept.warnings.len()), (vec![1, 2], 1));
    assert_eq!(bytes("variables: byte v ; data: v = 5 ;", 0), [5]);
    assert_eq!(bytes("variables: byte v ; data: v = ;", 0), [129]);
}

#[test]
fn records_of_all_variables() {
    let text = "dimensions: t = UNLIMITED ; x = 2 ; variables: byte a(t, x) ; byte b(t) ; byte c(t) ; \
                a:_FillValue = 9 ; data: a = 1, 2, 3 ; b = 1, 2, 3, 4 ;";
    assert_eq!(bytes(text, 0), [1, 2, 3, 9, 9, 9, 9, 9]);
    let (kept, schema) = read(text, true).unwrap();
    assert_eq!(schema.dims[0].len, 4);
    // Only the last value is put, so that the variable is that long.
    assert_eq!(array(&kept, &schema, 0, 99), [1, 2, 3, 99, 99, 99, 99, 9]);
    assert!(kept.puts.iter().all(|put| put.0 != 2));
}

#[test]
fn inner_unlimited_dimensions() {
    let text = "dimensions: u = UNLIMITED ; v = UNLIMITED ; x = 2 ; variables: byte a(u, v) ; byte b(x, v) ; \
                byte c(u, x, v) ; byte d(v, x) ; a:_FillValue = 0 ; b:_FillValue = 0 ; c:_FillValue = 0 ; \
                d:_FillValue = 0 ; data: a = {1, 2}, {3} ; b = {4} ; c = {1}, {2, 3}, {4} ; d = 1, 2, 3 ;";
    assert_eq!(bytes(text, 0), [1, 2, 3, 0]);
    assert_eq!(bytes(text, 1), [4, 0, 0, 0]);
    assert_eq!(bytes(text, 2), [1, 0, 2, 3, 4, 0, 0, 0]);
    assert_eq!(bytes(text, 3), [1, 2, 3, 0]);
    let (kept, schema) = read(text, true).unwrap();
    assert_eq!(array(&kept, &schema, 2, 99), [1, 99, 2, 3, 4, 99, 99, 0]);
    for wrong in ["a = 1", "a = {1}, 2", "b = {1}, {2}, {3}", "a = {{1}}", "a = {1", "a = {1} {2}"]
    {
        let text = text.replace("data: a = {1, 2}, {3} ; b = {4} ;", &format!("data: {wrong} ;"));
        assert!(read(&text, true).is_err(), "{wrong}");
    }
}

#[test]
fn strings_side_by_side() {
    let chars = |dims: &str, list: &str| {
        let text = format!(
            "dimensions: n = 2 ; m = 3 ; u = UNLIMITED ; w = UNLIMITED ; variables: char v{dims} ; \
             v:_FillValue = \".\" ; data: v = {list} ;"
        );
        String::from_utf8(bytes(&text, 0)).unwrap()
    };
    assert_eq!(chars("(m)", "\"a\", \"b\""), "ab.");
    assert_eq!(chars("(n, m)", "\"a\", \"bcd\""), "a..bcd");
    assert_eq!(chars("(n, m)", "\"abcd\""), "abcd..");
    assert_eq!(chars("(n, m)", "\"\", 'x', 'y'"), "...xy.");
    assert_eq!(chars("(u)", "\"abc\", 'd'"), "abcd");
    assert_eq!(chars("(u, m)", "\"abc\", \"d\""), "abcd..");
    assert_eq!(chars("(u, w)", "{\"1\", \"two\"}, {\"three\"}"), "1two.three");
    assert_eq!(chars("(n, w, m)", "{\"a\"}, {\"b\", \"c\"}"), "a.....b..c..");
    assert_eq!(chars("(n, m)", "{\"abc\"}, {\"d\"}"), "abcd..");
    assert_eq!(chars("", "\"xyz\""), "x");
    assert_eq!(chars("(m)", "_, 'a'"), ".a.");
}

#[test]
fn fast_and_slow_way_meet() {
    for (list, expected) in [
        ("1, 2, '\\3', 4", &[1, 2, 3, 4][..]),
        ("1 /* one */ , 2, 3, 4", &[1, 2, 3, 4]),
        ("1, \"2\", 3", &[1, 2, 3, 9]),
        ("0x01, 2 , 3", &[1, 2, 3, 9]),
        ("1, 2 // two\n, 3", &[1, 2, 3, 9]),
    ] {
        let text = format!(
            "dimensions: x = 4 ; variables: byte v(x) ; v:_FillValue = 9 ; data: v = {list} ;"
        );
        let list = text.replace("'\\3'", "'\\003'");
        assert_eq!(bytes(&list, 0), expected, "{list}");
    }
    for wrong in ["1 2", "1,, 2", ", 1", "1,", "{1}", "1, x", "1 //\n 2"] {
        let text = format!("dimensions: x = 4 ; variables: byte v(x) ; data: v = {wrong} ;");
        let fault = read(&text, true).err();
        assert!(fault.is_some_and(|fault| fault.at.is_some()), "{wrong}");
    }
}

#[test]
fn long_data_come_in_blocks() {
    let numbers: Vec<String> = (0..2_000_000).map(|n| n.to_string()).collect();
    let text = format!(
        "dimensions: t = UNLIMITED ; x = 1000 ; variables: int v(t, x) ; data: v = {} ;",
        numbers.join(",\n")
    );
    let (kept, schema) = read(&text, true).unwrap();
    assert!(kept.puts.len() > 1 && schema.dims[0].len == 2000);
    let expected: Vec<u8> = (0..2_000_000i32).flat_map(i32::to_ne_bytes).collect();
    assert!(array(&kept, &schema, 0, 0) == expected);
}

#[test]
fn nobody_fills_for_ever() {
    let text = "types: opaque(9) o ; dimensions: x = 1000000000000000 ; variables: o v(x) ; data: v = 0x01 ;";
    assert!(read(text, false).is_err());
}
