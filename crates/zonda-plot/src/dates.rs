//! Ticks at dates: the first of years, months and days, and round times of the day.

use zonda_cf::times::{CompTime, Dates};

use crate::axis::Ticks;

/// The distance between ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
enum DateStep {
    Seconds(u32),
    Days(i16),
    Months(i16),
    Years(i64),
}

const SECONDS: [u32; 17] =
    [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200];
const DAYS: [i16; 5] = [1, 2, 5, 10, 15];
const MONTHS: [i16; 4] = [1, 2, 3, 6];
const DAY_SECONDS: u32 = 86_400;
/// Days of a month and of a year, on average.
const MONTH_DAYS: f64 = 30.44;
const YEAR_DAYS: f64 = 365.25;
/// The most dates that are tried. An axis has a few dozen ticks at most.
const MOST_TRIED: usize = 4096;

impl DateStep {
    /// The smallest step that gives at most `most` ticks in so many days.
    fn of(days: f64, most: usize) -> DateStep {
        let fits = |step: f64| days / step <= most as f64;
        let seconds = SECONDS.into_iter().find(|n| fits(f64::from(*n) / f64::from(DAY_SECONDS)));
        let by_days = || DAYS.into_iter().find(|n| fits(f64::from(*n)));
        let by_months = || MONTHS.into_iter().find(|n| fits(f64::from(*n) * MONTH_DAYS));
        let years = (0..6).flat_map(|power| [1, 2, 5].map(|first| first * 10i64.pow(power)));
        let by_years = || years.into_iter().find(|n| fits(*n as f64 * YEAR_DAYS));
        seconds
            .map(DateStep::Seconds)
            .or_else(|| by_days().map(DateStep::Days))
            .or_else(|| by_months().map(DateStep::Months))
            .unwrap_or_else(|| DateStep::Years(by_years().unwrap_or(1_000_000)))
    }

    /// The dates from about `from` on.
    fn dates(self, from: CompTime) -> Box<dyn Iterator<Item = CompTime>> {
        let midnight = |year, month, day| CompTime { year, month, day, hour: 0.0 };
        let months = move |each: i16| {
            let first = from.year * 12 + i64::from(from.month - 1);
            let first = first - first.rem_euclid(i64::from(each));
            (0..).map(move |n: i64| first + n * i64::from(each))
        };
        // Months without this day are skipped.
        let days = move |each: i16| {
            months(1).flat_map(move |month| {
                let year = month.div_euclid(12);
                // From 1 to 12.
                let month = month.rem_euclid(12) as i16 + 1;
                let last = if each > 1 { 31 - each / 2 } else { 31 };
                (1..=last).step_by(each.unsigned_abs().into()).map(move |day| (year, month, day))
            })
        };
        match self {
            DateStep::Years(each) => {
                let first = from.year - from.year.rem_euclid(each);
                Box::new((0..).map(move |n: i64| midnight(first + n * each, 1, 1)))
            }
            DateStep::Months(each) => Box::new(months(each).map(move |month| {
                midnight(month.div_euclid(12), month.rem_euclid(12) as i16 + 1, 1)
            })),
            DateStep::Days(each) => {
                Box::new(days(each).map(move |(year, month, day)| midnight(year, month, day)))
            }
            DateStep::Seconds(each) => {
                let before = (from.year, from.month, from.day);
                let of_day = days(1).filter(move |date| *date >= before);
                let begun = (from.hour * 3600.0) as u32 / each;
                Box::new(of_day.flat_map(move |(year, month, day)| {
                    let first = if (year, month, day) == before { begun } else { 0 };
                    (first..DAY_SECONDS / each).map(move |n| CompTime {
                        hour: f64::from(n * each) / 3600.0,
                        ..midnight(year, month, day)
                    })
                }))
            }
        }
    }

    /// The label of a tick; if `is_short`, without the part that all labels have in common.
    fn label(self, date: &CompTime, is_short: bool) -> String {
        let CompTime { year, month, day, hour } = date;
        let seconds = (hour * 3600.0).round() as u32;
        let (h, m, s) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        match self {
            DateStep::Years(_) => year.to_string(),
            DateStep::Months(_) => format!("{year:04}-{month:02}"),
            DateStep::Days(_) => format!("{year:04}-{month:02}-{day:02}"),
            DateStep::Seconds(each) if each < 60 && is_short => format!("{h:02}:{m:02}:{s:02}"),
            DateStep::Seconds(each) if each < 60 => {
                format!("{month:02}-{day:02} {h:02}:{m:02}:{s:02}")
            }
            DateStep::Seconds(_) if is_short => format!("{month:02}-{day:02} {h:02}:{m:02}"),
            DateStep::Seconds(_) => format!("{year:04}-{month:02}-{day:02} {h:02}:{m:02}"),
        }
    }

