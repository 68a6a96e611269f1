//! Why a chart could not be made.

/// What the functions of this crate return.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a chart could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The number of values is not that of the cells.
    #[error("{values} values for a field of {rows} rows of {columns}")]
    Shape {
        /// Cells from left to right.
        columns: usize,
        /// Cells from bottom to top.
        rows: usize,
        /// Values that came.
        values: usize,
    },
    /// An axis has another number of coordinates than cells.
    #[error("{coordinates} coordinates for {cells} cells along {axis}")]
    Coordinates {
        /// Title of the axis.
        axis: String,
        /// Cells along it.
        cells: usize,
        /// Coordinates that came.
        coordinates: usize,
    },
    /// The coordinates of a map's axis neither rise nor fall throughout.
    #[error("the coordinates along {axis} go back and forth, or some are missing")]
    NotMonotonic {
        /// Title of the axis.
        axis: String,
    },
    /// An axis by ratios has coordinates that are zero or below.
    #[error("the coordinates along {axis} are not all above zero, so they have no logarithms")]
    NoLogarithm {
        /// Title of the axis.
        axis: String,
    },
    /// There is nothing that could be drawn.
    #[error("there is nothing to draw")]
    Empty,
    /// Pictures of another kind are not made.
    #[error("{name}: no name of a picture, which ends in .png or .svg")]
    Name {
        /// The name.
        name: String,
    },
    /// A picture so small has no room for a chart, one so large is no picture.
    #[error("{width} pixels are no width for this chart, {least} to {most} are")]
    Width {
        /// What was asked for.
        width: u32,
        /// The least.
        least: u32,
        /// The most.
        most: u32,
    },
    /// The drawing library failed.
    #[error("drawing: {0}")]
    Draw(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The encoder failed.
    #[error("encoding: {0}")]
    Encode(#[from] png::EncodingError),
}
