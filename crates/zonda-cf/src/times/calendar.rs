//! Days, months and years of the calendars, which differ only in flags.

use super::CompTime;

/// Years are told apart; without it a date is a month and a day (climatological).
const CHRONOLOGICAL: u32 = 0x1;
/// Hours count from 1970 whatever base year is given.
const FROM_1970: u32 = 0x10;
/// Every fourth year is longer by a day.
const LEAP: u32 = 0x100;
/// Months have their usual lengths (without this and the next: 30 days each).
const DAYS_365: u32 = 0x1000;
/// As `DAYS_365`, and all years are leap years.
const DAYS_366: u32 = 0x2000;
/// Centuries are leap years too.
const JULIAN_RULE: u32 = 0x1_0000;
/// Julian up to 1582-10-04, Gregorian from 1582-10-15 on.
const BOTH_RULES: u32 = 0x2_0000;

/// `cdStandardCal`: any of these bits says that dates are written with a year.
const HAS_YEARS: u32 = CHRONOLOGICAL | FROM_1970;

/// `cdStandard`: proleptic Gregorian.
pub(super) const STANDARD: u32 = HAS_YEARS | LEAP | DAYS_365;
/// `cdJulian`.
pub(super) const JULIAN: u32 = STANDARD | JULIAN_RULE;
/// `cdNoLeap`.
const NO_LEAP: u32 = HAS_YEARS | DAYS_365;
/// `cd360`.
const D360: u32 = HAS_YEARS;
/// `cd366`.
const D366: u32 = HAS_YEARS | DAYS_366;
/// `cdClim`.
const CLIM: u32 = DAYS_365;
/// `cdClimLeap`.
const CLIM_LEAP: u32 = LEAP | DAYS_365;
/// `cdClim360`.
const CLIM_360: u32 = 0;
/// `cdMixed`: what CF calls standard or gregorian.
const MIXED: u32 = STANDARD | BOTH_RULES;

/// The base time of the relative hours through which the reference computes some dates.
const PIVOT: CompTime = midnight(1979, 1, 1);
/// The day after the last Julian one, in the Julian calendar.
const JULIAN_END: CompTime = midnight(1582, 10, 5);
/// The same day in the Gregorian calendar, its first.
pub(super) const GREGORIAN_START: CompTime = midnight(1582, 10, 15);

