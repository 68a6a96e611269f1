//! Which elements along dimensions are meant: by value and date (`--at`), by index (`--index`).

use zonda::Dataset;
use zonda_cf::times::{Dates, NoPeriod};
use zonda_plot::AxisKind;

use super::coordinate::Meaning;
use super::grid::Grid;
use super::variable::{Auxiliary, Variable};
use crate::failure::{CommandFailure, Result};
use crate::similar::did_you_mean;
use crate::tuning::{COORDINATE_PIECE_ELEMS, MOST_COORDINATES};

/// What is said of one dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    dim: String,
    asked: Asked,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Asked {
    Value(String),
    Index(i64),
}

/// What one option says of dimensions: `lat=50,time=2004-07`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Places(Vec<Place>);

/// Reads `DIM=VALUE,…`.
pub(super) fn values(text: &str) -> std::result::Result<Places, String> {
    parse(text, "DIM=VALUE, such as lat=50,time=2004-07", |value| {
        Some(Asked::Value(value.to_owned()))
    })
}

/// Reads `DIM=INDEX,…`.
pub(super) fn indices(text: &str) -> std::result::Result<Places, String> {
    parse(text, "DIM=INDEX, such as time=-1", |value| value.parse().ok().map(Asked::Index))
}

fn parse(
    text: &str,
    expected: &str,
    read: impl Fn(&str) -> Option<Asked>,
) -> std::result::Result<Places, String> {
    let mut places = Vec::new();
    // A piece without `=` is the beginning of the next name, which may have commas.
    let mut begun = String::new();
    for piece in text.split(',') {
        begun.push_str(piece);
        if !piece.contains('=') {
            begun.push(',');
            continue;
        }
        let place = begun.rsplit_once('=').and_then(|(dim, value)| {
            let is_there = !dim.is_empty() && !value.is_empty();
            let asked = is_there.then(|| read(value)).flatten()?;
            Some(Place { dim: dim.to_owned(), asked })
        });
        places.push(place.ok_or_else(|| format!("expected {expected}"))?);
        begun.clear();
    }
    if begun.is_empty() { Ok(Places(places)) } else { Err(format!("expected {expected}")) }
}

/// Which elements are asked for along each dimension, none where nothing is said of it. Several along a dimension are in the
/// order in which they were asked for.
pub(super) type Chosen = Vec<Vec<usize>>;

/// Finds the elements that options ask for.
///
/// # Errors
/// There is no such dimension or element; the message says what there is.
pub(super) fn find(
    file: &Dataset,
    variable: &Variable,
    grid: Option<&Grid>,
    all: &[Places],
) -> Result<Chosen> {
    let mut chosen = vec![Vec::new(); variable.dims.len()];
    let mut put = |dim: usize, index: usize| {
        if !chosen[dim].contains(&index) {
            chosen[dim].push(index);
        }
    };
    let mut on_grid = (None, None);
    for place in all.iter().flat_map(|places| &places.0) {
        let direct = variable.dims.iter().position(|dim| dim.name == place.dim);
        if let (None, Some(grid), Asked::Value(value)) = (direct, grid, &place.asked)
            && let Some(part) = grid.part(&place.dim)
        {
            let degrees = degrees(value, part).ok_or_else(|| {
                variable.problem(format!("{}={value}: no number of degrees", place.dim))
            })?;
            match part {
                AxisKind::Latitude => on_grid.0 = Some(degrees),
                _ => on_grid.1 = Some(degrees),
            }
            continue;
        }
        let dim = dimension(file, variable, &place.dim).ok_or_else(|| {
            let on_grid = grid.iter().flat_map(|grid| [&*grid.lat.name, &*grid.lon.name]);
            unknown(variable, &place.dim, on_grid)
        })?;
        put(dim, index(file, variable, dim, &place.asked)?);
    }
    if let Some(grid) = grid {
        match on_grid {
            (None, None) => {}
            (Some(lat), Some(lon)) => {
                let fixed: Vec<usize> =
                    chosen.iter().map(|at| at.first().copied().unwrap_or(0)).collect();
                let (y, x) = grid.nearest(file, variable, &fixed, (lat, lon))?;
                chosen[grid.y] = vec![y];
                chosen[grid.x] = vec![x];
            }
            _ => {
                let (lat, lon) = (&grid.lat.name, &grid.lon.name);
                let (y, x) = (&variable.dims[grid.y].name, &variable.dims[grid.x].name);
                return Err(variable.problem(format!(
                    "{lat} and {lon} have two dimensions ({y}, {x}): --at wants both, such as {lat}=50,{lon}=8, or {y} and {x}"
                )));
            }
        }
    }
    Ok(chosen)
}

