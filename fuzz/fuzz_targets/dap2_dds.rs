//! Any bytes as a DDS: read, written and read again, it is the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use zonda_dap::dap2::dds::Dds;

fuzz_target!(|bytes: &[u8]| {
    match Dds::decode(bytes) {
        Ok(dds) => assert_eq!(Dds::decode(dds.encode().as_bytes()).unwrap(), dds),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
