//! Every file of a corpus against what the reference says of it.
//!
//! `ZONDA_CORPUS` names the corpus: `MANIFEST.tsv`, the files, and under `expected/` a JSON a file whose
//! section `netcdf` has names, shapes, types and digests as netCDF-C gives them.

#[allow(dead_code, reason = "each test uses a part")]
mod support;

use std::path::Path;
use zonda_format::Definitions as _;

use serde_json::Value;
use sha2::{Digest, Sha256};
use zonda_format::FormatError as _;
use zonda_model::{NcError, VarId};
use zonda_nc4::{GroupId, Nc4File, StorageKind, UserClass, VarRef};

/// Where the reference is wrong or another answer is as good: part of the message, and why.
const EXCEPTIONS: &[(&str, &str)] = &[
    (
        "float16: type: String(\"float\")",
        "half precision is a string to the reference, which then crashes",
    ),
    ("tfloat16.h5: /DS16BITS: ", "the same"),
    ("tfloat16_be.h5: /DS16BITS: ", "the same"),
    ("t_unsupported.h5: /long_double: ", "the same for long double"),
    (
        "/vlen_contiguous_compound: data: ",
        "no field that netCDF has: a digest of nothing here, of zeros there",
    ),
    ("compounds_array_vlen1.h5: :attr3: value: ", "the same"),
    ("compounds_array_vlen2.h5: :attr3: value: ", "the same"),
];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// As Python decodes with "backslashreplace".
fn text(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out
}

struct Compare<'a> {
    file: &'a Nc4File,
    found: Vec<String>,
    /// Variables whose data were compared.
    n_data: usize,
}

