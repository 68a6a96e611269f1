//! `put`, until it is there.
#![allow(clippy::todo, missing_docs, clippy::missing_errors_doc, unused_variables)]
use zonda_convert::Converted;
use zonda_model::{Hyperslab, VarId};
use crate::{GroupId, Nc4Error, Nc4File, Source};
impl Nc4File {
    pub fn put<'a, 's, E: From<Nc4Error>>(&mut self, group: GroupId, var: VarId, slab: impl FnOnce(usize) -> Hyperslab<'s>, source: Source<'_>, data: impl FnOnce(usize) -> std::result::Result<&'a [u8], E>) -> std::result::Result<Converted, E> { todo!() }
}
