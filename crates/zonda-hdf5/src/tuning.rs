//! Numbers that change how fast reading and writing is, or how much of a damaged file is looked at, and
//! not what a sound file says.

use std::time::Duration;

/// Bytes of an object header that are read at first. Most headers are not longer, and a longer one costs
/// a second read. Rows: "open + every inquiry" of bench/reads.py.
pub(crate) const HEADER_READ_BYTES: u64 = 512;

/// Windows that are read ahead at a time: for headers, for their continuations, and one more of each for
/// the objects that a group was taken from. Rows: "open, N variables" of bench/reads.py.
pub(crate) const READ_AHEAD_WINDOWS: usize = 4;

/// Most bytes of a window that are read without having been asked for. More serves walks over more objects
/// and is wasted on others. Rows: "open, N variables" of bench/reads.py.
pub(crate) const READ_AHEAD_MAX_BYTES: u64 = 16 << 10;

/// Most bytes between two reads that still count as one behind the other: what else writers put between
/// two headers. Rows: "open, N variables" of bench/reads.py.
pub(crate) const READ_AHEAD_GAP_BYTES: u64 = 2 << 10;

/// Bytes that are read at once where a superblock may be. Small files have their root group there, too.
/// Rows: "open, 10 variables" of bench/reads.py.
pub(crate) const SUPERBLOCK_READ_BYTES: usize = 2048;

/// How long these bytes are taken for those of a file that was changed lately, which another program may
/// be writing: where the clock of a file system has steps, its stamps may not tell. No row: the files
/// that bench/reads.py opens were not changed lately.
pub(crate) const SUPERBLOCK_READ_LASTS: Duration = Duration::from_millis(5);

/// Seconds since the last change of a file from which on its stamps tell of each further change: more than
/// a step of the clock of any file system. Rows: "open, 10 variables" of bench/reads.py.
pub(crate) const SETTLED_SECONDS: u64 = 3;

/// Bytes of a version 1 B-tree node that are read at first, so that a small node costs one read. No row:
/// old groups alone are read so.
pub(crate) const BTREE_V1_READ_BYTES: u64 = 1024;

/// Bytes of a local heap that are read at first: header and names of a small group. No row: old groups
/// alone have one.
pub(crate) const LOCAL_HEAP_READ_BYTES: u64 = 512;

/// Faults of one damaged group after which no more links of it are looked for. No row: sound groups have
/// none.
pub(crate) const GROUP_FAULTS: usize = 1000;

/// How many times the length of the file the headers along one path may have together. A path may come
/// by a group more than once, but not for ever. No row: a bound for hostile files.
pub(crate) const PATH_FILE_LENGTHS: u64 = 64;

/// Bytes that an attribute which cannot be read counts for in the budget of its list, so that a search
/// for many such ends. No row: sound files have none.
pub(crate) const DAMAGED_ATTRIBUTE_BYTES: u64 = 4096;

/// Bytes that attributes which cannot be read may take from the budget of a list in any file, however
/// short. No row: sound files have none.
pub(crate) const DAMAGED_ATTRIBUTES_BYTES: u64 = 1 << 20;

/// Bytes of removed attributes in a heap that are no reason to write the list anew. Rows: "change 1
/// attribute" of bench/edits.py.
pub(crate) const REMOVED_ATTRIBUTES_BYTES: u64 = 4096;

/// The list is written anew when removed attributes have more bytes than those that are there, divided
/// by this. Rows: "change 1 attribute" of bench/edits.py.
pub(crate) const REMOVED_ATTRIBUTES_DIVISOR: u64 = 2;

/// Bytes of blocks that an open fractal heap keeps, so that objects which are listed in the order of
/// their names do not cost a block each. A single larger block is kept, too. Rows: "open + every inquiry,
/// 10 variables x 1000 attributes" of bench/reads.py.
pub(crate) const HEAP_BLOCK_CACHE_BYTES: usize = 32 << 20;

/// Most bytes of a block or object of a fractal heap before its filters. The largest blocks that the HDF5
/// library makes for groups and attributes have 64 KiB. No row: a bound for hostile files.
pub(crate) const UNFILTERED_MAX_BYTES: u64 = 256 << 20;

/// How many times shorter filters may make the objects of a fractal heap: similar names of links shrink
/// that much. No row: a bound for hostile files.
pub(crate) const FILTERED_HEAP_GAIN: u64 = 64;

/// Most bytes of a global heap collection that are read before its length is known. Rows: "strings, 10^6"
/// of bench/reads.py.
pub(crate) const COLLECTION_READ_MAX_BYTES: usize = 1 << 20;

/// Collections that a cursor holds. Writers fill several at once: where one has no space left for a
/// string, a shorter one still goes in, so that elements alternate between them. Rows: "strings, 10^6" of
/// bench/reads.py.
pub(crate) const CURSOR_COLLECTIONS: usize = 4;

/// Bytes of the collections that are kept after they were asked for once. Rows: "strings, 10^6" of
/// bench/reads.py.
pub(crate) const COLLECTIONS_ONCE_BYTES: usize = 1 << 20;

/// Number of the collections that are kept after they were asked for once. Rows: "strings, 10^6" of
/// bench/reads.py.
pub(crate) const COLLECTIONS_ONCE: usize = 32;

/// Addresses of forgotten collections that are remembered, to keep a collection that is asked for again:
/// 8 bytes each. Rows: "strings, 10^6" of bench/reads.py.
pub(crate) const FORGOTTEN_COLLECTIONS: usize = 1 << 16;

/// How often the lock of the collection cache is tried before a call goes on without the cache. A forked
/// child may find the lock held by a thread that it does not have. No row: nobody holds it for long.
pub(crate) const LOCK_TRIES: usize = 64;

