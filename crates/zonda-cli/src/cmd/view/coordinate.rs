//! Dimensions as axes: what the numbers along them are, in words and on a picture.

use zonda::{Dataset, VarRef};
use zonda_cf::times::Dates;
use zonda_plot::AxisKind;

use super::decode::text;
use super::variable::{Auxiliary, Dimension};
use super::words::{titled, with_units};
use crate::failure::Result;

/// What the numbers of a coordinate variable are.
#[derive(Clone, Debug)]
pub(super) struct Meaning {
    pub(super) kind: AxisKind,
    /// Whether they say how high or deep something is.
    pub(super) is_vertical: bool,
    /// Whether they grow downwards, as pressure and depth do.
    pub(super) is_downwards: bool,
    is_pressure: bool,
    units: String,
    pub(super) title: String,
}

/// A dimension as an axis.
#[derive(Clone, Debug)]
pub(super) struct Coordinate {
    pub(super) dim: String,
    pub(super) title: String,
    pub(super) kind: AxisKind,
    pub(super) is_vertical: bool,
    pub(super) is_downwards: bool,
    /// Whether equal ratios are equally far from each other: pressures of more than a decade, so that all layers of the atmosphere are seen.
    pub(super) is_log: bool,
    /// Units, of numbers that have some.
    pub(super) units: String,
    /// Elements shown.
    pub(super) len: usize,
    /// Elements that there are.
    pub(super) of: usize,
    /// Values of the coordinate variable, if there is one whose values only rise or only fall.
    pub(super) centres: Option<Vec<f64>>,
    /// Where elements end, one more than elements, if the variable has bounds that touch.
    pub(super) edges: Option<Vec<f64>>,
    /// The first and the last value in words.
    pub(super) ends: Option<(String, String)>,
}

/// Units of pressure, which is highest where height is lowest.
const PRESSURES: [&str; 14] = [
    "pa",
    "hpa",
    "kpa",
    "mb",
    "mbar",
    "millibar",
    "millibars",
    "bar",
    "bars",
    "dbar",
    "decibar",
    "decibars",
    "pascal",
    "atm",
];

impl Meaning {
    /// What the attributes of a variable say, after CF: units first, then `standard_name`, `axis` and `positive`.
    pub(super) fn of(file: &Dataset, of: &Auxiliary) -> Meaning {
        let says = |name| text(file, of.id, name).unwrap_or_default();
        let units = Some(says("units")).filter(|units| units != "1").unwrap_or_default();
        let (standard, positive) = (says("standard_name"), says("positive").to_ascii_lowercase());
        let kind = kind(file, of.id, &units, &standard, &of.name);
        let is_number = kind == AxisKind::Number;
        let is_pressure = is_number && PRESSURES.contains(&units.to_ascii_lowercase().as_str());
        let is_depth = is_number && (standard == "depth" || of.name.eq_ignore_ascii_case("depth"));
        let is_vertical = is_number
            && (is_pressure
                || is_depth
                || matches!(&*positive, "up" | "down")
                || says("axis").eq_ignore_ascii_case("z")
                || matches!(&*standard, "height" | "altitude" | "air_pressure"));
        let is_downwards = match &*positive {
            // Whatever else is said of it.
            _ if is_pressure => true,
            "down" => true,
            "up" => false,
            _ => is_depth,
        };
        let long_name = text(file, of.id, "long_name").or(Some(standard).filter(|s| !s.is_empty()));
        let name = long_name.unwrap_or_else(|| match kind {
            AxisKind::Longitude => "longitude".to_owned(),
            AxisKind::Latitude => "latitude".to_owned(),
            _ => of.name.clone(),
        });
        // The ticks name degrees and dates, so the title does not.
        let title = titled(&name, Some(&*units).filter(|units| is_number && !units.is_empty()));
        Meaning { kind, is_vertical, is_downwards, is_pressure, units, title }
    }

    /// A value in words.
    pub(super) fn words(&self, value: f64) -> String {
        with_units(value, self.kind, &self.units)
    }
}

