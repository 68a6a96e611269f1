//! The public face: a decoder or encoder for one pair of types, chosen once, called per block.

use zonda_model::{ExtType, MemType};

use crate::dispatch::{self, CpuLevel, Runnable};
use crate::strided;

/// Byte order of the external side. Memory is in the byte order of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first, as in all classic files.
    Big,
}

impl ByteOrder {
    /// The byte order of this machine.
    pub const NATIVE: ByteOrder =
        if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little };
}

/// What `NC_BYTE` means to `unsigned char`, and what becomes of values that do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RangeRule {
    /// `NC_BYTE` is signed for every memory type: CDF-5.
    Strict,
    /// As `Strict`, but what does not fit is always stored as a cast in C makes it on x86-64, in
    /// both directions, and infinities fit `double`: netCDF-4.
    Cast,
    /// Between `NC_BYTE` and `unsigned char` the bits are copied and nothing is out of range:
    /// CDF-1 and CDF-2, variables and attributes alike. Other pairs are as in `Strict`.
    ByteIsUnsigned,
}

/// What a conversion found; everything that could be converted has been.
#[must_use = "out-of-range elements are reported to the caller as NC_ERANGE"]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Converted {
    /// Elements that did not fit; 0 means that all is well.
    pub out_of_range: u64,
}

impl Converted {
    /// Both findings together, for transfers made of several blocks.
    pub fn and(self, other: Converted) -> Converted {
        Converted { out_of_range: self.out_of_range.saturating_add(other.out_of_range) }
    }
}

/// Text asked for as numbers or numbers as text (`NC_ECHAR`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextNumberMix {
    /// The type in the file.
    pub ext: ExtType,
    /// The type in memory.
    pub mem: MemType,
}

impl std::fmt::Display for TextNumberMix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no conversion between external {} and memory {:?}", self.ext.name(), self.mem)
    }
}

impl std::error::Error for TextNumberMix {}

/// Memory and external form are the same bytes.
const IS_COPY: u32 = 1;
/// Values that do not fit leave the destination as it is.
const KEEPS_UNFIT: u32 = 2;

/// What a decoder and an encoder have in common. Two words, handed over in registers.
#[derive(Clone, Copy, Debug)]
struct Pair {
    kernel: Runnable,
    /// Sizes as powers of two: a division by a size would cost more than an element's conversion.
    ext_shift: u16,
    mem_shift: u16,
    flags: u32,
}

type Choose = fn(CpuLevel, ExtType, MemType, bool) -> Option<Runnable>;

impl Pair {
    #[inline]
    fn new(
        level: CpuLevel,
        (ext, order): (ExtType, ByteOrder),
        (mem, rule): (MemType, RangeRule),
        choose: Choose,
        keeps_unfit: fn(ExtType, MemType) -> bool,
    ) -> Result<Pair, TextNumberMix> {
        let (ext_size, mem_size) = (ext.size(), mem.size());
        let swap = order != ByteOrder::NATIVE && ext_size > 1;
        let unsigned_byte =
            rule == RangeRule::ByteIsUnsigned && ext == ExtType::Byte && mem == MemType::U8;
        let same = ext.natural_mem() == mem || unsigned_byte;
        let kernel = if same {
            dispatch::copy(level, ext_size, swap)
        } else {
            choose(level, ext, mem, swap).ok_or(TextNumberMix { ext, mem })?
        };
        Ok(Pair {
            kernel,
            ext_shift: ext_size.trailing_zeros() as u16,
            mem_shift: mem_size.trailing_zeros() as u16,
            flags: u32::from(same && !swap) * IS_COPY
                + u32::from(!same && keeps_unfit(ext, mem)) * KEEPS_UNFIT,
        })
    }

    /// Runs the kernel on the elements of both slices, which must be as many: leaving some out would lose values.
    #[inline]
    fn run(&self, src: &[u8], src_shift: u16, dst: &mut [u8], dst_shift: u16) -> Converted {
        let (n_src, n_dst) = (src.len() >> src_shift, dst.len() >> dst_shift);
        assert_eq!(n_src, n_dst, "lengths in elements differ");
        let n_elems = n_src;
        let out_of_range =
            self.kernel.run(&src[..n_elems << src_shift], &mut dst[..n_elems << dst_shift]);
        Converted { out_of_range }
    }