/// A dimension along which there are panels: `time`, `time=4`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Panels {
    dim: String,
    n: Option<usize>,
}

/// The most panels of a picture, and how many there are by themselves.
const MOST_PANELS: usize = 36;
const USUAL_PANELS: usize = 12;

/// Reads `DIM[=N]`.
pub(super) fn panels(text: &str) -> std::result::Result<Panels, String> {
    let (dim, n) = match text.rsplit_once('=') {
        None => (text, None),
        Some((dim, n)) => (dim, Some(n.parse().ok().filter(|n| (1..=MOST_PANELS).contains(n)))),
    };
    if dim.is_empty() || n == Some(None) {
        return Err(format!("expected DIM or DIM=N, such as time=4, N being 1 to {MOST_PANELS}"));
    }
    Ok(Panels { dim: dim.to_owned(), n: n.flatten() })
}

impl Panels {
    /// Chooses elements from the first to the last, as far from each other as can be.
    ///
    /// # Errors
    /// There is no such dimension, or elements along it were chosen otherwise.
    pub(super) fn choose(
        &self,
        file: &Dataset,
        variable: &Variable,
        chosen: &mut Chosen,
    ) -> Result<()> {
        let number =
            dimension(file, variable, &self.dim).ok_or_else(|| unknown(variable, &self.dim, []))?;
        if !chosen[number].is_empty() {
            let reason = format!("--panels {} and a place along it: only one of both", self.dim);
            return Err(variable.problem(reason));
        }
        let len = variable.dims[number].len;
        let n = self.n.unwrap_or(USUAL_PANELS).min(len);
        chosen[number] =
            (0..n).map(|at| if n > 1 { at * (len - 1) / (n - 1) } else { 0 }).collect();
        Ok(())
    }
}

/// The index along each dimension, if one is chosen, of each panel.
///
/// # Errors
/// There are too many.
pub(super) fn combined(variable: &Variable, chosen: &Chosen) -> Result<Vec<Vec<Option<usize>>>> {
    let n = chosen.iter().fold(1_usize, |n, at| n.saturating_mul(at.len().max(1)));
    if n > MOST_PANELS {
        return Err(variable.problem(format!("{n} panels, which are more than {MOST_PANELS}")));
    }
    let mut all = vec![Vec::new()];
    for at in chosen {
        let each = |before: &Vec<Option<usize>>| match at.is_empty() {
            true => vec![[&before[..], &[None]].concat()],
            false => at.iter().map(|index| [&before[..], &[Some(*index)]].concat()).collect(),
        };
        all = all.iter().flat_map(each).collect();
    }
    Ok(all)
}

/// The dimension that has this name, or whose coordinate has this name or meaning.
fn dimension(file: &Dataset, variable: &Variable, name: &str) -> Option<usize> {
    let direct = variable.dims.iter().position(|dim| dim.name == name);
    direct.or_else(|| by_meaning(file, variable, name))
}

/// That there is no such dimension, and which there are.
fn unknown<'n>(
    variable: &'n Variable,
    name: &str,
    further: impl IntoIterator<Item = &'n str>,
) -> CommandFailure {
    let mut known: Vec<&str> = variable.dims.iter().map(|dim| dim.name.as_str()).collect();
    known.extend(further);
    let hint = did_you_mean(name, known.iter().copied());
    let has = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    variable.problem(format!("no dimension {name}; it has {has}{hint}"))
}

