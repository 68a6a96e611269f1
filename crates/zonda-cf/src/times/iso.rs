//! Reads dates from text and writes them as text.

use super::calendar::{Calendar, int_of};
use super::scan::Scan;
use super::{CompTime, Problem};

/// Why reading a date ended before its last field.
enum DateEnd {
    /// The text has no more.
    End,
    /// A field is out of range, which is in the list.
    Wrong,
}

/// Whether a value is below 0 or above `last`; a NaN is neither.
fn is_outside(value: f64, last: f64) -> bool {
    value < 0.0 || value > last
}

/// The first field that is out of range. The 31st of February is in range, and so is hour 24, which
/// may result from rounding.
fn wrong_field(date: &CompTime) -> Option<Problem> {
    if !(1..=12).contains(&date.month) {
        Some(Problem::Field("month", date.month.into()))
    } else if !(1..=31).contains(&date.day) {
        Some(Problem::Field("day", date.day.into()))
    } else if is_outside(date.hour, 24.0) {
        Some(Problem::Field("hour", date.hour))
    } else {
        None
    }
}

/// The date that `text` names. Fields that are missing, or come after an error, are year 0, month
/// 1, day 1, hour 0.
#[must_use]
pub fn date(calendar: Calendar, text: &[u8], problems: &mut Vec<Problem>) -> CompTime {
    let mut date = CompTime { year: 0, month: 1, day: 1, hour: 0.0 };
    let mut scan = Scan(text);
    if scan.clone().integer().is_none() {
        problems.push(Problem::NoDate(text.to_vec()));
    } else if !matches!(fields(calendar, &mut scan, &mut date, problems), Err(DateEnd::Wrong)) {
        // A date that is out of range is returned all the same.
        problems.extend(wrong_field(&date));
    }
    date
}

/// Reads one field after another into `date`.
fn fields(
    calendar: Calendar,
    scan: &mut Scan<'_>,
    date: &mut CompTime,
    problems: &mut Vec<Problem>,
) -> Result<(), DateEnd> {
    let end = || DateEnd::End;
    if calendar.has_years() {
        date.year = scan.integer().ok_or_else(end)?;
        scan.literal(b"-").ok_or_else(end)?;
    }
    // Numbers too large for a field are cut to its bits, as C cuts them.
    date.month = scan.integer().ok_or_else(end)? as i16;
    scan.literal(b"-").ok_or_else(end)?;
    date.day = scan.integer().ok_or_else(end)? as i16;
    date.hour = f64::from(clock(scan, 23, "hour", problems)?);
    scan.literal(b":").ok_or_else(end)?;
    date.hour += f64::from(clock(scan, 59, "minute", problems)?) / 60.0;
    scan.literal(b":").ok_or_else(end)?;
    let seconds = scan.last_float().ok_or_else(end)?;
    if is_outside(seconds, 60.0) {
        problems.push(Problem::Field("second", seconds));
        return Err(DateEnd::Wrong);
    }
    date.hour += seconds / 3600.0;
    Ok(())
}

/// A number from 0 to `last`.
fn clock(
    scan: &mut Scan<'_>,
    last: i32,
    what: &'static str,
    problems: &mut Vec<Problem>,
) -> Result<i32, DateEnd> {
    let value = scan.integer().ok_or(DateEnd::End)? as i32;
    if (0..=last).contains(&value) {
        Ok(value)
    } else {
        problems.push(Problem::Field(what, value.into()));
        Err(DateEnd::Wrong)
    }
}

/// The date as text, as short as it can be, with `separator` before the time of day.
///
/// # Errors
/// The field that is out of range.
pub fn text(calendar: Calendar, separator: u8, date: &CompTime) -> Result<Vec<u8>, Problem> {
    /// Half a microsecond, in seconds, minutes and hours: nearer than that to the next unit is
    /// rounding.
    const SECOND: f64 = 0.5e-6;
    const MINUTE: f64 = SECOND / 60.0;
    const HOUR: f64 = MINUTE / 60.0;

    if let Some(problem) = wrong_field(date) {
        return Err(problem);
    }
    let hours = int_of(date.hour + HOUR);
    let minutes = 60.0 * (date.hour - f64::from(hours));
    let whole_minutes = int_of(minutes + MINUTE);
    let seconds = 60.0 * (minutes - f64::from(whole_minutes));
    let whole_seconds = int_of(seconds + SECOND);

    let year = match date.year {
        _ if !calendar.has_years() => String::new(),
        // The sign is not one of the four digits.
        year if year < 0 => format!("-{:04}-", year.unsigned_abs()),
        year => format!("{year:04}-"),
    };
    let day = format!("{year}{:02}-{:02}", date.month, date.day);
    let is_whole = seconds - f64::from(whole_seconds) < SECOND;
    let time = match (is_whole, hours, whole_minutes, whole_seconds) {
        (true, 0, 0, 0) => return Ok(day.into_bytes()),
        (true, _, 0, 0) => format!("{hours:02}"),
        (true, _, _, 0) => format!("{hours:02}:{whole_minutes:02}"),
        (true, ..) => format!("{hours:02}:{whole_minutes:02}:{whole_seconds:02}"),
        (false, ..) => format!("{hours:02}:{whole_minutes:02}:{}", decimals(seconds)),
    };
    let mut text = day.into_bytes();
    text.push(separator);
    text.extend_from_slice(time.as_bytes());
    Ok(text)
}