/// The kind of an axis. CF has units for latitude, longitude and time.
fn kind(file: &Dataset, id: VarRef, units: &str, standard: &str, name: &str) -> AxisKind {
    let is_named = |short: &str, long: &str| {
        standard == long
            || standard.is_empty()
                && (name.eq_ignore_ascii_case(short) || name.eq_ignore_ascii_case(long))
    };
    // "degrees_north", "degreeN", "degree North"
    let plain = units.to_ascii_lowercase().replace(['_', ' '], "");
    match &*plain {
        "degreeseast" | "degreeeast" | "degreese" | "degreee" => AxisKind::Longitude,
        "degreesnorth" | "degreenorth" | "degreesn" | "degreen" => AxisKind::Latitude,
        "degrees" | "degree" | "" if is_named("lon", "longitude") => AxisKind::Longitude,
        "degrees" | "degree" | "" if is_named("lat", "latitude") => AxisKind::Latitude,
        _ => {
            let calendar = text(file, id, "calendar").unwrap_or_default();
            let dates = Dates::parse(units.as_bytes(), calendar.as_bytes());
            dates.map_or(AxisKind::Number, AxisKind::Dates)
        }
    }
}

/// Longitudes that jump back by a turn somewhere, such as from 180 to -180, with a turn added behind each jump. What else goes
/// back and forth stays as it is.
fn unrolled(longitudes: Vec<f64>) -> Vec<f64> {
    let mut turns = 0.0;
    let mut last = f64::NEG_INFINITY;
    let mut unrolled = Vec::with_capacity(longitudes.len());
    for &longitude in &longitudes {
        if longitude + turns < last {
            turns += 360.0;
        }
        last = longitude + turns;
        unrolled.push(last);
    }
    let is_one_turn = matches!(&unrolled[..], [first, .., last] if last - first <= 360.0);
    if is_one_turn && goes_one_way(&unrolled) { unrolled } else { longitudes }
}

/// The edges of elements by the bounds of a coordinate variable, if all elements are shown.
fn edges(file: &Dataset, of: &Auxiliary, centres: &[f64], len: usize) -> Result<Option<Vec<f64>>> {
    if centres.len() != len {
        return Ok(None);
    }
    let Some((id, ty)) = of.bounds(file, 2)? else { return Ok(None) };
    let slab = zonda::Hyperslab { start: &[0, 0], count: &[len, 2], stride: None };
    let bounds = super::variable::read(file, id, &slab, &super::decode::decoder(file, id, ty)?)?;
    touching(&bounds, centres)
}

/// The edges that pairs of bounds have in common, where each element is within its pair and ends where the next begins.
fn touching(bounds: &[f64], centres: &[f64]) -> Result<Option<Vec<f64>>> {
    let rises = match centres {
        [first, .., last] => first < last,
        _ => true,
    };
    let mut edges: Vec<f64> = zonda::memory::room(centres.len().saturating_add(1))?;
    for (pair, centre) in bounds.chunks_exact(2).zip(centres) {
        let (low, high) = (pair[0].min(pair[1]), pair[0].max(pair[1]));
        if !(low <= *centre && *centre <= high && low < high) {
            return Ok(None);
        }
        let (begin, end) = if rises { (low, high) } else { (high, low) };
        match edges.last() {
            None => edges.push(begin),
            // Single precision is exact to so much.
            Some(last) if (last - begin).abs() <= (high - low) * 1e-3 => {}
            Some(_) => return Ok(None),
        }
        edges.push(end);
    }
    Ok((edges.len() == centres.len() + 1).then_some(edges))
}

/// Whether numbers only rise or only fall, and are numbers.
fn goes_one_way(centres: &[f64]) -> bool {
    let is_one_way = centres.windows(2).all(|pair| pair[0] < pair[1])
        || centres.windows(2).all(|pair| pair[0] > pair[1]);
    is_one_way && centres.iter().all(|centre| centre.is_finite())
}

/// Whether numbers have logarithms, and the greatest is more than ten times the least.
fn spans_decade(numbers: &[f64]) -> bool {
    let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let most = numbers.iter().copied().fold(0.0, f64::max);
    least > 0.0 && most > 10.0 * least
}

/// The position along a dimension that is not shown: `lev = 983.3 hPa`, or `lev index 3`.
pub(super) fn position(file: &Dataset, dim: &Dimension, index: usize) -> Result<Option<String>> {
    if let Some(coordinate) = &dim.coordinate {
        let slab = zonda::Hyperslab { start: &[index], count: &[1], stride: None };
        let decoder = super::decode::decoder(file, coordinate.id, coordinate.ty)?;
        let value = super::variable::read(file, coordinate.id, &slab, &decoder)?.first().copied();
        if let Some(value) = value.filter(|value| value.is_finite()) {
            let position = Meaning::of(file, coordinate).words(value);
            return Ok(Some(format!("{} = {position}", coordinate.name)));
        }
    }
    Ok((dim.len > 1).then(|| format!("{} index {index}", dim.name)))
}

