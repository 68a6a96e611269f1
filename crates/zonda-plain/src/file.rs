//! An open dataset: its modes, its records, its commits.

use zonda_convert::{Converted, Decoder, Encoder, RangeRule};
use zonda_format::{Access, Dispatch, Error, Format, Result, Transfer};
use zonda_model::{Answer, NcError};

use crate::arrays::{Arrays, Changes, MakeArrays};
use crate::model::{Model, index};

/// Rule for numbers that do not fit: they are stored as a cast makes them, and counted.
pub(crate) const RULE: RangeRule = RangeRule::Cast;

/// An open dataset of a format that implements [`Arrays`].
#[derive(Debug)]
pub struct PlainFile {
    pub(crate) arrays: Box<dyn Arrays>,
    pub(crate) model: Model,
    pub(crate) writable: bool,
    pub(crate) in_define: bool,
    /// Whether new variables are not filled.
    pub(crate) no_fill: bool,
    /// Number of variables whose values have a place.
    made: usize,
    /// Set until define mode ends for the first time.
    is_new: bool,
    pub(crate) changes: Changes,
}

impl PlainFile {
    /// Opens a dataset.
    ///
    /// # Errors
    /// `NC_EPERM` for one that is to be written and can only be read; what keeps its definitions from being read.
    pub fn open(mut arrays: impl Arrays + 'static, writable: bool) -> Result<Box<dyn Dispatch>> {
        if writable && arrays.maker().is_none() {
            return Err(Error::only_read());
        }
        let model = read(&mut arrays)?;
        let (made, changes) = (model.vars.len(), Changes::default());
        let new = PlainFile::new(arrays, model, changes);
        Ok(Box::new(PlainFile { writable, made, is_new: false, in_define: false, ..new }))
    }

    /// A new dataset, in define mode.
    pub fn create(arrays: impl Arrays + 'static, format: Format) -> Box<dyn Dispatch> {
        let changes = Changes { definitions: true, records: false };
        Box::new(PlainFile::new(arrays, Model::new(format), changes))
    }

    fn new(arrays: impl Arrays + 'static, model: Model, changes: Changes) -> PlainFile {
        let (arrays, made, no_fill) = (Box::new(arrays), 0, false);
        let (writable, in_define, is_new) = (true, true, true);
        PlainFile { arrays, model, writable, in_define, no_fill, made, is_new, changes }
    }

    /// Reads the definitions again. Where that fails, those that there were stay.
    pub(crate) fn reread(&mut self) -> Result<()> {
        self.model = read(&mut *self.arrays)?;
        Ok(())
    }

    pub(crate) fn require_writable(&self) -> Result<()> {
        if self.writable { Ok(()) } else { Err(NcError::Perm.into()) }
    }

    /// The definitions, to change them in define mode.
    pub(crate) fn require_define(&mut self) -> Result<&mut Model> {
        self.require_room(false)?;
        Ok(&mut self.model)
    }

    /// The same for changes that data mode allows, too, where nothing becomes longer.
    pub(crate) fn require_room(&mut self, fits: bool) -> Result<()> {
        if !self.in_define && !fits {
            return Err(NcError::NotInDefine.into());
        }
        self.changes.definitions = true;
        Ok(())
    }

    pub(crate) fn maker(&mut self) -> Result<(&mut dyn MakeArrays, &Model)> {
        let maker = self.arrays.maker().ok_or_else(Error::only_read)?;
        Ok((maker, &self.model))
    }

    pub(crate) fn get_checked(
        &self,
        get: &Transfer<Access<'_>>,
        out: &mut [u8],
    ) -> Result<Converted> {
        require_len(get, out.len())?;
        let Some(mem) = get.mem.filter(|_| get.n_elems > 0) else {
            return Ok(Converted::default());
        };
        let of = get.of();
        let var = self.model.var(of.var.var)?;
        let slab = of.slab.ranked(var.dims.len()).ok_or(NcError::Inval)?;
        let run = self.arrays.run(&self.model, index(of.var.var.0))?;
        let decoder = Decoder::new(var.ty, run.order, mem, RULE).map_err(|_| NcError::Char)?;
        run.get(&var.extent(self.model.records), &slab, &decoder, out)
    }

    pub(crate) fn put_checked(
        &mut self,
        put: &Transfer<Access<'_>>,
        data: &[u8],
    ) -> Result<Converted> {
        require_len(put, data.len())?;
        let Some(mem) = put.mem else { return Ok(Converted::default()) };
        let of = put.of();
        let var = self.model.var(of.var.var)?;
        let slab = of.slab.ranked(var.dims.len()).ok_or(NcError::Inval)?;
        let from = self.model.records;
        // Even a put of nothing at record n makes records 0 to n-1 exist, as in a classic file.
        let to = if var.is_record() { slab.axis(0).end().max(from) } else { from };
        if to > from {
            for (index, var) in self.model.vars.iter().enumerate() {
                if var.is_record() {
                    self.arrays.run(&self.model, index)?.extend(var, from, to)?;
                }
            }
        }
        let mut converted = Converted::default();
        if put.n_elems > 0 {
            let run = self.arrays.run(&self.model, index(of.var.var.0))?;
            let encoder = Encoder::new(var.ty, run.order, mem, RULE).map_err(|_| NcError::Char)?;
            converted = run.put(&var.extent(to), &slab, &encoder, data)?;
        }
        // New records count once their values are written.
        self.model.records = to;
        self.changes.records |= to > from;
        Ok(converted)
    }

