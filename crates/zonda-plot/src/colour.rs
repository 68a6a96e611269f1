//! Colours, and palettes that stand for numbers.

/// Red, green and blue, 0 to 255.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(pub u8, pub u8, pub u8);

impl Colour {
    /// Text, frames.
    pub(crate) const INK: Colour = Colour(38, 38, 38);
    /// Less important text: subtitles.
    pub(crate) const FAINT: Colour = Colour(96, 96, 96);
    pub(crate) const GRID: Colour = Colour(226, 226, 226);
    /// Cells without a value.
    pub const MISSING: Colour = Colour(176, 176, 176);
    /// What nothing is drawn on.
    pub(crate) const PAPER: Colour = Colour(255, 255, 255);
    /// Coastlines, and the edges that keep them apart from what they lie on.
    pub(crate) const COAST: Colour = Colour(20, 20, 20);
    pub(crate) const COAST_EDGE: Colour = Colour(235, 235, 235);
    /// Reads, where reads and writes are told apart.
    pub const READ: Colour = Colour(0, 114, 178);
    /// Writes, where reads and writes are told apart.
    pub const WRITE: Colour = Colour(213, 94, 0);

    const fn hex(rgb: u32) -> Colour {
        let [_, r, g, b] = rgb.to_be_bytes();
        Colour(r, g, b)
    }

    /// Between this colour (0) and another (1).
    pub(crate) fn mix(self, other: Colour, share: f64) -> Colour {
        let part = |a: u8, b: u8| {
            let value = f64::from(a) + (f64::from(b) - f64::from(a)) * share;
            // The result lies between two bytes, so it is a byte.
            value.round() as u8
        };
        Colour(part(self.0, other.0), part(self.1, other.1), part(self.2, other.2))
    }

    /// The colour of curve number `index` of so many: where they are more than can be told apart, they go from dark to light.
    pub(crate) fn of_curves(index: usize, n_curves: usize) -> Colour {
        if n_curves <= N_CURVES {
            return Colour::of_curve(index);
        }
        // The lightest are too light for a line.
        Palette::Sequential.at(index as f64 / (n_curves - 1) as f64 * 0.92)
    }

    /// The colour of curve number `index`: told apart by most colour-blind people (Okabe and Ito).
    pub(crate) fn of_curve(index: usize) -> Colour {
        const CURVES: [Colour; N_CURVES] = [
            Colour::READ,
            Colour::WRITE,
            Colour::hex(0x00_9e73),
            Colour::hex(0xcc_79a7),
            Colour::hex(0xe6_9f00),
            Colour::hex(0x56_b4e9),
            Colour::hex(0x00_0000),
        ];
        CURVES[index % CURVES.len()]
    }
}

/// How many curves can be told apart by their colours alone.
const N_CURVES: usize = 7;

/// Colours in the order of the numbers they stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Palette {
    /// From dark to light, perceptually uniform: viridis.
    #[default]
    Sequential,
    /// Blue, white at zero, red (RdBu of ColorBrewer).
    Diverging,
}

/// Matplotlib's viridis at equal steps.
const VIRIDIS: [Colour; 11] = [
    Colour::hex(0x44_0154),
    Colour::hex(0x48_2475),
    Colour::hex(0x41_4487),
    Colour::hex(0x35_5f8d),
    Colour::hex(0x2a_788e),
    Colour::hex(0x21_918c),
    Colour::hex(0x22_a884),
    Colour::hex(0x44_bf70),
    Colour::hex(0x7a_d151),
    Colour::hex(0xbd_df26),
    Colour::hex(0xfd_e725),
];

/// ColorBrewer's RdBu of eleven colours, from blue to red.
const RED_BLUE: [Colour; 11] = [
    Colour::hex(0x05_3061),
    Colour::hex(0x21_66ac),
    Colour::hex(0x43_93c3),
    Colour::hex(0x92_c5de),
    Colour::hex(0xd1_e5f0),
    Colour::hex(0xf7_f7f7),
    Colour::hex(0xfd_dbc7),
    Colour::hex(0xf4_a582),
    Colour::hex(0xd6_604d),
    Colour::hex(0xb2_182b),
    Colour::hex(0x67_001f),
];

impl Palette {
    /// The colour at `share` of the way, which is limited to 0 to 1.
    #[must_use]
    pub fn at(self, share: f64) -> Colour {
        let stops = match self {
            Palette::Sequential => &VIRIDIS,
            Palette::Diverging => &RED_BLUE,
        };
        let place = share.clamp(0.0, 1.0) * (stops.len() - 1) as f64;
        let below = (place.floor() as usize).min(stops.len() - 2);
        stops[below].mix(stops[below + 1], place - below as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn palettes_end_where_they_should() {
        assert_eq!(Palette::Sequential.at(0.0), Colour(0x44, 0x01, 0x54));
        assert_eq!(Palette::Sequential.at(7.0), Colour(0xfd, 0xe7, 0x25));
        assert_eq!(Palette::Diverging.at(0.5), Colour(0xf7, 0xf7, 0xf7));
        assert_eq!(Palette::Diverging.at(-1.0), Colour(0x05, 0x30, 0x61));
    }

    #[test]
    fn many_curves_have_many_colours() {
        for n in [1, 7, 8, 12, 36] {
            let mut seen: Vec<Colour> = (0..n).map(|index| Colour::of_curves(index, n)).collect();
            seen.dedup();
            seen.sort_by_key(|colour| (colour.0, colour.1, colour.2));
            seen.dedup();
            assert_eq!(seen.len(), n);
        }
    }

    /// Lightness rises all along, so that order is seen without knowing the colours.
    #[test]
    fn sequential_gets_lighter() {
        let light = |share| {
            let Colour(r, g, b) = Palette::Sequential.at(share);
            let linear = |c: u8| (f64::from(c) / 255.0).powf(2.2);
            0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
        };
        for i in 1..=100 {
            let (before, after) = (f64::from(i - 1) / 100.0, f64::from(i) / 100.0);
            assert!(light(after) > light(before), "at {after}");
        }
    }
}
