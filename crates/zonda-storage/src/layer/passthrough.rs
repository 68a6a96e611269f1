//! `passthrough`: forwards everything, changes nothing. The smallest layer: it shows what each of them consists of.

use crate::forward;
use crate::spec::{Below, Building, LayerSpec, Registered, SpecArgs, SpecError};
use crate::{Storage, StorageError};
use std::fmt;
use std::sync::Arc;

/// How a spec names this layer.
pub(super) const REGISTERED: Registered = Registered { name: "passthrough", parse };

/// Reads the arguments after the name; this layer has none.
fn parse(args: &mut SpecArgs<'_>) -> Result<Arc<dyn LayerSpec>, SpecError> {
    args.end()?;
    Ok(Arc::new(PassthroughSpec))
}

/// The layer as a spec holds it: checked, not yet built.
#[derive(Debug)]
struct PassthroughSpec;

impl fmt::Display for PassthroughSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("passthrough")
    }
}

impl LayerSpec for PassthroughSpec {
    fn build(&self, below: Below, _: &mut Building<'_>) -> Result<Below, StorageError> {
        Ok(Arc::new(Passthrough::new(below)))
    }

    fn buffers(&self) -> bool {
        false
    }
}

/// A layer that does nothing.
#[derive(Debug)]
pub struct Passthrough<S> {
    inner: S,
}

impl<S: Storage> Passthrough<S> {
    /// Wraps `inner`.
    pub fn new(inner: S) -> Self {
        Passthrough { inner }
    }
}

impl<S: Storage> Storage for Passthrough<S> {
    forward! { this => this.inner; all }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("passthrough,")?;
        self.inner.describe(f)
    }
}
