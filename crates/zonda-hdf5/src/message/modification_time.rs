//! Object Modification Time message (0x0012) and its old form (0x000E).
//! Spec: HDF5 File Format, "The Object Modification Time Message". Version 1 and the old form read.

use crate::{Reader, Result};

/// When an object was modified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModificationTime {
    /// Seconds since the beginning of 1970, UTC.
    pub seconds: i64,
}

impl ModificationTime {
    /// Decodes the message.
    ///
    /// # Errors
    /// Those of a message that ends early or has another version.
    pub fn decode(mut reader: Reader<'_>) -> Result<ModificationTime> {
        reader = reader.named("modification time message");
        reader.version(1..=1)?;
        reader.skip(3)?;
        Ok(ModificationTime { seconds: i64::from(reader.u32()?) })
    }

    /// Decodes the old form: year, month, day, hour, minute and second as decimal digits.
    ///
    /// # Errors
    /// For anything but digits, and for dates that do not exist.
    pub fn decode_old(mut reader: Reader<'_>) -> Result<ModificationTime> {
        reader = reader.named("old modification time message");
        let mut number = |digits: usize, least: i64, most: i64| {
            let mut value = 0i64;
            for &digit in reader.take(digits)? {
                if !digit.is_ascii_digit() {
                    return Err(reader.bad("digit of a date", u64::from(digit)));
                }
                let digit = i64::from(digit.wrapping_sub(b'0'));
                value = value.saturating_mul(10).saturating_add(digit);
            }
            if (least..=most).contains(&value) {
                Ok(value)
            } else {
                Err(reader.bad("part of a date", value.unsigned_abs()))
            }
        };
        let (year, month, day) = (number(4, 0, 9999)?, number(2, 1, 12)?, number(2, 1, 31)?);
        // A leap second is possible.
        let (hour, minute, second) = (number(2, 0, 23)?, number(2, 0, 59)?, number(2, 0, 60)?);
        let days = days_since_1970(year, month, day);
        let seconds = days
            .saturating_mul(86_400)
            .saturating_add(hour.saturating_mul(3600))
            .saturating_add(minute.saturating_mul(60))
            .saturating_add(second);
        Ok(ModificationTime { seconds })
    }
}

/// Days from the beginning of 1970 to a date of the Gregorian calendar. Years begin in March here,
/// so that the day of a leap year is the last one.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year.saturating_sub(1) } else { year };
    let month = month.saturating_add(9).rem_euclid(12);
    // From March on, month lengths repeat after five months of 153 days.
    let day_of_year = month.saturating_mul(153).saturating_add(2).div_euclid(5);
    let leap_days =
        [4, -100, 400].iter().fold(0i64, |sum, &years| sum.saturating_add(year.div_euclid(years)));
    // Day 719,468 is the first of 1970, counted from the first of March of the year 0.
    year.saturating_mul(365)
        .saturating_add(leap_days)
        .saturating_add(day_of_year)
        .saturating_add(day.saturating_sub(1))
        .saturating_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sizes;

    #[test]
    fn both_forms() {
        let reader = |bytes| Reader::new("test", bytes, 0, Sizes::EIGHT);
        let new = ModificationTime::decode(reader(b"\x01\0\0\0\x15\xcd\x5b\x07")).unwrap();
        assert_eq!(new.seconds, 123_456_789);
        assert!(ModificationTime::decode(reader(b"\x01\0\0\0\x15\xcd\x5b")).is_err());
        let old = |text: &'static str| ModificationTime::decode_old(reader(text.as_bytes()));
        assert_eq!(old("19731129213309\0\0").unwrap().seconds, 123_456_789);
        assert_eq!(old("19700101000000\0\0").unwrap().seconds, 0);
        assert_eq!(old("20000229120000\0\0").unwrap().seconds, 951_825_600);
        assert_eq!(old("20000301000000\0\0").unwrap().seconds, 951_868_800);
        assert_eq!(old("21000301000000\0\0").unwrap().seconds, 4_107_542_400);
        assert!(old("20001301000000").is_err(), "month");
        assert!(old("2000010100000x").is_err(), "letter");
        assert!(old("200001010000").is_err(), "short");
    }
}
