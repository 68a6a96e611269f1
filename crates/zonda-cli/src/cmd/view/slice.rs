//! Reads the part of a variable that is shown: up to two dimensions, at one index along each of the
//! others.

use std::io::Write;

use zonda::{Dataset, DimId, ExtType, GroupId, Hyperslab, Meta, VarRef, memory};
use zonda_cf::times::Dates;
use zonda_cf::values::{Decoder, Unused};
use zonda_plot::AxisKind;

use super::DimIndex;
use super::decode::{decoder, text};
use crate::cdl::types::outward;
use crate::failure::{CommandFailure, Result};
use crate::similar::{did_you_mean, similar_variable};
use crate::tuning::{LINE_ELEMS, MAP_ELEMS};

/// Values of a variable, with what describes them.
#[derive(Debug)]
pub(super) struct Slice {
    pub(super) name: String,
    long_name: Option<String>,
    units: Option<String>,
    /// Position along dimensions that are not shown: `lev = 983.3 hPa`.
    at: Vec<String>,
    pub(super) axes: ShownDims,
    /// Decoded values, NaN where missing. The last axis is the fastest.
    pub(super) values: Vec<f64>,
    /// Attributes that have no meaning and were not used.
    pub(super) notes: Vec<String>,
}

/// The dimensions that are shown.
#[derive(Debug)]
pub(super) enum ShownDims {
    One(Coordinate),
    Two { y: Coordinate, x: Coordinate },
}

/// A dimension as an axis.
#[derive(Debug)]
pub(super) struct Coordinate {
    dim: String,
    pub(super) title: String,
    pub(super) kind: AxisKind,
    pub(super) downwards: bool,
    /// Elements shown.
    pub(super) len: usize,
    /// Step between elements that are shown.
    step: usize,
    /// Values of the coordinate variable, if there is one whose values only rise or only fall.
    pub(super) centres: Option<Vec<f64>>,
    /// The first and the last value in words.
    pub(super) ends: Option<(String, String)>,
}

/// A dimension of the variable.
struct SlicedDim {
    name: String,
    len: usize,
    /// The index that was asked for.
    at: Option<usize>,
    /// Its coordinate variable, if there is one with numbers.
    coordinate: Option<(VarRef, ExtType)>,
}

impl Slice {
    pub(super) fn read(file: &Dataset, name: &str, at: &[DimIndex]) -> Result<Slice> {
        let (id, ty, mut dims) = variable(file, name)?;
        for at in at {
            place(&mut dims, at, name)?;
        }
        if let Some(empty) = dims.iter().find(|dim| dim.len == 0) {
            return Err(CommandFailure::InFile(format!(
                "{name}: no values, {} is empty",
                empty.name
            )));
        }
        let free = |dim: &SlicedDim| dim.at.is_none() && dim.len > 1;
        let mut shown: Vec<usize> = (0..dims.len()).filter(|&i| free(&dims[i])).collect();
        if shown.is_empty() {
            // A single value is drawn as a line of one point, along the last dimension without
            // `--at`.
            shown.extend(dims.iter().rposition(|dim| dim.at.is_none()));
        }
        let shown = &shown[shown.len().saturating_sub(2)..];
        let most = if shown.len() == 2 { MAP_ELEMS } else { LINE_ELEMS };

        let mut start = vec![0; dims.len()];
        let mut count = vec![1; dims.len()];
        let mut stride = vec![1; dims.len()];
        let mut axes = Vec::new();
        let mut rest = Vec::new();
        for (i, dim) in dims.iter().enumerate() {
            if shown.contains(&i) {
                let step = dim.len.div_ceil(most);
                count[i] = dim.len.div_ceil(step);
                // The list is no longer than the dimension.
                stride[i] = isize::try_from(step).unwrap_or(isize::MAX);
                axes.push(Coordinate::read(file, dim, count[i], step)?);
            } else {
                start[i] = dim.at.unwrap_or(0);
                rest.extend(position(file, dim, start[i])?);
            }
        }
        let slab = Hyperslab { start: &start, count: &count, stride: Some(&stride) };
        let decoder = decoder(file, id, ty)?;
        let values = read(file, id, &slab, &decoder)?;
        let x = axes.pop().unwrap_or_else(Coordinate::of_nothing);
        let axes = match axes.pop() {
            Some(y) => ShownDims::Two { y, x },
            None => ShownDims::One(x),
        };
        Ok(Slice {
            name: name.to_owned(),
            long_name: text(file, id, "long_name").or_else(|| text(file, id, "standard_name")),
            units: text(file, id, "units").filter(|units| units != "1"),
            at: rest,
            axes,
            values,
            notes: decoder.unused().iter().map(Unused::to_string).collect(),
        })
    }