    /// The part that all ticks have in common and short labels leave out.
    fn common(self, first: &CompTime, last: &CompTime) -> Option<String> {
        let CompTime { year, month, day, .. } = first;
        match self {
            DateStep::Seconds(each) if each < 60 => ((year, month, day)
                == (&last.year, &last.month, &last.day))
                .then(|| format!("{year:04}-{month:02}-{day:02}")),
            DateStep::Seconds(_) => (*year == last.year).then(|| format!("{year:04}")),
            _ => None,
        }
    }
}

/// At most about `most` ticks between `low` and `high`; `None` where numbers have no dates.
pub(crate) fn ticks(dates: &Dates, low: f64, high: f64, most: usize) -> Option<Ticks> {
    let (first, last) = (dates.date(low)?, dates.date(high)?);
    let days = (high - low) * dates.unit_days();
    let step = DateStep::of(days, most);
    let is_behind = |date: &CompTime| {
        let of = |date: &CompTime| (date.year, date.month, date.day);
        of(date) > of(&last)
    };
    let candidates = step.dates(first).take(MOST_TRIED).take_while(|date| !is_behind(date));
    let found: Vec<(f64, CompTime)> =
        candidates.filter_map(|date| Some((dates.number(&date, low, high)?, date))).collect();
    let common = match &found[..] {
        [(_, first), .., (_, last)] => step.common(first, last),
        _ => None,
    };
    let is_short = common.is_some();
    let at = found.into_iter().map(|(number, date)| (number, step.label(&date, is_short)));
    Some(Ticks { at: at.collect(), unit: common.unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(units: &str, calendar: &str, (low, high): (f64, f64), most: usize) -> String {
        let dates = Dates::parse(units.as_bytes(), calendar.as_bytes()).unwrap();
        let ticks = ticks(&dates, low, high, most).unwrap();
        assert!(ticks.at.windows(2).all(|pair| pair[0].0 < pair[1].0), "{ticks:?}");
        let labels: Vec<String> = ticks.at.into_iter().map(|tick| tick.1).collect();
        format!("{} | {}", labels.join(" "), ticks.unit)
    }

    #[test]
    fn ticks_are_at_round_dates() {
        let days = "days since 1990-01-01";
        for (units, calendar, range, most, want) in [
            (days, "", (0.0, 36_525.0), 5, "2000 2020 2040 2060 2080 | "),
            (days, "noleap", (10.0, 800.0), 5, "1990-07 1991-01 1991-07 1992-01 | "),
            (days, "", (0.0, 80.0), 4, "1990-01 1990-02 1990-03 | "),
            (
                days,
                "",
                (25.0, 75.0),
                6,
                "1990-02-01 1990-02-11 1990-02-21 1990-03-01 1990-03-11 | ",
            ),
            (
                days,
                "",
                (0.5, 1.5),
                4,
                "01-01 12:00 01-01 18:00 01-02 00:00 01-02 06:00 01-02 12:00 | 1990",
            ),
            (
                "seconds since 2000-02-28 23:59:50",
                "",
                (0.0, 20.0),
                4,
                "02-28 23:59:50 02-28 23:59:55 02-29 00:00:00 02-29 00:00:05 02-29 00:00:10 | ",
            ),
            (
                "seconds since 2000-02-28",
                "",
                (0.0, 20.0),
                4,
                "00:00:00 00:00:05 00:00:10 00:00:15 00:00:20 | 2000-02-28",
            ),
            (
                "days since 2000-02-28",
                "360_day",
                (0.0, 4.0),
                4,
                "2000-02-28 2000-02-29 2000-02-30 2000-03-01 2000-03-02 | ",
            ),
            (
                "months since 1850-01-01",
                "noleap",
                (0.0, 24.0),
                4,
                "1850-01 1850-07 1851-01 1851-07 1852-01 | ",
            ),
            ("hours since 0001-01-01", "", (0.0, 1e8), 5, "5000 10000 | "),
        ] {
            assert_eq!(labels(units, calendar, range, most), want, "{units} {range:?}");
        }
        let dates = Dates::parse(b"days since 1990-01-01", b"").unwrap();
        assert_eq!(ticks(&dates, 0.0, 1e30, 5), None);
    }
}
