//! What changes a file of several ranks: definitions, which each rank makes for itself and all compare when they end, and the steps
//! that all make together.

use std::borrow::Cow;

use zonda_convert::Converted;
use zonda_format::{
    Access, AttPut, DefineMode, DispatchWrite, Endianness, Ending, Error, FillMode, FilterSpec,
    Format, GroupId, Reserve, Result, StorageRequest, Transfer, TypeDefinitions, Values, VarRef,
};
use zonda_model::{DimId, VarId};
use zonda_storage::Storage as _;

use crate::attributes::digest;
use crate::file::{FAILED, MORE, ParallelFile, status_of, with_worst};
use crate::filling::why;
use crate::names::{self, shown};
use crate::said::call;

impl ParallelFile {
    fn writer_below(&mut self) -> Result<&mut dyn DispatchWrite> {
        self.check_whole()?;
        self.file.writer().ok_or_else(Error::only_read)
    }

    /// Makes a definition on this rank, and notes that.
    fn define<T>(
        &mut self,
        text: String,
        more: &[u8],
        define: impl FnOnce(&mut dyn DispatchWrite) -> Result<T>,
    ) -> Result<T> {
        let done = define(self.writer_below()?)?;
        self.said.call(text, more);
        self.uncommitted.together = true;
        Ok(done)
    }

    /// How messages name a variable or group.
    pub(crate) fn object(&self, of: VarRef) -> String {
        names::object(self.file.definitions(), of)
    }

    /// How messages name what is to be defined in a group.
    fn within(&self, group: GroupId, name: &[u8]) -> String {
        names::within(self.file.definitions(), group, name)
    }

