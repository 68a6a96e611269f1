use std::sync::Arc;

use proptest::prelude::*;
use zonda_storage::Storage;
use zonda_storage::backend::Memory;
use zonda_storage::layer::{FaultLayer, FaultPlan, InjectedFault, Watched};

use super::*;
use crate::File;

#[test]
fn space_given_back_serves_after_the_next_commit_but_one() {
    let mut space = Space::new(48);
    let a = space.alloc(100).unwrap();
    assert_eq!((a, space.end()), (FileAddr(48), 148));
    space.free(a, 100);
    for expected in [152, 256] {
        assert_eq!(space.alloc(100).unwrap(), FileAddr(expected));
        space.committed();
    }
    assert_eq!(space.alloc(60).unwrap(), FileAddr(48));
    assert_eq!(space.alloc(40).unwrap(), FileAddr(112));
    assert_eq!(space.alloc(40).unwrap(), FileAddr(360));
}

#[test]
fn what_readers_may_look_for_waits_until_enough_came_after_it() {
    let mut space = Space::new(0);
    space.wait(250);
    let mut end = 0;
    for commits in 0.. {
        let at = space.alloc(96).unwrap();
        if at.0 < end {
            // Three others have 288 bytes, and two 192.
            assert_eq!((commits, at), (4, FileAddr(0)));
            break;
        }
        end = space.end();
        space.free(at, 96);
        space.committed();
    }
    // So many of 1000 runs wait in a file of so many bytes: half of it, all, a sixteenth.
    for (len, run, waiting) in [(10_000, 96, 553), (8 << 20, 8192, 1000), (4 << 30, 1 << 20, 319)] {
        let mut space = Space::new(len);
        space.wait(250);
        let taken: Vec<_> = (0..1000).map(|_| space.alloc(run).unwrap()).collect();
        for at in &taken {
            space.free(*at, run);
            space.committed();
        }
        let end = space.end();
        let again = (0..).take_while(|_| space.alloc(run).unwrap().0 < end).count();
        assert_eq!(1000 - again, waiting, "{len}");
    }
}

#[test]
fn what_definitions_gave_back_waits_for_a_sixteenth() {
    let mut space = Space::new(16_000);
    space.wait(4 << 20);
    let mut end = 0;
    for commits in 0.. {
        let at = space.alloc(400).unwrap();
        if at.0 < end {
            // A sixteenth of 16,000 bytes and some more are three times 400.
            assert_eq!((commits, at), (4, FileAddr(16_000)));
            break;
        }
        end = space.end();
        space.free_definitions(at, 400);
        space.committed();
    }
}

#[test]
fn the_end_is_cut_to_what_is_in_use() {
    let mut space = Space::new(48);
    let [a, b, c] = [100, 60, 30].map(|len| space.alloc(len).unwrap());
    space.free_definitions(c, 30);
    space.free_definitions(a, 100);
    space.release_definitions();
    space.cut_end();
    assert_eq!((space.end(), space.free_bytes()), (246, 0), "not before the next commit");
    space.committed();
    space.release_definitions();
    assert_eq!(space.free_bytes(), 104 + 32);
    space.take_lowest(true);
    assert_eq!(space.alloc(20).unwrap(), a, "lowest, not where it fits best");
    space.cut_end();
    assert_eq!(space.end(), b.0 + 64);
    assert_eq!(space.free_bytes(), 80);
}

#[test]
fn what_is_found_free_is_not_what_readers_look_for() {
    let mut space = Space::new(1000);
    space.wait(4 << 20);
    space.free(FileAddr(200), 96);
    space.free_definitions(FileAddr(400), 80);
    space.untake(FileAddr(600), 40);
    space.found_free(104, 696);
    assert_eq!(space.free_bytes(), 696 - 96 - 80);
    for want in [104, 296, 480] {
        assert_eq!(space.alloc(90).unwrap(), FileAddr(want));
    }
    space.found_free(992, 100);
    assert_eq!(space.free_up_to(1000), Some(992), "nothing is behind the end");
}

#[test]
fn what_must_be_in_one_sector_is() {
    let mut space = Space::new(500);
    for len in [300, 200, 12, 512, 100, 412, 8] {
        let FileAddr(at) = space.alloc_in_sector(len).unwrap();
        assert_eq!(at / SECTOR, (at + len - 1) / SECTOR, "{at} {len}");
    }
    // The gaps were used.
    assert!(space.end() <= 500 + 4 * SECTOR, "{}", space.end());
}

#[test]
fn what_is_long_enough_is_aligned() {
    let mut space = Space::new(100);
    space.align(64, 4096);
    assert_eq!(space.alloc(64).unwrap(), FileAddr(4096));
    assert_eq!(space.alloc(63).unwrap(), FileAddr(104), "shorter, and before it");
    assert_eq!(space.alloc(5000).unwrap(), FileAddr(8192));
    assert_eq!(space.alloc(100).unwrap(), FileAddr(16384));
}

#[test]
fn the_end_is_where_a_page_ends() {
    let mut space = Space::new(100);
    space.alloc(10).unwrap();
    space.round_end(4096).unwrap();
    assert_eq!(space.end(), 4096);
    assert_eq!(space.alloc(3000).unwrap(), FileAddr(120), "what was left of the page serves");
    space.round_end(4096).unwrap();
    assert_eq!((space.alloc(2000).unwrap(), space.end()), (FileAddr(4096), 6096));
    assert!(Space::new(i64::MAX as u64 - 7).round_end(4096).is_err());
}

