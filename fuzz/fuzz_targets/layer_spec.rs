//! Any string as a layer spec: an answer; what is accepted is printed and accepted the same again,
//! and builds.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use zonda_storage::{Spec, backend::Memory};

fuzz_target!(|text: &str| {
    let Ok(spec) = text.parse::<Spec>() else { return };
    let shown = spec.to_string();
    let again: Spec = shown.parse().expect("what was printed is accepted");
    assert_eq!(again.to_string(), shown);
    // `event:FILE` would write files all over the place.
    if !shown.contains("event") {
        let _ = spec.build_on(Arc::new(Memory::new()));
    }
});