    fn type_name(&self, number: i32) -> Cow<'_, str> {
        names::nc_type(self.file.definitions(), number)
    }

    fn define_type<T>(
        &mut self,
        text: String,
        more: &[u8],
        define: impl FnOnce(&mut dyn TypeDefinitions) -> Result<T>,
    ) -> Result<T> {
        self.define(text, more, |file| define(file.types()?))
    }

    /// Ends definitions on all ranks, if the file is in define mode: places are given and filled. Then commits by `commit`: at once, if
    /// nothing has to be filled.
    pub(crate) fn place_and(
        &mut self,
        call: &'static str,
        reserve: Reserve,
        commit: impl Fn(&mut dyn DispatchWrite) -> Result<()>,
    ) -> Result<()> {
        let is_settled = self.unfilled.is_empty();
        let room = self.hints.room(reserve);
        self.tell_alignment(reserve, room);
        let reserve = room;
        let placed = self.common(call, |file| {
            let unfilled = file.in_team()?.give_places(reserve)?;
            if unfilled.is_empty() && is_settled {
                commit(file)?;
            }
            Ok(unfilled)
        });
        // Those that have places may not be filled.
        self.is_unplaced = placed.is_err();
        self.unfilled_why = placed.as_ref().err().map(why);
        let unfilled = placed?;
        if unfilled.is_empty() && is_settled {
            return Ok(());
        }
        self.fill(call, unfilled)?;
        self.common(call, commit)
    }

    /// Gives and fills places that an error kept from that, before anything else is done with the file. Whether there were any.
    pub(crate) fn settle_places(&mut self, call: &'static str) -> Result<bool> {
        if self.is_unplaced && !self.file.in_define_mode() {
            self.place_and(call, Reserve::Default, |_| Ok(()))?;
            return Ok(true);
        }
        let has_unfilled = !self.unfilled.is_empty();
        self.fill(call, Vec::new())?;
        Ok(has_unfilled)
    }

    /// Whether an error left places that have to be given or filled before anything else.
    pub(crate) fn has_unplaced_or_unfilled(&self) -> bool {
        self.is_unplaced || !self.unfilled.is_empty()
    }

    /// What all ranks do before a commit: they agree, and their data are in the file.
    pub(crate) fn before_commit(&mut self, call: &'static str) -> Result<()> {
        // What waits in the queue is tried again, also where it failed.
        let written = self.replica.queue().drain(true);
        let down = written.and_then(|()| Ok(self.replica.sync()?));
        let status = down.as_ref().err().map_or(0, status_of);
        let values = self.attribute_values();
        let [first, second] = digest(&values);
        let own_lengths = self.in_team()?.own_lengths();
        let length = own_lengths.first().copied().unwrap_or_default();
        let has_noted = u64::from(!self.later.is_empty());
        let has_kept = u64::from(!self.kept.is_empty());
        let mut numbers = [0; MORE];
        let said = [first, second, !first, !second, length, has_noted, has_kept];
        numbers[..said.len()].copy_from_slice(&said);
        numbers[FAILED] = self.own_failure();
        let worst = self.agree(call, None, status, &mut numbers)?;
        let [most_first, most_second, not_first, not_second, length, has_noted, has_kept, ..] =
            numbers;
        if !own_lengths.is_empty() {
            self.in_team()?.take_lengths(&[length]);
        }
        self.heed_before_commit(call, numbers[FAILED])?;
        with_worst(down, worst)?;
        self.notes.unsettled.clear();
        self.enter_behind(u64::MAX)?;
        let had_behind = self.settle_behind(call)?;
        if has_noted != 0 {
            self.put_what_is_noted(call)?;
        }
        if most_first != !not_first || most_second != !not_second {
            self.take_values_of_first(call, values)?;
        }
        self.said.forget();
        // What an error left unfilled: nothing is committed that readers must not see.
        let has_filled = self.settle_places(call)?;
        self.put_bytes = 0;
        if has_kept != 0 {
            self.place_kept(call)?;
        }
        if self.store_dirty(call)? || has_kept != 0 || has_filled || had_behind {
            let down = self.replica.sync();
            self.share(call, down.map_err(Into::into))?;
        }
        Ok(())
    }

    /// Ends define mode as puts and gets do where the format lets them, and commits.
    pub(crate) fn end_definitions_together(&mut self) -> Result<()> {
        const CALL: &str = "nc_enddef";
        self.before_commit(CALL)?;
        let done = self.place_and(CALL, Reserve::Default, |file| file.end_definitions());
        self.committed(done)
    }

    pub(crate) fn defines_by_itself(&self) -> bool {
        let implied = self.file.capabilities().define_mode == DefineMode::Implied;
        implied && self.file.definitions().format() != Format::NetCdf4Classic
    }

    fn end(&mut self, ending: Ending) -> Ending {
        self.let_go();
        // One rank removes it.
        if self.team.rank() == 0 { ending } else { Ending::Keep }
    }
}

impl DispatchWrite for ParallelFile {
    fn check_put(&mut self, put: &mut Transfer<Access<'_>>) -> Result<()> {
        self.check_put_by_ranks(put)
    }

    fn put(&mut self, put: &Transfer<Access<'_>>, values: Values<'_>) -> Result<Converted> {
        self.put_by_ranks(put, values)
    }

    fn check_put_att(&mut self, att: &AttPut<'_>) -> Result<usize> {
        self.writer_below()?.check_put_att(att)
    }

    fn put_att(&mut self, att: &AttPut<'_>, values: Values<'_>) -> Result<Converted> {
        let AttPut { owner, name, nc_type, .. } = *att;
        // The value may differ between ranks, and so its length.
        let text =
            call("nc_put_att", &[&self.object(owner), &shown(name), &self.type_name(nc_type)]);
        let converted =
            self.define(text, &names::numbers(&[nc_type]), |file| file.put_att(att, values))?;
        self.said.att(owner, name);
        Ok(converted)
    }

    fn del_att(&mut self, owner: VarRef, name: &[u8]) -> Result<()> {
        let text = call("nc_del_att", &[&self.object(owner), &shown(name)]);
        self.define(text, b"", |file| file.del_att(owner, name))
    }

    fn rename_att(&mut self, owner: VarRef, name: &[u8], new_name: &[u8]) -> Result<()> {
        let text = call("nc_rename_att", &[&self.object(owner), &shown(name), &shown(new_name)]);
        self.define(text, b"", |file| file.rename_att(owner, name, new_name))?;
        self.said.renamed_att(owner, name, new_name);
        Ok(())
    }