    /// Ends define mode: new variables get their places.
    pub(crate) fn end_define(&mut self) -> Result<()> {
        self.require_define()?;
        for var in self.model.vars.iter().skip(self.made).filter(|var| !var.no_fill) {
            var.fill_value()?;
        }
        for index in self.made..self.model.vars.len() {
            let (maker, model) = self.maker()?;
            maker.make(model, index)?;
            let run = self.arrays.run(&self.model, index)?;
            if let Some(var) = self.model.vars.get(index) {
                run.extend(var, 0, self.model.records)?;
            }
            self.made = index.saturating_add(1);
        }
        self.commit()?;
        (self.in_define, self.is_new) = (false, false);
        Ok(())
    }

    pub(crate) fn commit(&mut self) -> Result<()> {
        let changes = self.changes;
        let (maker, model) = self.maker()?;
        maker.commit(model, changes)?;
        self.changes = Changes::default();
        Ok(())
    }

    /// Ends a dataset. True if it was new and its definitions never ended, so that it was removed.
    pub(crate) fn give_up(&mut self) -> Result<bool> {
        // Places may have been made before an error.
        let is_new = self.in_define && self.is_new;
        if is_new {
            self.maker()?.0.remove()?;
        }
        Ok(is_new)
    }
}

/// Reads the definitions and completes them, which a format may have done already; only then the shapes of variables
/// are known.
fn read(arrays: &mut dyn Arrays) -> Result<Model> {
    let damaged = |what| Error::answered(NcError::NotNc, Answer::Damaged, what);
    arrays.read()?.complete().map_err(damaged)
}

/// Fails for memory of another length than the check gave.
fn require_len<A>(of: &Transfer<A>, len: usize) -> Result<()> {
    if len == of.n_bytes { Ok(()) } else { Err(NcError::Inval.into()) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI32, Ordering};

    use zonda_convert::ByteOrder;
    use zonda_format::Destination;
    use zonda_model::{DimId, ExtType, Hyperslab, VarId};
    use zonda_storage::backend::Memory;

    use super::*;
    use crate::model::{Dim, Var};
    use crate::run::Run;

    /// One variable of bytes along dimension number `dim`, which can only be read.
    #[derive(Debug)]
    struct OnlyRead {
        bytes: Memory,
        dim: Arc<AtomicI32>,
    }

    impl Arrays for OnlyRead {
        fn read(&mut self) -> Result<Model> {
            let mut model = Model::new(Format::Cdf5);
            model.dims.push(Dim { name: b"x".to_vec(), len: 3 });
            let dims = vec![DimId(self.dim.load(Ordering::Relaxed))];
            model.vars.push(Var::new(b"v".to_vec(), ExtType::Byte, dims, false));
            Ok(model)
        }

        fn run(&self, _model: &Model, _index: usize) -> Result<Run<'_>> {
            Ok(Run { storage: &self.bytes, begin: 0, order: ByteOrder::Big })
        }
    }

    fn arrays(dim: i32) -> OnlyRead {
        OnlyRead { bytes: Memory::from_slice(b"abc"), dim: Arc::new(AtomicI32::new(dim)) }
    }

    fn get(file: &dyn Dispatch) -> Result<Vec<u8>> {
        let slab = Hyperslab { start: &[0], count: &[3], stride: None };
        let mut get = Transfer::new(Access { var: VarId(0).into(), slab, mem: None });
        file.check_get(&mut get)?;
        let mut out = vec![0; get.n_bytes];
        let _ = file.get(&get, Destination::plain(&mut out))?;
        Ok(out)
    }

    fn values(file: &dyn Dispatch) -> Vec<u8> {
        get(file).unwrap()
    }

    #[test]
    fn what_can_only_be_read_is_not_opened_for_writing() {
        let error = PlainFile::open(arrays(0), true).unwrap_err();
        assert_eq!(error.code(), NcError::Perm);
        assert!(error.to_string().ends_with("files of this format can only be read"), "{error}");
        let mut file = PlainFile::open(arrays(0), false).unwrap();
        assert!(!file.is_writable() && file.writer().is_none());
    }

    #[test]
    fn definitions_are_completed_for_a_format() {
        assert_eq!(values(&*PlainFile::open(arrays(0), false).unwrap()), b"abc");
        let error = PlainFile::open(arrays(1), false).unwrap_err();
        assert_eq!((error.code(), error.answer()), (NcError::NotNc, Answer::Damaged), "{error}");
    }

    #[test]
    fn definitions_that_cannot_be_read_again_leave_the_old_ones() {
        let arrays = arrays(0);
        let dim = Arc::clone(&arrays.dim);
        let mut file = PlainFile::open(arrays, false).unwrap();
        dim.store(1, Ordering::Relaxed);
        assert_eq!(file.refresh().unwrap_err().answer(), Answer::Damaged);
        assert_eq!(values(&*file), b"abc");
        dim.store(0, Ordering::Relaxed);
        file.refresh().unwrap();
        assert_eq!(values(&*file), b"abc");
    }

    #[test]
    fn a_file_that_ends_before_its_values_says_where() {
        let short = OnlyRead { bytes: Memory::from_slice(b"a"), ..arrays(0) };
        let file = PlainFile::open(short, false).unwrap();
        let error = get(&*file).unwrap_err();
        assert_eq!((error.code(), error.offset()), (NcError::Trunc, Some(1)), "{error}");
    }

    #[test]
    fn definitions_may_be_completed_twice() {
        let model = arrays(0).read().unwrap().complete().unwrap();
        let shape = |model: &Model| model.vars.iter().map(|var| var.extent(0)).collect::<Vec<_>>();
        let again = model.clone().complete().unwrap();
        assert_eq!(shape(&model), [[3]]);
        assert_eq!(shape(&again), [[3]]);
    }
}
