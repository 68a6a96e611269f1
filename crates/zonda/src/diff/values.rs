//! Values of two files, compared one by one.

use std::ops::ControlFlow;

use zonda_format::StorageKind;
use zonda_model::{ExtType, MemType, memory};
use zonda_nc4::UnwrittenElements;
use zonda_slab::unrank;

use super::forms::ComparedForm;
use super::{Comparison, Difference, DifferenceKind, ObjectKind};
use crate::copy::Progress;
use crate::copy::box_read::read_box;
use crate::copy::boxes::{BoxWalk, BoxedArray, ChunksPresent, choose, choose_around};
use crate::copy::tree::{VarDef, shown};
use crate::copy::vlen_buffer::VlenBuffer;
use crate::dataset::Dataset;
use crate::error::Result;
use crate::tuning::{ABSENT_PER_CHUNK, DIFF_BOX_BYTES, POINTER_VALUE_BYTES};

/// Most characters of a text that are shown.
const MOST_SHOWN: usize = 60;

/// How different two numbers may be: no more than the absolute tolerance and the relative one times the larger of
/// them together. Infinity is equal to itself only.
///
/// See [`diff`](crate::diff::diff()).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tolerance {
    /// The absolute part.
    pub absolute: f64,
    /// The relative part.
    pub relative: f64,
}

impl Tolerance {
    fn allows(self, a: f64, b: f64, gap: f64) -> bool {
        let largest = a.abs().max(b.abs());
        largest.is_finite() && gap <= self.absolute + self.relative * largest
    }
}

/// How values of a variable are different.
///
/// See [`diff`](crate::diff::diff()).
#[derive(Clone, Debug, PartialEq)]
pub struct ValuesDiffer {
    /// Number of values that are different.
    pub n: u64,
    /// Number of values that were compared.
    pub of: u64,
    /// Indices of the first one, slowest dimension first.
    pub at: Vec<u64>,
    /// That value in the first file.
    pub first: String,
    /// That value in the second file.
    pub second: String,
    /// The largest difference of two finite numbers, and where it is; `None` where there is none.
    pub largest: Option<(f64, Vec<u64>)>,
}

/// Values in memory, and what they point to.
#[derive(Clone, Copy)]
pub(super) struct ComparedValues<'a> {
    pub bytes: &'a [u8],
    pub pieces: &'a VlenBuffer,
}

impl<'a> ComparedValues<'a> {
    fn at(&self, index: usize, size: usize) -> ComparedValues<'a> {
        let bytes =
            index.checked_mul(size).and_then(|from| self.bytes.get(from..from.checked_add(size)?));
        ComparedValues { bytes: bytes.unwrap_or_default(), pieces: self.pieces }
    }

    /// The values from a byte on.
    fn behind(&self, offset: usize) -> ComparedValues<'a> {
        ComparedValues { bytes: self.bytes.get(offset..).unwrap_or_default(), pieces: self.pieces }
    }

    fn word(&self, at: usize) -> u64 {
        let word = self.bytes.get(at..at + 8).and_then(|bytes| bytes.first_chunk());
        word.map_or(0, |bytes| u64::from_ne_bytes(*bytes))
    }

    /// The text of a string; one that was never written is empty.
    fn text(&self) -> &'a [u8] {
        self.pieces.get(self.word(0)).unwrap_or_default()
    }

    /// The items of a sequence, and how many.
    fn items(&self) -> (ComparedValues<'a>, usize) {
        let n = usize::try_from(self.word(0)).unwrap_or(usize::MAX);
        let bytes = self.pieces.get(self.word(8)).unwrap_or_default();
        (ComparedValues { bytes, pieces: self.pieces }, n)
    }
}

/// Calls a macro with the Rust type of an atomic type.
macro_rules! with_type {
    ($ext:expr, $call:ident) => {
        match $ext {
            ExtType::Byte => $call!(i8),
            ExtType::Char | ExtType::UByte => $call!(u8),
            ExtType::Short => $call!(i16),
            ExtType::Int => $call!(i32),
            ExtType::Float => $call!(f32),
            ExtType::Double => $call!(f64),
            ExtType::UShort => $call!(u16),
            ExtType::UInt => $call!(u32),
            ExtType::Int64 => $call!(i64),
            ExtType::UInt64 => $call!(u64),
        }
    };
}

/// A number, for [`compare`].
trait Comparable: Copy + PartialEq + std::fmt::Display {
    /// The number as a double, and its distance from another one. 64-bit integers are subtracted before rounding.
    fn gap(self, other: Self) -> (f64, f64, f64);
    fn is_nan(self) -> bool;
}