/// The dimension whose coordinate has this name, or this meaning: `lat`, `lon` and `time` need not be called so.
fn by_meaning(file: &Dataset, variable: &Variable, name: &str) -> Option<usize> {
    let coordinates = || {
        let each = variable.dims.iter().enumerate();
        each.filter_map(|(number, dim)| Some((number, dim.coordinate.as_ref()?)))
    };
    if let Some((number, _)) = coordinates().find(|(_, coordinate)| coordinate.name == name) {
        return Some(number);
    }
    let is_meant: fn(AxisKind) -> bool = match &*name.to_ascii_lowercase() {
        "lat" | "latitude" => |kind| kind == AxisKind::Latitude,
        "lon" | "longitude" => |kind| kind == AxisKind::Longitude,
        "time" => |kind| matches!(kind, AxisKind::Dates(_)),
        _ => return None,
    };
    let mut found = coordinates().filter(|(_, of)| is_meant(Meaning::of(file, of).kind));
    let (number, _) = found.next()?;
    found.next().is_none().then_some(number)
}

/// The element along a dimension that is asked for.
fn index(file: &Dataset, variable: &Variable, number: usize, asked: &Asked) -> Result<usize> {
    let dim = &variable.dims[number];
    let value = match asked {
        Asked::Index(index) => return by_index(variable, number, *index),
        Asked::Value(value) => value,
    };
    let Some(coordinate) = &dim.coordinate else {
        let index = value.parse().map_err(|_| {
            let (name, len) = (&dim.name, dim.len);
            let last = len.saturating_sub(1);
            variable.problem(format!(
                "{name}={value}: {name} has no coordinate variable, so it wants an index, 0 to {last} or -1 to -{len}"
            ))
        })?;
        return by_index(variable, number, index);
    };
    let meaning = Meaning::of(file, coordinate);
    // No date has less than four digits.
    if let (AxisKind::Dates(_), Ok(index)) = (meaning.kind, value.parse::<i64>())
        && value.trim_start_matches('-').len() < 4
    {
        return by_index(variable, number, index);
    }
    let known = KnownValues::read(file, coordinate, dim.len)
        .and_then(|known| known.ok_or_else(|| {
            let (name, len) = (&coordinate.name, dim.len);
            variable.problem(format!("{name} has {len} values, too many to look for one of them: --index {name}=INDEX takes one"))
        }))?;
    let at = nearest(coordinate, &meaning, (&known.values, dim.len), value);
    at.map(|at| known.index(at)).map_err(|reason| variable.problem(reason))
}

/// Values of a coordinate that are numbers, and where they are.
struct KnownValues {
    values: Vec<f64>,
    /// The index of each, where values before it are missing.
    indices: Option<Vec<usize>>,
}

impl KnownValues {
    /// Reads them in pieces: of values that are not there, a file may have any number. None where there are too many to look at.
    fn read(file: &Dataset, of: &Auxiliary, len: usize) -> Result<Option<KnownValues>> {
        if len > MOST_COORDINATES {
            return Ok(None);
        }
        let mut known = KnownValues { values: Vec::new(), indices: None };
        for begin in (0..len).step_by(COORDINATE_PIECE_ELEMS) {
            let piece = of.read_from(file, begin, COORDINATE_PIECE_ELEMS.min(len - begin))?;
            known.add(begin, &piece);
        }
        Ok(Some(known))
    }

    /// Adds those of a piece that begins at an index.
    fn add(&mut self, begin: usize, piece: &[f64]) {
        let is_whole = self.indices.is_none() && self.values.len() == begin;
        if is_whole && piece.iter().all(|value| value.is_finite()) {
            self.values.extend(piece);
            return;
        }
        let before = self.values.len();
        let indices = self.indices.get_or_insert_with(|| (0..before).collect());
        for (index, value) in (begin..).zip(piece).filter(|(_, value)| value.is_finite()) {
            self.values.push(*value);
            indices.push(index);
        }
    }

    /// The index of one of them.
    fn index(&self, at: usize) -> usize {
        self.indices.as_ref().and_then(|indices| indices.get(at).copied()).unwrap_or(at)
    }
}

