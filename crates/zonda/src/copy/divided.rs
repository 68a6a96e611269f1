//! A copy that several ranks divide.
//!
//! Rank 0 goes through the boxes of a copy in their order, and writes. It has the ranks read them and, where the target has filters, send
//! their chunks through these: each rank some *pieces* of boxes at a time. While rank 0 writes one *round* of boxes, the others make the next one.
//!
//! The bytes are those of a copy by one process: each box is put when that would put it. Chunks that come filtered are put as such, where
//! the box has all of them whole: one process stores these at once, in their order. Where one of them goes on behind the end of an unlimited
//! dimension, that would keep it until the end; then values come, and rank 0 puts the box as one process does.

use std::collections::{BTreeMap, BTreeSet};

use zonda_chunk::StoredChunks;
use zonda_format::{
    Access, DispatchWrite, QuantizeMode, SharedChunks, SlabBytes, Transfer, Values, VarRef,
};
use zonda_model::{Hyperslab, NcError, memory};

use super::box_read::{indices, read_box};
use super::boxes::BoxWalk;
use super::data::{DataCopy, bytes_of};
use super::define::{TargetVar, fault};
use super::pieces::{Piece, rows_of_box, slabs_of_box};
use super::tree::VarDef;
use super::vlen_buffer::VlenBuffer;
use crate::dataset::Dataset;
use crate::error::Result;
use crate::ranks::wire::{Reader, Writer, error, put_error, unreadable};
use crate::ranks::{self, Lead, Reply};
use crate::tuning::{DIVIDED_BOXES, DIVIDED_LEAST_BYTES, LEAD_WORKS_BELOW};

/// What a rank replies of one piece: its values, its chunks, or why there are none.
const VALUES: u64 = 0;
const CHUNKS: u64 = 1;
const FAILED: u64 = 2;

/// How ranks divide a variable.
#[derive(Debug)]
pub(super) struct Division {
    /// Chunks of the target that come filtered, and the lengths that their dimensions can have.
    filtered: Option<(Vec<u64>, Vec<u64>)>,
    /// Values are worth being read by others, since the source has them filtered: in chunks of this shape.
    from: Option<Vec<u64>>,
    /// What becomes of a value depends on its place in the box.
    is_by_place: bool,
}

/// A box that is to be copied: of which variable, and how that is divided.
pub(super) struct BoxToCopy<'m> {
    pub made: &'m TargetVar<'m>,
    /// `None` where rank 0 alone copies it.
    pub division: Option<&'m Division>,
    pub start: Vec<u64>,
    pub count: Vec<u64>,
}

/// How one box comes to rank 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Rank 0 reads it when it puts it.
    Alone,
    /// As values.
    Values,
    /// As filtered chunks.
    Chunks,
}

/// Boxes that are under way, and the pieces that ranks have of them.
struct Round<'m> {
    /// How many pieces each box has.
    boxes: Vec<(BoxToCopy<'m>, Way, usize)>,
    pieces: Vec<Piece>,
}

impl Division {
    /// Which way a box comes: as chunks where all of them are whole.
    fn way(&self, start: &[u64], count: &[u64]) -> Way {
        let is_whole = self.filtered.as_ref().is_some_and(|(chunk, limits)| {
            let ends = start.iter().zip(count).map(|(start, count)| start.saturating_add(*count));
            let mut axes = ends.zip(start).zip(chunk.iter().zip(limits));
            axes.all(|((end, start), (&n, &limit))| {
                start.is_multiple_of(n.max(1)) && (end.is_multiple_of(n.max(1)) || end == limit)
            })
        });
        match (is_whole, &self.from) {
            (true, _) => Way::Chunks,
            (false, Some(_)) => Way::Values,
            (false, None) => Way::Alone,
        }
    }

