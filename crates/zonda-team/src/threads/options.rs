//! What a simulated team is like, and what goes wrong in it.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use crate::tuning;

use super::Report;

/// Who is told that a rank waits, and decides whether it goes on doing so: [`ControlFlow::Break`] ends the step with
/// [`TeamError::TimedOut`](crate::TeamError::TimedOut).
pub type Reporter = Arc<dyn Fn(&Report) -> ControlFlow<()> + Send + Sync>;

/// What a simulated team is like. The default has all ranks on one node, waits without end, says so once a minute on standard error,
/// and nothing goes wrong.
#[derive(Clone)]
pub struct Options {
    /// Ranks on each node, block after block; 0 for all of them. The last node may have fewer.
    pub n_on_node: usize,
    /// How long a rank waits for a message before it gives up: what `ZONDA_PAR_TIMEOUT` is to MPI. Each message that comes gives
    /// the next one the whole time.
    pub timeout: Option<Duration>,
    /// How long a rank waits for a message before it tells [`reporter`](Options::reporter) so, and between that and the next time.
    pub report_every: Duration,
    /// Who is told. It is called by the thread of the rank that waits, which holds no lock of the team.
    pub reporter: Reporter,
    /// What goes wrong.
    pub faults: Vec<Fault>,
    /// Bytes of the stack of each rank.
    pub stack_bytes: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            n_on_node: 0,
            timeout: None,
            report_every: tuning::REPORT_EVERY,
            reporter: Arc::new(|report| {
                eprintln!("zonda: {report}");
                ControlFlow::Continue(())
            }),
            faults: Vec::new(),
            stack_bytes: tuning::STACK_BYTES,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("n_on_node", &self.n_on_node)
            .field("timeout", &self.timeout)
            .field("report_every", &self.report_every)
            .field("faults", &self.faults)
            .field("stack_bytes", &self.stack_bytes)
            .finish_non_exhaustive()
    }
}

/// Something that goes wrong on one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Whose trouble it is.
    pub rank: usize,
    /// Before what it happens.
    pub before: Moment,
    /// What happens.
    pub what: Trouble,
}

/// A moment in the life of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// It begins this step, counted from 0 over all that it was called for.
    Step(u64),
    /// It sends this message, counted from 0 over all that it sends to others: in the middle of a step.
    Message(u64),
}

/// What may happen to a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It sleeps, and goes on.
    Delay(Duration),
    /// Its step fails with [`TeamError::Failed`](crate::TeamError::Failed). The other ranks are not told, as MPI would not tell them.
    Error,
    /// Its step, an exchange, comes to its end, and has no memory for what was sent ([`TeamError::NoMemory`](crate::TeamError::NoMemory)).
    /// Before other steps and messages it does nothing.
    NoMemory,
    /// It stops for ever, and nobody is told. Its thread unwinds from the step, so what it had on its stack is dropped; steps that
    /// are called meanwhile are [`TeamError::Broken`](crate::TeamError::Broken).
    Death,
}
