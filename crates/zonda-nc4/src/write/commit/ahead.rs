//! How long the file is while it is written.
//!
//! libhdf5 reads the end of the file from the superblock when it opens the file, and later refuses everything behind
//! that end, though headers lead there. So a writer that commits again and again makes the file longer than what is
//! used, *ahead*: a reader that has the file open finds what is committed, until half of what was ahead is used. The
//! storage grows before the superblock says so, by one step more, because a reader asks for the length first. What is ahead
//! takes no space on the disk, and a close removes it.

use zonda_hdf5::File;
use zonda_hdf5::FileAddr;
use zonda_hdf5::usage::{FileUsage, UsedExtent};
use zonda_storage::Storage;

use super::{Writing, root_error};
use crate::Result;
use crate::fault::HdfResult;
use crate::file::Nc4File;
use crate::tuning::{FILE_AHEAD_BYTES, FREQUENT_COMMITS, TAIL_READ_BYTES};

/// Whether a writer that has made so many commits is expected to commit again soon.
pub(crate) fn is_often(n_commits: u64) -> bool {
    n_commits >= FREQUENT_COMMITS
}

/// Ends of the file, as addresses are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ends {
    /// Behind what is used.
    pub(super) used: u64,
    /// What the superblock says.
    pub(super) said: u64,
    /// What the storage has.
    pub(super) len: u64,
}

impl Ends {
    /// The ends after the next commit, of a writer that has made `n_commits`; multiples of `page`.
    pub(super) fn next(self, n_commits: u64, page: u64) -> Ends {
        let Ends { used, said, len } = self;
        let round = |end: u64| end.checked_next_multiple_of(page).unwrap_or(end);
        if !is_often(n_commits) {
            let said = said.max(used);
            return Ends { used, said, len: len.max(said) };
        }
        let ahead = FILE_AHEAD_BYTES.max(used.checked_shr(3).unwrap_or(0));
        let least = used.saturating_add(ahead.checked_shr(1).unwrap_or(0));
        if said >= least {
            return Ends { used, said, len: len.max(said) };
        }
        // The length that the storage has already, if that is enough: readers have known it for a while.
        let said = if len >= least { len } else { round(used.saturating_add(ahead)) };
        Ends { used, said, len: round(said.saturating_add(ahead)) }
    }

    /// The ends after the next commit if the storage cannot be longer than what is used: readers that opened the file
    /// before may not find what the commit adds, which is better than losing it.
    pub(super) fn without_ahead(self) -> Ends {
        let said = self.said.max(self.used);
        Ends { said, len: self.len.max(said), ..self }
    }
}

impl Nc4File {
    /// Cuts the file behind what is used of it.
    ///
    /// # Errors
    /// What the storage reports.
    pub(crate) fn end_where_used(&mut self) -> Result<()> {
        let Nc4File { files, writing: Some(writing), .. } = self else { return Ok(()) };
        let is_whole = !writing.is_new && writing.commits.decided.is_none();
        if !is_whole || writing.file_end.is_kept {
            return Ok(());
        }
        // A writer with few commits has nothing ahead. But it may have given space at the end back, or found what
        // a writer that died had ahead.
        let has_less = writing.commits.n_commits > 0 && writing.file_end.said > writing.space.end();
        if writing.commits.n_commits <= FREQUENT_COMMITS && !has_less {
            return Ok(());
        }
        end_where_used(files.main(), writing).map_err(root_error)
    }
}

