//! The elements of a response that are wanted: the server may have been asked for more, or have given all.

use crate::dap2::limits::BLOCK_BYTES;
use crate::error::{DapError, Document};
use crate::protocol::Sink;

/// What is wanted of a dimension of a response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Elements that the response has; of records, those that are looked at.
    pub(crate) len: u64,
    pub(crate) start: u64,
    pub(crate) count: u64,
    pub(crate) stride: u64,
}

impl Wanted {
    fn is_all(&self) -> bool {
        self.start == 0 && self.stride == 1 && self.count == self.len
    }

    /// Whether element `at` is wanted.
    fn has(&self, at: u64) -> bool {
        let Some(from) = at.checked_sub(self.start) else { return false };
        from.checked_rem(self.stride) == Some(0)
            && from.checked_div(self.stride).is_some_and(|n| n < self.count)
    }
}

/// What is wanted of the characters of texts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Characters {
    /// Characters that a text has: shorter ones are filled up with zeros, longer ones cut.
    pub(crate) len: u64,
    pub(crate) start: u64,
    pub(crate) count: u64,
    pub(crate) stride: u64,
}

/// Takes the elements of one variable as they come and hands on those that are wanted.
#[derive(Debug)]
pub(crate) struct Select {
    part: usize,
    name: String,
    dims: Vec<Wanted>,
    is_all: bool,
    characters: Option<Characters>,
    /// Bytes of an element.
    size: usize,
    /// Elements that came.
    n_came: u64,
    /// Elements that were handed on, and how many are wanted.
    n_given: u64,
    n_wanted: u64,
    /// Elements that wait for others.
    waiting: Vec<u8>,
}

impl Select {
    pub(crate) fn new(
        part: usize,
        name: String,
        dims: Vec<Wanted>,
        size: usize,
        characters: Option<Characters>,
    ) -> Result<Select, DapError> {
        let n_wanted = dims.iter().try_fold(1u64, |product, dim| product.checked_mul(dim.count));
        let n_came = dims.iter().try_fold(1u64, |product, dim| product.checked_mul(dim.len));
        let Some(n_wanted) = n_wanted.filter(|_| n_came.is_some()) else {
            let what = format!("{name} has too many elements");
            return Err(DapError::unrepresentable(Document::Dods, what));
        };
        let is_all = dims.iter().all(Wanted::is_all);
        Ok(Select {
            part,
            name,
            dims,
            is_all,
            characters,
            size,
            n_came: 0,
            n_given: 0,
            n_wanted,
            waiting: Vec::new(),
        })
    }

    fn error(&self, what: &str) -> DapError {
        DapError::malformed(Document::Dods, 0, format!("{}: {what}", self.name))
    }

    /// Takes the next elements, in the form of memory.
    pub(crate) fn numbers(&mut self, elements: &[u8], sink: &mut dyn Sink) -> Result<(), DapError> {
        let n = elements.len().checked_div(self.size).unwrap_or(0) as u64;
        if self.is_all {
            // What comes above what is wanted is found at the end.
            let left = self.n_wanted.saturating_sub(self.n_given).min(n);
            let bytes = usize::try_from(left).unwrap_or(usize::MAX).saturating_mul(self.size);
            self.n_came = self.n_came.saturating_add(n);
            self.n_given = self.n_given.saturating_add(left);
            return match elements.get(..bytes) {
                Some(wanted) if !wanted.is_empty() => sink.plain(self.part, wanted),
                _ => Ok(()),
            };
        }
        let Some(row) = self.dims.last().copied() else { return Ok(()) };
        let row_len = self.row_len();
        let mut rest = elements;
        while !rest.is_empty() && row_len > 0 {
            let column = self.n_came.checked_rem(row_len).unwrap_or(0);
            let in_rest = rest.len().checked_div(self.size).unwrap_or(0) as u64;
            let n = row_len.saturating_sub(column).min(in_rest);
            let bytes = usize::try_from(n).unwrap_or(usize::MAX).saturating_mul(self.size);
            let (now, later) = rest.split_at_checked(bytes).unwrap_or((rest, &[]));
            if now.is_empty() {
                return Ok(());
            }
            if self.has_row() {
                self.row(row, column, now, sink)?;
            }
            self.n_came = self.n_came.saturating_add(n);
            rest = later;
        }
        Ok(())
    }