#[test]
fn space_that_was_not_needed_serves_at_once() {
    let mut space = Space::new(8);
    let [a, b] = [space.alloc(80).unwrap(), space.alloc(80).unwrap()];
    space.untake(FileAddr(a.0 + 32), 48);
    assert_eq!(space.alloc(40).unwrap(), FileAddr(40));
    space.untake(FileAddr(b.0 + 16), 64);
    assert_eq!(space.end(), b.0 + 16);
    assert_eq!(space.alloc(80).unwrap(), FileAddr(b.0 + 16));
}

#[test]
fn what_could_not_be_written_goes_with_the_next() {
    let memory: Arc<dyn Storage> = Arc::new(Memory::from_slice(&[0; 16]));
    let fault =
        FaultPlan { watched: Watched::Write, nth: 1, onwards: false, kind: InjectedFault::Eio };
    let storage = Arc::new(FaultLayer::new(Arc::clone(&memory), fault));
    let file = File::bare(storage, crate::Sizes::EIGHT, crate::ReadLimits::default());
    let mut space = Space::new(16);
    let mut fresh = NewBlocks::new(&mut space);
    fresh.put(vec![1; 8]).unwrap();
    assert!(fresh.write(&file).is_err());
    assert!(!space.is_written());
    let mut fresh = NewBlocks::new(&mut space);
    fresh.put(vec![2; 8]).unwrap();
    fresh.write(&file).unwrap();
    assert!(space.is_written());
    let mut bytes = [0; 16];
    assert_eq!((memory.read_at(16, &mut bytes).unwrap(), file.len()), (16, 32));
    assert_eq!(bytes, [1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2]);
}

#[test]
fn many_short_runs_do_not_make_it_slow() {
    let mut space = Space::new(0);
    let taken: Vec<FileAddr> = (0..40_000).map(|_| space.alloc(61).unwrap()).collect();
    // Between them gaps of 3 bytes, which then join with what is given back.
    for addr in taken.iter().step_by(2) {
        space.free(*addr, 61);
    }
    space.committed();
    space.committed();
    let end = space.end();
    let again: Vec<FileAddr> = (0..20_000).map(|_| space.alloc(61).unwrap()).collect();
    assert_eq!((again.first(), again.last()), (taken.first(), taken.get(39_998)));
    assert_eq!(space.end(), end);
    space.alloc(65).unwrap();
    assert!(space.end() > end);
}

#[test]
fn what_belongs_to_others_is_left_alone() {
    // Others packed their blocks: from 13 to 27 one that is no more, and the file ends at 53.
    let mut space = Space::new(53);
    space.free(FileAddr(13), 14);
    space.committed();
    space.committed();
    assert_eq!(space.alloc(11).unwrap(), FileAddr(16));
    for want in [56, 64, 72] {
        assert_eq!(space.alloc(3).unwrap(), FileAddr(want));
    }
    // Runs of odd length side by side make one that has room for more.
    space.untake(FileAddr(56), 3);
    space.untake(FileAddr(64), 3);
    assert_eq!((space.alloc(16).unwrap(), space.end()), (FileAddr(56), 75));
}

proptest! {
    #[test]
    fn nothing_in_use_is_taken_again(
        end in 0..300u64,
        steps in prop::collection::vec((0..6u8, 1..700u64, any::<prop::sample::Index>()), 1..200),
    ) {
        let mut space = Space::new(end);
        // What is in use or was by the last commit or the one before: (address, length, commits
        // since it was given back).
        let mut used: Vec<(u64, u64, Option<u8>)> = vec![(0, end, None)];
        for (step, len, which) in steps {
            match step {
                0..3 => {
                    let sector = step == 0 && len <= SECTOR;
                    let at = if sector { space.alloc_in_sector(len) } else { space.alloc(len) };
                    let FileAddr(at) = at.unwrap();
                    prop_assert!(at % 8 == 0 && at + len <= space.end());
                    prop_assert!(!sector || at / SECTOR == (at + len - 1) / SECTOR);
                    for &(other, n, _) in &used {
                        prop_assert!(n == 0 || at + len <= other || other + n <= at, "{at} {len}: {other} {n}");
                    }
                    used.push((at, len, None));
                }
                3 => {
                    let (at, len, given_back) = which.get(&used);
                    if given_back.is_none() && *at >= end {
                        space.free(FileAddr(*at), *len);
                        let at = *at;
                        used.iter_mut().filter(|run| run.0 == at).for_each(|run| run.2 = Some(0));
                    }
                }
                4 => {
                    let i = which.index(used.len());
                    let (at, n, given_back) = used[i];
                    if given_back.is_none() && at >= end && n > 0 {
                        let kept = len.min(n - 1);
                        space.untake(FileAddr(at + kept), n - kept);
                        used[i].1 = kept;
                    }
                }
                _ => {
                    space.committed();
                    used.iter_mut().for_each(|run| run.2 = run.2.map(|commits| commits + 1));
                    used.retain(|run| run.2 != Some(2));
                }
            }
        }
    }
}

#[test]
fn no_file_is_longer_than_files_can_be() {
    let mut space = Space::new(1000);
    assert!(space.alloc(u64::MAX).is_err());
    assert!(space.alloc(i64::MAX as u64).is_err());
    assert_eq!(space.alloc(8).unwrap(), FileAddr(1000));
}
