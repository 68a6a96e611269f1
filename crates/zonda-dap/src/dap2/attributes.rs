//! Which attributes of a DAS belong to which variable of a DDS, and what becomes of their values.
//!
//! As the reference has it: a set belongs to each variable (of values, no container) whose full name is that of the set, or the set's own name, or whose
//! own name is the set's own name. Sets whose names end with `global` are global, those that begin with `DODS` are so with their names in front. Of
//! sets that belong to nothing the attributes are global, with all names.

use std::collections::HashMap;

use zonda_format::OwnedValues;

use crate::dap2::das::{Attribute, Entry, Set};
use crate::dap2::dds::{Atomic, Dds, Kind};
use crate::dap2::limits::{MAX_ATTACHED, MAX_FULL_NAME_BYTES};
use crate::error::{DapError, Document};
use crate::model::Att;
use crate::text::hex;

const NC_BYTE: i32 = 1;
const NC_CHAR: i32 = 2;
const NC_SHORT: i32 = 3;
const NC_INT: i32 = 4;
const NC_FLOAT: i32 = 5;
const NC_DOUBLE: i32 = 6;

/// The type of netCDF for one of DAP2: of the same size, whatever its sign, as in the reference. Texts are characters.
pub(crate) fn nc_type(atomic: Atomic) -> i32 {
    match atomic {
        Atomic::Byte => NC_BYTE,
        Atomic::Int16 | Atomic::UInt16 => NC_SHORT,
        Atomic::Int32 | Atomic::UInt32 => NC_INT,
        Atomic::Float32 => NC_FLOAT,
        Atomic::Float64 => NC_DOUBLE,
        Atomic::String | Atomic::Url => NC_CHAR,
    }
}

/// An attribute with the name that it gets.
#[derive(Clone, Debug)]
pub(crate) struct Attached<'a> {
    pub(crate) name: String,
    pub(crate) attribute: &'a Attribute,
}

/// Attributes by where they belong.
#[derive(Debug, Default)]
pub(crate) struct Attachments<'a> {
    /// Of the dataset.
    pub(crate) global: Vec<Attached<'a>>,
    /// Of variables, by their numbers in the DDS.
    pub(crate) of: HashMap<usize, Vec<Attached<'a>>>,
}

/// A set, and what matters of where it is.
struct Placed<'a> {
    set: &'a Set,
    full_name: String,
    children: Vec<usize>,
    belongs: bool,
}

/// Names of the variables of a DDS.
struct Names {
    full: HashMap<String, Vec<usize>>,
    own: HashMap<String, Vec<usize>>,
}

impl Names {
    fn of(dds: &Dds) -> Result<Names, DapError> {
        let (mut full, mut own): (HashMap<_, Vec<usize>>, HashMap<_, Vec<usize>>) =
            Default::default();
        for id in dds.ids().filter(|id| matches!(dds.node(*id).kind, Kind::Atomic(_))) {
            let name = dds.full_name(id);
            fits(Document::Dds, &name)?;
            full.entry(name).or_default().push(id);
            own.entry(dds.node(id).name.clone()).or_default().push(id);
        }
        Ok(Names { full, own })
    }

    /// The variables that a set belongs to, in the order of the DDS.
    fn found(&self, set: &Placed<'_>) -> Vec<usize> {
        let lists = [
            self.full.get(&set.full_name),
            self.full.get(&set.set.name),
            self.own.get(&set.set.name),
        ];
        let mut all: Vec<usize> = lists.into_iter().flatten().flatten().copied().collect();
        zonda_runtime::sort::sort(&mut all);
        all.dedup();
        all
    }
}

fn fits(document: Document, name: &str) -> Result<(), DapError> {
    if name.len() <= MAX_FULL_NAME_BYTES {
        return Ok(());
    }
    let begin: String = name.chars().take(80).collect();
    Err(DapError::unrepresentable(document, format!("name {begin}... of {} bytes", name.len())))
}

