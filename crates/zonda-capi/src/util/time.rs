//! Times of the distribution's tools: `ncdump -t`, `ncdump -i` and time literals of `ncgen`.
//!
//! What they mean is in [`zonda_cf::times`].
//!
//! Errors are not returned: what is wrong is skipped and, if [`cdSetErrOpts`] says so, reported on
//! standard error.

use std::ffi::{c_char, c_double, c_int, c_long, c_short, c_uint};
use std::io::Write as _;
use std::sync::atomic::{AtomicI32, Ordering};

use zonda_cf::times::{self, Calendar, Problem, TimeUnits};

use crate::c_memory::{bytes, put, put_text};

/// `CU_FATAL`: an error ends the program with status 1.
const FATAL: c_int = 1;
/// `CU_VERBOSE`: an error is reported on standard error.
const VERBOSE: c_int = 2;

/// What [`cdSetErrOpts`] has set last, for all threads.
static ERROR_OPTIONS: AtomicI32 = AtomicI32::new(0);

/// `cdCompTime`: a date whose time of day is in hours.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
#[repr(C)]
pub struct CdCompTime {
    /// Year, counted through 0.
    pub year: c_long,
    /// Month, 1 to 12.
    pub month: c_short,
    /// Day of the month, from 1.
    pub day: c_short,
    /// Hours since midnight.
    pub hour: c_double,
}

/// `CdTime`: a date that brings its calendar along.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CdTime {
    /// The date; `year` counts from `base_year` in calendars without the 1970 flag.
    pub date: CdCompTime,
    /// First year of calendars without the 1970 flag.
    pub base_year: c_long,
    /// Flags of the calendar (`CdTimeType`).
    pub time_type: c_uint,
}

impl From<times::CompTime> for CdCompTime {
    fn from(date: times::CompTime) -> CdCompTime {
        let times::CompTime { year, month, day, hour } = date;
        CdCompTime { year: year as c_long, month, day, hour }
    }
}

/// Reports a problem in the way that [`cdSetErrOpts`] has set.
fn report(problem: &Problem) {
    let options = ERROR_OPTIONS.load(Ordering::Relaxed);
    if options & VERBOSE != 0 {
        // Where standard error is closed, there is no place for a report.
        let _ = writeln!(std::io::stderr().lock(), "netCDF time: {problem}");
    }
    if options & FATAL != 0 {
        std::process::exit(1);
    }
}

/// Calls `read`, and reports the problems that it found.
fn with_reports<T>(read: impl FnOnce(&mut Vec<Problem>) -> T) -> T {
    let mut problems = Vec::new();
    let value = read(&mut problems);
    problems.iter().for_each(report);
    value
}

/// `int cdSetErrOpts(int opts);`
///
/// Sets what happens on errors from now on (`CU_VERBOSE`, `CU_FATAL`, both or 0) and returns what
/// was set before. Nothing happens on them at first.
#[unsafe(no_mangle)]
pub extern "C" fn cdSetErrOpts(opts: c_int) -> c_int {
    ERROR_OPTIONS.swap(opts, Ordering::Relaxed)
}

/// `int cdParseRelunits(cdCalenType timetype, char *relunits, cdUnitTime *unit,
/// cdCompTime *base_comptime);`
///
/// Takes "UNIT since DATE [TIME]" apart; "since" may be missing. Returns 0, or 1 for text without
/// a known unit. A base time that is wrong is reported, and delivered as far as it was read.
///
/// # Safety
/// `relunits` is null or a NUL-terminated string; the others are null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cdParseRelunits(
    timetype: c_uint,
    relunits: *mut c_char,
    unit: *mut c_int,
    base_comptime: *mut CdCompTime,
) -> c_int {
    // SAFETY: the contract above is that of `bytes`.
    let text = unsafe { bytes(relunits) }.unwrap_or_default();
    let Some(since) = with_reports(|list| TimeUnits::parse(Calendar(timetype), text, list)) else {
        return 1;
    };
    // SAFETY: the contract above is that of `put`.
    unsafe {
        put(unit, since.unit as c_int);
        put(base_comptime, since.base.into());
    }
    0
}

