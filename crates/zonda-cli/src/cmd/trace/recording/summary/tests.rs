use super::*;
use zonda_trace::decode::{RecordedEvent, TraceNames};
use zonda_trace::{EventKind, NO_ITEM};

fn event(kind: EventKind, begin_ns: u64, took_ns: u64) -> RecordedEvent {
    RecordedEvent {
        kind: Some(kind),
        thread: 1,
        begin_ns,
        took_ns,
        file: 0,
        item: NO_ITEM,
        offset: 0,
        bytes: 0,
        code: 0,
        name: 0,
    }
}

fn summary(events: &[RecordedEvent]) -> ProcessSummary {
    let mut summary = ProcessSummary::new(&RecordedProcess::default());
    events.iter().for_each(|event| summary.add(event, &TraceNames::default()));
    summary.finish();
    summary
}

/// A call within another is no time of its own; other threads' work is beside the callers'.
#[test]
fn time_counts_once() {
    let elsewhere = RecordedEvent { thread: 2, ..event(EventKind::Filter, 0, 500) };
    let found = summary(&[
        event(EventKind::Call, 0, 100),
        event(EventKind::Convert, 210, 30),
        event(EventKind::Call, 200, 50),
        event(EventKind::Call, 260, 10),
        event(EventKind::WaitPool, 275, 5),
        elsewhere,
        event(EventKind::Call, 200, 100),
    ]);
    assert_eq!((found.called_ns, found.calls["a function"].count), (200, 4));
    assert_eq!((found.callers, found.threads, found.ns), (1, 2, 500));
    assert_eq!(found.caller_ns[&Stage::Convert], 30);
    assert_eq!(found.caller_ns[&Stage::Wait], 5);
    assert_eq!((found.caller_ns.get(&Stage::Filter), found.other_ns[&Stage::Filter]), (None, 500));
    assert_eq!(found.rest_ns(), 165);
}

/// Waits for ranks are a kind of their own, and no write-behind is promised for files of several ranks.
#[test]
fn files_of_several_ranks() {
    let names = TraceNames::default();
    let mut found = ProcessSummary::new(&RecordedProcess::default());
    found.add(&event(EventKind::WaitRanks, 210, 60), &names);
    for (name, file, begin_ns, bytes) in [
        ("nc_create_par", 5, 0, 0),
        ("nc_create", 6, 100, 0),
        ("nc_put_vara", 5, 200, 8),
        ("nc_put_vara", 6, 300, 24),
    ] {
        let call = event(EventKind::Call, begin_ns, 100);
        found.call(name, &RecordedEvent { file, bytes, item: 0, ..call }, &names);
    }
    found.finish();
    assert_eq!((found.put_ns, found.put_bytes, found.own_puts()), (200, 32, (100, 24)));
    assert_eq!((found.waits["wait: ranks"].ns, found.caller_ns[&Stage::Wait]), (60, 60));
    // No call contains it.
    assert!(found.waits_for_ranks.is_empty());
    assert_eq!(found.hidable_ns(1e30), 100);
}

/// A hint that did the same again is told once.
#[test]
fn hints_are_told_once() {
    let hint = RecordedEvent { offset: 8, bytes: 4, ..event(EventKind::Hint, 10, 0) };
    let refused = RecordedEvent { code: 22, ..hint };
    let found = summary(&[hint, refused, hint, event(EventKind::Exchange, 20, 5)]);
    let told: Vec<_> = found.hints.iter().map(|hint| (hint.given, hint.real, hint.code)).collect();
    assert_eq!(told, [(8, 4, 0), (8, 4, 22)]);
    assert_eq!(found.stages["exchange of runs"].count, 1);
}

/// A wait for ranks is of the call that contains it, and of the inner one where calls contain each other.
#[test]
fn waits_for_ranks_by_call() {
    let names = TraceNames::default();
    let mut found = ProcessSummary::new(&RecordedProcess::default());
    let mut wait = |begin_ns, thread| {
        found.add(&RecordedEvent { thread, ..event(EventKind::WaitRanks, begin_ns, 4) }, &names);
    };
    wait(10, 1);
    wait(20, 1);
    wait(30, 2);
    for (name, begin_ns, took_ns) in [("inner", 5, 30), ("outer", 0, 50), ("later", 60, 5)] {
        found.call(name, &event(EventKind::Call, begin_ns, took_ns), &names);
    }
    let waits: Vec<_> =
        found.waits_for_ranks.iter().map(|(n, s)| (&n[..], s.count, s.ns)).collect();
    assert_eq!(waits, [("inner", 2, 8)]);
}