    fn def_dim(&mut self, group: GroupId, name: &[u8], len: usize) -> Result<DimId> {
        let text = call("nc_def_dim", &[&self.within(group, name), &names::len(len)]);
        self.define(text, b"", |file| file.def_dim(group, name, len))
    }

    fn rename_dim(&mut self, group: GroupId, dim: DimId, name: &[u8]) -> Result<()> {
        let text =
            call("nc_rename_dim", &[&names::dims(self.file.definitions(), &[dim.0]), &shown(name)]);
        self.define(text, &names::numbers(&[dim.0]), |file| file.rename_dim(group, dim, name))
    }

    fn def_var(
        &mut self,
        group: GroupId,
        name: &[u8],
        nc_type: i32,
        dims: &[i32],
    ) -> Result<VarId> {
        let shown_dims = names::dims(self.file.definitions(), dims);
        let text =
            call("nc_def_var", &[&self.within(group, name), &self.type_name(nc_type), &shown_dims]);
        let more = names::numbers(&[&[nc_type], dims].concat());
        self.define(text, &more, |file| file.def_var(group, name, nc_type, dims))
    }

    fn rename_var(&mut self, var: VarRef, name: &[u8]) -> Result<()> {
        let text = call("nc_rename_var", &[&self.object(var), &shown(name)]);
        self.define(text, b"", |file| file.rename_var(var, name))
    }

    fn def_var_fill(
        &mut self,
        var: VarRef,
        no_fill: bool,
        value: Option<Values<'_>>,
    ) -> Result<()> {
        let mode = if no_fill { "NC_NOFILL" } else { "NC_FILL" };
        let text = call("nc_def_var_fill", &[&self.object(var), &mode]);
        let bytes: Vec<u8> = value.as_ref().map_or_else(Vec::new, |value| {
            // Addresses of strings differ between ranks.
            if value.fetch.is_some() { Vec::new() } else { value.bytes.to_vec() }
        });
        self.define(text, &bytes, |file| file.def_var_fill(var, no_fill, value))
    }

    fn set_fill(&mut self, mode: FillMode) -> Result<FillMode> {
        let shown_mode = match mode {
            FillMode::Fill => "NC_FILL",
            FillMode::NoFill => "NC_NOFILL",
        };
        let text = call("nc_set_fill", &[&shown_mode]);
        self.define(text, b"", |file| file.set_fill(mode))
    }

    fn redef(&mut self) -> Result<()> {
        if self.file.in_define_mode() {
            return self.writer_below()?.redef();
        }
        const CALL: &str = "nc_redef";
        self.writer_below()?;
        self.before_commit(CALL)?;
        let done = self.common(CALL, |file| file.redef());
        self.committed(done)
    }

    fn enddef(&mut self, reserve: Reserve) -> Result<()> {
        if !self.file.in_define_mode() {
            return self.writer_below()?.enddef(reserve);
        }
        const CALL: &str = "nc_enddef";
        self.before_commit(CALL)?;
        let done = self.place_and(CALL, reserve, |file| file.sync());
        self.committed(done)
    }

    fn sync(&mut self) -> Result<()> {
        const CALL: &str = "nc_sync";
        if self.file.in_define_mode() && !self.defines_by_itself() {
            return self.writer_below()?.sync();
        }
        self.before_commit(CALL)?;
        let done = match self.file.in_define_mode() {
            true => self.place_and(CALL, Reserve::Default, |file| file.sync()),
            false => self.common(CALL, |file| file.sync()),
        };
        self.committed(done)
    }

    fn end_definitions(&mut self) -> Result<()> {
        self.end_definitions_together()
    }

    fn drain(&mut self) -> Result<()> {
        self.end_without_close()
    }