    /// The pieces of a box that comes in some way, for `n` ranks.
    fn pieces(
        &self,
        way: Way,
        start: &[u64],
        count: &[u64],
        n: usize,
    ) -> Vec<(Vec<u64>, Vec<u64>)> {
        match (way, &self.filtered, &self.from) {
            (Way::Alone, ..) => Vec::new(),
            (Way::Chunks, Some((chunk, _)), _) if !self.is_by_place => {
                slabs_of_box((start, count), chunk, n as u64)
            }
            (Way::Values, _, Some(chunk)) => rows_of_box((start, count), chunk, n as u64),
            _ => vec![(start.to_vec(), count.to_vec())],
        }
    }
}

impl DataCopy<'_> {
    /// How ranks divide a variable; `None` where rank 0 alone copies it, since it is short, or nobody has to filter it.
    pub(super) fn division(&self, made: &TargetVar<'_>) -> Result<Option<Division>> {
        let var = made.var;
        let is_alone = self.options.lead.is_none() || self.options.salvage;
        if is_alone || var.has_pointers || var.bytes() < DIVIDED_LEAST_BYTES {
            return Ok(None);
        }
        let mut division = Division { filtered: None, from: None, is_by_place: false };
        let VarRef { group, var: id } = made.target;
        if self.target.is_hdf5()
            && !self.target.hdf5(|file| Ok(file.pipeline(group, id)?.is_empty()))?
        {
            let quantize = self.target.var_quantize(made.target)?;
            division.is_by_place = quantize.is_some_and(|how| how.mode == QuantizeMode::BitGroom);
            let lens = var.lens();
            self.target.change_hdf5(|file| file.extend(group, id, &lens))?;
            let grid = self.target.hdf5(|file| Ok(file.grid(made.target)))?;
            division.filtered = grid.map(|grid| (grid.chunk_dims, grid.limits));
        }
        let (group, id) = (var.source.group, var.source.var);
        if self.source.is_hdf5()
            && let Some(chunk) = self.source.chunk_shape(var.source)?
            && !self.source.hdf5(|file| Ok(file.pipeline(group, id)?.is_empty()))?
        {
            division.from = Some(chunk);
        }
        let is_divided = division.filtered.is_some() || division.from.is_some();
        Ok(is_divided.then_some(division))
    }

    /// Copies boxes, in their order.
    ///
    /// # Errors
    /// What reading and writing meet, with the name of the variable.
    pub(super) fn divided<'m>(
        &mut self,
        lead: &Lead,
        mut boxes: impl Iterator<Item = BoxToCopy<'m>>,
    ) -> Result<()> {
        let inode = ranks::inode(self.source.path());
        let mut made: Option<(Round<'m>, Vec<Reply>)> = None;
        loop {
            let round = self.next_round(lead, &mut boxes);
            if let Some(round) = &round {
                lead.order(&Piece::order(inode, &round.pieces))?;
            }
            if let Some((round, replies)) = made.take() {
                self.take_in(&round, &replies)?;
            }
            let Some(round) = round else { return Ok(()) };
            let own = self.own_pieces(&round);
            let mut replies = lead.replies()?;
            replies.push(Reply { rank: 0, said: Ok(own) });
            made = Some((round, replies));
        }
    }

    /// The next boxes, as many as there is memory for; `None` after the last one.
    fn next_round<'m>(
        &self,
        lead: &Lead,
        boxes: &mut impl Iterator<Item = BoxToCopy<'m>>,
    ) -> Option<Round<'m>> {
        let (mut found, mut bytes) = (Vec::new(), 0u64);
        while found.len() < DIVIDED_BOXES && (bytes == 0 || bytes < self.most() / 2) {
            let Some(next) = boxes.next() else { break };
            bytes = bytes.saturating_add(bytes_of(next.made, &next.count)).max(1);
            found.push(next);
        }
        // Rank 0 works last, since it writes first; of many it only writes.
        let mut ranks: Vec<usize> = (1..lead.size()).collect();
        if lead.size() < LEAD_WORKS_BELOW {
            ranks.push(0);
        }
        let n_each = ranks.len().div_ceil(found.len().max(1));
        let mut round = Round { boxes: Vec::with_capacity(found.len()), pieces: Vec::new() };
        for next in found {
            let (way, parts) = next.division.map_or((Way::Alone, Vec::new()), |division| {
                let way = division.way(&next.start, &next.count);
                (way, division.pieces(way, &next.start, &next.count, n_each))
            });
            for (start, count) in &parts {
                let rank = ranks.get(round.pieces.len() % ranks.len().max(1)).copied();
                round.pieces.push(Piece {
                    rank: rank.unwrap_or(0),
                    path: next.made.var.path.clone(),
                    start: start.clone(),
                    count: count.clone(),
                    is_filtered: way == Way::Chunks,
                });
            }
            round.boxes.push((next, way, parts.len()));
        }
        (!round.boxes.is_empty()).then_some(round)
    }

    /// What rank 0 makes itself of a round.
    fn own_pieces(&self, round: &Round<'_>) -> Vec<u8> {
        let mut vars = BTreeMap::new();
        for (next, ..) in &round.boxes {
            vars.insert(&next.made.var.path[..], (next.made.var, Some(next.made.target)));
        }
        let mut worker = PieceWorker::new(self.source, Some(self.target), vars);
        worker.reply(round.pieces.iter().filter(|piece| piece.rank == 0))
    }

    /// Puts the boxes of a round.
    fn take_in(&mut self, round: &Round<'_>, replies: &[Reply]) -> Result<()> {
        let mut readers = BTreeMap::new();
        for Reply { rank, said } in replies {
            let reader = said.as_ref().map(|said| Reader::new(said));
            readers.insert(*rank, reader.map_err(ranks::again));
        }
        let mut pieces = round.pieces.iter();
        for (next, way, n_pieces) in &round.boxes {
            let of_box: Vec<&Piece> = pieces.by_ref().take(*n_pieces).collect();
            let at = |error| fault("variable", &next.made.var.path, error);
            self.take_box(next, *way, &of_box, &mut readers).map_err(at)?;
            self.step(next.made, bytes_of(next.made, &next.count))?;
        }
        Ok(())
    }

    fn take_box(
        &mut self,
        next: &BoxToCopy<'_>,
        way: Way,
        pieces: &[&Piece],
        readers: &mut BTreeMap<usize, Result<Reader<'_>>>,
    ) -> Result<()> {
        let BoxToCopy { made, start, count, .. } = next;
        if way == Way::Alone {
            self.read(made, start, count)?;
            return self.write(made, start, count);
        }
        let mut stored = StoredChunks::default();
        self.data.clear();
        for piece in pieces {
            let reader = readers.get_mut(&piece.rank).ok_or_else(unreadable)?;
            let reader = reader.as_mut().map_err(|error| ranks::again(error))?;
            match (reader.number()?, way) {
                (VALUES, Way::Values) => {
                    let values = reader.text()?;
                    memory::reserve(&mut self.data, values.len())?;
                    self.data.extend_from_slice(values);
                }
                (CHUNKS, Way::Chunks) => {
                    for _ in 0..reader.number()? {
                        let (key, mask) = (reader.numbers()?, reader.number()?);
                        stored.push(&key, mask as u32, reader.text()?);
                    }
                }
                (FAILED, _) => {
                    return Err(error(reader, Some(piece.rank).filter(|&rank| rank > 0)));
                }
                _ => return Err(unreadable()),
            }
        }
        if way == Way::Chunks {
            let VarRef { group, var } = made.target;
            return self.target.change_hdf5(|file| file.put_stored_chunks(group, var, &stored));
        }
        if self.data.len() as u64 != bytes_of(made, count) {
            return Err(unreadable());
        }
        self.write(made, start, count)
    }
}

