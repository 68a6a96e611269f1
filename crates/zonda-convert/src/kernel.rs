//! Block loops: swap, convert, check and count in one pass over plain byte slices.

use crate::element::Element;
use crate::rule::ConversionRule;
use crate::tuning::KERNEL_BLOCK_ELEMS;

/// Converts `src` into `dst` and counts the elements that do not fit.
///
/// The shorter of the two, in elements, decides how many are converted.
#[inline(always)]
pub(crate) fn convert<R, F, T, const SWAP_IN: bool, const SWAP_OUT: bool>(
    src: &[u8],
    dst: &mut [u8],
) -> u64
where
    R: ConversionRule<F, T>,
    F: Element,
    T: Element,
{
    let mut out_of_range = 0;
    let blocks = F::cells(src).chunks(KERNEL_BLOCK_ELEMS);
    for (src, dst) in blocks.zip(T::cells_mut(dst).chunks_mut(KERNEL_BLOCK_ELEMS)) {
        let len = src.len().min(dst.len());
        let (src, dst) = (&src[..len], &mut dst[..len]);
        if R::KEEPS {
            let unfit = count_out_of_range::<R, F, T, SWAP_IN>(src);
            out_of_range += unfit;
            if unfit != 0 {
                convert_fitting::<R, F, T, SWAP_IN, SWAP_OUT>(src, dst);
                continue;
            }
        }
        let mut flagged = false;
        for (from, to) in src.iter().zip(dst) {
            let (value, fits) = R::apply(F::load::<SWAP_IN>(*from));
            *to = value.store::<SWAP_OUT>();
            flagged |= !fits;
        }
        if R::CHECKED && !R::KEEPS && flagged {
            out_of_range += count_out_of_range::<R, F, T, SWAP_IN>(src);
        }
    }
    out_of_range
}

/// Converts the elements that fit and leaves the places of the others alone.
#[inline(always)]
fn convert_fitting<R, F, T, const SWAP_IN: bool, const SWAP_OUT: bool>(
    src: &[F::Bytes],
    dst: &mut [T::Bytes],
) where
    R: ConversionRule<F, T>,
    F: Element,
    T: Element,
{
    for (from, to) in src.iter().zip(dst) {
        let (value, fits) = R::apply(F::load::<SWAP_IN>(*from));
        let cell = value.store::<SWAP_OUT>();
        *to = if fits { cell } else { *to };
    }
}

/// How many elements of `src` do not fit.
#[inline(always)]
fn count_out_of_range<R, F, T, const SWAP_IN: bool>(src: &[F::Bytes]) -> u64
where
    R: ConversionRule<F, T>,
    F: Element,
{
    let unfit = src.iter().map(|from| u32::from(!R::apply(F::load::<SWAP_IN>(*from)).1));
    u64::from(unfit.sum::<u32>())
}

/// Copies elements, their bytes reversed.
#[inline(always)]
pub(crate) fn swap<T: Element>(src: &[u8], dst: &mut [u8]) -> u64 {
    for (from, to) in T::cells(src).iter().zip(T::cells_mut(dst)) {
        *to = T::load::<true>(*from).store::<false>();
    }
    0
}

/// Reverses the bytes of each element where it lies.
#[inline(always)]
pub(crate) fn swap_in_place<T: Element>(bytes: &mut [u8]) {
    for cell in T::cells_mut(bytes) {
        *cell = T::load::<true>(*cell).store::<false>();
    }
}
