//! Attributes whose values differ between ranks, such as a history with the time of day: those of rank 0 count.

use sha2::{Digest, Sha256};
use zonda_format::{
    AttAccess, AttPut, Destination, Dispatch, Error, OwnedValues, Result, Transfer, Values, VarRef,
};
use zonda_model::{Answer, NcError};
use zonda_team::Reduction;

use crate::file::ParallelFile;

/// The value of an attribute as a rank has it.
struct AttValue {
    nc_type: i32,
    n_values: usize,
    values: OwnedValues,
}

impl AttValue {
    fn read(file: &dyn Dispatch, owner: VarRef, name: &[u8]) -> Result<AttValue> {
        let (_, view) = file.definitions().find_att(owner, name)?;
        let n_values = usize::try_from(view.len).map_err(|_| NcError::NoMem)?;
        let nc_type = view.nc_type;
        let mut get = Transfer::new(AttAccess { owner, name, mem: None });
        file.check_get_att(&mut get)?;
        let mut bytes = zonda_model::memory::filled(get.n_bytes, 0u8)?;
        let mut parts = OwnedValues::default();
        // In its own type every value fits.
        let _fits =
            file.get_att(&get, Destination { bytes: &mut bytes, place: Some(&mut parts) })?;
        Ok(AttValue { nc_type, n_values, values: parts.with_bytes(bytes) })
    }

    fn write_to(&self, out: &mut Vec<u8>) {
        let mut written = vec![0; self.values.written_bytes()];
        // The length is what it takes.
        let _whole = self.values.write_to(&mut written);
        for number in
            [u64::from(self.nc_type.cast_unsigned()), self.n_values as u64, written.len() as u64]
        {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&written);
    }

    fn read_from(bytes: &mut &[u8]) -> Option<AttValue> {
        let mut number = || {
            let (first, rest) = bytes.split_first_chunk()?;
            *bytes = rest;
            Some(u64::from_le_bytes(*first))
        };
        let nc_type = u32::try_from(number()?).ok()?.cast_signed();
        let n_values = usize::try_from(number()?).ok()?;
        let len = usize::try_from(number()?).ok()?;
        let (written, rest) = bytes.split_at_checked(len)?;
        *bytes = rest;
        Some(AttValue { nc_type, n_values, values: OwnedValues::read_from(written)? })
    }
}

impl ParallelFile {
    /// Gives all ranks the values that attributes have on rank 0, where they got others. All ranks gave values to the same attributes,
    /// which they agreed on before.
    pub(crate) fn unify_attributes(&mut self, call: &'static str) -> Result<()> {
        if self.said.atts.is_empty() || self.team.size() == 1 {
            return Ok(());
        }
        let mine = self.attribute_values();
        let digest = Sha256::digest(&mine);
        let (mut words, _) = digest.as_chunks::<8>();
        let mut numbers = [0u64; 4];
        for number in numbers.chunks_mut(2) {
            let Some((word, rest)) = words.split_first() else { break };
            words = rest;
            let word = u64::from_le_bytes(*word);
            number.copy_from_slice(&[word, !word]);
        }
        let step = self.step(call);
        let fail = |error| self.lost_team(error);
        self.team.reduce(step, Reduction::Max, &mut numbers).map_err(fail)?;
        let [first, not_first, second, not_second] = numbers;
        if first == !not_first && second == !not_second {
            return Ok(());
        }
        let mut values = mine;
        self.team.broadcast(step, 0, &mut values).map_err(fail)?;
        let taken = if self.team.rank() == 0 { Ok(()) } else { self.take_values(&values) };
        // A rank that could not take them has other definitions than the others.
        self.share(call, taken).map_err(|error| self.lose(error))
    }

    /// The values of all attributes that got some, as bytes. One that is gone again has none.
    fn attribute_values(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (owner, name) in &self.said.atts {
            match AttValue::read(&*self.file, *owner, name) {
                Ok(value) => {
                    out.push(1);
                    value.write_to(&mut out);
                }
                Err(_) => out.push(0),
            }
        }
        out
    }

    fn take_values(&mut self, values: &[u8]) -> Result<()> {
        let damaged = || {
            Error::answered(
                NcError::Mpi,
                Answer::Request,
                "what rank 0 says of attributes is damaged",
            )
        };
        let mut rest = values;
        for (owner, name) in &self.said.atts {
            let (&is_there, after) = rest.split_first().ok_or_else(damaged)?;
            rest = after;
            if is_there == 0 {
                continue;
            }
            let value = AttValue::read_from(&mut rest).ok_or_else(damaged)?;
            let own = AttValue::read(&*self.file, *owner, name);
            if own.is_ok_and(|own| own.n_values == value.n_values && own.values == value.values) {
                continue;
            }
            let AttValue { nc_type, n_values, values } = value;
            let put = AttPut { owner: *owner, name, nc_type, n_values, mem: None };
            let mut parts = &values;
            let taken = Values { bytes: values.bytes(), fetch: Some(&mut parts) };
            self.file.writer().ok_or_else(Error::only_read)?.in_team()?.take_att(&put, taken)?;
        }
        Ok(())
    }
}
