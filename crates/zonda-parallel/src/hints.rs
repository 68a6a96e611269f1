//! What a program asks of a file of several ranks in an `MPI_Info`, by the keys of MPI-IO and PnetCDF.

use zonda_format::Reserve;

/// The most that a hint in bytes may be: no storage has longer stripes or blocks, and no file is made of padding.
const MOST_BYTES: u64 = 1 << 30;
/// The most ranks or servers.
const MOST_PARTS: u64 = 1 << 24;
/// Offsets in a classic file are multiples of it.
const UNIT: u64 = 4;

/// Whether ranks bring the bytes of a collective call together before they are written or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gathering {
    /// Always.
    Enable,
    /// Never: each rank transfers its own.
    Disable,
    /// Where that is faster.
    Automatic,
}

/// Hints about one file. What is not said is decided by the library.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// `striping_factor`: servers that a new file is spread over.
    pub striping_factor: Option<u64>,
    /// `striping_unit`: bytes of a stripe, at least 1.
    pub striping_unit: Option<u64>,
    /// `cb_nodes`: ranks that write for all of them in a collective call, at least 1.
    pub cb_nodes: Option<u64>,
    /// `cb_buffer_size`: bytes that such a rank collects, at least 1.
    pub cb_buffer_size: Option<u64>,
    /// `romio_cb_write`
    pub cb_write: Option<Gathering>,
    /// `romio_cb_read`
    pub cb_read: Option<Gathering>,
    /// `nc_header_align_size`: the data of a classic file begin at a multiple of so many bytes, which leaves the header space to grow.
    pub header_align: Option<u64>,
    /// `nc_var_align_size`: so do its variables without records.
    pub var_align: Option<u64>,
    /// `nc_record_align_size`: and its records.
    pub record_align: Option<u64>,
}

/// A value that a known key cannot have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadHint {
    /// The key.
    pub key: &'static str,
    /// The value.
    pub value: String,
    /// What it may be.
    pub wanted: String,
}

/// Where a key's value goes, and which it may be.
enum Place<'a> {
    Number(&'a mut Option<u64>, u64),
    Gathering(&'a mut Option<Gathering>),
}

const GATHERINGS: [(&str, Gathering); 3] = [
    ("enable", Gathering::Enable),
    ("disable", Gathering::Disable),
    ("automatic", Gathering::Automatic),
];

impl Hints {
    /// The keys that are known.
    pub const KEYS: [&'static str; 9] = [
        "striping_factor",
        "striping_unit",
        "cb_nodes",
        "cb_buffer_size",
        "romio_cb_write",
        "romio_cb_read",
        "nc_header_align_size",
        "nc_var_align_size",
        "nc_record_align_size",
    ];

    fn place(&mut self, key: &str) -> Option<Place<'_>> {
        Some(match key {
            "striping_factor" => Place::Number(&mut self.striping_factor, MOST_PARTS),
            "striping_unit" => Place::Number(&mut self.striping_unit, MOST_BYTES),
            "cb_nodes" => Place::Number(&mut self.cb_nodes, MOST_PARTS),
            "cb_buffer_size" => Place::Number(&mut self.cb_buffer_size, MOST_BYTES),
            "romio_cb_write" => Place::Gathering(&mut self.cb_write),
            "romio_cb_read" => Place::Gathering(&mut self.cb_read),
            "nc_header_align_size" => Place::Number(&mut self.header_align, MOST_BYTES),
            "nc_var_align_size" => Place::Number(&mut self.var_align, MOST_BYTES),
            "nc_record_align_size" => Place::Number(&mut self.record_align, MOST_BYTES),
            _ => return None,
        })
    }

    /// Takes a hint by its key, in place of what was there. Keys that are not known are for others, and without effect; 0 says nothing.
    ///
    /// # Errors
    /// [`BadHint`] for a value that the key cannot have, which changes nothing.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), BadHint> {
        let Some(name) = Hints::KEYS.into_iter().find(|known| *known == key) else { return Ok(()) };
        let value = value.trim();
        let bad = |wanted: String| BadHint { key: name, value: value.to_owned(), wanted };
        match self.place(key) {
            None => {}
            Some(Place::Number(to, most)) => match value.parse::<u64>() {
                Ok(0) => *to = None,
                Ok(number) if number <= most => *to = Some(number),
                _ => return Err(bad(format!("a whole number up to {most}"))),
            },
            Some(Place::Gathering(to)) => {
                match GATHERINGS.iter().find(|(word, _)| *word == value) {
                    Some((_, gathering)) => *to = Some(*gathering),
                    None => return Err(bad("enable, disable or automatic".to_owned())),
                }
            }
        }
        Ok(())
    }

    /// Takes the hints of a text such as `cb_nodes=4;nc_var_align_size=512`, as `PNETCDF_HINTS` has them. What is no hint is left out.
    pub fn set_all(&mut self, text: &str) -> Vec<BadHint> {
        let pairs = text.split(';').filter_map(|pair| pair.split_once('='));
        pairs.filter_map(|(key, value)| self.set(key.trim(), value).err()).collect()
    }

    /// The same as a text, which [`Hints::set_all`] takes.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut copy = *self;
        let of_key = |key: &str| -> Option<String> {
            let value = match copy.place(key)? {
                Place::Number(number, _) => (*number)?.to_string(),
                Place::Gathering(gathering) => {
                    let gathering = (*gathering)?;
                    let named = GATHERINGS.iter().find(|(_, known)| *known == gathering)?;
                    named.0.to_owned()
                }
            };
            Some(format!("{key}={value}"))
        };
        let said: Vec<String> = Hints::KEYS.into_iter().filter_map(of_key).collect();
        said.join(";")
    }

    /// The space for a file's definitions to grow that is meant by `nc_enddef`, if these hints say something of it. What a program says by
    /// `nc__enddef` stays.
    pub(crate) fn room(&self, asked: Reserve) -> Reserve {
        let said = [self.header_align, self.var_align, self.record_align];
        if asked != Reserve::Default || said.iter().all(Option::is_none) {
            return asked;
        }
        let unit = |align: Option<u64>| {
            align.unwrap_or(UNIT).checked_next_multiple_of(UNIT).unwrap_or(UNIT)
        };
        let [header, var, record] = said.map(unit);
        // The variables without records begin where the header ends.
        let v_align = common_multiple(header, var);
        Reserve::Explicit { h_minfree: 0, v_align, v_minfree: 0, r_align: record }
    }
}

