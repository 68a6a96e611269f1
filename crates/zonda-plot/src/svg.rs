//! Scenes as SVG: plotters writes shapes and texts, between them lie pictures of many pixels.

use std::fmt::Write as _;

use plotters::backend::{DrawingBackend, SVGBackend};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontFamily, FontStyle, FontTransform, IntoFont, RGBColor, TextStyle};

use crate::colour::Colour;
use crate::error::{Error, Result};
use crate::output::{FINE, fine};
use crate::png::{encode_raster, style};
use crate::scene::{Anchor, Label, Raster, Scene, SceneShape};
use crate::text;

pub(crate) fn encode(scene: &Scene) -> Result<String> {
    let Scene { width, height, .. } = scene;
    let mut svg = String::new();
    // plotters takes whole numbers as positions, so the drawing is larger than the picture.
    let _ = writeln!(
        svg,
        "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {} {}\" \
         xmlns=\"http://www.w3.org/2000/svg\">\n<rect width=\"100%\" height=\"100%\" fill=\"#FFFFFF\"/>",
        width * FINE,
        height * FINE
    );
    let (texts, drawn): (Vec<&SceneShape>, Vec<&SceneShape>) =
        scene.shapes.iter().partition(|shape| matches!(shape, SceneShape::Label(_)));
    for part in drawn.chunk_by(|a, b| is_raster(a) == is_raster(b)) {
        match part {
            [SceneShape::Raster(_), ..] => {
                for shape in part {
                    if let SceneShape::Raster(raster) = shape {
                        push_raster(&mut svg, raster)?;
                    }
                }
            }
            shapes => push_shapes(&mut svg, shapes)?,
        }
    }
    push_shapes(&mut svg, &texts)?;
    svg.push_str("</svg>\n");
    Ok(svg)
}

fn is_raster(shape: &SceneShape) -> bool {
    matches!(shape, SceneShape::Raster(_))
}

/// Lets plotters make a document of the shapes, and takes its contents.
fn push_shapes(svg: &mut String, shapes: &[&SceneShape]) -> Result<()> {
    let mut document = String::new();
    {
        let mut backend = SVGBackend::with_string(&mut document, (1, 1));
        for shape in shapes {
            draw(&mut backend, shape)?;
        }
        backend.present().map_err(|error| Error::Draw(error.into()))?;
    }
    let inside = document.split_once('\n').map_or("", |(_, inside)| inside);
    svg.push_str(inside.strip_suffix("</svg>\n").unwrap_or(inside));
    Ok(())
}

fn draw(backend: &mut SVGBackend<'_>, shape: &SceneShape) -> Result<()> {
    let drawn = match shape {
        SceneShape::Fill { rect, colour } => backend.draw_rect(
            (fine(rect.x0), fine(rect.y0)),
            (fine(rect.x1), fine(rect.y1)),
            &style(*colour, 1.0),
            true,
        ),
        SceneShape::Path { points, colour, width } => {
            let points = points.iter().map(|&(x, y)| (fine(x), fine(y)));
            backend.draw_path(points, &style(*colour, *width))
        }
        SceneShape::Label(label) => return draw_label(backend, label),
        SceneShape::Raster(_) => Ok(()),
    };
    drawn.map_err(|error| Error::Draw(error.into()))
}

fn draw_label(backend: &mut SVGBackend<'_>, label: &Label) -> Result<()> {
    let size = label.size * f64::from(FINE);
    // plotters' size is that of a line: it writes this divided by 1.24 as the size of the font.
    let font = (FontFamily::Name(text::FAMILY), size * 1.24, FontStyle::Normal).into_font();
    let turned = if label.upwards { FontTransform::Rotate270 } else { FontTransform::None };
    let h_pos = match label.anchor {
        Anchor::Start => HPos::Left,
        Anchor::Middle => HPos::Center,
        Anchor::End => HPos::Right,
    };
    let Colour(r, g, b) = label.colour;
    let colour = RGBColor(r, g, b);
    let style =
        TextStyle::from(font.transform(turned)).pos(Pos::new(h_pos, VPos::Top)).color(&colour);
    // It sets the baseline 0.76 em below the position.
    let down = 0.76 * label.size;
    let (x, y) = label.at;
    let (x, y) = if label.upwards { (x - down, y) } else { (x, y - down) };
    let drawn = backend.draw_text(&label.text, &style, (fine(x), fine(y)));
    drawn.map_err(|error| Error::Draw(error.into()))
}

fn push_raster(svg: &mut String, raster: &Raster) -> Result<()> {
    let _ = write!(
        svg,
        "<image x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" \
         style=\"image-rendering:pixelated\" href=\"data:image/png;base64,",
        raster.at.0 * FINE,
        raster.at.1 * FINE,
        raster.width * FINE,
        raster.height * FINE
    );
    push_base64(svg, &encode_raster(raster)?);
    svg.push_str("\"/>\n");
    Ok(())
}

/// RFC 4648, section 4.
fn push_base64(out: &mut String, bytes: &[u8]) {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for three in bytes.chunks(3) {
        let byte = |i: usize| u32::from(three.get(i).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * i) & 63) as usize];
            out.push(if i <= three.len() { char::from(letter) } else { '=' });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_the_rfc() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            let mut out = String::new();
            push_base64(&mut out, bytes.as_bytes());
            assert_eq!(out, text);
        }
    }
}
