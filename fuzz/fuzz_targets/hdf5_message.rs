//! Any bytes as any message of an object header, in all widths of addresses and lengths.
#![no_main]

use libfuzzer_sys::fuzz_target;
use zonda_hdf5::{ReadLimits, Reader, Sizes, message};

fuzz_target!(|bytes: &[u8]| {
    let [number, widths, body @ ..] = bytes else { return };
    let width = |bits: u8| [2, 4, 8, 8][usize::from(bits & 3)];
    let sizes = Sizes { offset: width(*widths), length: width(widths >> 2) };
    let reader = Reader::new("message", body, 1 << 20, sizes);
    let _ = message::decode(u16::from(number % 32), reader, &ReadLimits::default());
});
