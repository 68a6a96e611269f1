//! Any text as a constraint of DAP4: clauses that are written and read back, or an error with its byte.
#![no_main]

use libfuzzer_sys::fuzz_target;
use zonda_dap::DapError;
use zonda_dap::dap4::constraint::{Constraint, escape};

fuzz_target!(|text: &str| {
    match Constraint::parse(text) {
        Ok(constraint) => {
            let written = constraint.to_string();
            let again = Constraint::parse(&written).expect("what was written is read");
            assert_eq!(again.to_string(), written);
            assert!(escape(&written).is_ascii());
        }
        Err(DapError::Malformed { at, .. }) => assert!(at <= text.len() as u64),
        Err(other) => panic!("{other}"),
    }
});
