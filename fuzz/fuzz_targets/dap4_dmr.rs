//! Any bytes as a DMR: a tree that is written and read back, and definitions that refer only to what is there, or an error.
#![no_main]

use std::io::{Cursor, Read};
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use zonda_dap::dap4::dmr::Dmr;
use zonda_dap::dap4::open;
use zonda_dap::{Asked, Protocol, Request, Server};
use zonda_format::FIRST_USER_TYPE;
use zonda_storage::StorageError;

#[derive(Debug)]
struct Alone(Vec<u8>);

impl Server for Alone {
    fn ask(&self, _: &Request) -> Result<Box<dyn Read + Send>, StorageError> {
        Ok(Box::new(Cursor::new(self.0.clone())))
    }

    fn heeds_constraints(&self) -> bool {
        false
    }

    fn parallel(&self) -> usize {
        1
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(dmr) = Dmr::parse(bytes) else { return };
    let again = Dmr::parse(dmr.write().as_bytes());
    assert_eq!(again.expect("what was written is read"), dmr);
    for setting in ["nc4", ""] {
        let settings = vec![("translate".to_owned(), setting.to_owned())];
        let asked = Asked { settings, ..Asked::default() };
        let server: Arc<dyn Server> = Arc::new(Alone(bytes.to_vec()));
        let Ok(dataset) = open(&server, &asked) else { continue };
        let model = dataset.model();
        let last = FIRST_USER_TYPE + i32::try_from(model.types.len()).expect("few types");
        for var in &model.vars {
            assert!(var.group < model.groups.len());
            assert!(var.dims.iter().all(|dim| *dim < model.dims.len()));
            assert!((1..=12).contains(&var.nc_type) || (FIRST_USER_TYPE..last).contains(&var.nc_type));
        }
    }
});
