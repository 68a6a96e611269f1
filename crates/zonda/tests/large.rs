//! Variables and offsets beyond 2 and 4 GiB, in sparse files, and moves of much.

mod common;

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{get, put, shape};
use zonda::{
    CreateOptions, Dataset, ExtType, FillMode, Format, NcError, OpenOptions, Reserve, VarId,
};
use zonda_testkit::TempFolder;

const GIB: u64 = 1 << 30;

/// Most bytes that a test file may take on disk.
const SPARSE: u64 = 8 << 20;

fn make(path: &Path, format: Format) -> Dataset {
    let options = CreateOptions { format, ..CreateOptions::default() };
    let file = Dataset::create(path, &options).expect("create");
    file.set_fill(FillMode::NoFill).expect("set_fill");
    file
}

fn reopen(path: &Path) -> Dataset {
    Dataset::open(path, &OpenOptions::default()).expect("open")
}

fn check_sparse(path: &Path, least: u64) {
    let meta = std::fs::metadata(path).expect("metadata");
    assert!(meta.len() > least, "{} bytes", meta.len());
    assert!(meta.blocks() * 512 < SPARSE, "{} blocks on disk", meta.blocks());
}

/// An element and its expected value.
struct Element {
    var: &'static str,
    at: Vec<usize>,
    value: f64,
}

/// Reads the elements by the distribution's library; says so where there is none.
fn check_with_reference(folder: &TempFolder, path: &Path, elements: &[Element]) {
    let Some(program) = reference_program(folder) else {
        skipped();
        return;
    };
    let mut arguments: Vec<OsString> = vec![path.into()];
    for element in elements {
        arguments.push(element.var.into());
        for i in &element.at {
            arguments.push(i.to_string().into());
        }
    }
    let output = Command::new(program).args(arguments).output().expect("the program runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", path.display());
    let text = String::from_utf8(output.stdout).expect("ASCII");
    let got: Vec<f64> = text.lines().map(|line| line.parse().expect("a number")).collect();
    let expected: Vec<f64> = elements.iter().map(|element| element.value).collect();
    assert_eq!(got, expected, "{}", path.display());
}

fn skipped() {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "skipped: no C compiler or no libnetcdf to read back with");
}

/// Prints elements of variables: FILE then, as often as wanted, NAME and its indices.
const READER: &str = r#"
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#define TRY(e) do { int s = (e); if (s) { fprintf(stderr, "%s\n", nc_strerror(s)); return 1; } } while (0)
int main(int argc, char **argv)
{
    int ncid, varid, rank;
    size_t at[8];
    double value;
    TRY(nc_open(argv[1], NC_NOWRITE, &ncid));
    for (int i = 2; i < argc;) {
        TRY(nc_inq_varid(ncid, argv[i++], &varid));
        TRY(nc_inq_varndims(ncid, varid, &rank));
        for (int d = 0; d < rank && i < argc; d++) at[d] = strtoull(argv[i++], NULL, 10);
        TRY(nc_get_var1_double(ncid, varid, at, &value));
        printf("%.17g\n", value);
    }
    TRY(nc_close(ncid));
    return 0;
}
"#;

/// The program above, built against the library of the system.
fn reference_program(folder: &TempFolder) -> Option<PathBuf> {
    let (source, program) = (folder.file("reader.c"), folder.file("reader"));
    std::fs::write(&source, READER).expect("write");
    let built = Command::new("gcc").arg("-o").arg(&program).arg(&source).arg("-lnetcdf").output();
    built.is_ok_and(|output| output.status.success()).then_some(program)
}

/// Puts eight elements of a byte variable of rows of 1 GiB so that they lie around byte `offset` of
/// the file; the elements.
fn around(file: &Dataset, var: VarId, name: &'static str, offset: u64) -> Vec<Element> {
    let begin = file.meta(|meta| meta.var(var).expect("var").classic.expect("classic").begin);
    let first = offset - begin - 4;
    let (row, column) = ((first / GIB) as usize, (first % GIB) as usize);
    let values: Vec<f64> = (0..8).map(|i| f64::from(i) + (offset >> 28) as f64).collect();
    put(file, var, &[row, column], &[1, 8], &values).expect("put");
    let element = |(i, &value)| Element { var: name, at: vec![row, column + i], value };
    values.iter().enumerate().map(element).collect()
}

