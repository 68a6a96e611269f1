//! Variables: what they are, and their values.

use zonda_convert::Converted;
use zonda_format::{StorageRequest, VarRef};
use zonda_model::{ExtType, NcError, memory};

use super::attribute::{self, AttributeValue, FromAttribute};
use super::error::{Result, TypedError, refused};
use super::file::File;
use super::group::{Dimension, dimension, text};
use super::selection::{AxisLength, Resolved, Selection};
use super::value::{At, Char, Number, Reading, Value, Writing, type_name};
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
    ///
    /// See [`Variable`].
    #[must_use]
    pub fn id(&self) -> VarRef {
        self.var
    }

    /// Name; empty where the definitions cannot be read.
    ///
    /// See [`Variable`].
    #[must_use]
    pub fn name(&self) -> String {
        self.look(|meta| Ok(text(meta.var(self.var.var)?.name))).unwrap_or_default()
    }

    /// Its name with the groups that it is in, but for the root.
    fn path(&self) -> String {
        let group = self.look(|meta| Ok(text(&meta.group_path()))).unwrap_or_default();
        format!("{group}/{}", self.name()).trim_start_matches('/').to_owned()
    }

    /// The variable with the path of its file, for messages.
    fn object(&self) -> String {
        format!("{}: {}", self.dataset().path().display(), self.path())
    }

    /// A definition of it, by what the dataset says.
    fn defined(self, done: crate::Result<()>) -> Result<Variable<'f>> {
        match done {
            Ok(()) => Ok(self),
            Err(error) => Err(self.refusal(error)),
        }
    }

    /// Its dimensions, slowest first.
    ///
    /// See [`Variable`].
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
    /// See [`Variable`].
    ///
    /// # Errors
    /// What reading the definitions meets.
    pub fn shape(&self) -> Result<Vec<u64>> {
        Ok(self.dimensions()?.into_iter().map(|dimension| dimension.len).collect())
    }

    /// The type of its values, if it is one of numbers or characters.
    ///
    /// See [`Variable`].
    ///
    /// # Errors
    /// What reading the definitions meets.
    pub fn number_type(&self) -> Result<Option<ExtType>> {
        self.look(|meta| Ok(ExtType::from_nc_type(meta.var(self.var.var)?.nc_type)))
    }

    /// The name of the type of its values: `float`, `string`, or what a type of the file is called.
    ///
    /// See [`Variable`].
    ///
    /// # Errors
    /// What reading the definitions meets.
    pub fn type_name(&self) -> Result<String> {
        let nc_type = self.look(|meta| Ok(meta.var(self.var.var)?.nc_type))?;
        Ok(type_name(self.dataset(), nc_type))
    }

    /// What is selected has to be there, or an unlimited dimension has to be one that `grows`. The dataset would find it,
    /// too, but not before there is memory for the values, and with other words in each format.
    fn check_inside(&self, slab: &Resolved, axes: &[AxisLength], grows: bool) -> Result<()> {
        slab.outside(axes, grows).map_or(Ok(()), |(at, code)| Err(self.outside(slab, at, code)))
    }

    #[cold]
    fn outside(&self, slab: &Resolved, at: usize, code: NcError) -> TypedError {
        let of = |list: &[usize]| list.get(at).copied().unwrap_or_default();
        let step = slab.stride.get(at).copied().unwrap_or(1);
        let (name, len) = match self.dimensions() {
            Ok(dims) => dims.into_iter().nth(at).map(|dim| (dim.name, dim.len)).unwrap_or_default(),
            Err(error) => return error,
        };
        let (start, count) = (of(&slab.start), of(&slab.count));
        let steps = if step == 1 { String::new() } else { format!(" in steps of {step}") };
        let text = format!(
            "{}: {code}: {count} elements from {start} on{steps} are selected of dimension {name}, which has {len}",
            self.path()
        );
        crate::Error::with_text(code, text).at(self.dataset().path()).into()
    }

    /// An error with the variable.
    #[cold]
    fn refused(&self, error: TypedError) -> TypedError {
        match error {
            TypedError::Dataset(error) => self.refusal(error),
            error => error,
        }
    }

    #[cold]
    fn refusal(&self, error: crate::Error) -> TypedError {
        refused(error, self.dataset(), "variable", &format!("/{}", self.path()))
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
        let slab = self.resolve(selection, &axes, None)?;
        self.check_inside(&slab, &axes, false)?;
        let object = || self.object();
        let values = self.reading(&slab, nc_type, &object).and_then(|reading| T::read(&reading));
        match values {
            Ok(values) => Ok((values, slab.count)),
            Err(error) => Err(self.refused(error)),
        }
    }

    fn resolve(
        &self,
        selection: &Selection,
        axes: &[AxisLength],
        n_values: Option<usize>,
    ) -> Result<Resolved> {
        let resolved = selection.resolve(|| self.object(), axes, n_values);
        resolved.map_err(|error| self.refused(error))
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
    ///     let converted = variable.get_into(0..memory.len(), memory)?;
    ///     assert_eq!(converted.out_of_range, 0);
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
        let slab = self.resolve(&selection.into(), &axes, None)?;
        self.check_inside(&slab, &axes, false)?;
        let object = || self.object();
        let reading = self.reading(&slab, nc_type, &object)?;
        if reading.n_elems != out.len() {
            let (given, selected) = (out.len(), reading.n_elems);
            return Err(TypedError::Length { object: object(), given, selected });
        }
        reading.numbers(out).map_err(|error| self.refused(error))
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
        let slab = self.resolve(&selection.into(), &axes, Some(values.len()))?;
        self.check_inside(&slab, &axes, true)?;
        let object = || self.object();
        // More than any list can have values are another number, too.
        let n_elems = slab.n_elems().unwrap_or(usize::MAX);
        if n_elems != values.len() {
            let (given, selected) = (values.len(), n_elems);
            return Err(TypedError::Length { object: object(), given, selected });
        }
        let at = At::Var(self.var, &slab);
        let object = &object;
        T::write(values, &Writing { dataset: self.dataset(), at, nc_type, n_elems, object })
            .map_err(|error| self.refused(error))
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
    /// [`TypedError::Length`] for text that is longer, or another number of texts, [`TypedError::Nul`]; else as [`Variable::put`].
    pub fn put_text(&self, selection: impl Into<Selection>, texts: &[&str]) -> Result<()> {
        let selection = selection.into();
        let (_, axes) = self.facts()?;
        let last = self.resolve(&selection, &axes, None)?.count.last().copied().unwrap_or(1);
        if let Some(at) = texts.iter().find_map(|text| text.find('\0')) {
            return Err(TypedError::Nul { object: self.object(), at });
        }
        if let Some(long) = texts.iter().find(|text| text.len() > last) {
            let (given, selected) = (long.len(), last);
            return Err(TypedError::Length { object: self.object(), given, selected });
        }
        let no_memory = |error: crate::Error| self.refusal(error);
        let n_chars =
            texts.len().checked_mul(last).ok_or_else(|| no_memory(NcError::NoMem.into()))?;
        let mut chars =
            memory::filled(n_chars, Char(0)).map_err(|error| no_memory(error.into()))?;
        // Without room for characters there are only empty texts.
        for (text, chars) in texts.iter().zip(chars.chunks_exact_mut(last.max(1))) {
            for (char, byte) in chars.iter_mut().zip(text.bytes()) {
                *char = Char(byte);
            }
        }
        self.put(selection, &chars)
    }

    /// Names of its attributes.
    ///
    /// See [`FromAttribute`].
    ///
    /// # Errors
    /// What reading them meets.
    pub fn attribute_names(&self) -> Result<Vec<String>> {
        attribute::names(self.file, self.var)
    }

    /// An attribute.
    ///
    /// See [`FromAttribute`].
    ///
    /// # Errors
    /// `NC_ENOTATT`; a type that cannot be had as `A`.
    pub fn attribute<A: FromAttribute>(&self, name: &str) -> Result<A> {
        attribute::get(self.file, self.var, name)
    }

    /// Writes an attribute, in the place of one of that name.
    ///
    /// See [`AttributeValue`].
    ///
    /// # Errors
    /// `NC_EPERM`, `NC_EBADNAME`; what the storage reports.
    pub fn put_attribute(&self, name: &str, value: impl Into<AttributeValue>) -> Result<()> {
        attribute::put(self.file, self.var, name, &value.into())
    }

    /// Has it stored in chunks of this shape. Before the first put.
    ///
    /// See [`Variable`].
    ///
    /// # Errors
    /// `NC_EBADCHUNK`; `NC_ENOTNC4` in a file without chunks.
    pub fn chunked(self, shape: &[usize]) -> Result<Variable<'f>> {
        let rank = self.dimensions()?.len();
        if shape.len() != rank {
            return Err(TypedError::Rank { object: self.object(), given: shape.len(), rank });
        }
        self.defined(self.file.define())?;
        self.defined(self.dataset().def_var_chunking(
            self.var,
            StorageRequest::Chunked,
            Some(shape),
        ))
    }

    /// Has it compressed with deflate of this level (0 to 9), its bytes shuffled before. Before the first put.
    ///
    /// See [`Variable`].
    ///
    /// # Errors
    /// `NC_EINVAL` for another level; `NC_ENOTNC4` in a file without filters.
    pub fn deflated(self, level: i32) -> Result<Variable<'f>> {
        self.defined(self.file.define())?;
        self.defined(self.dataset().def_var_deflate(self.var, true, Some(level)))
    }
}

