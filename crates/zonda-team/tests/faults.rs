//! What goes wrong on one rank ends in an error on the others, and nobody waits for ever.

mod common;

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use common::{STEP, ends};
use zonda_team::threads::{self, End, Fault, Finished, Moment, Options, Report, Threads, Trouble};
use zonda_team::{Message, Reduction, Step, Team, TeamError};

type Ended = Result<(), TeamError>;

/// One step of each kind, and two meetings.
fn walk(team: &dyn Team) -> Ended {
    let next = (team.rank() + 1) % team.size();
    team.broadcast(STEP, 1, &mut vec![1, 2])?;
    team.reduce(STEP, Reduction::Sum, &mut [1, 2])?;
    team.scan(STEP, &mut [3])?;
    team.gather(STEP, 0, b"abc")?;
    team.exchange(STEP, vec![Message { rank: next, bytes: vec![1] }])?;
    team.meet(STEP)?;
    team.meet(STEP)
}

/// Steps of [`walk`] but the last, from which some may come back although another rank does not.
const N_STEPS: u64 = 6;

/// After a step that failed, all others answer that the team is broken.
fn check_broken(team: &dyn Team) {
    let step = Step { call: "nc_close", file: "y.nc" };
    let broken = TeamError::Broken { call: "nc_close".into(), file: "y.nc".into() };
    assert_eq!(team.broadcast(step, 0, &mut vec![]), Err(broken.clone()));
    assert_eq!(team.reduce(step, Reduction::Or, &mut []), Err(broken.clone()));
    assert_eq!(team.scan(step, &mut []), Err(broken.clone()));
    assert_eq!(team.gather(step, 0, b""), Err(broken.clone()));
    assert_eq!(team.exchange(step, vec![]), Err(broken.clone()));
    assert_eq!(team.meet(step), Err(broken));
}

fn walk_and_look(team: &Threads) -> Ended {
    walk(team).inspect_err(|_| check_broken(team))
}

fn fault(rank: usize, before: Moment, what: Trouble) -> Options {
    Options { faults: vec![Fault { rank, before, what }], ..Options::default() }
}

fn failed_with(end: &End<Ended>, text: &str) -> bool {
    matches!(end, End::Returned(Err(TeamError::Failed { call, file, what }))
        if call == STEP.call && file == STEP.file && what.contains(text))
}

fn timed_out(end: &End<Ended>) -> bool {
    matches!(end, End::Returned(Err(TeamError::TimedOut { call, file, .. }))
        if call == STEP.call && file == STEP.file)
}

/// Each rank but one ends so.
#[track_caller]
fn others(finished: &[Finished<Ended>], rank: usize, is_so: impl Fn(&End<Ended>) -> bool) {
    for (other, one) in finished.iter().enumerate() {
        assert!(other == rank || is_so(&one.end), "rank {other}, when {rank} did: {one:?}");
    }
}

#[test]
fn deaths_and_errors_at_every_step_are_timeouts_of_the_others() {
    ends(|| {
        for rank in 0..5 {
            for step in 0..N_STEPS {
                for what in [Trouble::Death, Trouble::Error] {
                    let timeout = Some(Duration::from_millis(10));
                    let options = Options { timeout, ..fault(rank, Moment::Step(step), what) };
                    let finished = threads::run(5, &options, walk_and_look);
                    others(&finished, rank, timed_out);
                    let end = &finished[rank].end;
                    // On a busy machine it may have waited too long before.
                    let as_expected = match what {
                        Trouble::Death => *end == End::Died,
                        _ => failed_with(end, "a fault was injected before Step"),
                    };
                    assert!(as_expected || step > 0 && timed_out(end), "{what:?}: {end:?}");
                }
            }
        }
    });
}

#[test]
fn deaths_and_errors_in_the_middle_of_every_step_end_all() {
    ends(|| {
        for rank in 0..3 {
            let finished = threads::run(3, &Options::default(), |team| {
                let walked = walk(team);
                (walked, team.traffic().total().messages)
            });
            let n_messages = finished[rank].traffic.total().messages;
            // Those of the last meeting may be too late for all.
            for message in 0..n_messages - 2 {
                for what in [Trouble::Death, Trouble::Error] {
                    let timeout = Some(Duration::from_millis(10));
                    let moment = Moment::Message(message);
                    let options = Options { timeout, ..fault(rank, moment, what) };
                    let finished = threads::run(3, &options, walk_and_look);
                    others(&finished, rank, timed_out);
                    assert!(!matches!(
                        finished[rank].end,
                        End::Returned(Ok(())) | End::Panicked(_)
                    ));
                }
            }
        }
    });
}

