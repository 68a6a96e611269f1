//! Definitions as JSON.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use zonda_convert::{ByteOrder, Decoder, Encoder, RangeRule};
use zonda_format::{Error, Result};
use zonda_model::{DimId, ExtType, MemType, NcError, memory};
use zonda_plain::{Att, Dim, Model, Var};
use zonda_storage::{Create, Spec, SyncLevel};

use crate::{FORMAT, damaged, storage, system_error};

/// Name of the file with the definitions.
pub(crate) const FILE: &str = "zonda-npy.json";
/// Name of that file while it is written.
pub(crate) const NEW: &str = "zonda-npy.json.new";
/// Most bytes of definitions that are read.
const MOST_BYTES: u64 = 1 << 28;
/// Version of the definitions that this module reads and writes.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonDefinitions {
    version: u32,
    records: u64,
    dimensions: Vec<JsonDimension>,
    variables: Vec<JsonVariable>,
    attributes: Vec<JsonAttribute>,
}

#[derive(Serialize, Deserialize)]
struct JsonDimension {
    name: String,
    length: u64,
}

#[derive(Serialize, Deserialize)]
struct JsonVariable {
    name: String,
    r#type: String,
    dimensions: Vec<i32>,
    attributes: Vec<JsonAttribute>,
}

#[derive(Serialize, Deserialize)]
struct JsonAttribute {
    name: String,
    r#type: String,
    values: Value,
}

/// Names are UTF-8, since others cannot be defined.
fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

fn type_named(name: &str) -> std::result::Result<ExtType, String> {
    let found = ExtType::ALL.into_iter().find(|ty| ty.name() == name);
    found.ok_or_else(|| format!("there is no type {name:?}"))
}

impl From<&Att> for JsonAttribute {
    fn from(att: &Att) -> JsonAttribute {
        let values = match (att.ty, std::str::from_utf8(&att.bytes)) {
            (ExtType::Char, Ok(text)) => Value::from(text),
            (ty, _) => att.bytes.chunks_exact(ty.size()).map(|value| number(ty, value)).collect(),
        };
        JsonAttribute { name: text(&att.name), r#type: att.ty.name().to_owned(), values }
    }
}

/// A value, big-endian. What no JSON number can represent (NaN, infinities) is text.
fn number(ty: ExtType, bytes: &[u8]) -> Value {
    let mem = match ty {
        ExtType::Float | ExtType::Double => MemType::F64,
        ExtType::UInt64 => MemType::U64,
        _ => MemType::I64,
    };
    let mut wide = [0; 8];
    if let Ok(decoder) = Decoder::new(as_number(ty), ByteOrder::Big, mem, RangeRule::Cast) {
        // All fit.
        let _ = decoder.decode(bytes, &mut wide);
    }
    match (mem, f64::from_ne_bytes(wide)) {
        (MemType::F64, float) if float.is_finite() => Value::from(float),
        (MemType::F64, float) => Value::from(float.to_string()),
        (MemType::U64, _) => Value::from(u64::from_ne_bytes(wide)),
        _ => Value::from(i64::from_ne_bytes(wide)),
    }
}

/// Characters that are no UTF-8 are written as numbers.
fn as_number(ty: ExtType) -> ExtType {
    if ty == ExtType::Char { ExtType::UByte } else { ty }
}

/// The value as big-endian bytes, of which as many count as the type has; `None` if it does not fit.
fn native(ty: ExtType, value: &Value) -> Option<[u8; 8]> {
    let is_float = matches!(ty, ExtType::Float | ExtType::Double);
    let (mem, given) = match value {
        Value::String(text) if is_float => (MemType::F64, text.parse::<f64>().ok()?.to_ne_bytes()),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => (MemType::I64, number.to_ne_bytes()),
            (_, Some(number)) => (MemType::U64, number.to_ne_bytes()),
            _ => (MemType::F64, number.as_f64().filter(|_| is_float)?.to_ne_bytes()),
        },
        _ => return None,
    };
    let mut bytes = [0; 8];
    let encoder = Encoder::new(as_number(ty), ByteOrder::Big, mem, RangeRule::Cast).ok()?;
    let converted = encoder.encode(&given, bytes.get_mut(..ty.size())?);
    // Infinity is reported as out of range although it fits.
    (converted.out_of_range == 0 || value.is_string()).then_some(bytes)
}

impl TryFrom<JsonAttribute> for Att {
    type Error = String;

