//! Strings on their way into and out of datasets.

use zonda_format::{VlenSink, VlenSource};

/// Strings, by the numbers that stand for them in elements: counted from 1, and 0 for a string that was never written.
#[derive(Debug, Default)]
pub(super) struct Strings(Vec<Box<[u8]>>);

impl Strings {
    /// All of them, and the number of each.
    pub(super) fn from_texts<'t>(texts: impl Iterator<Item = &'t str>) -> (Strings, Vec<u64>) {
        let texts: Vec<Box<[u8]>> = texts.map(|text| text.as_bytes().into()).collect();
        let addresses = (1..=texts.len() as u64).collect();
        (Strings(texts), addresses)
    }

    fn get(&self, address: u64) -> Option<&[u8]> {
        let index = usize::try_from(address.checked_sub(1)?).ok()?;
        self.0.get(index).map(|text| &**text)
    }

    /// The strings of these elements; one that was never written is empty. The byte at which one is not UTF-8 is the error.
    pub(super) fn of(&self, addresses: &[u64]) -> Result<Vec<String>, usize> {
        let text = |&address: &u64| {
            let bytes = self.get(address).unwrap_or_default();
            std::str::from_utf8(bytes).map(str::to_owned).map_err(|error| error.valid_up_to())
        };
        addresses.iter().map(text).collect()
    }
}

impl VlenSink for Strings {
    fn place(&mut self, bytes: &[u8], _text: bool) -> Option<u64> {
        self.0.try_reserve(1).ok()?;
        self.0.push(bytes.into());
        u64::try_from(self.0.len()).ok()
    }
}

impl VlenSource for Strings {
    fn text(&mut self, address: u64) -> Option<&[u8]> {
        self.get(address)
    }

    fn items(&mut self, address: u64, len: usize) -> &[u8] {
        self.get(address).and_then(|items| items.get(..len)).unwrap_or_default()
    }
}