    /// Elements of a row; of a first dimension, which may be that of records, more may come than are looked at.
    fn row_len(&self) -> u64 {
        match &self.dims[..] {
            [.., _, last] => last.len,
            _ => u64::MAX,
        }
    }

    /// Whether the row of the next element is wanted, the last dimension aside.
    fn has_row(&self) -> bool {
        let Some((last, outer)) = self.dims.split_last() else { return true };
        let mut rest = self.n_came.checked_div(last.len).unwrap_or(0);
        outer.iter().enumerate().rev().all(|(at, dim)| {
            // The first index is what is left: of records there may be more than are looked at.
            let index = if at == 0 { rest } else { rest.checked_rem(dim.len).unwrap_or(0) };
            rest = rest.checked_div(dim.len).unwrap_or(0);
            dim.has(index)
        })
    }

    /// Hands on what is wanted of elements of one row, the first of which is at `column`.
    fn row(
        &mut self,
        row: Wanted,
        column: u64,
        elements: &[u8],
        sink: &mut dyn Sink,
    ) -> Result<(), DapError> {
        for (at, element) in elements.chunks_exact(self.size.max(1)).enumerate() {
            if row.has(column.saturating_add(at as u64)) {
                self.waiting.extend_from_slice(element);
                self.n_given = self.n_given.saturating_add(1);
            }
        }
        if self.waiting.len() >= BLOCK_BYTES { self.flush(sink) } else { Ok(()) }
    }

    /// Takes the next text.
    pub(crate) fn text(&mut self, text: &[u8], sink: &mut dyn Sink) -> Result<(), DapError> {
        let is_wanted = match self.dims.last() {
            None => self.n_came == 0,
            Some(last) => {
                last.has(self.n_came.checked_rem(self.row_len()).unwrap_or(0)) && self.has_row()
            }
        };
        self.n_came = self.n_came.saturating_add(1);
        let Some(characters) = self.characters.filter(|_| is_wanted) else { return Ok(()) };
        self.n_given = self.n_given.saturating_add(1);
        let len = usize::try_from(characters.len).unwrap_or(usize::MAX);
        let text = text.get(..len).unwrap_or(text);
        for n in 0..characters.count {
            let at =
                n.checked_mul(characters.stride).and_then(|at| at.checked_add(characters.start));
            let byte = at.and_then(|at| usize::try_from(at).ok()).and_then(|at| text.get(at));
            self.waiting.push(byte.copied().unwrap_or(0));
            if self.waiting.len() >= BLOCK_BYTES {
                self.flush(sink)?;
            }
        }
        Ok(())
    }

    fn flush(&mut self, sink: &mut dyn Sink) -> Result<(), DapError> {
        if !self.waiting.is_empty() {
            sink.plain(self.part, &self.waiting)?;
            self.waiting.clear();
        }
        Ok(())
    }

    /// Hands on what waits, and requires that all came that is wanted.
    pub(crate) fn finish(&mut self, sink: &mut dyn Sink) -> Result<(), DapError> {
        self.flush(sink)?;
        if self.n_given != self.n_wanted {
            let what = format!("{} of {} wanted elements came", self.n_given, self.n_wanted);
            return Err(self.error(&what));
        }
        Ok(())
    }

