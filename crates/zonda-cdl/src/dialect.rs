//! Dialects of CDL.

/// The language of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// That of `ncgen`.
    #[default]
    Enhanced,
    /// That of `ncgen3`: without groups, own types, strings and unsigned integers. Hexadecimal numbers are
    /// integers, and attributes about storage are attributes like others.
    Classic,
}