/// Six decimals, as C writes them.
fn decimals(value: f64) -> String {
    match (value.is_nan(), value.is_sign_negative()) {
        (true, true) => "-nan".to_owned(),
        (true, false) => "nan".to_owned(),
        (false, _) => format!("{value:.6}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::calendar::STANDARD;
    use super::*;

    const CLIM: Calendar = Calendar(0x1000);

    fn written(date: CompTime) -> String {
        String::from_utf8(text(Calendar(STANDARD), b'T', &date).unwrap_or_default()).unwrap()
    }

    #[test]
    fn problems_are_listed() {
        for (text, problem) in [
            ("noon", Some(Problem::NoDate(b"noon".to_vec()))),
            ("1990-13-1", Some(Problem::Field("month", 13.0))),
            ("1990-1-32", Some(Problem::Field("day", 32.0))),
            ("1990-1-1 24", Some(Problem::Field("hour", 24.0))),
            ("1990-1-1 1:60", Some(Problem::Field("minute", 60.0))),
            ("1990-1-1 1:1:61", Some(Problem::Field("second", 61.0))),
            ("1990-2-31", None),
        ] {
            let mut problems = Vec::new();
            let _ = date(Calendar(STANDARD), text.as_bytes(), &mut problems);
            assert_eq!(problems.first(), problem.as_ref(), "{text}");
        }
    }

    #[test]
    fn text_is_as_short_as_the_time_allows() {
        let date = CompTime { year: 5, month: 2, day: 3, hour: 0.0 };
        for (hour, expected) in [
            (0.0, "0005-02-03"),
            (4.0, "0005-02-03T04"),
            (4.5, "0005-02-03T04:30"),
            (4.0 + 7.0 / 3600.0, "0005-02-03T04:00:07"),
            (4.0 + 7.5 / 3600.0, "0005-02-03T04:00:7.500000"),
            (1.0 / 128.0 / 3600.0, "0005-02-03T00:00:0.007812"),
            (24.0, "0005-02-03T24"),
            (24.5, ""),
            (-0.5, ""),
        ] {
            assert_eq!(written(CompTime { hour, ..date }), expected);
        }
        assert_eq!(written(CompTime { year: -1, ..date }), "-0001-02-03");
        assert_eq!(written(CompTime { year: 123_456, ..date }), "123456-02-03");
        assert_eq!(written(CompTime { month: 13, ..date }), "");
        assert_eq!(text(CLIM, b' ', &date).unwrap(), b"02-03");
    }

    #[test]
    fn a_date_is_read_up_to_what_is_wrong() {
        let midnight = |year, month, day| CompTime { year, month, day, hour: 0.0 };
        for (text, expected) in [
            ("1990", midnight(1990, 1, 1)),
            ("-44-3-15", midnight(-44, 3, 15)),
            ("1990- 2- 3", midnight(1990, 2, 3)),
            ("1990 -2-3", midnight(1990, 1, 1)),
            ("1990-2-3 25:10", midnight(1990, 2, 3)),
            ("1990-2-3 6:60:1", CompTime { hour: 6.0, ..midnight(1990, 2, 3) }),
            ("1990-2-3 6:30:99", CompTime { hour: 6.5, ..midnight(1990, 2, 3) }),
            ("1990-2-3 6:30:36", CompTime { hour: 6.5 + 0.01, ..midnight(1990, 2, 3) }),
            ("1990-65537-3", midnight(1990, 1, 3)),
            ("noon", midnight(0, 1, 1)),
            ("", midnight(0, 1, 1)),
        ] {
            assert_eq!(
                date(Calendar(STANDARD), text.as_bytes(), &mut Vec::new()),
                expected,
                "{text}"
            );
        }
        assert_eq!(
            date(CLIM, b"3-15 6", &mut Vec::new()),
            CompTime { hour: 6.0, ..midnight(0, 3, 15) }
        );
    }
}
