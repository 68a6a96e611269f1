//! A classic file that several ranks write: all places follow from the header, so that any rank can write anywhere.

use std::sync::atomic::Ordering;

use zonda_convert::Converted;
use zonda_format::{
    Access, AttPut, Dispatch, Grown, PieceShape, Reserve, Result, TeamWrite, Transfer, UnfilledRun,
    Values, VarRef,
};

use crate::file::ClassicFile;
use crate::fill;

impl ClassicFile {
    /// Makes the file as long as so many records, if it is shorter. The count is written by the next commit.
    pub(crate) fn lengthen_to(&self, n_records: u64) {
        let before = self.base.n_records.fetch_max(n_records, Ordering::AcqRel);
        if before < n_records {
            self.base.n_records_dirty.store(true, Ordering::Release);
        }
    }
}

impl TeamWrite for ClassicFile {
    fn join_team(&mut self) -> Result<()> {
        // A count that is written at once would be that of one rank.
        self.base.share = false;
        Ok(())
    }

    fn give_places(&mut self, reserve: Reserve) -> Result<Vec<UnfilledRun>> {
        if self.in_define_mode() {
            self.enddef(reserve)?;
        }
        Ok(Vec::new())
    }

    fn extent(&self, var: VarRef) -> Vec<u64> {
        let Ok(var) = self.state.header.var(var.var) else { return Vec::new() };
        let n_records = self.n_records();
        let len = |(axis, &len): (usize, &u64)| {
            if axis == 0 && var.is_record() { n_records } else { len }
        };
        var.shape.iter().enumerate().map(len).collect()
    }

    fn grow(&mut self, var: VarRef, extent: &[u64]) -> Result<Grown> {
        let header = &self.state.header;
        let from = self.n_records();
        let is_record = header.var(var.var)?.is_record();
        let Some(&to) = extent.first().filter(|&&to| is_record && to > from) else {
            return Ok(Grown::default());
        };
        // Rank 0 fills, before the count says that there are records.
        fill::records(&*self.base.storage, header, 0, from, to, None)?;
        self.lengthen_to(to);
        Ok(Grown::default())
    }

    fn grows_in_memory(&self) -> bool {
        self.state.header.vars.iter().all(|var| !var.is_record() || var.no_fill)
    }

    fn growth_may_fail(&self) -> bool {
        // A number becomes greater.
        false
    }

    fn grows_alone(&self) -> bool {
        true
    }

    fn piece_shape(&self, var: VarRef) -> Option<PieceShape> {
        let var = self.state.header.var(var.var).ok()?;
        let of_axis = |(axis, &len)| if axis == 0 && var.is_record() { 1 } else { len };
        let dims = var.shape.iter().enumerate().map(of_axis).collect();
        Some(PieceShape { dims, elem_bytes: var.ty.size() })
    }

    fn own_lengths(&self) -> Vec<u64> {
        vec![self.n_records()]
    }

    fn take_lengths(&mut self, lengths: &[u64]) {
        lengths.first().into_iter().for_each(|&n_records| self.lengthen_to(n_records));
    }

    fn take_att(&mut self, att: &AttPut<'_>, values: Values<'_>) -> Result<()> {
        self.put_att_of(att, values, true).map(drop)
    }

    fn check_put_in_place(&mut self, put: &mut Transfer<Access<'_>>) -> Result<()> {
        self.check_shared_put(put)
    }

    fn put_in_place(
        &mut self,
        put: &Transfer<Access<'_>>,
        values: Values<'_>,
    ) -> Result<Converted> {
        // One process that puts no element of many records makes the file as long as they are. Ranks do not: the others would not
        // learn of it, and a rank that has nothing to put is no odd one.
        if put.n_elems == 0 {
            return Ok(Converted::default());
        }
        self.shared_put(put, values)
    }
}
