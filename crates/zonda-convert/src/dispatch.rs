//! Which kernel serves a pair of types on this CPU.
//!
//! The loops of `kernel` are compiled once for each level of the instruction set, from the same
//! source; the level is looked up when a decoder or encoder is made and never again.

use zonda_model::{ExtType, MemType};

use crate::element::Element;
use crate::kernel;
use crate::rule::{CastRule, ConversionRule, ReadRule, WriteRule};

/// A block kernel: source bytes, destination bytes, count of elements that do not fit.
///
/// Unsafe to call because the code may use instructions beyond the target's baseline. Kernels
/// leave this module only after the CPU was seen to have them.
type Kernel = unsafe fn(&[u8], &mut [u8]) -> u64;

/// As [`Kernel`], on one slice.
type InPlaceKernel = unsafe fn(&mut [u8]);

/// A kernel this CPU can run.
#[derive(Clone, Copy)]
pub(crate) struct Runnable(Kernel);

impl Runnable {
    #[inline]
    pub(crate) fn run(self, src: &[u8], dst: &mut [u8]) -> u64 {
        // SAFETY: a `Runnable` is only made by `CpuLevel::choose`, from a level `detect` found.
        unsafe { (self.0)(src, dst) }
    }
}

impl std::fmt::Debug for Runnable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Runnable")
    }
}

/// Levels of the instruction set that kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, reason = "only x86-64 has levels above the baseline")
)]
pub(crate) enum CpuLevel {
    /// What every CPU of the target has: SSE2 on x86-64, NEON on aarch64.
    Baseline,
    /// AVX2 and the bit instructions that come with it.
    Avx2,
    /// AVX-512 with byte, word, double- and quadword forms.
    Avx512,
}

impl CpuLevel {
    /// The best level this CPU has.
    #[inline]
    pub(crate) fn detect() -> CpuLevel {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
            {
                return CpuLevel::Avx512;
            }
            if is_x86_feature_detected!("avx2") {
                return CpuLevel::Avx2;
            }
        }
        CpuLevel::Baseline
    }

    /// One of three builds of the same kernel.
    fn choose<K>(self, baseline: K, avx2: K, avx512: K) -> K {
        match self {
            CpuLevel::Baseline => baseline,
            CpuLevel::Avx2 => avx2,
            CpuLevel::Avx512 => avx512,
        }
    }
}

/// Compiles kernel bodies for one level. On other architectures the level is never detected and
/// the functions are the baseline again.
macro_rules! level {
    ($module:ident, $features:literal) => {
        mod $module {
            use super::{ConversionRule, Element, kernel};

            #[cfg_attr(target_arch = "x86_64", target_feature(enable = $features))]
            pub(super) fn convert<R, F, T, const SWAP_IN: bool, const SWAP_OUT: bool>(
                src: &[u8],
                dst: &mut [u8],
            ) -> u64
            where
                R: ConversionRule<F, T>,
                F: Element,
                T: Element,
            {
                kernel::convert::<R, F, T, SWAP_IN, SWAP_OUT>(src, dst)
            }

            #[cfg_attr(target_arch = "x86_64", target_feature(enable = $features))]
            pub(super) fn swap<T: Element>(src: &[u8], dst: &mut [u8]) -> u64 {
                kernel::swap::<T>(src, dst)
            }

            #[cfg_attr(target_arch = "x86_64", target_feature(enable = $features))]
            pub(super) fn swap_in_place<T: Element>(bytes: &mut [u8]) {
                kernel::swap_in_place::<T>(bytes);
            }
        }
    };
}

level!(baseline, "sse2");
level!(avx2, "avx2,bmi1,bmi2");
level!(avx512, "avx2,bmi1,bmi2,avx512f,avx512bw,avx512dq,avx512vl");

fn build<R, F, T, const SWAP_IN: bool, const SWAP_OUT: bool>(level: CpuLevel) -> Runnable
where
    R: ConversionRule<F, T>,
    F: Element,
    T: Element,
{
    // AVX2 has all instructions that these pairs need; a third build of them would be for blocks within the second-level cache alone
    // (optimization-notes.md).
    let wide: Kernel =
        if const { F::IS_SMALL_INTEGER && T::IS_SMALL_INTEGER || F::FITS_I32 && T::IS_FLOAT } {
            avx2::convert::<R, F, T, SWAP_IN, SWAP_OUT>
        } else {
            avx512::convert::<R, F, T, SWAP_IN, SWAP_OUT>
        };
    Runnable(level.choose::<Kernel>(
        baseline::convert::<R, F, T, SWAP_IN, SWAP_OUT>,
        avx2::convert::<R, F, T, SWAP_IN, SWAP_OUT>,
        wide,
    ))
}

fn build_get<E: Element, M: Element>(level: CpuLevel, swap: bool) -> Runnable
where
    ReadRule: ConversionRule<E, M>,
{
    if swap {
        build::<ReadRule, E, M, true, false>(level)
    } else {
        build::<ReadRule, E, M, false, false>(level)
    }
}

fn build_put<E: Element, M: Element>(level: CpuLevel, swap: bool) -> Runnable
where
    WriteRule: ConversionRule<M, E>,
{
    if swap {
        build::<WriteRule, M, E, false, true>(level)
    } else {
        build::<WriteRule, M, E, false, false>(level)
    }
}

