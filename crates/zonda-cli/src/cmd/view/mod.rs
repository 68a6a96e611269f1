//! `zonda view`: what the numbers of a variable look like.

mod decode;
mod list;
mod slice;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use zonda_plot::{
    Axis, AxisKind, Chart, Curve, Depth, Format, LineOptions, MapField, MapOptions, Palette,
    TextOptions,
};

use crate::failure::{CommandFailure, Result};
use crate::input;
use slice::{Coordinate, ShownDims, Slice};

/// Draws a variable: a map of two dimensions, or a line of one
///
/// The last two dimensions with more than one element make the map; the others are taken at index 0
/// or as --at says. Values are decoded as CF and the NetCDF Users Guide have it: _Unsigned, scale_factor,
/// add_offset, _FillValue, missing_value, valid_range, valid_min, valid_max, and times as dates. Without -o, the range and the mean of the values are printed, and on a
/// terminal a drawing in text. Without a variable, those that can be drawn are listed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  zonda view history.nc
  zonda view history.nc T
  zonda view history.nc T -o T.png
  zonda view history.nc T --at time=-1 --at lev=3 -o T.svg
  zonda view history.nc T --at lat=32 --at lon=0 -o profile.png")]
pub(crate) struct Args {
    /// The picture, PNG or SVG by its extension
    #[arg(short = 'o', long = "output", value_name = "OUT.png|.svg")]
    output: Option<PathBuf>,

    /// Index along a dimension, from 0; negative ones count from the end, -1 being the last
    #[arg(long, value_name = "DIM=INDEX", value_parser = at, allow_hyphen_values = true)]
    at: Vec<DimIndex>,

    /// Colours with their middle at zero, for values of both signs
    #[arg(long)]
    diverging: bool,

    /// Width of the picture in pixels
    #[arg(long, value_name = "PIXELS", default_value_t = 1200, requires = "output")]
    width: u32,

    /// Draws in text, also where the output is no terminal
    #[arg(long, conflicts_with = "output")]
    text: bool,

    /// The file; `-` for standard input
    file: PathBuf,

    /// The variable; of a group by its path, such as /ocean/temp
    #[arg(value_name = "VAR")]
    variable: Option<String>,
}

/// An index along a dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
struct DimIndex {
    dim: String,
    index: i64,
}

fn at(text: &str) -> std::result::Result<DimIndex, String> {
    let expected = || "expected DIM=INDEX, such as time=-1".to_owned();
    let (dim, index) = text.rsplit_once('=').ok_or_else(expected)?;
    let index = index.parse().map_err(|_| expected())?;
    if dim.is_empty() { Err(expected()) } else { Ok(DimIndex { dim: dim.to_owned(), index }) }
}

pub(crate) fn execute(args: &Args, out: &mut dyn Write) -> Result<ExitCode> {
    // The name of the picture is checked before anything is read, because a wrong name is a wrong
    // call.
    let format = args.output.as_deref().map(Format::of).transpose().map_err(wrong_call)?;
    let draws_text = args.text || std::io::stdout().is_terminal();
    if args.diverging && args.variable.is_some() && args.output.is_none() && !draws_text {
        let why = "--diverging is about colours: it wants -o, --text or a terminal";
        return Err(CommandFailure::Usage(format!("{why}; see --help")));
    }
    zonda::report_gaps(crate::failure::warn);
    let file = input::open(&args.file)?;
    let Some(variable) = &args.variable else {
        if args.output.is_some() || args.text || args.diverging || !args.at.is_empty() {
            let why = "-o, --text, --at and --diverging want a variable; without them VAR may be left out";
            return Err(CommandFailure::Usage(format!("{why}; see --help")));
        }
        list::write(&file, out).map_err(|failure| failure.within(file.path()))?;
        file.close()?;
        return crate::done();
    };
    input::warn_of_missing(&file, &args.file)?;
    let slice =
        Slice::read(&file, variable, &args.at).map_err(|failure| failure.within(file.path()))?;
    file.close()?;
    if args.diverging && matches!(slice.axes, ShownDims::One(_)) {
        let label = input::label(&args.file);
        let label = label.display();
        eprintln!("zonda: {label}: {variable}: --diverging has no effect: a line has one colour");
    }
    for note in &slice.notes {
        eprintln!("zonda: {}: {variable}: {note}", input::label(&args.file).display());
    }
    let (Some(output), Some(format)) = (&args.output, format) else {
        slice.describe(out)?;
        if draws_text {
            draw_text(&slice, args, out)?;
        }
        return crate::done();
    };
    let chart = chart(&slice, args)?.map_err(|error| match error {
        zonda_plot::Error::Width { .. } => wrong_call(error),
        zonda_plot::Error::Empty => {
            CommandFailure::at(&input::label(&args.file), format!("{variable}: no values"))
        }
        other => CommandFailure::text(other.to_string()),
    })?;
    write_picture(output, &chart, format)?;
    crate::done()
}

