//! Filter 32013, zfp: blocks of 4^d numbers, transformed and coded by bit planes, lossy or not.
//!
//! Parameters: a word of versions, then the words of zfp's own header as a bit stream: magic, type
//! and dimensions (fastest first), mode. Stream: zfp's, without that header. Both are bit streams
//! from the lowest bit of the first byte on.
//! The codec is the crate zfp-rs, safe to call with any bytes; this file is what HDF5's filter
//! (H5Z-ZFP) puts around it.

use zfp_rs::{
    ZfpBitStream, ZfpBitStreamRef, ZfpConfig, ZfpField, ZfpFieldMetadata, ZfpFieldMut,
    ZfpHeaderMask, ZfpScalar, ZfpScalarType,
};

use super::{ChunkShape, Filter, FilterError, FilterSpec, memory, reserve};

const NAME: &str = "zfp";

/// Filter 32013.
#[derive(Debug)]
struct Zfp {
    field: ZfpFieldMetadata,
    config: ZfpConfig,
}

/// Makes the filter; the registry's line.
pub(crate) fn new(spec: &FilterSpec, _: &ChunkShape) -> Result<Box<dyn Filter>, FilterError> {
    let Some((_, header)) = spec.params.split_first() else {
        return Err(FilterError::FewParameters { filter: NAME, have: 0, need: 4 });
    };
    let bytes: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
    let words = words(&bytes, NAME)?;
    let mut stream = ZfpBitStreamRef::from_words(&words);
    let header = stream.read_header(ZfpHeaderMask::FULL).ok();
    let header = header.and_then(|header| Some((header.metadata?, header.config?)));
    let Some((field, config)) = header else {
        let what = "a header of another machine or version, among its parameters,";
        return Err(FilterError::Unsupported { filter: NAME, what });
    };
    Ok(Box::new(Zfp { field, config }))
}

/// The bytes as the words of a bit stream, the last filled up with zeros.
fn words(bytes: &[u8], filter: &'static str) -> Result<Vec<u64>, FilterError> {
    let mut words = Vec::new();
    let no_memory = |_| FilterError::NoMemory { filter, bytes: bytes.len() };
    words.try_reserve(bytes.len().div_ceil(8)).map_err(no_memory)?;
    words.extend(bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
        u64::from_le_bytes(word)
    }));
    Ok(words)
}

/// A number as the file has it.
trait ZfpNumber: ZfpScalar + Copy + Default {
    const LEN: usize;
    fn load(bytes: &[u8]) -> Self;
    fn store(self, bytes: &mut [u8]);
}

macro_rules! number {
    ($($type:ty),*) => {$(
        impl ZfpNumber for $type {
            const LEN: usize = size_of::<$type>();
            fn load(bytes: &[u8]) -> Self {
                bytes.first_chunk().map_or(Self::default(), |bytes| Self::from_le_bytes(*bytes))
            }
            fn store(self, bytes: &mut [u8]) {
                bytes.iter_mut().zip(self.to_le_bytes()).for_each(|(to, byte)| *to = byte);
            }
        }
    )*};
}
number!(i32, i64, f32, f64);

impl Zfp {
    /// Elements, if a chunk of `most` bytes has room for them.
    fn elems(&self, len: usize, most: usize) -> Result<usize, FilterError> {
        let dims = self.field.dims.into_iter().filter(|dim| *dim > 0);
        let elems = dims.into_iter().try_fold(1usize, |product, dim| product.checked_mul(dim));
        let bytes = elems.and_then(|elems| elems.checked_mul(len));
        memory::check_len(NAME, bytes.unwrap_or(usize::MAX), most)?;
        Ok(elems.unwrap_or_default())
    }

    fn decode_as<T: ZfpNumber>(
        &self,
        stored: &[u8],
        most: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        let damaged = |at, what| FilterError::Damaged { filter: NAME, at, what };
        let elems = self.elems(T::LEN, most)?;
        let no_memory = FilterError::NoMemory { filter: NAME, bytes: elems * T::LEN };
        let mut numbers: Vec<T> = Vec::new();
        numbers.try_reserve(elems).map_err(|_| no_memory)?;
        numbers.resize(elems, T::default());
        let words = words(stored, NAME)?;
        let mut stream = ZfpBitStreamRef::from_words(&words);
        let mut field = ZfpFieldMut::new(&mut numbers, self.field.dims)
            .map_err(|_| damaged(0, "dimensions that no array has"))?;
        // Missing words are noticed; in the last word, filled up with zeros, missing bytes are not.
        stream
            .decompress(&self.config, &mut field)
            .map_err(|_| damaged(stored.len(), "ends early"))?;
        memory::zeroed(NAME, out, elems * T::LEN)?;
        for (to, number) in out.chunks_exact_mut(T::LEN).zip(numbers) {
            number.store(to);
        }
        Ok(())
    }

    fn encode_as<T: ZfpNumber>(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<bool, FilterError> {
        let elems = self.elems(T::LEN, raw.len())?;
        if elems * T::LEN != raw.len() {
            let expected = elems * T::LEN;
            return Err(FilterError::WrongLength { filter: NAME, got: raw.len(), expected });
        }
        let unsupported =
            FilterError::Unsupported { filter: NAME, what: "a chunk that zfp refuses to compress" };
        let no_memory = |bytes| FilterError::NoMemory { filter: NAME, bytes };
        let numbers: Vec<T> = raw.chunks_exact(T::LEN).map(T::load).collect();
        let field = ZfpField::new(&numbers, self.field.dims).map_err(|_| unsupported.clone())?;
        let most = self
            .config
            .maximum_size(self.field.scalar_type, self.field.dims)
            .ok_or_else(|| unsupported.clone())?;
        let mut stream = ZfpBitStream::new(most).map_err(|_| no_memory(most))?;
        stream.compress(&self.config, &field).map_err(|_| unsupported)?;
        let words = stream.as_words();
        reserve(NAME, out, words.len() * 8)?;
        out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        Ok(true)
    }
}

impl Filter for Zfp {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, stored: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), FilterError> {
        match self.field.scalar_type {
            ZfpScalarType::I32 => self.decode_as::<i32>(stored, most, out),
            ZfpScalarType::I64 => self.decode_as::<i64>(stored, most, out),
            ZfpScalarType::F32 => self.decode_as::<f32>(stored, most, out),
            ZfpScalarType::F64 => self.decode_as::<f64>(stored, most, out),
        }
    }

    fn encode(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<bool, FilterError> {
        match self.field.scalar_type {
            ZfpScalarType::I32 => self.encode_as::<i32>(raw, out),
            ZfpScalarType::I64 => self.encode_as::<i64>(raw, out),
            ZfpScalarType::F32 => self.encode_as::<f32>(raw, out),
            ZfpScalarType::F64 => self.encode_as::<f64>(raw, out),
        }
    }
}
