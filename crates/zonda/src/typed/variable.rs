//! Variables: what they are, and their values.

use zonda_convert::Converted;
use zonda_format::{StorageRequest, VarRef};
use zonda_model::{ExtType, memory};

use super::attribute::{self, AttributeValue, FromAttribute};
use super::error::{Result, TypedError};
use super::file::File;
use super::group::{Dimension, dimension, text};
use super::selection::{AxisLength, Resolved, Selection};
use super::value::{At, Char, Number, Reading, Value, Writing};
use crate::{Dataset, Meta};

/// A variable of a file.
///
/// ```
/// use zonda::typed::File;
/// # let folder = std::env::temp_dir().join(format!("zonda-variable-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("t.nc");
/// let file = File::create(&path)?;
/// file.add_unlimited_dimension("time")?;
/// file.add_dimension("x", 2)?;
/// let t = file.add_variable::<f32>("t", &["time", "x"])?.deflated(1)?;
/// for step in 0..3 {
///     t.put((step, ..), &[step as f32, 0.5])?;
/// }
/// assert_eq!(t.shape()?, [3, 2]);
/// assert_eq!(t.get::<f64>((1.., 0))?, [1.0, 2.0]);
/// # file.close()?;
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Variable<'f> {
    file: &'f File,
    var: VarRef,
}

impl<'f> Variable<'f> {
    pub(super) fn new(file: &'f File, var: VarRef) -> Variable<'f> {
        Variable { file, var }
    }

    fn dataset(&self) -> &'f Dataset {
        self.file.dataset()
    }

