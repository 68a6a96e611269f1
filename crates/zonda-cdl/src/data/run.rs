//! Collects consecutive values of a variable for the sink.

use super::sink::{DataSink, DataSlab, refused};
use super::slab::slabs;
use crate::constant::{Constant, PlacedConstant};
use crate::element::{self, Elements};
use crate::fault::CdlFault;
use crate::schema::Schema;
use crate::tuning::PUT_BLOCK_BYTES;

/// The most bytes of fill values that are put one by one. More would take hours.
const MOST_FILL: u64 = 1 << 40;

/// A run of values: all of a variable, or those of one instance of an inner unlimited dimension.
#[derive(Debug)]
pub(super) struct ValueRun {
    var: usize,
    /// Index along the slower dimensions.
    prefix: Vec<u64>,
    /// Lengths of the other dimensions; 0 for a first one whose length is open.
    shape: Vec<u64>,
    size: usize,
    /// Values put so far.
    done: u64,
    /// Values that fit.
    room: u64,
    /// The place of the first value that did not fit.
    pub(super) excess: Option<u64>,
    values: Elements,
}

impl ValueRun {
    /// `shape` begins with 0 if the length of the first dimension is open.
    pub(super) fn new(schema: &Schema, var: usize, prefix: Vec<u64>, shape: Vec<u64>) -> ValueRun {
        let is_open = !prefix.is_empty() || !shape.is_empty();
        let dim = schema.vars[var].dims.get(prefix.len());
        let is_open = is_open && dim.is_some_and(|dim| schema.dims[*dim].unlimited);
        let room = if is_open { u64::MAX } else { super::product(&shape) };
        let size = schema.size_of(schema.vars[var].ty).max(1);
        ValueRun {
            var,
            prefix,
            shape,
            size,
            done: 0,
            room,
            excess: None,
            values: Elements::default(),
        }
    }

    /// Begins after so many values.
    pub(super) fn resume(&mut self, n_values: u64) {
        self.done = n_values;
    }

    /// Number of values so far, put or not.
    pub(super) fn len(&self) -> u64 {
        self.done + (self.values.bytes.len() / self.size) as u64
    }

    fn left(&self) -> u64 {
        self.room.saturating_sub(self.len())
    }

    /// Adds a value.
    pub(super) fn push(
        &mut self,
        schema: &Schema,
        item: &PlacedConstant,
        sink: &mut dyn DataSink,
    ) -> Result<(), CdlFault> {
        if self.left() == 0 {
            self.excess.get_or_insert(item.at);
            return Ok(());
        }
        let var = &schema.vars[self.var];
        element::encode(schema, var.ty, item, var.fill.as_ref(), &mut self.values)?;
        if self.values.bytes.len() + self.values.pieces.len() >= PUT_BLOCK_BYTES {
            self.flush(schema, sink)?;
        }
        Ok(())
    }

    /// Adds values in native bytes; `at` is their place in the text.
    pub(super) fn push_bytes(
        &mut self,
        schema: &Schema,
        bytes: &[u8],
        at: u64,
        sink: &mut dyn DataSink,
    ) -> Result<(), CdlFault> {
        let room = usize::try_from(self.left()).unwrap_or(usize::MAX).saturating_mul(self.size);
        if bytes.len() > room {
            self.excess.get_or_insert(at);
        }
        self.values.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if self.values.bytes.len() >= PUT_BLOCK_BYTES {
            self.flush(schema, sink)?;
        }
        Ok(())
    }

    /// Adds so many fill values.
    pub(super) fn fill(
        &mut self,
        schema: &Schema,
        n: u64,
        sink: &mut dyn DataSink,
    ) -> Result<(), CdlFault> {
        let at = schema.vars[self.var].at;
        if n.saturating_mul(self.size as u64) > MOST_FILL {
            let why = format!("{n} values that are not in the text would have to be filled in");
            return Err(CdlFault::at(at, why));
        }
        let missing = PlacedConstant { at, value: Constant::Fill };
        for _ in 0..n {
            self.push(schema, &missing, sink)?;
        }
        self.flush(schema, sink)
    }

    /// Puts the collected values.
    pub(super) fn flush(
        &mut self,
        schema: &Schema,
        sink: &mut dyn DataSink,
    ) -> Result<(), CdlFault> {
        let n = (self.values.bytes.len() / self.size) as u64;
        let (var, prefix, size) = (self.var, &self.prefix, self.size);
        let values = &mut self.values;
        // Each box gets its part of the values. Mostly there is only one box.
        let mut rest = std::mem::take(&mut values.bytes);
        let put = slabs(&self.shape, self.done, n, |start, count, n_values| {
            let len = usize::try_from(n_values).unwrap_or(usize::MAX).saturating_mul(size);
            let behind = rest.split_off(len.min(rest.len()));
            values.bytes = std::mem::replace(&mut rest, behind);
            let start = [prefix, start].concat();
            let count = [&vec![1; prefix.len()][..], count].concat();
            let slab = DataSlab { start: &start, count: &count };
            sink.put(schema, var, slab, values)
        });
        put.map_err(|why| refused(&schema.vars[var], why))?;
        self.done += n;
        self.values.clear();
        Ok(())
    }
}
