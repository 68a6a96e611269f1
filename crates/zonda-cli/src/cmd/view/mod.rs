//! `zonda view`: what the numbers of a variable look like.

mod at;
mod coordinate;
mod decode;
mod grid;
mod list;
mod picture;
mod slice;
mod terminal;
mod variable;
mod words;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use zonda::Dataset;
use zonda_plot::{Chart, Format, Palette};

use crate::failure::{CommandFailure, Result};
use crate::input;
use crate::tuning::MAP_ELEMS;
use at::{Panels, Places};
use grid::Grid;
use picture::Look;
use slice::{ShownDims, Slice};
use terminal::Kind;
use variable::Variable;

/// Draws a variable: a map of two dimensions, or a line of one
///
/// Latitude and longitude make the map, else the last two dimensions with more than one element; the others are taken at index 0
/// or as --at and --index say. Heights, depths and pressures go up and down, longitudes from left to right;
/// pressures of more than a decade are spread by ratios, as heights are. Latitudes and
/// longitudes of two dimensions that `coordinates` names are where the cells are (a curvilinear grid). Values are decoded as CF and the NetCDF Users Guide have it: _Unsigned, scale_factor,
/// add_offset, _FillValue, missing_value, valid_range, valid_min, valid_max, and times as dates. Several variables, or
/// several places along a dimension, give several panels. Without -o, the range and the mean of the values are printed, and on a
/// terminal a drawing in text. Without a variable, those that can be drawn are listed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  zonda view history.nc
  zonda view history.nc T
  zonda view history.nc T -o T.png
  zonda view history.nc T --at time=2004-07,lev=850 -o T.svg
  zonda view history.nc T --index time=-1 --at lon=8.5E -o section.png
  zonda view history.nc T --at lat=50,lon=8,time=2004-07-01T12 -o profile.png
  zonda view history.nc T --at time=2004-01,time=2004-07 --at lev=850 -o seasons.png
  zonda view history.nc T U V --panels time=4 --index lev=0 -o panels.svg
  zonda view history.nc T --terminal=256 | less -R")]
pub(crate) struct Args {
    /// The picture, PNG or SVG by its extension
    #[arg(short = 'o', long = "output", value_name = "OUT.png|.svg")]
    output: Option<PathBuf>,

    /// Where along dimensions: the element nearest to a value of the coordinate variable, or the first one of a
    /// date such as 2004, 2004-07 or 2004-07-01T12. The index where there is no coordinate variable, and of times where
    /// the number has less than four digits. Several places along one dimension make a panel each
    #[arg(long, value_name = "DIM=VALUE,…", value_parser = at::values, allow_hyphen_values = true)]
    at: Vec<Places>,

    /// Index along dimensions, from 0; negative ones count from the end, -1 being the last
    #[arg(long, value_name = "DIM=INDEX,…", value_parser = at::indices, allow_hyphen_values = true)]
    index: Vec<Places>,

    /// A panel for each element along a dimension, or for N of them from the first to the last: 12 where there are more, 36 at most
    #[arg(long, value_name = "DIM[=N]", value_parser = at::panels)]
    panels: Option<Panels>,

    /// Numbers that the ends of the colours stand for
    #[arg(long, value_name = "LOW,HIGH", value_parser = range, allow_hyphen_values = true)]
    range: Option<(f64, f64)>,

    /// Colours with their middle at zero, for values of both signs
    #[arg(long)]
    diverging: bool,

    /// Takes the dimensions as axes, also where there are latitudes and longitudes of two dimensions (a curvilinear grid)
    #[arg(long)]
    dims: bool,

    /// Without coastlines, which are else drawn where the axes are longitude and latitude
    #[arg(long)]
    no_coasts: bool,

    /// Width of the picture in pixels
    #[arg(long, value_name = "PIXELS", default_value_t = 1200, requires = "output")]
    width: u32,

    /// Draws in text, also where the output is no terminal: in all colours (true), in 256, in shades without colours (plain), in ASCII.
    /// By itself what the terminal can show
    #[arg(long, visible_alias = "text", value_name = "KIND", conflicts_with = "output")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "auto", value_enum)]
    terminal: Option<Kind>,

    /// The file; `-` for standard input
    file: PathBuf,

    /// The variables; of a group by path, such as /ocean/temp
    #[arg(value_name = "VAR")]
    variables: Vec<String>,
}

/// `LOW,HIGH`
fn range(text: &str) -> std::result::Result<(f64, f64), String> {
    let ends = text
        .split_once(',')
        .and_then(|(low, high)| Some((low.trim().parse().ok()?, high.trim().parse().ok()?)));
    let is_range = |(low, high): &(f64, f64)| low < high && (high - low).is_finite();
    ends.filter(is_range).ok_or_else(|| "expected LOW,HIGH, such as -20,40".to_owned())
}

