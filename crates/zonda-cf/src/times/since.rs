//! "UNIT since DATE TIME".

use super::calendar::{Calendar, GREGORIAN_START, STANDARD, add_hours_mixed};
use super::scan::Scan;
use super::{CompTime, Problem, iso};

/// A unit of time, by the numbers of `cdUnitTime`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(i32)]
pub enum Unit {
    /// 60 seconds.
    Minute = 1,
    /// 60 minutes.
    Hour = 2,
    /// 24 hours.
    Day = 3,
    /// 7 days.
    Week = 4,
    /// To the first of the next month.
    Month = 5,
    /// 3 months.
    Season = 6,
    /// 12 months.
    Year = 7,
    /// The unit of all others.
    Second = 8,
}

impl Unit {
    /// Days that one takes, on average.
    pub(super) fn days(self) -> f64 {
        const MONTH: f64 = 365.2425 / 12.0;
        match self {
            Unit::Second => 1.0 / 86_400.0,
            Unit::Minute => 1.0 / 1440.0,
            Unit::Hour => 1.0 / 24.0,
            Unit::Day => 1.0,
            Unit::Week => 7.0,
            Unit::Month => MONTH,
            Unit::Season => 3.0 * MONTH,
            Unit::Year => 12.0 * MONTH,
        }
    }
}

/// Names of units in any case: the beginning that a name must have, and a short form that must be
/// the whole name.
const NAMES: [(Unit, &[u8], &[u8]); 8] = [
    (Unit::Second, b"sec", b"s"),
    (Unit::Minute, b"min", b"mn"),
    (Unit::Hour, b"hour", b"hr"),
    (Unit::Day, b"day", b"dy"),
    (Unit::Week, b"week", b"wk"),
    (Unit::Month, b"month", b"mo"),
    (Unit::Season, b"season", b"season"),
    (Unit::Year, b"year", b"yr"),
];

/// How many bytes count of a unit's name and of each word of a base time. The reference writes
/// longer words past its arrays.
const UNIT_LEN: usize = 63;
const WORD_LEN: usize = 47;

/// Relative units: the unit that is counted, and the base time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeUnits {
    /// What is counted.
    pub unit: Unit,
    /// From when.
    pub base: CompTime,
}

impl TimeUnits {
    /// Parses a text; `None` if it names no unit. A wrong base time counts as far as it can be
    /// read. Both errors are added to `problems`.
    #[must_use]
    pub fn parse(
        calendar: Calendar,
        text: &[u8],
        problems: &mut Vec<Problem>,
    ) -> Option<TimeUnits> {
        let mut scan = Scan(text);
        let Some(name) = scan.word() else {
            problems.push(Problem::NoUnits(text.to_vec()));
            return None;
        };
        let unit =
            unit(calendar, cut(name, UNIT_LEN)).map_err(|problem| problems.push(problem)).ok()?;
        let base = base(&mut scan)
            .unwrap_or_else(|| if calendar.has_years() { b"1979".to_vec() } else { b"1".to_vec() });
        Some(TimeUnits { unit, base: iso::date(calendar, &base, problems) })
    }

    /// Whether a text is what `ncdump` takes for units of time: a unit that it knows, "since", and
    /// something behind it.
    #[must_use]
    pub fn is_meant(text: &[u8]) -> bool {
        let mut scan = Scan(text);
        let Some(name) = scan.word() else { return false };
        scan.skip_space();
        known(cut(name, UNIT_LEN)).is_some()
            && scan.literal(b"since").is_some()
            && scan.word().is_some()
    }

    /// The date `value` units after the base.
    ///
    /// # Errors
    /// [`Problem::NoCalendar`] in a calendar that is none.
    pub fn date_after(&self, calendar: Calendar, value: f64) -> Result<CompTime, Problem> {
        enum UnitSpan {
            Hours(f64),
            Months(f64),
        }
        let span = match self.unit {
            Unit::Second => UnitSpan::Hours(value / 3600.0),
            Unit::Minute => UnitSpan::Hours(value / 60.0),
            Unit::Hour => UnitSpan::Hours(value),
            Unit::Day => UnitSpan::Hours(24.0 * value),
            Unit::Week => UnitSpan::Hours(168.0 * value),
            Unit::Month => UnitSpan::Months(value),
            Unit::Season => UnitSpan::Months(3.0 * value),
            Unit::Year => UnitSpan::Months(12.0 * value),
        };
        let counting = || calendar.counting().ok_or(Problem::NoCalendar(calendar.0));
        Ok(match span {
            UnitSpan::Hours(hours) if calendar.is_mixed() => add_hours_mixed(&self.base, hours),
            UnitSpan::Hours(hours) => counting()?.add_hours(&self.base, hours),
            // Months of both calendars have the same names, so one of them will do.
            UnitSpan::Months(months) if calendar.is_mixed() => {
                Calendar(STANDARD).add_months(&self.base, months)
            }
            UnitSpan::Months(months) => counting()?.add_months(&self.base, months),
        })
    }
}

