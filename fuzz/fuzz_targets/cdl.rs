//! Any bytes as CDL: a schema and its data, or a fault that can be explained; in both languages. Attributes
//! and fill values can be made, or a fault says why not.
#![no_main]

use libfuzzer_sys::fuzz_target;
use zonda_cdl::{Dialect, Elements, Nowhere, CdlText, attribute, fill, parse, stream};

fuzz_target!(|bytes: &[u8]| {
    let Ok(source) = CdlText::from_bytes(bytes.to_vec()) else { return };
    for dialect in [Dialect::Enhanced, Dialect::Classic] {
        let mut schema = match parse(&source, dialect, None, None) {
            Ok(schema) => schema,
            Err(fault) => {
                let said = fault.explain("a.cdl", &source);
                assert!(said.starts_with("a.cdl"));
                continue;
            }
        };
        schema.settle(schema.kind());
        for att in &schema.atts {
            if let Ok((values, n)) = attribute(&schema, att) {
                assert_eq!(values.bytes.len(), n * schema.size_of(att.ty));
            }
        }
        for var in &schema.vars {
            // Large types have large values: that is their right, but takes time.
            let mut values = Elements::default();
            if schema.size_of(var.ty) < 1 << 20 && fill(&schema, var, &mut values).is_ok() {
                assert_eq!(values.bytes.len(), schema.size_of(var.ty));
            }
        }
        if let Err(fault) = stream(&source, &mut schema, &mut Nowhere) {
            let _ = fault.explain("a.cdl", &source);
        }
    }
});