    /// `temperature (T)`
    pub(super) fn title(&self) -> String {
        match &self.long_name {
            Some(long) if *long != self.name => format!("{long} ({})", self.name),
            _ => self.name.clone(),
        }
    }

    /// The position along dimensions that are not shown.
    pub(super) fn subtitle(&self) -> String {
        let mut parts = self.at.clone();
        parts.extend(self.coordinates().filter(|axis| axis.step > 1).map(|axis| {
            format!("{} of {} elements along {}", axis.len, axis.len * axis.step, axis.dim)
        }));
        if self.values.iter().all(|value| !value.is_finite()) {
            parts.push("no value is there, all are missing".to_owned());
        }
        parts.join(",  ")
    }

    /// `temperature (K)`
    pub(super) fn named_unit(&self) -> String {
        titled(self.long_name.as_ref().unwrap_or(&self.name), self.units.as_deref())
    }

    fn coordinates(&self) -> impl Iterator<Item = &Coordinate> {
        let (y, x) = match &self.axes {
            ShownDims::One(x) => (None, x),
            ShownDims::Two { y, x } => (Some(y), x),
        };
        y.into_iter().chain([x])
    }

    /// Describes in words what would be drawn.
    pub(super) fn describe(&self, out: &mut dyn Write) -> Result<()> {
        writeln!(out, "{}", self.title())?;
        let mut line = |label: &str, text: &str| writeln!(out, "  {label:<8} {text}");
        if !self.at.is_empty() {
            line("at", &self.at.join(", "))?;
        }
        let named = self.coordinates().filter(|axis| !axis.dim.is_empty());
        let shape: Vec<String> = named.map(|axis| format!("{}={}", axis.dim, axis.len)).collect();
        if !shape.is_empty() {
            line("shape", &shape.join(", "))?;
        }
        for axis in self.coordinates() {
            if let Some((first, last)) = &axis.ends {
                line(&axis.dim, &format!("{first} to {last}"))?;
            }
        }
        let mut found = Statistics::default();
        self.values.iter().filter(|value| value.is_finite()).for_each(|value| found.add(*value));
        let missing = self.values.len() - found.n;
        line("values", &format!("{}, {missing} missing", self.values.len()))?;
        if found.n > 0 {
            let units = self.units.as_ref().map_or(String::new(), |units| format!(" {units}"));
            let (low, high) = (short(found.low), short(found.high));
            line("range", &format!("{low} to {high}{units}"))?;
            line("mean", &format!("{}{units}, each value counted once", short(found.mean)))?;
        }
        Ok(())
    }
}

/// Statistics of values that are printed.
struct Statistics {
    n: usize,
    low: f64,
    high: f64,
    mean: f64,
}

impl Default for Statistics {
    fn default() -> Statistics {
        Statistics { n: 0, low: f64::INFINITY, high: f64::NEG_INFINITY, mean: 0.0 }
    }
}

impl Statistics {
    fn add(&mut self, value: f64) {
        self.n += 1;
        self.low = self.low.min(value);
        self.high = self.high.max(value);
        // The mean is updated step by step, because the sum of huge numbers may be infinite.
        let n = self.n as f64;
        self.mean += value / n - self.mean / n;
    }
}

/// A number with six digits, in its shortest form.
fn short(number: f64) -> String {
    let rounded: f64 = format!("{number:.5e}").parse().unwrap_or(number);
    if rounded != 0.0 && !(1e-4..1e9).contains(&rounded.abs()) {
        return format!("{rounded:e}");
    }
    rounded.to_string()
}

/// `983.3 hPa`, `45°S`, `1990-02-01 12:30`
fn with_units(value: f64, kind: AxisKind, units: &str) -> String {
    let degrees = |positive, negative| {
        let side = match value {
            0.0 => "",
            _ if value < 0.0 => negative,
            _ => positive,
        };
        format!("{}°{side}", short(value.abs()))
    };
    let plain = || match units.is_empty() {
        true => short(value),
        false => format!("{} {units}", short(value)),
    };
    match kind {
        AxisKind::Dates(dates) => dates.text(value).unwrap_or_else(plain),
        AxisKind::Longitude => degrees("E", "W"),
        AxisKind::Latitude => degrees("N", "S"),
        _ => plain(),
    }
}

