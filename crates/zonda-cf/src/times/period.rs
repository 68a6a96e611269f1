//! Dates as people write them, as exact as they like: a year, a month, a day, an hour …

use super::calendar::Calendar;
use super::{CompTime, Dates};

/// The time that a date stands for: `2004-07` is all of July, `2004-07-01 12` an hour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Period {
    /// When it begins.
    pub from: CompTime,
    /// When it has ended.
    pub until: CompTime,
}

/// Why a text is no [`Period`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPeriod {
    /// It is not written as a date.
    NoDate,
    /// It is, but the calendar has no such date.
    NotInCalendar,
}

/// Digits at the beginning of a text, at least and at most so many, as a number; and what follows.
fn digits(text: &str, least: usize, most: usize) -> Option<(i64, &str)> {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    ((least..=most).contains(&end)).then_some(())?;
    Some((digits.parse().ok()?, rest))
}

impl Period {
    /// Reads `YYYY[-MM[-DD[Thh[:mm[:ss]]]]]`, with a blank or a `T` before the time of day and perhaps a `Z` behind it. A year
    /// has four digits or more.
    fn parse(calendar: Calendar, text: &str) -> Result<Period, NoPeriod> {
        let text = text.trim();
        let (sign, text) = text.strip_prefix('-').map_or((1, text), |text| (-1, text));
        let (year, rest) = digits(text, 4, 6).ok_or(NoPeriod::NoDate)?;
        let first = CompTime { year: sign * year, month: 1, day: 1, hour: 0.0 };
        if rest.is_empty() {
            return Ok(Period { from: first, until: CompTime { year: first.year + 1, ..first } });
        }
        let (month, rest) = field(rest, "-")?;
        let first = CompTime { month: small(month), ..first };
        if !(1..=12).contains(&first.month) {
            return Err(NoPeriod::NotInCalendar);
        }
        if rest.is_empty() {
            let until = match first.month {
                12 => CompTime { year: first.year + 1, month: 1, ..first },
                month => CompTime { month: month + 1, ..first },
            };
            return Ok(Period { from: first, until });
        }
        let (day, rest) = field(rest, "-")?;
        let first = CompTime { day: small(day), ..first };
        if !calendar.has_day(&first) {
            return Err(NoPeriod::NotInCalendar);
        }
        let (hours, long) = clock(rest)?;
        let hour = |hour: f64| CompTime { hour, ..first };
        Ok(Period { from: hour(hours), until: hour(hours + long) })
    }
}

/// A number of one or two digits behind a sign.
fn field<'a>(text: &'a str, sign: &str) -> Result<(i64, &'a str), NoPeriod> {
    let digits = text.strip_prefix(sign).and_then(|text| digits(text, 1, 2));
    digits.ok_or(NoPeriod::NoDate)
}

/// A number of two digits.
fn small(number: i64) -> i16 {
    i16::try_from(number).unwrap_or(i16::MAX)
}

/// The time of day in hours, and how many hours it stands for: the whole day where there is none.
fn clock(text: &str) -> Result<(f64, f64), NoPeriod> {
    let text = text.strip_suffix(['Z', 'z']).unwrap_or(text);
    if text.is_empty() {
        return Ok((0.0, 24.0));
    }
    let (hour, rest) = field(text, "T").or_else(|_| field(text, " "))?;
    let (mut time, mut long) = (hour as f64, 1.0);
    let mut rest = rest;
    let mut is_there = hour < 24;
    for unit in [60.0, 3600.0] {
        if rest.is_empty() {
            break;
        }
        let (number, behind) = field(rest, ":")?;
        is_there &= number < 60;
        time += number as f64 / unit;
        (long, rest) = (1.0 / unit, behind);
    }
    match (rest.is_empty(), is_there) {
        (false, _) => Err(NoPeriod::NoDate),
        (true, false) => Err(NoPeriod::NotInCalendar),
        (true, true) => Ok((time, long)),
    }
}