/// Sets in the order in which they end, which is that of the reference; numbers of those directly in `set`.
fn place<'a>(set: &'a Set, full: &str, all: &mut Vec<Placed<'a>>) -> Result<Vec<usize>, DapError> {
    let mut ids = Vec::new();
    for entry in &set.entries {
        let Entry::Set(inner) = entry else { continue };
        let full_name =
            if full.is_empty() { inner.name.clone() } else { format!("{full}.{}", inner.name) };
        fits(Document::Das, &full_name)?;
        let children = place(inner, &full_name, all)?;
        ids.push(all.len());
        all.push(Placed { set: inner, full_name, children, belongs: false });
    }
    Ok(ids)
}

fn attributes(set: &Set) -> impl Iterator<Item = &Attribute> {
    set.entries.iter().filter_map(|entry| match entry {
        Entry::Attribute(attribute) => Some(attribute),
        Entry::Set(_) => None,
    })
}

fn is_global(name: &str) -> bool {
    let begin = name.len().saturating_sub("global".len());
    name.as_bytes().get(begin..).is_some_and(|end| end.eq_ignore_ascii_case(b"global"))
}

/// Says where all attributes belong. `full` is the DDS without a constraint: what belongs to a variable of it that was not asked for belongs nowhere.
pub(crate) fn attach<'a>(das: &'a Set, dds: &Dds, full: &Dds) -> Result<Attachments<'a>, DapError> {
    let mut placed = Vec::new();
    place(das, "", &mut placed)?;
    let (names, full_names) = (Names::of(dds)?, Names::of(full)?);
    let mut found = Attachments::default();
    let mut n_attached = 0usize;
    let plain = |attribute: &'a Attribute| Attached { name: attribute.name.clone(), attribute };
    for set in &mut placed {
        let name = set.set.name.as_str();
        if is_global(name) || name.starts_with("DODS") || attributes(set.set).next().is_none() {
            continue;
        }
        for id in names.found(set) {
            set.belongs = true;
            let list = found.of.entry(id).or_default();
            let before = list.len();
            list.extend(attributes(set.set).map(plain));
            n_attached = n_attached.saturating_add(list.len().saturating_sub(before));
            if n_attached > MAX_ATTACHED {
                let what = format!("variables have more than {MAX_ATTACHED} attributes");
                return Err(DapError::unrepresentable(Document::Das, what));
            }
        }
        set.belongs = set.belongs || !full_names.found(set).is_empty();
    }
    for set in placed.iter().filter(|set| is_global(&set.set.name)) {
        found.global.extend(attributes(set.set).map(plain));
    }
    // Attributes that stand in no set are of the dataset.
    found.global.extend(attributes(das).map(plain));
    for set in
        placed.iter().filter(|set| !is_global(&set.set.name) && set.set.name.starts_with("DODS"))
    {
        let name = |attribute: &Attribute| format!("{}.{}", set.set.name, attribute.name);
        found.global.extend(
            attributes(set.set).map(|attribute| Attached { name: name(attribute), attribute }),
        );
    }
    let mut is_done = vec![false; placed.len()];
    for at in 0..placed.len() {
        let Some(set) = placed.get(at) else { continue };
        let is_plain = !is_global(&set.set.name) && !set.set.name.starts_with("DODS");
        if is_plain && !set.belongs && attributes(set.set).next().is_some() {
            orphans(&placed, at, &mut is_done, &mut found.global);
        }
    }
    Ok(found)
}

/// The attributes of a set that belongs to nothing, and of those in it. Each once: a second time would change nothing.
fn orphans<'a>(
    placed: &[Placed<'a>],
    at: usize,
    is_done: &mut [bool],
    global: &mut Vec<Attached<'a>>,
) {
    let (Some(set), Some(done)) = (placed.get(at), is_done.get_mut(at)) else { return };
    if std::mem::replace(done, true) {
        return;
    }
    let mut children = set.children.iter();
    for entry in &set.set.entries {
        match entry {
            Entry::Attribute(attribute) if !set.belongs => {
                let name = format!("{}.{}", set.full_name, attribute.name);
                global.push(Attached { name, attribute });
            }
            Entry::Attribute(_) => {}
            Entry::Set(_) => {
                if let Some(child) = children.next() {
                    orphans(placed, *child, is_done, global);
                }
            }
        }
    }
}

