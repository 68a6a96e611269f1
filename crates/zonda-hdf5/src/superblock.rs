//! Superblock: where everything else of the file is found.
//! Spec: HDF5 File Format, "Disk Format: Level 0A - Format Signature and Superblock", "Level 0B -
//! File Driver Info". Versions 0 to 3 read, 2 and 3 written, of 0 and 1 only the end of the file.
//! Watch: addresses are relative to the base address, but the end of the file is counted from the
//! first byte. Where another tool has moved the superblock, the base address is not where it is:
//! then its place decides.

use crate::message::SymbolTableMessage;
use crate::symbol_table::CACHED_TABLE;
use crate::{FileAddr, HdfError, Reader, Result, Sizes, Writer};

/// What a superblock begins with.
pub const SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";

/// The superblock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// Version, 0 to 3.
    pub version: u8,
    /// Widths of addresses and lengths.
    pub sizes: Sizes,
    /// Byte of the file that addresses are relative to: where the superblock is.
    pub base: u64,
    /// The same as the file has it, which differs where other tools moved the superblock.
    pub stored_base: u64,
    /// Bytes of the file as its last writer left it, user block included.
    pub eof: u64,
    /// File consistency flags; see [`Superblock::marked_open_for_writing`].
    pub flags: u32,
    /// Half the entries of a symbol table node.
    pub group_leaf_k: u16,
    /// Half the children of a node of a group's version 1 B-tree.
    pub group_internal_k: u16,
    /// Half the children of a node of a chunk index's version 1 B-tree.
    pub chunk_k: u16,
    /// Header of the superblock extension (versions 2 and 3).
    pub extension: Option<FileAddr>,
    /// Driver information block (versions 0 and 1).
    pub driver_info: Option<FileAddr>,
    /// Object header of the root group.
    pub root: FileAddr,
}

impl Superblock {
    /// Bytes that hold a superblock of any version.
    pub const MAX_BYTES: usize = 104;

    /// Decodes the superblock at byte `at` of the file; `bytes` may go on after it.
    ///
    /// # Errors
    /// [`HdfError::NotHdf5`] without a signature; widths other than 2, 4 and 8 are not supported.
    pub fn decode(bytes: &[u8], at: u64) -> Result<Superblock> {
        let mut reader = Reader::new(NAME, bytes, at, Sizes::EIGHT);
        if !bytes.starts_with(&SIGNATURE) {
            return Err(HdfError::NotHdf5);
        }
        reader.skip(SIGNATURE.len())?;
        match reader.version(0..=3)? {
            version @ 0..=1 => Superblock::decode_old(reader, version, at),
            version => Superblock::decode_new(reader, version, bytes, at),
        }
    }

    /// Versions 0 and 1, from behind the version on.
    fn decode_old(mut reader: Reader<'_>, version: u8, base: u64) -> Result<Superblock> {
        for part in ["version of free space", "version of the root group's entry"] {
            zero(&mut reader, part)?;
        }
        reader.skip(1)?;
        zero(&mut reader, "version of shared headers")?;
        let sizes = sizes(&mut reader)?;
        reader.skip(1)?;
        let group_leaf_k = reader.u16()?;
        let group_internal_k = reader.u16()?;
        let flags = reader.u32()?;
        let mut chunk_k = DEFAULT_CHUNK_K;
        if version == 1 {
            chunk_k = reader.u16()?;
            reader.skip(2)?;
        }
        let mut reader = reader.with_sizes(sizes);
        let stored_base = reader.defined_addr("base address")?.0;
        reader.addr()?; // Free space, never written.
        let stored_eof = reader.defined_addr("end of file")?.0;
        let driver_info = reader.addr()?;
        // The root group's symbol table entry; what it caches is in the object header, too.
        reader.length()?;
        let root = reader.defined_addr("root group")?;
        if group_leaf_k == 0 || group_internal_k == 0 || chunk_k == 0 {
            return Err(reader.bad("half the entries of a B-tree node", 0));
        }
        let eof = moved(stored_eof, stored_base, base);
        Ok(Superblock {
            version,
            sizes,
            base,
            stored_base,
            eof,
            flags,
            group_leaf_k,
            group_internal_k,
            chunk_k,
            extension: None,
            driver_info,
            root,
        })
    }