/// The least common multiple of two numbers that are not 0; the larger one where that is longer than any hint may be.
fn common_multiple(a: u64, b: u64) -> u64 {
    let (mut larger, mut rest) = (a.max(b), a.min(b));
    while let Some(next) = larger.checked_rem(rest) {
        (larger, rest) = (rest, next);
    }
    let both = a.checked_div(larger).and_then(|part| part.checked_mul(b));
    both.filter(|both| *both <= MOST_BYTES).unwrap_or(a.max(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_a_place_and_comes_back() {
        for key in Hints::KEYS {
            let value = if key.starts_with("romio") { "disable" } else { "24" };
            let mut hints = Hints::default();
            hints.set(key, value).unwrap();
            assert_ne!(hints, Hints::default(), "{key}");
            assert_eq!(hints.to_text(), format!("{key}={value}"));
        }
        let text = "striping_unit=1048576;cb_nodes=4;romio_cb_read=automatic;nc_var_align_size=512";
        let mut hints = Hints::default();
        assert_eq!(hints.set_all(text), []);
        assert_eq!(hints.to_text(), text);
        assert_eq!(Hints::default().to_text(), "");
    }

    #[test]
    fn values_that_keys_cannot_have() {
        let mut hints = Hints { cb_nodes: Some(2), ..Hints::default() };
        let bad = hints.set_all("cb_nodes=many;romio_cb_write=on;striping_unit=-1;cb_buffer_size=99999999999;x;y=1;=;cb_nodes");
        let keys: Vec<_> = bad.iter().map(|bad| bad.key).collect();
        assert_eq!(keys, ["cb_nodes", "romio_cb_write", "striping_unit", "cb_buffer_size"]);
        assert_eq!(hints, Hints { cb_nodes: Some(2), ..Hints::default() });
        hints.set("cb_nodes", "0").unwrap();
        assert_eq!(hints, Hints::default());
    }

    #[test]
    fn alignments_are_those_of_enddef() {
        let explicit = Reserve::Explicit { h_minfree: 1, v_align: 2, v_minfree: 3, r_align: 4 };
        let mut hints = Hints::default();
        assert_eq!(hints.room(Reserve::Default), Reserve::Default);
        hints.var_align = Some(512);
        assert_eq!(hints.room(explicit), explicit);
        let expected =
            |v_align, r_align| Reserve::Explicit { h_minfree: 0, v_align, v_minfree: 0, r_align };
        assert_eq!(hints.room(Reserve::Default), expected(512, 4));
        hints.header_align = Some(768);
        hints.record_align = Some(1021);
        assert_eq!(hints.room(Reserve::Default), expected(1536, 1024));
    }
}