    fn is(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }
}

/// Turns external bytes into memory numbers; for one pair of types, byte order and range rule.
///
/// Small and `Copy`: made once per transfer, it holds the kernel for this CPU.
///
/// ```
/// use zonda_convert::{ByteOrder, Decoder, RangeRule};
/// use zonda_model::{ExtType, MemType};
///
/// let decoder = Decoder::new(ExtType::Short, ByteOrder::Big, MemType::U8, RangeRule::Strict)?;
/// let mut memory = [0; 3];
/// let converted = decoder.decode(&[0, 7, 0, 255, 1, 2], &mut memory);
/// assert_eq!(memory, [7, 255, 2]); // 258 does not fit: its low byte is stored, and it is counted
/// assert_eq!(converted.out_of_range, 1);
/// # Ok::<(), zonda_convert::TextNumberMix>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Decoder(Pair);

impl Decoder {
    /// The decoder from `ext` in byte order `order` to `mem`.
    ///
    /// # Errors
    /// [`TextNumberMix`] (`NC_ECHAR`) if exactly one of the two is text.
    #[inline]
    pub fn new(
        ext: ExtType,
        order: ByteOrder,
        mem: MemType,
        rule: RangeRule,
    ) -> Result<Decoder, TextNumberMix> {
        Self::at_level(CpuLevel::detect(), ext, order, mem, rule)
    }

    #[inline]
    pub(crate) fn at_level(
        level: CpuLevel,
        ext: ExtType,
        order: ByteOrder,
        mem: MemType,
        rule: RangeRule,
    ) -> Result<Decoder, TextNumberMix> {
        let keeps = |ext, mem| is_float(ext) && !matches!(mem, MemType::F32 | MemType::F64);
        let (get, keeps): (Choose, fn(_, _) -> _) = match rule {
            RangeRule::Cast => (dispatch::get_cast, |_, _| false),
            RangeRule::Strict | RangeRule::ByteIsUnsigned => (dispatch::get, keeps),
        };
        Pair::new(level, (ext, order), (mem, rule), get, keeps).map(Decoder)
    }

    /// Decodes the elements of `src` into `dst`.
    ///
    /// Both are packed elements at any alignment, of equal length in elements (the shorter
    /// decides in release builds). `dst` is written except for elements that do not fit where
    /// [`Decoder::keeps_unfit`]. Values that do not fit are counted, and the rest still converted.
    #[inline]
    pub fn decode(&self, src: &[u8], dst: &mut [u8]) -> Converted {
        self.0.run(src, self.0.ext_shift, dst, self.0.mem_shift)
    }

    /// Decodes elements picked from `src` every `ext_stride_bytes` bytes, filling packed `dst`.
    ///
    /// The first element is at the start of `src`. As many are decoded as `dst` holds; fewer if
    /// the last would reach beyond `src`. A stride below the element size re-reads bytes, and 0
    /// repeats the first element.
    pub fn decode_strided(&self, src: &[u8], ext_stride_bytes: usize, dst: &mut [u8]) -> Converted {
        strided::decode(self, src, ext_stride_bytes, dst)
    }

    /// Bytes of one external element.
    #[must_use]
    pub fn ext_size(&self) -> usize {
        1 << self.0.ext_shift
    }

    /// Bytes of one element in memory.
    #[must_use]
    pub fn mem_size(&self) -> usize {
        1 << self.0.mem_shift
    }

    /// Whether decoding is a plain copy of bytes, so that the caller may read straight into
    /// memory.
    #[must_use]
    pub fn is_copy(&self) -> bool {
        self.0.is(IS_COPY)
    }

    /// Whether an element that does not fit leaves its place in `dst` as it was (floats read as
    /// integers). Elsewhere something is always stored.
    #[must_use]
    pub fn keeps_unfit(&self) -> bool {
        self.0.is(KEEPS_UNFIT)
    }
}

