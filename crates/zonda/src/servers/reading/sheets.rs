//! Memory in which values come to clients. Who asks for as much again gets memory whose pages are there already.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use zonda_runtime::lock::{Mutex, Rank};

use crate::tuning::{SERVER_SPARE_SHEET_BYTES, SERVER_SPARE_SHEETS};

/// Memory that clients can read and not write.
#[derive(Debug)]
struct Pages {
    memory: File,
    shown: File,
    len: u64,
}

/// Memory that nobody needs at the moment.
#[derive(Debug)]
pub(super) struct Sheets {
    spare: Mutex<Vec<Pages>>,
}

/// Values in such memory. When it is dropped, all clients have taken them: the memory is used again.
#[derive(Debug)]
pub(super) struct Sheet {
    pages: Option<Pages>,
    of: Arc<Sheets>,
}

impl Pages {
    fn new() -> io::Result<Pages> {
        let memory = File::from(zonda_shared::memory_of(&[])?);
        // Without /proc there is only one that can be written to; only this user gets it.
        let shown = File::open(format!("/proc/self/fd/{}", memory.as_raw_fd()));
        let shown = shown.or_else(|_| memory.try_clone())?;
        Ok(Pages { memory, shown, len: 0 })
    }

    fn write(&mut self, values: &[u8]) -> io::Result<()> {
        let len = values.len() as u64;
        if self.len != len {
            self.memory.set_len(len)?;
            self.len = len;
        }
        self.memory.write_all_at(values, 0)
    }
}

impl Sheets {
    pub(super) fn new() -> Sheets {
        Sheets { spare: Mutex::ranked(Rank::Budget, Vec::new()) }
    }

    /// Memory with a copy of values.
    pub(super) fn sheet(self: &Arc<Self>, values: &[u8]) -> io::Result<Sheet> {
        let spare = {
            let mut spare = self.spare.lock();
            let same = spare.iter().position(|pages| pages.len == values.len() as u64);
            same.map(|at| spare.swap_remove(at)).or_else(|| spare.pop())
        };
        let mut pages = spare.map_or_else(Pages::new, Ok)?;
        pages.write(values)?;
        Ok(Sheet { pages: Some(pages), of: Arc::clone(self) })
    }

    fn take_back(&self, pages: Pages) {
        let mut spare = self.spare.lock();
        let bytes: u64 = spare.iter().map(|pages| pages.len).sum();
        if spare.len() < SERVER_SPARE_SHEETS
            && bytes.saturating_add(pages.len) <= SERVER_SPARE_SHEET_BYTES
        {
            spare.push(pages);
        }
    }
}

impl Sheet {
    /// What a message brings to a client.
    pub(super) fn shown(&self) -> Option<BorrowedFd<'_>> {
        self.pages.as_ref().map(|pages| pages.shown.as_fd())
    }
}

impl Drop for Sheet {
    fn drop(&mut self) {
        if let Some(pages) = self.pages.take() {
            self.of.take_back(pages);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sheet: &Sheet) -> Vec<u8> {
        let file = File::from(sheet.shown().unwrap().try_clone_to_owned().unwrap());
        let mut values = vec![0; usize::try_from(file.metadata().unwrap().len()).unwrap()];
        file.read_exact_at(&mut values, 0).unwrap();
        assert!(file.write_all_at(b"x", 0).is_err(), "a client wrote");
        values
    }

    #[test]
    fn memory_is_used_again_and_has_the_new_values() {
        let sheets = Arc::new(Sheets::new());
        let one = sheets.sheet(&[1; 100_000]).unwrap();
        let other = sheets.sheet(&[2; 100_000]).unwrap();
        assert_eq!((read(&one), read(&other)), (vec![1; 100_000], vec![2; 100_000]));
        drop(one);
        assert_eq!(sheets.spare.lock().len(), 1);
        let third = sheets.sheet(&[3; 70_000]).unwrap();
        assert_eq!(sheets.spare.lock().len(), 0);
        assert_eq!((read(&third), read(&other)), (vec![3; 70_000], vec![2; 100_000]));
        let many: Vec<_> = (0..40).map(|_| sheets.sheet(&[4; 50_000]).unwrap()).collect();
        drop((many, third, other));
        assert!(sheets.spare.lock().len() <= SERVER_SPARE_SHEETS);
    }
}