/// `void cdRel2Iso(cdCalenType timetype, char *relunits, int separator, double reltime,
/// char *chartime);`
///
/// The time `reltime` after the base of `relunits`, as "YYYY-MM-DD", with "Thh", ":mm", ":ss" and
/// six decimals as far as they are not 0; `separator` stands for the T. Without a year in
/// climatological calendars. Empty when there is no such date or the units are wrong: the
/// reference leaves `chartime` as it is then, and its ncdump prints what was on the stack.
///
/// # Safety
/// `relunits` is null or a NUL-terminated string; `chartime` is null or has room for the text (60
/// bytes always do) and does not overlap `relunits`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cdRel2Iso(
    timetype: c_uint,
    relunits: *mut c_char,
    separator: c_int,
    reltime: c_double,
    chartime: *mut c_char,
) {
    let calendar = Calendar(timetype);
    // SAFETY: the contract above is that of `bytes`.
    let text = unsafe { bytes(relunits) }.unwrap_or_default();
    let written = with_reports(|list| TimeUnits::parse(calendar, text, list)).and_then(|since| {
        let date = since.date_after(calendar, reltime);
        if let Ok(date) = &date {
            since.said_of_base(calendar, date).for_each(|problem| report(&problem));
        }
        let written = date.and_then(|date| times::text(calendar, separator as u8, &date));
        written.map_err(|problem| report(&problem)).ok()
    });
    // SAFETY: the contract above is that of `put_text`.
    unsafe { put_text(chartime, &written.unwrap_or_default()) };
}

/// `void cdChar2Comp(cdCalenType timetype, char *chartime, cdCompTime *comptime);`
///
/// Reads "YYYY-MM-DD hh:mm:ss.s", any tail of which may be missing; "MM-DD hh:mm:ss.s" in
/// climatological calendars. What is missing, or comes after a mistake, is year 0, month 1, day 1
/// and midnight.
///
/// # Safety
/// `chartime` is null or a NUL-terminated string; `comptime` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cdChar2Comp(
    timetype: c_uint,
    chartime: *mut c_char,
    comptime: *mut CdCompTime,
) {
    // SAFETY: the contract above is that of `bytes`.
    let text = unsafe { bytes(chartime) }.unwrap_or_default();
    // SAFETY: the contract above is that of `put`.
    unsafe {
        put(comptime, with_reports(|list| times::date(Calendar(timetype), text, list)).into())
    };
}

/// `void Cdh2e(CdTime *htime, double *etime);`
///
/// Hours from the start of 1970 to a date: from the start of `baseYear` in calendars without the
/// 1970 flag, from that of the year in climatological ones. Days are counted in an `int`, which
/// wraps about 5.9 million years from there.
///
/// # Safety
/// `htime` is null, or valid for a read; `etime` is null, or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Cdh2e(htime: *mut CdTime, etime: *mut c_double) {
    // SAFETY: null or valid by contract.
    let Some(human) = (unsafe { htime.as_ref() }) else { return };
    let CdCompTime { year, month, day, hour } = human.date;
    if !(1..=12).contains(&month) {
        report(&Problem::Field("month", month.into()));
    }
    #[allow(clippy::useless_conversion)] // not everywhere has `long` 64 bits
    let date = times::CompTime { year: i64::from(year), month, day, hour };
    #[allow(clippy::useless_conversion)] // likewise
    let hours = Calendar(human.time_type).hours(&date, i64::from(human.base_year));
    // SAFETY: the contract above is that of `put`.
    unsafe { put(etime, hours) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    #[test]
    fn structs_are_laid_out_as_the_tools_expect() {
        let long = size_of::<c_long>();
        assert_eq!(offset_of!(CdCompTime, month), long);
        assert_eq!(offset_of!(CdCompTime, day), long + 2);
        assert_eq!(offset_of!(CdCompTime, hour), 16);
        assert_eq!(size_of::<CdCompTime>(), 24);
        assert_eq!(offset_of!(CdTime, base_year), 24);
        assert_eq!(offset_of!(CdTime, time_type), 24 + long);
        assert_eq!(size_of::<CdTime>(), 40);
    }

    #[test]
    fn error_options_are_handed_back() {
        // Other tests of this process report errors and must not be ended by them.
        let before = cdSetErrOpts(0);
        assert_eq!(cdSetErrOpts(VERBOSE), 0);
        assert_eq!(cdSetErrOpts(before), VERBOSE);
    }

    #[test]
    fn null_pointers_are_no_crash() {
        let mut hours = -1.0;
        let null = std::ptr::null_mut();
        let mixed = Calendar::MIXED.0;
        // SAFETY: every function here takes null.
        unsafe {
            Cdh2e(std::ptr::null_mut(), &mut hours);
            cdChar2Comp(mixed, null, std::ptr::null_mut());
            cdRel2Iso(mixed, null, 32, 0.0, null);
            assert_eq!(cdParseRelunits(mixed, null, std::ptr::null_mut(), std::ptr::null_mut()), 1);
        }
        assert_eq!(hours, -1.0);
    }
}