fn check(file: &Dataset, elements: &[Element]) {
    for Element { var, at, value } in elements {
        let id = file.meta(|meta| meta.find_var(var.as_bytes())).expect("find_var");
        assert_eq!(get(file, id, at, &vec![1; at.len()]).expect("get"), [*value], "{var} {at:?}");
    }
}

/// Small things first, then one byte variable of `rows` GiB: allowed in every format.
fn last_is_huge(format: Format, rows: usize) {
    let folder = TempFolder::new("large");
    let path = folder.file("last.nc");
    let file = make(&path, format);
    let row = file.def_dim(b"row", rows).expect("def_dim");
    let column = file.def_dim(b"column", GIB as usize).expect("def_dim");
    file.def_var(b"first", ExtType::Double.nc_type(), &[row.0]).expect("def_var");
    file.def_var(b"huge", ExtType::Byte.nc_type(), &[row.0, column.0]).expect("def_var");
    file.enddef(Reserve::Default).expect("enddef");
    let mut elements = Vec::new();
    for offset in (2..=rows as u64 - 1).step_by(2).map(|n| n * GIB) {
        elements.extend(around(&file, VarId(1), "huge", offset));
    }
    let last = [rows - 1, GIB as usize - 1];
    put(&file, VarId(1), &last, &[1, 1], &[-5.0]).expect("put");
    elements.push(Element { var: "huge", at: last.to_vec(), value: -5.0 });
    elements.push(Element { var: "huge", at: vec![rows - 1, 0], value: 0.0 });
    put(&file, VarId(0), &[1], &[1], &[0.25]).expect("put");
    elements.push(Element { var: "first", at: vec![1], value: 0.25 });
    check(&file, &elements);
    file.close().expect("close");
    check(&reopen(&path), &elements);
    check_sparse(&path, rows as u64 * GIB);
    check_with_reference(&folder, &path, &elements);
}

#[test]
fn cdf1_last_variable_beyond_2_gib() {
    last_is_huge(Format::Cdf1, 3);
}

#[test]
fn cdf2_last_variable_beyond_4_gib() {
    last_is_huge(Format::Cdf2, 5);
}

#[test]
fn cdf5_last_variable_beyond_4_gib() {
    last_is_huge(Format::Cdf5, 5);
}

#[test]
fn cdf5_variables_behind_a_huge_one() {
    let folder = TempFolder::new("large");
    let path = folder.file("middle.nc");
    let file = make(&path, Format::Cdf5);
    // More elements than 32 bits count.
    let n = (1usize << 32) + 1000;
    let x = file.def_dim(b"x", n).expect("def_dim");
    let few = file.def_dim(b"few", 3).expect("def_dim");
    let time = file.def_dim(b"time", 0).expect("def_dim");
    file.def_var(b"huge", ExtType::UShort.nc_type(), &[x.0]).expect("def_var");
    file.def_var(b"behind", ExtType::Int64.nc_type(), &[few.0]).expect("def_var");
    file.def_var(b"records", ExtType::Double.nc_type(), &[time.0, few.0]).expect("def_var");
    file.enddef(Reserve::Default).expect("enddef");
    let begin = file.meta(|meta| meta.var(VarId(1)).expect("var").classic.expect("classic").begin);
    assert!(begin > 8 * GIB, "{begin}");
    let mut elements = Vec::new();
    for at in [0, (1 << 30) - 1, 1 << 30, 1 << 31, (1 << 32) - 1, 1 << 32, n - 1] {
        let value = (at % 60_000) as f64 + 1.0;
        put(&file, VarId(0), &[at], &[1], &[value]).expect("put");
        elements.push(Element { var: "huge", at: vec![at], value });
    }
    put(&file, VarId(1), &[0], &[3], &[1.0, 2.0, -3.0]).expect("put");
    elements.push(Element { var: "behind", at: vec![2], value: -3.0 });
    put(&file, VarId(2), &[4, 0], &[1, 3], &[1.5, 2.5, 3.5]).expect("put");
    elements.push(Element { var: "records", at: vec![4, 1], value: 2.5 });
    check(&file, &elements);
    let beyond = put(&file, VarId(0), &[n], &[1], &[1.0]);
    assert_eq!(beyond.expect_err("outside").code(), NcError::InvalidCoords);
    let beyond = put(&file, VarId(0), &[n - 1], &[2], &[1.0; 2]);
    assert_eq!(beyond.expect_err("outside").code(), NcError::Edge);
    file.close().expect("close");
    let file = reopen(&path);
    assert_eq!(shape(&file, VarId(0)), [n]);
    check(&file, &elements);
    check_sparse(&path, 8 * GIB);
    check_with_reference(&folder, &path, &elements);
}

