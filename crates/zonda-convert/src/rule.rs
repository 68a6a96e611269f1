//! The conversion rules in branch-free form, as the block kernels use them.
//!
//! `generic` says the same things plainly, one element at a time, and is the reference that these
//! are tested against. Here every rule is compares and selects, so that a loop over it vectorises.

#![allow(
    clippy::manual_range_contains,
    reason = "`contains` is short-circuiting, and false for NaN where these comparisons are not"
)]

/// Reading: external number to memory number.
pub(crate) struct ReadRule;

/// Writing: memory number to external number.
pub(crate) struct WriteRule;

/// Reading and writing in netCDF-4: only the pairs that differ from [`ReadRule`] and [`WriteRule`].
pub(crate) struct CastRule;

/// The rule of one pair of types in one direction.
pub(crate) trait ConversionRule<F, T> {
    /// Whether any value of `F` fails to fit `T`.
    const CHECKED: bool;
    /// Whether an element that does not fit leaves its destination as it was.
    const KEEPS: bool;

    /// The converted value, and whether it fits. The value is meaningless if it does not fit and
    /// `KEEPS` is set.
    fn apply(x: F) -> (T, bool);
}

/// Whether `x` lies in the range of `$t`, compared in the source type so that lanes stay narrow.
macro_rules! int_fits {
    ($x:expr, $f:ty, $t:ty) => {{
        const LO: $f = {
            let (a, b) = (<$f>::MIN as i128, <$t>::MIN as i128);
            (if a > b { a } else { b }) as $f
        };
        const HI: $f = {
            let (a, b) = (<$f>::MAX as i128, <$t>::MAX as i128);
            (if a < b { a } else { b }) as $f
        };
        ($x >= LO) & ($x <= HI)
    }};
}

macro_rules! int_to_int {
    ($dir:ty, $f:ty => $($t:ty)*) => {$(
        impl ConversionRule<$f, $t> for $dir {
            const CHECKED: bool = (<$f>::MIN as i128) < (<$t>::MIN as i128)
                || (<$f>::MAX as i128) > (<$t>::MAX as i128);
            const KEEPS: bool = false;

            #[inline(always)]
            #[allow(clippy::cast_lossless, unused_comparisons, clippy::absurd_extreme_comparisons)]
            fn apply(x: $f) -> ($t, bool) {
                (x as $t, int_fits!(x, $f, $t))
            }
        }
    )*};
}

macro_rules! int_to_float {
    ($dir:ty, $f:ty => $($t:ty)*) => {$(
        impl ConversionRule<$f, $t> for $dir {
            const CHECKED: bool = false;
            const KEEPS: bool = false;

            #[inline(always)]
            fn apply(x: $f) -> ($t, bool) {
                (x as $t, true)
            }
        }
    )*};
}

macro_rules! from_ints {
    ($($f:ty)*) => {$(
        int_to_int!(ReadRule, $f => i8 u8 i16 u16 i32 u32 i64 u64);
        int_to_float!(ReadRule, $f => f32 f64);
        int_to_float!(WriteRule, $f => f32 f64);
    )*};
}

from_ints!(i8 u8 i16 u16 i32 u32 i64 u64);
int_to_int!(CastRule, i8 => u32);
int_to_int!(WriteRule, i8 => i8 u8 i16 u16 i32 i64 u64);
int_to_int!(WriteRule, u8 => i8 u8 i16 u16 i32 u32 i64 u64);
int_to_int!(WriteRule, i16 => i8 u8 i16 u16 i32 u32 i64 u64);
int_to_int!(WriteRule, u16 => i8 u8 i16 u16 i32 u32 i64 u64);
int_to_int!(WriteRule, i32 => i8 u8 i16 u16 i32 u32 i64 u64);
int_to_int!(WriteRule, u32 => i8 u8 i16 u16 i32 u32 i64 u64);
int_to_int!(WriteRule, i64 => i8 u8 i16 u16 i32 u32 i64 u64);
int_to_int!(WriteRule, u64 => i8 u8 i16 u16 i32 u32 i64 u64);

/// The reference's one integer pair that leaves the file alone when the value does not fit.
impl ConversionRule<i8, u32> for WriteRule {
    const CHECKED: bool = true;
    const KEEPS: bool = true;

    #[inline(always)]
    fn apply(x: i8) -> (u32, bool) {
        (x as u32, x >= 0)
    }
}

/// 2^31, 2^32, 2^63 and 2^64: the first values beyond the integer types.
macro_rules! beyond {
    (i32) => {
        2_147_483_648.0
    };
    (u32) => {
        4_294_967_296.0
    };
    (i64) => {
        9_223_372_036_854_775_808.0
    };
    (u64) => {
        18_446_744_073_709_551_616.0
    };
}

