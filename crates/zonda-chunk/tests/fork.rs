//! A child of `fork` reads on, with threads of its own, whatever its parent's were doing.

mod arrays;

use std::sync::Arc;
use std::time::Duration;

use arrays::{Flip, Made, Recipe};
use zonda_chunk::{ChunkedArray, Decode, Engine};
use zonda_model::Hyperslab;
use zonda_runtime::fork::quiet;

fn read(made: &Made, array: &ChunkedArray, start: usize, count: usize) -> bool {
    let mut out = vec![0; count * 4];
    let slab = Hyperslab { start: &[start], count: &[count], stride: None };
    array.read(&made.recipe.extent, &slab, Decode::Raw { elem_size: 4 }, &mut out).is_ok()
        && out == made.model[start * 4..][..count * 4]
}

#[test]
fn a_child_reads_on() {
    // Chunks large enough for the pool.
    let recipe = Recipe::new(&[600_000], &[50_000], 4, &[9999]);
    let flip = Flip { slow: Duration::from_millis(1), ..Flip::default() };
    let made = Made::new(recipe, flip);
    let engine = Engine::new(3, 1 << 30);
    for round in 0..40u64 {
        let array = Arc::new(made.array(&engine));
        if round % 2 == 0 {
            assert!(read(&made, &array, 0, 600_000), "the pool is there");
        }
        // A walk: chunks ahead are being decoded now.
        for i in 0..3 {
            assert!(read(&made, &array, i * 50_000 + 7, 100));
        }
        std::thread::sleep(Duration::from_micros(round * 100));
        let guard = quiet(None);
        // SAFETY: the child uses this crate, the allocator and `_exit`, all made for it.
        let child = unsafe { libc::fork() };
        if child == 0 {
            drop(guard);
            // A child that hangs is ended by the alarm, which the parent sees.
            // SAFETY: no pointers.
            unsafe { libc::alarm(30) };
            let good = (0..12).all(|i| read(&made, &array, i * 50_000 + 11, 200))
                && read(&made, &made.array(&engine), 0, 600_000);
            drop(array);
            // SAFETY: ends the process.
            unsafe { libc::_exit(i32::from(!good)) };
        }
        drop(guard);
        assert!(child > 0, "fork");
        assert!((0..12).all(|i| read(&made, &array, i * 50_000 + 11, 200)), "the parent too");
        let mut status = 0;
        // SAFETY: `status` is valid for a write.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "round {round}: the child");
    }
}