    /// Versions 2 and 3, from behind the version on.
    fn decode_new(
        mut reader: Reader<'_>,
        version: u8,
        bytes: &[u8],
        base: u64,
    ) -> Result<Superblock> {
        let sizes = sizes(&mut reader)?;
        let flags = u32::from(reader.u8()?);
        let mut reader = reader.with_sizes(sizes);
        let stored_base = reader.defined_addr("base address")?.0;
        let extension = reader.addr()?;
        let stored_eof = reader.defined_addr("end of file")?.0;
        let root = reader.addr()?;
        reader.checksum(bytes)?;
        let root = root.ok_or_else(|| reader.missing("root group"))?;
        let eof = moved(stored_eof, stored_base, base);
        Ok(Superblock {
            version,
            sizes,
            base,
            stored_base,
            eof,
            flags,
            group_leaf_k: DEFAULT_GROUP_LEAF_K,
            group_internal_k: DEFAULT_GROUP_INTERNAL_K,
            chunk_k: DEFAULT_CHUNK_K,
            extension,
            driver_info: None,
            root,
        })
    }

    /// The superblock of a new file: version 2, the root group's header directly behind it.
    #[must_use]
    pub fn new(base: u64) -> Superblock {
        Superblock {
            version: 2,
            sizes: Sizes::EIGHT,
            base,
            stored_base: base,
            eof: base.saturating_add(FIRST_BYTES),
            flags: 0,
            group_leaf_k: DEFAULT_GROUP_LEAF_K,
            group_internal_k: DEFAULT_GROUP_INTERNAL_K,
            chunk_k: DEFAULT_CHUNK_K,
            extension: None,
            driver_info: None,
            root: FileAddr(FIRST_BYTES),
        }
    }

    /// Encodes versions 2 and 3, whole, with the place of the superblock as base address.
    ///
    /// # Errors
    /// [`HdfError::Unsupported`] for versions 0 and 1, [`HdfError::TooLarge`] for addresses that
    /// are wider than the file's.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let too_large = |_| HdfError::TooLarge { structure: NAME, value: u64::from(self.flags) };
        if self.version < 2 {
            let what = "writing versions 0 and 1";
            return Err(HdfError::Unsupported { structure: NAME, at: self.base, what });
        }
        let mut writer = Writer::new(NAME, self.sizes);
        writer.put(&SIGNATURE).u8(self.version).u8(self.sizes.offset).u8(self.sizes.length);
        writer.u8(u8::try_from(self.flags).map_err(too_large)?);
        writer.addr(Some(FileAddr(self.base)))?.addr(self.extension)?;
        writer.addr(Some(FileAddr(self.eof)))?.addr(Some(self.root))?;
        Ok(writer.finish_checked())
    }

    /// What to write over the superblock when the file gets a new end, `eof` bytes from its first
    /// byte: the byte of the file where that begins, and the bytes. Versions 2 and 3 have a
    /// checksum and change as a whole, 0 and 1 in one field. The flags of a writer that died with
    /// the file open are cleared: libraries refuse files that have them.
    ///
    /// # Errors
    /// As [`Superblock::encode`].
    pub fn encode_end(&self, eof: u64) -> Result<(u64, Vec<u8>)> {
        if self.version >= 2 {
            let flags = self.flags & !(OPEN_FOR_WRITING | OPEN_FOR_SWMR);
            return Ok((self.base, Superblock { eof, flags, ..self.clone() }.encode()?));
        }
        // Behind the base address and that of free space.
        let fields = if self.version == 0 { 24 } else { 28 };
        let skip = u64::from(self.sizes.offset).saturating_mul(2).saturating_add(fields);
        let mut writer = Writer::new(NAME, self.sizes);
        writer.addr(Some(FileAddr(moved(eof, self.base, self.stored_base))))?;
        Ok((self.base.saturating_add(skip), writer.finish()))
    }

    /// What to write over the superblock when the symbol table of the root group has moved: the
    /// byte of the file where that begins, and the bytes, which lie in one sector. Versions 0 and 1
    /// have a copy of the root group's message in the entry of the root group; the others have
    /// none.
    ///
    /// # Errors
    /// [`HdfError::TooLarge`] where an address is.
    pub fn encode_root_cache(&self, table: &SymbolTableMessage) -> Result<Option<(u64, Vec<u8>)>> {
        if self.version >= 2 {
            return Ok(None);
        }
        // Behind four addresses, the offset of a name, which is not used, and the address of the
        // header.
        let fields = if self.version == 0 { 24 } else { 28 };
        let addrs = u64::from(self.sizes.offset).saturating_mul(5);
        let skip = addrs.saturating_add(u64::from(self.sizes.length)).saturating_add(fields);
        let mut writer = Writer::new(NAME, self.sizes);
        writer.put(&CACHED_TABLE).u32(0);
        table.encode(&mut writer)?;
        Ok(Some((self.base.saturating_add(skip), writer.finish())))
    }

    /// Whether a writer has, or had when it died, the file open. Only version 3 means it: libraries
    /// set the flag in version 2, too, where it stays after a crash and nobody looks at it.
    #[must_use]
    pub fn marked_open_for_writing(&self) -> bool {
        self.version == 3 && self.flags & OPEN_FOR_WRITING != 0
    }

    /// Whether that writer writes for readers beside it (SWMR). Such a writer takes no lock that
    /// others would see.
    #[must_use]
    pub fn marked_swmr(&self) -> bool {
        self.version == 3 && self.flags & OPEN_FOR_SWMR != 0
    }
}

