//! Any text as a constraint: read, written and read again, it is the same; escaped, it is what a URL may have.
#![no_main]

use libfuzzer_sys::fuzz_target;
use zonda_dap::dap2::constraint::{Constraint, escape};

fuzz_target!(|text: &str| {
    let Ok(constraint) = Constraint::decode(text) else { return };
    let written = constraint.to_string();
    assert_eq!(Constraint::decode(&written).unwrap(), constraint, "{written}");
    assert!(escape(&written).bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#'));
});
