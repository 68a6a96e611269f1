//! What stands behind the question mark of a URL, and the part of it that is a constraint.

use super::constraint::{Clause, Constraint, Segment, Slice, escape};
use super::dmr::names;
use crate::error::{DapError, Document};

/// The parameter that has the constraint.
const PARAMETER: &str = "dap4.ce=";

/// The user's query.
#[derive(Debug, Default)]
pub(super) struct Query {
    constraint: Constraint,
    /// Other parameters, which go with each request.
    others: Vec<String>,
}

impl Query {
    /// Reads a query without escapes. What is no parameter of DAP4 and begins with a slash is a constraint, too; everything else goes to the server as it is.
    pub(super) fn parse(text: &str) -> Result<Query, DapError> {
        let mut query = Query::default();
        for part in text.split('&').filter(|part| !part.is_empty()) {
            let clauses = part.strip_prefix(PARAMETER).or(part.starts_with('/').then_some(part));
            match clauses {
                Some(clauses) => {
                    query.constraint.clauses.extend(Constraint::parse(clauses)?.clauses)
                }
                None => query.others.push(part.to_owned()),
            }
        }
        Ok(query)
    }

    /// The query for the documents and for all of the values.
    pub(super) fn whole(&self) -> String {
        self.with(&self.constraint)
    }

    /// The query with another constraint.
    pub(super) fn with(&self, constraint: &Constraint) -> String {
        let mut parts = Vec::new();
        if !constraint.clauses.is_empty() {
            parts.push(format!("{PARAMETER}{}", escape(&constraint.to_string())));
        }
        parts.extend(self.others.iter().map(|part| escape(part)));
        parts.join("&")
    }

    /// The clauses that ask for a part of a variable, whose dimensions have these names, within what the user asks for of it.
    pub(super) fn part<'a>(
        &self,
        fqn: &str,
        dims: impl Iterator<Item = (Option<&'a str>, u64, u64, u64)>,
    ) -> Result<Vec<Clause>, DapError> {
        let dims: Vec<_> = dims.collect();
        let asked = self.constraint.clauses.iter().filter_map(|clause| match clause {
            Clause::Variable { path, filter } if names::canonical(&path.name) == fqn => {
                Some((path.clone(), filter.clone()))
            }
            _ => None,
        });
        let mut asked: Vec<_> = asked.collect();
        if asked.is_empty() {
            let mut name = String::new();
            for part in names::split(fqn) {
                name.push('/');
                super::constraint::write_name(&part, &mut name);
            }
            asked.push((Segment { name, slices: Vec::new(), fields: Vec::new() }, None));
        }
        let mut clauses = Vec::new();
        for (mut path, filter) in asked {
            let mut slices = Vec::new();
            for (i, &(name, start, count, stride)) in dims.iter().enumerate() {
                let own = path.slices.get(i).copied().unwrap_or(Slice::All);
                let base = if own == Slice::All { self.of_dimension(name) } else { own };
                let too_large = || {
                    DapError::malformed(
                        Document::Constraint,
                        0,
                        format!("{fqn}: numbers are too large"),
                    )
                };
                slices.push(base.within(start, count, stride).ok_or_else(too_large)?);
            }
            path.slices = slices;
            clauses.push(Clause::Variable { path, filter });
        }
        Ok(clauses)
    }

    /// What the user asks for of a shared dimension.
    fn of_dimension(&self, fqn: Option<&str>) -> Slice {
        let found = self.constraint.clauses.iter().find_map(|clause| match clause {
            Clause::Dimension { name, slice } if Some(names::canonical(name).as_str()) == fqn => {
                Some(*slice)
            }
            _ => None,
        });
        found.unwrap_or(Slice::All)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(query: &str, start: u64, count: u64, stride: u64) -> String {
        let query = Query::parse(query).unwrap();
        let clauses = query.part("/g/v", [(Some("/x"), start, count, stride)].into_iter()).unwrap();
        Constraint { clauses }.to_string()
    }

    #[test]
    fn parts_within_what_the_user_asks_for() {
        assert_eq!(part("", 0, 3, 1), "/g/v[0:2]");
        assert_eq!(part("", 4, 3, 2), "/g/v[4:2:8]");
        assert_eq!(part("dap4.ce=/g/v[10:5:100]", 1, 3, 2), "/g/v[15:10:35]");
        assert_eq!(part("/g/v[][5];/w", 1, 1, 1), "/g/v[1]");
        assert_eq!(part("dap4.ce=/x=[3:9];/g/v", 1, 2, 1), "/g/v[4:5]");
        assert_eq!(part("dap4.ce=/x=[3:9];/g/v[1:2]", 1, 1, 1), "/g/v[2]");
        assert_eq!(part("dap4.ce=/g/v.a;/g/v.b|a<5", 0, 2, 1), "/g/v[0:1].a;/g/v[0:1].b|a<5");
    }

    #[test]
    fn other_parameters_stay() {
        let query = Query::parse("dap4.checksum=true&dap4.ce=/a b&token=x y").unwrap();
        assert_eq!(query.whole(), "dap4.ce=/a%20b&dap4.checksum=true&token=x%20y");
        assert_eq!(Query::parse("").unwrap().whole(), "");
        assert!(Query::parse("dap4.ce=/a[").is_err());
    }
}
