//! Scenes as PNG: plotters draws the shapes at twice the size, which is averaged; texts are set on
//! the result from the program's own font, so that the machine's fonts play no part.

use plotters::backend::{BitMapBackend, DrawingBackend};
use plotters::style::{RGBColor, ShapeStyle};

use crate::colour::Colour;
use crate::error::{Error, Result};
use crate::output::{FINE, fine};
use crate::scene::{Label, Raster, Scene, SceneShape};
use crate::text;

const BYTES_PER_PIXEL: usize = 3;

pub(crate) fn encode(scene: &Scene) -> Result<Vec<u8>> {
    let mut canvas = Canvas::new(scene.width * FINE, scene.height * FINE);
    for shape in &scene.shapes {
        match shape {
            SceneShape::Raster(raster) => canvas.raster(raster),
            SceneShape::Label(_) => {}
            drawn => canvas.draw(drawn)?,
        }
    }
    let mut picture = canvas.averaged();
    for shape in &scene.shapes {
        if let SceneShape::Label(label) = shape {
            picture.label(label);
        }
    }
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, picture.width, picture.height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&picture.pixels)?;
    writer.finish()?;
    Ok(bytes)
}

/// Colours row after row, three bytes each.
struct Canvas {
    width: u32,
    height: u32,
    pixels: Vec<u8>,
}

impl Canvas {
    fn new(width: u32, height: u32) -> Canvas {
        let bytes = width as usize * height as usize * BYTES_PER_PIXEL;
        Canvas { width, height, pixels: vec![255; bytes] }
    }

    fn draw(&mut self, shape: &SceneShape) -> Result<()> {
        let mut backend = BitMapBackend::with_buffer(&mut self.pixels, (self.width, self.height));
        let drawn = match shape {
            SceneShape::Fill { rect, colour } => backend.draw_rect(
                (fine(rect.x0), fine(rect.y0)),
                (fine(rect.x1), fine(rect.y1)),
                &style(*colour, 1.0),
                true,
            ),
            SceneShape::Path { points, colour, width } => {
                // One step after the other: plotters' corners of thick lines reach as far as the angle is sharp.
                let fine_points =
                    |pair: &[(f64, f64)]| [pair[0], pair[1]].map(|(x, y)| (fine(x), fine(y)));
                let style = style(*colour, *width);
                points.windows(2).try_for_each(|pair| backend.draw_path(fine_points(pair), &style))
            }
            SceneShape::Raster(_) | SceneShape::Label(_) => Ok(()),
        };
        drawn.map_err(|error| Error::Draw(error.into()))
    }

    fn raster(&mut self, raster: &Raster) {
        for (number, &index) in raster.pixels.iter().enumerate() {
            let Some(&[r, g, b, opacity]) = raster.palette.get(usize::from(index)) else {
                continue;
            };
            let share = f32::from(opacity) / 255.0;
            if share == 0.0 {
                continue;
            }
            let column = (number % raster.width as usize) as u32 + raster.at.0;
            let row = (number / raster.width as usize) as u32 + raster.at.1;
            for (dx, dy) in (0..FINE).flat_map(|dy| (0..FINE).map(move |dx| (dx, dy))) {
                self.blend(column * FINE + dx, row * FINE + dy, Colour(r, g, b), share);
            }
        }
    }

    fn label(&mut self, label: &Label) {
        let (x, y) = label.start();
        let (x, y) = (x.round() as i32, y.round() as i32);
        text::cover(&label.text, label.size, |along, down, share| {
            // Upwards, what was right is up and what was down is right.
            let (column, row) =
                if label.upwards { (x + down, y - along - 1) } else { (x + along, y + down) };
            if let (Ok(column), Ok(row)) = (u32::try_from(column), u32::try_from(row)) {
                self.blend(column, row, label.colour, share);
            }
        });
    }

    fn blend(&mut self, column: u32, row: u32, colour: Colour, share: f32) {
        if column >= self.width || row >= self.height {
            return;
        }
        let at = (row as usize * self.width as usize + column as usize) * BYTES_PER_PIXEL;
        if let Some([r, g, b]) = self.pixels.get_mut(at..at + BYTES_PER_PIXEL) {
            let Colour(red, green, blue) = Colour(*r, *g, *b).mix(colour, f64::from(share));
            (*r, *g, *b) = (red, green, blue);
        }
    }

    /// The picture: each pixel the mean of those drawn for it.
    fn averaged(&self) -> Canvas {
        let mut picture = Canvas::new(self.width / FINE, self.height / FINE);
        let fine_row = self.width as usize * BYTES_PER_PIXEL;
        let n = FINE as usize;
        let columns = picture.width as usize;
        for (number, pixel) in picture.pixels.chunks_exact_mut(BYTES_PER_PIXEL).enumerate() {
            let (column, row) = (number % columns * n, number / columns * n);
            for (part, out) in pixel.iter_mut().enumerate() {
                let at = |dx, dy| (row + dy) * fine_row + (column + dx) * BYTES_PER_PIXEL + part;
                let sum: u32 = (0..n * n).map(|i| u32::from(self.pixels[at(i % n, i / n)])).sum();
                // A mean of bytes.
                *out = ((sum + FINE * FINE / 2) / (FINE * FINE)) as u8;
            }
        }
        picture
    }
}

/// A style of plotters, for fine pixels.
pub(crate) fn style(colour: Colour, width: f64) -> ShapeStyle {
    let Colour(r, g, b) = colour;
    let stroke_width = u32::try_from(fine(width)).unwrap_or(1).max(1);
    ShapeStyle { color: RGBColor(r, g, b).into(), filled: true, stroke_width }
}

/// Pixels by number of a colour as a PNG of their own, for pictures that embed it.
pub(crate) fn encode_raster(raster: &Raster) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, raster.width, raster.height);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_palette(raster.palette.iter().flat_map(|c| [c[0], c[1], c[2]]).collect::<Vec<_>>());
    encoder.set_trns(raster.palette.iter().map(|c| c[3]).collect::<Vec<_>>());
    encoder.set_compression(png::Compression::High);
    // After the above, which chooses one. Numbers of colours have no differences worth storing.
    encoder.set_filter(png::Filter::NoFilter);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&raster.pixels)?;
    writer.finish()?;
    Ok(bytes)
}
