//! Copying a dataset into another file.

use std::ops::ControlFlow;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use zonda::FilterSpec;
use zonda::copy::{
    ChunkRule, CopyMethod, CopyOptions, FilterRule, Pattern, Progress, Unfinished, copy_dataset,
};

use crate::file::{File, PathArg, format_of};
use crate::names::{Filter, Name};

/// Variables (all if there are none) and their filters with parameters.
type FilterArgs = (Vec<Name>, Vec<(Filter, Vec<u32>)>);
/// A variable (`None` for all), and the names of dimensions with the elements of a chunk along them.
type ChunkArgs = (Option<Name>, Vec<(Name, u64)>);

/// Of each variable its path, its bytes and how it was copied; and notes.
type CopyOutcome = (Vec<(String, u64, &'static str)>, Vec<String>);

fn patterns(names: Vec<Name>) -> Vec<Pattern> {
    names.into_iter().map(|name| Pattern::new(name.0)).collect()
}

fn rule((vars, filters): FilterArgs) -> PyResult<FilterRule> {
    let filters = filters.into_iter().map(|(filter, params)| {
        let unknown = || PyValueError::new_err("there is no filter of that name");
        let id = filter.id().ok_or_else(unknown)?;
        Ok(FilterSpec { id, optional: false, name: String::new(), params })
    });
    Ok(FilterRule { vars: patterns(vars), filters: filters.collect::<PyResult<_>>()? })
}

/// Calls `progress` with how far the copy is. Ctrl-C ends a copy that has no `progress`, too.
fn report(progress: Option<&Py<PyAny>>, now: &Progress<'_>) -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        let Some(progress) = progress else { return Ok(()) };
        progress.call1(py, (now.var, now.done_bytes, now.total_bytes)).map(drop)
    })
}

#[pymethods]
impl File {
    /// Copies it to `target`; `progress` is called with bytes done and bytes in all, and ends the copy by raising.
    /// The path of each variable with its bytes and how it was copied, and notes.
    #[pyo3(signature = (target, *, format=None, group=None, variables=Vec::new(), exclude=Vec::new(),
        chunks=Vec::new(), contiguous=Vec::new(), filters=Vec::new(), fix_unlimited=false, memory=None,
        replace=false, resume=false, progress=None))]
    #[allow(clippy::too_many_arguments, reason = "keywords of Python")]
    fn copy(
        &self,
        py: Python<'_>,
        target: PathArg,
        format: Option<&str>,
        group: Option<Name>,
        variables: Vec<Name>,
        exclude: Vec<Name>,
        chunks: Vec<ChunkArgs>,
        contiguous: Vec<Name>,
        filters: Vec<FilterArgs>,
        fix_unlimited: bool,
        memory: Option<u64>,
        replace: bool,
        resume: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<CopyOutcome> {
        let chunks = chunks.into_iter().map(|(var, sizes)| ChunkRule {
            vars: var.map(|name| Pattern::new(name.0)),
            sizes: sizes.into_iter().map(|(dim, size)| (dim.0, size)).collect(),
        });
        let mut options = CopyOptions {
            format: format.map(format_of).transpose()?,
            group: group.map(|path| path.0),
            vars: patterns(variables),
            exclude: patterns(exclude),
            chunks: chunks.collect(),
            contiguous: patterns(contiguous),
            filters: filters.into_iter().map(rule).collect::<PyResult<_>>()?,
            fix_unlimited,
            replace,
            unfinished: if resume { Unfinished::Completed } else { Unfinished::Removed },
            ..CopyOptions::default()
        };
        if let Some(bytes) = memory {
            options.memory_bytes = bytes;
        }
        let mut raised = None;
        let copied = self.call(py, |dataset| {
            copy_dataset(dataset, &target.0, &options, &mut |now: &Progress<'_>| {
                raised = report(progress.as_ref(), now).err();
                if raised.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
        });
        if let Some(error) = raised {
            return Err(error);
        }
        let copied = copied?;
        let vars = copied.vars.into_iter().map(|var| {
            let way = match var.way {
                CopyMethod::Before => "before",
                CopyMethod::Stored => "stored",
                CopyMethod::Values => "values",
                CopyMethod::Spilled => "spilled",
                CopyMethod::Nothing => "nothing",
            };
            (var.path, var.bytes, way)
        });
        Ok((vars.collect(), copied.notes))
    }
}
