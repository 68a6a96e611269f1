//! Finds variables whose numbers are times, and writes these as dates.

use zonda::{Dataset, ExtType, Meta, VarRef};
use zonda_cf::times::{self, Calendar, Problem, TimeUnits};

use super::value::{CdlValue, special};
use crate::failure::Result;
use crate::placed;

/// How times are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeStyle {
    /// The byte between the date and the time of day.
    pub(crate) separator: u8,
}

/// Variables that contain bounds of times: the name of such a variable, and the variable whose
/// attribute `bounds` names it. The first has no units of its own, so those of the second apply.
#[derive(Debug, Default)]
pub(super) struct TimeBounds(Vec<(Vec<u8>, VarRef)>);

impl TimeBounds {
    /// Notes that the attribute `bounds` of `of` names this variable.
    pub(super) fn add(&mut self, name: &[u8], of: VarRef) {
        let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
        self.0.push((name[..end].to_vec(), of));
    }

    /// The variable whose bounds are in the variable with this name; of several the last.
    fn of(&self, name: &[u8]) -> Option<VarRef> {
        self.0.iter().rev().find(|(known, _)| known == name).map(|(_, of)| *of)
    }
}

/// Units and calendar of numbers that are times.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Times {
    calendar: Calendar,
    since: TimeUnits,
    /// What is wrong with the units. It is reported for every value.
    problems: Vec<Problem>,
    style: TimeStyle,
}

impl Times {
    /// The units and calendar of a variable by its own attributes, or by those of the variable
    /// whose bounds it has. `None` if the units are no units of time.
    pub(super) fn of(
        file: &Dataset,
        meta: &Meta<'_>,
        var: VarRef,
        name: &[u8],
        bounds: &TimeBounds,
        style: TimeStyle,
    ) -> Result<Option<Times>> {
        let var = bounds.of(name).unwrap_or(var);
        let group = meta.group(var.group)?;
        let text = |name: &[u8]| {
            let found = group.find_att(var.var, name).ok().map(|(_, att)| att);
            let chars = found.filter(|att| att.ty() == Some(ExtType::Char));
            chars
                .map(|att| placed::attribute(file, &group, var, &att).map(|(text, _)| text))
                .transpose()
        };
        let Some(units) = text(b"units")? else { return Ok(None) };
        let calendar = text(b"calendar")?.unwrap_or_default();
        Ok(Times::parse(&units, &calendar, style))
    }

    fn parse(units: &[u8], calendar: &[u8], style: TimeStyle) -> Option<Times> {
        // For C the text ends at a NUL.
        let units = units.split(|&byte| byte == 0).next().unwrap_or_default();
        if !TimeUnits::is_meant(units) {
            return None;
        }
        let calendar = Calendar::named(calendar);
        let mut problems = Vec::new();
        let since = TimeUnits::parse(calendar, units, &mut problems)?;
        Some(Times { calendar, since, problems, style })
    }

    /// Appends a time as a date in quotes, which is empty if there is no such date. Problems are
    /// reported on standard error.
    pub(super) fn push(&self, out: &mut Vec<u8>, value: CdlValue) {
        let number = match value {
            CdlValue::Char(byte) => f64::from(byte),
            CdlValue::Int(value) => value as f64,
            CdlValue::UInt(value) => value as f64,
            CdlValue::Float(value) => f64::from(value),
            CdlValue::Double(value) => value,
        };
        if let Some(text) = special(number) {
            return out.extend_from_slice(text.as_bytes());
        }
        self.problems.iter().for_each(complain);
        let date = self.since.date_after(self.calendar, number);
        let text = date.and_then(|date| times::text(self.calendar, self.style.separator, &date));
        out.push(b'"');
        match text {
            Ok(text) => out.extend_from_slice(&text),
            Err(problem) => complain(&problem),
        }
        out.push(b'"');
    }
}

fn complain(problem: &Problem) {
    // The reference begins such lines with this.
    eprintln!("CDMS error: {problem}");
}

#[cfg(test)]
mod tests {
    use zonda::{GroupId, VarId};

    use super::*;

    fn written(units: &str, calendar: &str, separator: u8, value: f64) -> Option<String> {
        let style = TimeStyle { separator };
        let times = Times::parse(units.as_bytes(), calendar.as_bytes(), style)?;
        let mut out = Vec::new();
        times.push(&mut out, CdlValue::Double(value));
        Some(String::from_utf8(out).unwrap())
    }

    #[test]
    fn numbers_as_dates() {
        for (units, calendar, value, expected) in [
            ("days since 1990-1-1", "", 31.5, "\"1990-02-01 12\""),
            ("days since 1990-1-1\0 more", "", 0.0, "\"1990-01-01\""),
            ("hours since 2000-02-28T18:30", "noleap", 6.0, "\"2000-03-01 00:30\""),
            ("months since 1850-01-01", "360_day", 13.0, "\"1851-02-01\""),
            ("days since 1990-13-1", "", 0.0, "\"1990-01-01\""),
            ("days since 1990-1-1", "", 1e30, "\"\""),
            ("days since 1990-1-1", "", f64::NAN, "NaN"),
            ("days since 1990-1-1", "", f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(written(units, calendar, b' ', value).unwrap(), expected, "{units}");
        }
        assert_eq!(written("s since 1970-1-1", "", b'T', 3600.0).unwrap(), "\"1970-01-01T01\"");
        assert_eq!(written("metres", "", b' ', 1.0), None);
        assert_eq!(written("years since 5", "none", b' ', 1.0), None);
    }

    #[test]
    fn the_last_to_say_so_has_the_bounds() {
        let mut bounds = TimeBounds::default();
        let var = |id| VarRef { group: GroupId::ROOT, var: VarId(id) };
        bounds.add(b"time_bnds\0x", var(1));
        bounds.add(b"time_bnds", var(2));
        assert_eq!(bounds.of(b"time_bnds"), Some(var(2)));
        assert_eq!(bounds.of(b"time"), None);
    }
}