    fn try_from(att: JsonAttribute) -> std::result::Result<Att, String> {
        let ty = type_named(&att.r#type)?;
        let fault =
            |value: &Value| format!("attribute {:?}: {value} is no {}", att.name, ty.name());
        let bytes = match &att.values {
            Value::String(text) if ty == ExtType::Char => text.clone().into_bytes(),
            Value::Array(values) => {
                let mut bytes = Vec::new();
                for value in values {
                    let own = native(ty, value).ok_or_else(|| fault(value))?;
                    bytes.extend(own.into_iter().take(ty.size()));
                }
                bytes
            }
            other => return Err(fault(other)),
        };
        Ok(Att { name: att.name.into_bytes(), ty, bytes })
    }
}

impl TryFrom<JsonDefinitions> for Model {
    type Error = String;

    fn try_from(own: JsonDefinitions) -> std::result::Result<Model, String> {
        if own.version != VERSION {
            return Err(format!("version {} is not supported", own.version));
        }
        let mut model = Model { records: own.records, ..Model::new(FORMAT) };
        let dims = own.dimensions.into_iter();
        model.dims = dims.map(|dim| Dim { name: dim.name.into_bytes(), len: dim.length }).collect();
        let atts = |atts: Vec<JsonAttribute>| -> std::result::Result<Vec<Att>, String> {
            atts.into_iter().map(Att::try_from).collect()
        };
        model.atts = atts(own.attributes)?;
        for var in own.variables {
            let (ty, dims) = (type_named(&var.r#type)?, var.dimensions.into_iter().map(DimId));
            let mut new = Var::new(var.name.into_bytes(), ty, dims.collect(), false);
            new.atts = atts(var.attributes)?;
            model.vars.push(new);
        }
        model.complete()
    }
}

impl From<&Model> for JsonDefinitions {
    fn from(model: &Model) -> JsonDefinitions {
        let atts = |atts: &[Att]| atts.iter().map(JsonAttribute::from).collect();
        let dim = |dim: &Dim| JsonDimension { name: text(&dim.name), length: dim.len };
        let var = |var: &Var| JsonVariable {
            name: text(&var.name),
            r#type: var.ty.name().to_owned(),
            dimensions: var.dims.iter().map(|dim| dim.0).collect(),
            attributes: atts(&var.atts),
        };
        JsonDefinitions {
            version: VERSION,
            records: model.records,
            dimensions: model.dims.iter().map(dim).collect(),
            variables: model.vars.iter().map(var).collect(),
            attributes: atts(&model.atts),
        }
    }
}

/// Reads the definitions in a folder.
pub(crate) fn read(folder: &Path) -> Result<Model> {
    let path = folder.join(FILE);
    let fault = |what: String| damaged(&path, NcError::NotNc, what);
    let storage = storage(&path, false, Create::MustExist, Some(Spec::file()))?;
    let len = storage.len()?;
    if len > MOST_BYTES {
        return Err(fault(format!("definitions at byte {MOST_BYTES}: {len} bytes are too many")));
    }
    let mut text = memory::filled(usize::try_from(len).map_err(|_| NcError::NoMem)?, 0u8)?;
    let got = storage.read_at(0, &mut text)?;
    text.truncate(got);
    let own: JsonDefinitions = serde_json::from_slice(&text).map_err(|error| {
        let lines = text.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::len);
        let before: usize = lines.take(error.line().saturating_sub(1)).sum();
        let at = before.saturating_add(error.column().saturating_sub(1));
        fault(format!("definitions at byte {at}: {error}"))
    })?;
    own.try_into().map_err(fault)
}

/// Writes the definitions into a folder, and gives them their name when they are complete.
pub(crate) fn write(model: &Model, folder: &Path) -> Result<()> {
    let (path, new) = (folder.join(FILE), folder.join(NEW));
    let text = serde_json::to_vec_pretty(&JsonDefinitions::from(model));
    let text = text.map_err(|error| system_error(&new, &error.into()))?;
    if text.len() as u64 > MOST_BYTES {
        let what = "more definitions than are read again";
        return Err(Error::because(NcError::VarSize, what));
    }
    // A writer that was killed may have left this file.
    let _ = std::fs::remove_file(&new);
    let storage = storage(&new, true, Create::Exclusive, Some(Spec::file()))?;
    storage.write_at(0, &text)?;
    storage.sync()?;
    std::fs::rename(&new, &path).map_err(|error| system_error(&path, &error))?;
    if SyncLevel::from_env() == SyncLevel::Full {
        let synced = std::fs::File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|error| system_error(folder, &error))?;
    }
    Ok(())
}