/// Every pair of numeric types, by one builder. `None` where text is involved.
macro_rules! table {
    ($build:ident, $level:expr, $swap:expr, $ext:expr, $mem:expr) => {{
        macro_rules! row {
            ($e:ty) => {
                match $mem {
                    MemType::Text => return None,
                    MemType::I8 => $build::<$e, i8>($level, $swap),
                    MemType::U8 => $build::<$e, u8>($level, $swap),
                    MemType::I16 => $build::<$e, i16>($level, $swap),
                    MemType::U16 => $build::<$e, u16>($level, $swap),
                    MemType::I32 => $build::<$e, i32>($level, $swap),
                    MemType::U32 => $build::<$e, u32>($level, $swap),
                    MemType::I64 => $build::<$e, i64>($level, $swap),
                    MemType::U64 => $build::<$e, u64>($level, $swap),
                    MemType::F32 => $build::<$e, f32>($level, $swap),
                    MemType::F64 => $build::<$e, f64>($level, $swap),
                }
            };
        }
        Some(match $ext {
            ExtType::Char => return None,
            ExtType::Byte => row!(i8),
            ExtType::UByte => row!(u8),
            ExtType::Short => row!(i16),
            ExtType::UShort => row!(u16),
            ExtType::Int => row!(i32),
            ExtType::UInt => row!(u32),
            ExtType::Int64 => row!(i64),
            ExtType::UInt64 => row!(u64),
            ExtType::Float => row!(f32),
            ExtType::Double => row!(f64),
        })
    }};
}

/// The kernel reading `ext` as `mem`; `None` between text and numbers.
pub(crate) fn get(level: CpuLevel, ext: ExtType, mem: MemType, swap: bool) -> Option<Runnable> {
    table!(build_get, level, swap, ext, mem)
}

/// The kernel writing `mem` as `ext`; `None` between text and numbers.
pub(crate) fn put(level: CpuLevel, ext: ExtType, mem: MemType, swap: bool) -> Option<Runnable> {
    table!(build_put, level, swap, ext, mem)
}

fn build_get_cast<E: Element, M: Element>(level: CpuLevel, swap: bool) -> Runnable
where
    CastRule: ConversionRule<E, M>,
{
    if swap {
        build::<CastRule, E, M, true, false>(level)
    } else {
        build::<CastRule, E, M, false, false>(level)
    }
}

fn build_put_cast<E: Element, M: Element>(level: CpuLevel, swap: bool) -> Runnable
where
    CastRule: ConversionRule<M, E>,
{
    if swap {
        build::<CastRule, M, E, false, true>(level)
    } else {
        build::<CastRule, M, E, false, false>(level)
    }
}

/// As [`get`], by the rule of netCDF-4, which has kernels of its own for floats.
pub(crate) fn get_cast(
    level: CpuLevel,
    ext: ExtType,
    mem: MemType,
    swap: bool,
) -> Option<Runnable> {
    macro_rules! row {
        ($e:ty) => {
            match mem {
                MemType::I8 => build_get_cast::<$e, i8>(level, swap),
                MemType::U8 => build_get_cast::<$e, u8>(level, swap),
                MemType::I16 => build_get_cast::<$e, i16>(level, swap),
                MemType::U16 => build_get_cast::<$e, u16>(level, swap),
                MemType::I32 => build_get_cast::<$e, i32>(level, swap),
                MemType::U32 => build_get_cast::<$e, u32>(level, swap),
                MemType::I64 => build_get_cast::<$e, i64>(level, swap),
                MemType::U64 => build_get_cast::<$e, u64>(level, swap),
                MemType::F32 if ext == ExtType::Double => build_get_cast::<f64, f32>(level, swap),
                MemType::Text | MemType::F32 | MemType::F64 => return get(level, ext, mem, swap),
            }
        };
    }
    Some(match ext {
        ExtType::Float => row!(f32),
        ExtType::Double => row!(f64),
        _ => return get(level, ext, mem, swap),
    })
}

/// As [`put`], by the rule of netCDF-4, which differs for few pairs.
pub(crate) fn put_cast(
    level: CpuLevel,
    ext: ExtType,
    mem: MemType,
    swap: bool,
) -> Option<Runnable> {
    match (mem, ext) {
        (MemType::I8, ExtType::UInt) => Some(build_put_cast::<u32, i8>(level, swap)),
        (MemType::F32, ExtType::UInt64) => Some(build_put_cast::<u64, f32>(level, swap)),
        (MemType::F64, ExtType::UInt64) => Some(build_put_cast::<u64, f64>(level, swap)),
        (MemType::F32, ExtType::Double) => Some(build_put_cast::<f64, f32>(level, swap)),
        _ => put(level, ext, mem, swap),
    }
}

/// The kernel copying elements of `size_bytes`, their bytes reversed if `swap`.
#[inline]
pub(crate) fn copy(level: CpuLevel, size_bytes: usize, swap: bool) -> Runnable {
    fn plain(src: &[u8], dst: &mut [u8]) -> u64 {
        let len = src.len().min(dst.len());
        dst[..len].copy_from_slice(&src[..len]);
        0
    }
    macro_rules! swap {
        ($t:ty) => {
            level.choose::<Kernel>(baseline::swap::<$t>, avx2::swap::<$t>, avx512::swap::<$t>)
        };
    }
    Runnable(match size_bytes {
        2 if swap => swap!(u16),
        4 if swap => swap!(u32),
        8 if swap => swap!(u64),
        _ => plain,
    })
}

/// Reverses the bytes of each element of `size_bytes` where it lies.
pub(crate) fn swap_in_place(level: CpuLevel, bytes: &mut [u8], size_bytes: usize) {
    macro_rules! swap {
        ($t:ty) => {
            level.choose::<InPlaceKernel>(
                baseline::swap_in_place::<$t>,
                avx2::swap_in_place::<$t>,
                avx512::swap_in_place::<$t>,
            )
        };
    }
    let kernel = match size_bytes {
        2 => swap!(u16),
        4 => swap!(u32),
        8 => swap!(u64),
        _ => return,
    };
    // SAFETY: callers pass a level that `CpuLevel::detect` found on this CPU (or a lower one).
    unsafe { kernel(bytes) }
}