/// Reading a float as an integer: kept when outside, truncated inside. NaN counts as inside and
/// gives `$else`, as do the 2^63 and 2^64 that the reference's comparison lets through.
/// `$via` is the type converted through, which holds `$lo`.
macro_rules! get_float_to_int {
    ($($f:ty => $t:ty, $lo:expr, $hi:expr, $via:tt, $else:expr;)*) => {$(
        impl ConversionRule<$f, $t> for ReadRule {
            const CHECKED: bool = true;
            const KEEPS: bool = true;

            #[inline(always)]
            fn apply(x: $f) -> ($t, bool) {
                let holds = (x >= $lo) & (x < beyond!($via));
                let safe = if holds { x } else { 0.0 };
                // SAFETY: `safe` is 0, or from `$lo`, which `$via` holds, to below the first value
                // that it does not.
                let truncated = unsafe { safe.to_int_unchecked::<$via>() } as $t;
                let value = if holds { truncated } else { $else(x) };
                (value, !((x > $hi) | (x < $lo)))
            }
        }
    )*};
}

get_float_to_int! {
    f32 => i8, -128.0, 127.0, i32, |_| 0;
    f32 => u8, 0.0, 255.0, i32, |_| 0;
    f32 => i16, -32768.0, 32767.0, i32, |_| 0;
    f32 => u16, 0.0, 65535.0, i32, |_| 0;
    // The bounds of the 32-bit types are the nearest f32 inside: 2^31 - 128 and 2^32 - 256.
    f32 => i32, -beyond!(i32), 2_147_483_520.0, i32, |_| i32::MIN;
    f32 => u32, 0.0, 4_294_967_040.0, u32, |_| 0;
    f32 => i64, -beyond!(i64), beyond!(i64), i64, |x| if x > 0.0 { i64::MAX } else { i64::MIN };
    f32 => u64, 0.0, beyond!(u64), u64, |x| if x > 0.0 { u64::MAX } else { 1 << 63 };
    f64 => i8, -128.0, 127.0, i32, |_| 0;
    f64 => u8, 0.0, 255.0, i32, |_| 0;
    f64 => i16, -32768.0, 32767.0, i32, |_| 0;
    f64 => u16, 0.0, 65535.0, i32, |_| 0;
    f64 => i32, -beyond!(i32), 2_147_483_647.0, i32, |_| i32::MIN;
    f64 => u32, 0.0, 4_294_967_295.0, u32, |_| 0;
    f64 => i64, -beyond!(i64), beyond!(i64), i64, |x| if x > 0.0 { i64::MAX } else { i64::MIN };
    f64 => u64, 0.0, beyond!(u64), u64, |x| if x > 0.0 { u64::MAX } else { 1 << 63 };
}

/// The truncating conversions of x86-64: a value that does not fit, or NaN, gives the minimum.
trait Truncate: Copy {
    fn to_i32(self) -> i32;
    fn to_i64(self) -> i64;
    fn to_u64(self) -> u64;
}

macro_rules! truncate {
    ($($f:ty, $above_i32_min:expr;)*) => {$(
        impl Truncate for $f {
            #[inline(always)]
            fn to_i32(self) -> i32 {
                let holds = $above_i32_min(self) & (self < beyond!(i32));
                let safe = if holds { self } else { 0.0 };
                // SAFETY: `safe` is 0 or truncates to an i32, by the comparisons.
                let truncated = unsafe { safe.to_int_unchecked::<i32>() };
                if holds { truncated } else { i32::MIN }
            }

            #[inline(always)]
            fn to_i64(self) -> i64 {
                let holds = (self >= -beyond!(i64)) & (self < beyond!(i64));
                let safe = if holds { self } else { 0.0 };
                // SAFETY: `safe` is 0 or truncates to an i64, by the comparisons.
                let truncated = unsafe { safe.to_int_unchecked::<i64>() };
                if holds { truncated } else { i64::MIN }
            }

            // Two signed conversions, as compilers make it for CPUs without an unsigned one.
            #[inline(always)]
            fn to_u64(self) -> u64 {
                let upper = self >= beyond!(i64);
                let shifted = if upper { self - beyond!(i64) } else { self };
                (shifted.to_i64() as u64) ^ (u64::from(upper) << 63)
            }
        }
    )*};
}

truncate! {
    f32, |x: f32| x >= -beyond!(i32);
    f64, |x: f64| x > -2_147_483_649.0;
}

/// A float as an integer that is always stored, through the conversion `$via` of the CPU.
macro_rules! cast_float_to_int {
    ($dir:ty; $($f:ty => $t:ty, $lo:expr, $hi:expr, $via:ident;)*) => {$(
        impl ConversionRule<$f, $t> for $dir {
            const CHECKED: bool = true;
            const KEEPS: bool = false;

            #[inline(always)]
            fn apply(x: $f) -> ($t, bool) {
                (x.$via() as $t, !((x > $hi) | (x < $lo)))
            }
        }
    )*};
}