/// A rank that makes pieces.
pub(super) struct PieceWorker<'a> {
    source: &'a Dataset,
    /// A file with the definitions of the target, which filters chunks and takes none. The target itself on rank 0.
    like_target: Option<&'a Dataset>,
    /// The variables by their paths.
    vars: BTreeMap<&'a [u8], (&'a VarDef, Option<VarRef>)>,
    /// Those that have their lengths there.
    extended: BTreeSet<&'a [u8]>,
    data: Vec<u8>,
}

impl<'a> PieceWorker<'a> {
    pub(super) fn new(
        source: &'a Dataset,
        like_target: Option<&'a Dataset>,
        vars: BTreeMap<&'a [u8], (&'a VarDef, Option<VarRef>)>,
    ) -> PieceWorker<'a> {
        PieceWorker { source, like_target, vars, extended: BTreeSet::new(), data: Vec::new() }
    }

    /// Makes pieces, until one of them fails.
    pub(super) fn reply<'p>(&mut self, pieces: impl Iterator<Item = &'p Piece>) -> Vec<u8> {
        let mut reply = Writer::default();
        for piece in pieces {
            let before = reply.bytes.len();
            if let Err(error) = self.piece(piece, &mut reply) {
                reply.bytes.truncate(before);
                reply.number(FAILED);
                put_error(&mut reply, &error);
                break;
            }
        }
        reply.bytes
    }

    fn piece(&mut self, piece: &Piece, reply: &mut Writer) -> Result<()> {
        let found = self.vars.get_key_value(&piece.path[..]);
        let Some((&path, &(var, target))) = found else { return Err(ranks::another_file()) };
        let (start, count) = (&piece.start[..], &piece.count[..]);
        let lens = var.lens();
        let ends = start.iter().zip(count).map(|(start, count)| start.checked_add(*count));
        let is_inside = start.len() == lens.len()
            && count.len() == lens.len()
            && ends.zip(&lens).all(|(end, len)| end.is_some_and(|end| end <= *len));
        if !is_inside {
            return Err(ranks::another_file());
        }
        let to = (&mut self.data, &mut VlenBuffer::default());
        read_box(self.source, var.source, None, (start, count), to)?;
        if !piece.is_filtered {
            memory::reserve(&mut reply.bytes, self.data.len().saturating_add(16))?;
            reply.number(VALUES);
            reply.text(&self.data);
            return Ok(());
        }
        let (Some(file), Some(target)) = (self.like_target, target) else {
            return Err(NcError::Internal.into());
        };
        if self.extended.insert(path) {
            file.change_hdf5(|file| file.extend(target.group, target.var, &lens))?;
        }
        filter(file, target, (start, count), &self.data, reply)
    }
}