/// `pressure (hPa)`
fn titled(name: &str, units: Option<&str>) -> String {
    units.map_or(name.to_owned(), |units| format!("{name} ({units})"))
}

/// Splits a path into the group and the name of the variable.
fn group_of<'n>(file: &Dataset, path: &'n str) -> Result<Option<(GroupId, &'n str)>> {
    let (groups, name) = path.rsplit_once('/').unwrap_or(("", path));
    let mut group = GroupId::ROOT;
    for part in groups.split('/').filter(|part| !part.is_empty()) {
        match file.in_group(group, |meta| meta.find_group(part.as_bytes()))? {
            Ok(found) => group = found,
            Err(_) => return Ok(None),
        }
    }
    Ok(Some((group, name)))
}

/// The variable of a name, which may be a path: id, type, dimensions.
fn variable(file: &Dataset, name: &str) -> Result<(VarRef, ExtType, Vec<SlicedDim>)> {
    let missing = |hint: String| CommandFailure::InFile(format!("{name}: no such variable{hint}"));
    let (group, own) = group_of(file, name)?.ok_or_else(|| missing(String::new()))?;
    file.in_group(group, |meta| {
        let id = meta.find_var(own.as_bytes()).map_err(|_| missing(similar_variable(meta, own)))?;
        let var = meta.var(id)?;
        if let Some(error) = meta.var_fault(id) {
            return Err(error.into());
        }
        let no_number =
            || CommandFailure::InFile(format!("{name}: no numbers, which a picture needs"));
        let ty = var.ty().ok_or_else(no_number)?;
        if ty == ExtType::Char {
            return Err(CommandFailure::InFile(format!("{name}: text, which has no picture")));
        }
        let mut shape = vec![0; var.dims.len()];
        meta.var_shape(id, &mut shape)?;
        let mut dims = Vec::with_capacity(shape.len());
        for (&dim, len) in var.dims.iter().zip(shape) {
            let name = String::from_utf8_lossy(meta.dim(dim)?.name).into_owned();
            dims.push(SlicedDim {
                name,
                len,
                at: None,
                coordinate: coordinate_variable(meta, dim),
            });
        }
        Ok((VarRef { group, var: id }, ty, dims))
    })?
}

/// Notes an index that was asked for in its dimension.
fn place(dims: &mut [SlicedDim], at: &DimIndex, variable: &str) -> Result<()> {
    let known = dims.iter().map(|dim| dim.name.as_str()).collect::<Vec<_>>().join(", ");
    let hint = did_you_mean(&at.dim, dims.iter().map(|dim| dim.name.as_str()));
    let Some(dim) = dims.iter_mut().find(|dim| dim.name == at.dim) else {
        let has = if known.is_empty() { "none".to_owned() } else { known };
        let reason = format!("{variable}: no dimension {}; it has {has}{hint}", at.dim);
        return Err(CommandFailure::InFile(reason));
    };
    let len = i64::try_from(dim.len).unwrap_or(i64::MAX);
    let index = if at.index < 0 { len.saturating_add(at.index) } else { at.index };
    dim.at = usize::try_from(index).ok().filter(|index| *index < dim.len);
    if dim.at.is_none() {
        let (name, len) = (&dim.name, dim.len);
        let reason = format!("{variable}: no index {} along {name}, which has {len}", at.index);
        return Err(CommandFailure::InFile(reason));
    }
    Ok(())
}

/// Reads the values of a hyperslab.
fn read(file: &Dataset, id: VarRef, slab: &Hyperslab<'_>, decoder: &Decoder) -> Result<Vec<f64>> {
    let mut bytes = Vec::new();
    // No value is out of range, because none is converted to another type.
    let _ = file.get_list(id, slab, None, (&mut bytes, None))?;
    let mut values = memory::room(bytes.len() / decoder.elem_bytes())?;
    values.extend(decoder.values(&bytes));
    Ok(values)
}

/// The coordinate variable of a dimension, if it has numbers. It is looked for in this group and
/// those around it.
fn coordinate_variable(meta: &Meta<'_>, dim: DimId) -> Option<(VarRef, ExtType)> {
    let name = meta.dim(dim).ok()?.name;
    outward(meta).find_map(|meta| {
        let id = meta.find_var(name).ok()?;
        let var = meta.var(id).ok()?;
        let ty = var.ty().filter(|ty| var.dims == [dim] && *ty != ExtType::Char)?;
        Some((VarRef { group: meta.group_id(), var: id }, ty))
    })
}