    /// Most bytes of a text that matter: an escape of four bytes is one character.
    pub(crate) fn text_bytes(&self) -> usize {
        let len = self.characters.map_or(0, |characters| characters.len);
        usize::try_from(len.saturating_mul(4).saturating_add(4)).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zonda_format::OwnedValues;

    #[derive(Default)]
    struct Taken(Vec<u8>, usize);

    impl Sink for Taken {
        fn plain(&mut self, part: usize, elements: &[u8]) -> Result<(), DapError> {
            assert_eq!(part, 7);
            self.0.extend_from_slice(elements);
            self.1 += 1;
            Ok(())
        }

        fn owned(&mut self, _part: usize, _elements: OwnedValues) -> Result<(), DapError> {
            panic!("no texts of their own in DAP2");
        }
    }

    fn wanted(len: u64, start: u64, count: u64, stride: u64) -> Wanted {
        Wanted { len, start, count, stride }
    }

    #[test]
    fn what_is_wanted_is_what_plain_loops_take() {
        let mut rng = fastrand::Rng::with_seed(3);
        for _ in 0..500 {
            let rank = rng.usize(0..4);
            let dims: Vec<Wanted> = (0..rank)
                .map(|_| {
                    let (len, stride) = (rng.u64(1..7), rng.u64(1..4));
                    let start = rng.u64(0..len);
                    wanted(len, start, rng.u64(1..=(len - start - 1) / stride + 1), stride)
                })
                .collect();
            let n: u64 = dims.iter().map(|dim| dim.len).product();
            let has = |mut at: u64| {
                dims.iter().rev().all(|dim| {
                    let index = at % dim.len;
                    at /= dim.len;
                    (0..dim.count).any(|n| dim.start + n * dim.stride == index)
                })
            };
            let expected: Vec<u8> =
                (0..n).filter(|at| has(*at)).flat_map(|at| (at as u16).to_ne_bytes()).collect();
            let all: Vec<u8> = (0..n).flat_map(|at| (at as u16).to_ne_bytes()).collect();
            let mut taken = Taken::default();
            let mut select = Select::new(7, "v".into(), dims.clone(), 2, None).unwrap();
            let mut rest = &all[..];
            while !rest.is_empty() {
                let (now, later) = rest.split_at((rng.usize(1..5) * 2).min(rest.len()));
                select.numbers(now, &mut taken).unwrap();
                rest = later;
            }
            select.finish(&mut taken).unwrap();
            assert_eq!(taken.0, expected, "{dims:?}");
            // The same of texts, of which the first character is wanted.
            let characters = Characters { len: 2, start: 1, count: 1, stride: 1 };
            let mut texts = Select::new(7, "v".into(), dims.clone(), 1, Some(characters)).unwrap();
            let mut taken = Taken::default();
            for at in 0..n {
                texts.text(&[b'x', b'A' + (at % 26) as u8], &mut taken).unwrap();
            }
            texts.finish(&mut taken).unwrap();
            let letters: Vec<u8> =
                (0..n).filter(|at| has(*at)).map(|at| b'A' + (at % 26) as u8).collect();
            assert_eq!(taken.0, letters, "{dims:?}");
        }
    }

    #[test]
    fn texts_are_filled_up_cut_and_taken_with_steps() {
        let mut taken = Taken::default();
        let characters = Characters { len: 6, start: 1, count: 3, stride: 2 };
        let mut select =
            Select::new(7, "v".into(), vec![wanted(3, 0, 3, 1)], 1, Some(characters)).unwrap();
        for text in ["abcdefgh", "\\x41\\n", ""] {
            select.text(text.as_bytes(), &mut taken).unwrap();
        }
        select.finish(&mut taken).unwrap();
        assert_eq!(taken.0, b"bdfx1n\0\0\0");
        assert_eq!(select.text_bytes(), 28);
    }

    #[test]
    fn too_few_are_an_error_and_more_records_are_not_looked_at() {
        let mut taken = Taken::default();
        let mut select =
            Select::new(7, "v".into(), vec![wanted(4, 1, 2, 2), wanted(2, 0, 1, 1)], 1, None)
                .unwrap();
        select.numbers(&[0, 1, 2, 3, 4, 5], &mut taken).unwrap();
        let error = select.finish(&mut taken).unwrap_err().to_string();
        assert!(error.ends_with("v: 1 of 2 wanted elements came"), "{error}");
        select.numbers(&[6, 7, 8, 9, 10, 11, 12], &mut taken).unwrap();
        select.finish(&mut taken).unwrap();
        assert_eq!(taken.0, [2, 6]);
        assert!(Select::new(7, "v".into(), vec![wanted(u64::MAX, 0, 1, 1); 2], 1, None).is_err());
    }
}