/// Sends values through the filters of a variable, chunk by chunk. All chunks are whole.
fn filter(
    file: &Dataset,
    var: VarRef,
    (start, count): (&[u64], &[u64]),
    values: &[u8],
    reply: &mut Writer,
) -> Result<()> {
    let (starts, counts) = (indices(start)?, indices(count)?);
    let slab = Hyperslab { start: &starts, count: &counts, stride: None };
    let mut put = Transfer::new(Access { var, slab, mem: None });
    file.change_nc4(|file| {
        file.check_put(&mut put)?;
        let grid = file.grid(var).ok_or(NcError::Internal)?;
        let first: Vec<u64> = start.iter().zip(&grid.chunk_dims).map(|(at, n)| at / n).collect();
        let n: Vec<u64> =
            count.iter().zip(&grid.chunk_dims).map(|(n, by)| n.div_ceil(*by)).collect();
        let keys: Vec<Vec<u64>> = BoxWalk::new(&n, &vec![1; n.len()])
            .map(|(at, _)| at.iter().zip(&first).map(|(a, b)| a + b).collect())
            .collect();
        let (form, _) = file.in_file_form(&put, Values::plain(values))?;
        let of = SlabBytes { slab, bytes: &form };
        let names: Vec<&[u64]> = keys.iter().map(Vec::as_slice).collect();
        let filtered = file.filter_whole(var, &of, &names)?;
        if filtered.len() != keys.len() {
            return Err(NcError::Internal.into());
        }
        reply.number(CHUNKS);
        reply.number(keys.len() as u64);
        for (key, chunk) in keys.iter().zip(&filtered) {
            memory::reserve(
                &mut reply.bytes,
                chunk.bytes.len().saturating_add(8 * key.len() + 24),
            )?;
            reply.numbers(key);
            reply.number(chunk.mask.into());
            reply.text(&chunk.bytes);
        }
        Ok(())
    })
}
