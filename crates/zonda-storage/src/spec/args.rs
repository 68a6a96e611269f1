//! One token of a spec, and its arguments taken one by one.

use super::SpecError;
use crate::BLOCK_BYTES;
use std::time::Duration;

/// The name, options and arguments of one token.
#[derive(Debug, Clone)]
pub(crate) struct SpecArgs<'a> {
    token: &'a str,
    position: usize,
    name: &'a str,
    options: Option<&'a str>,
    rest: Option<&'a str>,
}

impl<'a> SpecArgs<'a> {
    /// Splits `token`, which begins at character `position` of the spec.
    pub(crate) fn new(token: &'a str, position: usize) -> Result<SpecArgs<'a>, SpecError> {
        let (head, rest) = match token.split_once(':') {
            Some((head, rest)) => (head, Some(rest)),
            None => (token, None),
        };
        let (name, options) = match head.split_once('.') {
            Some((name, options)) => (name, Some(options)),
            None => (head, None),
        };
        if name.is_empty() {
            return Err(SpecError::Empty { position });
        }
        Ok(SpecArgs { token, position, name, options, rest })
    }

    pub(crate) fn name(&self) -> &'a str {
        self.name
    }

    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// The words after dots.
    pub(crate) fn options(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.options.into_iter().flat_map(|options| options.split('.'))
    }

    /// The error for an option the layer does not know.
    pub(crate) fn bad_option(&self, option: &str) -> SpecError {
        SpecError::Option {
            token: self.token.to_owned(),
            option: option.to_owned(),
            position: self.position,
        }
    }

    pub(crate) fn no_options(&self) -> Result<(), SpecError> {
        self.options().next().map_or(Ok(()), |option| Err(self.bad_option(option)))
    }

    /// Whether there is an argument that nobody took.
    pub(crate) fn has_more(&self) -> bool {
        self.rest.is_some()
    }

    /// The next argument, if there is one.
    pub(crate) fn next(&mut self) -> Option<&'a str> {
        let rest = self.rest?;
        let (argument, rest) = match rest.split_once(':') {
            Some((argument, rest)) => (argument, Some(rest)),
            None => (rest, None),
        };
        self.rest = rest;
        Some(argument)
    }

    /// The next argument, which must be there.
    pub(crate) fn required(&mut self, wanted: &'static str) -> Result<&'a str, SpecError> {
        self.next().ok_or_else(|| SpecError::Missing {
            token: self.token.to_owned(),
            position: self.position,
            wanted,
        })
    }

    /// All arguments left as one text, colons included.
    pub(crate) fn remainder(&mut self) -> Option<&'a str> {
        self.rest.take()
    }

    /// Refuses arguments that nobody took.
    pub(crate) fn end(&mut self) -> Result<(), SpecError> {
        match self.next() {
            None => Ok(()),
            Some(argument) => Err(SpecError::TooMany {
                token: self.token.to_owned(),
                position: self.position,
                argument: argument.to_owned(),
            }),
        }
    }

    /// The error for an argument of the wrong kind.
    pub(crate) fn bad(&self, argument: &str, wanted: &'static str) -> SpecError {
        SpecError::Argument {
            token: self.token.to_owned(),
            position: self.position,
            argument: argument.to_owned(),
            wanted,
        }
    }

    /// The error for an argument out of range.
    pub(crate) fn out_of_range(
        &self,
        argument: &str,
        what: &'static str,
        range: &'static str,
    ) -> SpecError {
        SpecError::Range {
            token: self.token.to_owned(),
            position: self.position,
            what,
            range,
            argument: argument.to_owned(),
        }
    }

    /// A whole number.
    pub(crate) fn number(&self, argument: &str) -> Result<u64, SpecError> {
        if !argument.is_empty() && argument.bytes().all(|b| b.is_ascii_digit()) {
            // Only a number beyond 64 bits fails here; every range check refuses this one.
            return Ok(argument.parse().unwrap_or(u64::MAX));
        }
        Err(self.bad(argument, "a whole number"))
    }

    /// A size in bytes: blocks of 4096 bytes, or bytes with a suffix.
    pub(crate) fn size(&self, argument: &str) -> Result<u64, SpecError> {
        self.scaled(argument, BLOCK_BYTES, "a size (blocks of 4096 bytes, or bytes with k, M or G)")
    }

    /// Bytes, with or without a suffix.
    pub(crate) fn bytes(&self, argument: &str) -> Result<u64, SpecError> {
        self.scaled(argument, 1, "a number of bytes (k, M or G may follow)")
    }

    fn scaled(&self, argument: &str, unit: u64, wanted: &'static str) -> Result<u64, SpecError> {
        zonda_runtime::setting::scaled(argument, unit).ok_or_else(|| self.bad(argument, wanted))
    }

    /// A time with its unit: `5ms`, `100us`, `2s`.
    pub(crate) fn time(&self, argument: &str) -> Result<Duration, SpecError> {
        let bad = || self.bad(argument, "a time such as 5ms, 100us or 1s");
        let digits = argument.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = argument.split_at(digits);
        let number = self.number(number).map_err(|_| bad())?;
        match unit {
            "us" => Ok(Duration::from_micros(number)),
            "ms" => Ok(Duration::from_millis(number)),
            "s" => Ok(Duration::from_secs(number)),
            _ => Err(bad()),
        }
    }
}

/// A number of bytes with the largest suffix that loses nothing.
pub(crate) fn size_text(bytes: u64) -> String {
    for (shift, suffix) in [(30, 'G'), (20, 'M'), (10, 'k')] {
        if bytes != 0 && bytes.trailing_zeros() >= shift {
            return format!("{}{suffix}", bytes >> shift);
        }
    }
    bytes.to_string()
}