/// Days of the months of a common year.
const MONTH_DAYS: [i128; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

const fn midnight(year: i64, month: i16, day: i16) -> CompTime {
    CompTime { year, month, day, hour: 0.0 }
}

/// Converts a float to a C `int` as x86 does: a number that does not fit becomes the lowest value,
/// where Rust would take the nearest. Output of the tools shows the difference.
pub(super) fn int_of(value: f64) -> i32 {
    if value > f64::from(i32::MIN) - 1.0 && value < f64::from(i32::MAX) + 1.0 {
        value as i32
    } else {
        i32::MIN
    }
}

/// The same for a C `long`.
fn long_of(value: f64) -> i64 {
    let limit = -(i64::MIN as f64);
    if value >= -limit && value < limit { value as i64 } else { i64::MIN }
}

/// A calendar: a `cdCalenType` or a `CdTimeType`, any bits, as C hands it in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calendar(pub u32);

/// Names of calendars, as the attribute `calendar` gives them.
const NAMES: [(&[u8], u32); 12] = [
    (b"gregorian", MIXED),
    (b"standard", MIXED),
    (b"proleptic_gregorian", STANDARD),
    (b"noleap", NO_LEAP),
    (b"no_leap", NO_LEAP),
    (b"365_day", NO_LEAP),
    (b"allleap", D366),
    (b"all_leap", D366),
    (b"366_day", D366),
    (b"360_day", D360),
    (b"julian", JULIAN),
    (b"none", CLIM),
];

impl Calendar {
    /// Julian up to 1582-10-04, Gregorian from 1582-10-15 on. This is the default.
    pub const MIXED: Calendar = Calendar(MIXED);

    /// The first calendar whose name begins with `name`, in any case. As in the reference, an
    /// unknown name means [`Calendar::MIXED`].
    #[must_use]
    pub fn named(name: &[u8]) -> Calendar {
        let means = |known: &[u8]| match name.iter().position(|&byte| byte == 0) {
            // A name with a NUL must be the whole name up to the NUL.
            Some(end) => known.eq_ignore_ascii_case(&name[..end]),
            None => known.get(..name.len()).is_some_and(|k| k.eq_ignore_ascii_case(name)),
        };
        let found = NAMES.iter().find(|(known, _)| !name.is_empty() && means(known));
        found.map_or(Calendar::MIXED, |&(_, flags)| Calendar(flags))
    }

    fn has(self, flag: u32) -> bool {
        self.0 & flag != 0
    }

    /// Whether dates are written with a year; climatological ones are not.
    pub(super) fn has_years(self) -> bool {
        self.has(HAS_YEARS)
    }

    /// Whether it is both Julian and Gregorian.
    pub(super) fn is_mixed(self) -> bool {
        self.0 == MIXED
    }

    /// The calendar that counts hours for this one; `None` for flags that no calendar has.
    pub(super) fn counting(self) -> Option<Calendar> {
        match self.0 {
            STANDARD | JULIAN | NO_LEAP | D360 | D366 | CLIM | CLIM_LEAP => Some(self),
            // As in the reference, climatologies of 360 days count 365.
            CLIM_360 => Some(Calendar(CLIM)),
            _ => None,
        }
    }

    fn is_leap(self, year: i128) -> bool {
        self.has(DAYS_366)
            || self.has(LEAP)
                && year % 4 == 0
                && (self.has(JULIAN_RULE) || year % 100 != 0 || year % 400 == 0)
    }

    /// Whether the calendar has this day, whatever the hour.
    pub(super) fn has_day(self, date: &CompTime) -> bool {
        let (year, last) = (date.year, CompTime { year: 1582, month: 10, day: 4, hour: 24.0 });
        let rule = match self.is_mixed() {
            true if *date <= last => Calendar(JULIAN),
            true if *date < GREGORIAN_START => return false,
            true => Calendar(STANDARD),
            false => self,
        };
        let Some(month @ 0..=11) = usize::try_from(date.month - 1).ok() else { return false };
        let days = rule.month_days(month, rule.is_leap(rule.table_year(year.into())));
        (1..=days).contains(&i128::from(date.day))
    }

    /// Days of a common year.
    fn common_year(self) -> i128 {
        match self.0 & (DAYS_365 | DAYS_366) {
            0 => 360,
            DAYS_365 => 365,
            _ => 366,
        }
    }

    /// Days from the start of year 0 to that of `year`, negative before it.
    fn days_before(self, year: i128) -> i128 {
        // How many years from 0 up to `year` are divisible by `n`.
        let divisible = |n: i128| (year + n - 1).div_euclid(n);
        let leap_years = match (self.common_year(), self.has(LEAP), self.has(JULIAN_RULE)) {
            (365, true, true) => divisible(4),
            (365, true, false) => divisible(4) - divisible(100) + divisible(400),
            _ => 0,
        };
        year * self.common_year() + leap_years
    }

    /// The year that holds the day which is `days` after the start of year 0.
    fn year_of(self, days: i128) -> i128 {
        const CYCLE: i128 = 400;
        // This is exact after whole cycles and else at most one year off.
        let mut year = (days * CYCLE).div_euclid(self.days_before(CYCLE));
        while self.days_before(year) > days {
            year -= 1;
        }
        while self.days_before(year + 1) <= days {
            year += 1;
        }
        year
    }

    /// The year whose months count. Without years it is always 0, a leap year.
    fn table_year(self, year: i128) -> i128 {
        if self.has(CHRONOLOGICAL) { year } else { 0 }
    }

    fn month_days(self, month: usize, leap: bool) -> i128 {
        if self.has(DAYS_365 | DAYS_366) {
            MONTH_DAYS[month] + i128::from(leap && month == 1)
        } else {
            30
        }
    }

    /// Days from the start of the year to the date. An invalid month counts as January; days may
    /// lie outside of their month.
    fn day_of_year(self, year: i128, month: i16, day: i16) -> i128 {
        let month = usize::try_from(month).ok().filter(|month| (1..=12).contains(month));
        let month = month.unwrap_or(1);
        let whole: i128 = (0..month - 1).map(|m| self.month_days(m, false)).sum();
        let leap = month > 2 && self.is_leap(self.table_year(year));
        whole + i128::from(leap) + i128::from(day) - 1
    }

    /// First year of the count of hours.
    fn first_year(self, base_year: i64) -> i128 {
        match (self.has(CHRONOLOGICAL), self.has(FROM_1970)) {
            (false, _) => 0,
            (true, true) => 1970,
            (true, false) => i128::from(base_year),
        }
    }

    /// Hours from the start of the count to a date. `base_year` matters to calendars that neither
    /// count from 1970 nor are climatological.
    #[must_use]
    pub fn hours(self, date: &CompTime, base_year: i64) -> f64 {
        let first = self.first_year(base_year);
        let year = match (self.has(CHRONOLOGICAL), self.has(FROM_1970)) {
            (false, _) => 0,
            (true, true) => i128::from(date.year),
            (true, false) => i128::from(date.year) + i128::from(base_year),
        };
        self.hours_between(first, year, date)
    }

    fn hours_between(self, first: i128, year: i128, date: &CompTime) -> f64 {
        let days = self.days_before(year) - self.days_before(first)
            + self.day_of_year(year, date.month, date.day);
        // Wraps at a C `int` as the reference's count does, about 5.9 million years from the first
        // year: "days since 20000101" is met in files, and ncdump shows what becomes of it.
        f64::from(days as i32) * 24.0 + date.hour
    }

    /// The inverse of [`Calendar::hours`], for calendars that count from 1970 or are
    /// climatological; the year of the latter is 0. Hours beyond about 5.8 million years stay in
    /// the `hour` of the result, where no valid date has them.
    fn date(self, hours: f64) -> CompTime {
        let mut days = i128::from(int_of((hours / 24.0).floor()));
        let mut hour = hours - days as f64 * 24.0;
        if hour >= 24.0 {
            // Allows for rounding of the difference.
            days += 1;
            hour -= 24.0;
        }
        let days = self.days_before(self.first_year(0)) + days;
        let year = self.year_of(days);
        let table_year = self.table_year(year);
        let leap = self.is_leap(table_year);
        let mut left = days - self.days_before(year);
        let mut month = 0;
        while month < 11 && left >= self.month_days(month, leap) {
            left -= self.month_days(month, leap);
            month += 1;
        }
        CompTime {
            year: if self.has(CHRONOLOGICAL) { year as i64 } else { 0 },
            month: month as i16 + 1,
            day: left as i16 + 1,
            hour,
        }
    }

    /// The date `hours` after `base`.
    pub(super) fn add_hours(self, base: &CompTime, hours: f64) -> CompTime {
        self.date(self.hours(base, 0) + hours)
    }

    /// The first of the month that is `months` after that of `base`; `months` is cut to a whole
    /// number. `base` itself, day and hour included, for 0.
    pub(super) fn add_months(self, base: &CompTime, months: f64) -> CompTime {
        /// Added before cutting, so that a whole number of months that was computed from years is
        /// not one too low.
        const SLACK: f64 = 1e-10;
        if months == 0.0 {
            return *base;
        }
        let from = self.hours(base, 0);
        let months = long_of(months + if months < 0.0 { -SLACK } else { SLACK });
        let from = self.date(from);
        let months = i128::from(months) + i128::from(from.month) - 1;
        let first = CompTime { month: months.rem_euclid(12) as i16 + 1, ..midnight(0, 1, 1) };
        let year = self.table_year(i128::from(from.year) + months.div_euclid(12));
        self.date(self.hours_between(self.first_year(0), year, &first))
    }

    /// Hours from the pivot to a date, and those of the pivot.
    fn relative(self, date: &CompTime) -> (f64, f64) {
        let pivot = self.hours(&PIVOT, 0);
        (self.hours(date, 0) - pivot, pivot)
    }

    /// Hours from `b` to `a`, rounded as the reference rounds them.
    fn difference(self, a: &CompTime, b: &CompTime) -> f64 {
        self.relative(a).0 - self.relative(b).0
    }

    /// As [`Calendar::add_hours`], rounded as the reference does it in the mixed calendar: by way
    /// of the pivot, which can cost the last bits of fractions of a second.
    fn add_by_pivot(self, base: &CompTime, hours: f64) -> CompTime {
        let (relative, pivot) = self.relative(base);
        self.date(pivot + (relative + hours))
    }
}

/// The date `hours` after `base` in the mixed calendar.
pub(super) fn add_hours_mixed(base: &CompTime, hours: f64) -> CompTime {
    let (julian, gregorian) = (Calendar(JULIAN), Calendar(STANDARD));
    if *base < GREGORIAN_START {
        let to_the_end = julian.difference(&JULIAN_END, base);
        if hours <= to_the_end {
            julian.add_by_pivot(base, hours)
        } else {
            gregorian.add_by_pivot(&GREGORIAN_START, hours - to_the_end)
        }
    } else {
        let to_the_start = gregorian.difference(&GREGORIAN_START, base);
        if hours > to_the_start {
            gregorian.add_by_pivot(base, hours)
        } else {
            julian.add_by_pivot(&JULIAN_END, hours - to_the_start)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTING: [u32; 5] = [STANDARD, JULIAN, NO_LEAP, D360, D366];

    #[test]
    fn every_day_of_many_years_comes_back() {
        for flags in COUNTING {
            let calendar = Calendar(flags);
            let first = calendar.hours(&midnight(-401, 1, 1), 0);
            let mut before = calendar.date(first - 24.0);
            assert_eq!((before.month, before.year), (12, -402));
            for day in 0..366 * 2600 {
                let hours = first + f64::from(day) * 24.0;
                let date = calendar.date(hours);
                assert_eq!(calendar.hours(&date, 0), hours, "{flags:#x} {date:?}");
                assert!(date > before, "{flags:#x}: {date:?} after {before:?}");
                before = date;
            }
        }
    }

    #[test]
    fn known_days() {
        for (flags, year, days) in [
            (STANDARD, 2000, 10_957),
            (STANDARD, 1582, -141_714),
            (JULIAN, 1970, 0),
            (JULIAN, 1582, -141_717),
            (NO_LEAP, 2000, 30 * 365),
            (D366, 1900, -70 * 366),
            (D360, 0, -1970 * 360),
        ] {
            let hours = Calendar(flags).hours(&midnight(year, 1, 1), 0);
            assert_eq!(hours, f64::from(days) * 24.0, "{flags:#x} {year}");
        }
    }

    #[test]
    fn far_years_take_no_time_and_do_not_overflow() {
        for flags in COUNTING {
            for year in [i64::MIN, -1_000_000_000_000, 1_000_000_000_000, i64::MAX] {
                let date = CompTime { year, month: 12, day: i16::MAX, hour: 1e300 };
                assert!(Calendar(flags).hours(&date, i64::MAX).is_finite());
            }
            for hours in [f64::NAN, f64::INFINITY, f64::MIN, f64::MAX, 5.1e10, -5.2e10] {
                Calendar(flags).date(hours);
                Calendar(flags).add_months(&PIVOT, hours);
            }
        }
    }

    #[test]
    fn the_mixed_calendar_leaves_out_ten_days() {
        let from = midnight(1582, 10, 4);
        assert_eq!(add_hours_mixed(&from, 23.0), CompTime { hour: 23.0, ..from });
        assert_eq!(add_hours_mixed(&from, 25.0).day, 15);
        assert_eq!(add_hours_mixed(&midnight(1582, 10, 16), -25.0).day, 14 - 10);
    }

    #[test]
    fn months_go_to_the_first_of_the_month() {
        let base = CompTime { year: 2001, month: 1, day: 31, hour: 5.0 };
        let calendar = Calendar(STANDARD);
        assert_eq!(calendar.add_months(&base, 0.0), base);
        assert_eq!(calendar.add_months(&base, 1.9), midnight(2001, 2, 1));
        assert_eq!(calendar.add_months(&base, -1.0), midnight(2000, 12, 1));
        assert_eq!(calendar.add_months(&base, -25.0), midnight(1998, 12, 1));
        assert_eq!(Calendar(CLIM).add_months(&midnight(0, 6, 15), 7.0), midnight(0, 1, 1));
    }

    #[test]
    fn names_of_calendars() {
        for (name, flags) in [
            (&b"gregorian"[..], MIXED),
            (b"GREG", MIXED),
            (b"Proleptic_Gregorian", STANDARD),
            (b"no", NO_LEAP),
            (b"none", CLIM),
            (b"noleap\0", NO_LEAP),
            (b"nole\0", MIXED),
            (b"360_days", MIXED),
            // The first of those that begin so.
            (b"36", NO_LEAP),
            (b"", MIXED),
        ] {
            assert_eq!(Calendar::named(name), Calendar(flags), "{}", name.escape_ascii());
        }
    }

    #[test]
    fn calendars_without_a_name_do_not_count() {
        assert_eq!(Calendar(CLIM_360).counting(), Some(Calendar(CLIM)));
        assert_eq!(Calendar(MIXED).counting(), None);
        assert_eq!(Calendar(0x7fff_ffff).counting(), None);
    }
}
