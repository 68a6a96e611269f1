//! Special attributes: they say how something is stored, and are not stored themselves.

use zonda_model::filter_text;

use super::Parser;
use crate::constant::{Constant, PlacedConstant};
use crate::fault::CdlFault;
use crate::kind::NetCdfKind;
use crate::schema::{Endian, Quantizer, StorageLayout};

/// Special attributes of the whole file. All but `_Format` have no effect, because they follow from
/// the file itself.
const OF_FILE: [&[u8]; 4] = [b"_Format", b"_NCProperties", b"_IsNetcdf4", b"_SuperblockVersion"];

/// The value of a special attribute.
struct SpecialValue<'a> {
    name: &'a str,
    at: u64,
    items: &'a [PlacedConstant],
}

impl SpecialValue<'_> {
    fn refuse<T>(&self, expected: &str) -> Result<T, CdlFault> {
        let at = self.items.first().map_or(self.at, |item| item.at);
        Err(CdlFault::at(at, format!("{}: {expected} is expected", self.name)))
    }

    fn text(&self) -> Result<&[u8], CdlFault> {
        match self.items {
            [PlacedConstant { value: Constant::Text(text), .. }] => Ok(text),
            _ => self.refuse("a string"),
        }
    }

    fn integer(&self) -> Result<i32, CdlFault> {
        match self.items {
            [PlacedConstant { value: Constant::Number(number), .. }] => {
                match number.integer().and_then(|value| i32::try_from(value).ok()) {
                    Some(value) => Ok(value),
                    None => self.refuse("an integer"),
                }
            }
            _ => self.refuse("an integer"),
        }
    }

    fn flag(&self) -> Result<bool, CdlFault> {
        match self.items {
            [PlacedConstant { value: Constant::Text(text), .. }] => match &text[..] {
                b"true" | b"1" => Ok(true),
                b"false" | b"0" => Ok(false),
                _ => self.refuse("\"true\" or \"false\""),
            },
            _ => match self.integer() {
                Ok(value @ (0 | 1)) => Ok(value == 1),
                _ => self.refuse("\"true\" or \"false\""),
            },
        }
    }

    fn sizes(&self) -> Result<Vec<usize>, CdlFault> {
        let size = |item: &PlacedConstant| match &item.value {
            Constant::Number(number) => {
                let size = number.integer().and_then(|size| usize::try_from(size).ok());
                size.filter(|size| *size > 0)
            }
            _ => None,
        };
        let sizes: Option<Vec<usize>> = self.items.iter().map(size).collect();
        match sizes.filter(|sizes| !sizes.is_empty()) {
            Some(sizes) => Ok(sizes),
            None => self.refuse("a list of lengths"),
        }
    }
}

impl Parser<'_> {
    /// Takes a special attribute; returns `false` if the attribute is not special.
    pub(super) fn special(
        &mut self,
        at: u64,
        var: Option<usize>,
        name: &[u8],
        items: &[PlacedConstant],
    ) -> Result<bool, CdlFault> {
        let value = SpecialValue { name: std::str::from_utf8(name).unwrap_or_default(), at, items };
        let Some(var) = var else { return self.special_of_file(name, &value) };
        let special = &mut self.schema.vars[var].special;
        match name {
            b"_Storage" => {
                special.storage = Some(match value.text()? {
                    b"contiguous" => StorageLayout::Contiguous,
                    b"compact" => StorageLayout::Compact,
                    b"chunked" => StorageLayout::Chunked,
                    _ => return value.refuse("\"contiguous\", \"compact\" or \"chunked\""),
                });
            }
            b"_ChunkSizes" => {
                special.chunk_sizes = Some(value.sizes()?);
                special.storage = Some(StorageLayout::Chunked);
            }
            b"_Fletcher32" => special.fletcher32 = Some(value.flag()?),
            b"_DeflateLevel" => special.deflate = Some(value.integer()?),
            b"_Shuffle" => special.shuffle = Some(value.flag()?),
            b"_Endianness" => {
                special.endianness = Some(match value.text()? {
                    b"little" => Endian::Little,
                    b"big" => Endian::Big,
                    _ => return value.refuse("\"little\" or \"big\""),
                });
            }
            b"_NoFill" => special.no_fill = Some(value.flag()?),
            b"_Filter" => match filters(value.text()?) {
                Some(filters) => special.filters = filters,
                None => return value.refuse("a list such as \"32015,3|2,4\""),
            },
            // This attribute is for Zarr. The other attributes say the same.
            b"_Codecs" => drop(value.text()?),
            b"_QuantizeBitGroomNumberOfSignificantDigits" => {
                special.quantize = Some((Quantizer::BitGroom, value.integer()?));
            }
            b"_QuantizeGranularBitRoundNumberOfSignificantDigits" => {
                special.quantize = Some((Quantizer::GranularBitRound, value.integer()?));
            }
            b"_QuantizeBitRoundNumberOfSignificantBits"
            | b"_QuantizeBitRoundNumberOfSignificantDigits" => {
                special.quantize = Some((Quantizer::BitRound, value.integer()?));
            }
            _ => return Ok(false),
        }
        special.at.get_or_insert(at);
        self.schema.needs.storage.get_or_insert(at);
        Ok(true)
    }

    fn special_of_file(&mut self, name: &[u8], value: &SpecialValue<'_>) -> Result<bool, CdlFault> {
        if !OF_FILE.contains(&name) || self.group != 0 {
            return Ok(false);
        }
        if name == b"_Format" {
            match NetCdfKind::named(value.text()?) {
                Some(kind) => self.schema.format = Some(kind),
                None => return value.refuse("a kind of file such as \"netCDF-4\""),
            }
        } else {
            self.schema.needs.storage.get_or_insert(value.at);
        }
        Ok(true)
    }
}

/// `id,parameter,...|id,...`, one at least.
fn filters(text: &[u8]) -> Option<Vec<filter_text::FilterIdAndParams>> {
    let (_, filters) = filter_text::list(text)?;
    (!filters.is_empty()).then_some(filters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filter_lists() {
        assert_eq!(filters(b"32015,3"), Some(vec![(32015, vec![3])]));
        assert_eq!(filters(b"2, 4|1,9u"), Some(vec![(2, vec![4]), (1, vec![9])]));
        assert_eq!(filters(b"307,-1,1.0f"), Some(vec![(307, vec![u32::MAX, 0x3f80_0000])]));
        assert_eq!(filters(b"3"), Some(vec![(3, vec![])]));
        assert_eq!(
            filters(b"1,1.0d,-1ll"),
            Some(vec![(1, vec![0, 0x3ff0_0000, u32::MAX, u32::MAX])])
        );
        for bad in ["", "x", "1,", "1,2||3", "2,4 |1"] {
            assert_eq!(filters(bad.as_bytes()), None, "{bad}");
        }
    }
}
