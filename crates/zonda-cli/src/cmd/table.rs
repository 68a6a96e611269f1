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

    /// The same, of texts alone, in lines of at most `most` characters as long as words are short: the last two columns share what the others leave.
    pub(super) fn write_within(&self, most: usize, out: &mut dyn Write) -> Result<()> {
        let width = |column: usize| {
            self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
        };
        let mut widths: [usize; N] = std::array::from_fn(width);
        if let [before @ .., last_but_one, last] = &mut widths[..] {
            let taken = before.iter().sum::<usize>() + 2 * N + 2;
            let (all, left) = (*last_but_one + *last, most.saturating_sub(taken));
            if all > left {
                *last_but_one = left * *last_but_one / all;
                *last = left - *last_but_one;
            }
        }
        for row in &self.rows {
            let cells: [Vec<String>; N] = std::array::from_fn(|at| wrapped(&row[at], widths[at]));
            for number in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
                let mut line = "  ".to_owned();
                for (cell, width) in cells.iter().zip(widths) {
                    let text = cell.get(number).map_or("", String::as_str);
                    line.push_str(&format!("  {text:<width$}"));
                }
                writeln!(out, "{}", line.trim_end())?;
            }
        }
        Ok(())
    }
}

/// A text in lines of at most `width` characters, where words allow it.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_not_longer_than_they_may_be() {
        assert_eq!(wrapped("one two  three", 7), ["one two", " three"]);
        assert_eq!(wrapped("", 7), [""]);
        assert_eq!(wrapped("immeasurable at", 3), ["immeasurable", "at"]);
        let mut table = TextTable::new(["name", "now", "what", "ends"], 4);
        table.rows.push(["a", "1", "reads and writes", "after a while"].map(str::to_owned));
        let shown = |most| {
            let mut out = Vec::new();
            table.write_within(most, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let whole = "    name  now  what              ends\n    a     1    reads and writes  after a while\n";
        assert_eq!(shown(47), whole);
        let narrow = "    name  now  what      ends\n    a     1    reads     after a\n               and       while\n               writes\n";
        assert_eq!(shown(32), narrow);
    }
}
