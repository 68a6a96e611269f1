//! Any bytes as a body: read and written, it is the same from then on; opened as a dataset, all of its values are read.
#![no_main]

use std::io::{Cursor, Read};
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use zonda_dap::dap2::body::Body;
use zonda_dap::dap2::encode::Encoder;
use zonda_dap::dap2::open;
use zonda_dap::{Asked, DapError, Part, Protocol, Request, Server, Sink};
use zonda_format::OwnedValues;
use zonda_storage::StorageError;

/// A saved response without anything else: the DDS is that of the values.
#[derive(Debug)]
struct Saved(Vec<u8>);

impl Server for Saved {
    fn ask(&self, request: &Request) -> Result<Box<dyn Read + Send>, StorageError> {
        if request.extension == ".dods" {
            return Ok(Box::new(Cursor::new(self.0.clone())));
        }
        Err(StorageError::Open { path: std::path::Path::new("x").into(), errno: 2 })
    }

    fn heeds_constraints(&self) -> bool {
        false
    }

    fn parallel(&self) -> usize {
        1
    }
}

/// Counts the bytes of each part.
struct Counted(Vec<u64>);

impl Sink for Counted {
    fn plain(&mut self, part: usize, elements: &[u8]) -> Result<(), DapError> {
        self.0[part] += elements.len() as u64;
        Ok(())
    }

    fn owned(&mut self, _part: usize, _elements: OwnedValues) -> Result<(), DapError> {
        panic!("DAP2 has no elements with pointers");
    }
}

fn again(bytes: &[u8]) -> Result<Vec<u8>, DapError> {
    let mut rest = bytes;
    let body = Body::open(&mut rest)?;
    let dds = body.dds().clone();
    let mut out = Vec::new();
    body.values(&mut Encoder::new(&dds, &mut out)?)?;
    Ok(out)
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(written) = again(bytes) {
        assert_eq!(again(&written).unwrap(), written);
    }
    let server: Arc<dyn Server> = Arc::new(Saved(bytes.to_vec()));
    let Ok(dataset) = open(&server, &Asked::default()) else { return };
    let model = dataset.model();
    let counts: Vec<Vec<u64>> =
        model.vars.iter().map(|var| var.dims.iter().map(|dim| model.dims[*dim].len).collect()).collect();
    let (zeros, ones) = (vec![0; 2048], vec![1; 2048]);
    let parts: Vec<Part<'_>> = counts
        .iter()
        .enumerate()
        .filter(|(_, count)| !count.contains(&0))
        .map(|(var, count)| Part { var, start: &zeros[..count.len()], count, stride: &ones[..count.len()] })
        .collect();
    let mut sink = Counted(vec![0; parts.len()]);
    if dataset.read(&parts, &mut &bytes[..], &mut sink).is_ok() {
        for (part, bytes) in parts.iter().zip(sink.0) {
            const SIZES: [u64; 7] = [0, 1, 1, 2, 4, 4, 8];
            let size = SIZES[model.vars[part.var].nc_type as usize];
            assert_eq!(bytes, part.count.iter().product::<u64>() * size);
        }
    }
});
