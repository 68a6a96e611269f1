//! What a format implements: the operations on an open file.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use zonda_convert::Converted;
use zonda_model::{DimId, NcError, VarId};
use zonda_slab::Hyperslab;
use zonda_storage::Storage;

use crate::capabilities::Capabilities;
use crate::definitions::Definitions;
use crate::error::{Error, Result};
use crate::owned_values::OwnedValues;
use crate::parallel::{TeamWrite, not_by_several_ranks};
use crate::plain_place::PlainPlace;
use crate::refs::{GroupId, VarRef};
use crate::rules::PutRules;
use crate::storage::{Endianness, FilterSpec, Quantize, StorageRequest, VarInfo};
use crate::transfer::{Access, AttAccess, AttPut, Destination, Transfer, Values, VlenSource};

/// Whether elements never written hold the fill value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillMode {
    /// `NC_FILL`: space is filled when it comes into being.
    Fill,
    /// `NC_NOFILL`: space is left as it is.
    NoFill,
}

/// How a file ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The file stays.
    Keep,
    /// The file was being created and never got its definitions: it is to be removed.
    Remove,
}

/// Free space that `enddef` leaves between the parts of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reserve {
    /// What `nc_enddef` does: room for the header to grow, so that later attributes and variables
    /// rarely move data.
    #[default]
    Default,
    /// What `nc__enddef` does, all in bytes; `u64::MAX` as alignment means the I/O block size.
    Explicit {
        /// Room after the header.
        h_minfree: u64,
        /// Alignment of the first fixed-size variable.
        v_align: u64,
        /// Room after the fixed-size variables.
        v_minfree: u64,
        /// Alignment of the records.
        r_align: u64,
    },
}

/// An open file of a format. Methods with `&self` may run at the same time in several threads; those with `&mut self`
/// run alone.
///
/// The order of errors of each call is that of the reference for the format.
pub trait Dispatch: Send + Sync {
    /// What it can do.
    fn capabilities(&self) -> &'static Capabilities;

    /// The storage below, where the format stands on one.
    fn storage(&self) -> Option<&Arc<dyn Storage>>;

    /// Whether elements come over a network.
    fn is_remote(&self) -> bool {
        self.storage().is_some_and(|storage| storage.remote().is_some())
    }

    /// Its definitions.
    fn definitions(&self) -> &dyn Definitions;

    /// Whether it was opened for writing.
    fn is_writable(&self) -> bool {
        false
    }

    /// Whether definitions may be changed now.
    fn in_define_mode(&self) -> bool {
        false
    }

    /// Rank of a variable; 0 where there is no such variable, which the check reports.
    fn rank(&self, var: VarRef) -> usize;