#[test]
fn without_a_timeout_errors_reach_the_others_when_their_rank_leaves() {
    ends(|| {
        for step in 0..N_STEPS {
            let options = fault(2, Moment::Step(step), Trouble::Error);
            let finished = threads::run(6, &options, walk_and_look);
            assert!(failed_with(&finished[2].end, "a fault was injected before Step"));
            others(&finished, 2, |end| failed_with(end, "left after an error"));
        }
    });
}

#[test]
fn delays_change_nothing() {
    ends(|| {
        let late =
            |rank, before| Fault { rank, before, what: Trouble::Delay(Duration::from_millis(3)) };
        let faults = (0..7).map(|step| late(step as usize % 4, Moment::Step(step)));
        let in_steps = (0..12).map(|message| late(message as usize % 4, Moment::Message(message)));
        let options = Options { faults: faults.chain(in_steps).collect(), ..Options::default() };
        for one in threads::run(4, &options, walk_and_look) {
            assert_eq!(one.end, End::Returned(Ok(())));
        }
    });
}

#[test]
fn a_panic_of_a_rank_reaches_the_others() {
    ends(|| {
        for n in [2, 5, 64] {
            let body = |team: &Threads| {
                team.meet(STEP)?;
                assert_ne!(team.rank(), 1, "on purpose");
                walk_and_look(team)
            };
            for timeout in [None, Some(Duration::from_secs(100))] {
                let finished = threads::run(n, &Options { timeout, ..Options::default() }, body);
                let panicked = |end: &End<Ended>| matches!(end, End::Panicked(text) if text.contains("on purpose"));
                assert!(panicked(&finished[1].end));
                if timeout.is_none() {
                    others(&finished, 1, |end| failed_with(end, "rank "));
                }
                let told = finished.iter().any(|one| failed_with(&one.end, "rank 1 panicked"));
                assert!(told);
                if n > 2 {
                    // Who waits for ranks that know already waits for its own time.
                    break;
                }
            }
        }
    });
}

#[test]
fn a_rank_that_ends_early_reaches_the_others() {
    ends(|| {
        let body = |team: &Threads| match team.rank() {
            3 => Ok(()),
            _ => walk_and_look(team),
        };
        let finished = threads::run(4, &Options::default(), body);
        others(&finished, 3, |end| failed_with(end, "rank "));
        assert!(
            finished.iter().any(|one| failed_with(&one.end, "rank 3 has ended without this step"))
        );
    });
}

/// A step in which a rank dies. Reports of other steps may be of a rank that is only late.
const LAST: Step<'static> = Step { call: "nc_close", file: "y.nc" };

/// What is reported of the [`LAST`] step, in which rank `dead` dies: the first report of each rank that satisfies, after which it waits no
/// more.
fn reports(
    n: usize,
    dead: Fault,
    is_enough: fn(&Report) -> bool,
) -> (Vec<Finished<Ended>>, Vec<Report>) {
    ends(move || {
        let (tell, told) = mpsc::channel();
        let reporter = move |report: &Report| {
            if report.call != LAST.call || !is_enough(report) {
                return ControlFlow::Continue(());
            }
            tell.send(report.clone()).unwrap();
            ControlFlow::Break(())
        };
        let options = Options {
            reporter: Arc::new(reporter),
            report_every: Duration::from_millis(2),
            faults: vec![dead],
            ..Options::default()
        };
        let finished = threads::run(n, &options, |team| {
            team.meet(STEP)?;
            team.meet(LAST)
        });
        drop(options);
        (finished, told.into_iter().collect())
    })
}

#[test]
fn who_waits_for_a_dead_rank_is_reported() {
    let dead = Fault { rank: 2, before: Moment::Step(1), what: Trouble::Death };
    let (finished, reports) = reports(4, dead, |report| report.absent == [2]);
    assert_eq!(finished[2].end, End::Died);
    assert!(!reports.is_empty());
    for report in &reports {
        assert!(report.rank != 2 && (report.size, report.file.as_str()) == (4, LAST.file));
        let text = report.to_string();
        assert!(text.ends_with("; not yet in this call: 2"), "{text}");
    }
    for rank in [0, 1, 3] {
        let is_reported = reports.iter().any(|report| report.rank == rank);
        // The others wait for one that waited, and hear that it left.
        match finished[rank].end.clone() {
            End::Returned(Err(TeamError::TimedOut { call, .. })) => {
                assert!(is_reported && call == LAST.call);
            }
            End::Returned(Err(TeamError::Failed { call, what, .. })) => {
                assert!(!is_reported && call == LAST.call);
                assert!(what.contains("left after an error"), "{what}");
            }
            other => panic!("rank {rank}: {other:?}"),
        }
    }
}

