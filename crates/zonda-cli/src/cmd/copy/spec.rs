//! Parsers for the options of `zonda copy`: shapes of chunks, filters, precision.

use zonda::copy::{ChunkRule, FilterRule, Pattern, QuantizeRule};
use zonda::{FilterSpec, Format, Quantize, QuantizeMode};

use crate::similar::did_you_mean;

type ParseResult<T> = Result<T, String>;

/// Kinds of files, as `ncdump -k`, `nccopy -k` and others call them.
const KINDS: [(&str, Format); 16] = [
    ("classic", Format::Cdf1),
    ("nc3", Format::Cdf1),
    ("1", Format::Cdf1),
    ("64bit-offset", Format::Cdf2),
    ("64-bit-offset", Format::Cdf2),
    ("64-bit offset", Format::Cdf2),
    ("nc6", Format::Cdf2),
    ("2", Format::Cdf2),
    ("cdf5", Format::Cdf5),
    ("64bit-data", Format::Cdf5),
    ("64-bit-data", Format::Cdf5),
    ("5", Format::Cdf5),
    ("netcdf4", Format::NetCdf4),
    ("nc4", Format::NetCdf4),
    ("netcdf4-classic", Format::NetCdf4Classic),
    ("nc7", Format::NetCdf4Classic),
];

/// Filters by name, with their default parameters.
const FILTERS: [(&str, u32, &[u32]); 14] = [
    ("deflate", 1, &[4]),
    ("zlib", 1, &[4]),
    ("shuffle", 2, &[]),
    ("fletcher32", 3, &[]),
    ("szip", 4, &[32, 16]),
    ("nbit", 5, &[]),
    ("bzip2", 307, &[9]),
    ("lzf", 32000, &[]),
    ("blosc", 32001, &[0, 0, 0, 0, 5, 1, 1]),
    ("lz4", 32004, &[]),
    ("bitshuffle", 32008, &[]),
    ("zfp", 32013, &[]),
    ("zstd", 32015, &[3]),
    ("blosc2", 32026, &[0, 0, 0, 0, 5, 1, 1]),
];
/// Valid levels of filters whose first parameter is a level.
const LEVELS: [(u32, std::ops::RangeInclusive<i32>); 3] =
    [(1, 0..=9), (307, 1..=9), (32015, -131_072..=22)];
/// Number of the checksum filter, which is never optional.
const FLETCHER32: u32 = 3;

pub(super) fn format(text: &str) -> ParseResult<Format> {
    let found = KINDS.iter().find(|(name, _)| *name == text.to_ascii_lowercase());
    let found = found.map(|(_, format)| *format).or_else(|| zonda::format_named(text));
    found.ok_or_else(|| format!("expected {}", kinds()))
}

/// The kinds that can be created, as a list in words.
pub(super) fn kinds() -> String {
    let name = |format: Format| {
        let known = KINDS.iter().find(|(_, known)| *known == format);
        known.map_or(format.kind(), |(name, _)| name)
    };
    let names: Vec<_> = zonda::formats_made().map(name).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

/// `512M` and the like; without a letter bytes.
pub(super) fn bytes(text: &str) -> ParseResult<u64> {
    let expected = || "expected a number of bytes, such as 512M".to_owned();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1u64 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        _ => return Err(expected()),
    };
    let number: u64 = digits.parse().map_err(|_| expected())?;
    number.checked_mul(unit).filter(|&bytes| bytes > 0).ok_or_else(expected)
}

/// Splits `VAR,VAR:TEXT` into names and text; without a colon all of it is text.
fn with_vars(text: &str) -> (Vec<Pattern>, &str) {
    match text.split_once(':') {
        Some((vars, rest)) => (patterns(vars), rest),
        None => (Vec::new(), text),
    }
}

/// Names of variables.
pub(super) fn patterns(text: &str) -> Vec<Pattern> {
    text.split(',').filter(|name| !name.is_empty()).map(Pattern::new).collect()
}

/// `time/1,lat/180` or `temp:time/1`.
pub(super) fn chunks(text: &str) -> ParseResult<Vec<ChunkRule>> {
    let expected = || "expected [VAR:]DIM/N,..., such as time/1,lat/180".to_owned();
    let (vars, sizes) = with_vars(text);
    let size = |part: &str| {
        let (dim, n) = part.rsplit_once('/').ok_or_else(expected)?;
        let n = if n.is_empty() { 0 } else { n.parse().map_err(|_| expected())? };
        if dim.is_empty() { Err(expected()) } else { Ok((dim.as_bytes().to_vec(), n)) }
    };
    let sizes = sizes.split(',').map(size).collect::<ParseResult<Vec<_>>>()?;
    if vars.is_empty() {
        return Ok(vec![ChunkRule { vars: None, sizes }]);
    }
    Ok(vars.into_iter().map(|v| ChunkRule { vars: Some(v), sizes: sizes.clone() }).collect())
}

/// `shuffle|deflate,5`, `T*:zstd,9`, `crs:none`.
pub(super) fn filters(text: &str) -> ParseResult<FilterRule> {
    let (vars, list) = with_vars(text);
    if list == "none" {
        return Ok(FilterRule { vars, filters: Vec::new() });
    }
    let filters = list.split('|').map(filter).collect::<ParseResult<Vec<_>>>()?;
    Ok(FilterRule { vars, filters })
}