    /// First step of a get: makes all checks that may refuse it, and notes in it how many bytes memory has to have.
    ///
    /// # Errors
    /// `NC_ENOTVAR`, `NC_ECHAR`, `NC_EINDEFINE`, `NC_EINVALCOORDS`, `NC_EEDGE`, `NC_ESTRIDE`,
    /// `NC_EBADTYPE`.
    fn check_get(&self, get: &mut Transfer<Access<'_>>) -> Result<()>;

    /// Second step of a get, which the first one has checked.
    ///
    /// # Errors
    /// What the storage and filters report; `NC_ENOMEM` where a place has no memory. Values that do not
    /// fit are counted.
    fn get(&self, get: &Transfer<Access<'_>>, room: Destination<'_>) -> Result<Converted>;

    /// Both steps of a get, for callers that know how long memory has to be.
    ///
    /// # Errors
    /// As for both; `NC_EINVAL` for memory of another length.
    fn get_now(&self, get: &mut Transfer<Access<'_>>, room: Destination<'_>) -> Result<Converted> {
        self.check_get(get)?;
        self.get(get, room)
    }

    /// A get of one number by a short way, which formats may have for what earlier gets have checked already. `None` where it has to go the
    /// ordinary way; `out` then holds anything. It need not fit the memory, which the ordinary way refuses.
    fn get_one(&self, _get: &Access<'_>, _out: &mut [u8]) -> Option<Converted> {
        None
    }

    /// First step of reading an attribute: how many bytes its values take in memory.
    ///
    /// # Errors
    /// `NC_ENOTVAR`, `NC_ENOTATT`, `NC_ECHAR`, `NC_EBADTYPE`.
    fn check_get_att(&self, get: &mut Transfer<AttAccess<'_>>) -> Result<()>;

    /// Second step of reading an attribute.
    ///
    /// # Errors
    /// As for a get.
    fn get_att(&self, get: &Transfer<AttAccess<'_>>, room: Destination<'_>) -> Result<Converted>;

    /// Whether a get can start. If not, the caller takes the file exclusively and ends define mode first
    /// ([`DispatchWrite::end_definitions`]).
    ///
    /// # Errors
    /// Why the get is refused where it must not end define mode.
    fn is_get_ready(&self, _get: &Access<'_>) -> Result<bool> {
        Ok(true)
    }

    /// Whether to try again what failed on damage: another program may have been writing what was read.
    fn read_again(&mut self, _tries: &mut u32) -> bool {
        false
    }

    /// How variables are stored, where the format can say.
    fn storage_of_vars(&self) -> Option<&dyn StoreVars> {
        None
    }

    /// Sees what other programs committed.
    ///
    /// # Errors
    /// What reading meets.
    fn refresh(&mut self) -> Result<()> {
        Ok(())
    }

    /// First step of a put that shares the file with others, as [`DispatchWrite::check_put`]. Formats with
    /// [`Capabilities::shared_puts`] implement this and the four methods below; they are not called for others.
    ///
    /// # Errors
    /// As there.
    fn check_shared_put(&self, _put: &mut Transfer<Access<'_>>) -> Result<()> {
        Err(NcError::Internal.into())
    }

    /// Second step of a put that shares the file with others, as [`DispatchWrite::put`].
    ///
    /// # Errors
    /// As there.
    fn shared_put(&self, _put: &Transfer<Access<'_>>, _values: Values<'_>) -> Result<Converted> {
        Err(NcError::Internal.into())
    }

    /// Both steps of a put that shares the file with others, as [`DispatchWrite::put_now`].
    ///
    /// # Errors
    /// As there.
    fn shared_put_now(
        &self,
        put: &mut Transfer<Access<'_>>,
        values: Values<'_>,
    ) -> Result<Converted> {
        self.check_shared_put(put)?;
        self.shared_put(put, values)
    }

    /// What puts to a variable certainly fit; `None` where only the put itself can say.
    fn put_rules(&self, _var: VarRef) -> Option<PutRules> {
        None
    }

    /// Where the elements of a variable are, if they may be read and written there without the format: side by side in the storage, as in memory but
    /// for the order of bytes, and none that only a put itself brings into being.
    fn plain_place(&self, _var: VarRef) -> Option<PlainPlace> {
        None
    }

    /// Counter of records that inquiries show: with those of puts that were accepted and are not yet carried out. The
    /// queue that accepts puts updates it without a lock of the file.
    fn n_accepted(&self) -> Option<&Arc<AtomicU64>> {
        None
    }

    /// A view of the definitions, for inquiries while another thread uses the file to carry out puts of a queue.
    /// Formats with shared puts, or that can only be read, do not need it.
    ///
    /// # Errors
    /// `NC_EINDEFINE` in define mode; what reading the definitions meets.
    fn view(&self) -> Result<Option<Box<dyn View>>> {
        Ok(None)
    }

    /// Name of a variable in the file as it was last committed; `None` where it was not committed, or a name on the
    /// path to it was changed since.
    fn committed_name(&self, _var: VarRef) -> Option<Box<[u8]>> {
        None
    }

    /// How many commits are known to be in the file, where the format counts them by itself.
    fn n_confirmed(&self) -> Option<u64> {
        None
    }

    /// Whether [`DispatchWrite::end_definitions`] may be called now.
    fn may_end_definitions(&self) -> bool {
        !self.in_define_mode()
    }

    /// The writing half. `None` where the format, or this file, can only be read.
    fn writer(&mut self) -> Option<&mut dyn DispatchWrite> {
        None
    }

    /// In a forked child, when the file was closed there: frees memory.
    fn leave(&mut self) {}

    /// The type that implements the format, for tools that know it.
    fn as_any(&self) -> &dyn Any;

    /// The same, to change the file.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

// By its name alone: else the table of each type's methods would have the text of all that the type holds.
impl std::fmt::Debug for dyn Dispatch + '_ {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Dispatch")
    }
}

/// A view of the definitions of a file, with lengths of its own.
pub trait View: Send + Sync {
    /// The file as it is with all accepted puts, for inquiries.
    fn file(&self) -> &dyn Dispatch;

