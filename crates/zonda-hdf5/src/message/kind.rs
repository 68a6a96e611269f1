//! Numbers of the message types.
//! Spec: HDF5 File Format, "Disk Format: Level 2A2 - Data Object Header Messages".

/// Free space in a header.
pub const NIL: u16 = 0x00;
/// Extent of a dataset or attribute.
pub const DATASPACE: u16 = 0x01;
/// Where the links of a group are.
pub const LINK_INFO: u16 = 0x02;
/// Type of the elements, or the type itself where it is committed.
pub const DATATYPE: u16 = 0x03;
/// Fill value, old form.
pub const OLD_FILL_VALUE: u16 = 0x04;
/// Fill value.
pub const FILL_VALUE: u16 = 0x05;
/// A link of a group.
pub const LINK: u16 = 0x06;
/// External files that hold the bytes of a dataset.
pub const EXTERNAL_FILES: u16 = 0x07;
/// Where the bytes of a dataset are.
pub const DATA_LAYOUT: u16 = 0x08;
/// Made by tests of the HDF5 library; never looked at.
pub const BOGUS: u16 = 0x09;
/// How a group keeps its links.
pub const GROUP_INFO: u16 = 0x0A;
/// Filters of a chunked dataset.
pub const FILTER_PIPELINE: u16 = 0x0B;
/// An attribute.
pub const ATTRIBUTE: u16 = 0x0C;
/// Comment on the object.
pub const COMMENT: u16 = 0x0D;
/// When the object was modified, old form.
pub const OLD_MODIFICATION_TIME: u16 = 0x0E;
/// Where the table of shared messages is.
pub const SHARED_MESSAGE_TABLE: u16 = 0x0F;
/// The header goes on elsewhere.
pub const CONTINUATION: u16 = 0x10;
/// Where the links of an old-style group are.
pub const SYMBOL_TABLE: u16 = 0x11;
/// When the object was modified.
pub const MODIFICATION_TIME: u16 = 0x12;
/// Sizes of version 1 B-trees.
pub const K_VALUES: u16 = 0x13;
/// File driver.
pub const DRIVER_INFO: u16 = 0x14;
/// Where the attributes of an object are.
pub const ATTRIBUTE_INFO: u16 = 0x15;
/// Number of hard links to an object.
pub const REFERENCE_COUNT: u16 = 0x16;
/// How space in the file is managed.
pub const FILE_SPACE_INFO: u16 = 0x17;
/// Image of the metadata cache.
pub const CACHE_IMAGE: u16 = 0x18;

/// Whether messages of this type may be shared between objects.
#[must_use]
pub fn may_be_shared(kind: u16) -> bool {
    matches!(kind, DATASPACE | DATATYPE | FILL_VALUE | FILTER_PIPELINE | ATTRIBUTE)
}

/// What the specification calls it.
#[must_use]
pub fn name(kind: u16) -> &'static str {
    match kind {
        NIL => "NIL message",
        DATASPACE => "dataspace message",
        LINK_INFO => "link info message",
        DATATYPE => "datatype message",
        OLD_FILL_VALUE => "old fill value message",
        FILL_VALUE => "fill value message",
        LINK => "link message",
        EXTERNAL_FILES => "external data files message",
        DATA_LAYOUT => "data layout message",
        BOGUS => "bogus message",
        GROUP_INFO => "group info message",
        FILTER_PIPELINE => "filter pipeline message",
        ATTRIBUTE => "attribute message",
        COMMENT => "object comment message",
        OLD_MODIFICATION_TIME => "old modification time message",
        SHARED_MESSAGE_TABLE => "shared message table message",
        CONTINUATION => "object header continuation message",
        SYMBOL_TABLE => "symbol table message",
        MODIFICATION_TIME => "modification time message",
        K_VALUES => "B-tree 'K' values message",
        DRIVER_INFO => "driver info message",
        ATTRIBUTE_INFO => "attribute info message",
        REFERENCE_COUNT => "object reference count message",
        FILE_SPACE_INFO => "file space info message",
        CACHE_IMAGE => "metadata cache image message",
        _ => "unknown message",
    }
}