    fn close(&mut self) -> std::result::Result<Ending, (Error, Option<Ending>)> {
        const CALL: &str = "nc_close";
        let over = |error| (error, Some(Ending::Keep));
        if let Err(error) = self.check_whole() {
            self.let_go();
            return Err(over(error));
        }
        let placed = self.before_commit(CALL).and_then(|()| match self.file.in_define_mode() {
            true => self.place_and(CALL, Reserve::Default, |_| Ok(())),
            false => Ok(()),
        });
        if let Err(error) = placed {
            if self.is_lost() {
                self.let_go();
                return Err(over(error));
            }
            return Err((error, None));
        }
        // An ending and an error do not fit in one result of a step.
        let mut ended = None;
        let done = self.common(CALL, |file| match file.close() {
            Ok(ending) => {
                ended = Some(ending);
                Ok(())
            }
            Err((error, ending)) => {
                ended = ending;
                Err(error)
            }
        });
        let ended = if self.is_lost() { Some(Ending::Keep) } else { ended };
        let ended = ended.map(|ending| self.end(ending));
        let reported = self.report();
        match (done, ended) {
            (Ok(()), ending) => {
                let ending = ending.unwrap_or(Ending::Keep);
                reported.map(|()| ending).map_err(|error| (error, Some(ending)))
            }
            (Err(error), ending) => Err((error, ending)),
        }
    }

    fn abort(&mut self) -> Result<Ending> {
        const CALL: &str = "nc_abort";
        if self.is_lost() {
            self.let_go();
            return Ok(Ending::Keep);
        }
        // What was defined is given up, so that it may differ.
        self.said.forget();
        let _told_to_all = self.replica.queue().drain(true);
        let own_lengths = self.in_team()?.own_lengths();
        let mut numbers = [0; MORE];
        numbers[0] = own_lengths.first().copied().unwrap_or_default();
        numbers[1] = u64::from(!self.kept.is_empty());
        self.agree(CALL, None, 0, &mut numbers)?;
        if !own_lengths.is_empty() {
            self.in_team()?.take_lengths(&numbers[..1]);
        }
        let settled = self.settle_behind(CALL);
        // What is told once keeps nothing back.
        let is_given_up = settled.is_err() && !self.is_lost() && self.settle_behind(CALL).is_err();
        if self.replica.queue().drain(true).is_err() {
            self.replica.queue().discard();
        }
        if is_given_up && !self.is_lost() {
            self.forget_behind()?;
        }
        // Outside of define mode it is a close. Owners must not store by themselves what waits, each something else.
        let placed = if numbers[1] == 0 { Ok(()) } else { self.place_kept(CALL) };
        let stored = placed.and_then(|()| self.store_dirty(CALL).map(drop));
        let stored = settled.map(drop).and(stored);
        if stored.is_err() && !self.is_lost() {
            self.forget_waiting()?;
        }
        let ending = self.common(CALL, |file| file.abort())?;
        let ending = self.end(ending);
        stored.map(|()| ending)
    }

    fn types(&mut self) -> Result<&mut dyn TypeDefinitions> {
        self.writer_below()?.types()?;
        Ok(self)
    }
}

impl TypeDefinitions for ParallelFile {
    fn def_group(&mut self, parent: GroupId, name: &[u8]) -> Result<GroupId> {
        let text = call("nc_def_grp", &[&self.within(parent, name)]);
        self.define_type(text, b"", |file| file.def_group(parent, name))
    }

    fn rename_group(&mut self, group: GroupId, name: &[u8]) -> Result<()> {
        let text = call("nc_rename_grp", &[&self.object(VarRef::group(group)), &shown(name)]);
        self.define_type(text, b"", |file| file.rename_group(group, name))
    }

    fn def_compound(&mut self, group: GroupId, size: usize, name: &[u8]) -> Result<i32> {
        let text = call("nc_def_compound", &[&self.within(group, name), &size]);
        self.define_type(text, b"", |file| file.def_compound(group, size, name))
    }

    fn insert_field(
        &mut self,
        compound: (GroupId, i32),
        name: &[u8],
        offset: usize,
        field_type: i32,
        dims: &[i32],
    ) -> Result<()> {
        let (of, field, shape) =
            (self.type_name(compound.1), self.type_name(field_type), format!("{dims:?}"));
        let text = call("nc_insert_compound", &[&of, &shown(name), &offset, &field, &shape]);
        let more = names::numbers(&[compound.1, field_type]);
        let insert = |file: &mut dyn TypeDefinitions| {
            file.insert_field(compound, name, offset, field_type, dims)
        };
        self.define_type(text, &more, insert)
    }