/// Bytes of the longest collection for several objects: libhdf5 lets its own become no longer. Rows: "strings,
/// 10^6" of bench/writes.py.
pub(crate) const COLLECTION_MAX_BYTES: usize = 65_536;

/// Nodes of a B-tree of chunks that are read by one call of the storage, so that buffers stay small. Rows:
/// "open + one value, 1000000 chunks" of bench/reads.py.
pub(crate) const NODES_AT_ONCE: usize = 1024;

/// Bytes of the pages of a fixed array that are read at once where several are wanted. No row: files with
/// such an index are not in the benches but for "append 1 record" of bench/edits.py.
pub(crate) const ARRAY_PAGES_READ_BYTES: u64 = 4 << 20;

/// Bits of the slowest coordinate in a key of 8 bytes. It is mostly the one that grows, so it has more
/// than its share of the bits. No row: `costs`, an ignored test of the tree, measures keys.
pub(crate) const SLOWEST_COORD_BITS: u8 = 28;

/// Keys in a line of the processor's cache, 64 bytes. No row: `costs`, an ignored test of the tree,
/// measures the search.
pub(crate) const CACHE_LINE_KEYS: usize = 8;

/// Bytes of the longest journal that is read. No row: a bound for hostile files.
pub(crate) const JOURNAL_MAX_BYTES: u64 = 1 << 30;

/// Bytes that another user's journal may have besides eight times those of the file. No row: a bound for
/// hostile files.
pub(crate) const OTHERS_JOURNAL_BYTES: u64 = 1 << 20;

/// Most extents that an account of a file keeps, 40 bytes each. No row: a bound on memory.
pub(crate) const USAGE_EXTENTS: usize = 1 << 25;

/// Most overlaps, and most faults, that are listed one by one. No row: sound files have none.
pub(crate) const USAGE_REPORTS: usize = 1000;

/// Bytes of gaps that are read at once in the search for collections. No row: `zonda check` alone does so.
pub(crate) const GAP_SEARCH_BYTES: usize = 1 << 20;

/// Bytes of gaps that are searched in all: nobody waits longer for the answer. No row: `zonda check` alone
/// does so.
pub(crate) const GAP_SEARCH_MAX_BYTES: u64 = 1 << 30;

/// Bytes of a damaged file that are read at once in the search for objects. No row: `zonda copy` of
/// damaged files alone does so.
pub(crate) const SALVAGE_READ_BYTES: usize = 1 << 20;

/// Bytes of the longest link message that is searched for: a head, a name, an address. No row: damaged
/// files alone are searched.
pub(crate) const SALVAGE_LINK_BYTES: usize = 1100;

/// Most objects, nodes and heaps of each kind that the search keeps, 8 bytes each. No row: a bound on
/// memory.
pub(crate) const SALVAGE_MARKS: usize = 1 << 20;

/// Free runs that are tried, from the shortest that may do, before one that surely does: a file of many
/// objects has many short runs between them. Rows: "add 1 variable to 10,000" of bench/edits.py.
pub(crate) const BEST_FIT_TRIES: usize = 64;

/// Long enough free runs of which the lowest is taken for what stays where it is. Rows: "add 1 variable
/// to 10,000" of bench/edits.py.
pub(crate) const LOWEST_FIT_TRIES: usize = 512;

/// Up to so many bytes half of the file waits for readers before it is used again. Rows: "append 1 record"
/// of bench/edits.py.
pub(crate) const WAITING_MAX_BYTES: u64 = 64 << 20;

/// Bytes of memory of a new writer: enough for most messages. Rows: "create + define 1000
/// variables" of bench/writes.py.
pub(crate) const WRITER_BYTES: usize = 128;

/// Bytes of metadata that a remote storage is told of in one call. Rows: `bench/remote.py`.
pub(crate) const FORETOLD_BYTES: u64 = 64 << 20;

/// Ranges of metadata that a remote storage is told of in one call, 16 bytes each. Rows: `bench/remote.py`.
pub(crate) const FORETOLD_RANGES: usize = 1 << 18;

/// Leaves of a tree of chunks behind a server: from so many on, those that lie between the chunks may be asked for together with the chunks.
pub(crate) const LEAST_SCATTERED_LEAVES: usize = 16;

/// How many of them show whether anything else lies between them: as many as one trip brings.
pub(crate) const PROBED_LEAVES: usize = 8;

/// The longest run of leaves and chunks that is asked for together: half of what a file may have under way.
pub(crate) const MOST_SCATTERED_BYTES: u64 = 32 << 20;

/// One part in two to this power of such a run may be something else.
pub(crate) const SPARE_SHIFT: u32 = 5;

/// Bytes of an object header that a remote storage is asked for at first: most have no more, with what continues them nearby. Rows:
/// `bench/remote.py`.
pub(crate) const REMOTE_READ_BYTES: u64 = 4 << 10;

/// Bytes at the beginning of a file that the first request to a server brings, and that a rehearsal need not ask for one by one. Rows:
/// `bench/remote.py`.
pub(crate) const REMOTE_HEAD_BYTES: u64 = 256 << 10;

/// Messages there and back in which what a walk over all bytes of a remote file looks at comes; what is deeper is read one by one. Each begins with
/// what came before, in memory. No row: a bound for hostile files.
pub(crate) const USAGE_ROUNDS: u32 = 32;

/// Bytes that a rehearsal asks for in all. A file with more metadata is read on one by one. No row: a bound for hostile files.
pub(crate) const REHEARSED_BYTES: u64 = 256 << 20;

/// Most bytes that a thread keeps between two structures. Rows: "create + define 10 variables" of bench/writes.py.
pub(crate) const SCRATCH_MAX_BYTES: usize = 4 << 10;
