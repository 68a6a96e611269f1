//! A finished chart, and the two kinds of picture it can become.

use std::path::Path;

use crate::error::{Error, Result};
use crate::scene::Scene;
use crate::{png, svg};

/// Kinds of picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Pixels, with the project's own font.
    Png,
    /// Lines and text, in the font of the viewer.
    Svg,
}

impl Format {
    /// The kind that the name of a picture stands for, by its extension in any case.
    ///
    /// # Errors
    /// [`Error::Name`] for other extensions and none.
    pub fn of(path: &Path) -> Result<Format> {
        let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
        match extension.to_str() {
            Some("png") => Ok(Format::Png),
            Some("svg") => Ok(Format::Svg),
            _ => Err(Error::Name { name: path.display().to_string() }),
        }
    }
}

/// A chart, ready to become a picture.
#[derive(Clone, Debug)]
pub struct Chart {
    pub(crate) scene: Scene,
}

impl Chart {
    /// Width and height in pixels.
    #[must_use]
    pub fn size(&self) -> (u32, u32) {
        (self.scene.width, self.scene.height)
    }

    /// The bytes of the picture: the same for the same chart, on every machine.
    ///
    /// # Errors
    /// [`Error::Draw`] and [`Error::Encode`], which are not expected.
    pub fn encode(&self, format: Format) -> Result<Vec<u8>> {
        match format {
            Format::Png => png::encode(&self.scene),
            Format::Svg => svg::encode(&self.scene).map(String::into_bytes),
        }
    }
}

/// The narrowest picture that has room for a chart.
const LEAST_WIDTH: u32 = 480;
/// The widest.
const MOST_WIDTH: u32 = 4800;

/// Refuses widths that no chart fits into.
pub(crate) fn check_width(width: u32) -> Result<()> {
    if (LEAST_WIDTH..=MOST_WIDTH).contains(&width) {
        return Ok(());
    }
    Err(Error::Width { width, least: LEAST_WIDTH, most: MOST_WIDTH })
}

/// Pixels of the drawing for one of the picture: positions are whole numbers there, and the PNG is
/// the mean of its pixels, which smooths edges.
pub(crate) const FINE: u32 = 2;

/// A position in fine pixels.
pub(crate) fn fine(at: f64) -> i32 {
    // Saturates far outside of the picture, which is cut off anyway.
    (at * f64::from(FINE)).round() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_by_name() {
        assert_eq!(Format::of(Path::new("a/b.png")).ok(), Some(Format::Png));
        assert_eq!(Format::of(Path::new("b.SVG")).ok(), Some(Format::Svg));
        for name in ["b.gif", "png", "", "b."] {
            assert!(Format::of(Path::new(name)).is_err(), "{name}");
        }
    }
}
