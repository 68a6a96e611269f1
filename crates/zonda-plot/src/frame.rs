//! The rectangle that data is drawn in, and its axes.

use crate::axis::{Axis, Spacing, Ticks};
use crate::colour::Colour;
use crate::scene::{Anchor, Rect, Scene};
use crate::text;

/// Pixels per em.
pub(crate) const TITLE: f64 = 25.0;
pub(crate) const SUBTITLE: f64 = 18.0;
pub(crate) const AXIS: f64 = 18.0;
pub(crate) const TICK: f64 = 17.0;

/// Around the picture.
pub(crate) const MARGIN: f64 = 20.0;
const TICK_LEN: f64 = 7.0;
/// Between a tick and its label, and a label and the title of the axis.
const GAP: f64 = 6.0;
/// Between labels side by side, at least.
const BETWEEN: f64 = 22.0;
/// Height that a label of a vertical axis takes, with what keeps it apart from the next.
const TICK_PITCH: f64 = 46.0;

/// An axis with its range.
#[derive(Clone, Debug)]
pub(crate) struct Ranged<'a> {
    pub(crate) axis: &'a Axis,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Ranged<'_> {
    /// Share of the way along the axis, 0 at its left or lower end.
    pub(crate) fn share(&self, number: f64) -> f64 {
        let share = match self.axis.spacing {
            Spacing::Linear => (number - self.low) / (self.high - self.low),
            Spacing::Log => (number / self.low).ln() / (self.high / self.low).ln(),
        };
        if self.axis.reversed { 1.0 - share } else { share }
    }

    /// The number at a share of the way.
    pub(crate) fn at(&self, share: f64) -> f64 {
        let share = if self.axis.reversed { 1.0 - share } else { share };
        match self.axis.spacing {
            Spacing::Linear => self.low + (self.high - self.low) * share,
            Spacing::Log => self.low * (self.high / self.low).powf(share),
        }
    }

    /// Ticks that fit in a height.
    pub(crate) fn ticks_of_height(&self, pixels: f64) -> Ticks {
        self.axis.ticks(self.low, self.high, (pixels / TICK_PITCH) as usize)
    }

    /// Ticks that fit in a width, by the widths of their labels.
    pub(crate) fn ticks_of_width(&self, pixels: f64) -> Ticks {
        let mut most = 12;
        loop {
            let ticks = self.axis.ticks(self.low, self.high, most);
            let mut ends: Vec<(f64, f64)> = ticks
                .at
                .iter()
                .map(|(number, label)| {
                    let half = text::width(label, TICK) / 2.0;
                    let at = self.share(*number) * pixels;
                    (at - half, at + half)
                })
                .collect();
            ends.sort_by(|a, b| a.0.total_cmp(&b.0));
            if most <= 2 || ends.windows(2).all(|pair| pair[1].0 - pair[0].1 >= BETWEEN) {
                return ticks;
            }
            most -= 1;
        }
    }
}

/// Room to the left of a vertical axis.
pub(crate) fn left_room(ticks: &Ticks, title: &str) -> f64 {
    let title = if title.is_empty() { 0.0 } else { AXIS + GAP };
    widest(ticks) + TICK_LEN + GAP + title
}

/// Room below a horizontal axis.
pub(crate) fn lower_room(title: &str) -> f64 {
    let title = if title.is_empty() { 0.0 } else { AXIS + GAP };
    TICK_LEN + GAP + TICK + title
}

/// Width of the widest label.
pub(crate) fn widest(ticks: &Ticks) -> f64 {
    ticks.at.iter().map(|(_, label)| text::width(label, TICK)).fold(0.0, f64::max)
}

/// The lines at the ticks, which lie under the data.
pub(crate) fn grid(
    scene: &mut Scene,
    rect: Rect,
    (x, x_ticks): (&Ranged<'_>, &Ticks),
    (y, y_ticks): (&Ranged<'_>, &Ticks),
) {
    for (number, _) in &x_ticks.at {
        let at = rect.x0 + x.share(*number) * rect.width();
        scene.vertical(at, rect.y0, rect.y1, Colour::GRID);
    }
    for (number, _) in &y_ticks.at {
        let at = rect.y1 - y.share(*number) * rect.height();
        scene.horizontal(at, rect.x0, rect.x1, Colour::GRID);
    }
}

/// Frame, ticks and their labels, titles of the axes.
pub(crate) fn axes(
    scene: &mut Scene,
    rect: Rect,
    (x, x_ticks): (&Ranged<'_>, &Ticks),
    (y, y_ticks): (&Ranged<'_>, &Ticks),
) {
    scene.outline(rect, Colour::INK);
    for (number, label) in &x_ticks.at {
        let at = rect.x0 + x.share(*number) * rect.width();
        scene.vertical(at, rect.y1, rect.y1 + TICK_LEN, Colour::INK);
        let baseline = rect.y1 + TICK_LEN + GAP + text::cap_height(TICK);
        scene.label(label, (at, baseline), TICK, Colour::INK, Anchor::Middle);
    }
    for (number, label) in &y_ticks.at {
        let at = rect.y1 - y.share(*number) * rect.height();
        scene.horizontal(at, rect.x0 - TICK_LEN, rect.x0, Colour::INK);
        let baseline = at + text::cap_height(TICK) / 2.0;
        scene.label(label, (rect.x0 - TICK_LEN - GAP, baseline), TICK, Colour::INK, Anchor::End);
    }
    let title = x.axis.full_title(x_ticks);
    if !title.is_empty() {
        let title = text::cut_title(&title, AXIS, rect.width());
        let middle = f64::midpoint(rect.x0, rect.x1);
        let baseline = rect.y1 + lower_room(&title) - 2.0;
        scene.label(title, (middle, baseline), AXIS, Colour::INK, Anchor::Middle);
    }
    let title = y.axis.full_title(y_ticks);
    if !title.is_empty() {
        let baseline = rect.x0 - left_room(y_ticks, &title) + text::cap_height(AXIS);
        let title = text::cut_title(&title, AXIS, rect.height());
        let middle = f64::midpoint(rect.y0, rect.y1);
        scene.label_upwards(title, (baseline, middle), AXIS, Colour::INK);
    }
}

/// Draws title and subtitle at the top, cut if they are too long, and returns where the chart may
/// begin.
pub(crate) fn titles(scene: &mut Scene, title: &str, subtitle: &str) -> f64 {
    let room = f64::from(scene.width) - 2.0 * MARGIN;
    let mut y = MARGIN;
    for (line, size, colour) in [(title, TITLE, Colour::INK), (subtitle, SUBTITLE, Colour::FAINT)] {
        if line.is_empty() {
            continue;
        }
        y += text::cap_height(size);
        scene.label(text::cut(line, size, room), (MARGIN, y), size, colour, Anchor::Start);
        y += size * 0.5;
    }
    y + 8.0
}
