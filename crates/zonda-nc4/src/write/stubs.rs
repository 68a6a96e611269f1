//! Signatures only, until the methods are there: not for any release.
#![allow(clippy::todo, missing_docs, clippy::missing_errors_doc, unused_variables, clippy::too_many_arguments, clippy::needless_pass_by_ref_mut, clippy::needless_pass_by_value, clippy::unused_self)]

use std::path::Path;
use std::sync::Arc;

use zonda_chunk::FilterSpec;
use zonda_convert::Converted;
use zonda_model::{DimId, Hyperslab, VarId};
use zonda_storage::Storage;

use crate::{CreateHow, GroupId, Nc4Error, Nc4File, OpenHow, Owner, Quantize, Result, Source, StorageKind};

impl Nc4File {
    pub fn create(storage: Arc<dyn Storage>, name: &Path, how: OpenHow, create: CreateHow) -> Result<Nc4File> { todo!() }
    pub fn open_for_writing(storage: Arc<dyn Storage>, name: &Path, how: OpenHow) -> Result<Nc4File> { todo!() }
    pub fn is_writable(&self) -> bool { self.writing.is_some() }
    pub fn in_define_mode(&self) -> bool { self.writing.as_ref().is_some_and(|w| w.is_defining) }
    pub fn redef(&mut self) -> Result<()> { todo!() }
    pub fn enddef(&mut self) -> Result<()> { todo!() }
    pub fn sync(&mut self) -> Result<()> { todo!() }
    pub fn close(&mut self) -> Result<()> { todo!() }
    pub fn abort(&mut self) -> Result<bool> { todo!() }
    pub fn drain(&mut self) -> Result<()> { todo!() }
    pub fn mark_forked(&mut self) { todo!() }
    pub fn def_dim(&mut self, group: GroupId, name: &[u8], len: usize) -> Result<DimId> { todo!() }
    pub fn rename_dim(&mut self, group: GroupId, dim: DimId, name: &[u8]) -> Result<()> { todo!() }
    pub fn def_group(&mut self, parent: GroupId, name: &[u8]) -> Result<GroupId> { todo!() }
    pub fn rename_group(&mut self, group: GroupId, name: &[u8]) -> Result<()> { todo!() }
    pub fn def_var(&mut self, group: GroupId, name: &[u8], nc_type: i32, dims: &[i32]) -> Result<VarId> { todo!() }
    pub fn rename_var(&mut self, group: GroupId, var: VarId, name: &[u8]) -> Result<()> { todo!() }
    pub fn def_compound(&mut self, group: GroupId, size: usize, name: &[u8]) -> Result<i32> { todo!() }
    pub fn insert_field(&mut self, group: GroupId, ty: i32, name: &[u8], offset: usize, field_type: i32, dims: &[i32]) -> Result<()> { todo!() }
    pub fn def_vlen(&mut self, group: GroupId, name: &[u8], base: i32) -> Result<i32> { todo!() }
    pub fn def_opaque(&mut self, group: GroupId, size: usize, name: &[u8]) -> Result<i32> { todo!() }
    pub fn def_enum(&mut self, group: GroupId, base: i32, name: &[u8]) -> Result<i32> { todo!() }
    pub fn insert_member(&mut self, group: GroupId, ty: i32, name: &[u8], value: &[u8]) -> Result<()> { todo!() }
    pub fn def_var_deflate(&mut self, group: GroupId, var: VarId, shuffle: bool, deflate: bool, level: i32) -> Result<()> { todo!() }
    pub fn def_var_fletcher32(&mut self, group: GroupId, var: VarId, on: bool) -> Result<()> { todo!() }
    pub fn def_var_filter(&mut self, group: GroupId, var: VarId, filter: FilterSpec) -> Result<()> { todo!() }
    pub fn def_var_chunking(&mut self, group: GroupId, var: VarId, storage: StorageRequest, sizes: Option<&[usize]>) -> Result<()> { todo!() }
    pub fn def_var_endian(&mut self, group: GroupId, var: VarId, endianness: crate::Endianness) -> Result<()> { todo!() }
    pub fn def_var_fill(&mut self, group: GroupId, var: VarId, no_fill: bool, value: Option<(&[u8], &mut dyn crate::Fetch)>) -> Result<()> { todo!() }
    pub fn def_var_quantize(&mut self, group: GroupId, var: VarId, mode: i32, kept: i32) -> Result<()> { todo!() }
    pub fn var_quantize(&self, group: GroupId, var: VarId) -> Result<Option<Quantize>> { todo!() }
    pub fn set_fill(&mut self, no_fill: bool) -> Result<bool> { todo!() }
    pub fn put_att<'a, E: From<Nc4Error>>(&mut self, owner: Owner, name: &[u8], nc_type: i32, n_values: usize, source: Source<'_>, values: impl FnOnce(usize) -> std::result::Result<&'a [u8], E>) -> std::result::Result<Converted, E> { todo!() }
    pub fn del_att(&mut self, owner: Owner, name: &[u8]) -> Result<()> { todo!() }
    pub fn rename_att(&mut self, owner: Owner, name: &[u8], new_name: &[u8]) -> Result<()> { todo!() }
    pub fn put<'a, 's, E: From<Nc4Error>>(&mut self, group: GroupId, var: VarId, slab: impl FnOnce(usize) -> Hyperslab<'s>, source: Source<'_>, data: impl FnOnce(usize) -> std::result::Result<&'a [u8], E>) -> std::result::Result<Converted, E> { todo!() }
}

/// What `nc_def_var_chunking` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageRequest { Contiguous, Compact, Chunked, Unknown }
impl crate::QuantizeMode { pub fn number(self) -> i32 { todo!() } }
#[allow(dead_code)] fn _unused(_: StorageKind) {}
