//! Which elements of a variable a call is about.

use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use super::error::{Result, TypedError};

/// Which elements of a variable: one [`AxisSelection`] for each dimension, slowest first, or all of them.
///
/// Made from what a call is given: `..` for all of a variable, a range or a number for one of one dimension, and a tuple, an
/// array or a list for more.
///
/// ```
/// use zonda::typed::{AxisSelection, Selection};
/// let whole: Selection = (..).into();
/// let one_day = Selection::from((3, .., 10..20));
/// let every_tenth = Selection::from(AxisSelection::from(..).step(10));
/// # assert_ne!(whole, one_day);
/// # assert_ne!(one_day, every_tenth);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// `None` for all of a variable, whatever its rank.
    axes: Option<Vec<AxisSelection>>,
}

/// Which elements along one dimension: a number, or a range with a step.
///
/// ```
/// use zonda::typed::AxisSelection;
/// assert_eq!(AxisSelection::from(2..4), AxisSelection::from(2..=3));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxisSelection {
    start: usize,
    end: AxisEnd,
    step: usize,
}

/// Where a range ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AxisEnd {
    /// Where the dimension does.
    Open,
    /// Before this element.
    Before(usize),
    /// With the element [`usize::MAX`], so that no number is behind the last one.
    WithLast,
}

impl AxisEnd {
    fn with(last: usize) -> AxisEnd {
        last.checked_add(1).map_or(AxisEnd::WithLast, AxisEnd::Before)
    }
}

impl AxisSelection {
    fn range(start: usize, end: AxisEnd) -> AxisSelection {
        AxisSelection { start, end, step: 1 }
    }

    /// The same range with every `step`-th element of it. A step of 0 selects nothing: calls with it give `NC_ESTRIDE`.
    ///
    /// ```
    /// # use zonda::typed::AxisSelection;
    /// let every_second = AxisSelection::from(1..).step(2);
    /// # assert_ne!(every_second, AxisSelection::from(1..));
    /// ```
    #[must_use]
    pub fn step(self, step: usize) -> AxisSelection {
        AxisSelection { step, ..self }
    }

    /// Elements of a dimension of `len` elements.
    fn count(&self, len: usize) -> usize {
        let range = match self.end {
            AxisEnd::Open => len.saturating_sub(self.start),
            AxisEnd::Before(end) => end.saturating_sub(self.start),
            AxisEnd::WithLast => (usize::MAX - self.start).saturating_add(1),
        };
        range.div_ceil(self.step.max(1))
    }
}

impl From<usize> for AxisSelection {
    fn from(index: usize) -> AxisSelection {
        AxisSelection::range(index, AxisEnd::with(index))
    }
}

impl From<RangeFull> for AxisSelection {
    fn from(_: RangeFull) -> AxisSelection {
        AxisSelection::range(0, AxisEnd::Open)
    }
}

impl From<Range<usize>> for AxisSelection {
    fn from(range: Range<usize>) -> AxisSelection {
        AxisSelection::range(range.start, AxisEnd::Before(range.end))
    }
}

impl From<RangeInclusive<usize>> for AxisSelection {
    fn from(range: RangeInclusive<usize>) -> AxisSelection {
        AxisSelection::range(*range.start(), AxisEnd::with(*range.end()))
    }
}

impl From<RangeFrom<usize>> for AxisSelection {
    fn from(range: RangeFrom<usize>) -> AxisSelection {
        AxisSelection::range(range.start, AxisEnd::Open)
    }
}

impl From<RangeTo<usize>> for AxisSelection {
    fn from(range: RangeTo<usize>) -> AxisSelection {
        AxisSelection::range(0, AxisEnd::Before(range.end))
    }
}

impl From<RangeToInclusive<usize>> for AxisSelection {
    fn from(range: RangeToInclusive<usize>) -> AxisSelection {
        AxisSelection::range(0, AxisEnd::with(range.end))
    }
}

/// What a single axis can be made from is a selection of a variable of one dimension, too.
macro_rules! one_axis {
    ($($from:ty),*) => { $(
        impl From<$from> for Selection {
            fn from(axis: $from) -> Selection {
                Selection { axes: Some(vec![axis.into()]) }
            }
        }
    )* };
}

one_axis!(
    usize,
    AxisSelection,
    Range<usize>,
    RangeInclusive<usize>,
    RangeFrom<usize>,
    RangeTo<usize>,
    RangeToInclusive<usize>
);

impl From<RangeFull> for Selection {
    fn from(_: RangeFull) -> Selection {
        Selection { axes: None }
    }
}

/// A single element, which a variable without dimensions has.
impl From<()> for Selection {
    fn from((): ()) -> Selection {
        Selection { axes: Some(Vec::new()) }
    }
}

