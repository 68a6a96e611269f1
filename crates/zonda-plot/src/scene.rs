//! A chart as a list of shapes, before it becomes a picture. Charts know nothing of PNG and SVG, and
//! tests can ask where a label is.

use crate::colour::Colour;
use crate::text;

/// Which point of a text its position names, along the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A rectangle in pixels; y points down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rect {
    pub(crate) x0: f64,
    pub(crate) y0: f64,
    pub(crate) x1: f64,
    pub(crate) y1: f64,
}

impl Rect {
    pub(crate) fn width(&self) -> f64 {
        self.x1 - self.x0
    }

    pub(crate) fn height(&self) -> f64 {
        self.y1 - self.y0
    }
}

/// Some text on one line.
#[derive(Clone, Debug)]
pub(crate) struct Label {
    pub(crate) text: String,
    /// Position on the baseline.
    pub(crate) at: (f64, f64),
    /// Pixels per em.
    pub(crate) size: f64,
    pub(crate) colour: Colour,
    pub(crate) anchor: Anchor,
    /// Whether the line runs upwards instead of to the right.
    pub(crate) upwards: bool,
}

impl Label {
    /// The start of the baseline.
    pub(crate) fn start(&self) -> (f64, f64) {
        let width = text::width(&self.text, self.size);
        let back = match self.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => width / 2.0,
            Anchor::End => width,
        };
        let (x, y) = self.at;
        if self.upwards { (x, y + back) } else { (x - back, y) }
    }

    /// Where it is, from the top of capitals to the baseline.
    #[cfg(test)]
    pub(crate) fn bounds(&self) -> Rect {
        let (x, y) = self.start();
        let width = text::width(&self.text, self.size);
        let height = text::cap_height(self.size);
        if self.upwards {
            Rect { x0: x - height, y0: y - width, x1: x, y1: y }
        } else {
            Rect { x0: x, y0: y - height, x1: x + width, y1: y }
        }
    }
}

/// Pixels by number of a colour. A pixel of it is a pixel of the picture.
#[derive(Clone, Debug)]
pub(crate) struct Raster {
    /// Left and upper edge.
    pub(crate) at: (u32, u32),
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// At most 256 colours: red, green, blue, opacity.
    pub(crate) palette: Vec<[u8; 4]>,
    /// Row after row from the top.
    pub(crate) pixels: Vec<u8>,
}

/// What is drawn.
#[derive(Clone, Debug)]
pub(crate) enum SceneShape {
    Fill { rect: Rect, colour: Colour },
    Path { points: Vec<(f64, f64)>, colour: Colour, width: f64 },
    Label(Label),
    Raster(Raster),
}

/// A whole chart; later shapes lie over earlier ones, and texts over all.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) shapes: Vec<SceneShape>,
}

impl Scene {
    pub(crate) fn new(width: u32, height: u32) -> Scene {
        Scene { width, height, shapes: Vec::new() }
    }

    pub(crate) fn fill(&mut self, rect: Rect, colour: Colour) {
        self.shapes.push(SceneShape::Fill { rect, colour });
    }

    pub(crate) fn path(&mut self, points: Vec<(f64, f64)>, colour: Colour, width: f64) {
        self.shapes.push(SceneShape::Path { points, colour, width });
    }

    /// A line one pixel wide, on whole pixels so that it is sharp.
    pub(crate) fn vertical(&mut self, x: f64, y0: f64, y1: f64, colour: Colour) {
        let x0 = (x - 0.5).round();
        self.fill(Rect { x0, y0: y0.round(), x1: x0 + 1.0, y1: y1.round() }, colour);
    }

    /// A line one pixel wide, on whole pixels so that it is sharp.
    pub(crate) fn horizontal(&mut self, y: f64, x0: f64, x1: f64, colour: Colour) {
        let y0 = (y - 0.5).round();
        self.fill(Rect { x0: x0.round(), y0, x1: x1.round(), y1: y0 + 1.0 }, colour);
    }

    pub(crate) fn outline(&mut self, rect: Rect, colour: Colour) {
        let Rect { x0, y0, x1, y1 } = rect;
        self.vertical(x0, y0, y1, colour);
        self.vertical(x1, y0, y1 + 1.0, colour);
        self.horizontal(y0, x0, x1, colour);
        self.horizontal(y1, x0, x1, colour);
    }

    pub(crate) fn label(
        &mut self,
        text: impl Into<String>,
        at: (f64, f64),
        size: f64,
        colour: Colour,
        anchor: Anchor,
    ) {
        let text = text.into();
        self.shapes.push(SceneShape::Label(Label {
            text,
            at,
            size,
            colour,
            anchor,
            upwards: false,
        }));
    }

    /// A text in the middle of a vertical edge, running upwards.
    pub(crate) fn label_upwards(
        &mut self,
        text: impl Into<String>,
        at: (f64, f64),
        size: f64,
        colour: Colour,
    ) {
        let (text, anchor) = (text.into(), Anchor::Middle);
        self.shapes.push(SceneShape::Label(Label {
            text,
            at,
            size,
            colour,
            anchor,
            upwards: true,
        }));
    }

    /// Every text, for tests.
    #[cfg(test)]
    pub(crate) fn labels(&self) -> Vec<&Label> {
        let labels = self.shapes.iter();
        labels
            .filter_map(
                |shape| if let SceneShape::Label(label) = shape { Some(label) } else { None },
            )
            .collect()
    }

    /// Fails where two texts touch, or one leaves the picture.
    #[cfg(test)]
    pub(crate) fn assert_legible(&self) {
        let labels = self.labels();
        for (i, label) in labels.iter().enumerate() {
            let a = label.bounds();
            assert!(
                a.x0 >= 0.0
                    && a.y0 >= 0.0
                    && a.x1 <= f64::from(self.width)
                    && a.y1 <= f64::from(self.height),
                "`{}` leaves the picture: {a:?}",
                label.text
            );
            for other in &labels[..i] {
                let b = other.bounds();
                let apart = a.x1 + 2.0 < b.x0 || b.x1 + 2.0 < a.x0 || a.y1 < b.y0 || b.y1 < a.y0;
                assert!(apart, "`{}` {a:?} touches `{}` {b:?}", label.text, other.text);
            }
        }
    }
}
