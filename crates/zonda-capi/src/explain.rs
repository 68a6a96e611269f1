//! What failing calls have to say, for programs that do not ask: `ZONDA_EXPLAIN`.

use std::ffi::c_int;

use zonda_runtime::{Settled, setting};

use crate::boundary::text_of_failure;
use crate::exit::write_line;
use crate::trace::calls::name_in;

/// Reports on standard error that a call of this thread failed with that code, if the environment asks for it. `name` gives the name of
/// the function: by a pointer, so that there is one of this for all functions.
#[cold]
pub(crate) fn failed(code: c_int, name: &dyn Fn() -> &'static str) {
    static IS_ON: Settled<bool> = Settled::new();
    if *IS_ON.get_or_make(|| setting::text("ZONDA_EXPLAIN").is_some_and(|text| is_yes(&text))) {
        write_line(&format!("zonda: {}: {}\n", name(), text_of_failure(code)));
    }
}

/// [`failed`] of a function whose body is the closure of that type.
#[cold]
pub(crate) fn failed_in(code: c_int, body: &'static str) {
    failed(code, &|| name_in(body));
}

/// Whether a setting says yes. All other texts but `0` are reported as unknown.
fn is_yes(text: &str) -> bool {
    match text {
        "1" => true,
        "0" => false,
        _ => {
            setting::warn_once("ZONDA_EXPLAIN", text, &"neither 0 nor 1", &"0");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_yes() {
        assert!(is_yes("1"));
        assert!(!is_yes("0") && !is_yes("maybe"));
    }
}
