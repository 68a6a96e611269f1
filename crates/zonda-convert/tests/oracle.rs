//! Compares the scalar definition of conversions with the distribution's library.
//!
//! `tests/oracle/conversion_facts.c` asks a libnetcdf about every pair of types, both directions,
//! variables and attributes, CDF-1, CDF-2, CDF-5 and netCDF-4; each line it prints must be what `generic`
//! says. `ZONDA_ORACLE_LIBRARY` names another library to ask (Zonda's own, for instance).

#![allow(clippy::print_stdout, reason = "a test without its oracle says that it was skipped")]

use std::path::{Path, PathBuf};
use std::process::Command;

use zonda_convert::{ByteOrder, Decoder, Encoder, RangeRule, generic};
use zonda_model::{ExtType, MemType};

const NC_NOERR: i32 = 0;
const NC_ECHAR: i32 = -56;
const NC_ERANGE: i32 = -60;

fn mem_type(c_family: &str) -> MemType {
    match c_family {
        "schar" => MemType::I8,
        "uchar" => MemType::U8,
        "short" => MemType::I16,
        "ushort" => MemType::U16,
        "int" => MemType::I32,
        "uint" => MemType::U32,
        "longlong" => MemType::I64,
        "ulonglong" => MemType::U64,
        "float" => MemType::F32,
        "double" => MemType::F64,
        other => panic!("unknown memory type {other}"),
    }
}

fn ext_type(cdl: &str) -> ExtType {
    ExtType::ALL.into_iter().find(|ty| ty.name() == cdl).expect("a CDL type name")
}

fn element(hex: &str) -> Vec<u8> {
    let bits = u64::from_str_radix(hex, 16).expect("hexadecimal bits");
    bits.to_le_bytes()[..hex.len() / 2].to_vec()
}

fn in_big_endian(mut element: Vec<u8>) -> Vec<u8> {
    element.reverse();
    element
}

/// The one float that does not fit and that the reference lets pass: it compares 2^32 with the largest
/// `unsigned int` as floats, where the two are one number. It stores 0 and says nothing; we say that
/// it does not fit.
fn is_let_pass([_, format, ext, mem, source, ..]: &[&str; 7]) -> bool {
    let pair = matches!((*ext, *mem), ("uint", "float") | ("float", "uint"));
    *format == "4" && pair && *source == "4f800000"
}

/// Compares one "DIRECTION FORMAT EXTERNAL MEMORY SOURCE RESULT CODE" line.
fn check_fact(fields: &[&str; 7]) -> Result<(), String> {
    let [direction, format, ext, mem, source, result, code] = *fields;
    let (ext, mem) = (ext_type(ext), mem_type(mem));
    let rule = match format {
        "5" => RangeRule::Strict,
        "4" => RangeRule::Cast,
        _ => RangeRule::ByteIsUnsigned,
    };
    let external = (ext, ByteOrder::Big);
    let reading = matches!(direction, "get" | "getatt");
    let poison = |size| vec![0xa5_u8; size];

    let (expected_size, truth, fits, kernel, out_of_range);
    if reading {
        expected_size = mem.size();
        let src = in_big_endian(element(source));
        let mut dst = poison(expected_size);
        fits = generic::decode_one(external, (mem, rule), &src, &mut dst).expect("numbers");
        truth = dst;
        let decoder = Decoder::new(ext, ByteOrder::Big, mem, rule).expect("numbers");
        let mut dst = poison(expected_size);
        out_of_range = decoder.decode(&src, &mut dst).out_of_range;
        kernel = dst;
    } else {
        expected_size = ext.size();
        let src = element(source);
        let mut dst = poison(expected_size);
        fits = generic::encode_one(external, (mem, rule), &src, &mut dst).expect("numbers");
        truth = in_big_endian(dst);
        let encoder = Encoder::new(ext, ByteOrder::Big, mem, rule).expect("numbers");
        let mut dst = poison(expected_size);
        out_of_range = encoder.encode(&src, &mut dst).out_of_range;
        kernel = in_big_endian(dst);
    }
    let expected = if result == "kept" { poison(expected_size) } else { element(result) };
    let expected_fits = match code.parse() {
        Ok(NC_NOERR) if is_let_pass(fields) => false,
        Ok(NC_NOERR) => true,
        Ok(NC_ERANGE) => false,
        _ => return Err(format!("unexpected code {code}")),
    };
    if truth != expected || fits != expected_fits {
        return Err(format!("generic gives {truth:02x?} (little-endian), fits: {fits}"));
    }
    if kernel != expected || out_of_range != u64::from(!expected_fits) {
        return Err(format!("the kernel gives {kernel:02x?}, out of range: {out_of_range}"));
    }
    Ok(())
}

/// Compiles the C program; `None` where there is no compiler.
fn build(source: &Path, program: &Path) -> Option<()> {
    let status = Command::new("cc")
        .args(["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-O1", "-Wall", "-Werror", "-o"])
        .arg(program)
        .arg(source)
        .arg("-ldl")
        .status()
        .ok()?;
    assert!(status.success(), "{} does not compile", source.display());
    Some(())
}

#[test]
#[cfg(target_endian = "little")]
fn generic_agrees_with_the_distributions_library() {
    let source =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/oracle/conversion_facts.c");
    let scratch = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let program = scratch.join("conversion_facts");
    if build(&source, &program).is_none() {
        println!("skipped: no C compiler");
        return;
    }
    let library =
        std::env::var("ZONDA_ORACLE_LIBRARY").unwrap_or_else(|_| "libnetcdf.so.19".to_owned());
    let scratch_file = scratch.join("conversion_facts.nc");
    let output = Command::new(&program).arg(&library).arg(&scratch_file).output().expect("runs");
    if output.status.code() == Some(3) {
        println!("skipped: {}", String::from_utf8_lossy(&output.stderr).trim());
        return;
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let (mut facts, mut wrong) = (0, Vec::new());
    let text = String::from_utf8(output.stdout).expect("ASCII");
    for line in text.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        match fields.as_slice().try_into() {
            Ok(fact) if matches!(fields[0], "get" | "put" | "getatt" | "putatt") => {
                facts += 1;
                if let Err(reason) = check_fact(fact) {
                    wrong.push(format!("{line}: {reason}"));
                }
            }
            _ if fields[0] == "echar" && line.ends_with(&format!(" {NC_ECHAR}")) => facts += 1,
            // "differs" and "unstable" lines, and text calls that gave another code.
            _ => wrong.push(line.to_owned()),
        }
    }
    assert!(facts > 50_000, "only {facts} facts: the program stopped early");
    assert!(
        wrong.is_empty(),
        "{} facts differ:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(40)].join("\n")
    );
    println!("{facts} facts agree with {library}");
}
