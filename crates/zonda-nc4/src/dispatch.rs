//! A netCDF-4 file as all formats show theirs: inquiries and gets.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use zonda_convert::Converted;
use zonda_format::{
    Access, AttAccess, Capabilities, Definitions, Destination, Dispatch, DispatchWrite, Result,
    StoreVars, Transfer, VarRef, View as FormatView,
};
use zonda_model::{ExtType, Hyperslab, MemType, NcError};
use zonda_storage::Storage;

use crate::Nc4Error;
use crate::fault::Fault;
use crate::file::Nc4File;
use crate::file_atts::NUMBER_OF_SPECIAL;
use crate::get::{axes, beyond_error, bytes_of, check_conversion, element_bytes, mixed};
use crate::select;
use crate::value_target::{NoVlens, ValueTarget};
use crate::write::{View, Writing, committed_name};

impl Dispatch for Nc4File {
    fn capabilities(&self) -> &'static Capabilities {
        &Capabilities::NETCDF4
    }

    fn storage(&self) -> Option<&Arc<dyn Storage>> {
        Some(self.hdf5().storage())
    }

    fn definitions(&self) -> &dyn Definitions {
        self
    }

    fn is_writable(&self) -> bool {
        self.writing.is_some()
    }

    fn in_define_mode(&self) -> bool {
        self.writing.as_ref().is_some_and(|writing| writing.mode.is_defining)
    }

    /// Rank of a variable; 0 where there is no such variable, which the check of the call refuses.
    #[inline]
    fn rank(&self, VarRef { group, var }: VarRef) -> usize {
        let known = self.model.get().or_else(|| self.model().ok());
        known.and_then(|model| model.var(group, var)).map_or(0, |var| var.dims.len())
    }

    /// First step of reading a hyperslab: all that may refuse it. Says how many bytes the caller's memory has to have
    /// (row-major, shape `count`, elements in memory form).
    ///
    /// # Errors
    /// `NC_EBADGRPID`, `NC_ENOTVAR`, `NC_ECHAR`, `NC_EBADTYPE` for numbers asked of strings and user-defined types, `NC_EINDEFINE` in the
    /// classic model, `NC_ENOFILTER`, `NC_ESTRIDE`, `NC_EINVALCOORDS`, `NC_EEDGE`.
    fn check_get(&self, get: &mut Transfer<Access<'_>>) -> Result<()> {
        let of = get.of();
        let Access { var: VarRef { group, var: id }, slab, mem } = *of;
        let (model, var) = self.var(group, id)?;
        let fail = |fault: Fault| fault.at(|| model.var_path(group, var));
        let refused = |code| fail(Fault::Refused(code));
        if let Some(mem) = mem {
            check_conversion(var.nc_type, mem).map_err(|code| match code {
                NcError::Char => mixed("variable", &var.name),
                code => refused(code),
            })?;
        }
        let defines = |writing: &Writing| writing.mode.is_defining && writing.how.classic;
        if self.writing.as_deref().is_some_and(defines) {
            return Err(refused(NcError::InDefine).into());
        }
        let found = self.located_data(of.var, model, var).map_err(fail)?;
        let data = found.data();
        if let Some(spec) = &data.missing {
            return Err(fail(Fault::missing(spec)).into());
        }
        let axes = axes(model, var);
        if let Err(misfit) = select::check(&axes, &slab) {
            return Err(beyond_error(model, group, var, (&axes, &slab), misfit).into());
        }
        let elem = element_bytes(&data.form, mem).ok_or_else(|| refused(NcError::BadType))?;
        let count = slab.count.get(..var.dims.len());
        let n_elems = count.and_then(|count| Hyperslab { count, ..slab }.n_elems());
        let sizes = n_elems.and_then(|n_elems| Some((n_elems, bytes_of(n_elems, elem)?)));
        let (n_elems, n_bytes) = sizes.ok_or_else(|| refused(NcError::NoMem))?;
        // Where the file has no fill value, elements beyond the variable are the reference's default.
        let is_cut = data.user_fill.is_none() && !select::exist(&axes, &slab);
        get.note(n_bytes, n_elems, mem, [elem as u64, u64::from(is_cut)]);
        Ok(())
    }

    /// Second step of reading, which the first one has checked and while the file did not change. Elements
    /// beyond the variable's extent but inside its dimensions, and those never written, are fill values.
    ///
    /// # Errors
    /// `NC_EINVAL` for memory of another length than the check said; `NC_EBADTYPE` for strings and sequences
    /// where there is no place for them; `NC_EFILTER`, `NC_EHDFERR`, and what the storage reports. Values that do not fit are counted.
    fn get(&self, get: &Transfer<Access<'_>>, room: Destination<'_>) -> Result<Converted> {
        let mut none = NoVlens::default();
        let target = ValueTarget::of(get.of().mem, room.place, &mut none);
        let got = self.get_checked(get, target, room.bytes);
        Ok(if none.is_asked { Err(none.refused(self.path_of(get.of().var))) } else { got }?)
    }

    fn get_one(&self, get: &Access<'_>, out: &mut [u8]) -> Option<Converted> {
        self.element(get, out)
    }

    /// First step of reading an attribute: bytes that its values take in memory.
    ///
    /// # Errors
    /// As [`Nc4File::att`]; `NC_ECHAR`, and `NC_EBADTYPE` for numbers asked of strings and user-defined types.
    fn check_get_att(&self, get: &mut Transfer<AttAccess<'_>>) -> Result<()> {
        let att = get.of();
        let (number, info) = self.find_att_view(att.owner, att.name)?;
        let refused = |code| Nc4Error::Refused { object: self.path(att.owner), code };
        let found = [u64::try_from(number).unwrap_or(NUMBER_OF_SPECIAL), 0];
        if info.len == 0 {
            get.note(0, 0, att.mem, found);
            return Ok(());
        }
        let elem = match att.mem {
            Some(mem) => {
                check_conversion(info.nc_type, mem).map_err(|code| match code {
                    NcError::Char => mixed("attribute", att.name),
                    code => refused(code),
                })?;
                let is_float = matches!(mem, MemType::F32 | MemType::F64);
                // Numbers about the file are made when they are asked for.
                if number < 0 && is_float && info.nc_type == ExtType::Int.nc_type() {
                    return Err(refused(NcError::Range).into());
                }
                mem.size()
            }
            None => self.size_of(self.model()?, info.nc_type),
        };
        let n_values = usize::try_from(info.len).map_err(|_| refused(NcError::NoMem))?;
        let n_bytes = bytes_of(n_values, elem).ok_or_else(|| refused(NcError::NoMem))?;
        get.note(n_bytes, n_values, att.mem, found);
        Ok(())
    }

    /// Second step of reading an attribute, while the file did not change.
    ///
    /// # Errors
    /// `NC_EINVAL` for memory of another length than the check said; as [`Nc4File::att`]; `NC_EBADTYPE` for strings and
    /// sequences where there is no place for them. Values that do not fit are counted.
    fn get_att(&self, get: &Transfer<AttAccess<'_>>, room: Destination<'_>) -> Result<Converted> {
        let att = get.of();
        let mut none = NoVlens::default();
        let target = ValueTarget::of(att.mem, room.place, &mut none);
        let got = self.att_values(get, target, room.bytes);
        Ok(if none.is_asked { Err(none.refused(self.path(att.owner))) } else { got }?)
    }

    /// Whether a get can be made while others share the file. It cannot where it has to end define mode, outside of the
    /// classic model: that needs the file alone ([`DispatchWrite::end_definitions`]). As in the reference, a get that mixes
    /// text and numbers is refused before it ends define mode.
    ///
    /// # Errors
    /// `NC_EBADGRPID`, `NC_ENOTVAR`, `NC_ECHAR`.
    #[inline]
    fn is_get_ready(&self, get: &Access<'_>) -> Result<bool> {
        if !self.get_ends_define_mode() {
            return Ok(true);
        }
        let (_, var) = self.var(get.var.group, get.var.var)?;
        match get.mem.map(|mem| check_conversion(var.nc_type, mem)) {
            Some(Err(NcError::Char)) => Err(mixed("variable", &var.name).into()),
            _ => Ok(false),
        }
    }

    fn read_again(&mut self, tries: &mut u32) -> bool {
        self.wait_for_writer(tries)
    }

    fn storage_of_vars(&self) -> Option<&dyn StoreVars> {
        Some(self)
    }

    fn refresh(&mut self) -> Result<()> {
        self.refresh_if_changed()?;
        Ok(())
    }

    fn view(&self) -> Result<Option<Box<dyn FormatView>>> {
        Ok(Some(Box::new(View::of(self)?)))
    }

    fn committed_name(&self, var: VarRef) -> Option<Box<[u8]>> {
        committed_name(self.model.get()?, self.writing.as_ref()?, var)
    }

    /// Number of commits since the file was opened for writing; those that a put made count, too.
    fn n_confirmed(&self) -> Option<u64> {
        Some(self.writing.as_ref().map_or(0, |writing| writing.stores.n_confirmed))
    }

    fn may_end_definitions(&self) -> bool {
        !self.in_define_mode() || self.get_ends_define_mode()
    }

    fn writer(&mut self) -> Option<&mut dyn DispatchWrite> {
        Some(self)
    }

    /// In a child of a fork, when the file is closed there: drops what was put, which is the parent's, and what was read.
    /// The file below stays open: a thread that the child does not have may hold it for ever.
    fn leave(&mut self) {
        self.writing = None;
        self.model = OnceLock::new();
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
