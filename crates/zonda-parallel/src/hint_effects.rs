//! What became of hints, for the trace.

use std::path::Path;

use zonda_format::Reserve;
use zonda_storage::{StripedFile, Striping};
use zonda_trace::{Args, EventKind};

use crate::exchange::ExchangeRules;
use crate::file::ParallelFile;
use crate::hints::{Gathering, Hints};

/// How the file system has laid out a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileLayout {
    /// Over which stripes it is spread, where the file system says so: the same on all ranks.
    pub striping: Option<Striping>,
    /// What became of a wish for another layout, on rank 0 of a file that was created.
    pub made: Option<StripedFile>,
}

/// What a hint did: words that begin with its key, the number that was given, the one in effect (0 where there is none), and an error of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Effect {
    text: &'static str,
    asked: u64,
    real: u64,
    errno: i32,
}

fn effect(text: &'static str, asked: Option<u64>, real: u64) -> Option<Effect> {
    asked.map(|asked| Effect { text, asked, real, errno: 0 })
}

/// What hints do to where short runs of puts are written.
fn of_owners(hints: &Hints, rules: &ExchangeRules, n_ranks: usize) -> Vec<Effect> {
    let way = hints.cb_write.map(|_| 0);
    let (owners, way_text) = if n_ranks == 1 {
        let none = [
            "cb_nodes: no effect, there is one rank",
            "cb_buffer_size: no effect, there is one rank",
        ];
        (none, "romio_cb_write: no effect, there is one rank")
    } else if rules.when == Gathering::Disable {
        let none = [
            "cb_nodes: no effect, nobody owns stripes",
            "cb_buffer_size: no effect, nobody owns stripes",
        ];
        (none, "romio_cb_write: no put goes to owners of stripes")
    } else {
        let text = if rules.when == Gathering::Enable {
            "romio_cb_write: each put of several runs goes to owners of stripes"
        } else {
            "romio_cb_write: puts of many short runs go to owners of stripes"
        };
        (
            [
                "cb_nodes: ranks that own stripes",
                "cb_buffer_size: bytes that a rank hands on at once",
            ],
            text,
        )
    };
    let is_used = n_ranks > 1 && rules.when != Gathering::Disable;
    let real = |number: u64| if is_used { number } else { 0 };
    [
        effect(owners[0], hints.cb_nodes, real(rules.n_owners)),
        effect(owners[1], hints.cb_buffer_size, real(rules.round_bytes as u64)),
        effect(way_text, way, 0),
        effect("romio_cb_read: no effect, gets send nothing", hints.cb_read.map(|_| 0), 0),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What hints do to stripes of the file and of owners.
fn of_stripes(hints: &Hints, rules: &ExchangeRules, layout: &FileLayout) -> Vec<Effect> {
    let errno = match layout.made {
        Some(StripedFile::MadePlain(errno) | StripedFile::NotMade(errno)) => errno,
        _ => 0,
    };
    let (unit_text, factor_text) = match (layout.made, layout.striping) {
        (Some(StripedFile::Made), _) => (
            "striping_unit: bytes of a stripe of the new file, and of owners",
            "striping_factor: servers of the new file",
        ),
        (Some(StripedFile::MadePlain(_) | StripedFile::NotMade(_)), _) => (
            "striping_unit: refused by the file system",
            "striping_factor: refused by the file system",
        ),
        (Some(StripedFile::Existed), _) | (_, Some(_)) => (
            "striping_unit: no effect, the file is there and keeps its stripes",
            "striping_factor: no effect, the file is there and keeps its stripes",
        ),
        _ => (
            "striping_unit: bytes of a stripe of owners",
            "striping_factor: no effect, the file is not on Lustre",
        ),
    };
    let servers = layout.striping.map_or(0, |striping| striping.n_servers);
    let found = layout.striping.map(|_| 0);
    let told = [
        effect(unit_text, hints.striping_unit, rules.stripe_bytes),
        effect(factor_text, hints.striping_factor, servers),
        effect("(layout: bytes of a stripe)", found, rules.stripe_bytes),
        effect("(layout: servers)", found, servers),
    ];
    told.into_iter().flatten().map(|effect| Effect { errno, ..effect }).collect()
}

/// What hints do to where the data of a file begin, when its definitions end with `asked` of the program.
fn of_alignment(hints: &Hints, is_classic: bool, asked: Reserve, room: Reserve) -> Vec<Effect> {
    let (is_used, texts) = match room {
        _ if !is_classic => (
            false,
            [
                "nc_header_align_size: no effect, only classic files are aligned",
                "nc_var_align_size: no effect, only classic files are aligned",
                "nc_record_align_size: no effect, only classic files are aligned",
            ],
        ),
        Reserve::Explicit { .. } if asked == Reserve::Default => (
            true,
            [
                "nc_header_align_size: data begin at a multiple",
                "nc_var_align_size: data begin at a multiple",
                "nc_record_align_size: records begin at a multiple",
            ],
        ),
        _ => (
            false,
            [
                "nc_header_align_size: no effect, nc__enddef says it",
                "nc_var_align_size: no effect, nc__enddef says it",
                "nc_record_align_size: no effect, nc__enddef says it",
            ],
        ),
    };
    let real = match room {
        Reserve::Explicit { v_align, r_align, .. } if is_used => [v_align, v_align, r_align],
        _ => [0; 3],
    };
    let given = [hints.header_align, hints.var_align, hints.record_align];
    let all = texts.into_iter().zip(given).zip(real);
    all.filter_map(|((text, given), real)| effect(text, given, real)).collect()
}

impl ParallelFile {
    /// Takes hints, and how the file lies on its file system, which are the same on all ranks but for what became of a wish.
    pub fn take_hints(&mut self, hints: Hints, layout: FileLayout) {
        (self.hints, self.striping) = (hints, layout.striping);
        if !zonda_trace::on() {
            return;
        }
        let (rules, n_ranks) = (self.exchange_rules(), self.team.size());
        self.tell(&of_owners(&hints, &rules, n_ranks));
        self.tell(&of_stripes(&hints, &rules, &layout));
    }

    /// Tells the trace what hints did when definitions ended.
    pub(crate) fn tell_alignment(&self, asked: Reserve, room: Reserve) {
        if zonda_trace::on() {
            self.tell(&of_alignment(&self.hints, self.access.is_of_file(), asked, room));
        }
    }

    fn tell(&self, effects: &[Effect]) {
        let file = zonda_trace::file(Path::new(&self.name));
        for &Effect { text, asked, real, errno } in effects {
            zonda_trace::instant(EventKind::Hint, || Args {
                file,
                offset: asked,
                bytes: real,
                code: errno,
                name: text,
                ..Args::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(effects: &[Effect]) -> Vec<(&'static str, u64, u64)> {
        effects.iter().map(|one| (one.text, one.asked, one.real)).collect()
    }

    const LUSTRE: Striping = Striping { unit_bytes: 4 << 20, n_servers: 3 };

    #[test]
    fn owners_are_told_as_they_are() {
        let hints = Hints { cb_nodes: Some(9), cb_buffer_size: Some(1 << 16), ..Hints::default() };
        let of = |hints: &Hints, n| shown(&of_owners(hints, &ExchangeRules::of(hints, None, n), n));
        let expected = [
            ("cb_nodes: ranks that own stripes", 9, 4),
            ("cb_buffer_size: bytes that a rank hands on at once", 1 << 16, 1 << 16),
        ];
        assert_eq!(of(&hints, 4), expected);
        assert!(of(&hints, 1).iter().all(|one| one.0.contains("there is one rank") && one.2 == 0));
        for (way, text) in [
            (Gathering::Enable, "each put of several runs"),
            (Gathering::Disable, "no put goes"),
            (Gathering::Automatic, "many short runs"),
        ] {
            let hints = Hints { cb_write: Some(way), cb_read: Some(way), ..hints };
            let found = of(&hints, 4);
            assert_eq!(found.len(), 4);
            assert!(found[2].0.contains(text), "{found:?}");
            assert!(found[3].0.starts_with("romio_cb_read: no effect"), "{found:?}");
            assert_eq!(found[0].2 == 0, way == Gathering::Disable, "{found:?}");
        }
        assert_eq!(of(&Hints::default(), 4), []);
    }

    #[test]
    fn stripes_are_told_as_they_are() {
        let hints =
            Hints { striping_unit: Some(1 << 16), striping_factor: Some(8), ..Hints::default() };
        let of = |layout: FileLayout| {
            of_stripes(&hints, &ExchangeRules::of(&hints, layout.striping, 4), &layout)
        };
        let made = |made| FileLayout { striping: Some(LUSTRE), made: Some(made) };
        let plain = shown(&of(FileLayout::default()));
        assert_eq!(plain[0], ("striping_unit: bytes of a stripe of owners", 1 << 16, 1 << 16));
        assert_eq!(plain[1], ("striping_factor: no effect, the file is not on Lustre", 8, 0));
        let found = of(made(StripedFile::Made));
        assert_eq!(shown(&found)[1], ("striping_factor: servers of the new file", 8, 3));
        assert_eq!(shown(&found)[3], ("(layout: servers)", 0, 3));
        let refused = of(made(StripedFile::MadePlain(22)));
        assert!(refused[0].text.contains("refused") && refused[0].errno == 22, "{refused:?}");
        let there = of(FileLayout { striping: Some(LUSTRE), made: None });
        assert!(there[0].text.contains("keeps its stripes"), "{there:?}");
        assert_eq!(there[0].real, 4 << 20);
    }

    #[test]
    fn alignment_is_told_where_definitions_end() {
        let hints = Hints { var_align: Some(512), record_align: Some(1000), ..Hints::default() };
        let of =
            |is_classic, asked| shown(&of_alignment(&hints, is_classic, asked, hints.room(asked)));
        let expected = [
            ("nc_var_align_size: data begin at a multiple", 512, 512),
            ("nc_record_align_size: records begin at a multiple", 1000, 1000),
        ];
        assert_eq!(of(true, Reserve::Default), expected);
        assert!(
            of(false, Reserve::Default)
                .iter()
                .all(|one| one.0.contains("only classic") && one.2 == 0)
        );
        let explicit = Reserve::Explicit { h_minfree: 1, v_align: 2, v_minfree: 3, r_align: 4 };
        assert!(of(true, explicit).iter().all(|one| one.0.contains("nc__enddef") && one.2 == 0));
    }
}