macro_rules! integer {
    ($($ty:ty)*) => {$(
        impl Comparable for $ty {
            fn gap(self, other: Self) -> (f64, f64, f64) {
                let gap = i128::from(self) - i128::from(other);
                (self as f64, other as f64, gap.unsigned_abs() as f64)
            }
            fn is_nan(self) -> bool {
                false
            }
        }
    )*};
}
integer!(i8 u8 i16 u16 i32 u32 i64 u64);

macro_rules! float {
    ($($ty:ty)*) => {$(
        impl Comparable for $ty {
            fn gap(self, other: Self) -> (f64, f64, f64) {
                let (a, b) = (f64::from(self), f64::from(other));
                (a, b, (a - b).abs())
            }
            fn is_nan(self) -> bool {
                self.is_nan()
            }
        }
    )*};
}
float!(f32 f64);

/// Calls a function for each of `n` values that is different: with its index, and for numbers the difference.
pub(super) fn compare(
    form: &ComparedForm,
    (a, b): (ComparedValues<'_>, ComparedValues<'_>),
    n: usize,
    tolerance: Tolerance,
    found: &mut dyn FnMut(usize, Option<f64>),
) {
    if a.bytes == b.bytes && !form.has_pointers() {
        return;
    }
    if let ComparedForm::Plain(ext) = form {
        macro_rules! plain {
            ($ty:ty) => {{
                let (a, _) = a.bytes.as_chunks::<{ size_of::<$ty>() }>();
                let (b, _) = b.bytes.as_chunks::<{ size_of::<$ty>() }>();
                for (index, (a, b)) in a.iter().zip(b).take(n).enumerate() {
                    if let Some(gap) =
                        differ(<$ty>::from_ne_bytes(*a), <$ty>::from_ne_bytes(*b), tolerance)
                    {
                        found(index, (*ext != ExtType::Char).then_some(gap));
                    }
                }
            }};
        }
        with_type!(*ext, plain);
        return;
    }
    let size = form.size();
    for index in 0..n {
        if !same(form, (a.at(index, size), b.at(index, size)), tolerance) {
            found(index, None);
        }
    }
}

/// The difference of two numbers; `None` where it is within the tolerance.
fn differ<T: Comparable>(a: T, b: T, tolerance: Tolerance) -> Option<f64> {
    if a == b || (a.is_nan() && b.is_nan()) {
        return None;
    }
    let (x, y, gap) = a.gap(b);
    (!tolerance.allows(x, y, gap)).then_some(gap)
}

/// Whether two values are the same.
fn same(
    form: &ComparedForm,
    (a, b): (ComparedValues<'_>, ComparedValues<'_>),
    tolerance: Tolerance,
) -> bool {
    match form {
        ComparedForm::Plain(_) => all_same(form, (a, b), 1, tolerance),
        ComparedForm::Opaque(_) => a.bytes == b.bytes,
        ComparedForm::Text => a.text() == b.text(),
        ComparedForm::Items(item) => {
            let ((a, n), (b, m)) = (a.items(), b.items());
            n == m && all_same(item, (a, b), n, tolerance)
        }
        ComparedForm::Fields(fields, _) => fields.iter().all(|(offset, n, form)| {
            all_same(form, (a.behind(*offset), b.behind(*offset)), *n, tolerance)
        }),
    }
}

fn all_same(
    form: &ComparedForm,
    (a, b): (ComparedValues<'_>, ComparedValues<'_>),
    n: usize,
    tolerance: Tolerance,
) -> bool {
    let len = n.saturating_mul(form.size());
    let cut = |of: ComparedValues<'_>| of.bytes.len().min(len);
    let (a, b) = (
        ComparedValues { bytes: &a.bytes[..cut(a)], ..a },
        ComparedValues { bytes: &b.bytes[..cut(b)], ..b },
    );
    let mut same = a.bytes.len() == b.bytes.len();
    compare(form, (a, b), n, tolerance, &mut |_, _| same = false);
    same
}

/// A number as text; empty for other types.
pub(super) fn number(form: &ComparedForm, bytes: &[u8]) -> String {
    let pieces = VlenBuffer::default();
    value(form, ComparedValues { bytes, pieces: &pieces })
}

/// A value as text.
pub(super) fn value(form: &ComparedForm, of: ComparedValues<'_>) -> String {
    match form {
        ComparedForm::Plain(ExtType::Char) => quoted(of.bytes.get(..1).unwrap_or_default()),
        ComparedForm::Plain(ext) => {
            macro_rules! plain {
                ($ty:ty) => {
                    of.bytes
                        .first_chunk()
                        .map_or_else(String::new, |bytes| <$ty>::from_ne_bytes(*bytes).to_string())
                };
            }
            with_type!(*ext, plain)
        }
        ComparedForm::Text => quoted(of.text()),
        ComparedForm::Opaque(size) => {
            let bytes = of.bytes.iter().take((*size).min(MOST_SHOWN / 2));
            let digits: String = bytes.map(|byte| format!("{byte:02x}")).collect();
            format!("0x{digits}{}", if *size > MOST_SHOWN / 2 { "…" } else { "" })
        }
        ComparedForm::Items(item) => {
            let (items, n) = of.items();
            format!("{{{}}}", list(item, items, n))
        }
        ComparedForm::Fields(fields, _) => {
            let field = |(offset, n, form): &(usize, usize, ComparedForm)| {
                let of = of.behind(*offset);
                if *n == 1 { value(form, of) } else { format!("{{{}}}", list(form, of, *n)) }
            };
            let fields: Vec<String> = fields.iter().map(field).collect();
            format!("{{{}}}", fields.join(", "))
        }
    }
}

