use super::*;

fn extent(at: u64, len: u64, owner: u64) -> UsedExtent {
    UsedExtent { at, len, kind: ExtentKind::Chunks, owner: Some(FileAddr(owner)) }
}

#[test]
fn what_touches_is_put_together_and_gaps_are_the_rest() {
    let mut usage = FileUsage { file_bytes: 100, ..FileUsage::default() };
    for (at, len, owner) in [(40, 10, 1), (10, 10, 1), (20, 10, 1), (30, 10, 2), (0, 0, 1)] {
        usage.claim(extent(at, len, owner));
    }
    usage.settle();
    assert_eq!(usage.extents, [extent(10, 20, 1), extent(30, 10, 2), extent(40, 10, 1)]);
    assert_eq!(usage.gaps().collect::<Vec<_>>(), [(0, 10), (50, 50)]);
    assert_eq!(usage.unaccounted_bytes(), 60);
    assert_eq!(usage.objects[&FileAddr(1)].data_bytes, 30);
    usage.find_overlaps();
    assert!(usage.overlaps.is_empty());
}

#[test]
fn overlaps_are_found_under_long_extents() {
    let mut usage = FileUsage { file_bytes: 100, ..FileUsage::default() };
    for (at, len, owner) in [(0, 50, 1), (10, 10, 2), (30, 30, 3), (60, 10, 4)] {
        usage.claim(extent(at, len, owner));
    }
    usage.settle();
    usage.find_overlaps();
    let pairs: Vec<_> = usage.overlaps.iter().map(|(a, b)| (a.at, b.at)).collect();
    assert_eq!(pairs, [(0, 10), (0, 30)]);
    // What is beyond the end of the file leaves no gap and no wrap.
    usage.claim(extent(u64::MAX - 5, 100, 5));
    usage.settle();
    assert_eq!(usage.unaccounted_bytes(), 30);
}
