//! The one font, which is part of the program: how wide a text is, and which pixels it covers.
//!
//! DejaVu Sans, a part of its characters (fonts/subset.sh); what is missing shows as a box.

use std::sync::LazyLock;

use ab_glyph::{Font, FontRef, PxScale, ScaleFont};

/// The font's name in SVG, followed by similar fonts.
pub(crate) const FAMILY: &str = "DejaVu Sans, Verdana, sans-serif";

static FONT: LazyLock<FontRef<'static>> = LazyLock::new(|| {
    FontRef::try_from_slice(include_bytes!("../fonts/DejaVuSans-subset.ttf"))
        .expect("the font is part of the program, and a test reads it")
});

/// The scale at which an em is `size` pixels.
fn scale(size: f64) -> PxScale {
    let units_per_em = FONT.units_per_em().unwrap_or(2048.0);
    PxScale::from(size as f32 * FONT.height_unscaled() / units_per_em)
}

/// Pixels from the start of a text to its end, at `size` pixels per em.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let font = FONT.as_scaled(scale(size));
    let mut width = 0.0;
    let mut last = None;
    for letter in text.chars() {
        let glyph = font.glyph_id(letter);
        width += last.map_or(0.0, |last| font.kern(last, glyph)) + font.h_advance(glyph);
        last = Some(glyph);
    }
    f64::from(width)
}

/// Pixels from the baseline to the top of capitals and digits.
pub(crate) fn cap_height(size: f64) -> f64 {
    size * 0.73
}

/// A text cut to `room` pixels, with `…` if something is missing.
pub(crate) fn cut(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let mut cut = text.to_owned();
    while cut.pop().is_some() {
        let shown = format!("{}…", cut.trim_end());
        if width(&shown, size) <= room {
            return shown;
        }
    }
    String::new()
}

/// The same for the title of an axis, whose unit stays: `temperature of the sea… (K)`.
pub(crate) fn cut_title(title: &str, size: f64, room: f64) -> String {
    let whole = width(title, size) <= room;
    let end = title.rfind(" (").or_else(|| title.rfind(", ")).filter(|_| !whole);
    let Some((name, unit)) = end.and_then(|end| title.split_at_checked(end)) else {
        return cut(title, size, room);
    };
    match cut(name, size, room - width(unit, size)) {
        name if name.is_empty() => cut(title, size, room),
        name => format!("{name}{unit}"),
    }
}

/// Calls `put` with each pixel that a text covers and how much of it, 0 to 1. Positions are relative
/// to the start of the baseline; y points down.
pub(crate) fn cover(text: &str, size: f64, mut put: impl FnMut(i32, i32, f32)) {
    let scale = scale(size);
    let font = FONT.as_scaled(scale);
    let mut x = 0.0;
    let mut last = None;
    for letter in text.chars() {
        let id = font.glyph_id(letter);
        x += last.map_or(0.0, |last| font.kern(last, id));
        let glyph = id.with_scale_and_position(scale, ab_glyph::point(x, 0.0));
        if let Some(outline) = FONT.outline_glyph(glyph) {
            let corner = outline.px_bounds().min;
            // px_bounds returns whole numbers.
            let (left, top) = (corner.x as i32, corner.y as i32);
            outline.draw(|dx, dy, share| {
                let (dx, dy) = (i32::try_from(dx).unwrap_or(0), i32::try_from(dy).unwrap_or(0));
                put(left + dx, top + dy, share.clamp(0.0, 1.0));
            });
        }
        x += font.h_advance(id);
        last = Some(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_units_are_there() {
        let missing = FONT.glyph_id('\u{4e00}');
        for letter in "azAZ09 °²³⁻⁰⁹µ%−×·äøñŁЖΩ".chars() {
            assert_ne!(FONT.glyph_id(letter), missing, "{letter}");
        }
    }

    #[test]
    fn units_stay_when_titles_are_cut() {
        let title = "temperature of the air at the surface (K)";
        let cut = |title, room| cut_title(title, 18.0, room);
        assert_eq!(cut(title, 1000.0), title);
        let short = cut(title, 200.0);
        assert!(short.starts_with("temper") && short.ends_with("… (K)"), "{short}");
        assert!(width(&short, 18.0) <= 200.0);
        assert!(cut("seconds since the beginning, 2013", 200.0).ends_with("…, 2013"));
        assert!(cut("no unit in this title", 100.0).ends_with('…'));
        assert_eq!(cut(title, 1.0), "");
    }

    #[test]
    fn width_is_what_is_covered() {
        let mut right = 0;
        let mut top = 0;
        cover("Hello", 100.0, |x, y, share| {
            if share > 0.5 {
                right = right.max(x);
                top = top.min(y);
            }
        });
        let width = width("Hello", 100.0);
        assert!((f64::from(right) - width).abs() < 10.0, "{right} and {width}");
        assert!((f64::from(-top) - cap_height(100.0)).abs() < 5.0, "{top}");
    }
}
