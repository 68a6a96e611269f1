//! Converts numbers to dates and dates to numbers, for charts and views.

use super::{Calendar, CompTime, Period, TimeUnits, iso};

/// Units and calendar of a variable, which make dates of its numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dates {
    since: TimeUnits,
    pub(super) calendar: Calendar,
}

/// Hours that a date may be off from rounding.
const ROUNDING: f64 = 0.5e-6 / 3600.0;

impl Dates {
    /// Reads the attributes `units` and `calendar`; `None` for units that are no units of time,
    /// that are wrong, or that count from a date without a year.
    #[must_use]
    pub fn parse(units: &[u8], calendar: &[u8]) -> Option<Dates> {
        let calendar = Calendar::named(calendar);
        let mut problems = Vec::new();
        let since = TimeUnits::is_meant(units)
            .then(|| TimeUnits::parse(calendar, units, &mut problems))??;
        (problems.is_empty() && calendar.has_years()).then_some(Dates { since, calendar })
    }

    /// The date of a number; `None` for a number that is too large.
    #[must_use]
    pub fn date(&self, value: f64) -> Option<CompTime> {
        // What is said of the calendar: numbers up to these years are counted exactly.
        let date = self.since.date_after(self.calendar, value).ok()?;
        let is_one = (-99_999..=99_999).contains(&date.year) && date.hour.is_finite();
        is_one.then_some(date)
    }

    /// The date of a number to the second, so that numbers which rounding has moved a little are on the day that they are meant for.
    fn date_and_second(&self, value: f64) -> Option<CompTime> {
        const SECOND: f64 = 1.0 / 86_400.0;
        let date = self.date(value)?;
        // Hours are from 0 to 24.
        let seconds = (date.hour * 3600.0).round() as u32;
        if seconds < 86_400 {
            return Some(CompTime { hour: f64::from(seconds) / 3600.0, ..date });
        }
        // Where units are so long that the next second is still the same day, this is its last one.
        let next = self.date(value + SECOND / self.unit_days()).filter(|next| next.hour < 1.0);
        Some(match next {
            Some(next) => CompTime { hour: 0.0, ..next },
            None => CompTime { hour: 24.0 - 1.0 / 3600.0, ..date },
        })
    }

    /// The date as text, to the second: `1990-02-01`, `1990-02-01 12:30`.
    #[must_use]
    pub fn text(&self, value: f64) -> Option<String> {
        let date = self.date_and_second(value)?;
        let text = iso::text(self.calendar, b' ', &CompTime { hour: 0.0, ..date }).ok()?;
        let day = String::from_utf8(text).ok()?;
        let seconds = (date.hour * 3600.0).round() as u32;
        let (h, m, s) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        Some(match (h, m, s) {
            (0, 0, 0) => day,
            (_, _, 0) => format!("{day} {h:02}:{m:02}"),
            _ => format!("{day} {h:02}:{m:02}:{s:02}"),
        })
    }

    /// Whether the date of a number, to the second, is in a period.
    #[must_use]
    pub fn is_in(&self, value: f64, period: &Period) -> bool {
        let earlier = |date: &CompTime| CompTime { hour: date.hour - ROUNDING, ..*date };
        let found = self.date_and_second(value);
        found.is_some_and(|date| earlier(&period.from) <= date && date < earlier(&period.until))
    }

    /// Days that one unit takes, about.
    #[must_use]
    pub fn unit_days(&self) -> f64 {
        self.since.unit.days()
    }

    /// The number between `low` and `high` that has this date; `None` where there is no such date,
    /// such as a 30th of February.
    #[must_use]
    pub fn number(&self, date: &CompTime, low: f64, high: f64) -> Option<f64> {
        let first = self.first_from(date, low, high)?;
        let found = self.date(first)?;
        let is_there = (found.year, found.month, found.day) == (date.year, date.month, date.day)
            && (found.hour - date.hour).abs() <= 2.0 * ROUNDING;
        // One before it would do as well.
        let rounded = if (first - first.round()).abs() < 1e-9 { first.round() } else { first };
        is_there.then_some(rounded)
    }

    /// The least number between `low` and `high` whose date is this one or later; `None` where all are
    /// earlier.
    #[must_use]
    pub fn first_from(&self, date: &CompTime, low: f64, high: f64) -> Option<f64> {
        let reached = |value: f64| {
            let known = self.date(value)?;
            let of = |date: &CompTime| (date.year, date.month, date.day);
            Some(match of(&known).cmp(&of(date)) {
                std::cmp::Ordering::Equal => known.hour >= date.hour - ROUNDING,
                ordering => ordering.is_gt(),
            })
        };
        let (mut low, mut high) = (low, high);
        if !reached(high)? {
            return None;
        }
        if reached(low)? {
            high = low;
        }
        // The range is halved until there is no number between its ends.
        loop {
            let middle = f64::midpoint(low, high);
            if middle <= low || middle >= high {
                return Some(high);
            }
            if reached(middle)? { high = middle } else { low = middle }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn midnight(year: i64, month: i16, day: i16) -> CompTime {
        CompTime { year, month, day, hour: 0.0 }
    }

    #[test]
    fn numbers_and_dates() {
        for (units, calendar, value, text) in [
            ("days since 1990-1-1", "", 31.5, "1990-02-01 12:00"),
            ("hours since 1900-01-01", "standard", 30.0, "1900-01-02 06:00"),
            ("days since 2000-02-28", "360_day", 2.0, "2000-02-30"),
            ("months since 1850-01-01", "noleap", 13.0, "1851-02-01"),
            // A day before and after rounding to single precision.
            ("days since 1970-01-01", "", 3_238.999_999_5, "1978-11-14"),
            ("days since 1970-01-01", "", 3_239.000_000_5, "1978-11-14"),
            (
                "seconds since 1970-01-01T00:00:00Z",
                "proleptic_gregorian",
                1e9,
                "2001-09-09 01:46:40",
            ),
        ] {
            let dates = Dates::parse(units.as_bytes(), calendar.as_bytes()).unwrap();
            assert_eq!(dates.text(value).as_deref(), Some(text), "{units}");
            let date = dates.date(value).unwrap();
            let back = dates.number(&date, value - 1000.0, value + 1000.0).unwrap();
            assert!((back - value).abs() < 1e-5, "{units}: {back}");
        }
        let days = Dates::parse(b"days since 1990-1-1", b"").unwrap();
        assert_eq!(days.number(&midnight(1991, 1, 1), 0.0, 1000.0), Some(365.0));
        assert_eq!(days.number(&midnight(1990, 1, 1), 0.0, 1000.0), Some(0.0));
        for (year, month, day) in [(1990, 2, 30), (1989, 12, 31), (1999, 1, 1)] {
            assert_eq!(days.number(&midnight(year, month, day), 0.0, 1000.0), None);
        }
        assert_eq!(days.text(1e30), None);
        assert_eq!(days.text(f64::NAN), None);
    }

    #[test]
    fn what_is_no_time_has_no_dates() {
        for (units, calendar) in [
            ("K", ""),
            ("days", ""),
            ("days since noon", ""),
            ("days since 1990-13-1", ""),
            ("days since 5", "none"),
        ] {
            assert_eq!(Dates::parse(units.as_bytes(), calendar.as_bytes()), None, "{units}");
        }
    }
}