cast_float_to_int! {
    WriteRule;
    f32 => i8, -128.0, 127.0, to_i32;
    f32 => u8, 0.0, 255.0, to_i32;
    f32 => i16, -32768.0, 32767.0, to_i32;
    f32 => u16, 0.0, 65535.0, to_i32;
    f32 => i32, -beyond!(i32), 2_147_483_520.0, to_i32;
    f32 => u32, 0.0, 4_294_967_040.0, to_i64;
    f32 => i64, -beyond!(i64), beyond!(i64), to_i64;
    f32 => u64, 0.0, beyond!(u64), to_u64;
    f64 => i8, -128.0, 127.0, to_i32;
    f64 => u8, 0.0, 255.0, to_i32;
    f64 => i16, -32768.0, 32767.0, to_i32;
    f64 => u16, 0.0, 65535.0, to_i32;
    f64 => i32, -beyond!(i32), 2_147_483_647.0, to_i32;
    f64 => u32, 0.0, 4_294_967_295.0, to_i64;
    f64 => i64, -beyond!(i64), beyond!(i64), to_i64;
    f64 => u64, 0.0, beyond!(u64), to_u64;
}

// The reference converts to the signed type here, so half of what fits comes out wrong.
cast_float_to_int! {
    CastRule;
    f32 => i8, -128.0, 127.0, to_i32;
    f32 => u8, 0.0, 255.0, to_i32;
    f32 => i16, -32768.0, 32767.0, to_i32;
    f32 => u16, 0.0, 65535.0, to_i32;
    f32 => i32, -beyond!(i32), 2_147_483_520.0, to_i32;
    f32 => u32, 0.0, 4_294_967_040.0, to_i64;
    f32 => i64, -beyond!(i64), beyond!(i64), to_i64;
    f32 => u64, 0.0, beyond!(u64), to_i64;
    f64 => i8, -128.0, 127.0, to_i32;
    f64 => u8, 0.0, 255.0, to_i32;
    f64 => i16, -32768.0, 32767.0, to_i32;
    f64 => u16, 0.0, 65535.0, to_i32;
    f64 => i32, -beyond!(i32), 2_147_483_647.0, to_i32;
    f64 => u32, 0.0, 4_294_967_295.0, to_i64;
    f64 => i64, -beyond!(i64), beyond!(i64), to_i64;
    f64 => u64, 0.0, beyond!(u64), to_i64;
}

macro_rules! widened {
    ($($dir:ty;)*) => {$(
        impl ConversionRule<f32, f64> for $dir {
            const CHECKED: bool = false;
            const KEEPS: bool = false;

            #[inline(always)]
            fn apply(x: f32) -> (f64, bool) {
                (f64::from(x), true)
            }
        }
    )*};
}

widened! { ReadRule; CastRule; }

/// Infinity is counted although double holds it: the reference compares with the largest finite.
impl ConversionRule<f32, f64> for WriteRule {
    const CHECKED: bool = true;
    const KEEPS: bool = false;

    #[inline(always)]
    fn apply(x: f32) -> (f64, bool) {
        (f64::from(x), !x.is_infinite())
    }
}

const F32_MAX: f64 = f32::MAX as f64;

/// Reading saturates at the largest finite float.
impl ConversionRule<f64, f32> for ReadRule {
    const CHECKED: bool = true;
    const KEEPS: bool = false;

    #[inline(always)]
    fn apply(x: f64) -> (f32, bool) {
        let above = x > F32_MAX;
        let below = x < -F32_MAX;
        let x = if above { F32_MAX } else { x };
        let x = if below { -F32_MAX } else { x };
        (x as f32, !(above | below))
    }
}

/// Rounded, to infinity where the value is that large.
macro_rules! narrowed {
    ($($dir:ty;)*) => {$(
        impl ConversionRule<f64, f32> for $dir {
            const CHECKED: bool = true;
            const KEEPS: bool = false;

            #[inline(always)]
            fn apply(x: f64) -> (f32, bool) {
                (x as f32, !((x > F32_MAX) | (x < -F32_MAX)))
            }
        }
    )*};
}

narrowed! { WriteRule; CastRule; }

/// Floats of one type: the bits as they are.
macro_rules! same_float {
    ($($dir:ty, $f:ty;)*) => {$(
        impl ConversionRule<$f, $f> for $dir {
            const CHECKED: bool = false;
            const KEEPS: bool = false;

            #[inline(always)]
            fn apply(x: $f) -> ($f, bool) {
                (x, true)
            }
        }
    )*};
}

same_float! { ReadRule, f32; ReadRule, f64; WriteRule, f32; WriteRule, f64; }
