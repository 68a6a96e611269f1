//! Any bytes as a saved response of DAP4: all values of its variables, or an error.
#![no_main]

use std::io::{Cursor, Read};
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use zonda_dap::dap4::open;
use zonda_dap::{Asked, DapError, Part, Protocol, Request, Server, Sink};
use zonda_format::OwnedValues;
use zonda_storage::{RemoteFailure, StorageError};

#[derive(Debug)]
struct Saved(Vec<u8>);

impl Server for Saved {
    fn ask(&self, request: &Request) -> Result<Box<dyn Read + Send>, StorageError> {
        if request.extension == ".dap" {
            return Ok(Box::new(Cursor::new(self.0.clone())));
        }
        let (url, kind, what) = ("a".into(), RemoteFailure::NotFound, "not there".into());
        Err(StorageError::Remote { url, range: None, kind, status: None, what })
    }

    fn heeds_constraints(&self) -> bool {
        false
    }

    fn parallel(&self) -> usize {
        1
    }
}

/// Bytes of elements by part.
struct Count(Vec<u64>);

impl Sink for Count {
    fn plain(&mut self, part: usize, elements: &[u8]) -> Result<(), DapError> {
        self.0[part] += elements.len() as u64;
        Ok(())
    }

    fn owned(&mut self, part: usize, elements: OwnedValues) -> Result<(), DapError> {
        self.plain(part, elements.bytes())
    }
}

fuzz_target!(|bytes: &[u8]| {
    let server: Arc<dyn Server> = Arc::new(Saved(bytes.to_vec()));
    let Ok(dataset) = open(&server, &Asked::default()) else { return };
    let model = dataset.model();
    let shapes: Vec<Vec<u64>> =
        model.vars.iter().map(|var| var.dims.iter().map(|dim| model.dims[*dim].len).collect()).collect();
    let (zeros, ones) = (vec![0; 1024], vec![1; 1024]);
    let parts = shapes.iter().enumerate().map(|(var, count)| Part {
        var,
        start: &zeros[..count.len()],
        count,
        stride: &ones[..count.len()],
    });
    let parts: Vec<_> = parts.filter(|part| !part.count.contains(&0)).collect();
    let mut sink = Count(vec![0; parts.len()]);
    if dataset.read(&parts, &mut &bytes[..], &mut sink).is_ok() {
        for (part, bytes) in parts.iter().zip(sink.0) {
            assert_eq!(bytes % part.count.iter().product::<u64>(), 0);
        }
    }
});