/// The attributes of one object. A later one of a name takes the place of an earlier one. `variable` is the type of the variable, and whether a
/// `_FillValue` of another type becomes one of its type.
pub(crate) fn converted(
    list: &[Attached<'_>],
    variable: Option<(&str, Atomic, bool)>,
) -> Result<Vec<Att>, DapError> {
    let mut atts: Vec<Att> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for attached in list {
        let attribute = attached.attribute;
        let mut att = match variable {
            Some(of) if attached.name == "_FillValue" => match fill_value(attribute, list, of)? {
                Some(att) => att,
                None => continue,
            },
            _ => value(attribute, attribute.atomic),
        };
        att.name.clone_from(&attached.name);
        match places.get(attached.name.as_str()).and_then(|at| atts.get_mut(*at)) {
            Some(place) => *place = att,
            None => {
                places.insert(&attached.name, atts.len());
                atts.push(att);
            }
        }
    }
    Ok(atts)
}

/// The attribute `_FillValue` of a variable; `None` where it is no value of the variable's type, however it is written.
fn fill_value(
    attribute: &Attribute,
    list: &[Attached<'_>],
    of: (&str, Atomic, bool),
) -> Result<Option<Att>, DapError> {
    let (name, atomic, may_differ) = of;
    let is_text = |atomic: Atomic| atomic.is_text();
    let is_same = attribute.atomic == atomic || (is_text(attribute.atomic) && is_text(atomic));
    // Bytes of DAP2 have no sign, those of netCDF have: servers give the fill value of the latter as Int16, and say `_Unsigned = "false"`.
    let unsigned = list
        .iter()
        .find(|attached| attached.name == "_Unsigned")
        .and_then(|of| of.attribute.values.first());
    let has_sign =
        unsigned.is_some_and(|value| value.eq_ignore_ascii_case(b"false") || value == b"0");
    let is_byte = atomic == Atomic::Byte && attribute.atomic == Atomic::Int16 && has_sign;
    if is_same || is_byte || may_differ {
        let att = value(attribute, atomic);
        return Ok((att.nc_type == nc_type(atomic)).then_some(att));
    }
    let what = format!(
        "{name} has a _FillValue of type {}, it is {}",
        attribute.atomic.word(),
        atomic.word()
    );
    Err(DapError::unrepresentable(Document::Das, what))
}

/// An attribute with its values as those of `atomic`, without a name. Where one of them is none of that type, all are text, as the server wrote them.
fn value(attribute: &Attribute, atomic: Atomic) -> Att {
    let numbers = if atomic.is_text() { None } else { numbers(&attribute.values, atomic) };
    let (nc_type, bytes, len) = match numbers {
        Some(bytes) => (nc_type(atomic), bytes, attribute.values.len()),
        None => {
            let mut text = unescaped(&attribute.values.join(&b'\n'));
            if text.is_empty() {
                // As the reference has it.
                text.push(0);
            }
            let len = text.len();
            (NC_CHAR, text, len)
        }
    };
    Att { name: String::new(), nc_type, len, values: OwnedValues::plain(bytes) }
}

/// Numbers in the form of memory.
fn numbers(values: &[Vec<u8>], atomic: Atomic) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for value in values {
        let text = std::str::from_utf8(value).ok()?.trim();
        match atomic {
            Atomic::Float32 => out.extend_from_slice(&float(text)?.1.to_ne_bytes()),
            Atomic::Float64 => out.extend_from_slice(&float(text)?.0.to_ne_bytes()),
            _ => {
                let number = integer(text)?;
                // Bits that are too many are cut off, as in the reference: 255 and -1 are the same byte.
                let bytes = number.to_le_bytes();
                let mut kept = bytes.get(..atomic.size())?.to_vec();
                if cfg!(target_endian = "big") {
                    kept.reverse();
                }
                out.extend_from_slice(&kept);
            }
        }
    }
    Some(out)
}

fn float(text: &str) -> Option<(f64, f32)> {
    let text = text.strip_prefix('+').unwrap_or(text);
    let number: f64 = text.parse().ok()?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "as the reference rounds: by way of the longer type"
    )]
    let short = number as f32;
    Some((number, short))
}