const NAME: &str = "superblock";

/// Bytes of the superblock of a new file.
const FIRST_BYTES: u64 = 48;

/// File consistency flags.
const OPEN_FOR_WRITING: u32 = 1;
const OPEN_FOR_SWMR: u32 = 4;

const DEFAULT_GROUP_LEAF_K: u16 = 4;
const DEFAULT_GROUP_INTERNAL_K: u16 = 16;
const DEFAULT_CHUNK_K: u16 = 32;

fn zero(reader: &mut Reader<'_>, what: &'static str) -> Result<()> {
    match reader.u8()? {
        0 => Ok(()),
        value => Err(reader.bad(what, u64::from(value))),
    }
}

fn sizes(reader: &mut Reader<'_>) -> Result<Sizes> {
    let sizes = Sizes { offset: reader.u8()?, length: reader.u8()? };
    for width in [sizes.offset, sizes.length] {
        match width {
            2 | 4 | 8 => {}
            16 | 32 => return Err(reader.unsupported("an address of 16 or 32 bytes")),
            _ => return Err(reader.bad("width of addresses or lengths", u64::from(width))),
        }
    }
    Ok(sizes)
}

/// The end of a file whose superblock is not where it was written, but `to` bytes from the first.
fn moved(eof: u64, from: u64, to: u64) -> u64 {
    if to >= from {
        eof.saturating_add(to.saturating_sub(from))
    } else {
        eof.saturating_sub(from.saturating_sub(to))
    }
}

/// Which driver wrote the file: its driver information block, or the message of the extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverInfo {
    /// Name of the driver, filled up with NULs.
    pub id: [u8; 8],
}

impl DriverInfo {
    /// Decodes the driver information block of superblock versions 0 and 1.
    ///
    /// # Errors
    /// Those of a structure that ends early or has another version.
    pub fn decode_block(mut reader: Reader<'_>) -> Result<DriverInfo> {
        reader.version(0..=0)?;
        reader.skip(3)?;
        reader.u32()?;
        Ok(DriverInfo { id: reader.array()? })
    }

    /// Whether the bytes of the file are distributed over several, which is not supported.
    #[must_use]
    pub fn is_split(&self) -> bool {
        matches!(&self.id, b"NCSAfami" | b"NCSAmult")
    }
}
