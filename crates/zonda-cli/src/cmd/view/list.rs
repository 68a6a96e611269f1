//! `zonda view` without a variable: lists the variables that can be drawn.

use std::io::Write;

use zonda::{Dataset, ExtType, GroupId, VarId, VarRef};

use super::decode::text;
use crate::cmd::table::TextTable;
use crate::failure::Result;

/// Lists the variables that have numbers, those with most dimensions first.
///
/// # Errors
/// Errors of reading the definitions and of writing.
pub(super) fn write(file: &Dataset, out: &mut dyn Write) -> Result<()> {
    let mut found = Vec::new();
    let mut left_out = 0_usize;
    let mut groups = vec![GroupId::ROOT];
    while let Some(group) = groups.pop() {
        let (vars, inner) = file.in_group(group, |meta| {
            let path = String::from_utf8_lossy(&meta.group_path()).into_owned();
            let mut vars = Vec::new();
            for id in (0..meta.n_vars()).map_while(|id| i32::try_from(id).ok()).map(VarId) {
                let var = meta.var(id)?;
                if var.ty().is_none_or(|ty| ty == ExtType::Char) {
                    left_out += 1;
                    continue;
                }
                if let Some(error) = meta.var_fault(id) {
                    return Err(error);
                }
                let mut shape = Vec::with_capacity(var.dims.len());
                for &dim in var.dims {
                    let dim = meta.dim(dim)?;
                    shape.push(format!("{}={}", String::from_utf8_lossy(dim.name), dim.len));
                }
                let name = String::from_utf8_lossy(var.name);
                let name = match group {
                    GroupId::ROOT => name.into_owned(),
                    _ => format!("{path}/{name}"),
                };
                vars.push((VarRef { group, var: id }, name, shape));
            }
            Ok::<_, zonda::Error>((vars, meta.groups().to_vec()))
        })??;
        groups.extend(inner.into_iter().rev());
        found.extend(vars);
    }
    // Variables with most dimensions come first, because those are rarely coordinates.
    found.sort_by_key(|(.., shape)| std::cmp::Reverse(shape.len()));
    let mut table = TextTable::new(["variable", "dimensions", "units", "what"], 4);
    for (id, name, shape) in found {
        let about = |name| text(file, id, name).unwrap_or_default();
        let what = text(file, id, "long_name").unwrap_or_else(|| about("standard_name"));
        table.rows.push([name, format!("({})", shape.join(", ")), about("units"), what]);
    }
    if table.rows.len() == 1 {
        writeln!(out, "no variable with numbers")?;
    }
    table.write(out)?;
    if left_out > 0 {
        writeln!(out, "    {left_out} without numbers left out")?;
    }
    Ok(())
}
