//! A mask and a scale, done to values that were read: as NumPy does it, in one pass.

/// What is done to floating-point values, in this order. Its numbers are exactly those that NumPy would calculate with in the type of
/// the values: who makes one sees to that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decoding {
    /// Values that equal it become NaN.
    pub(crate) fill: Option<f64>,
    /// A factor.
    pub(crate) scale: Option<f64>,
    /// What is added then.
    pub(crate) offset: Option<f64>,
}

/// A type of floating-point numbers.
trait Real: Copy + PartialEq + std::ops::Mul<Output = Self> + std::ops::Add<Output = Self> {
    const NAN: Self;

    fn of(number: f64) -> Self;

    /// Replaces each of the values that lie in `bytes`, in native byte order.
    fn each(bytes: &mut [u8], f: impl Fn(Self) -> Self);
}

macro_rules! real {
    ($real:ty) => {
        impl Real for $real {
            const NAN: Self = <$real>::NAN;

            #[allow(clippy::cast_possible_truncation, reason = "the number is one of this type")]
            fn of(number: f64) -> Self {
                number as $real
            }

            #[inline(always)]
            fn each(bytes: &mut [u8], f: impl Fn(Self) -> Self) {
                for value in bytes.as_chunks_mut().0 {
                    *value = f(<$real>::from_ne_bytes(*value)).to_ne_bytes();
                }
            }
        }
    };
}

real!(f32);
real!(f64);

impl Decoding {
    /// Decodes values that lie in `bytes`, in native byte order, each of `elem` bytes: 4 or 8.
    pub(crate) fn apply(&self, elem: usize, bytes: &mut [u8]) {
        if elem == size_of::<f32>() {
            self.apply_to::<f32>(bytes);
        } else {
            self.apply_to::<f64>(bytes);
        }
    }

    fn apply_to<R: Real>(&self, bytes: &mut [u8]) {
        // A loop for each: what is not asked for must change nothing, not even the sign of a zero.
        match (self.scale.map(R::of), self.offset.map(R::of)) {
            (None, None) => self.masked::<R>(bytes, |value| value),
            (Some(scale), None) => self.masked::<R>(bytes, |value| value * scale),
            (None, Some(offset)) => self.masked::<R>(bytes, |value| value + offset),
            (Some(scale), Some(offset)) => self.masked::<R>(bytes, |value| value * scale + offset),
        }
    }

    #[inline(always)]
    fn masked<R: Real>(&self, bytes: &mut [u8], scaled: impl Fn(R) -> R) {
        match self.fill.map(R::of) {
            None => R::each(bytes, scaled),
            Some(fill) => {
                R::each(bytes, |value| if value == fill { R::NAN } else { scaled(value) });
            }
        }
    }
}
