//! Unfiltered chunks that are larger than all incomplete ones together may be: they do not wait in
//! memory. A place is taken and filled for them, and puts go there row by row.

use zonda_convert::Converted;
use zonda_storage::{Storage, WriteRange, fill_by_writes};

use super::encode::ElementEncoding;
use super::put_part::PutPart;
use super::store::PutMemory;
use super::writer_array::WriterArray;
use crate::ChunkError;
use crate::table::{Allocate, ChunkAt};
use crate::tuning::{LARGE_CHUNK_BLOCK_BYTES, LARGE_CHUNK_BLOCK_RUNS};

impl WriterArray {
    /// Whether its chunks go to the storage as they are put, if incomplete ones take up to `limit`
    /// bytes.
    pub(crate) fn is_large(&self, limit: u64) -> bool {
        self.chunk_bytes as u64 > limit && self.writes_over()
    }

    /// Puts elements of a chunk to where it is, or where it will be.
    pub(crate) fn put_large(
        &self,
        storage: &dyn Storage,
        space: &mut dyn Allocate,
        key: &[u64],
        place: Option<ChunkAt>,
        part: &PutPart,
        source: &PutMemory<'_>,
    ) -> Result<Converted, ChunkError> {
        let len = self.chunk_bytes as u64;
        let place = match place {
            Some(place) if place.len != len => {
                let (at, got, expected) = (place.at, place.len, len);
                return Err(ChunkError::Length {
                    chunk: crate::error::coordinates(key),
                    at,
                    got,
                    expected,
                });
            }
            Some(place) => place,
            None => self.make_large(storage, space, key, len)?,
        };
        let mut writer = RowWriter::new(storage, source.encode);
        part.each_run(source, |to, src| writer.add(place.at + to as u64, src))?;
        writer.flush()?;
        self.read.inner.changed(key);
        Ok(writer.converted)
    }

    /// A place for a chunk of which nothing was put.
    fn make_large(
        &self,
        storage: &dyn Storage,
        space: &mut dyn Allocate,
        key: &[u64],
        len: u64,
    ) -> Result<ChunkAt, ChunkError> {
        let at = space.allocate(len).map_err(ChunkError::Table)?;
        let place = ChunkAt { at, len, mask: 0 };
        let filled = match self.fill.len() {
            0 => storage.fill_at(at, len, &[0]),
            1..=8 => storage.fill_at(at, len, &self.fill),
            _ => fill_by_writes(storage, at, len, &self.fill),
        };
        let entered = filled
            .map_err(ChunkError::from)
            .and_then(|()| self.table.insert(key, place).map_err(ChunkError::Table));
        if entered.is_err() {
            space.free(at, len);
        }
        entered.map(|_| place)
    }
}

/// Runs of elements that are written together.
struct RowWriter<'a> {
    storage: &'a dyn Storage,
    encode: &'a ElementEncoding<'a>,
    /// What is written as it lies in the caller's memory.
    straight: Vec<WriteRange<'a>>,
    /// What is converted first.
    packed: Vec<u8>,
    /// Where each goes, and behind its last byte in `packed`.
    ranges: Vec<(u64, usize)>,
    converted: Converted,
}

impl<'a> RowWriter<'a> {
    fn new(storage: &'a dyn Storage, encode: &'a ElementEncoding<'a>) -> RowWriter<'a> {
        let (straight, packed, ranges) = (Vec::new(), Vec::new(), Vec::new());
        RowWriter { storage, encode, straight, packed, ranges, converted: Converted::default() }
    }

    fn add(&mut self, at: u64, src: &'a [u8]) -> Result<(), ChunkError> {
        if self.encode.is_copy() {
            self.straight.push(WriteRange { at, data: src });
            return if self.straight.len() == LARGE_CHUNK_BLOCK_RUNS {
                self.flush()
            } else {
                Ok(())
            };
        }
        let (mem, file) = (self.encode.mem_size(), self.encode.file_size());
        let per = (LARGE_CHUNK_BLOCK_BYTES / file).max(1);
        let mut at = at;
        for piece in src.chunks(per * mem) {
            let bytes = piece.len() / mem * file;
            if self.packed.len() + bytes > LARGE_CHUNK_BLOCK_BYTES
                || self.ranges.len() == LARGE_CHUNK_BLOCK_RUNS
            {
                self.flush()?;
            }
            let begin = self.packed.len();
            self.packed.resize(begin + bytes, 0);
            let here = &mut self.packed[begin..];
            if self.encode.keeps_unfit() {
                let _behind_the_end_are_zeros = self.storage.read_at(at, here)?;
            }
            self.converted = self.converted.and(self.encode.run(piece, here));
            self.ranges.push((at, self.packed.len()));
            at += bytes as u64;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ChunkError> {
        if !self.straight.is_empty() {
            self.storage.write_ranges(&self.straight)?;
            self.straight.clear();
            return Ok(());
        }
        let mut begin = 0;
        let ranges = self.ranges.iter().map(|&(at, end)| {
            let data = &self.packed[begin..end];
            begin = end;
            WriteRange { at, data }
        });
        let ranges: Vec<_> = ranges.collect();
        self.storage.write_ranges(&ranges)?;
        self.packed.clear();
        self.ranges.clear();
        Ok(())
    }
}