fn filter(text: &str) -> ParseResult<FilterSpec> {
    let mut parts = text.split(',').map(str::trim);
    let name = parts.next().unwrap_or_default().to_ascii_lowercase();
    let known = FILTERS.iter().find(|(known, ..)| *known == name);
    let id = match known {
        Some((_, id, _)) => *id,
        None => name.parse().map_err(|_| {
            let names: Vec<&str> = FILTERS.iter().map(|(name, ..)| *name).collect();
            let hint = did_you_mean(&name, names.iter().copied());
            format!(
                "no filter is called {name:?}{hint}; known: {}, none, or a number",
                names.join(", ")
            )
        })?,
    };
    let number = |text: &str| {
        let text_number = text.trim_end_matches(['u', 'U']);
        let signed = || text_number.parse().map(|n: i32| n.cast_unsigned());
        text_number
            .parse()
            .or_else(|_| signed())
            .map_err(|_| format!("{text:?} is no parameter of a filter: expected an integer"))
    };
    let mut params = parts.map(number).collect::<ParseResult<Vec<u32>>>()?;
    if let (Some((.., default)), true) = (known, params.is_empty()) {
        params = default.to_vec();
    }
    let level = params.first().map(|&level| level.cast_signed());
    let range = LEVELS.iter().find(|(known, _)| *known == id).map(|(_, range)| range.clone());
    if let (Some(level), Some(range)) = (level, range)
        && !range.contains(&level)
    {
        let (least, most) = (range.start(), range.end());
        return Err(format!("{text:?}: expected a level from {least} to {most}, not {level}"));
    }
    Ok(builtin(id, params))
}

/// A filter by its number.
pub(super) fn builtin(id: u32, params: Vec<u32>) -> FilterSpec {
    FilterSpec { id, optional: id != FLETCHER32, name: String::new(), params }
}

/// `granular,3` or `T,S:bitround,9`, `T:none`.
pub(super) fn quantize(text: &str) -> ParseResult<QuantizeRule> {
    let expected = || {
        "expected [VAR,...:]MODE,N: bitgroom or granular and decimal digits, bitround and bits, or none"
            .to_owned()
    };
    let (vars, how) = with_vars(text);
    if how == "none" {
        return Ok(QuantizeRule { vars, quantize: None });
    }
    let (mode, kept) = how.split_once(',').ok_or_else(expected)?;
    let mode = match mode.to_ascii_lowercase().as_str() {
        "bitgroom" => QuantizeMode::BitGroom,
        "granular" | "granularbr" => QuantizeMode::GranularBitRound,
        "bitround" => QuantizeMode::BitRound,
        _ => return Err(expected()),
    };
    let kept = kept.trim().parse().ok().filter(|&kept| kept > 0).ok_or_else(expected)?;
    Ok(QuantizeRule { vars, quantize: Some(Quantize { mode, kept }) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_sizes() {
        assert_eq!(format("netCDF4"), Ok(Format::NetCdf4));
        assert_eq!(format("64-bit offset"), Ok(Format::Cdf2));
        let expected = "expected classic, 64bit-offset, cdf5, netcdf4, netcdf4-classic or npy";
        assert_eq!(format("hdf4"), Err(expected.to_owned()));
        for made in zonda::formats_made() {
            let named =
                kinds().replace(" or ", ", ").split(", ").any(|kind| format(kind) == Ok(made));
            assert!(named, "{made:?} is in the list");
        }
        let known = [("10", 10), ("512M", 512 << 20), ("2GiB", 2 << 30), ("1k", 1024)];
        for (text, n) in known {
            assert_eq!(bytes(text), Ok(n), "{text}");
        }
        for text in ["", "M", "0", "-1", "12q", "99999999999G"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shapes_of_chunks() {
        let sizes = vec![(b"time".to_vec(), 10), (b"lat".to_vec(), 0)];
        let all = ChunkRule { vars: None, sizes: sizes.clone() };
        assert_eq!(chunks("time/10,lat/"), Ok(vec![all]));
        let some = chunks("/g/T,S:time/10,lat/0").unwrap();
        assert_eq!(some.len(), 2);
        assert_eq!(some[0], ChunkRule { vars: Some(Pattern::new("/g/T")), sizes });
        for text in ["", "time", "time/x", "/3", "T:", "time/-1", "time/1,,"] {
            assert!(chunks(text).is_err(), "{text}");
        }
    }

    #[test]
    fn filters_by_name_and_number() {
        let rule = filters("T*,S:shuffle|zstd,9").unwrap();
        assert_eq!(rule.vars, [Pattern::new("T*"), Pattern::new("S")]);
        assert_eq!(rule.filters, [builtin(2, Vec::new()), builtin(32015, vec![9])]);
        assert_eq!(filters("deflate").unwrap().filters, [builtin(1, vec![4])]);
        assert_eq!(
            filters("40000,1,4294967295,-1").unwrap().filters[0].params,
            [1, u32::MAX, u32::MAX]
        );
        assert_eq!(
            filters("x:none"),
            Ok(FilterRule { vars: vec![Pattern::new("x")], filters: vec![] })
        );
        assert!(!filters("fletcher32").unwrap().filters[0].optional);
        assert!(filters("zstd,-5").is_ok() && filters("307,9").is_ok());
        for text in ["", "gzap", "deflate,x", "deflate||zstd", "deflate,10", "zstd,99", "307,10"] {
            assert!(filters(text).is_err(), "{text}");
        }
    }

    #[test]
    fn precision() {
        let three = Quantize { mode: QuantizeMode::GranularBitRound, kept: 3 };
        assert_eq!(quantize("granular,3").unwrap().quantize, Some(three));
        assert_eq!(quantize("T:none").unwrap().quantize, None);
        for text in ["", "granular", "granular,0", "rough,3"] {
            assert!(quantize(text).is_err(), "{text}");
        }
    }
}