impl<A: Into<AxisSelection>, const N: usize> From<[A; N]> for Selection {
    fn from(axes: [A; N]) -> Selection {
        Selection { axes: Some(axes.into_iter().map(Into::into).collect()) }
    }
}

impl<A: Into<AxisSelection>> From<Vec<A>> for Selection {
    fn from(axes: Vec<A>) -> Selection {
        Selection { axes: Some(axes.into_iter().map(Into::into).collect()) }
    }
}

macro_rules! tuple {
    ($($axis:ident),*) => {
        impl<$($axis: Into<AxisSelection>),*> From<($($axis,)*)> for Selection {
            #[allow(non_snake_case)] // names of types name the values, too
            fn from(($($axis,)*): ($($axis,)*)) -> Selection {
                Selection { axes: Some(vec![$($axis.into()),*]) }
            }
        }
    };
}

tuple!(A);
tuple!(A, B);
tuple!(A, B, C);
tuple!(A, B, C, D);
tuple!(A, B, C, D, E);
tuple!(A, B, C, D, E, F);

/// A selection of a certain variable, as [`Hyperslab`](crate::Hyperslab) has it.
pub(super) struct Resolved {
    pub(super) start: Vec<usize>,
    pub(super) count: Vec<usize>,
    pub(super) stride: Vec<isize>,
}

impl Resolved {
    /// The first axis along which something is selected that is not there, and with which code netCDF says so.
    /// `grows`: an unlimited dimension is as long as it has to be.
    pub(super) fn outside(
        &self,
        axes: &[AxisLength],
        grows: bool,
    ) -> Option<(usize, crate::NcError)> {
        let selected = self.start.iter().zip(&self.count).zip(&self.stride);
        selected.zip(axes).enumerate().find_map(|(at, (((&start, &count), &stride), axis))| {
            if grows && axis.is_unlimited {
                return None;
            }
            if start > axis.len || (start == axis.len && count > 0) {
                return Some((at, crate::NcError::InvalidCoords));
            }
            let reach = count.saturating_sub(1).checked_mul(stride.unsigned_abs());
            let last = reach.and_then(|reach| start.checked_add(reach));
            let is_inside = count == 0 || last.is_some_and(|last| last < axis.len);
            (!is_inside).then_some((at, crate::NcError::Edge))
        })
    }

    pub(super) fn slab(&self) -> crate::Hyperslab<'_> {
        crate::Hyperslab { start: &self.start, count: &self.count, stride: Some(&self.stride) }
    }

    /// Elements; an error where no memory could hold them.
    pub(super) fn n_elems(&self) -> crate::Result<usize> {
        self.slab().n_elems().ok_or_else(|| crate::NcError::NoMem.into())
    }
}

/// A dimension of the variable: its length now, and whether a put may make it longer.
pub(super) struct AxisLength {
    pub(super) len: usize,
    pub(super) is_unlimited: bool,
}

impl Selection {
    /// What is selected of a variable with these dimensions. An open range of an unlimited dimension takes as many
    /// elements as `n_values` are for, if that is given: a put makes the dimension longer.
    pub(super) fn resolve(
        &self,
        object: impl Fn() -> String,
        lens: &[AxisLength],
        n_values: Option<usize>,
    ) -> Result<Resolved> {
        let all;
        let axes = match &self.axes {
            Some(axes) => axes,
            None => {
                all = vec![AxisSelection::from(..); lens.len()];
                &all
            }
        };
        if axes.len() != lens.len() {
            return Err(TypedError::Rank { object: object(), given: axes.len(), rank: lens.len() });
        }
        if axes.iter().any(|axis| axis.step == 0) {
            let text = format!("{}: a step of 0", crate::NcError::Stride);
            return Err(crate::Error::with_text(crate::NcError::Stride, text).into());
        }
        let mut count: Vec<usize> =
            axes.iter().zip(lens).map(|(axis, dim)| axis.count(dim.len)).collect();
        let open = |(axis, dim): (&AxisSelection, &AxisLength)| {
            axis.end == AxisEnd::Open && dim.is_unlimited
        };
        if let (Some(n_values), Some(at)) = (n_values, axes.iter().zip(lens).position(open)) {
            let others = count.iter().enumerate().filter(|&(axis, _)| axis != at);
            let others = others.fold(1usize, |product, (_, &n)| product.saturating_mul(n));
            if let Some(along) = n_values.checked_div(others)
                && let Some(count) = count.get_mut(at)
            {
                *count = along;
            }
        }
        Ok(Resolved {
            start: axes.iter().map(|axis| axis.start).collect(),
            stride: axes
                .iter()
                .zip(&count)
                .map(|(axis, &n)| match n {
                    // Formats have each a greatest step, which does not matter here.
                    0 | 1 => 1,
                    _ => isize::try_from(axis.step).unwrap_or(isize::MAX),
                })
                .collect(),
            count,
        })
    }
}
