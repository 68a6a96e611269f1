//! Carries accesses out again on scratch files.

use std::collections::hash_map::DefaultHasher;
use std::fs::{File, OpenOptions as FileOptions};
use std::hash::Hasher;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use zonda::storage::{
    Advice, ReadRange, Spec, Storage, StorageOptions, SyncLevel, WriteRange, open,
};

use super::accesses::{AccessKind, Accesses, TracedAccess};
use crate::failure::{CommandFailure, Result};
use crate::tuning::{DIGEST_BYTES, REPLAYED_CALL_BYTES};

/// A stack that the accesses are carried out over.
#[derive(Debug)]
pub(super) struct TriedStack<'a> {
    pub(super) spec: &'a Spec,
    pub(super) sync: SyncLevel,
}

type StorageResult<T> = std::result::Result<T, zonda::storage::StorageError>;

/// Scratch files with the lengths of the originals. They are removed on drop.
#[derive(Debug)]
pub(super) struct ScratchFiles {
    /// One file for each path of the trace.
    files: Vec<PathBuf>,
    lengths: Vec<u64>,
    /// Bytes that are written.
    data: Vec<u8>,
    /// Takes the bytes that are read.
    read_buffer: Vec<u8>,
}

/// Has what was written handed down where the accesses were cut off: the barrier that the program made before it closed the file is not
/// among them, and without it each stack leaves something else.
fn end(accesses: &Accesses, storage: &dyn Storage) -> StorageResult<()> {
    if accesses.cut { storage.barrier() } else { Ok(()) }
}

impl ScratchFiles {
    /// Makes the files, in `folder` or beside the originals.
    ///
    /// # Errors
    /// If they cannot be written.
    pub(super) fn make(
        accesses: &Accesses,
        folder: Option<&Path>,
        most_bytes: u64,
    ) -> Result<ScratchFiles> {
        let lengths = accesses.lengths();
        let all = lengths.iter().fold(0u64, |all, len| all.saturating_add(*len));
        if all > most_bytes {
            let what = format!("files of {all} bytes would be needed to try on: --limit says less");
            return Err(CommandFailure::text(what));
        }
        let moves =
            |access: &&TracedAccess| matches!(access.what, AccessKind::Read | AccessKind::Write);
        let call = |access: &TracedAccess| {
            let more = accesses.more[access.more.0..access.more.1].iter();
            more.fold(access.len, |sum, (_, len)| sum.saturating_add(*len))
        };
        let longest = accesses.all.iter().filter(moves).map(call).max().unwrap_or(0);
        let longest = usize::try_from(longest).unwrap_or(usize::MAX).min(REPLAYED_CALL_BYTES);
        // Random bytes, because no layer or file system can compress them.
        let mut data = vec![0; longest + SHIFTS];
        fastrand::Rng::with_seed(1).fill(&mut data);
        let mut scratch =
            ScratchFiles { files: Vec::new(), lengths, data, read_buffer: vec![0; longest] };
        for (index, original) in accesses.paths.iter().enumerate() {
            let beside = Path::new(original).parent().filter(|p| !p.as_os_str().is_empty());
            let folder = folder.or(beside).unwrap_or(Path::new("."));
            let path = folder.join(format!(".zonda-tune-{}-{index}", std::process::id()));
            // An existing file belongs to somebody else and is never used.
            let made = FileOptions::new().write(true).create_new(true).open(&path);
            let file = made.map_err(|error| CommandFailure::at(&path, error))?;
            scratch.files.push(path);
            scratch.fill(index, &file, 0)?;
        }
        Ok(scratch)
    }

    /// Writes a file's bytes from `from` to the length it has at the start.
    fn fill(&self, index: usize, mut file: &File, from: u64) -> Result<()> {
        let failed = |error| CommandFailure::at(&self.files[index], error);
        let mut at = from;
        file.seek(SeekFrom::Start(at)).map_err(failed)?;
        let block = &self.data[..self.data.len().min(1 << 20)];
        while at < self.lengths[index] {
            let left = usize::try_from(self.lengths[index] - at).unwrap_or(usize::MAX);
            let part = &block[..left.min(block.len())];
            file.write_all(part).map_err(failed)?;
            at += part.len() as u64;
        }
        Ok(())
    }

