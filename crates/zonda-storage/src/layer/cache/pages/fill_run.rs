//! Fill values that a part of a page awaits: they are written into its memory only when it is read or written back.

/// A range of a page, in bytes, and the element that is repeated in it, but not yet in the page's memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FillRun {
    pub(crate) from: usize,
    pub(crate) to: usize,
    element: [u8; 8],
    size: usize,
    /// Which byte of the element is at `from`.
    phase: usize,
}

impl FillRun {
    /// `element`, of up to 8 bytes, over and over at `from..to`; byte `phase` of it is at `from`.
    pub(crate) fn new((from, to): (usize, usize), element: &[u8], phase: usize) -> FillRun {
        let mut bytes = [0; 8];
        let size = element.len().min(8);
        bytes[..size].copy_from_slice(&element[..size]);
        FillRun { from, to, element: bytes, size, phase }
    }

    /// The part of it at `from..to`, which lies in it; none where that is empty.
    fn part(&self, from: usize, to: usize) -> Option<FillRun> {
        let phase = (self.phase + from.saturating_sub(self.from)) % self.size;
        (from < to).then_some(FillRun { from, to, phase, ..*self })
    }

    /// What of it lies at `a..b`.
    pub(crate) fn within(&self, a: usize, b: usize) -> Option<FillRun> {
        self.part(self.from.max(a), self.to.min(b))
    }

    /// What is left of it without `a..b`.
    pub(crate) fn without(self, a: usize, b: usize) -> impl Iterator<Item = FillRun> {
        let before = self.part(self.from, self.to.min(a));
        let after = self.part(self.from.max(b), self.to);
        // Nothing is taken away, and nothing is there twice.
        let [before, after] = if a < b { [before, after] } else { [Some(self), None] };
        before.into_iter().chain(after)
    }

    /// Forgets what lies behind `end`; false where nothing is left.
    pub(crate) fn truncate(&mut self, end: usize) -> bool {
        self.to = self.to.min(end);
        self.from < self.to
    }

    /// Writes it below, by `fill`, which gets its place, length and element.
    pub(crate) fn fill_by<E>(
        &self,
        fill: impl FnOnce(usize, usize, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut element = self.element;
        element[..self.size].rotate_left(self.phase);
        fill(self.from, self.to - self.from, &element[..self.size])
    }

    /// Writes the bytes that belong at `a..b` of a page.
    pub(crate) fn paint(&self, a: usize, out: &mut [u8]) {
        let first = (self.phase + a - self.from) % self.size;
        let head = (self.size - first).min(out.len());
        out[..head].copy_from_slice(&self.element[first..first + head]);
        for part in out[head..].chunks_mut(self.size) {
            let n = part.len();
            part.copy_from_slice(&self.element[..n]);
        }
    }
}