#[test]
fn records_beyond_4_gib() {
    for format in [Format::Cdf1, Format::Cdf2, Format::Cdf5] {
        let folder = TempFolder::new("large");
        let path = folder.file("records.nc");
        let file = make(&path, format);
        // 48 MiB and a bit per record: record 43 contains byte 2^31, record 85 byte 2^32.
        let len = (48 << 20) / 4 + 5;
        let time = file.def_dim(b"time", 0).expect("def_dim");
        let x = file.def_dim(b"x", len).expect("def_dim");
        file.def_var(b"a", ExtType::Short.nc_type(), &[time.0, x.0]).expect("def_var");
        file.def_var(b"b", ExtType::Short.nc_type(), &[time.0, x.0]).expect("def_var");
        file.enddef(Reserve::Default).expect("enddef");
        let record_len = file.meta(|meta| meta.layout()).expect("classic").record_len;
        let mut elements = Vec::new();
        for offset in [GIB * 2, GIB * 4, GIB * 5] {
            for (var, name) in [(VarId(0), "a"), (VarId(1), "b")] {
                let begin =
                    file.meta(|meta| meta.var(var).expect("var").classic.expect("classic").begin);
                let record = ((offset - begin) / record_len) as usize;
                let inside = ((offset - begin) % record_len) as usize / 2;
                for column in [0, inside.saturating_sub(1).min(len - 1), len - 1] {
                    let value = (record * 10 + column % 10) as f64;
                    put(&file, var, &[record, column], &[1, 1], &[value]).expect("put");
                    elements.push(Element { var: name, at: vec![record, column], value });
                }
                put(&file, var, &[record, inside.min(len - 2)], &[1, 1], &[77.0]).expect("put");
                let at = vec![record, inside.min(len - 2)];
                elements.retain(|element| element.at != at || element.var != name);
                elements.push(Element { var: name, at, value: 77.0 });
            }
        }
        check(&file, &elements);
        file.close().expect("close");
        check(&reopen(&path), &elements);
        check_sparse(&path, GIB * 5 - record_len);
        check_with_reference(&folder, &path, &elements);
    }
}

/// A header that outgrows its place moves gigabytes of holes and some data.
#[test]
fn data_that_move_keep_values_and_holes() {
    let folder = TempFolder::new("large");
    let path = folder.file("moved.nc");
    let file = make(&path, Format::Cdf2);
    let row = file.def_dim(b"row", 5).expect("def_dim");
    let column = file.def_dim(b"column", GIB as usize).expect("def_dim");
    file.def_var(b"huge", ExtType::Byte.nc_type(), &[row.0, column.0]).expect("def_var");
    file.enddef(Reserve::Default).expect("enddef");
    let mut elements = Vec::new();
    for offset in [GIB, 2 * GIB + 4096, 4 * GIB - 2, 5 * GIB - 100] {
        elements.extend(around(&file, VarId(0), "huge", offset));
    }
    grow_header(&file, 100_000);
    check(&file, &elements);
    file.close().expect("close");
    check(&reopen(&path), &elements);
    check_sparse(&path, 5 * GIB);
    check_with_reference(&folder, &path, &elements);
}

