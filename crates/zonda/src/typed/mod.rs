//! Datasets by Rust's own types: numbers, strings and structures go in and out as what they are.
//!
//! ```
//! use zonda::typed::File;
//!
//! # let folder = std::env::temp_dir().join(format!("zonda-typed-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let path = folder.join("heights.nc");
//! let file = File::create(&path)?;
//! file.add_dimension("x", 3)?;
//! let height = file.add_variable::<f32>("height", &["x"])?;
//! height.put_attribute("units", "m")?;
//! height.put(.., &[1.0, 2.5, 4.0])?;
//! file.close()?;
//!
//! let file = File::open(&path)?;
//! assert_eq!(file.variable("height")?.get::<f64>(1..)?, [2.5, 4.0]);
//! # drop(file);
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! It stands on [`Dataset`](crate::Dataset), which [`File::dataset`] gives for all else: transfers into memory of the
//! caller's own layout, storage of variables, chunks as they are stored. Define mode is entered and left as it is needed.
//!
//! | You want | Take |
//! |---|---|
//! | groups, dimensions, variables | [`File`], which is its root [`Group`] |
//! | values of a variable | [`Variable::get`], [`Variable::put`], with a [`Selection`] |
//! | values into memory that is there, and how many did not fit | [`Variable::get_into`] |
//! | structures | [`compound!`](crate::compound) |
//! | text of character variables | [`Variable::get_text`], [`Variable::put_text`] |
//! | arrays with a shape | `Variable::get_array`, with the feature `ndarray` |

mod attribute;
mod compound;
mod error;
mod file;
mod group;
mod selection;
mod text;
mod value;
mod variable;

pub use attribute::{AttributeValue, FromAttribute};
pub use compound::{Compound, CompoundField, FieldKind, FieldReader, FieldValue, FieldWriter};
#[doc(hidden)]
pub use compound::{load_compound, store_compound};
pub use error::{Result, TypedError};
pub use file::{File, FileOptions};
pub use group::{Dimension, Group};
pub use selection::{AxisSelection, Selection};
pub use value::{Char, Number, Value};
pub use variable::Variable;
