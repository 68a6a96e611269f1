//! What an event costs: switched off, in a loop that does something; and recorded, blocks written to a
//! file in the temporary folder included.
//!
//! `cargo bench -p zonda-trace`. Prints; decides nothing.

use std::hint::black_box;
use std::io::Write;
use std::time::Instant;

use zonda_trace::{Args, EventKind, instant, span};

const EVENTS: u32 = 2_000_000;

/// Nanoseconds of one turn of `body`, the best of five rounds.
fn ns(mut body: impl FnMut(u64)) -> f64 {
    let round = |body: &mut dyn FnMut(u64)| {
        let begin = Instant::now();
        (0..u64::from(EVENTS)).for_each(|i| body(black_box(i)));
        begin.elapsed().as_secs_f64() * 1e9 / f64::from(EVENTS)
    };
    (0..5).map(|_| round(&mut body)).fold(f64::INFINITY, f64::min)
}

fn work(sum: &mut u64, i: u64) {
    *sum = black_box(sum.wrapping_mul(31).wrapping_add(i));
}

fn main() {
    let mut sum = 0;
    let plain = ns(|i| work(&mut sum, i));
    let traced = |sum: &mut u64, i: u64| {
        let _span = span(EventKind::Call, || Args {
            offset: i,
            bytes: 8,
            name: "nc_put_var1_double",
            ..Args::default()
        });
        work(sum, i);
    };
    let off = ns(|i| traced(&mut sum, i));
    let trace = tempfile::NamedTempFile::new().expect("a temporary file");
    zonda_trace::record_to(trace.path());
    let on = ns(|i| traced(&mut sum, i));
    let point = ns(|i| instant(EventKind::QueueAccept, || Args { bytes: i, ..Args::default() }));
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "off: {:.2} ns an event", off - plain);
    let _ = writeln!(out, "span: {:.1} ns an event", on - plain);
    let _ = writeln!(out, "instant: {point:.1} ns an event");
}
