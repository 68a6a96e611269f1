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
use crate::file::{MORE, ParallelFile, status_of, with_worst};
use crate::said::call;

/// A name as messages have it.
fn shown(name: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(name)
}

/// What a definition is about, as messages have it: numbers, as the caller has them.
fn of(var: VarRef) -> String {
    match (var.group, var.var) {
        (GroupId::ROOT, VarId::GLOBAL) => String::from("NC_GLOBAL"),
        (GroupId(group), VarId::GLOBAL) => format!("group {group}"),
        (GroupId::ROOT, VarId(var)) => format!("variable {var}"),
        (GroupId(group), VarId(var)) => format!("group {group}, variable {var}"),
    }
}

impl ParallelFile {
    fn writer_below(&mut self) -> Result<&mut dyn DispatchWrite> {
        self.check_whole()?;
        self.file.writer().ok_or_else(Error::only_read)
    }

    /// Makes a definition on this rank, and notes that.
    fn define<T>(
        &mut self,
        text: impl FnOnce() -> String,
        more: &[u8],
        define: impl FnOnce(&mut dyn DispatchWrite) -> Result<T>,
    ) -> Result<T> {
        let done = define(self.writer_below()?)?;
        self.said.call(text(), more);
        Ok(done)
    }

    fn define_type<T>(
        &mut self,
        text: impl FnOnce() -> String,
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
        let placed = self.common(call, |file| {
            let unfilled = file.in_team()?.give_places(reserve)?;
            if unfilled.is_empty() && is_settled {
                commit(file)?;
            }
            Ok(unfilled)
        });
        // Those that have places may not be filled.
        self.is_unplaced = placed.is_err();
        self.unfilled_why = placed.as_ref().err().map(Error::code);
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

    /// What all ranks do before a commit: they agree, and their data are in the file.
    pub(crate) fn before_commit(&mut self, call: &'static str) -> Result<()> {
        let down = self.replica.sync().map_err(Error::from);
        let status = down.as_ref().err().map_or(0, status_of);
        let values = self.attribute_values();
        let [first, second] = digest(&values);
        let own_lengths = self.in_team()?.own_lengths();
        let length = own_lengths.first().copied().unwrap_or_default();
        let has_noted = u64::from(!self.later.is_empty());
        let mut numbers = [first, second, !first, !second, length, has_noted, 0, 0, 0];
        let worst = self.agree(call, "", status, &mut numbers)?;
        let [most_first, most_second, not_first, not_second, length, has_noted, ..] = numbers;
        if !own_lengths.is_empty() {
            self.in_team()?.take_lengths(&[length]);
        }
        with_worst(down, worst)?;
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
        if self.store_dirty(call)? || has_filled {
            let down = self.replica.sync();
            self.share(call, down.map_err(Into::into))?;
        }
        Ok(())
    }

    /// Ends define mode as puts and gets do where the format lets them, and commits.
    pub(crate) fn end_definitions_together(&mut self) -> Result<()> {
        const CALL: &str = "nc_enddef";
        self.before_commit(CALL)?;
        self.place_and(CALL, Reserve::Default, |file| file.end_definitions())
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
        let text = || call("nc_put_att", &[&of(owner), &shown(name), &nc_type]);
        let converted = self.define(text, b"", |file| file.put_att(att, values))?;
        self.said.att(owner, name);
        Ok(converted)
    }

    fn del_att(&mut self, owner: VarRef, name: &[u8]) -> Result<()> {
        let text = || call("nc_del_att", &[&of(owner), &shown(name)]);
        self.define(text, b"", |file| file.del_att(owner, name))
    }

    fn rename_att(&mut self, owner: VarRef, name: &[u8], new_name: &[u8]) -> Result<()> {
        let text = || call("nc_rename_att", &[&of(owner), &shown(name), &shown(new_name)]);
        self.define(text, b"", |file| file.rename_att(owner, name, new_name))?;
        self.said.renamed_att(owner, name, new_name);
        Ok(())
    }

    fn def_dim(&mut self, group: GroupId, name: &[u8], len: usize) -> Result<DimId> {
        let text = || call("nc_def_dim", &[&of(VarRef::group(group)), &shown(name), &len]);
        self.define(text, b"", |file| file.def_dim(group, name, len))
    }

    fn rename_dim(&mut self, group: GroupId, dim: DimId, name: &[u8]) -> Result<()> {
        let text = || call("nc_rename_dim", &[&dim.0, &shown(name)]);
        self.define(text, b"", |file| file.rename_dim(group, dim, name))
    }

    fn def_var(
        &mut self,
        group: GroupId,
        name: &[u8],
        nc_type: i32,
        dims: &[i32],
    ) -> Result<VarId> {
        let text = || {
            let dims = format!("{dims:?}");
            call("nc_def_var", &[&of(VarRef::group(group)), &shown(name), &nc_type, &dims])
        };
        self.define(text, b"", |file| file.def_var(group, name, nc_type, dims))
    }

    fn rename_var(&mut self, var: VarRef, name: &[u8]) -> Result<()> {
        let text = || call("nc_rename_var", &[&of(var), &shown(name)]);
        self.define(text, b"", |file| file.rename_var(var, name))
    }

    fn def_var_fill(
        &mut self,
        var: VarRef,
        no_fill: bool,
        value: Option<Values<'_>>,
    ) -> Result<()> {
        let text = || call("nc_def_var_fill", &[&of(var), &i32::from(no_fill)]);
        let bytes: Vec<u8> = value.as_ref().map_or_else(Vec::new, |value| {
            // Addresses of strings differ between ranks.
            if value.fetch.is_some() { Vec::new() } else { value.bytes.to_vec() }
        });
        self.define(text, &bytes, |file| file.def_var_fill(var, no_fill, value))
    }

    fn set_fill(&mut self, mode: FillMode) -> Result<FillMode> {
        let text = || call("nc_set_fill", &[&format!("{mode:?}")]);
        self.define(text, b"", |file| file.set_fill(mode))
    }

    fn redef(&mut self) -> Result<()> {
        if self.file.in_define_mode() {
            return self.writer_below()?.redef();
        }
        const CALL: &str = "nc_redef";
        self.writer_below()?;
        self.before_commit(CALL)?;
        self.common(CALL, |file| file.redef())
    }

    fn enddef(&mut self, reserve: Reserve) -> Result<()> {
        if !self.file.in_define_mode() {
            return self.writer_below()?.enddef(reserve);
        }
        const CALL: &str = "nc_enddef";
        self.before_commit(CALL)?;
        self.place_and(CALL, reserve, |file| file.sync())
    }

    fn sync(&mut self) -> Result<()> {
        const CALL: &str = "nc_sync";
        if self.file.in_define_mode() && !self.defines_by_itself() {
            return self.writer_below()?.sync();
        }
        self.before_commit(CALL)?;
        match self.file.in_define_mode() {
            true => self.place_and(CALL, Reserve::Default, |file| file.sync()),
            false => self.common(CALL, |file| file.sync()),
        }
    }

    fn end_definitions(&mut self) -> Result<()> {
        self.end_definitions_together()
    }

    fn drain(&mut self) -> Result<()> {
        // The process ends without the others. Only all of them together commit; what was committed stays.
        Ok(())
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
        match (done, ended) {
            (Ok(()), Some(ending)) => Ok(ending),
            (Ok(()), None) => Ok(Ending::Keep),
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
        let own_lengths = self.in_team()?.own_lengths();
        let mut numbers = [0; MORE];
        numbers[0] = own_lengths.first().copied().unwrap_or_default();
        self.agree(CALL, "", 0, &mut numbers)?;
        if !own_lengths.is_empty() {
            self.in_team()?.take_lengths(&numbers[..1]);
        }
        // Outside of define mode it is a close. Owners must not store by themselves what waits, each something else.
        let stored = self.store_dirty(CALL).map(drop);
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
        let text = || call("nc_def_grp", &[&of(VarRef::group(parent)), &shown(name)]);
        self.define_type(text, b"", |file| file.def_group(parent, name))
    }

    fn rename_group(&mut self, group: GroupId, name: &[u8]) -> Result<()> {
        let text = || call("nc_rename_grp", &[&of(VarRef::group(group)), &shown(name)]);
        self.define_type(text, b"", |file| file.rename_group(group, name))
    }

    fn def_compound(&mut self, group: GroupId, size: usize, name: &[u8]) -> Result<i32> {
        let text = || call("nc_def_compound", &[&of(VarRef::group(group)), &size, &shown(name)]);
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
        let text = || {
            let dims = format!("{dims:?}");
            call("nc_insert_compound", &[&compound.1, &shown(name), &offset, &field_type, &dims])
        };
        let insert = |file: &mut dyn TypeDefinitions| {
            file.insert_field(compound, name, offset, field_type, dims)
        };
        self.define_type(text, b"", insert)
    }

    fn def_vlen(&mut self, group: GroupId, name: &[u8], base: i32) -> Result<i32> {
        let text = || call("nc_def_vlen", &[&of(VarRef::group(group)), &shown(name), &base]);
        self.define_type(text, b"", |file| file.def_vlen(group, name, base))
    }

    fn def_opaque(&mut self, group: GroupId, size: usize, name: &[u8]) -> Result<i32> {
        let text = || call("nc_def_opaque", &[&of(VarRef::group(group)), &size, &shown(name)]);
        self.define_type(text, b"", |file| file.def_opaque(group, size, name))
    }

    fn def_enum(&mut self, group: GroupId, base: i32, name: &[u8]) -> Result<i32> {
        let text = || call("nc_def_enum", &[&of(VarRef::group(group)), &base, &shown(name)]);
        self.define_type(text, b"", |file| file.def_enum(group, base, name))
    }

    fn insert_member(&mut self, of: (GroupId, i32), name: &[u8], value: &[u8]) -> Result<()> {
        let text = || call("nc_insert_enum", &[&of.1, &shown(name)]);
        self.define_type(text, value, |file| file.insert_member(of, name, value))
    }

    fn def_var_deflate(&mut self, var: VarRef, shuffle: bool, level: Option<i32>) -> Result<()> {
        let text = || call("nc_def_var_deflate", &[&of(var), &shuffle, &level.unwrap_or(-1)]);
        self.define_type(text, b"", |file| file.def_var_deflate(var, shuffle, level))?;
        self.access.set(var, true);
        Ok(())
    }

    fn def_var_fletcher32(&mut self, var: VarRef, on: bool) -> Result<()> {
        let text = || call("nc_def_var_fletcher32", &[&of(var), &on]);
        self.define_type(text, b"", |file| file.def_var_fletcher32(var, on))?;
        self.access.set(var, true);
        Ok(())
    }

    fn def_var_filter(&mut self, var: VarRef, filter: FilterSpec) -> Result<()> {
        let text = || {
            let params = format!("{:?}", filter.params);
            call("nc_def_var_filter", &[&of(var), &filter.id, &params])
        };
        let text = text();
        self.define_type(|| text, b"", |file| file.def_var_filter(var, filter))?;
        self.access.set(var, true);
        Ok(())
    }

    fn def_var_chunking(
        &mut self,
        var: VarRef,
        storage: StorageRequest,
        sizes: Option<&[usize]>,
    ) -> Result<()> {
        let text = || {
            let (storage, sizes) = (format!("{storage:?}"), format!("{sizes:?}"));
            call("nc_def_var_chunking", &[&of(var), &storage, &sizes])
        };
        self.define_type(text, b"", |file| file.def_var_chunking(var, storage, sizes))
    }

    fn def_var_endian(&mut self, var: VarRef, endianness: Endianness) -> Result<()> {
        let text = || call("nc_def_var_endian", &[&of(var), &format!("{endianness:?}")]);
        self.define_type(text, b"", |file| file.def_var_endian(var, endianness))
    }

    fn def_var_quantize(&mut self, var: VarRef, mode: i32, kept: i32) -> Result<()> {
        let text = || call("nc_def_var_quantize", &[&of(var), &mode, &kept]);
        self.define_type(text, b"", |file| file.def_var_quantize(var, mode, kept))
    }
}
