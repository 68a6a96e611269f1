#![doc = include_str!("../README.md")]
//!
//! ```
//! use zonda_plot::{Axis, AxisKind, Format, MapField, MapOptions, map};
//!
//! let field = MapField {
//!     columns: 3,
//!     rows: 2,
//!     values: &[280.0, 281.5, 283.0, 290.0, f64::NAN, 292.0],
//!     x: Axis::new("longitude", AxisKind::Longitude),
//!     x_centres: Some(&[0.0, 120.0, 240.0]),
//!     y: Axis::new("latitude", AxisKind::Latitude),
//!     y_centres: Some(&[-45.0, 45.0]),
//!     x_edges: None,
//!     y_edges: None,
//!     positions: None,
//! };
//! let options = MapOptions { title: "temperature".into(), unit: "K".into(), ..Default::default() };
//! let svg = map(&field, &options)?.encode(Format::Svg)?;
//! assert!(svg.starts_with(b"<svg"));
//! # Ok::<(), zonda_plot::Error>(())
//! ```
#![forbid(unsafe_code)]

mod arrange;
mod axis;
mod bars;
mod cells;
mod coast;
mod colour;
mod curved;
mod dates;
mod error;
mod frame;
mod line;
mod map;
mod offset;
mod output;
mod png;
mod scene;
mod svg;
mod terminal;
mod text;
mod timeline;

pub use arrange::arrange;
pub use axis::{Axis, AxisKind, Spacing};
pub use bars::{BarOptions, BarSeries, bars};
pub use colour::{Colour, Palette};
pub use curved::{Corners, Positions};
pub use error::{Error, Result};
pub use line::{Curve, LineOptions, lines};
pub use map::{MapField, MapOptions, MapPanel, map, maps};
pub use offset::{AccessDirection, FileAccess, OffsetOptions, OffsetPanel, offsets};
pub use output::{Chart, Format};
pub use terminal::{Depth, TextOptions, line_text, map_text};
pub use timeline::{TimelineOptions, TimelinePart, TimelineRow, timeline};
