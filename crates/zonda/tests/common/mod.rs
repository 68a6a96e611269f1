//! What the integration tests share: stacks built by hand, values as `f64`, and views of a whole
//! dataset that can be compared.
#![allow(dead_code, unreachable_pub, reason = "every test file uses its own part of this")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use zonda::storage::{Handles, Spec, Storage};
use zonda::{CreateOptions, Dataset, Format, Hyperslab, MemType, OpenOptions, Result, VarId};

/// The name that messages of datasets in hand-made storages carry.
pub const NAME: &str = "test.nc";

/// The formats there are.
pub const FORMATS: [Format; 3] = [Format::Cdf1, Format::Cdf2, Format::Cdf5];

/// Stacks `layers` (such as `cache:1:2,count`) on `base`.
pub fn stacked(layers: &str, base: Arc<dyn Storage>) -> (Arc<dyn Storage>, Handles) {
    let spec: Spec = layers.parse().unwrap_or_else(|why| panic!("{layers}: {why}"));
    let mut handles = Handles::default();
    let storage = spec.build_with(base, &mut handles).unwrap_or_else(|why| panic!("{why}"));
    (storage, handles)
}

/// A new dataset in `storage`.
pub fn create(storage: &Arc<dyn Storage>, format: Format, share: bool) -> Dataset {
    let options = CreateOptions { format, share, ..CreateOptions::default() };
    Dataset::create_in(Arc::clone(storage), Path::new(NAME), &options).expect("create")
}

/// Opens the dataset in `storage`.
pub fn open(storage: &Arc<dyn Storage>, write: bool, share: bool) -> Result<Dataset> {
    let options = OpenOptions { write, share, ..OpenOptions::default() };
    Dataset::open_in(Arc::clone(storage), Path::new(NAME), &options)
}

fn native(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_ne_bytes()).collect()
}

fn values(bytes: &[u8]) -> Vec<f64> {
    let exact = bytes.chunks_exact(8);
    exact.map(|b| f64::from_ne_bytes(b.try_into().expect("eight bytes"))).collect()
}

/// Puts `values` as doubles.
pub fn put(
    file: &Dataset,
    var: VarId,
    start: &[usize],
    count: &[usize],
    values: &[f64],
) -> Result<()> {
    let slab = Hyperslab { start, count, stride: None };
    let bytes = native(values);
    let converted = file.put(var, &slab, Some(MemType::F64), &bytes)?;
    assert_eq!(converted.out_of_range, 0);
    Ok(())
}

/// Gets values as doubles.
pub fn get(file: &Dataset, var: VarId, start: &[usize], count: &[usize]) -> Result<Vec<f64>> {
    let slab = Hyperslab { start, count, stride: None };
    let mut bytes = vec![0; 8 * slab.n_elems().expect("it fits into memory")];
    let converted = file.get(var, &slab, Some(MemType::F64), &mut bytes)?;
    assert_eq!(converted.out_of_range, 0);
    Ok(values(&bytes))
}

/// Lengths of a variable now.
pub fn shape(file: &Dataset, var: VarId) -> Vec<usize> {
    file.meta(|meta| {
        let mut shape = [0; 8];
        let rank = meta.var_shape(var, &mut shape).expect("a variable");
        shape[..rank].to_vec()
    })
}

/// Everything in a dataset: attributes as bytes, variables as shape and values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    pub atts: BTreeMap<String, Vec<u8>>,
    pub vars: BTreeMap<String, (Vec<usize>, Vec<f64>)>,
    pub dims: Vec<(String, u64)>,
}

fn text(name: &[u8]) -> String {
    String::from_utf8(name.to_vec()).expect("the tests' names are ASCII")
}

/// Reads all of `file`.
pub fn view(file: &Dataset) -> Result<View> {
    let mut view = View::default();
    let mut names = Vec::new();
    file.meta(|meta| {
        for id in meta.dim_ids() {
            let dim = meta.dim(id)?;
            view.dims.push((text(dim.name), dim.len));
        }
        let owners = std::iter::once(VarId::GLOBAL).chain((0..meta.n_vars() as i32).map(VarId));
        for owner in owners {
            let prefix = if owner == VarId::GLOBAL {
                String::new()
            } else {
                let var = meta.var(owner)?;
                names.push(text(var.name));
                text(var.name)
            };
            for i in 0..meta.n_atts(owner)? {
                let att = meta.att(owner, i)?;
                let bytes = att.bytes.unwrap_or_default().to_vec();
                view.atts.insert(format!("{prefix}:{}", text(&att.name)), bytes);
            }
        }
        Ok::<(), zonda::Error>(())
    })?;
    for (i, name) in names.into_iter().enumerate() {
        let var = VarId(i as i32);
        let shape = shape(file, var);
        let values = get(file, var, &vec![0; shape.len()], &shape)?;
        view.vars.insert(name, (shape, values));
    }
    Ok(view)
}