    /// Gives the files the lengths that they have at the start.
    fn reset(&self) -> Result<()> {
        for (index, path) in self.files.iter().enumerate() {
            let failed = |error| CommandFailure::at(path, error);
            let file = FileOptions::new().write(true).open(path).map_err(failed)?;
            let len = file.metadata().map_err(failed)?.len();
            // The file is not made anew: then writes of all rounds find the same allocated space.
            file.set_len(self.lengths[index].min(len)).map_err(failed)?;
            self.fill(index, &file, len)?;
        }
        Ok(())
    }

    /// Carries out the accesses over a stack, and returns the seconds that the caller spent in
    /// them.
    ///
    /// With `pauses` this also waits between accesses as long as the program did, which gives work
    /// in the background its time. Pauses are not counted.
    ///
    /// # Errors
    /// What the stack reports; [`ReplayFailure`] where it cannot be opened here.
    pub(super) fn replay(
        &mut self,
        accesses: &Accesses,
        stack: &TriedStack<'_>,
        pauses: bool,
    ) -> std::result::Result<f64, ReplayFailure> {
        self.reset().map_err(ReplayFailure::Scratch)?;
        let mut open_now: Vec<Option<Arc<dyn Storage>>> = vec![None; accesses.openings.len()];
        let mut spent = Duration::ZERO;
        let mut before: Option<u64> = None;
        for (number, access) in accesses.all.iter().enumerate() {
            if pauses && let Some(end) = before {
                let pause = access.begin_ns.saturating_sub(end);
                std::thread::sleep(Duration::from_nanos(pause));
            }
            before = Some(access.end_ns);
            let begin = Instant::now();
            self.carry_out(accesses, access, number, stack, &mut open_now)
                .map_err(|why| ReplayFailure::Stack(why.to_string()))?;
            spent += begin.elapsed();
        }
        let begin = Instant::now();
        let ended = open_now.iter().flatten().try_for_each(|storage| end(accesses, &**storage));
        ended.map_err(|why| ReplayFailure::Stack(why.to_string()))?;
        drop(open_now);
        Ok((spent + begin.elapsed()).as_secs_f64())
    }

    fn carry_out(
        &mut self,
        accesses: &Accesses,
        access: &TracedAccess,
        number: usize,
        stack: &TriedStack<'_>,
        open_now: &mut [Option<Arc<dyn Storage>>],
    ) -> StorageResult<()> {
        if access.what == AccessKind::Close {
            let storage = open_now[access.opening].take();
            return storage.map_or(Ok(()), |storage| end(accesses, &*storage));
        }
        let storage = self.opened(accesses, access.opening, stack, open_now)?;
        let more = &accesses.more[access.more.0..access.more.1];
        match access.what {
            AccessKind::Open | AccessKind::Close => Ok(()),
            AccessKind::Read => self.read(&*storage, (access.offset, access.len), more),
            AccessKind::Write => self.write(&*storage, (access.offset, access.len), more, number),
            AccessKind::Fill => storage.fill_at(access.offset, access.len, &[0; 4]),
            AccessKind::Len => storage.len().map(drop),
            AccessKind::SetLen => storage.set_len(access.offset),
            AccessKind::Barrier => storage.barrier(),
            AccessKind::Sync => storage.sync(),
            AccessKind::Invalidate => storage.invalidate(),
            AccessKind::Advise => {
                storage.advise(Advice {
                    record_bytes: access.offset,
                    n_record_parts: u64::from(access.parts),
                    file_bytes: access.len,
                });
                Ok(())
            }
        }
    }