fn by_index(variable: &Variable, number: usize, asked: i64) -> Result<usize> {
    let dim = &variable.dims[number];
    let len = i64::try_from(dim.len).unwrap_or(i64::MAX);
    let index = if asked < 0 { len.saturating_add(asked) } else { asked };
    usize::try_from(index).ok().filter(|index| *index < dim.len).ok_or_else(|| {
        let (name, len) = (&dim.name, dim.len);
        variable.problem(format!("no index {asked} along {name}, which has {len}"))
    })
}

/// Degrees in a text such as `50`, `50N`, `8.5°W`.
fn degrees(text: &str, kind: AxisKind) -> Option<f64> {
    let sides = match kind {
        AxisKind::Latitude => ['N', 'S'],
        AxisKind::Longitude => ['E', 'W'],
        _ => return None,
    };
    let text = text.trim();
    let side = text
        .chars()
        .last()
        .map(|last| last.to_ascii_uppercase())
        .filter(|last| sides.contains(last));
    let number = if side.is_some() { &text[..text.len() - 1] } else { text };
    let number: f64 =
        number.trim_end_matches(['°', ' ']).parse().ok().filter(|n: &f64| n.is_finite())?;
    Some(if side == Some(sides[1]) { -number } else { number })
}

/// The element whose value is nearest to what is asked for, among the values that are there, of `len`.
fn nearest(
    coordinate: &Auxiliary,
    meaning: &Meaning,
    (values, len): (&[f64], usize),
    asked: &str,
) -> std::result::Result<usize, String> {
    let name = &coordinate.name;
    let there = || {
        let finite = || values.iter().copied().filter(|value| value.is_finite());
        let low = finite().fold(f64::INFINITY, f64::min);
        let high = finite().fold(f64::NEG_INFINITY, f64::max);
        match values.len() {
            _ if low > high => format!("{name} has no values, {len} are missing"),
            1 => format!("{name} is {}", meaning.words(low)),
            n => format!("{name} is {} to {}, {n} values", meaning.words(low), meaning.words(high)),
        }
    };
    let by_index = match asked.trim().parse::<i64>() {
        Ok(index) if index.unsigned_abs() <= len as u64 => {
            format!(" (by index: --index {name}={asked})")
        }
        _ => String::new(),
    };
    let wrong = |what: &str| format!("{name}={asked}: {what}; {}{by_index}", there());
    let target = match meaning.kind {
        AxisKind::Dates(dates) => match by_date(&dates, values, asked) {
            Err(NoPeriod::NoDate) => {
                return Err(wrong("no date, such as 2004-07 or 2004-07-01T12"));
            }
            Err(NoPeriod::NotInCalendar) => return Err(wrong("the calendar has no such date")),
            Ok(Dated::In(index)) => return Ok(index),
            Ok(Dated::At(target)) => target,
        },
        kind => match degrees(asked, kind)
            .or_else(|| asked.trim().parse().ok().filter(|n: &f64| n.is_finite()))
        {
            Some(target) => Some(target),
            None => return Err(wrong("no number")),
        },
    };
    let outside = || wrong("outside");
    let target = target.ok_or_else(outside)?;
    let distance = |value: f64| match meaning.kind {
        AxisKind::Longitude => ((value - target + 180.0).rem_euclid(360.0) - 180.0).abs(),
        _ => (value - target).abs(),
    };
    let each = values.iter().enumerate().filter(|(_, value)| value.is_finite());
    let best = each.min_by(|a, b| distance(*a.1).total_cmp(&distance(*b.1)));
    let (index, value) = best.ok_or_else(outside)?;
    // Half of the way to the next value is the edge of a cell; numbers as they are printed are exact to some digits.
    let reach = (values.iter().filter(|other| other.is_finite() && *other != value))
        .map(|other| (other - value).abs())
        .fold(f64::INFINITY, f64::min);
    let reach = if reach.is_finite() { reach * 0.5 } else { 0.0 };
    // No cell goes on beyond zero where all values are on one side of it.
    let is_beyond_zero =
        meaning.kind == AxisKind::Number && !values.iter().any(|value| value * target >= 0.0);
    let rounding = match meaning.kind {
        AxisKind::Dates(_) => 0.0,
        _ => target.abs().max(value.abs()) * 1e-5,
    };
    let is_near = distance(*value) <= reach + rounding && !is_beyond_zero;
    // Longitudes may be said in another turn than they are written in.
    let turns: &[f64] = match meaning.kind {
        AxisKind::Longitude => &[0.0, 360.0, -360.0],
        _ => &[0.0],
    };
    let is_inside = turns.iter().any(|turn| is_between(values, target + turn));
    if is_near || is_inside { Ok(index) } else { Err(outside()) }
}

