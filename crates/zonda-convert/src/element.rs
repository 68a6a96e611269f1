//! Numbers as cells of bytes: the ten numeric types, loaded and stored at any alignment.

/// A numeric type as it lies in a byte slice.
///
/// `Bytes` is `[u8; size]`, so a slice of cells has no alignment and a cell read is one
/// unaligned load after inlining.
pub(crate) trait Element: Copy {
    /// `[u8; size_of::<Self>()]`.
    type Bytes: Copy;

    /// Whether it is an integer of up to 32 bits.
    const IS_SMALL_INTEGER: bool;

    /// Whether it is an integer all of whose values a signed one of 32 bits has.
    const FITS_I32: bool;

    /// Whether it is a floating-point number.
    const IS_FLOAT: bool;

    /// The whole cells of `bytes`; a tail shorter than one cell is left out.
    fn cells(bytes: &[u8]) -> &[Self::Bytes];

    /// As [`Element::cells`], mutable.
    fn cells_mut(bytes: &mut [u8]) -> &mut [Self::Bytes];

    /// The number in a cell, its bytes reversed first if `SWAP`.
    fn load<const SWAP: bool>(cell: Self::Bytes) -> Self;

    /// The cell of a number, its bytes reversed if `SWAP`.
    fn store<const SWAP: bool>(self) -> Self::Bytes;
}

macro_rules! element {
    ($($ty:ty, $bits:ty, $to_bits:expr, $from_bits:expr;)*) => {$(
        impl Element for $ty {
            type Bytes = [u8; size_of::<$ty>()];
            const IS_SMALL_INTEGER: bool = size_of::<$ty>() < 8 && !Self::IS_FLOAT;
            const FITS_I32: bool = Self::IS_SMALL_INTEGER
                && (size_of::<$ty>() < 4 || (-1_i8) as $ty < 0 as $ty);
            // A half is not zero.
            const IS_FLOAT: bool = 1 as $ty / 2 as $ty != 0 as $ty;

            #[inline(always)]
            fn cells(bytes: &[u8]) -> &[Self::Bytes] {
                bytes.as_chunks().0
            }

            #[inline(always)]
            fn cells_mut(bytes: &mut [u8]) -> &mut [Self::Bytes] {
                bytes.as_chunks_mut().0
            }

            #[inline(always)]
            fn load<const SWAP: bool>(cell: Self::Bytes) -> Self {
                let bits = <$bits>::from_ne_bytes(cell);
                $from_bits(if SWAP { bits.swap_bytes() } else { bits })
            }

            #[inline(always)]
            fn store<const SWAP: bool>(self) -> Self::Bytes {
                let bits: $bits = $to_bits(self);
                (if SWAP { bits.swap_bytes() } else { bits }).to_ne_bytes()
            }
        }
    )*};
}

element! {
    i8, i8, std::convert::identity, std::convert::identity;
    u8, u8, std::convert::identity, std::convert::identity;
    i16, i16, std::convert::identity, std::convert::identity;
    u16, u16, std::convert::identity, std::convert::identity;
    i32, i32, std::convert::identity, std::convert::identity;
    u32, u32, std::convert::identity, std::convert::identity;
    i64, i64, std::convert::identity, std::convert::identity;
    u64, u64, std::convert::identity, std::convert::identity;
    f32, u32, f32::to_bits, f32::from_bits;
    f64, u64, f64::to_bits, f64::from_bits;
}
