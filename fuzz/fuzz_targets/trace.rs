//! Any bytes as a trace: events, or an error with its place. As they are, and as contents of blocks whose
//! heads are sound, so that what is inside is reached.
#![no_main]

use libfuzzer_sys::fuzz_target;
use zonda_trace::decode::{DecodeError, Decoder, TraceStep};
use zonda_trace::format::{BlockHead, EVENT_BYTES, EVENTS, NAMES, SECTION};

fn decode(bytes: &[u8]) {
    let mut decoder = Decoder::new(bytes);
    loop {
        let _ = (decoder.lost(), decoder.names().word(1));
        match decoder.step() {
            Ok(None) => break,
            Ok(Some(TraceStep::Events(events))) => {
                assert!(events.len() <= bytes.len() / EVENT_BYTES);
                for event in events {
                    assert!(event.end_ns() >= event.begin_ns);
                }
            }
            Ok(Some(TraceStep::Process(process))) => assert!(process.library.len() <= 3 * bytes.len()),
            Err(DecodeError::Bad { at, .. }) => {
                assert!(at <= bytes.len() as u64);
                break;
            }
            Err(other) => panic!("{other}"),
        }
    }
}

fuzz_target!(|data: &[u8]| {
    decode(data);
    let mut framed = Vec::new();
    let mut section = vec![1, 0, 1, 0];
    section.resize(28, 0);
    section.extend_from_slice(&[0; 4]);
    let parts = std::iter::once((SECTION, &section[..])).chain(data.chunks(480).map(|part| {
        let kind = part.first().map_or(EVENTS, |byte| [EVENTS, NAMES, SECTION][usize::from(byte % 3)]);
        let len = if kind == EVENTS { part.len() / EVENT_BYTES * EVENT_BYTES } else { part.len() };
        (kind, &part[..len])
    }));
    for (ticks, (contents, payload)) in (1u64..).zip(parts) {
        let len_bytes = payload.len() as u32;
        let head = BlockHead { contents, len_bytes, thread: 1, ticks, ns: 3 * ticks, lost: 0 };
        framed.extend_from_slice(&head.encode());
        framed.extend_from_slice(payload);
    }
    decode(&framed);
});
