//! The folder of arrays beside a CDF-5 file: the same calls, the same answers.

use std::path::Path;

use zonda::{
    Access, CreateOptions, Dataset, DimId, FillMode, Format, Hyperslab, MemType, NcError,
    OpenOptions, Reserve, Transfer, Values, VarId,
};
use zonda_testkit::{Rng, TempFolder};

/// What a call gave: bytes, or its code.
type Answer = Result<Vec<u8>, NcError>;

fn unit<T>(done: zonda::Result<T>) -> Answer {
    done.map(|_| Vec::new()).map_err(|error| error.code())
}

/// Values, where all of them fit; the formats may differ for others.
fn fitting(done: zonda::Result<zonda::Converted>, out: Vec<u8>) -> Answer {
    let fits = |converted: zonda::Converted| if converted.out_of_range == 0 { out } else { vec![] };
    done.map(fits).map_err(|error| error.code())
}

/// One random call. Names, numbers and indices are sometimes invalid.
fn call(file: &Dataset, rng: &mut Rng) -> Answer {
    let names = ["a", "b", "cc", "long name", "_FillValue", "bad/name", "", "e\u{301}", "x y "];
    let name = names[rng.length(names.len())].as_bytes();
    let other = names[rng.length(names.len())].as_bytes();
    // A classic file remembers how long a name was that was made shorter in data mode.
    let short = &names[rng.length(2)].as_bytes();
    let new = if file.in_define_mode() || other.len() <= 1 { other } else { short };
    let var = VarId(i32::try_from(rng.below(6)).unwrap() - 1);
    let nc_type = i32::try_from(rng.below(13)).unwrap();
    let mems = [
        None,
        None,
        Some(MemType::F64),
        Some(MemType::I64),
        Some(MemType::Text),
        Some(MemType::I16),
    ];
    let mem = mems[rng.length(mems.len())];
    let mut small = |n| (0..4).map(|_| rng.length(n)).collect::<Vec<usize>>();
    let (start, count, dims) = (small(3), small(4), small(5));
    let stride: Vec<isize> = small(4).iter().map(|&n| isize::try_from(n).unwrap()).collect();
    let has_stride = rng.below(2) == 0;
    let slab =
        Hyperslab { start: &start, count: &count, stride: has_stride.then_some(&stride[..]) };
    match rng.below(18) {
        0 | 1 => unit(file.def_dim(name, rng.length(5))),
        2 | 3 => {
            let dims: Vec<i32> = dims.iter().map(|&n| i32::try_from(n).unwrap() - 1).collect();
            let rank = rng.length(4);
            unit(file.def_var(name, nc_type, &dims[..rank]))
        }
        4 => unit(file.rename_dim(DimId(var.0), new)),
        5 => unit(file.rename_var(var, new)),
        6 => {
            let n_values = rng.length(4);
            let natural = zonda::ExtType::from_nc_type(nc_type).map_or(0, |ty| ty.size());
            let bytes = vec![0; n_values * mem.map_or(natural, MemType::size)];
            unit(file.put_att(var, name, nc_type, n_values, mem, &bytes))
        }
        7 => {
            let mut out = Vec::new();
            let done = file.get_att_list(var, name, mem, (&mut out, None));
            fitting(done, out)
        }
        8 => unit(file.del_att(var, name)),
        9 => unit(file.rename_att(var, name, new)),
        10 => {
            let value = rng.bytes(8);
            // What was never written, and not filled, may be anything.
            unit(file.def_var_fill(var, false, Some(&value)))
        }
        11 => unit(file.set_fill(FillMode::Fill)),
        12 => unit(file.redef()),
        13 | 14 => unit(file.enddef(Reserve::Default)),
        15 => unit(file.sync()),
        16 => {
            let mut put = Transfer::new(Access { var: var.into(), slab, mem });
            let mut put = || {
                let mut begun = file.put_to(var)?;
                let put = begun.check(&mut put)?;
                let bytes = vec![0; put.n_bytes()];
                put.write(Values::plain(&bytes))
            };
            unit(put())
        }
        _ => {
            let mut out = Vec::new();
            let done = file.get_list(var, &slab, mem, (&mut out, None));
            fitting(done, out)
        }
    }
}

