//! Constraints: which variables, which elements of them, which records.
//! Spec: DAP4, volume 1, "Constraints".
//!
//! ```text
//! constraint  = clause *(";" clause)
//! clause      = dimension "=" slice / path ["|" filter]
//! path        = segment ["." path / ["."] "{" path *((";" / ",") path) "}"]
//! segment     = name *slice
//! slice       = "[" [first [":" [last / stride ":" [last]]]] "]"
//! ```
//!
//! The name of the first segment has all of its groups, as `/g/v`. A backslash takes from a character its meaning.

mod parse;
mod write;

pub use write::escape;
pub(in crate::dap4) use write::name as write_name;

/// A constraint; without clauses all of a dataset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Constraint {
    /// What is asked for.
    pub clauses: Vec<Clause>,
}

/// One thing that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clause {
    /// A part of a shared dimension, for all variables on it.
    Dimension {
        /// Its name with all groups.
        name: String,
        /// Which part.
        slice: Slice,
    },
    /// A variable, or fields of it.
    Variable {
        /// The variable.
        path: Segment,
        /// Which records, as the text stands.
        filter: Option<String>,
    },
}

/// A variable or field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its name; that of a variable has all groups, as `/g/v`, with a backslash before what has a meaning in it.
    pub name: String,
    /// A part of each dimension; empty for all.
    pub slices: Vec<Slice>,
    /// Fields of it; empty for all.
    pub fields: Vec<Segment>,
}

/// A part of a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slice {
    /// All of it, or what a clause says of the dimension.
    All,
    /// Elements at equal distances.
    Part {
        /// The first.
        first: u64,
        /// The distance, at least 1.
        stride: u64,
        /// The greatest that may be among them; `None` for the end of the dimension.
        last: Option<u64>,
    },
}

impl Slice {
    /// The part of this part that has `count` elements from `start` on, each `stride` from the one before; `None` where numbers are too large.
    #[must_use]
    pub fn within(self, start: u64, count: u64, stride: u64) -> Option<Slice> {
        let (first, step) = match self {
            Slice::All => (0, 1),
            Slice::Part { first, stride, .. } => (first, stride),
        };
        let first = start.checked_mul(step)?.checked_add(first)?;
        let stride = stride.checked_mul(step)?;
        let last = count.saturating_sub(1).checked_mul(stride)?.checked_add(first)?;
        // A distance that leads nowhere is not said: servers refuse one that is longer than the dimension.
        let stride = if count > 1 { stride } else { 1 };
        Some(Slice::Part { first, stride, last: Some(last) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::DapError;

    fn back(text: &str) -> String {
        let constraint = Constraint::parse(text).unwrap();
        let written = constraint.to_string();
        assert_eq!(Constraint::parse(&written).unwrap(), constraint, "{text} {written}");
        written
    }

    #[test]
    fn constraints_come_back() {
        for text in [
            "/v",
            "/g/h/v[0:9][3][0:2:8][][4:]",
            "/lat=[0:5];/v;/w[][0:2:]",
            "/s.x",
            "/s[1].x[2].y",
            "/s{x;y[0:3];z{a;b}}",
            "/s|x<5,y>3",
            "/a\\.b",
            "/a\\/b\\[c",
            "/ü v",
            "",
        ] {
            assert_eq!(back(text), text);
        }
        assert_eq!(back("v"), "/v");
        assert_eq!(back("/v[ 0 : 9 ]"), "/v[0:9]");
        assert_eq!(back("/v[0:1:9]"), "/v[0:9]");
        assert_eq!(back("/s.{x,y}"), "/s{x;y}");
        assert_eq!(back("/a;;/b;"), "/a;/b");
        assert_eq!(back("/v[0:*]"), "/v[0:]");
    }

    #[test]
    fn faults_have_their_byte() {
        let fault = |text: &str| match Constraint::parse(text).unwrap_err() {
            DapError::Malformed { at, what, .. } => (at, what),
            other => panic!("{other}"),
        };
        assert_eq!(fault("/v[").0, 3);
        assert_eq!(fault("/v[1").0, 4);
        assert_eq!(fault("/v[1:0:2]").0, 5);
        assert_eq!(fault("/v[5:3]").0, 5);
        assert_eq!(fault("/v[99999999999999999999]").0, 3);
        assert_eq!(fault("/v]").0, 2);
        assert_eq!(fault("/s{x").0, 4);
        assert_eq!(fault("/s{}").0, 3);
        assert_eq!(fault("/s.").0, 3);
        assert_eq!(fault("=[1]").0, 0);
        assert_eq!(fault("/d=1").0, 3);
        assert_eq!(fault(&"/s{".repeat(100_000)).1, "nested more than 64 deep");
        assert_eq!(fault(&"/s.".repeat(100_000)).1, "nested more than 64 deep");
    }

    #[test]
    fn parts_of_parts() {
        let user = Slice::Part { first: 2, stride: 3, last: Some(40) };
        let part = user.within(1, 4, 2).unwrap();
        assert_eq!(part, Slice::Part { first: 5, stride: 6, last: Some(23) });
        let one = user.within(1, 1, 9).unwrap();
        assert_eq!(one, Slice::Part { first: 5, stride: 1, last: Some(5) });
        assert_eq!(Slice::All.within(u64::MAX, 2, 1), None);
    }

    #[test]
    fn random_constraints_come_back() {
        let mut random = fastrand::Rng::with_seed(4);
        fn segment(random: &mut fastrand::Rng, depth: usize) -> Segment {
            let chars =
                ['a', '/', '.', '\\', '[', ']', '{', '}', ';', '|', '=', ',', 'ü', ' ', '"', ':'];
            let raw: String =
                (0..random.usize(1..6)).map(|_| random.choice(chars).unwrap()).collect();
            let mut name = String::new();
            write::name(&raw, &mut name);
            let name = if depth == 0 { format!("/g/{name}") } else { name };
            let slices = (0..random.usize(0..3)).map(|_| {
                let first = random.u64(0..100);
                let last = random.bool().then(|| random.u64(first..200));
                if random.u8(0..4) == 0 {
                    return Slice::All;
                }
                Slice::Part { first, stride: random.u64(1..5), last }
            });
            let slices = slices.collect();
            let n = if depth < 3 { random.usize(0..3) } else { 0 };
            let fields = (0..n).map(|_| segment(random, depth + 1)).collect();
            Segment { name, slices, fields }
        }
        for _ in 0..2000 {
            let clauses = (0..random.usize(1..4)).map(|_| Clause::Variable {
                path: segment(&mut random, 0),
                filter: random.bool().then(|| "x < 5".into()),
            });
            let constraint = Constraint { clauses: clauses.collect() };
            let text = constraint.to_string();
            // `[3]` is `[3:3]`, whatever the distance.
            let again = Constraint::parse(&text).unwrap();
            assert_eq!(again.to_string(), text);
            assert_eq!(Constraint::parse(&again.to_string()).unwrap(), again);
        }
    }
}