impl Compare<'_> {
    fn differ(&mut self, path: &str, what: &str, got: impl std::fmt::Debug, want: &Value) {
        self.found.push(format!("{path}: {what}: {got:?}, expected {want}"));
    }

    fn equal(&mut self, path: &str, what: &str, got: Value, want: &Value) {
        if got != *want {
            self.differ(path, what, got, want);
        }
    }

    fn type_name(&self, nc_type: i32) -> Option<String> {
        if nc_type <= 12 {
            return Some(support::ATOMIC[nc_type as usize].into());
        }
        let ty = &self.file.model().unwrap().types[nc_type as usize - 32];
        match ty.class {
            UserClass::String | UserClass::Unknown => None,
            _ => Some(text(&ty.name)),
        }
    }

    fn group(&mut self, id: GroupId, path: &str, want: &Value) {
        let model = self.file.model().unwrap();
        let group = &model.groups[usize::from(id.0)];
        let dims = group.dims.iter().map(|&id| {
            let dim = model.dims[id.0 as usize].as_ref().unwrap();
            serde_json::json!([text(&dim.name), dim.len, dim.is_unlimited])
        });
        self.equal(path, "dims", dims.collect(), &want["dims"]);
        self.types(path, &group.types, want["types"].as_array().map_or(&[], |list| list));
        self.atts(path, VarRef { group: id, var: VarId::GLOBAL }, &want["atts"]);
        let vars = want["vars"].as_array().map_or(&[][..], |list| list);
        let names: Value = group.vars.iter().map(|var| text(&var.name)).collect();
        let wanted: Value = vars.iter().map(|var| var["name"].clone()).collect();
        if names.as_array().unwrap().len() != vars.len() {
            self.differ(path, "vars", names, &wanted);
            return;
        }
        for (index, want) in vars.iter().enumerate() {
            self.var(id, index, path, want);
        }
        let names: Vec<_> =
            group.children.iter().map(|id| text(&model.groups[usize::from(id.0)].name)).collect();
        let empty = serde_json::Map::new();
        let groups = want["groups"].as_object().unwrap_or(&empty);
        let mut sorted = names.clone();
        sorted.sort();
        sorted.dedup();
        let mut keys: Vec<_> = groups.keys().cloned().collect();
        keys.sort();
        if sorted != keys {
            self.differ(path, "groups", &names, &serde_json::json!(keys));
        }
        for (name, &id) in names.iter().zip(&group.children) {
            if let Some(want) = groups.get(name) {
                self.group(id, &format!("{path}/{name}"), want);
            }
        }
    }

    fn types(&mut self, path: &str, ids: &[i32], want: &[Value]) {
        let model = self.file.model().unwrap();
        if ids.len() != want.len() {
            self.differ(path, "types", ids, &Value::from(want));
            return;
        }
        for (&id, want) in ids.iter().zip(want) {
            let ty = &model.types[id as usize - 32];
            if want.get("error").is_some() {
                let unknown_base =
                    matches!(ty.class, UserClass::Vlen { base } if self.type_name(base).is_none());
                if self.type_name(id).is_some() && !unknown_base {
                    self.differ(path, "type", &ty.class, want);
                }
                continue;
            }
            let base = |id: i32| self.type_name(id).unwrap_or_default();
            let mut got = serde_json::json!({ "name": text(&ty.name), "size": ty.size });
            match &ty.class {
                UserClass::Compound(fields) => {
                    got["class"] = "compound".into();
                    let fields = fields.iter();
                    let fields = fields.map(|field| {
                        serde_json::json!([text(&field.name), base(field.nc_type), field.dims])
                    });
                    got["fields"] = fields.collect();
                }
                UserClass::Enum { base: id, members } => {
                    got["class"] = "enum".into();
                    got["base"] = base(*id).into();
                    let members = members.iter().map(|(name, value)| {
                        let mut wide =
                            [if value.last().unwrap() & 0x80 != 0 && matches!(id, 1 | 3 | 4 | 10) {
                                0xff
                            } else {
                                0
                            }; 8];
                        wide[..value.len()].copy_from_slice(value);
                        let value = match id {
                            11 => Value::from(u64::from_le_bytes(wide)),
                            _ => Value::from(i64::from_le_bytes(wide)),
                        };
                        serde_json::json!([text(name), value])
                    });
                    got["members"] = members.collect();
                }
                UserClass::Opaque => got["class"] = "opaque".into(),
                UserClass::Vlen { base: id } => {
                    got["class"] = "vlen".into();
                    got["base"] = base(*id).into();
                }
                UserClass::String | UserClass::Unknown => {}
            }
            self.equal(path, "type", got, want);
        }
    }

    fn atts(&mut self, path: &str, owner: VarRef, want: &Value) {
        let Some(want) = want.as_object() else {
            return;
        };
        let n = match self.file.n_atts(owner) {
            Ok(n) => n,
            Err(error) => {
                self.found.push(format!("{path}: attributes: {error}"));
                return;
            }
        };
        let infos: Vec<_> = (0..n).map(|i| self.file.att(owner, i).unwrap()).collect();
        let mut names: Vec<_> = infos.iter().map(|info| text(&info.name)).collect();
        names.sort();
        let mut keys: Vec<_> = want.keys().cloned().collect();
        keys.sort();
        if names != keys {
            self.differ(path, "attributes", names, &serde_json::json!(keys));
        }
        for (i, info) in infos.iter().enumerate() {
            let name = text(&info.name);
            let Some(want) = want.get(&name).filter(|want| want.get("error").is_none()) else {
                continue;
            };
            let path = format!("{path}:{name}");
            assert_eq!(self.file.find_att(owner, &info.name).unwrap().0, i as i32);
            self.equal(&path, "type", self.type_name(info.nc_type).into(), &want["type"]);
            self.equal(&path, "len", info.len.into(), &want["len"]);
            match support::read_att(self.file, owner, &info.name, info.nc_type) {
                Ok(bytes) => {
                    if let Some(sha) = want.get("sha256").filter(|sha| **sha != digest(&bytes)) {
                        let start = &bytes[..bytes.len().min(64)];
                        self.differ(
                            &path,
                            "value",
                            text(start),
                            &serde_json::json!([sha, want["value"]]),
                        );
                    }
                }
                Err(error) => self.found.push(format!("{path}: {error}")),
            }
        }
    }

    fn var(&mut self, group: GroupId, index: usize, path: &str, want: &Value) {
        let model = self.file.model().unwrap();
        let var = &model.groups[usize::from(group.0)].vars[index];
        let id = VarId(index as i32);
        let path = &format!("{path}/{}", text(&var.name));
        let name = &want["name"];
        if *name == format!("#{index}") {
            // The reference could say nothing of it.
            return;
        }
        self.equal(path, "name", text(&var.name).into(), name);
        let error = want.get("error").and_then(Value::as_str);
        if let Some(ty) = want.get("type") {
            self.equal(path, "type", self.type_name(var.nc_type).into(), ty);
        }
        let is_whole = want.get("shape").is_some();
        let dims = var.dims.iter().map(|&id| model.dim(id).map(|dim| (text(&dim.name), dim.len)));
        let dims: Vec<_> = dims.collect();
        if is_whole {
            let got = dims.iter().map(|dim| dim.as_ref().map(|(name, _)| name.clone()).into());
            self.equal(path, "dims", got.collect::<Vec<Value>>().into(), &want["dims"]);
            let got = dims.iter().map(|dim| dim.as_ref().map(|(_, len)| *len).into());
            self.equal(path, "shape", got.collect::<Vec<Value>>().into(), &want["shape"]);
        }
        self.atts(path, VarRef { group, var: id }, &want["atts"]);
        let info = match self.file.var_info(group, id) {
            Ok(info) => info,
            Err(error) => {
                self.found.push(format!("{path}: info: {error}"));
                return;
            }
        };
        if let Some(storage) = want.get("storage") {
            let (got, chunks) = match &info.storage {
                StorageKind::Contiguous | StorageKind::External => ("contiguous", None),
                StorageKind::Compact => ("compact", None),
                StorageKind::Chunked(chunks) => ("chunked", Some(chunks.clone())),
                // Not known to any release of the reference.
                StorageKind::Virtual => ("unknown", None),
            };
            self.equal(path, "storage", got.into(), storage);
            if let Some(want) = want.get("chunks") {
                self.equal(path, "chunks", serde_json::json!(chunks), want);
            }
        }
        if is_whole && error.is_none() {
            let filters = info.filters.iter();
            let got: Value = filters.map(|f| serde_json::json!([f.id, f.params])).collect();
            let want = want.get("filters").cloned().unwrap_or_else(|| Value::Array(Vec::new()));
            self.equal(path, "filters", got, &want);
        }
        if let Some(fill) = want.get("fill") {
            let got = if info.no_fill { "none".into() } else { hex(&info.fill_value) };
            self.equal(path, "fill", got.into(), fill);
        }
        let extent: Option<Vec<usize>> =
            dims.iter().map(|dim| dim.as_ref().map(|(_, len)| *len as usize)).collect();
        let Some(count) = extent else {
            return;
        };
        if let Some(sha) = want.get("sha256") {
            match support::read(self.file, group, id.0, &vec![0; count.len()], &count) {
                Ok(bytes) => {
                    self.n_data += 1;
                    let undefined = want.get("undefined").is_some();
                    if *sha != digest(&bytes) && !undefined {
                        self.differ(path, "data", hex(&bytes[..bytes.len().min(32)]), sha);
                    }
                }
                Err(error) => self.found.push(format!("{path}: data: {error}")),
            }
        } else if let Some(corners) = want.get("corner").and_then(Value::as_array) {
            for (last, sha) in corners.iter().enumerate() {
                let part: Vec<_> = count.iter().map(|&n| n.min(2)).collect();
                let start =
                    count.iter().zip(&part).map(|(&n, &c)| if last == 1 { n - c } else { 0 });
                match support::read(self.file, group, id.0, &start.collect::<Vec<_>>(), &part) {
                    Ok(bytes) if *sha == digest(&bytes) => self.n_data += 1,
                    Ok(bytes) => {
                        self.differ(path, "corner", hex(&bytes[..bytes.len().min(32)]), sha)
                    }
                    Err(error) => self.found.push(format!("{path}: corner: {error}")),
                }
            }
        } else if error.is_some() {
            // An answer or an error: either will do, a panic will not.
            let _ = support::read(self.file, group, id.0, &vec![0; count.len()], &count);
        }
    }
}