/// All definitions, attributes and values, to be compared.
fn whole(file: &Dataset) -> Vec<String> {
    let mut all = Vec::new();
    let names = file.meta(|meta| {
        for id in meta.dim_ids() {
            all.push(format!("{:?}", meta.dim(id).unwrap()));
        }
        let mut names = Vec::new();
        for id in (-1..i32::try_from(meta.n_vars()).unwrap()).map(VarId) {
            for index in 0..meta.n_atts(id).unwrap() {
                all.push(format!("{id:?} {:?}", meta.att(id, index).unwrap()));
            }
            if let Ok(var) = meta.var(id) {
                all.push(format!("{:?} {} {:?}", var.name, var.nc_type, var.dims));
                let mut shape = vec![0; var.dims.len()];
                meta.var_shape(id, &mut shape).unwrap();
                names.push((id, shape));
            }
        }
        names
    });
    for (id, shape) in names {
        let start = vec![0; shape.len()];
        let slab = Hyperslab { start: &start, count: &shape, stride: None };
        let mut out = Vec::new();
        let done = file.get_list(id, &slab, None, (&mut out, None)).map_err(|error| error.code());
        all.push(format!("{id:?} {done:?} {out:?}"));
    }
    all
}

fn life(folder: &Path, seed: u64) {
    let create = |name: &str, format| {
        let options = CreateOptions { format, ..CreateOptions::default() };
        Dataset::create(&folder.join(name), &options).unwrap()
    };
    let npy = zonda::format_named("npy").unwrap();
    let files = [create("a.nc", Format::Cdf5), create("a", npy)];
    let mut rngs = [Rng::new(seed), Rng::new(seed)];
    for step in 0..200 {
        let [classic, folder] = [0, 1].map(|side| call(&files[side], &mut rngs[side]));
        assert_eq!(classic, folder, "seed {seed}, step {step}");
    }
    let [classic, in_folder] = files.map(|file| {
        let closed = unit(file.close());
        if closed.is_err() {
            let _ = file.abort();
        }
        closed
    });
    assert_eq!(classic, in_folder, "seed {seed}");
    if classic.is_err() {
        // A classic file whose definitions were refused is removed.
        return;
    }
    let open = |name: &str, write| {
        let options = OpenOptions { write, ..OpenOptions::default() };
        Dataset::open(&folder.join(name), &options).unwrap()
    };
    let files = [open("a.nc", false), open("a", false)];
    assert_eq!(whole(&files[0]), whole(&files[1]), "seed {seed}");
    for step in 0..50 {
        let [classic, folder] = [0, 1].map(|side| call(&files[side], &mut rngs[side]));
        assert_eq!(classic, folder, "seed {seed}, step {step} of a reader");
    }
    drop(files);
    let files = [open("a.nc", true), open("a", true)];
    for step in 0..100 {
        let [classic, folder] = [0, 1].map(|side| call(&files[side], &mut rngs[side]));
        assert_eq!(classic, folder, "seed {seed}, step {step} of a writer");
    }
}

#[test]
fn random_lives_are_those_of_a_classic_file() {
    for seed in 0..80 {
        let folder = TempFolder::new("npy-lives");
        life(folder.path(), seed);
    }
}

#[test]
fn a_put_of_nothing_makes_records_as_in_a_classic_file() {
    let folder = TempFolder::new("zonda-npy-nothing");
    for (name, format) in [("a.nc", Format::Cdf5), ("a", zonda::format_named("npy").unwrap())] {
        let options = CreateOptions { format, ..CreateOptions::default() };
        let file = Dataset::create(&folder.path().join(name), &options).unwrap();
        let time = file.def_dim(b"time", 0).unwrap();
        let var = file.def_var(b"v", 4, &[time.0]).unwrap();
        file.enddef(Reserve::Default).unwrap();
        let nothing = Hyperslab { start: &[2], count: &[0], stride: None };
        let _ = file.put(var, &nothing, None, &[]).unwrap();
        assert_eq!(file.meta(|meta| meta.n_records()), 2, "{name}");
        file.close().unwrap();
    }
}