/// Whether a number is between the least and the greatest value.
fn is_between(values: &[f64], target: f64) -> bool {
    values.iter().any(|value| *value <= target) && values.iter().any(|value| *value >= target)
}

/// What a date is among values.
enum Dated {
    /// The first element in the period that it stands for.
    In(usize),
    /// The number for it, where there is no element in the period. None beyond the values.
    At(Option<f64>),
}

fn by_date(dates: &Dates, values: &[f64], asked: &str) -> std::result::Result<Dated, NoPeriod> {
    let period = dates.period(asked)?;
    if let Some(index) = values.iter().position(|value| dates.is_in(*value, &period)) {
        return Ok(Dated::In(index));
    }
    let finite = || values.iter().copied().filter(|value| value.is_finite());
    let low = finite().fold(f64::INFINITY, f64::min);
    let high = finite().fold(f64::NEG_INFINITY, f64::max);
    if low > high {
        return Ok(Dated::At(None));
    }
    // Up to a step beyond both ends, where the nearest value may still be one of these.
    let margin = (high - low).max(1.0 / dates.unit_days());
    let target = dates.first_from(&period.from, low - margin, high + margin);
    Ok(Dated::At(target.filter(|target| *target > low - margin)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(dim: &str, asked: Asked) -> Place {
        Place { dim: dim.to_owned(), asked }
    }

    #[test]
    fn places() {
        let value = |text: &str| Asked::Value(text.to_owned());
        assert_eq!(
            values("lat=50,time=2004-07"),
            Ok(Places(vec![one("lat", value("50")), one("time", value("2004-07"))]))
        );
        assert_eq!(values("a,b=3"), Ok(Places(vec![one("a,b", value("3"))])));
        assert_eq!(indices("time=-1"), Ok(Places(vec![one("time", Asked::Index(-1))])));
        assert_eq!(indices("a=b=3"), Ok(Places(vec![one("a=b", Asked::Index(3))])));
        for wrong in ["time", "time=", "=3", "time=x", "", "time=1,", "time=1,x"] {
            assert!(indices(wrong).is_err(), "{wrong}");
        }
        for wrong in ["time", "time=", "=3", "", "time=1,", "time=1,x"] {
            assert!(values(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn values_that_are_there_have_their_index() {
        let mut known = KnownValues { values: Vec::new(), indices: None };
        known.add(0, &[1.0, 2.0]);
        assert_eq!(known.indices, None);
        known.add(2, &[f64::NAN, 4.0]);
        known.add(4, &[5.0]);
        assert_eq!(known.values, [1.0, 2.0, 4.0, 5.0]);
        assert_eq!([0, 1, 2, 3].map(|at| known.index(at)), [0, 1, 3, 4]);
    }

    #[test]
    fn dimensions_of_panels() {
        let of = |dim: &str, n| Ok(Panels { dim: dim.to_owned(), n });
        assert_eq!(panels("time"), of("time", None));
        assert_eq!(panels("time=4"), of("time", Some(4)));
        for wrong in ["", "=3", "time=0", "time=37", "time=x", "time="] {
            assert!(panels(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn degrees_in_text() {
        use AxisKind::{Latitude, Longitude, Number};
        for (text, kind, want) in [
            ("50", Latitude, Some(50.0)),
            ("50N", Latitude, Some(50.0)),
            ("8.5°s", Latitude, Some(-8.5)),
            ("170 W", Longitude, Some(-170.0)),
            ("50E", Latitude, None),
            ("50", Number, None),
            ("", Latitude, None),
            ("N", Latitude, None),
            ("inf", Latitude, None),
        ] {
            assert_eq!(degrees(text, kind), want, "{text}");
        }
    }
}