/// Arrays with a shape.
#[cfg(feature = "ndarray")]
impl Variable<'_> {
    /// Reads what is selected as an array, with as many axes as the variable has: one that is selected by a number has length 1.
    ///
    /// See [`Variable::put_array`].
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

    /// Writes an array where it is selected. The array has the shape of the selection; axes of one element may be left out.
    ///
    /// ```
    /// # use zonda::typed::{File, TypedError};
    /// # let folder = std::env::temp_dir().join(format!("zonda-put-array-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder)?;
    /// # let path = folder.join("a.nc");
    /// let file = File::create(&path)?;
    /// file.add_unlimited_dimension("time")?;
    /// file.add_dimension("x", 2)?;
    /// let v = file.add_variable::<f32>("v", &["time", "x"])?;
    /// v.put_array((0, ..), &ndarray::array![1.0f32, 2.0])?; // one record
    /// v.put_array((1.., ..), &ndarray::array![[3.0f32, 4.0], [5.0, 6.0]])?; // two more
    /// assert_eq!(v.get_array::<f64>((.., 0))?, ndarray::array![[1.0], [3.0], [5.0]].into_dyn());
    /// let turned = v.put_array((.., ..), &ndarray::array![[1.0f32, 3.0, 5.0], [2.0, 4.0, 6.0]]);
    /// assert!(matches!(turned, Err(TypedError::Shape { .. })));
    /// # file.close()?;
    /// # std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`TypedError::Shape`]; else as [`Variable::put`].
    pub fn put_array<T: Value + Clone, D: ndarray::Dimension>(
        &self,
        selection: impl Into<Selection>,
        array: &ndarray::ArrayRef<T, D>,
    ) -> Result<()> {
        let selection = selection.into();
        let (_, axes) = self.facts()?;
        let slab = self.resolve(&selection, &axes, Some(array.len()))?;
        let long =
            |shape: &[usize]| -> Vec<usize> { shape.iter().copied().filter(|&n| n != 1).collect() };
        if long(array.shape()) != long(&slab.count) {
            let (object, given) = (self.object(), array.shape().to_vec());
            return Err(TypedError::Shape { object, given, selected: slab.count });
        }
        match array.as_slice() {
            Some(values) => self.put(selection, values),
            None => {
                let mut values = memory::room(array.len()).map_err(crate::Error::from)?;
                values.extend(array.iter().cloned());
                self.put(selection, &values)
            }
        }
    }
}
