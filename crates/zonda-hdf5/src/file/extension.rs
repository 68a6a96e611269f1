//! Superblock extension: an object header with what the superblock has no room for.
//! Spec: HDF5 File Format, "Disk Format: Level 0C - Superblock Extension". What it says of free
//! space and of cached metadata is right until another program writes to the file. A program that
//! does so removes it first.

use std::sync::atomic::Ordering;

use super::{File, split_error};
use crate::cache_image::Overlay;
use crate::message::{
    CacheImageMessage, FileSpaceInfo, KValues, SharedMessageTable, decode_driver_info, kind,
};
use crate::object_header::{Message, NewMessage, ObjectHeader};
use crate::{FileAddr, HdfError, Reader, Result, Writer};

/// What has to be written before anything is changed in a file that keeps a list of its free space,
/// or that has an image of the metadata cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtensionEdit {
    /// Metadata of the image, to be written to their own addresses. No reader uses the bytes there
    /// as long as there is an image.
    pub entries: Vec<(FileAddr, Vec<u8>)>,
    /// Blocks of the extension's header, to be written over when the entries are in the file. They
    /// need not lie in one sector.
    pub switches: Vec<(FileAddr, Vec<u8>)>,
    /// Space that is not used any more then: that of the image.
    pub freed: Vec<(FileAddr, u64)>,
}

impl File {
    /// Reads the superblock extension. Its messages are never shared. Damage of messages that do
    /// not matter for reading is kept in [`File::faults`]; damage of an image of the metadata cache
    /// is an error, since metadata may be nowhere else.
    pub(super) fn read_extension(&mut self, addr: FileAddr) -> Result<()> {
        let header = ObjectHeader::read(self, addr)?;
        let mut image = None;
        for message in &header.messages {
            let reader = header.reader(self.sizes(), message);
            if message.kind == kind::CACHE_IMAGE {
                image = Some(CacheImageMessage::decode(reader)?);
                continue;
            }
            match self.take(message, reader) {
                Err(error @ HdfError::Unsupported { .. }) => return Err(error),
                Err(error) => self.pass_over(error)?,
                Ok(()) => {}
            }
        }
        if let Some(CacheImageMessage { addr: Some(addr), len }) = image {
            self.overlay = Some(Overlay::read(self, addr, len)?);
        }
        Ok(())
    }

    /// Reads one message of the extension.
    ///
    /// # Errors
    /// [`HdfError::Unsupported`] for one of several files; damage of the message.
    fn take(&mut self, message: &Message, reader: Reader<'_>) -> Result<()> {
        match message.kind {
            kind::SHARED_MESSAGE_TABLE => {
                let table = SharedMessageTable::decode(reader);
                self.shared_messages = table.clone().map(Some);
                table.map(drop)
            }
            kind::K_VALUES => {
                let k = KValues::decode(reader)?;
                self.superblock.chunk_k = k.chunk;
                self.superblock.group_internal_k = k.group_internal;
                self.superblock.group_leaf_k = k.group_leaf;
                Ok(())
            }
            kind::DRIVER_INFO if decode_driver_info(reader)?.is_split() => {
                Err(split_error(&reader))
            }
            // A library that did not know the message has written to the file since, so what it
            // says of free space may be wrong. The HDF5 library does not use it then either.
            kind::FILE_SPACE_INFO if !message.was_unknown() => {
                self.file_space = Some(FileSpaceInfo::decode(reader)?);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The changes of the extension that have to be written before anything is put into the file,
    /// if there are any: after them no space is known to be free, and there is no image of the
    /// metadata cache. When all of them are written, [`File::extension_edited`] is to be called.
    ///
    /// The free-space managers themselves stay where they are, unused.
    ///
    /// # Errors
    /// Damage of the extension.
    pub fn edit_extension(&self) -> Result<Option<ExtensionEdit>> {
        let kept = self.file_space.as_ref().filter(|space| space.persistent);
        if kept.is_none() && !self.has_cache_image() {
            return Ok(None);
        }
        let Some(addr) = self.superblock.extension else { return Ok(None) };
        let header = ObjectHeader::read(self, addr)?;
        let switches = header.rewrite(self, &mut |message| match message.kind {
            kind::CACHE_IMAGE => Ok(None),
            kind::FILE_SPACE_INFO => {
                let info = FileSpaceInfo::decode(header.reader(self.sizes(), message))?;
                let mut writer = Writer::new(kind::name(message.kind), self.sizes());
                info.without_managers().encode(&mut writer)?;
                let body = writer.finish().into();
                Ok(Some(NewMessage { body, ..header.carry(message) }))
            }
            _ => Ok(Some(header.carry(message))),
        })?;
        let mut edit = ExtensionEdit { switches, ..ExtensionEdit::default() };
        if let Some(overlay) = self.overlay.as_ref().filter(|_| self.has_cache_image()) {
            edit.freed.push(overlay.extent());
            let base = self.superblock.base;
            for (at, bytes) in overlay.entries() {
                edit.entries.push((FileAddr(at.saturating_sub(base)), bytes.to_vec()));
            }
        }
        Ok(Some(edit))
    }

    /// Says that all of [`File::edit_extension`] has been written: metadata are where they belong.
    pub fn extension_edited(&self) {
        self.overlay_is_old.store(true, Ordering::Release);
        self.forget();
    }
}

#[cfg(test)]
mod tests;
