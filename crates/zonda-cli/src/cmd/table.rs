//! Tables of text.

use std::io::Write;

use crate::failure::Result;

/// A table whose columns are as wide as their texts.
pub(super) struct TextTable<const N: usize> {
    /// All rows; the first one has the heads.
    pub(super) rows: Vec<[String; N]>,
    /// How many columns have text. The others have numbers, which are aligned to the right.
    n_texts: usize,
}

impl<const N: usize> TextTable<N> {
    pub(super) fn new(heads: [&str; N], n_texts: usize) -> TextTable<N> {
        TextTable { rows: vec![heads.map(str::to_owned)], n_texts }
    }

    /// Writes the table, unless it has only heads.
    pub(super) fn write(&self, out: &mut dyn Write) -> Result<()> {
        let rows = if self.rows.len() > 1 { &self.rows[..] } else { &[] };
        let width =
            |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: [usize; N] = std::array::from_fn(width);
        for row in rows {
            let mut line = "  ".to_owned();
            for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
                line.push_str(&if column < self.n_texts {
                    format!("  {cell:<width$}")
                } else {
                    format!("  {cell:>width$}")
                });
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