/// Turns memory numbers into external bytes; for one pair of types, byte order and range rule.
///
/// ```
/// use zonda_convert::{ByteOrder, Encoder, RangeRule};
/// use zonda_model::{ExtType, MemType};
///
/// let encoder = Encoder::new(ExtType::Short, ByteOrder::Big, MemType::F64, RangeRule::Strict)?;
/// let memory: Vec<u8> = [1.9_f64, -2.0].iter().flat_map(|x| x.to_ne_bytes()).collect();
/// let mut file = [0; 4];
/// assert_eq!(encoder.encode(&memory, &mut file).out_of_range, 0);
/// assert_eq!(file, [0, 1, 0xff, 0xfe]);
/// # Ok::<(), zonda_convert::TextNumberMix>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Encoder(Pair);

impl Encoder {
    /// The encoder from `mem` to `ext` in byte order `order`.
    ///
    /// # Errors
    /// [`TextNumberMix`] (`NC_ECHAR`) if exactly one of the two is text.
    #[inline]
    pub fn new(
        ext: ExtType,
        order: ByteOrder,
        mem: MemType,
        rule: RangeRule,
    ) -> Result<Encoder, TextNumberMix> {
        Self::at_level(CpuLevel::detect(), ext, order, mem, rule)
    }

    #[inline]
    pub(crate) fn at_level(
        level: CpuLevel,
        ext: ExtType,
        order: ByteOrder,
        mem: MemType,
        rule: RangeRule,
    ) -> Result<Encoder, TextNumberMix> {
        let keeps = |ext, mem| ext == ExtType::UInt && mem == MemType::I8;
        let (put, keeps): (Choose, fn(_, _) -> _) = match rule {
            RangeRule::Cast => (dispatch::put_cast, |_, _| false),
            RangeRule::Strict | RangeRule::ByteIsUnsigned => (dispatch::put, keeps),
        };
        Pair::new(level, (ext, order), (mem, rule), put, keeps).map(Encoder)
    }

    /// Encodes the elements of `src` into `dst`.
    ///
    /// Both are packed elements at any alignment, of equal length in elements (the shorter
    /// decides in release builds). `dst` is written except for elements that do not fit where
    /// [`Encoder::keeps_unfit`]. Values that do not fit are counted, and the rest still converted.
    #[inline]
    pub fn encode(&self, src: &[u8], dst: &mut [u8]) -> Converted {
        self.0.run(src, self.0.mem_shift, dst, self.0.ext_shift)
    }

    /// Encodes packed `src` into places in `dst` that lie `ext_stride_bytes` bytes apart; the
    /// bytes between them are left alone.
    ///
    /// The first element goes to the start of `dst`. As many are encoded as `src` holds; fewer if
    /// the last would reach beyond `dst`. With a stride below the element size later elements
    /// overwrite earlier ones.
    pub fn encode_strided(&self, src: &[u8], dst: &mut [u8], ext_stride_bytes: usize) -> Converted {
        strided::encode(self, src, dst, ext_stride_bytes)
    }

    /// Bytes of one external element.
    #[must_use]
    pub fn ext_size(&self) -> usize {
        1 << self.0.ext_shift
    }

    /// Bytes of one element in memory.
    #[must_use]
    pub fn mem_size(&self) -> usize {
        1 << self.0.mem_shift
    }

    /// Whether encoding is a plain copy of bytes, so that the caller may write straight from
    /// memory.
    #[must_use]
    pub fn is_copy(&self) -> bool {
        self.0.is(IS_COPY)
    }

    /// Whether an element that does not fit leaves its place in `dst` as it was (`signed char` to
    /// `NC_UINT`). The caller must then hand in the file's present bytes.
    #[must_use]
    pub fn keeps_unfit(&self) -> bool {
        self.0.is(KEEPS_UNFIT)
    }
}

fn is_float(ext: ExtType) -> bool {
    matches!(ext, ExtType::Float | ExtType::Double)
}

/// Reverses the bytes of each element of `size_bytes` (1, 2, 4 or 8) in `bytes`.
///
/// A tail shorter than one element, and any other size, is left as it is.
pub fn swap_in_place(bytes: &mut [u8], size_bytes: usize) {
    dispatch::swap_in_place(CpuLevel::detect(), bytes, size_bytes);
}
