//! The threads that decode chunks, lent to those who move large arrays by this crate.

/// Runs `work` on this thread and on up to `more` of the threads that decode chunks, as far as these have nothing to do. Returns when all
/// that began have come to their end; nothing says that more than this thread runs it.
///
/// # Examples
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// let (next, sum) = (AtomicUsize::new(0), AtomicUsize::new(0));
/// zonda::on_free_threads(3, &|| {
///     loop {
///         let n = next.fetch_add(1, Ordering::Relaxed);
///         if n >= 100 {
///             return;
///         }
///         sum.fetch_add(n, Ordering::Relaxed);
///     }
/// });
/// assert_eq!(sum.into_inner(), 4950);
/// ```
///
/// # Panics
/// If `work` does; first all come to their end.
pub fn on_free_threads(more: usize, work: &(dyn Fn() + Sync)) {
    zonda_chunk::Engine::process().run(more, work);
}