impl TimeUnits {
    /// What the reference's count of days says, which takes a month that is none for January: once
    /// for each time that it looks at the base on the way to `date`. In the mixed calendar it looks
    /// twice where both are on one side of the reform.
    pub fn said_of_base(
        &self,
        calendar: Calendar,
        date: &CompTime,
    ) -> impl Iterator<Item = Problem> {
        let counts_months = matches!(self.unit, Unit::Month | Unit::Season | Unit::Year);
        let is_before = |date: &CompTime| *date < GREGORIAN_START;
        let looks = match (1..=12).contains(&self.base.month) {
            true => 0,
            false if counts_months || !calendar.is_mixed() => 1,
            false => 1 + usize::from(is_before(date) == is_before(&self.base)),
        };
        std::iter::repeat_n(Problem::Field("month", self.base.month.into()), looks)
    }
}

fn cut(word: &[u8], len: usize) -> &[u8] {
    &word[..word.len().min(len)]
}

/// The unit with this name.
fn known(name: &[u8]) -> Option<Unit> {
    let begins = |with: &[u8]| name.get(..with.len()).is_some_and(|b| b.eq_ignore_ascii_case(with));
    NAMES
        .iter()
        .find(|(_, start, whole)| begins(start) || name.eq_ignore_ascii_case(whole))
        .map(|&(unit, ..)| unit)
}

fn unit(calendar: Calendar, name: &[u8]) -> Result<Unit, Problem> {
    match known(name) {
        None => Err(Problem::UnknownUnit(name.to_vec())),
        Some(Unit::Year) if !calendar.has_years() => Err(Problem::NoYears),
        Some(unit) => Ok(unit),
    }
}

/// The base time in the words after the unit, with a space for the T of ISO 8601; `None` if there
/// is none.
fn base(scan: &mut Scan<'_>) -> Option<Vec<u8>> {
    scan.skip_space();
    scan.literal(b"since")?;
    let mut after_date = scan.clone();
    let mut day = after_date.word()?;
    if day.contains(&b'T') {
        scan.skip_space();
        day = scan.take_until(|byte| byte == b'T')?;
        scan.literal(b"T")?;
        after_date = scan.clone();
    }
    let mut text = cut(day, WORD_LEN).to_vec();
    if let Some(time) = after_date.word() {
        text.push(b' ');
        text.extend_from_slice(cut(time, WORD_LEN));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALENDAR: Calendar = Calendar(STANDARD);

    fn parsed(text: &str) -> Option<TimeUnits> {
        TimeUnits::parse(CALENDAR, text.as_bytes(), &mut Vec::new())
    }

    #[test]
    fn units_by_their_beginnings() {
        for (name, unit) in [
            ("s", Some(Unit::Second)),
            ("SECS", Some(Unit::Second)),
            ("sea", None),
            ("Season", Some(Unit::Season)),
            ("minute", Some(Unit::Minute)),
            ("mn", Some(Unit::Minute)),
            ("mo", Some(Unit::Month)),
            ("mon", None),
            ("months", Some(Unit::Month)),
            ("hr", Some(Unit::Hour)),
            ("hrs", None),
            ("h", None),
            ("daylight", Some(Unit::Day)),
            ("yr", Some(Unit::Year)),
            ("msec", None),
        ] {
            let text = format!("{name} since 2000-1-1");
            assert_eq!(parsed(&text).map(|since| since.unit), unit, "{name}");
        }
        let mut problems = Vec::new();
        assert_eq!(TimeUnits::parse(Calendar(0), b"years since 1", &mut problems), None);
        assert_eq!(problems, [Problem::NoYears]);
        assert_eq!(parsed(" "), None);
    }

    #[test]
    fn what_ncdump_takes_for_times() {
        for (text, meant) in [
            ("days since 1990-1-1", true),
            ("days since noon", true),
            ("hours since 1990-1-1T12:00Z", true),
            ("months since 0", true),
            ("days since T12", true),
            ("days since ", false),
            ("days", false),
            ("days after 1990", false),
            ("K", false),
            ("parsecs since 1990", false),
            ("", false),
        ] {
            assert_eq!(TimeUnits::is_meant(text.as_bytes()), meant, "{text}");
        }
    }

    #[test]
    fn base_times() {
        let base = |year, month, day, hour| CompTime { year, month, day, hour };
        for (text, expected) in [
            ("days", base(1979, 1, 1, 0.0)),
            ("days since", base(1979, 1, 1, 0.0)),
            ("days Since 1990-1-1", base(1979, 1, 1, 0.0)),
            ("days since1990-2-3", base(1990, 2, 3, 0.0)),
            ("days since 1990-2-3 12:30 -6:00", base(1990, 2, 3, 12.5)),
            ("days since 1990-2-3T12:30Z", base(1990, 2, 3, 12.5)),
            ("days since 1990-2-3T", base(1990, 2, 3, 0.0)),
            ("days since T12", base(1979, 1, 1, 0.0)),
            ("days since 1990-2-3 T12", base(1990, 2, 3, 0.0)),
        ] {
            assert_eq!(parsed(text).map(|since| since.base), Some(expected), "{text}");
        }
        let long = format!("days since 1990-{}7-1", "0".repeat(100));
        assert_eq!(parsed(&long).map(|since| since.base.month), Some(0));
    }

    #[test]
    fn a_calendar_that_is_none_has_no_dates() {
        let since = parsed("days since 1990-1-1").unwrap();
        assert_eq!(since.date_after(Calendar(3), 1.0), Err(Problem::NoCalendar(3)));
        assert!(since.date_after(CALENDAR, 1.0).is_ok());
    }
}