fn integer(text: &str) -> Option<i64> {
    if let Ok(number) = text.parse::<i64>() {
        return Some(number);
    }
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    if let Some(digits) = digits.filter(|digits| !digits.starts_with(['+', '-'])) {
        return i64::from_str_radix(digits, 16).ok();
    }
    // As the reference takes it: numbers with a fraction lose it.
    let number = text.parse::<f64>().ok()?.trunc();
    let fits = (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number);
    #[expect(clippy::cast_possible_truncation, reason = "the range was compared")]
    fits.then_some(number as i64)
}

/// Text with its escapes (`\n`, `\x41`, `\101`, ...) replaced, up to the first zero byte, as the reference has it.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        if first == 0 {
            break;
        }
        if first != b'\\' {
            out.push(first);
            rest = after;
            continue;
        }
        let Some((&second, behind)) = after.split_first() else {
            out.push(b'\\');
            break;
        };
        rest = behind;
        match second {
            b'a' => out.push(7),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'v' => out.push(11),
            b'?' => out.push(0x7f),
            b'x' => {
                let n = behind.iter().take_while(|byte| hex(**byte).is_some()).count();
                let digits = behind.get(..n).unwrap_or_default();
                // The last byte of a number of any length.
                let byte = digits
                    .iter()
                    .filter_map(|digit| hex(*digit))
                    .fold(0u8, |byte, digit| (byte << 4) | digit);
                out.push(byte);
                rest = behind.get(n..).unwrap_or_default();
            }
            b'0'..=b'7' => match octal(after) {
                Some(byte) => {
                    out.push(byte);
                    rest = after.get(3..).unwrap_or_default();
                }
                None => out.push(second),
            },
            other => out.push(other),
        }
    }
    let len = out.iter().position(|byte| *byte == 0).unwrap_or(out.len());
    out.truncate(len);
    out
}

