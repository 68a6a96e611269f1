#![doc = include_str!("../README.md")]
//!
//! [`typed`] is the way in: values are numbers, strings and structures of Rust.
//!
//! ```
//! use zonda::typed::File;
//!
//! # let path = std::env::temp_dir().join(format!("zonda-doc-{}.nc", std::process::id()));
//! let file = File::create(&path)?;
//! file.add_dimension("x", 3)?;
//! let height = file.add_variable::<f32>("height", &["x"])?;
//! height.put(.., &[1.0, 2.0, 3.0])?;
//! file.close()?;
//!
//! let file = File::open(&path)?;
//! assert_eq!(file.variable("height")?.get::<f64>(..)?, [1.0, 2.0, 3.0]);
//! # file.close()?;
//! # std::fs::remove_file(&path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Dataset`] is what it stands on, and what the C library, the command line and Python use: bytes in the layout of C, all
//! calls in netCDF's own words.
#![forbid(unsafe_code)]

mod attributes;
pub mod check;
mod classic;
pub mod copy;
mod damaged;
mod dap;
mod data;
mod dataset;
mod define;
mod definitions;
pub mod diff;
mod error;
mod failed_get;
mod format;
mod gaps;
mod leased_var;
mod mapped;
pub mod mpi;
mod nc4;
mod object_copy;
mod open;
mod open_file;
mod parallel;
mod patience;
mod place;
pub mod ranks;
mod recovery;
mod served;
pub mod servers;
mod sharing;
mod stored;
mod tuning;
mod type_shape;
pub mod typed;
mod write_behind;

pub use attributes::{GetAtt, PutAtt};
pub use damaged::{Fault, FaultKind};
pub use dap::names_dap;
pub use data::{CheckedGet, CheckedPut, Get, Put};
pub use dataset::{Dataset, FrozenFile};
pub use error::{Error, Result};
pub use format::{
    Detected, detect, detect_in, format_named, format_of_copy, formats_made, of_url, on_path,
    remove_on_path, stands_on_path,
};
pub use gaps::report_gaps;
pub use leased_var::LeasedVar;
pub use mapped::{MappedBlock, MappedSlab, RowMover};
pub use nc4::{check_filter, filter_id, filter_is_available, filter_name};
pub use object_copy::{VarToCopy, copy_attribute};
pub use open::{CreateOptions, OpenOptions, Persist, persist};
pub use place::{check_tls, is_url, shown_name};
pub use recovery::{Recovery, count_records, recover, recover_of, set_records};
pub use sharing::on_free_threads;
pub use type_shape::TypeShape;
pub use write_behind::helper::serve as serve_as_helper;
pub use write_behind::{WriteBehind, WriteBehindError, WriteBehindOptions};
pub use zonda_chunk::ChunkAt;
pub use zonda_convert::Converted;
pub use zonda_format::{Access, AttAccess, AttPut, Destination, Transfer, Values};
pub use zonda_format::{
    AttView, ClassicVar, DimView, Endianness, FIRST_USER_TYPE, Field, FillMode, FilterSpec, Format,
    GroupId, Layout, Member, Meta, NC_STRING, Quantize, QuantizeMode, Reserve, StorageKind,
    StorageRequest, UserClass, UserType, VarInfo, VarRef, VarView, VlenSink, VlenSource,
};
pub use zonda_model::{
    Answer, DimId, ExtType, Hyperslab, MAX_NAME_BYTES, MAX_VAR_DIMS, MemType, NcError, VarId,
    check_name, default_fill, filter_text, memory, normalize_name, release,
};
pub use zonda_nc4::{
    Damaged, ExtentKind, FileUsage, Gap, MOST_FILTER_PARAMS, ObjectUsage, StorageUse, UsedExtent,
};
pub use zonda_parallel::{BadHint, Gathering, Hints};
pub use zonda_plugin::set_path as set_plugin_path;
pub use zonda_runtime::callout::Stuck;
pub use zonda_served as served_files;
pub use zonda_slab as slab;
pub use zonda_storage as storage;
pub use zonda_storage::RemoteFailure;
pub use zonda_storage::url::RemoteSettings;
pub use zonda_team as team;
