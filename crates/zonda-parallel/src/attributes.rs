//! Attributes whose values differ between ranks, such as a history with the time of day: those of rank 0 count.

use std::io::Write as _;

use sha2::{Digest, Sha256};
use zonda_format::{
    AttAccess, AttPut, Destination, Dispatch, Error, OwnedValues, Result, Transfer, Values, VarRef,
};
use zonda_model::{Answer, NcError, shown_name};
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

/// Two words that tell values apart.
pub(crate) fn digest(values: &[u8]) -> [u64; 2] {
    let digest = Sha256::digest(values);
    let word = |n: usize| digest.as_chunks().0.get(n).map_or(0, |word| u64::from_le_bytes(*word));
    [word(0), word(1)]
}

impl ParallelFile {
    /// Gives all ranks the values that attributes have on rank 0, `mine` there. All ranks gave values to the same attributes, which they agreed
    /// on before. One rank warns, once for a file.
    ///
    /// # Errors
    /// `NC_EMPI` on all ranks where values have to be equal; those of the ranks that come together.
    pub(crate) fn take_values_of_first(&mut self, call: &'static str, mine: Vec<u8>) -> Result<()> {
        let mut values = mine;
        let told = self.team.broadcast(self.step(call), 0, &mut values);
        told.map_err(|error| self.lost_team(error))?;
        let is_first = self.team.rank() == 0;
        let taken = if is_first { Ok(None) } else { self.take_values(&values) };
        let (taken, name) = match taken {
            Ok(name) => (Ok(()), name),
            Err(error) => (Err(error), None),
        };
        // A rank that could not take them has other definitions than the others.
        self.share(call, taken).map_err(|error| self.lose(error))?;
        let (rank, name) = self.first_differing(call, name)?;
        let text = format!(
            "attribute {name} has another value on rank {rank} than on rank 0, whose value is in the file"
        );
        if self.wants_equal_attributes {
            return Err(Error::answered(NcError::Mpi, Answer::Request, text));
        }
        if rank == self.team.rank() && !self.has_warned {
            // A program whose standard error is closed still runs.
            let _ = writeln!(std::io::stderr().lock(), "zonda: {}: {text}", self.name);
        }
        self.has_warned = true;
        Ok(())
    }

    /// The first rank that had another value than rank 0, and of which attribute.
    fn first_differing(&self, call: &'static str, name: Option<String>) -> Result<(usize, String)> {
        let fail = |error| self.lost_team(error);
        let step = self.step(call);
        let mut first = [if name.is_some() { self.team.rank() as u64 } else { u64::MAX }];
        self.team.reduce(step, Reduction::Min, &mut first).map_err(fail)?;
        let rank = usize::try_from(first[0]).unwrap_or(0).min(self.team.size() - 1);
        let mut name = name.unwrap_or_default().into_bytes();
        self.team.broadcast(step, rank, &mut name).map_err(fail)?;
        Ok((rank, String::from_utf8_lossy(&name).into_owned()))
    }

    /// The values of all attributes that got some, as bytes. One that is gone again has none.
    pub(crate) fn attribute_values(&self) -> Vec<u8> {
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

    /// Takes the values of rank 0. Gives the name of the first attribute that had another one.
    fn take_values(&mut self, values: &[u8]) -> Result<Option<String>> {
        let damaged = || {
            Error::answered(
                NcError::Mpi,
                Answer::Request,
                "what rank 0 says of attributes is damaged",
            )
        };
        let (mut rest, mut differing) = (values, None);
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
            differing.get_or_insert_with(|| shown_name(name));
            let AttValue { nc_type, n_values, values } = value;
            let put = AttPut { owner: *owner, name, nc_type, n_values, mem: None };
            let mut parts = &values;
            let taken = Values { bytes: values.bytes(), fetch: Some(&mut parts) };
            self.file.writer().ok_or_else(Error::only_read)?.in_team()?.take_att(&put, taken)?;
        }
        Ok(differing)
    }
}