#[test]
fn a_rank_that_died_in_a_step_is_reported_as_one_that_came() {
    // Each of the two sends one message in each meeting.
    let dead = Fault { rank: 1, before: Moment::Message(1), what: Trouble::Death };
    let (finished, reports) = reports(2, dead, |report| report.absent.is_empty());
    assert_eq!(finished[1].end, End::Died);
    assert!(matches!(finished[0].end, End::Returned(Err(TeamError::TimedOut { .. }))));
    assert_eq!(reports.len(), 1);
    let text = reports[0].to_string();
    assert!(
        text.contains("rank 0 of 2 has waited") && text.contains("for rank 1; all ranks"),
        "{text}"
    );
}

#[test]
fn ranks_in_different_steps_are_told_of_each_other() {
    ends(|| {
        let body = |team: &Threads| match team.rank() {
            1 => team.gather(Step { call: "nc_close", ..STEP }, 0, b"").map(|_| ()),
            _ => team.meet(STEP),
        };
        // Who came first may send what it has to send and go.
        let finished = threads::run(3, &Options::default(), body).into_iter();
        let ends = finished.filter_map(|one| one.returned().unwrap().err());
        let texts: Vec<String> = ends.map(|error| error.to_string()).collect();
        // Whoever came second is told.
        let told = texts.iter().filter(|text| text.contains("all ranks take the same steps"));
        for text in told.clone() {
            assert!(text.contains("gather to rank 0") && text.contains("reduce by Max"), "{text}");
        }
        assert!(told.count() > 0, "{texts:?}");
    });
}

#[test]
fn different_roots_reductions_and_lengths_are_errors() {
    type Body = fn(&Threads) -> Ended;
    let bodies: [(Body, &str); 4] = [
        (|team| team.broadcast(STEP, team.rank(), &mut vec![]), "same steps"),
        (|team| team.gather(STEP, team.rank(), &[]).map(|_| ()), "same steps"),
        (
            |team| {
                let how = if team.rank() == 0 { Reduction::Min } else { Reduction::Max };
                team.reduce(STEP, how, &mut [1])
            },
            "same steps",
        ),
        (|team| team.scan(STEP, &mut vec![0; team.rank()]), "equally long"),
    ];
    for (body, text) in bodies {
        let finished = ends(move || threads::run(2, &Options::default(), body));
        assert!(finished.iter().any(|one| failed_with(&one.end, text)), "{finished:?}");
    }
}

#[test]
fn ranks_that_there_are_not_are_refused() {
    ends(|| {
        let body = |team: &Threads| match team.rank() % 3 {
            0 => team.broadcast(STEP, 3, &mut vec![]),
            1 => team.gather(STEP, usize::MAX, b"").map(|_| ()),
            _ => team.exchange(STEP, vec![Message { rank: 3, bytes: vec![] }]).map(|_| ()),
        };
        let alone = |kind: usize| {
            move |team: &Threads| -> Ended {
                match kind {
                    0 => team.broadcast(STEP, 1, &mut vec![]),
                    1 => team.gather(STEP, 7, b"").map(|_| ()),
                    _ => team.exchange(STEP, vec![Message { rank: 1, bytes: vec![] }]).map(|_| ()),
                }
            }
        };
        for kind in 0..3 {
            let finished = threads::run(1, &Options::default(), alone(kind));
            assert!(failed_with(&finished[0].end, "is to be a rank from 0 to 0, and is"));
        }
        let finished = threads::run(3, &Options::default(), body);
        assert!(finished.iter().all(|one| matches!(one.end, End::Returned(Err(_)))));
    });
}

#[test]
fn a_dead_rank_stays_dead() {
    /// Something of the library's that closes a file when it is dropped.
    struct Closes<'a>(&'a Threads, mpsc::Sender<Ended>);

    impl Drop for Closes<'_> {
        fn drop(&mut self) {
            self.1.send(self.0.meet(STEP)).unwrap();
        }
    }

    ends(|| {
        let (tell, told) = mpsc::channel();
        let options = fault(0, Moment::Step(0), Trouble::Death);
        let finished = threads::run(1, &options, |team| {
            let first = catch_unwind(AssertUnwindSafe(|| {
                let closes = Closes(team, tell.clone());
                let _ = closes.0.meet(STEP);
            }));
            assert!(first.is_err());
            let second = catch_unwind(AssertUnwindSafe(|| team.meet(STEP)));
            assert!(second.is_err());
            true
        });
        assert_eq!(finished[0].end, End::Died);
        assert!(matches!(told.try_recv(), Ok(Err(TeamError::Broken { .. }))));
    });
}

#[test]
fn teams_have_ranks_and_not_too_many() {
    for n in [0, 1025] {
        let ran = catch_unwind(|| threads::run(n, &Options::default(), |_| ()));
        assert!(ran.is_err(), "{n}");
    }
    let told = catch_unwind(|| threads::all(2, |team| assert_eq!(team.rank(), 0, "on purpose")));
    let text = told.unwrap_err().downcast_ref::<String>().cloned().unwrap();
    assert!(text.starts_with("rank 1 of 2 panicked: ") && text.contains("on purpose"), "{text}");
}