/// Whether the system copies runs or the library does (a layer watches): the same bytes.
#[test]
fn data_that_move_are_the_same_by_either_way() {
    let folder = TempFolder::new("large");
    let made = [None, Some("cache,count,file".to_owned())].map(|io| {
        let path = folder.file(if io.is_some() { "watched.nc" } else { "plain.nc" });
        let options = CreateOptions { format: Format::Cdf2, io: io.clone(), ..Default::default() };
        let file = Dataset::create(&path, &options).expect("create");
        file.set_fill(FillMode::NoFill).expect("set_fill");
        let time = file.def_dim(b"time", 0).expect("def_dim");
        let n = file.def_dim(b"n", 700_001).expect("def_dim");
        let few = file.def_dim(b"few", 3).expect("def_dim");
        for (name, nc_type, dims) in [
            ("a", ExtType::Double, &[n.0][..]),
            ("b", ExtType::Byte, &[few.0]),
            ("c", ExtType::Int, &[few.0, n.0]),
            ("d", ExtType::Float, &[time.0, n.0]),
            ("e", ExtType::Short, &[time.0, few.0]),
        ] {
            file.def_var(name.as_bytes(), nc_type.nc_type(), dims).expect("def_var");
        }
        file.enddef(Reserve::Default).expect("enddef");
        let line: Vec<f64> = (0..700_001).map(f64::from).collect();
        put(&file, VarId(0), &[0], &[700_001], &line).expect("put");
        put(&file, VarId(1), &[0], &[3], &[1.0, 2.0, 3.0]).expect("put");
        // The second of three rows is a hole.
        put(&file, VarId(2), &[0, 0], &[1, 700_001], &line).expect("put");
        put(&file, VarId(2), &[2, 0], &[1, 700_001], &line).expect("put");
        for step in 0..4 {
            put(&file, VarId(3), &[step, 0], &[1, 700_001], &line).expect("put");
            put(&file, VarId(4), &[step, 0], &[1, 3], &[4.0, 5.0, 6.0]).expect("put");
        }
        file.close().expect("close");
        let options = OpenOptions { write: true, io, ..OpenOptions::default() };
        let file = Dataset::open(&path, &options).expect("open");
        // A put that is in the cache only when the data move.
        put(&file, VarId(0), &[350_000], &[2], &[-1.0, -2.0]).expect("put");
        grow_header(&file, 70_001);
        file.close().expect("close");
        let file = reopen(&path);
        let mut line = line;
        line[350_000..350_002].copy_from_slice(&[-1.0, -2.0]);
        assert!(get(&file, VarId(0), &[0], &[700_001]).expect("get") == line);
        let elements = [("a", vec![350_001], -2.0), ("c", vec![2, 7], 7.0), ("d", vec![3, 9], 9.0)];
        let elements = elements.map(|(var, at, value)| Element { var, at, value });
        check_with_reference(&folder, &path, &elements);
        std::fs::read(&path).expect("read")
    });
    assert!(made[0] == made[1], "the files differ");
}

/// Adds an attribute of so many bytes.
fn grow_header(file: &Dataset, n: usize) {
    file.redef().expect("redef");
    let text = vec![b'x'; n];
    let nc_type = ExtType::Char.nc_type();
    file.put_att(VarId::GLOBAL, b"long", nc_type, n, None, &text).map(drop).expect("put_att");
    file.enddef(Reserve::Default).expect("enddef");
}

#[test]
fn what_the_formats_cannot_hold_is_refused() {
    let folder = TempFolder::new("large");
    let path = folder.file("refused.nc");
    for (format, rows) in [(Format::Cdf1, 2), (Format::Cdf2, 4)] {
        let file = make(&path, format);
        let row = file.def_dim(b"row", rows).expect("def_dim");
        let column = file.def_dim(b"column", GIB as usize).expect("def_dim");
        file.def_var(b"huge", ExtType::Byte.nc_type(), &[row.0, column.0]).expect("def_var");
        file.def_var(b"behind", ExtType::Byte.nc_type(), &[row.0]).expect("def_var");
        let error = file.enddef(Reserve::Default).expect_err("too large, and not the last");
        assert_eq!(error.code(), NcError::VarSize);
        assert!(error.to_string().contains("variable huge: too large for CDF-"), "{error}");
        assert!(file.in_define_mode());
        file.abort().expect("abort");
        assert!(!path.exists(), "an aborted creation leaves no file");
    }
    // Behind 2^31 - 1 no variable of CDF-1 can begin.
    let file = make(&path, Format::Cdf1);
    let x = file.def_dim(b"x", 0x7FFF_0000).expect("def_dim");
    let y = file.def_dim(b"y", 0x1_0000).expect("def_dim");
    for (name, dim) in [(b"a", x), (b"b", y), (b"c", y)] {
        file.def_var(name, ExtType::Byte.nc_type(), &[dim.0]).expect("def_var");
    }
    let error = file.enddef(Reserve::Default).expect_err("its begin is too large");
    assert_eq!(error.code(), NcError::VarSize);
    file.abort().expect("abort");
}
