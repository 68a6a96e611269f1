//! Time as cheaply as can be had.
//!
//! Where the processor has a counter that runs at one speed whatever it does (invariant TSC of x86-64,
//! the virtual counter of aarch64), its ticks are recorded as they are. How long a tick takes is not
//! measured at the start, which would take milliseconds: each block of a trace carries a pair of ticks
//! and nanoseconds, and the reader computes it from those ([`crate::decode`]). Elsewhere a tick is a
//! nanosecond of the monotonic clock.
//!
//! Crates for this (quanta, minstant) calibrate when they start, for up to 200 ms, so they are not used.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

use zonda_runtime::Settled;

const UNKNOWN: u8 = 0;
const COUNTER: u8 = 1;
const SYSTEM: u8 = 2;
static SOURCE: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Ticks now. They never begin at 0, so that 0 can mean that there is no time.
#[inline]
pub(crate) fn ticks() -> u64 {
    match SOURCE.load(Ordering::Relaxed) {
        COUNTER => counter().max(1),
        SYSTEM => nanoseconds().max(1),
        _ => choose(),
    }
}

/// Whether ticks are those of the processor.
pub(crate) fn is_counter() -> bool {
    ticks();
    SOURCE.load(Ordering::Relaxed) == COUNTER
}

/// Nanoseconds of the monotonic clock since the first call.
pub(crate) fn nanoseconds() -> u64 {
    static EPOCH: Settled<Instant> = Settled::new();
    let since = EPOCH.get_or_make(Instant::now).elapsed();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cold]
fn choose() -> u64 {
    SOURCE.store(if has_counter() { COUNTER } else { SYSTEM }, Ordering::Relaxed);
    ticks()
}

#[cfg(target_arch = "x86_64")]
fn has_counter() -> bool {
    use std::arch::x86_64::__cpuid;
    // AMD and Intel manuals, CPUID: leaf 0x8000_0007, bit 8 of EDX is "invariant TSC".
    const POWER: u32 = 0x8000_0007;
    __cpuid(0x8000_0000).eax >= POWER && __cpuid(POWER).edx & (1 << 8) != 0
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn counter() -> u64 {
    // SAFETY: reads a register that every x86-64 processor has and changes nothing.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "aarch64")]
fn has_counter() -> bool {
    true
}

#[cfg(target_arch = "aarch64")]
#[inline]
fn counter() -> u64 {
    let ticks: u64;
    // SAFETY: reads a register that Linux lets programs read, and changes nothing.
    unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    ticks
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn has_counter() -> bool {
    false
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn counter() -> u64 {
    nanoseconds()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on() {
        let (a, before) = (ticks(), nanoseconds());
        std::thread::sleep(std::time::Duration::from_millis(2));
        let (b, after) = (ticks(), nanoseconds());
        assert!(a > 0 && b > a && after >= before + 2_000_000, "{a} {b} {before} {after}");
    }
}