impl Dates {
    /// Reads a date in this calendar: `YYYY[-MM[-DD[Thh[:mm[:ss]]]]]`.
    ///
    /// # Errors
    /// [`NoPeriod`]: it is no date, or none of this calendar.
    pub fn period(&self, text: &str) -> Result<Period, NoPeriod> {
        Period::parse(self.calendar, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dates(units: &str, calendar: &str) -> Dates {
        Dates::parse(units.as_bytes(), calendar.as_bytes()).unwrap()
    }

    /// The numbers of days from 2000-01-01 on that are in the period.
    fn days(calendar: &str, text: &str) -> Vec<i32> {
        let dates = dates("days since 2000-01-01", calendar);
        let period = dates.period(text).unwrap();
        (-400..800).filter(|day| dates.is_in(f64::from(*day), &period)).collect()
    }

    #[test]
    fn a_date_is_as_long_as_it_is_written() {
        for (calendar, text, first, last) in [
            ("standard", "2000", 0, 365),
            ("standard", "2000-02", 31, 59),
            ("standard", "2000-12", 335, 365),
            ("noleap", "2000-02", 31, 58),
            ("360_day", "2000-02", 30, 59),
            ("360_day", "2000-02-30", 59, 59),
            ("standard", "2000-2-29", 59, 59),
            ("standard", "1999-12-31", -1, -1),
            ("standard", "2000-01-02 00", 1, 1),
            ("standard", "2000-01-02T00:00:00Z", 1, 1),
        ] {
            let found = days(calendar, text);
            assert_eq!((found[0], found[found.len() - 1]), (first, last), "{calendar} {text}");
            assert_eq!(found.len(), (last - first + 1) as usize, "{calendar} {text}");
        }
        assert_eq!(days("standard", "2000-01-02T12"), []);
        let rounded = dates("days since 1970-01-01", "");
        let day = rounded.period("1978-11-14").unwrap();
        assert!(rounded.is_in(3_238.999_999_5, &day) && !rounded.is_in(3_239.999_999_5, &day));
        let hours = dates("hours since 2000-01-01", "");
        for (text, within, before) in [
            ("2000-01-02T06", 30.9, 29.9),
            ("2000-01-02 06:30", 30.5, 30.49),
            ("2000-01-02", 24.0, 48.0),
        ] {
            let period = hours.period(text).unwrap();
            assert!(hours.is_in(within, &period) && !hours.is_in(before, &period), "{text}");
        }
    }

    #[test]
    fn what_is_no_date() {
        for (calendar, text, why) in [
            ("", "yesterday", NoPeriod::NoDate),
            ("", "", NoPeriod::NoDate),
            ("", "3", NoPeriod::NoDate),
            ("", "-1", NoPeriod::NoDate),
            ("", "2000-", NoPeriod::NoDate),
            ("", "2000-01-01x", NoPeriod::NoDate),
            ("", "2000-01-01T", NoPeriod::NoDate),
            ("", "2000-01-01T1:2:3:4", NoPeriod::NoDate),
            ("", "2000-001", NoPeriod::NoDate),
            ("", "2000-13", NoPeriod::NotInCalendar),
            ("", "2001-02-29", NoPeriod::NotInCalendar),
            ("noleap", "2000-02-29", NoPeriod::NotInCalendar),
            ("360_day", "2000-01-31", NoPeriod::NotInCalendar),
            ("standard", "1582-10-10", NoPeriod::NotInCalendar),
            ("", "2000-01-01T24", NoPeriod::NotInCalendar),
            ("", "2000-01-01T23:60", NoPeriod::NotInCalendar),
        ] {
            assert_eq!(dates("days since 1990-01-01", calendar).period(text), Err(why), "{text}");
        }
        // Leap years of the Julian calendar, and a year of the Gregorian that is none.
        let standard = dates("days since 1500-01-01", "standard");
        assert!(standard.period("1500-02-29").is_ok() && standard.period("1700-02-29").is_err());
    }
}
