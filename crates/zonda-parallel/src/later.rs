//! Puts whose elements lie in the definitions of the file, which one rank writes: all ranks make them, one after the other.

use zonda_format::{Access, Result, Transfer, Values, VarRef};
use zonda_format::{Error, GroupId};
use zonda_model::{Answer, MemType, NcError, VarId};
use zonda_slab::Hyperslab;
use zonda_team::Step;

use crate::file::ParallelFile;

/// A put, as all ranks get it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LaterPut {
    var: VarRef,
    start: Vec<usize>,
    count: Vec<usize>,
    stride: Option<Vec<isize>>,
    mem: Option<MemType>,
    bytes: Vec<u8>,
}

impl LaterPut {
    pub(crate) fn of(put: &Transfer<Access<'_>>, values: &Values<'_>) -> LaterPut {
        let Access { var, slab, mem } = *put.of();
        LaterPut {
            var,
            start: slab.start.to_vec(),
            count: slab.count.to_vec(),
            stride: slab.stride.map(<[isize]>::to_vec),
            mem,
            bytes: values.bytes.to_vec(),
        }
    }

    fn write_to(&self, out: &mut Vec<u8>) {
        let mut number = |n: u64| out.extend_from_slice(&n.to_le_bytes());
        number(u64::from(self.var.group.0));
        number(u64::from(self.var.var.0.cast_unsigned()));
        number(self.start.len() as u64);
        self.start.iter().for_each(|&n| number(n as u64));
        number(self.count.len() as u64);
        self.count.iter().for_each(|&n| number(n as u64));
        let stride = self.stride.as_deref().unwrap_or_default();
        number(u64::from(self.stride.is_some()));
        number(stride.len() as u64);
        stride.iter().for_each(|&n| number((n as i64).cast_unsigned()));
        let place = self.mem.and_then(|mem| MemType::ALL.iter().position(|known| *known == mem));
        number(place.map_or(0, |place| place as u64 + 1));
        number(self.bytes.len() as u64);
        out.extend_from_slice(&self.bytes);
    }

    fn read_from(from: &mut &[u8]) -> Option<LaterPut> {
        let group = GroupId(u16::try_from(number(from)?).ok()?);
        let var = VarId(u32::try_from(number(from)?).ok()?.cast_signed());
        let start = numbers(from, |n| usize::try_from(n).ok())?;
        let count = numbers(from, |n| usize::try_from(n).ok())?;
        let has_stride = number(from)? != 0;
        let stride = numbers(from, |n| isize::try_from(n.cast_signed()).ok())?;
        let mem = match usize::try_from(number(from)?).ok()?.checked_sub(1) {
            None => None,
            Some(place) => Some(*MemType::ALL.get(place)?),
        };
        let len = usize::try_from(number(from)?).ok()?;
        let (bytes, rest) = from.split_at_checked(len)?;
        *from = rest;
        let stride = has_stride.then_some(stride);
        Some(LaterPut {
            var: VarRef { group, var },
            start,
            count,
            stride,
            mem,
            bytes: bytes.to_vec(),
        })
    }
}

fn number(from: &mut &[u8]) -> Option<u64> {
    let (first, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(u64::from_le_bytes(*first))
}

fn numbers<T>(from: &mut &[u8], each: impl Fn(u64) -> Option<T>) -> Option<Vec<T>> {
    let n = usize::try_from(number(from)?).ok()?;
    // As many as there are bytes for, whatever the number says.
    (n <= from.len() / 8).then_some(())?;
    (0..n).map(|_| each(number(from)?)).collect()
}

impl ParallelFile {
    /// All ranks make the puts that ranks noted: those of rank 0 first, and of each rank in its order.
    pub(crate) fn put_what_is_noted(&mut self, call: &'static str) -> Result<()> {
        let mut mine = Vec::new();
        std::mem::take(&mut self.later).iter().for_each(|put| put.write_to(&mut mine));
        if self.team.size() == 1 {
            return Ok(());
        }
        let step = Step { call, file: &self.name };
        let gathered = self.team.gather(step, 0, &mine);
        let mut all = gathered.map_err(|error| self.lost_team(error))?.concat();
        let told = self.team.broadcast(step, 0, &mut all);
        told.map_err(|error| self.lost_team(error))?;
        // Puts end definitions that were made in data mode: these get their places next.
        self.is_unplaced |= self.file.in_define_mode();
        let made = self.put_noted(&all);
        // A rank that could not make them has another header than the others.
        self.share(call, made).map_err(|error| self.lose(error))
    }

    /// Makes the puts that all ranks noted.
    fn put_noted(&mut self, all: &[u8]) -> Result<()> {
        let mut rest = all;
        while !rest.is_empty() {
            let damaged = || {
                let why = "what ranks put into definitions is damaged on its way";
                Error::answered(NcError::Mpi, Answer::Request, why)
            };
            let noted = LaterPut::read_from(&mut rest).ok_or_else(damaged)?;
            let LaterPut { var, start, count, stride, mem, bytes } = &noted;
            let slab = Hyperslab { start, count, stride: stride.as_deref() };
            let mut put = Transfer::new(Access { var: *var, slab, mem: *mem });
            let file = self.in_team()?;
            file.check_put_in_place(&mut put)?;
            // Whose put it was has been told of values that do not fit.
            let _fits = file.put_in_place(&put, Values::plain(bytes))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn puts_come_back() {
        let put = LaterPut {
            var: VarRef { group: GroupId(3), var: VarId(7) },
            start: vec![1, 2],
            count: vec![3, 4],
            stride: Some(vec![1, -2]),
            mem: Some(MemType::F64),
            bytes: vec![9; 5],
        };
        let plain = LaterPut { stride: None, mem: None, ..put.clone() };
        let mut bytes = Vec::new();
        put.write_to(&mut bytes);
        plain.write_to(&mut bytes);
        let mut rest = &bytes[..];
        assert_eq!(LaterPut::read_from(&mut rest), Some(put));
        assert_eq!(LaterPut::read_from(&mut rest), Some(plain));
        assert!(rest.is_empty());
        for len in 0..bytes.len() / 2 {
            assert_eq!(LaterPut::read_from(&mut &bytes[..len]), None, "{len}");
        }
    }
}