/// The byte of three octal digits.
fn octal(text: &[u8]) -> Option<u8> {
    let digits = text.get(..3)?;
    if !digits.iter().all(|digit| (b'0'..=b'7').contains(digit)) {
        return None;
    }
    Some(digits.iter().fold(0u8, |byte, digit| (byte << 3) | (digit & 7)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(list: &[Attached<'_>]) -> String {
        list.iter().map(|attached| attached.name.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn integers_may_have_sixteen_digits() {
        assert_eq!(
            [integer("0x1F"), integer("0Xff"), integer("-7")],
            [Some(31), Some(255), Some(-7)]
        );
        assert_eq!([integer("0x"), integer("0x-1"), integer("0xg"), integer("x1")], [None; 4]);
    }

    #[test]
    fn sets_find_their_variables() {
        let dds = "Dataset { Int32 a; Structure { Int32 a; Int32 b; } s; Byte s.c; } x;";
        let dds = Dds::decode(dds.as_bytes()).unwrap();
        let das = "Attributes {
            NC_GLOBAL { Byte one 1; my_Global { Byte two 2; } }
            a { Byte both 1; inner { Byte lost 1; } }
            s { Byte none 1; b { Byte b 1; } }
            s.c { Byte c 1; }
            gone { Byte x 1; deep { Byte y 1; } }
            DODS_EXTRA { String Unlimited_Dimension \"t\"; }
            Byte top 1;
        }";
        let das = Set::decode(das.as_bytes()).unwrap();
        let found = attach(&das, &dds, &dds).unwrap();
        let of = |name: &str| {
            let id = dds.ids().find(|id| dds.full_name(*id) == name).unwrap();
            found.of.get(&id).map_or(String::new(), |list| shown(list))
        };
        assert_eq!([of("a"), of("s.a"), of("s.b")], ["both", "both", "b"]);
        let id = dds.child(0, "s.c").unwrap();
        assert_eq!(shown(&found.of[&id]), "c");
        let global =
            "two one top DODS_EXTRA.Unlimited_Dimension a.inner.lost s.none gone.deep.y gone.x";
        assert_eq!(shown(&found.global), global);
    }

    fn att(text: &str, variable: Option<(&str, Atomic, bool)>) -> Result<Vec<Att>, DapError> {
        let das = Set::decode(format!("Attributes {{ {text} }}").as_bytes()).unwrap();
        let list: Vec<_> = attributes(&das)
            .map(|attribute| Attached { name: attribute.name.clone(), attribute })
            .collect();
        converted(&list, variable)
    }

    fn one(text: &str) -> (i32, usize, Vec<u8>) {
        let atts = att(text, None).unwrap();
        assert_eq!(atts.len(), 1);
        (atts[0].nc_type, atts[0].len, atts[0].values.bytes().to_vec())
    }

    #[test]
    fn values_become_those_of_netcdf() {
        assert_eq!(one("Byte a 255, -1, 3.7;"), (NC_BYTE, 3, vec![255, 255, 3]));
        let ints: Vec<u8> = [-1i32, 16].iter().flat_map(|int| int.to_ne_bytes()).collect();
        assert_eq!(one("UInt32 a 4294967295, 1.6e1;"), (NC_INT, 2, ints));
        assert_eq!(one("Float32 a +0.1;"), (NC_FLOAT, 1, 0.1f32.to_ne_bytes().to_vec()));
        assert_eq!(one("Float64 a NaN;").1, 1);
        assert_eq!(one("String a \"x\\ty\", z;"), (NC_CHAR, 5, b"x\ty\nz".to_vec()));
        assert_eq!(one("Url a \"\";"), (NC_CHAR, 1, vec![0]));
        // No number of the type: text, as it is written.
        assert_eq!(one("Int32 a 1, 1e10;"), (NC_CHAR, 6, b"1\n1e10".to_vec()));
        assert_eq!(one("Int32 a 1; Int32 a 2;"), (NC_INT, 1, 2i32.to_ne_bytes().to_vec()));
    }

    #[test]
    fn fill_values_have_the_type_of_their_variable() {
        let fill = |text: &str, atomic, may_differ| {
            att(text, Some(("v", atomic, may_differ)))
                .map(|atts| atts.first().map_or(0, |att| att.nc_type))
        };
        assert_eq!(fill("Float32 _FillValue 1.5;", Atomic::Int32, true).unwrap(), NC_INT);
        assert_eq!(fill("String _FillValue \"7\";", Atomic::Float64, true).unwrap(), NC_DOUBLE);
        assert_eq!(fill("String _FillValue x;", Atomic::Float64, true).unwrap(), 0);
        let error = fill("Float32 _FillValue 1.5;", Atomic::Int32, false).unwrap_err().to_string();
        assert_eq!(error, "DAS: v has a _FillValue of type Float32, it is Int32");
        let byte = "Int16 _FillValue -1; String _Unsigned \"false\";";
        assert_eq!(fill(byte, Atomic::Byte, false).unwrap(), NC_BYTE);
        assert!(
            fill("Int16 _FillValue -1; String _Unsigned \"true\";", Atomic::Byte, false).is_err()
        );
        assert_eq!(fill("Url _FillValue \"x\";", Atomic::String, false).unwrap(), NC_CHAR);
    }

    #[test]
    fn escapes_of_text_are_replaced() {
        assert_eq!(unescaped(br#"a\n\t\\\"\x41\x1e9\101\18\?\q"#), b"a\n\t\\\"A\xe9A18\x7fq");
        assert_eq!(unescaped(b"a\\"), b"a\\");
        assert_eq!(unescaped(b"a\\x0b\\000c"), b"a\x0b");
        assert_eq!(unescaped(b"a\0b"), b"a");
    }
}
