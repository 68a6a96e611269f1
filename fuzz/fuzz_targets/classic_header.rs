//! Any bytes as a header: an answer, and what was read is written back and read the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use zonda_classic::{decode_header, encode_header};

fuzz_target!(|bytes: &[u8]| {
    let Ok((header, n_records)) = decode_header(bytes) else { return };
    let encoded = encode_header(&header, n_records).expect("memory for a small header");
    let (again, n_again) = decode_header(&encoded).expect("what was encoded is readable");
    assert_eq!(n_again, n_records);
    assert_eq!(again.dims, header.dims);
    assert_eq!(again.atts, header.atts);
    assert_eq!(again.vars, header.vars);
    assert_eq!(again.layout, header.layout);
});
