//! Any bytes as a DAS: read, written and read again, it is the same. Its attributes go to the variables of a small dataset.
#![no_main]

use std::io::{Cursor, Read};
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use zonda_dap::dap2::{das::Set, open};
use zonda_dap::{Asked, Protocol, Request, Server};
use zonda_storage::StorageError;

const DDS: &[u8] = b"Dataset { Byte a; String s[t=2]; Structure { Float32 a[3]; } c; } d;";

#[derive(Debug)]
struct Small(Vec<u8>);

impl Server for Small {
    fn ask(&self, request: &Request) -> Result<Box<dyn Read + Send>, StorageError> {
        let document = if request.extension == ".das" { self.0.clone() } else { DDS.to_vec() };
        Ok(Box::new(Cursor::new(document)))
    }

    fn heeds_constraints(&self) -> bool {
        true
    }

    fn parallel(&self) -> usize {
        1
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(das) = Set::decode(bytes) else { return };
    assert_eq!(Set::decode(&das.encode()).unwrap(), das);
    let server: Arc<dyn Server> = Arc::new(Small(bytes.to_vec()));
    if let Ok(dataset) = open(&server, &Asked::default()) {
        let model = dataset.model();
        let atts = model.groups.iter().flat_map(|group| &group.atts).chain(model.vars.iter().flat_map(|var| &var.atts));
        for att in atts {
            const SIZES: [usize; 7] = [0, 1, 1, 2, 4, 4, 8];
            assert_eq!(att.values.bytes().len(), att.len * SIZES[att.nc_type as usize]);
        }
    }
});