impl Coordinate {
    /// A dimension as an axis, of which every `step`th element is shown, `len` of them.
    pub(super) fn read(
        file: &Dataset,
        of: &Dimension,
        len: usize,
        step: usize,
    ) -> Result<Coordinate> {
        let dim = &of.name;
        // Where not all elements are shown, each has its own index all the same.
        let indices = (step > 1).then(|| (0..len).map(|at| (at * step) as f64).collect());
        let index = Coordinate {
            dim: dim.to_owned(),
            title: format!("{dim} (index)"),
            kind: AxisKind::Index,
            len,
            of: of.len,
            centres: indices,
            ..Coordinate::of_nothing()
        };
        let Some(coordinate) = &of.coordinate else { return Ok(index) };
        let mut centres = coordinate.read(file, len, step)?;
        let meaning = Meaning::of(file, coordinate);
        if meaning.kind == AxisKind::Longitude {
            centres = unrolled(centres);
        }
        if !goes_one_way(&centres) {
            // No axis can have such coordinates.
            return Ok(index);
        }
        let label = |value: Option<&f64>| meaning.words(*value.unwrap_or(&f64::NAN));
        Ok(Coordinate {
            ends: Some((label(centres.first()), label(centres.last()))),
            title: meaning.title.clone(),
            kind: meaning.kind,
            is_vertical: meaning.is_vertical,
            is_downwards: meaning.is_downwards,
            is_log: meaning.is_pressure && spans_decade(&centres),
            units: meaning.units.clone(),
            edges: edges(file, coordinate, &centres, of.len)?,
            centres: Some(centres),
            ..index
        })
    }

    /// The axis for a variable without dimensions.
    pub(super) fn of_nothing() -> Coordinate {
        Coordinate {
            dim: String::new(),
            title: String::new(),
            kind: AxisKind::Number,
            is_vertical: false,
            is_downwards: false,
            is_log: false,
            units: String::new(),
            len: 1,
            of: 1,
            centres: None,
            edges: None,
            ends: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_that_touch() {
        let edges = |bounds: &[f64], centres: &[f64]| touching(bounds, centres).unwrap();
        assert_eq!(edges(&[0.0, 1.0, 1.0, 4.0], &[0.2, 2.0]), Some(vec![0.0, 1.0, 4.0]));
        assert_eq!(edges(&[4.0, 1.0, 1.0, 0.0], &[2.0, 0.2]), Some(vec![4.0, 1.0, 0.0]));
        assert_eq!(edges(&[1.0, 4.0, 0.0, 1.0], &[2.0, 0.2]), Some(vec![4.0, 1.0, 0.0]));
        assert_eq!(edges(&[0.0, 10.0], &[5.0]), Some(vec![0.0, 10.0]));
        for (bounds, centres) in [
            (&[0.0, 1.0, 1.5, 4.0][..], &[0.2, 2.0][..]),
            (&[0.0, 1.0, 1.0, 4.0], &[0.2, 5.0]),
            (&[0.0, 0.0, 0.0, 1.0], &[0.0, 0.5]),
            (&[0.0, f64::NAN, 0.0, 1.0], &[0.0, 0.5]),
            (&[0.0, 1.0], &[0.2, 2.0]),
        ] {
            assert_eq!(edges(bounds, centres), None, "{bounds:?}");
        }
    }

    #[test]
    fn numbers_of_more_than_a_decade() {
        assert!(spans_decade(&[1000.0, 500.0, 10.0]));
        for no in [&[1000.0, 100.0][..], &[1000.0, 0.0], &[-1000.0, -1.0], &[5.0], &[]] {
            assert!(!spans_decade(no), "{no:?}");
        }
    }

    #[test]
    fn longitudes_go_on_behind_a_turn() {
        for (longitudes, want) in [
            (vec![0.0, 90.0, 180.0, -90.0], vec![0.0, 90.0, 180.0, 270.0]),
            (vec![350.0, 355.0, 0.0, 5.0], vec![350.0, 355.0, 360.0, 365.0]),
            (vec![-180.0, 0.0, 180.0], vec![-180.0, 0.0, 180.0]),
            (vec![5.0, 3.0, 1.0], vec![5.0, 3.0, 1.0]),
            (vec![0.0, 180.0, 0.0, 180.0], vec![0.0, 180.0, 0.0, 180.0]),
            (vec![1.0, 1.0], vec![1.0, 1.0]),
            (vec![], vec![]),
        ] {
            assert_eq!(unrolled(longitudes), want);
        }
    }
}