    /// The storage of an opening. It is opened here where the trace begins in the middle of the opening, too.
    fn opened(
        &self,
        accesses: &Accesses,
        opening: usize,
        stack: &TriedStack<'_>,
        open_now: &mut [Option<Arc<dyn Storage>>],
    ) -> StorageResult<Arc<dyn Storage>> {
        if let Some(storage) = &open_now[opening] {
            return Ok(Arc::clone(storage));
        }
        let traced = &accesses.openings[opening];
        let options = StorageOptions {
            write: traced.writes,
            sync: stack.sync,
            spec: Some(stack.spec.clone()),
            ..StorageOptions::default()
        };
        let storage = open(&self.files[traced.path], &options)?;
        Ok(Arc::clone(open_now[opening].insert(storage)))
    }

    fn read(
        &mut self,
        storage: &dyn Storage,
        first: (u64, u64),
        more: &[(u64, u64)],
    ) -> StorageResult<()> {
        let mut ranges = parts(first, more, self.read_buffer.len()).peekable();
        if more.is_empty() {
            let buffer = &mut self.read_buffer;
            return ranges.try_for_each(|(at, n)| storage.read_at(at, &mut buffer[..n]).map(drop));
        }
        while ranges.peek().is_some() {
            // As many ranges in one call as the buffer has room for.
            let mut unused = &mut self.read_buffer[..];
            let mut buffers = Vec::new();
            while let Some((at, n)) = ranges.next_if(|(_, n)| *n <= unused.len()) {
                let (buffer, behind) = std::mem::take(&mut unused).split_at_mut(n);
                unused = behind;
                buffers.push(ReadRange::new(at, buffer));
            }
            storage.read_ranges(&mut buffers)?;
        }
        Ok(())
    }

    /// Writes bytes that depend on the number of the access, so that the digest tells writes apart.
    fn write(
        &self,
        storage: &dyn Storage,
        first: (u64, u64),
        more: &[(u64, u64)],
        number: usize,
    ) -> StorageResult<()> {
        let shift = number.wrapping_mul(61) % SHIFTS;
        let mut ranges = parts(first, more, self.read_buffer.len());
        let data = |n: usize| &self.data[shift..shift + n];
        if more.is_empty() {
            return ranges.try_for_each(|(at, n)| storage.write_at(at, data(n)));
        }
        let ranges = ranges.map(|(at, n)| WriteRange { at, data: data(n) });
        storage.write_ranges(&ranges.collect::<Vec<_>>())
    }

    /// A hash of the contents of the files; of very long ones only the beginning counts.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(super) fn digest(&self) -> Result<u64> {
        let mut hasher = DefaultHasher::new();
        let mut block = vec![0; 1 << 20];
        for path in &self.files {
            let failed = |error| CommandFailure::at(path, error);
            let mut file = File::open(path).map_err(failed)?.take(DIGEST_BYTES);
            loop {
                match file.read(&mut block).map_err(failed)? {
                    0 => break,
                    n => hasher.write(&block[..n]),
                }
            }
            hasher.write_u8(0xff);
        }
        Ok(hasher.finish())
    }
}

/// Bytes beyond the longest transfer. Each write takes its bytes from another offset, so that the
/// digest tells writes apart.
const SHIFTS: usize = 4096;

/// The ranges of a call. Ranges longer than `most` bytes are split.
fn parts(
    first: (u64, u64),
    more: &[(u64, u64)],
    most: usize,
) -> impl Iterator<Item = (u64, usize)> + '_ {
    let step = most.max(1);
    std::iter::once(first).chain(more.iter().copied()).flat_map(move |(at, len)| {
        // An empty range is kept, because it is a call, too.
        let n_parts = len.div_ceil(step as u64).max(1);
        (0..n_parts).map(move |part| {
            let begin = part * step as u64;
            let left = usize::try_from(len - begin).unwrap_or(usize::MAX);
            (at.saturating_add(begin), left.min(step))
        })
    })
}

/// Why a replay failed.
#[derive(Debug)]
pub(super) enum ReplayFailure {
    /// The scratch files failed, whatever the stack.
    Scratch(CommandFailure),
    /// The stack cannot be opened here, or an access failed.
    Stack(String),
}

impl Drop for ScratchFiles {
    fn drop(&mut self) {
        for path in &self.files {
            // Nothing can be done about a failure; the file's name says where it comes from.
            let _ = std::fs::remove_file(path);
        }
    }
}
