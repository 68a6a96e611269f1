//! A team whose ranks are threads of several processes: the members of a group, each of which runs some of the ranks.
//!
//! Ranks are those of [`threads`](crate::threads): letters between two of one member go from mailbox to mailbox, and others over a
//! connection between their members ([`Mesh`]), where a thread puts them into mailboxes. That thread always reads, so who sends waits only while bytes are on
//! their way, and nobody waits in a circle. As many letters wait as ranks send before they hear of each other.
//!
//! A member that ends, however it does, is told by the system: ranks that wait for its ranks get an error then. Where a member is stopped, they wait.

mod frame;
mod mesh;

use std::ops::Range;
use std::sync::Arc;

use crate::threads::{self, Finished, Options, Shared, Threads};

pub use mesh::{Mesh, Watcher};

pub(crate) use frame::{Frame, FrameKind, Head};

/// The name of a team: the same in all members, and never that of another team.
pub type TeamName = [u64; 2];

/// Which member runs a rank: neighbouring ranks are in one, and members have as many as others, or one more.
#[must_use]
pub const fn member_of(rank: usize, n_ranks: usize, n_members: usize) -> usize {
    // Teams are small: there is no overflow.
    rank.saturating_mul(n_members) / if n_ranks == 0 { 1 } else { n_ranks }
}

/// The ranks that a member runs.
#[must_use]
pub const fn ranks_of(member: usize, n_ranks: usize, n_members: usize) -> Range<usize> {
    let n_members = if n_members == 0 { 1 } else { n_members };
    let first = member.saturating_mul(n_ranks).div_ceil(n_members);
    let end = member.saturating_add(1).saturating_mul(n_ranks).div_ceil(n_members);
    first..end
}

/// The other members that run ranks of a team.
pub fn others_of(mesh: &Mesh, n_ranks: usize) -> impl Iterator<Item = usize> {
    let (me, n_members) = (mesh.me(), mesh.size());
    (0..n_members)
        .filter(move |&member| member != me && !ranks_of(member, n_ranks, n_members).is_empty())
}

/// Runs `body` on each rank of a team of `n` that this member runs, and returns when these have ended: what became of each, in their order. The
/// other members do the same, by the same name, at any time: ranks wait for them. `None` where there was a team of that name.
///
/// # Panics
/// If this member has more than 1,024 of the ranks.
pub fn run<T: Send>(
    mesh: &Arc<Mesh>,
    name: TeamName,
    n: usize,
    options: &Options,
    body: impl Fn(&Threads) -> T + Sync,
) -> Option<Vec<Finished<T>>> {
    let shared = Arc::new(Shared::spread(n, options, (mesh, name)));
    if !mesh.join(name, &shared) {
        return None;
    }
    let finished = threads::run_ranks(&shared, ranks_of(mesh.me(), n, mesh.size()), body);
    mesh.leave(name);
    Some(finished)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rank_is_in_one_member() {
        for n_members in 1..8 {
            for n in 1..40 {
                let of: Vec<usize> = (0..n).map(|rank| member_of(rank, n, n_members)).collect();
                for member in 0..n_members {
                    let ranks = ranks_of(member, n, n_members);
                    let n_here = of.iter().filter(|of| **of == member).count();
                    assert_eq!(n_here, ranks.len(), "{member} {n} {n_members}");
                    assert!(ranks.clone().all(|rank| of[rank] == member));
                    assert!(ranks.len().abs_diff(n / n_members) <= 1);
                }
            }
        }
    }
}