/// The first values as text. Characters are one text.
pub(super) fn list(form: &ComparedForm, of: ComparedValues<'_>, n: usize) -> String {
    const MOST: usize = 8;
    if *form == ComparedForm::Plain(ExtType::Char) {
        return quoted(of.bytes.get(..n).unwrap_or(of.bytes));
    }
    let shown: Vec<String> =
        (0..n.min(MOST)).map(|index| value(form, of.at(index, form.size()))).collect();
    let more = if n > MOST { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// A text in quotes, its beginning where it is long.
fn quoted(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let shown: String = text.chars().take(MOST_SHOWN).collect();
    let more = if shown.len() < text.len() { "…" } else { "" };
    format!("{shown:?}{more}")
}

/// A variable of both files.
struct VarPair<'a> {
    files: [&'a Dataset; 2],
    vars: [&'a VarDef; 2],
    form: ComparedForm,
    /// The type as which both are read, where their own types differ.
    mem: Option<MemType>,
}

impl Comparison<'_> {
    /// Compares the values of the variables that both have.
    pub(super) fn variables(
        &self,
        on_difference: &mut dyn FnMut(Difference),
        progress: &mut dyn FnMut(&Progress<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        if !self.options.values {
            return Ok(());
        }
        let pairs: Vec<[&VarDef; 2]> = (self.trees[0].vars())
            .filter(|var| self.is_chosen(&var.path))
            .filter_map(|var| Some([var, self.trees[1].vars().find(|b| b.path == var.path)?]))
            .collect();
        let total = pairs.iter().fold(0u64, |sum, [var, _]| sum.saturating_add(var.bytes()));
        let mut done = 0u64;
        for vars in pairs {
            let path = shown(&vars[0].path);
            let mut step = |bytes: u64| {
                done = done.saturating_add(bytes).min(total);
                Progress { var: &path, done_bytes: done, total_bytes: total }.report(progress)
            };
            let how = match self.pair(vars) {
                Ok(pair) => self.pair_values(&pair, &mut step)?.map(DifferenceKind::Values),
                // Reported as a difference of definitions already.
                Err(_) if self.options.definitions => None,
                Err(why) => Some(DifferenceKind::NotComparable(why)),
            };
            if let Some(how) = how {
                on_difference(Difference { thing: ObjectKind::Variable, path: path.clone(), how });
            }
        }
        Ok(())
    }

    /// The pair to compare, or why it cannot be compared.
    fn pair<'v>(&'v self, vars: [&'v VarDef; 2]) -> std::result::Result<VarPair<'v>, String> {
        let [a, b] = vars;
        if a.lens() != b.lens() {
            return Err(format!("shapes {:?} and {:?}", a.lens(), b.lens()));
        }
        let [first, second] =
            [0, 1].map(|side| ComparedForm::of(&self.trees[side], vars[side].nc_type));
        let (form, mem) = match (first, second) {
            (Some(first), Some(second)) if first == second => (first, None),
            (Some(ComparedForm::Plain(x)), Some(ComparedForm::Plain(y)))
                if x != ExtType::Char && y != ExtType::Char =>
            {
                (ComparedForm::Plain(ExtType::Double), Some(MemType::F64))
            }
            _ => return Err("types that cannot be compared".to_owned()),
        };
        Ok(VarPair { files: self.files, vars, form, mem })
    }

    fn pair_values(
        &self,
        pair: &VarPair<'_>,
        step: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<Option<ValuesDiffer>> {
        let lens = pair.vars[0].lens();
        let size = pair.form.size();
        let elem = if pair.form.has_pointers() { POINTER_VALUE_BYTES } else { size as u64 };
        let chunk_shape = |side: usize| pair.files[side].chunk_shape(pair.vars[side].source);
        let chunks = [chunk_shape(0)?, chunk_shape(1)?];
        let [from, to] = [chunks[0].as_deref(), chunks[1].as_deref()];
        let array = BoxedArray { lens: &lens, from, plain_run: None, to, elem };
        // Memory for two boxes, and as much again for chunks.
        let most = self.options.memory_bytes / 4;
        let walk = self.walk(pair, &array, most)?;
        let mut differ: Option<ValuesDiffer> = None;
        let mut data = [Vec::new(), Vec::new()];
        for (start, count) in walk {
            let mut pieces = [VlenBuffer::default(), VlenBuffer::default()];
            for side in [0, 1] {
                let (file, var) = (pair.files[side], pair.vars[side].source);
                let to = (&mut data[side], &mut pieces[side]);
                read_box(file, var, pair.mem, (&start, &count), to)?;
            }
            let [a, b] =
                [0, 1].map(|side| ComparedValues { bytes: &data[side], pieces: &pieces[side] });
            let n = count.iter().fold(1u64, |n, &len| n.saturating_mul(len));
            let n_values = usize::try_from(n).unwrap_or(usize::MAX);
            let here = |index: usize| place(index as u64, &start, &count);
            compare(&pair.form, (a, b), n_values, self.options.tolerance, &mut |index, gap| {
                let known = differ.get_or_insert_with(|| ValuesDiffer {
                    n: 0,
                    of: lens.iter().fold(1, |n: u64, &len| n.saturating_mul(len)),
                    at: here(index),
                    first: value(&pair.form, a.at(index, size)),
                    second: value(&pair.form, b.at(index, size)),
                    largest: None,
                });
                known.n += 1;
                if let Some(gap) = gap.filter(|gap| gap.is_finite())
                    && known.largest.as_ref().is_none_or(|(most, _)| gap > *most)
                {
                    known.largest = Some((gap, here(index)));
                }
            });
            step(n.saturating_mul(pair.vars[0].elem as u64))?;
        }
        Ok(differ)
    }

    /// The boxes in which the two may differ. Where neither file has chunks, and elements that were never written
    /// read as the same from both, there is no difference.
    fn walk(&self, pair: &VarPair<'_>, array: &BoxedArray<'_>, most: u64) -> Result<BoxWalk> {
        let lens = array.lens;
        let all = || BoxWalk::new(lens, &choose(array, DIFF_BOX_BYTES.min(most), most).shape);
        if lens.is_empty() || !same_unwritten(pair)? {
            return Ok(all());
        }
        let mut keys = [Vec::new(), Vec::new()];
        let mut there = Vec::new();
        for (side, keys) in keys.iter_mut().enumerate() {
            let (file, var) = (pair.files[side], pair.vars[side].source);
            match ([array.from, array.to][side], file.stored(var)?.bytes) {
                (Some(shape), _) => {
                    file.for_each_chunk(var, |key, _| keys.push(key.to_vec()))?;
                    there.push(ChunksPresent { shape, keys });
                }
                (None, 0) => {}
                (None, _) => return Ok(all()),
            }
        }
        Ok(choose_around(array, (DIFF_BOX_BYTES, most), &there, ABSENT_PER_CHUNK).1)
    }
}

/// Whether elements that were never written read as the same value from both files, and each element that a file
/// lacks was never written.
fn same_unwritten(pair: &VarPair<'_>) -> Result<bool> {
    if pair.mem.is_some() {
        return Ok(false);
    }
    let lens = pair.vars[0].lens();
    let (mut fills, mut extents) = ([None, None], [Vec::new(), Vec::new()]);
    for side in [0, 1] {
        let (file, var) = (pair.files[side], pair.vars[side].source);
        if !file.is_hdf5() {
            return Ok(false);
        }
        let storage = &file.var_info(var)?.storage;
        if !matches!(storage, StorageKind::Chunked(_) | StorageKind::Contiguous) {
            return Ok(false);
        }
        let unwritten = file.hdf5(|file| {
            extents[side] = file.extent(var.group, var.var)?.to_vec();
            Ok(file.never_written(var.group, var.var)?)
        })?;
        match unwritten {
            UnwrittenElements::Value if pair.form.has_pointers() => return Ok(false),
            UnwrittenElements::Value => {
                let mut value = memory::filled(pair.vars[side].elem, 0)?;
                file.fill_value(var, &mut VlenBuffer::default(), &mut value)?;
                fills[side] = Some(value);
            }
            // Without a fill value, zeros are read.
            UnwrittenElements::Zeros | UnwrittenElements::Undefined => {}
        }
    }
    Ok(match &fills {
        [Some(a), Some(b)] => a == b,
        // Beyond the length of a variable along an unlimited dimension, the fill value is read and not zeros.
        [None, None] => extents[0] == extents[1],
        [Some(fill), None] | [None, Some(fill)] => {
            fill.iter().all(|&byte| byte == 0) && extents.iter().all(|extent| *extent == lens)
        }
    })
}

/// Indices of a value of a box.
fn place(index: u64, start: &[u64], count: &[u64]) -> Vec<u64> {
    let mut at = start.to_vec();
    unrank(index, count, &mut at);
    at
}