/// Ranges of one call count each; what reaches the lowest layer is the disk's.
#[test]
fn ranges_and_layers() {
    let at = |kind, depth: u32, offset, bytes| RecordedEvent {
        item: 7 << 8 | depth,
        offset,
        bytes,
        ..event(kind, 10, 5)
    };
    let found = summary(&[
        at(EventKind::Open, 1, 0, 0),
        at(EventKind::Open, 0, 0, 0),
        at(EventKind::Write, 0, 0, 10),
        at(EventKind::Write, 1, 100, 50),
        at(EventKind::WriteMore, 1, 150, 20),
        at(EventKind::WriteMore, 1, 300, 5),
        at(EventKind::Sync, 1, 0, 0),
        // Of a call that is not there.
        at(EventKind::WriteMore, 1, 0, 5),
        RecordedEvent { code: 28, ..at(EventKind::Write, 1, 0, 999) },
    ]);
    let layers: Vec<&LayerSummary> = found.files[0].layers.values().collect();
    assert_eq!((layers[0].depth, layers[0].write.bytes), (0, 10));
    let write = &layers[1].write;
    assert_eq!((write.calls, write.ranges, write.bytes, write.errors), (2, 3, 75, 1));
    assert_eq!((write.first, write.end, write.sequential), (Some(100), Some(305), 1));
    assert_eq!((write.least, write.most), (5, 50));
    assert_eq!(write.sizes, [0, 0, 1, 0, 1, 1]);
    assert_eq!(found.other_ns[&Stage::Disk], 15);
    assert_eq!(found.charts.accesses.len(), 3);
}

/// What clients and servers say to each other is added up by kind of call and by client.
#[test]
fn clients_and_servers() {
    let mut found = ProcessSummary::new(&RecordedProcess::default());
    for (kind, name, begin_ns, bytes, item) in [
        (EventKind::ServerTell, "put", 0, 100, 0),
        (EventKind::ServerTell, "put", 10, 20, 0),
        (EventKind::ServerAsk, "shape", 20, 0, 0),
        (EventKind::ServerTake, "put", 30, 100, 7),
        (EventKind::ServerTake, "close", 40, 0, 8),
        (EventKind::ServerGather, "", 50, 0, 0),
        (EventKind::ServerQueue, "put", 60, 100, 7),
        (EventKind::ServerCall, "put", 70, 100, 7),
    ] {
        found.served(kind, name, &RecordedEvent { bytes, item, ..event(kind, begin_ns, 5) });
    }
    found.finish();
    let ServedSummary { told, asked, taken, taken_from, queued, gathered, carried_out } =
        &found.served;
    assert_eq!((told["put"].count, told["put"].bytes, asked["shape"].ns), (2, 120, 5));
    assert_eq!((taken["put"].bytes, taken["close"].count, taken_from[&7].bytes), (100, 1, 100));
    assert_eq!((queued.count, gathered.ns, carried_out["put"].ns), (1, 5, 5));
    assert_eq!(ServedSummary::whole(taken).count, 2);
    assert_eq!(found.waits["wait: I/O server"].count, 1);
    assert!(!found.charts.carried_out.is_empty() && !found.charts.gathered.is_empty());
}

/// Whatever a file says: no overflow, no endless loop.
#[test]
fn odd_events() {
    let all = |kind: &EventKind| RecordedEvent {
        offset: u64::MAX,
        bytes: u64::MAX,
        file: u32::MAX,
        item: u32::MAX,
        name: u16::MAX,
        code: i32::MIN,
        ..event(*kind, u64::MAX, u64::MAX)
    };
    let mut events: Vec<RecordedEvent> = EventKind::ALL.iter().map(all).collect();
    events.extend(events.clone());
    events.extend(EventKind::ALL.iter().map(|kind| RecordedEvent {
        code: 0,
        begin_ns: 0,
        ..all(kind)
    }));
    events.push(RecordedEvent { kind: None, ..event(EventKind::Call, 0, 0) });
    let found = summary(&events);
    assert_eq!(found.events, events.len() as u64);
    assert!(found.hidable_ns(1e-300) <= found.put_ns);
}
