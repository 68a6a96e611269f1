//! Rows that are converted where a cache has them, beside the same file without a cache.

use std::sync::Arc;

use zonda_classic::{ClassicFile, Reserve, Version};
use zonda_format::{Access, Destination, Dispatch, DispatchWrite, GroupId, Transfer, Values};
use zonda_model::{ExtType, Hyperslab, MemType, VarId};
use zonda_storage::backend::Memory;
use zonda_storage::{Spec, Storage};

const SHAPE: [usize; 3] = [4, 5, 331];

/// A file of records of each numeric type.
fn file(storage: Arc<dyn Storage>) -> (ClassicFile, Vec<(VarId, ExtType)>) {
    let mut file = ClassicFile::create(storage, None, Version::Cdf5, false);
    let dims: Vec<i32> = [0, SHAPE[1], SHAPE[2]]
        .iter()
        .enumerate()
        .map(|(n, len)| file.def_dim(GroupId::ROOT, &[b'a' + n as u8], *len).unwrap().0)
        .collect();
    let types = ExtType::ALL.into_iter().filter(|ty| *ty != ExtType::Char);
    let vars = types
        .map(|ty| {
            let name = ty.name().as_bytes();
            (file.def_var(GroupId::ROOT, name, ty.nc_type(), &dims).unwrap(), ty)
        })
        .collect();
    file.enddef(Reserve::default()).unwrap();
    (file, vars)
}

/// A part of each dimension; now and then with a stride.
fn part(random: &mut fastrand::Rng) -> ([usize; 3], [usize; 3], Option<[isize; 3]>) {
    let mut of = [[0; 3]; 2];
    let mut stride = [1; 3];
    let has_stride = random.u8(..4) == 0;
    for axis in 0..3 {
        of[0][axis] = random.usize(..SHAPE[axis]);
        let left = SHAPE[axis] - of[0][axis];
        let by = if has_stride { random.usize(1..4) } else { 1 };
        of[1][axis] = random.usize(1..=left.div_ceil(by));
        stride[axis] = by as isize;
        if axis == 2 && random.bool() && !has_stride {
            (of[0][2], of[1][2]) = (0, SHAPE[2]);
        }
    }
    (of[0], of[1], has_stride.then_some(stride))
}

/// Random puts and gets of every pair of types, in pages of 4 KiB that rows and selections cross: the same values, and as many that are out of range.
#[test]
fn rows_in_a_cache_are_those_of_the_file() {
    const MEM: [MemType; 4] = [MemType::I8, MemType::I32, MemType::F32, MemType::F64];
    let mut n_unfit = 0;
    for seed in 0..6 {
        let mut random = fastrand::Rng::with_seed(seed);
        let spec = ["cache:1:3", "cache:1:400", "cache"][seed as usize % 3];
        let cached = Spec::parse(spec).unwrap().build_on(Arc::new(Memory::new())).unwrap();
        let (with, vars) = file(cached);
        let (without, _) = file(Arc::new(Memory::new()));
        for step in 0..600 {
            let (var, ty) = vars[random.usize(..vars.len())];
            let mem = MEM[random.usize(..MEM.len())];
            let (start, count, stride) =
                if step < vars.len() { ([0; 3], SHAPE, None) } else { part(&mut random) };
            let var = if step < vars.len() { vars[step].0 } else { var };
            let slab =
                Hyperslab { start: &start, count: &count, stride: stride.as_ref().map(|s| &s[..]) };
            let access = Access { var: var.into(), slab, mem: Some(mem) };
            let len = count.iter().product::<usize>() * mem.size();
            let what = format!(
                "seed {seed}, step {step}: {ty:?} as {mem:?}, {start:?} {count:?} {stride:?}"
            );
            if step < vars.len() || random.u8(..3) == 0 {
                // Numbers of which some fit every type and some do not, whatever the bytes are taken for.
                let values: Vec<u8> = (0..len / mem.size())
                    .flat_map(|_| {
                        let value = random.i32(-200..70_000) >> random.u8(..12);
                        match mem {
                            MemType::I8 => vec![value as u8],
                            MemType::I32 => value.to_ne_bytes().to_vec(),
                            MemType::F32 => (value as f32).to_ne_bytes().to_vec(),
                            _ => f64::from(value).to_ne_bytes().to_vec(),
                        }
                    })
                    .collect();
                let put = |file: &ClassicFile| {
                    file.shared_put_now(&mut Transfer::new(access), Values::plain(&values))
                };
                let (a, b) = (put(&with).unwrap(), put(&without).unwrap());
                assert_eq!(a.out_of_range, b.out_of_range, "put, {what}");
                continue;
            }
            let get = |file: &ClassicFile| {
                let mut out = vec![0x55; len];
                let got = file.get_now(&mut Transfer::new(access), Destination::plain(&mut out));
                (got.unwrap().out_of_range, out)
            };
            let (a, b) = (get(&with), get(&without));
            n_unfit += a.0;
            assert_eq!(a, b, "{what}");
        }
    }
    assert!(n_unfit > 1000, "{n_unfit}");
}
