//! Slices as charts.

use zonda_plot::{
    Axis, AxisKind, Chart, Corners, Curve, LineOptions, MapField, MapOptions, MapPanel, Palette,
    Positions,
};

use super::coordinate::Coordinate;
use super::slice::{CellPlaces, ShownDims, Slice};
use crate::failure::Result;

/// How pictures look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) palette: Palette,
    /// What the ends of the colours stand for, where it was said.
    pub(super) range: Option<(f64, f64)>,
    pub(super) has_coasts: bool,
    /// Pixels of the whole picture.
    pub(super) width: u32,
}

/// Pixels of a chart beside another one, at least.
const LEAST_WIDTH: u32 = 560;

impl Look {
    /// How many charts of several are beside each other.
    pub(super) fn charts_in_a_row(&self, n_charts: usize) -> usize {
        let most = (self.width / LEAST_WIDTH).max(1) as usize;
        most.min(n_charts.max(1))
    }

    /// Pixels of each of several charts.
    pub(super) fn width_of_each(&self, n_charts: usize) -> u32 {
        u32::try_from(self.charts_in_a_row(n_charts))
            .map_or(self.width, |columns| self.width / columns)
    }

    /// The same with the range of all slices, so that drawings one after the other have the same colours.
    pub(super) fn over(&self, slices: &[Slice]) -> Look {
        let values =
            slices.iter().flat_map(|slice| &slice.values).filter(|value| value.is_finite());
        let found = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(*value), high.max(*value))
        });
        let found = (slices.len() > 1 && found.0 < found.1).then_some(found);
        let found = found.map(|(low, high)| match self.palette {
            Palette::Diverging => (-low.abs().max(high.abs()), low.abs().max(high.abs())),
            Palette::Sequential => (low, high),
        });
        Look { range: self.range.or(found), ..*self }
    }
}

/// All slices of a variable as one chart: maps beside each other, or curves over each other.
///
/// # Errors
/// Memory; inside what the chart says.
pub(super) fn chart(slices: &[Slice], look: &Look) -> Result<zonda_plot::Result<Chart>> {
    let Some(first) = slices.first() else { return Ok(Err(zonda_plot::Error::Empty)) };
    let (common, own) = positions(slices);
    let (title, subtitle) = (first.title(), first.subtitle(&common));
    match &first.axes {
        ShownDims::One(x) => {
            let mut curves = Vec::new();
            for (slice, own) in slices.iter().zip(own) {
                let name = if own.is_empty() { slice.name.clone() } else { own.join(", ") };
                curves.push(Curve { name, points: points(slice)? });
            }
            let values = Axis::new(first.named_unit(), AxisKind::Number);
            let places = Axis { reversed: x.is_vertical && x.is_downwards, ..axis(x) };
            // Heights go up.
            let (x, y) = if x.is_vertical { (values, places) } else { (places, values) };
            let options = LineOptions { title, subtitle, x, y, width: look.width };
            Ok(zonda_plot::lines(&curves, &options))
        }
        ShownDims::Two { .. } => {
            let options = MapOptions { title, subtitle, ..map_options(first, look) };
            let each = slices.iter().zip(own);
            let panels = each.filter_map(|(slice, own)| {
                Some(MapPanel { title: own.join(",  "), field: field(slice)? })
            });
            Ok(zonda_plot::maps(&panels.collect::<Vec<_>>(), &options))
        }
    }
}

/// What the positions of all slices have in common, and what each has of its own.
fn positions(slices: &[Slice]) -> (Vec<String>, Vec<Vec<&str>>) {
    let is_common = |part: &String| slices.iter().all(|slice| slice.at.contains(part));
    let first = slices.first().map_or(&[][..], |slice| &slice.at);
    let own = slices.iter().map(|slice| {
        let own = slice.at.iter().filter(|part| slices.len() > 1 && !is_common(part));
        own.map(String::as_str).collect()
    });
    (first.iter().filter(|part| is_common(part)).cloned().collect(), own.collect())
}

/// The points of a slice along one dimension.
fn points(slice: &Slice) -> Result<Vec<(f64, f64)>> {
    let mut points = zonda::memory::room(slice.values.len())?;
    let ShownDims::One(x) = &slice.axes else { return Ok(points) };
    let coordinates = x.centres.as_deref();
    let place = |index: usize| coordinates.map_or(index as f64, |at| at[index]);
    let each = slice.values.iter().enumerate();
    points.extend(each.map(|(index, value)| match x.is_vertical {
        true => (*value, place(index)),
        false => (place(index), *value),
    }));
    Ok(points)
}

/// The field of a slice of two dimensions.
pub(super) fn field(slice: &Slice) -> Option<MapField<'_>> {
    let ShownDims::Two { y, x } = &slice.axes else { return None };
    let field = MapField {
        columns: x.len,
        rows: y.len,
        values: &slice.values,
        x: axis(x),
        x_centres: x.centres.as_deref(),
        y: Axis { reversed: y.is_downwards, ..axis(y) },
        y_centres: y.centres.as_deref(),
        x_edges: x.edges.as_deref(),
        y_edges: y.edges.as_deref(),
        positions: None,
    };
    let Some(CellPlaces { lat, lon, corners, lat_title, lon_title }) = &slice.places else {
        return Some(field);
    };
    let corners = corners.as_ref().map(|(lat, lon)| Corners { lon, lat });
    Some(MapField {
        x: Axis::new(lon_title.clone(), AxisKind::Longitude),
        x_centres: None,
        y: Axis::new(lat_title.clone(), AxisKind::Latitude),
        y_centres: None,
        x_edges: None,
        y_edges: None,
        positions: Some(Positions { lon, lat, corners }),
        ..field
    })
}

pub(super) fn map_options(slice: &Slice, look: &Look) -> MapOptions {
    let is_plane = match &slice.axes {
        ShownDims::Two { y, x } => {
            let is_length = x.kind == AxisKind::Number && !x.is_vertical && !y.is_vertical;
            is_length && x.kind == y.kind && !x.units.is_empty() && x.units == y.units
        }
        ShownDims::One(_) => false,
    };
    let Look { palette, range, has_coasts, width } = *look;
    let unit = slice.named_unit();
    MapOptions { unit, palette, range, is_plane, has_coasts, width, ..MapOptions::default() }
}

fn axis(coordinate: &Coordinate) -> Axis {
    let axis = Axis::new(coordinate.title.clone(), coordinate.kind);
    if coordinate.is_log { axis.log() } else { axis }
}