fn expected(corpus: &Path, path: &str) -> Value {
    let file = corpus.join("expected").join(format!("{}.json.gz", &path["files/".len()..]));
    let out = std::process::Command::new("gzip").arg("-dc").arg(&file).output().unwrap();
    assert!(out.status.success(), "{}", file.display());
    serde_json::from_slice(&out.stdout).unwrap()
}

#[test]
#[allow(clippy::print_stdout, reason = "what differs is what the test says")]
fn as_the_reference_says() {
    let Some(corpus) = std::env::var_os("ZONDA_CORPUS") else {
        println!("skipped: ZONDA_CORPUS is not set");
        return;
    };
    let only = std::env::var("ZONDA_CORPUS_ONLY").unwrap_or_default();
    let corpus = Path::new(&corpus);
    let manifest = std::fs::read_to_string(corpus.join("MANIFEST.tsv")).unwrap();
    let (mut n_files, mut n_data, mut n_bad, mut n_damaged) = (0, 0, 0, 0);
    for line in manifest.lines().skip(1) {
        let columns: Vec<_> = line.split('\t').collect();
        let (path, category, verdict) = (columns[0], columns[1], columns[3]);
        if !path.contains(&only) {
            continue;
        }
        if category == "malformed" && columns[2] == "hdf5" {
            n_damaged += 1;
            if let Ok(file) = support::open(&corpus.join(path)) {
                support::touch(&file);
            }
        }
        if !matches!(category, "netcdf4" | "hdf5") {
            continue;
        }
        let want = expected(corpus, path);
        let want = &want["netcdf"];
        n_files += 1;
        let file = match support::open(&corpus.join(path)) {
            Ok(file) => file,
            Err(error) => {
                if want["ok"] == true {
                    n_bad += 1;
                    println!("{path}: {error}");
                }
                continue;
            }
        };
        if let Err(error) = file.model() {
            if verdict == "valid" {
                n_bad += 1;
                println!("{path}: model: {error}");
            }
            assert!(matches!(error.nc_error(), NcError::HdfErr), "{error}");
            continue;
        }
        let mut compare = Compare { file: &file, found: Vec::new(), n_data: 0 };
        if want["root"].is_object() {
            compare.group(GroupId::ROOT, "", &want["root"]);
        } else {
            support::touch(&file);
        }
        n_data += compare.n_data;
        for found in &compare.found {
            let line = format!("{path}: {found}");
            if !EXCEPTIONS.iter().any(|(part, _)| line.contains(part)) {
                n_bad += 1;
                println!("{line}");
            }
        }
    }
    println!(
        "{n_files} files, data of {n_data} variables compared, {n_bad} differences; \
         {n_damaged} damaged files read without a panic"
    );
    assert_eq!(n_bad, 0);
}