/// The position along a dimension that is not shown: `lev = 983.3 hPa`, or `lev index 3`.
fn position(file: &Dataset, dim: &SlicedDim, index: usize) -> Result<Option<String>> {
    if let Some((id, ty)) = dim.coordinate {
        let slab = Hyperslab { start: &[index], count: &[1], stride: None };
        let value = read(file, id, &slab, &decoder(file, id, ty)?)?.first().copied();
        if let Some(value) = value.filter(|value| value.is_finite()) {
            let units = text(file, id, "units").filter(|units| units != "1").unwrap_or_default();
            let position = with_units(value, kind(file, id), &units);
            return Ok(Some(format!("{} = {position}", dim.name)));
        }
    }
    Ok((dim.len > 1).then(|| format!("{} index {index}", dim.name)))
}

impl Coordinate {
    fn read(file: &Dataset, of: &SlicedDim, len: usize, step: usize) -> Result<Coordinate> {
        let dim = &of.name;
        let index = Coordinate {
            dim: dim.to_owned(),
            title: format!("{dim} (index)"),
            kind: AxisKind::Index,
            len,
            step,
            ..Coordinate::of_nothing()
        };
        let Some((id, ty)) = of.coordinate else { return Ok(index) };
        let stride = [isize::try_from(step).unwrap_or(isize::MAX)];
        let slab = Hyperslab { start: &[0], count: &[len], stride: Some(&stride) };
        let centres = read(file, id, &slab, &decoder(file, id, ty)?)?;
        let one_way = centres.windows(2).all(|pair| pair[0] < pair[1])
            || centres.windows(2).all(|pair| pair[0] > pair[1]);
        if !one_way || centres.iter().any(|centre| !centre.is_finite()) {
            // No axis can have such coordinates, for instance longitudes that jump from 180 to
            // -180.
            return Ok(index);
        }
        let units = text(file, id, "units").filter(|units| units != "1");
        let kind = kind(file, id);
        let long_name = || text(file, id, "long_name").or_else(|| text(file, id, "standard_name"));
        let name = match kind {
            AxisKind::Longitude => long_name().unwrap_or_else(|| "longitude".to_owned()),
            AxisKind::Latitude => long_name().unwrap_or_else(|| "latitude".to_owned()),
            _ => long_name().unwrap_or_else(|| dim.to_owned()),
        };
        // The ticks name degrees, so the title does not.
        let shown = units.as_deref().filter(|_| kind == AxisKind::Number);
        let label = |value: Option<&f64>| {
            with_units(*value.unwrap_or(&f64::NAN), kind, units.as_deref().unwrap_or_default())
        };
        Ok(Coordinate {
            ends: Some((label(centres.first()), label(centres.last()))),
            title: titled(&name, shown),
            kind,
            downwards: text(file, id, "positive").is_some_and(|p| p.eq_ignore_ascii_case("down")),
            centres: Some(centres),
            ..index
        })
    }

    /// The axis for a variable without dimensions.
    fn of_nothing() -> Coordinate {
        Coordinate {
            dim: String::new(),
            title: String::new(),
            kind: AxisKind::Number,
            downwards: false,
            len: 1,
            step: 1,
            centres: None,
            ends: None,
        }
    }
}

/// The kind of an axis by the units of its variable. CF has units for latitude, longitude and time.
fn kind(file: &Dataset, id: VarRef) -> AxisKind {
    let units = text(file, id, "units").unwrap_or_default();
    match &*units {
        "degrees_east" | "degree_east" | "degrees_E" | "degree_E" | "degreesE" | "degreeE" => {
            AxisKind::Longitude
        }
        "degrees_north" | "degree_north" | "degrees_N" | "degree_N" | "degreesN" | "degreeN" => {
            AxisKind::Latitude
        }
        _ => {
            let calendar = text(file, id, "calendar").unwrap_or_default();
            let dates = Dates::parse(units.as_bytes(), calendar.as_bytes());
            dates.map_or(AxisKind::Number, AxisKind::Dates)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (number, text) in [
            (0.0, "0"),
            (273.15, "273.15"),
            (983.333_333_333, "983.333"),
            (-1234567.0, "-1234570"),
            (1e-9, "1e-9"),
            (9.969_209_968e36, "9.96921e36"),
        ] {
            assert_eq!(short(number), text);
        }
    }

    #[test]
    fn mean_of_huge_values() {
        let mut found = Statistics::default();
        [f64::MAX, f64::MAX, -f64::MAX, -f64::MAX].into_iter().for_each(|value| found.add(value));
        assert!(found.mean.abs() < f64::MAX / 1e10, "{}", found.mean);
    }
}