impl Nc4File {
    /// Finds the end of what is used in a file whose last writer died, so that new data go there. Otherwise what that
    /// writer had ahead would stay as a hole. For a writer that has the file alone, before it puts anything. Only such a
    /// file is longer than its superblock says, by what is ahead; other files are not walked. If part of the file cannot
    /// be accounted for, it stays as it is.
    ///
    /// # Errors
    /// What the storage reports when asked for its length.
    pub fn continue_at_used_end(&mut self) -> Result<()> {
        let Nc4File { files, writing: Some(writing), .. } = self else { return Ok(()) };
        let file = files.main();
        let begin = file.position(FileAddr(0));
        let len = file.storage().len().map_err(|error| root_error(error.into()))?;
        let ahead = len.saturating_sub(begin).saturating_sub(writing.file_end.said);
        let is_new = writing.is_new || writing.commits.n_commits > 0;
        if is_new
            || ahead < FILE_AHEAD_BYTES
            || !writing.owns_references
            || writing.file_end.page.is_some()
        {
            return Ok(());
        }
        let usage = FileUsage::of(file);
        if usage.is_partial || !usage.faults.is_empty() || !usage.overlaps.is_empty() {
            return Ok(());
        }
        let known = usage.extents.iter().map(UsedExtent::end).max().unwrap_or(u64::MAX);
        // A commit that was interrupted may have left objects that only references lead to.
        let said = begin.saturating_add(writing.file_end.said);
        let written = last_written(&**file.storage(), known, said);
        let used = written.map_err(root_error)?.saturating_sub(begin);
        let used = used.checked_next_multiple_of(8).unwrap_or(u64::MAX);
        if used < writing.file_end.said {
            writing.space.begin_at(used);
        }
        Ok(())
    }
}

/// The position behind the last byte between `begin` and `end` that is not zero; `begin` where all are zero.
fn last_written(storage: &dyn Storage, begin: u64, end: u64) -> HdfResult<u64> {
    let mut bytes = vec![0; usize::try_from(TAIL_READ_BYTES).unwrap_or(0)];
    let mut behind = end;
    while behind > begin {
        let at = behind.saturating_sub(TAIL_READ_BYTES).max(begin);
        let n = usize::try_from(behind.saturating_sub(at)).unwrap_or(0);
        let Some(piece) = bytes.get_mut(..n) else { return Ok(end) };
        let n_read = storage.read_at(at, piece)?;
        let piece = piece.get(..n_read).unwrap_or(piece);
        if let Some(last) = piece.iter().rposition(|&byte| byte != 0) {
            return Ok(at.saturating_add(last as u64).saturating_add(1));
        }
        behind = at;
    }
    Ok(begin)
}

fn end_where_used(file: &File, writing: &mut Writing) -> HdfResult<()> {
    let (storage, used) = (file.storage(), writing.space.end());
    if writing.file_end.said > used {
        file.write_superblock(used)?;
        writing.file_end.said = used;
        storage.barrier()?;
    }
    let len = file.position(FileAddr(used));
    if storage.len()? > len {
        storage.set_len(len)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_commits_seldom_has_nothing_ahead() {
        let ends = Ends { used: 1000, said: 600, len: 900 };
        assert_eq!(ends.next(0, 1), Ends { used: 1000, said: 1000, len: 1000 });
        assert_eq!(ends.next(2, 1), Ends { used: 1000, said: 1000, len: 1000 });
    }

    #[test]
    fn where_there_is_no_room_nothing_is_ahead() {
        let ends = Ends { used: 1000, said: 600, len: 900 };
        assert_eq!(ends.without_ahead(), Ends { used: 1000, said: 1000, len: 1000 });
        let ends = Ends { used: 1000, said: 1200, len: 1500 };
        assert_eq!(ends.without_ahead(), ends);
    }

    #[test]
    fn what_is_said_was_there_before_and_lasts() {
        let mut ends = Ends { used: 1000, said: 1000, len: 1000 };
        let mut said = 0;
        for commits in FREQUENT_COMMITS..4000 {
            let before = ends;
            ends = ends.next(commits, 512);
            assert!(ends.said >= ends.used + FILE_AHEAD_BYTES / 2 && ends.len >= ends.said);
            assert!(ends.len <= ends.used + 3 * FILE_AHEAD_BYTES.max(ends.used / 8) + 512);
            if ends.said != before.said {
                said += 1;
                assert!(said == 1 || ends.said == before.len, "the storage was so long");
            }
            ends.used += 9000;
        }
        assert!(said < 20, "{said}");
    }

    #[test]
    fn no_end_is_behind_the_last_number() {
        let ends = Ends { used: u64::MAX - 5, said: 0, len: 0 };
        assert_eq!(ends.next(9, 4096).said, u64::MAX);
    }
}