fn wrong_call(error: zonda_plot::Error) -> CommandFailure {
    CommandFailure::Usage(format!("{error}; see --help"))
}

/// Makes the picture and writes it. If it cannot be made, no file is written.
pub(super) fn write_picture(path: &Path, chart: &Chart, format: Format) -> Result<()> {
    let bytes = chart.encode(format).map_err(|error| CommandFailure::at(path, error))?;
    zonda::storage::whole::write(path, &bytes).map_err(|error| CommandFailure::at(path, error))
}

fn chart(slice: &Slice, args: &Args) -> Result<zonda_plot::Result<Chart>> {
    let (title, subtitle) = (slice.title(), slice.subtitle());
    match &slice.axes {
        ShownDims::One(x) => {
            let coordinates = x.centres.as_deref();
            let place = |index: usize| coordinates.map_or(index as f64, |at| at[index]);
            let mut points = zonda::memory::room(slice.values.len())?;
            let each = slice.values.iter().enumerate();
            points.extend(each.map(|(index, value)| (place(index), *value)));
            let curve = Curve { name: slice.name.clone(), points };
            let y = Axis::new(slice.named_unit(), AxisKind::Number);
            let options = LineOptions { title, subtitle, x: axis(x), y, width: args.width };
            Ok(zonda_plot::lines(&[curve], &options))
        }
        ShownDims::Two { y, x } => {
            let options = MapOptions { title, subtitle, ..map_options(slice, args) };
            Ok(zonda_plot::map(&field(slice, y, x), &options))
        }
    }
}

fn field<'a>(slice: &'a Slice, y: &'a Coordinate, x: &'a Coordinate) -> MapField<'a> {
    MapField {
        columns: x.len,
        rows: y.len,
        values: &slice.values,
        x: axis(x),
        x_centres: x.centres.as_deref(),
        y: Axis { reversed: y.downwards, ..axis(y) },
        y_centres: y.centres.as_deref(),
    }
}

fn map_options(slice: &Slice, args: &Args) -> MapOptions {
    let palette = if args.diverging { Palette::Diverging } else { Palette::Sequential };
    MapOptions { unit: slice.named_unit(), palette, width: args.width, ..MapOptions::default() }
}

/// Lines and columns for a drawing on a terminal whose size is unknown.
const LINES: usize = 20;
const COLUMNS: usize = 80;
/// Lines of the terminal that are left for the prompt and the description.
const OTHER_LINES: usize = 8;

/// Draws in text, as large as the terminal allows. An empty chart is not drawn.
fn draw_text(slice: &Slice, args: &Args, out: &mut dyn Write) -> Result<()> {
    if !slice.values.iter().any(|value| value.is_finite()) {
        return Ok(());
    }
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
    let known = size.filter(|size| size.ws_col > 0 && size.ws_row > 0);
    let (columns, lines) = known.map_or((COLUMNS, LINES), |size| {
        (size.ws_col.into(), usize::from(size.ws_row).saturating_sub(OTHER_LINES).clamp(4, 60))
    });
    let says = |name: &str| std::env::var(name).unwrap_or_default();
    let is_plain =
        !says("NO_COLOR").is_empty() || says("TERM") == "dumb" || !std::io::stdout().is_terminal();
    let depth = match says("COLORTERM").as_str() {
        _ if is_plain => Depth::None,
        "truecolor" | "24bit" => Depth::True,
        _ => Depth::Indexed,
    };
    let text = TextOptions { columns, lines, depth };
    let drawn = match &slice.axes {
        ShownDims::One(x) => zonda_plot::line_text(&slice.values, text).map(|mut lines| {
            lines.extend(x.ends.as_ref().map(|ends| below(ends, columns.min(slice.values.len()))));
            lines
        }),
        ShownDims::Two { y, x } => {
            zonda_plot::map_text(&field(slice, y, x), &map_options(slice, args), text)
        }
    };
    for line in drawn.map_err(|error| CommandFailure::text(error.to_string()))? {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// The line below a drawing of so many columns: the labels of its two ends.
fn below((first, last): &(String, String), columns: usize) -> String {
    let room = columns.saturating_sub(first.chars().count());
    if room > last.chars().count() {
        format!("{first}{last:>room$}")
    } else {
        format!("{first} to {last}")
    }
}

fn axis(coordinate: &Coordinate) -> Axis {
    Axis::new(coordinate.title.clone(), coordinate.kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices() {
        assert_eq!(at("time=-1"), Ok(DimIndex { dim: "time".to_owned(), index: -1 }));
        assert_eq!(at("a=b=3"), Ok(DimIndex { dim: "a=b".to_owned(), index: 3 }));
        for wrong in ["time", "time=", "=3", "time=x", ""] {
            assert!(at(wrong).is_err(), "{wrong}");
        }
    }
}