pub(crate) fn execute(args: &Args, out: &mut dyn Write) -> Result<ExitCode> {
    // The name of the picture is checked before anything is read, because a wrong name is a wrong
    // call.
    let format = args.output.as_deref().map(Format::of).transpose().map_err(wrong_call)?;
    let draws_text = args.terminal.is_some() || std::io::stdout().is_terminal();
    let has_colours = args.diverging || args.range.is_some();
    if has_colours && !args.variables.is_empty() && args.output.is_none() && !draws_text {
        let option = if args.diverging { "--diverging" } else { "--range" };
        let why = format!("{option} is about colours: it wants -o, --terminal or a terminal");
        return Err(CommandFailure::Usage(format!("{why}; see --help")));
    }
    zonda::report_gaps(crate::failure::warn);
    let file = input::open(&args.file)?;
    if args.variables.is_empty() {
        let wants_one = args.output.is_some()
            || args.terminal.is_some()
            || has_colours
            || args.panels.is_some()
            || !args.at.is_empty()
            || !args.index.is_empty();
        if wants_one {
            let why = "-o, --terminal, --at, --index, --panels, --range and --diverging want a variable; without them VAR may be left out";
            return Err(CommandFailure::Usage(format!("{why}; see --help")));
        }
        list::write(&file, out).map_err(|failure| failure.within(file.path()))?;
        file.close()?;
        return crate::done();
    }
    input::warn_of_missing(&file, &args.file)?;
    let look = Look {
        palette: if args.diverging { Palette::Diverging } else { Palette::Sequential },
        range: args.range,
        has_coasts: !args.no_coasts,
        width: args.width,
    };
    let label = input::label(&args.file);
    let mut charts = Vec::new();
    for (number, variable) in args.variables.iter().enumerate() {
        // One variable after the other, because memory is for the slices of one.
        let slices = read(&file, variable, args).map_err(|failure| failure.within(file.path()))?;
        warn(&slices, args, &label, variable);
        if args.output.is_some() {
            let look = Look { width: look.width_of_each(args.variables.len()), ..look };
            let chart = picture::chart(&slices, &look)?.map_err(|error| match error {
                zonda_plot::Error::Width { .. } => wrong_call(error),
                zonda_plot::Error::Empty => {
                    CommandFailure::at(&label, format!("{variable}: no values"))
                }
                other => CommandFailure::text(other.to_string()),
            })?;
            charts.push(chart);
            continue;
        }
        for (panel, slice) in slices.iter().enumerate() {
            if number + panel > 0 {
                writeln!(out)?;
            }
            slice.describe(out)?;
            if draws_text {
                let kind = args.terminal.unwrap_or(Kind::Auto);
                terminal::draw(slice, &look.over(&slices), kind, out)?;
            }
        }
    }
    file.close()?;
    if let (Some(output), Some(format)) = (&args.output, format) {
        let columns = look.charts_in_a_row(charts.len());
        let chart = zonda_plot::arrange(charts, columns);
        let chart = chart.map_err(|error| CommandFailure::text(error.to_string()))?;
        write_picture(output, &chart, format)?;
    }
    crate::done()
}

/// Says what has no effect, and which attributes were not used.
fn warn(slices: &[Slice], args: &Args, label: &Path, variable: &str) {
    let label = label.display();
    if args.diverging && slices.iter().all(|slice| matches!(slice.axes, ShownDims::One(_))) {
        eprintln!("zonda: {label}: {variable}: --diverging has no effect: a line has one colour");
    }
    for note in slices.first().iter().flat_map(|slice| &slice.notes) {
        eprintln!("zonda: {label}: {variable}: {note}");
    }
}

/// Reads what is asked for of a variable: a slice for each panel.
fn read(file: &Dataset, name: &str, args: &Args) -> Result<Vec<Slice>> {
    let variable = Variable::find(file, name)?;
    let grid = Grid::find(file, &variable)?;
    let places = [&args.at[..], &args.index[..]].concat();
    let mut chosen = at::find(file, &variable, grid.as_ref(), &places)?;
    if let Some(panels) = &args.panels {
        panels.choose(file, &variable, &mut chosen)?;
    }
    let each = at::combined(&variable, &chosen)?;
    // Maps beside each other are smaller.
    let most = MAP_ELEMS / if each.len() > 1 { 2 } else { 1 };
    let grid = grid.as_ref().filter(|_| !args.dims);
    each.iter().map(|at| Slice::read(file, &variable, grid, at, most)).collect()
}

fn wrong_call(error: zonda_plot::Error) -> CommandFailure {
    CommandFailure::Usage(format!("{error}; see --help"))
}

/// Makes the picture and writes it. If it cannot be made, no file is written.
pub(super) fn write_picture(path: &Path, chart: &Chart, format: Format) -> Result<()> {
    let bytes = chart.encode(format).map_err(|error| CommandFailure::at(path, error))?;
    zonda::storage::whole::write(path, &bytes).map_err(|error| CommandFailure::at(path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        assert_eq!(range("-20,40.5"), Ok((-20.0, 40.5)));
        for wrong in ["1", "1,1", "2,1", "a,b", "nan,1", "0,inf", ""] {
            assert!(range(wrong).is_err(), "{wrong}");
        }
    }
}
