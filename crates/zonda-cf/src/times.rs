//! Times of the classic tools: `ncdump -t`, `ncdump -i` and time literals of `ncgen`.
//!
//! Relative times ("days since 1990-01-01") become dates and text, and dates become hours, as
//! netCDF-C 4.9.0 has it. That is older and looser than UDUNITS: unit names are recognised by
//! their beginnings, months and years count calendar months, and zones are ignored.
//!
//! Wrong parts are skipped, and a [`Problem`] for each is added to the caller's list.

mod calendar;
mod dates;
mod iso;
mod period;
mod scan;
mod since;

use std::fmt;

pub use calendar::Calendar;
pub use dates::Dates;
pub use iso::{date, text};
pub use period::{NoPeriod, Period};
pub use since::{TimeUnits, Unit};

/// A date whose time of day is in hours.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct CompTime {
    /// Year, counted through 0.
    pub year: i64,
    /// Month, 1 to 12.
    pub month: i16,
    /// Day of the month, from 1.
    pub day: i16,
    /// Hours since midnight.
    pub hour: f64,
}

/// Something wrong in a time.
#[derive(Clone, Debug, PartialEq)]
pub enum Problem {
    /// The text has no words.
    NoUnits(Vec<u8>),
    /// The word is no unit of time.
    UnknownUnit(Vec<u8>),
    /// The unit needs years, which the calendar does not have.
    NoYears,
    /// The text does not begin with a number.
    NoDate(Vec<u8>),
    /// A field of a date is out of range: what it is, and its value.
    Field(&'static str, f64),
    /// No calendar has these flags.
    NoCalendar(u32),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::NoUnits(text) => {
                write!(f, "there are no units in \"{}\"", text.escape_ascii())
            }
            Problem::UnknownUnit(name) => {
                write!(f, "\"{}\" is no unit of time", name.escape_ascii())
            }
            Problem::NoYears => f.write_str("a calendar without years has no unit of years"),
            Problem::NoDate(text) => write!(f, "\"{}\" is no date", text.escape_ascii()),
            Problem::Field(what, value) => write!(f, "invalid {what} = {value}"),
            Problem::NoCalendar(flags) => write!(f, "no calendar has the type {flags}"),
        }
    }
}

impl std::error::Error for Problem {}