    fn look<T>(&self, f: impl FnOnce(&Meta<'_>) -> crate::Result<T>) -> Result<T> {
        Ok(self.dataset().in_group(self.var.group, f)??)
    }

    /// How the dataset knows it.
    #[must_use]
    pub fn id(&self) -> VarRef {
        self.var
    }

    /// Name; empty where the definitions cannot be read.
    #[must_use]
    pub fn name(&self) -> String {
        self.look(|meta| Ok(text(meta.var(self.var.var)?.name))).unwrap_or_default()
    }

    /// The variable with the path of its file, for messages.
    fn object(&self) -> String {
        format!("{}: {}", self.dataset().path().display(), self.name())
    }

    /// Its dimensions, slowest first.
    ///
    /// # Errors
    /// What reading the definitions meets.
    pub fn dimensions(&self) -> Result<Vec<Dimension>> {
        self.look(|meta| {
            meta.var(self.var.var)?.dims.iter().map(|&id| dimension(meta, id)).collect()
        })
    }

    /// Its lengths now, slowest first.
    ///
    /// # Errors
    /// What reading the definitions meets.
    pub fn shape(&self) -> Result<Vec<u64>> {
        Ok(self.dimensions()?.into_iter().map(|dimension| dimension.len).collect())
    }

    /// The type of its values, if it is one of numbers or characters.
    ///
    /// # Errors
    /// What reading the definitions meets.
    pub fn number_type(&self) -> Result<Option<ExtType>> {
        self.look(|meta| Ok(ExtType::from_nc_type(meta.var(self.var.var)?.nc_type)))
    }

    /// Its type, and the lengths of its dimensions.
    fn facts(&self) -> Result<(i32, Vec<AxisLength>)> {
        self.look(|meta| {
            let var = meta.var(self.var.var)?;
            let axis = |&id| {
                let dim = meta.dim(id)?;
                let len = usize::try_from(dim.len).unwrap_or(usize::MAX);
                Ok(AxisLength { len, is_unlimited: dim.is_unlimited })
            };
            let axes = var.dims.iter().map(axis).collect::<crate::Result<_>>()?;
            Ok((var.nc_type, axes))
        })
    }

    /// Reads what is selected, row-major.
    ///
    /// # Errors
    /// [`TypedError::OutOfRange`] where values do not fit `T` ([`Variable::get_into`] gives those that do),
    /// [`TypedError::Type`], [`TypedError::Rank`]; `NC_EINVALCOORDS` and `NC_EEDGE` behind the end; what the storage reports.
    pub fn get<T: Value>(&self, selection: impl Into<Selection>) -> Result<Vec<T>> {
        self.get_shaped(&selection.into()).map(|(values, _)| values)
    }

    /// The same, and the number of elements along each dimension.
    fn get_shaped<T: Value>(&self, selection: &Selection) -> Result<(Vec<T>, Vec<usize>)> {
        self.file.transfer()?;
        let (nc_type, axes) = self.facts()?;
        let slab = selection.resolve(|| self.object(), &axes, None)?;
        let values = T::read(&self.reading(&slab, nc_type, &|| self.object())?)?;
        Ok((values, slab.count))
    }

    fn reading<'a>(
        &'a self,
        slab: &'a Resolved,
        nc_type: i32,
        object: &'a dyn Fn() -> String,
    ) -> Result<Reading<'a>> {
        let n_elems = slab.n_elems()?;
        Ok(Reading {
            dataset: self.dataset(),
            at: At::Var(self.var, slab),
            nc_type,
            n_elems,
            object,
        })
    }

    /// Reads numbers into memory that is there, row-major, and says how many did not fit `T`.
    ///
    /// ```
    /// # use zonda::typed::{Result, Variable};
    /// fn mean(variable: &Variable<'_>, memory: &mut [f64]) -> Result<f64> {
    ///     variable.get_into(0..memory.len(), memory)?;
    ///     Ok(memory.iter().sum::<f64>() / memory.len() as f64)
    /// }
    /// ```
    ///
    /// # Errors
    /// [`TypedError::Length`] for memory of another length than is selected; else as [`Variable::get`].
    pub fn get_into<T: Number>(
        &self,
        selection: impl Into<Selection>,
        out: &mut [T],
    ) -> Result<Converted> {
        self.file.transfer()?;
        let (nc_type, axes) = self.facts()?;
        let slab = selection.into().resolve(|| self.object(), &axes, None)?;
        let object = || self.object();
        let reading = self.reading(&slab, nc_type, &object)?;
        if reading.n_elems != out.len() {
            let (given, selected) = (out.len(), reading.n_elems);
            return Err(TypedError::Length { object: object(), given, selected });
        }
        reading.numbers(out)
    }

    /// Writes what is selected, row-major. An open range of an unlimited dimension (`..`, `5..`) takes as many elements
    /// as there are values for: the dimension grows.
    ///
    /// # Errors
    /// [`TypedError::Length`] for another number of values than are selected, [`TypedError::OutOfRange`] where some do not
    /// fit the variable's type (all others are written), [`TypedError::Type`], [`TypedError::Rank`]; `NC_EPERM`,
    /// `NC_EINVALCOORDS`, `NC_EEDGE`; what the storage reports.
    pub fn put<T: Value>(&self, selection: impl Into<Selection>, values: &[T]) -> Result<()> {
        self.file.transfer()?;
        let (nc_type, axes) = self.facts()?;
        let slab = selection.into().resolve(|| self.object(), &axes, Some(values.len()))?;
        let (object, n_elems) = (|| self.object(), slab.n_elems()?);
        if n_elems != values.len() {
            let (given, selected) = (values.len(), n_elems);
            return Err(TypedError::Length { object: object(), given, selected });
        }
        let at = At::Var(self.var, &slab);
        let object = &object;
        T::write(values, &Writing { dataset: self.dataset(), at, nc_type, n_elems, object })
    }

    /// Reads text of a variable of characters: the last dimension is the length of the texts, and what
    /// follows a NUL is no part of them.
    ///
    /// ```
    /// # use zonda::typed::File;
    /// # let folder = std::env::temp_dir().join(format!("zonda-text-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder)?;
    /// # let path = folder.join("t.nc");
    /// let file = File::options().classic().create(&path)?;
    /// file.add_dimension("station", 2)?;
    /// file.add_dimension("len", 4)?;
    /// let names = file.add_variable::<zonda::typed::Char>("name", &["station", "len"])?;
    /// names.put_text((.., ..), &["EGLL", "AB"])?;
    /// assert_eq!(names.get_text((.., ..))?, ["EGLL", "AB"]);
    /// # file.close()?;
    /// # std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`TypedError::Utf8`]; else as [`Variable::get`].
    pub fn get_text(&self, selection: impl Into<Selection>) -> Result<Vec<String>> {
        let (chars, counts) = self.get_shaped::<Char>(&selection.into())?;
        let len = counts.last().copied().unwrap_or(1);
        if len == 0 {
            let n = counts.iter().rev().skip(1).product();
            return Ok(memory::filled(n, String::new()).map_err(crate::Error::from)?);
        }
        let texts = chars.chunks(len).map(|text| {
            let bytes: Vec<u8> =
                text.iter().map(|char| char.0).take_while(|&byte| byte != 0).collect();
            String::from_utf8(bytes).map_err(|error| TypedError::Utf8 {
                object: self.object(),
                at: error.utf8_error().valid_up_to(),
            })
        });
        texts.collect()
    }

    /// Writes text into a variable of characters: each is filled up with NULs to the number of characters that are selected
    /// along the last dimension.
    ///
    /// # Errors
    /// [`TypedError::Length`] for text that is longer, or another number of texts; else as [`Variable::put`].
    pub fn put_text(&self, selection: impl Into<Selection>, texts: &[&str]) -> Result<()> {
        let selection = selection.into();
        let (_, axes) = self.facts()?;
        let last =
            selection.resolve(|| self.object(), &axes, None)?.count.last().copied().unwrap_or(1);
        if let Some(long) = texts.iter().find(|text| text.len() > last) {
            let (given, selected) = (long.len(), last);
            return Err(TypedError::Length { object: self.object(), given, selected });
        }
        let padded = texts.iter().flat_map(|text| {
            text.bytes().chain(std::iter::repeat_n(0, last - text.len())).map(Char)
        });
        self.put(selection, &padded.collect::<Vec<Char>>())
    }

    /// Names of its attributes.
    ///
    /// # Errors
    /// What reading them meets.
    pub fn attribute_names(&self) -> Result<Vec<String>> {
        attribute::names(self.file, self.var)
    }

    /// An attribute.
    ///
    /// # Errors
    /// `NC_ENOTATT`; a type that cannot be had as `A`.
    pub fn attribute<A: FromAttribute>(&self, name: &str) -> Result<A> {
        attribute::get(self.file, self.var, name)
    }

    /// Writes an attribute, in the place of one of that name.
    ///
    /// # Errors
    /// `NC_EPERM`, `NC_EBADNAME`; what the storage reports.
    pub fn put_attribute(&self, name: &str, value: impl Into<AttributeValue>) -> Result<()> {
        attribute::put(self.file, self.var, name, &value.into())
    }

    /// Has it stored in chunks of this shape. Before the first put.
    ///
    /// # Errors
    /// `NC_EBADCHUNK`; `NC_ENOTNC4` in a file without chunks.
    pub fn chunked(self, shape: &[usize]) -> Result<Variable<'f>> {
        self.file.define()?;
        self.dataset().def_var_chunking(self.var, StorageRequest::Chunked, Some(shape))?;
        Ok(self)
    }

    /// Has it compressed with deflate of this level (0 to 9), its bytes shuffled before. Before the first put.
    ///
    /// # Errors
    /// `NC_EINVAL` for another level; `NC_ENOTNC4` in a file without filters.
    pub fn deflated(self, level: i32) -> Result<Variable<'f>> {
        self.file.define()?;
        self.dataset().def_var_deflate(self.var, true, Some(level))?;
        Ok(self)
    }
}

/// Arrays with a shape.
#[cfg(feature = "ndarray")]
impl Variable<'_> {
    /// Reads what is selected as an array, with as many axes as the variable has.
    ///
    /// # Errors
    /// As [`Variable::get`].
    pub fn get_array<T: Value>(
        &self,
        selection: impl Into<Selection>,
    ) -> Result<ndarray::ArrayD<T>> {
        let (values, shape) = self.get_shaped(&selection.into())?;
        let n = values.len();
        ndarray::ArrayD::from_shape_vec(shape, values).map_err(|_| TypedError::Length {
            object: self.object(),
            given: n,
            selected: 0,
        })
    }

    /// Writes an array where it is selected: an array with as many axes as the variable has.
    ///
    /// # Errors
    /// As [`Variable::put`].
    pub fn put_array<T: Value + Clone, D: ndarray::Dimension>(
        &self,
        selection: impl Into<Selection>,
        array: &ndarray::ArrayRef<T, D>,
    ) -> Result<()> {
        match array.as_slice() {
            Some(values) => self.put(selection, values),
            None => self.put(selection, &array.iter().cloned().collect::<Vec<T>>()),
        }
    }
}
