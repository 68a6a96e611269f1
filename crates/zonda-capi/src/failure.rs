//! Why a call fails: the code that C gets, and the explanation behind it.

use zonda::NcError;

/// Why a call failed: the code that C gets and, where there is one, the error that explains it.
#[derive(Debug)]
pub(crate) struct CallFailure {
    code: NcError,
    error: Option<zonda::Error>,
}

impl CallFailure {
    /// The code that C gets.
    pub(crate) fn code(&self) -> NcError {
        self.code
    }

    /// The same explanation under another code, where the reference returns that one.
    pub(crate) fn with_code(self, code: NcError) -> CallFailure {
        CallFailure { code, ..self }
    }

    /// Another explanation.
    pub(crate) fn set_explanation(&mut self, text: String) {
        self.error = Some(zonda::Error::with_text(self.code, text));
    }

    /// What went wrong; of a failure that is a code alone, the text of the code.
    pub(crate) fn explanation(&self) -> String {
        self.error.as_ref().map_or_else(|| self.code.to_string(), ToString::to_string)
    }
}

impl From<NcError> for CallFailure {
    fn from(code: NcError) -> Self {
        CallFailure { code, error: None }
    }
}

impl From<zonda::Error> for CallFailure {
    fn from(error: zonda::Error) -> Self {
        CallFailure { code: error.code(), error: Some(error) }
    }
}

/// What the body of a C function returns.
pub(crate) type CallResult = Result<(), CallFailure>;

/// The result of a transfer that moved all values: `NC_ERANGE` if some of them did not fit.
#[inline]
pub(crate) fn range_result(converted: zonda::Converted) -> CallResult {
    match converted.out_of_range {
        0 => Ok(()),
        n => Err(out_of_range(n)),
    }
}

#[cold]
fn out_of_range(n: u64) -> CallFailure {
    let values = if n == 1 { "value does" } else { "values do" };
    let text = format!(
        "{}: {n} {values} not fit the type that they go to; all others were transferred",
        NcError::Range
    );
    zonda::Error::with_text(NcError::Range, text).into()
}