    fn def_vlen(&mut self, group: GroupId, name: &[u8], base: i32) -> Result<i32> {
        let text = call("nc_def_vlen", &[&self.within(group, name), &self.type_name(base)]);
        self.define_type(text, &names::numbers(&[base]), |file| file.def_vlen(group, name, base))
    }

    fn def_opaque(&mut self, group: GroupId, size: usize, name: &[u8]) -> Result<i32> {
        let text = call("nc_def_opaque", &[&self.within(group, name), &size]);
        self.define_type(text, b"", |file| file.def_opaque(group, size, name))
    }

    fn def_enum(&mut self, group: GroupId, base: i32, name: &[u8]) -> Result<i32> {
        let text = call("nc_def_enum", &[&self.within(group, name), &self.type_name(base)]);
        self.define_type(text, &names::numbers(&[base]), |file| file.def_enum(group, base, name))
    }

    fn insert_member(&mut self, of: (GroupId, i32), name: &[u8], value: &[u8]) -> Result<()> {
        let text = call("nc_insert_enum", &[&self.type_name(of.1), &shown(name)]);
        let more = [&names::numbers(&[of.1]), value].concat();
        self.define_type(text, &more, |file| file.insert_member(of, name, value))
    }

    fn def_var_deflate(&mut self, var: VarRef, shuffle: bool, level: Option<i32>) -> Result<()> {
        let text = call("nc_def_var_deflate", &[&self.object(var), &shuffle, &level.unwrap_or(-1)]);
        self.define_type(text, b"", |file| file.def_var_deflate(var, shuffle, level))?;
        self.access.set(var, true);
        Ok(())
    }

    fn def_var_fletcher32(&mut self, var: VarRef, on: bool) -> Result<()> {
        let text = call("nc_def_var_fletcher32", &[&self.object(var), &on]);
        self.define_type(text, b"", |file| file.def_var_fletcher32(var, on))?;
        self.access.set(var, true);
        Ok(())
    }

    fn def_var_filter(&mut self, var: VarRef, filter: FilterSpec) -> Result<()> {
        let params = format!("{:?}", filter.params);
        let text = call("nc_def_var_filter", &[&self.object(var), &filter.id, &params]);
        self.define_type(text, b"", |file| file.def_var_filter(var, filter))?;
        self.access.set(var, true);
        Ok(())
    }

    fn def_var_chunking(
        &mut self,
        var: VarRef,
        storage: StorageRequest,
        sizes: Option<&[usize]>,
    ) -> Result<()> {
        let shown_storage = match storage {
            StorageRequest::Contiguous => "NC_CONTIGUOUS",
            StorageRequest::Compact => "NC_COMPACT",
            StorageRequest::Chunked => "NC_CHUNKED",
            StorageRequest::Unknown => "another storage",
        };
        let shown_sizes =
            sizes.map_or_else(|| String::from("default sizes"), |sizes| format!("{sizes:?}"));
        let text = call("nc_def_var_chunking", &[&self.object(var), &shown_storage, &shown_sizes]);
        self.define_type(text, b"", |file| file.def_var_chunking(var, storage, sizes))
    }

    fn def_var_endian(&mut self, var: VarRef, endianness: Endianness) -> Result<()> {
        let shown_order = match endianness {
            Endianness::Native => "NC_ENDIAN_NATIVE",
            Endianness::Little => "NC_ENDIAN_LITTLE",
            Endianness::Big => "NC_ENDIAN_BIG",
        };
        let text = call("nc_def_var_endian", &[&self.object(var), &shown_order]);
        self.define_type(text, b"", |file| file.def_var_endian(var, endianness))
    }

    fn def_var_quantize(&mut self, var: VarRef, mode: i32, kept: i32) -> Result<()> {
        let text = call("nc_def_var_quantize", &[&self.object(var), &mode, &kept]);
        self.define_type(text, b"", |file| file.def_var_quantize(var, mode, kept))
    }
}