    /// What puts to a variable certainly fit; `None` where only the put itself can say.
    ///
    /// # Errors
    /// `NC_EBADGRPID`, `NC_ENOTVAR`; what keeps attributes from being read.
    fn put_rules(&self, var: VarRef) -> Result<Option<PutRules>>;

    /// Grows lengths for a put that was accepted. Gives the smallest length before, of those that grew.
    fn grow(&mut self, var: VarRef, rules: &PutRules, slab: &Hyperslab<'_>) -> Option<u64>;

    /// Grows lengths for a put that is in the file already.
    fn grown(&mut self, var: VarRef, slab: &Hyperslab<'_>);

    /// A copy of elements of a type in the caller's memory, and of what they point to.
    ///
    /// # Errors
    /// `NC_EBADTYPE` for what is no type, `NC_ENOMEM` for sequences of impossible lengths.
    fn hold(&self, nc_type: i32, fetch: &mut dyn VlenSource, elems: &[u8]) -> Result<OwnedValues>;
}

// By its name alone: else the table of each type's methods would have the text of all that the type holds.
impl std::fmt::Debug for dyn View + '_ {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("View")
    }
}

/// An open file that can be changed.
pub trait DispatchWrite: Dispatch {
    /// First step of a put: makes all checks that may refuse it, and notes in it how many bytes memory has to have.
    ///
    /// # Errors
    /// `NC_EPERM`, `NC_EINDEFINE`, `NC_EGLOBAL`, `NC_ENOTVAR`, `NC_ECHAR`, `NC_EINVALCOORDS`,
    /// `NC_EEDGE`, `NC_ESTRIDE`, `NC_EBADTYPE`.
    fn check_put(&mut self, put: &mut Transfer<Access<'_>>) -> Result<()>;

    /// Second step of a put, which the first one has checked.
    ///
    /// # Errors
    /// What the storage and filters report. Values that do not fit are counted.
    fn put(&mut self, put: &Transfer<Access<'_>>, values: Values<'_>) -> Result<Converted>;

    /// Both steps of a put, for callers that know how long memory has to be.
    ///
    /// # Errors
    /// As for both; `NC_EINVAL` for memory of another length.
    fn put_now(&mut self, put: &mut Transfer<Access<'_>>, values: Values<'_>) -> Result<Converted> {
        self.check_put(put)?;
        self.put(put, values)
    }

    /// Makes lengths what they are after a put of elements that is made elsewhere.
    fn note_reach(&mut self, _var: VarRef, _slab: &Hyperslab<'_>) {}

    /// Stores complete chunks that wait in memory for others; those that fail stay in memory.
    ///
    /// # Errors
    /// What the storage reports.
    fn store_complete(&mut self) -> Result<()> {
        Ok(())
    }

    /// First step of writing an attribute: bytes that its values take in memory.
    ///
    /// # Errors
    /// `NC_EPERM`, `NC_ENOTVAR`, `NC_EBADTYPE`, `NC_ECHAR`, `NC_EINVAL`, `NC_ENOTINDEFINE`,
    /// `NC_EBADNAME`, `NC_EMAXNAME`.
    fn check_put_att(&mut self, att: &AttPut<'_>) -> Result<usize>;

    /// Second step of writing an attribute.
    ///
    /// # Errors
    /// As the first. Values that do not fit are counted.
    fn put_att(&mut self, att: &AttPut<'_>, values: Values<'_>) -> Result<Converted>;

    /// Deletes an attribute.
    ///
    /// # Errors
    /// `NC_ENOTINDEFINE`, `NC_ENOTVAR`, `NC_ENOTATT`.
    fn del_att(&mut self, owner: VarRef, name: &[u8]) -> Result<()>;

    /// Renames an attribute. In data mode, where the format has one, the new name must not be longer than the old
    /// one.
    ///
    /// # Errors
    /// `NC_EPERM`, `NC_ENOTVAR`, `NC_EBADNAME`, `NC_EMAXNAME`, `NC_ENOTATT`, `NC_ENAMEINUSE`,
    /// `NC_ENOTINDEFINE`.
    fn rename_att(&mut self, owner: VarRef, name: &[u8], new_name: &[u8]) -> Result<()>;

    /// Defines a dimension of a group; length 0 makes it unlimited.
    ///
    /// # Errors
    /// `NC_EPERM`, `NC_EBADGRPID`, `NC_ENOTINDEFINE`, `NC_EBADNAME`, `NC_EMAXNAME`, `NC_EDIMSIZE`,
    /// `NC_EUNLIMIT`, `NC_ENAMEINUSE`.
    fn def_dim(&mut self, group: GroupId, name: &[u8], len: usize) -> Result<DimId>;

    /// Renames a dimension seen from a group.
    ///
    /// # Errors
    /// As [`DispatchWrite::def_dim`]; `NC_EBADDIM`.
    fn rename_dim(&mut self, group: GroupId, dim: DimId, name: &[u8]) -> Result<()>;

    /// Defines a variable of a group over `dims`, slowest first, of the type numbered `nc_type`.
    ///
    /// # Errors
    /// `NC_EPERM`, `NC_EBADGRPID`, `NC_ENOTINDEFINE`, `NC_EBADNAME`, `NC_EMAXNAME`, `NC_EBADTYPE`,
    /// `NC_EMAXDIMS`, `NC_ENAMEINUSE`, `NC_EBADDIM`, `NC_EUNLIMPOS`; `NC_ESTRICTNC3`.
    fn def_var(&mut self, group: GroupId, name: &[u8], nc_type: i32, dims: &[i32])
    -> Result<VarId>;

    /// Renames a variable.
    ///
    /// # Errors
    /// `NC_EPERM`, `NC_EBADNAME`, `NC_EMAXNAME`, `NC_ENAMEINUSE`, `NC_ENOTVAR`, `NC_ENOTINDEFINE`.
    fn rename_var(&mut self, var: VarRef, name: &[u8]) -> Result<()>;

    /// Sets whether a variable is filled, and with what: one element in the form of memory.
    ///
    /// # Errors
    /// `NC_EPERM`, `NC_ENOTINDEFINE`, `NC_ENOTVAR`.
    fn def_var_fill(&mut self, var: VarRef, no_fill: bool, value: Option<Values<'_>>)
    -> Result<()>;

    /// Sets whether new space is filled; returns the old mode.
    ///
    /// # Errors
    /// `NC_EPERM`.
    fn set_fill(&mut self, mode: FillMode) -> Result<FillMode>;

    /// Enters define mode. What was put is committed.
    ///
    /// # Errors
    /// `NC_EPERM`, `NC_EINDEFINE`.
    fn redef(&mut self) -> Result<()>;

    /// Leaves define mode and commits.
    ///
    /// # Errors
    /// `NC_ENOTINDEFINE`; `NC_EVARSIZE`, after which define mode goes on; what the storage reports.
    fn enddef(&mut self, reserve: Reserve) -> Result<()>;

    /// Commits all puts and definitions.
    ///
    /// # Errors
    /// `NC_EINDEFINE`, and what the storage reports.
    fn sync(&mut self) -> Result<()>;

    /// Leaves define mode, as a get does where the format allows it, and commits.
    ///
    /// # Errors
    /// Those of a commit.
    fn end_definitions(&mut self) -> Result<()> {
        self.sync()
    }

    /// Reads anew what another writer of the process has changed.
    ///
    /// # Errors
    /// What reading meets.
    fn reread(&mut self) -> Result<()> {
        Ok(())
    }

    /// Sets whether the file keeps its length, since another id of the process may have written after the part that
    /// is in use.
    fn keep_end(&mut self, _keeps: bool) {}

    /// Commits what can be, for a process that ends without closing.
    ///
    /// # Errors
    /// What the storage reports.
    fn drain(&mut self) -> Result<()>;

    /// Commits, and closes the file. On an error it stays open with all that was not written, unless the error comes
    /// with an ending.
    ///
    /// # Errors
    /// What the storage reports, and how the file ended, if it did.
    fn close(&mut self) -> std::result::Result<Ending, (Error, Option<Ending>)>;

    /// Ends the file without its pending definitions.
    ///
    /// # Errors
    /// What the storage reports. The file has ended all the same.
    fn abort(&mut self) -> Result<Ending>;

    /// What the format does for several ranks.
    ///
    /// # Errors
    /// `NC_ENOPAR` where it does nothing.
    fn in_team(&mut self) -> Result<&mut dyn TeamWrite> {
        Err(not_by_several_ranks())
    }

    /// Definitions of groups and types.
    ///
    /// # Errors
    /// `NC_ENOTNC4` where the format has none.
    fn types(&mut self) -> Result<&mut dyn TypeDefinitions> {
        Err(NcError::NotNc4.into())
    }
}

/// Definitions of groups, types, and of how variables are stored.
pub trait TypeDefinitions {
    /// Defines a group in another.
    ///
    /// # Errors
    /// `NC_EBADGRPID`, `NC_EPERM`, `NC_ESTRICTNC3`, `NC_EBADNAME`, `NC_EMAXNAME`, `NC_ENAMEINUSE`.
    fn def_group(&mut self, parent: GroupId, name: &[u8]) -> Result<GroupId>;

    /// Renames a group; the root has no name to change (`NC_EBADGRPID`).
    ///
    /// # Errors
    /// As [`TypeDefinitions::def_group`].
    fn rename_group(&mut self, group: GroupId, name: &[u8]) -> Result<()>;

    /// Defines a compound type of `size` bytes in memory and gives its number.
    ///
    /// # Errors
    /// `NC_EPERM`, `NC_ESTRICTNC3`, `NC_EINVAL`, `NC_EBADNAME`, `NC_ENAMEINUSE`.
    fn def_compound(&mut self, group: GroupId, size: usize, name: &[u8]) -> Result<i32>;

    /// Adds a field at `offset` to a compound type that nothing uses yet.
    ///
    /// # Errors
    /// `NC_EBADTYPE`, `NC_ETYPDEFINED`, `NC_EBADNAME`, `NC_EINVAL`.
    fn insert_field(
        &mut self,
        compound: (GroupId, i32),
        name: &[u8],
        offset: usize,
        field_type: i32,
        dims: &[i32],
    ) -> Result<()>;

    /// Defines a type of sequences of any length of `base`, and gives its number.
    ///
    /// # Errors
    /// As [`TypeDefinitions::def_compound`]; `NC_EBADTYPE`.
    fn def_vlen(&mut self, group: GroupId, name: &[u8], base: i32) -> Result<i32>;

    /// Defines a type of so many bytes without meaning, and gives its number.
    ///
    /// # Errors
    /// As [`TypeDefinitions::def_compound`].
    fn def_opaque(&mut self, group: GroupId, size: usize, name: &[u8]) -> Result<i32>;

    /// Defines a type of named integers, and gives its number.
    ///
    /// # Errors
    /// As [`TypeDefinitions::def_compound`]; `NC_EBADTYPE`.
    fn def_enum(&mut self, group: GroupId, base: i32, name: &[u8]) -> Result<i32>;

    /// Adds a member, whose value is in native bytes of the integer type.
    ///
    /// # Errors
    /// As [`TypeDefinitions::insert_field`].
    fn insert_member(&mut self, of: (GroupId, i32), name: &[u8], value: &[u8]) -> Result<()>;

    /// Shuffles and deflates the chunks of a variable.
    ///
    /// # Errors
    /// `NC_ENOTVAR`, `NC_EPERM`, `NC_ELATEDEF`, `NC_EINVAL`, `NC_EFILTER`.
    fn def_var_deflate(&mut self, var: VarRef, shuffle: bool, level: Option<i32>) -> Result<()>;

    /// Gives each chunk of a variable a checksum.
    ///
    /// # Errors
    /// As [`TypeDefinitions::def_var_deflate`].
    fn def_var_fletcher32(&mut self, var: VarRef, on: bool) -> Result<()>;

    /// Adds a filter to those of a variable.
    ///
    /// # Errors
    /// As [`TypeDefinitions::def_var_deflate`]; `NC_ENOFILTER`.
    fn def_var_filter(&mut self, var: VarRef, filter: FilterSpec) -> Result<()>;

    /// Chooses the layout; `sizes` are elements of a chunk along each dimension, by default chosen.
    ///
    /// # Errors
    /// As [`TypeDefinitions::def_var_deflate`]; `NC_EBADCHUNK`.
    fn def_var_chunking(
        &mut self,
        var: VarRef,
        storage: StorageRequest,
        sizes: Option<&[usize]>,
    ) -> Result<()>;

    /// Chooses the byte order in the file.
    ///
    /// # Errors
    /// As [`TypeDefinitions::def_var_deflate`].
    fn def_var_endian(&mut self, var: VarRef, endianness: Endianness) -> Result<()>;

    /// Gives up precision for better compression. The mode is the number that C has for it, 0 for none; then come the
    /// digits or bits that are kept.
    ///
    /// # Errors
    /// As [`TypeDefinitions::def_var_deflate`].
    fn def_var_quantize(&mut self, var: VarRef, mode: i32, kept: i32) -> Result<()>;
}

/// How variables are stored.
pub trait StoreVars {
    /// How a variable is stored, its filters and fill value.
    ///
    /// # Errors
    /// `NC_EBADGRPID`, `NC_ENOTVAR`, `NC_EHDFERR`.
    fn var_info(&self, var: VarRef) -> Result<Arc<VarInfo>>;

    /// The precision that is given up, if any is.
    ///
    /// # Errors
    /// `NC_ENOTVAR`.
    fn var_quantize(&self, var: VarRef) -> Result<Option<Quantize>>;

    /// Fill value of a variable of any type, in the form it has in memory.
    ///
    /// # Errors
    /// As [`StoreVars::var_info`]; `NC_ENOMEM` where a place has no memory.
    fn fill_value(&self, var: VarRef, room: Destination<'_>) -> Result<()>;

    /// Chunk cache of a variable: bytes, slots, preemption.
    ///
    /// # Errors
    /// `NC_ENOTVAR`.
    fn chunk_cache(&self, var: VarRef) -> Result<(usize, usize, f32)>;

    /// Sets the least that the chunk cache of a variable may hold.
    ///
    /// # Errors
    /// `NC_ENOTVAR`, `NC_EINVAL` for a preemption outside 0 to 1.
    fn set_chunk_cache(&self, var: VarRef, cache: (usize, usize, f32)) -> Result<()>;
}
