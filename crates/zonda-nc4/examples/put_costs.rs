//! What puts cost, in nanoseconds of this thread's time, into a file in memory.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement")]

use std::path::Path;
use std::sync::Arc;
use zonda_format::{DispatchWrite as _, TypeDefinitions as _, VarRef};

use zonda_format::{Access, Transfer, Values};
use zonda_model::{Hyperslab, MemType, VarId};
use zonda_nc4::{GroupId, Nc4CreateOptions, Nc4File, Nc4OpenOptions, StorageRequest};
use zonda_storage::backend::Memory;

const ROOT: GroupId = GroupId::ROOT;

/// Nanoseconds that this thread was running, whatever else the machine does.
fn cpu_time() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    stat.split(' ').next().unwrap().parse().unwrap()
}

fn create() -> Nc4File {
    let how = Nc4CreateOptions {
        classic: false,
        attribute_order: true,
        attach_scales: true,
        properties: Vec::new(),
    };
    let memory = Arc::new(Memory::new());
    Nc4File::create(memory, Path::new("costs.nc"), Nc4OpenOptions::default(), how).unwrap()
}

fn var(file: &mut Nc4File, name: &str, dims: &[i32], chunks: Option<&[usize]>) -> VarId {
    let id = file.def_var(ROOT, name.as_bytes(), 6, dims).unwrap();
    if chunks.is_some() {
        file.def_var_chunking(VarRef { group: ROOT, var: id }, StorageRequest::Chunked, chunks)
            .unwrap();
    }
    id
}

fn put(file: &mut Nc4File, id: VarId, start: &[usize], count: &[usize], mem: MemType, src: &[u8]) {
    let slab = Hyperslab { start, count, stride: None };
    let put = Access { var: id.into(), slab, mem: Some(mem) };
    let put = file.put_now(&mut Transfer::new(put), Values::plain(src));
    assert_eq!(put.unwrap().out_of_range, 0);
}

/// The least of several runs, for each of `n`.
fn least(what: &str, n: usize, mut run: impl FnMut()) {
    let mut best = u64::MAX;
    for _ in 0..5 {
        let begin = cpu_time();
        run();
        best = best.min(cpu_time() - begin);
    }
    println!("{what}: {:.1} ns", best as f64 / n as f64);
}

fn main() {
    let n = 1000;
    let one = 1.5f64.to_ne_bytes();
    let values: Vec<u8> = one.repeat(n * n);
    let singles: Vec<u8> = 1.5f32.to_ne_bytes().repeat(n * n);
    let mut file = create();
    let dims = ["y", "x"].map(|name| file.def_dim(ROOT, name.as_bytes(), n).unwrap().0);
    let time = file.def_dim(ROOT, b"time", 0).unwrap().0;
    let run = var(&mut file, "run", &dims, None);
    let chunked = var(&mut file, "chunked", &dims, Some(&[100, 100]));
    let many: Vec<VarId> =
        (0..60).map(|i| var(&mut file, &format!("v{i}"), &dims, Some(&[100, 100]))).collect();
    let grows = var(&mut file, "grows", &[time], Some(&[1 << 16]));
    for (name, id) in [("run", run), ("chunked", chunked)] {
        put(&mut file, id, &[0, 0], &[1, 1], MemType::F64, &one);
        least(&format!("{name}: single values in order"), 50 * n, || {
            for i in 0..50 * n {
                put(&mut file, id, &[i / n, i % n], &[1, 1], MemType::F64, &one);
            }
        });
        least(&format!("{name}: single values anywhere"), 50 * n, || {
            for i in 0..50 * n {
                let at = i * 7919 % (n * n);
                put(&mut file, id, &[at / n, at % n], &[1, 1], MemType::F64, &one);
            }
        });
        least(&format!("{name}: the whole array, each value"), n * n, || {
            put(&mut file, id, &[0, 0], &[n, n], MemType::F64, &values);
        });
        least(&format!("{name}: the whole array from float, each value"), n * n, || {
            put(&mut file, id, &[0, 0], &[n, n], MemType::F32, &singles);
        });
    }
    least("60 chunked variables in turn, single values", 60 * n, || {
        for i in 0..n {
            for id in &many {
                put(&mut file, *id, &[i / 100, i % 100], &[1, 1], MemType::F64, &one);
            }
        }
    });
    let mut at = 0;
    least("single values that make a dimension grow", 20 * n, || {
        for _ in 0..20 * n {
            put(&mut file, grows, &[at], &[1], MemType::F64, &one);
            at += 1;
        }
    });
    let begin = cpu_time();
    let copied = singles.clone();
    println!("a copy of {} MB: {} us", copied.len() >> 20, (cpu_time() - begin) / 1000);
}
