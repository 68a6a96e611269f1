//! The grammar: what it reads, what it gives back, and each way to refuse.

use std::process::Command;
use std::sync::Arc;
use zonda_storage::backend::Memory;
use zonda_storage::{Create, Spec, Stack, Storage, StorageError, StorageOptions, SyncLevel, open};
use zonda_testkit::TempFolder;

fn runs_as(text: &str) -> String {
    Spec::parse(text).unwrap_or_else(|why| panic!("{text}: {why}")).to_string()
}

#[test]
fn what_is_read_is_given_back() {
    for (text, runs) in [
        ("file", "file"),
        ("memory", "memory"),
        ("cache", "cache,file"),
        ("cache:29:141", "cache:29:141,file"),
        ("cache:29:141,event,file", "cache:29:141,event,file"),
        (" cache:8:4 , event ", "cache:8:4,event,file"),
        (
            "event,cache:256k:16,event:/var/trace.txt,memory",
            "event,cache:64:16,event:/var/trace.txt,memory",
        ),
        ("cache:1M:4", "cache:256:4,file"),
        ("cache:1G:4", "cache:262144:4,file"),
        // As many as fit.
        ("cache:1G", "cache:262144:64,file"),
        ("passthrough,count", "passthrough,count,file"),
        ("fault:write:3", "fault:write:3:eio,file"),
        ("fault:any:3+:enospc", "fault:any:3+:enospc,file"),
        ("fault:write:1:short,fault:log", "fault:write:1:short,fault:log,file"),
        ("throttle:100M:5ms", "throttle:100M:5ms,file"),
        ("throttle:1500:1500us", "throttle:1500:1500us,file"),
        ("throttle:60M:shared", "throttle:60M:shared,file"),
        ("throttle:60M:0s:shared", "throttle:60M:shared,file"),
        ("throttle:60M:5ms:shared", "throttle:60M:5ms:shared,file"),
        ("throttle:2G:2000ms,file", "throttle:2G:2s,file"),
    ] {
        assert_eq!(runs_as(text), runs, "{text}");
        assert_eq!(runs_as(runs), runs, "{text} twice");
        let built = Spec::parse(runs).unwrap();
        let names_trace_file = runs.contains("/var");
        if !names_trace_file {
            let stack = built.build_in_memory().unwrap();
            let bottom = |s: &str| s.rsplit_once(',').map_or(String::new(), |x| x.0.to_owned());
            assert_eq!(bottom(&Stack(&*stack).to_string()), bottom(runs), "{text} built");
        }
    }
}

#[test]
fn the_forms_of_1995() {
    for (text, runs) in [
        ("bufa:336:2", "bufa:336:2,file"),
        ("cache:29:141,eie.sds:4096:4:1", "cache:29:141,eie:4096:4:1,file"),
        ("eie:4096:4:1:2", "eie:4096:4:1:2,file"),
        ("cachea:16:8", "cachea:16:8,file"),
        ("cachea.sds:16:8:3:1,system", "cachea:16:8:3:1,file"),
        ("cachea:16:8:3:0", "cachea:16:8:3,file"),
        ("cachea:16:8|event|syscall", "cachea:16:8,event,file"),
        ("cache.sds:8:4", "cache:8:4,file"),
        ("cache.mr:8", "cache:8:128,file"),
        ("bufa", "bufa:64:2,file"),
        ("cachea", "cachea:64:4,file"),
        ("event.summary,bufa.sds:8", "event,bufa:8:2,file"),
        ("global,cache:8:4", "cache:8:4,file"),
        ("global.privpos:4:2", "file"),
        ("set.skip.1:100", "file"),
        ("mr.scr.novfl:1:2:3,syscall.aio", "file"),
        ("direct,mmap,sds", "direct,mmap,file"),
    ] {
        assert_eq!(runs_as(text), runs, "{text}");
    }
    let spec = Spec::parse("bufa:336:2,sds:9,system").unwrap();
    let said: Vec<String> = spec.replaced().iter().map(ToString::to_string).collect();
    assert_eq!(said, ["`sds:9` is left out", "`system` runs as `file`"]);
}

#[test]
fn every_refusal_names_the_token() {
    let known = "bufa cache cachea count direct eie event fault file global memory mmap mr \
                 passthrough sds set syscall system throttle";
    let size = "a size (blocks of 4096 bytes, or bytes with k, M or G)";
    for (text, message) in [
        ("cach:1:2", format!("unknown layer `cach` at character 1; known: {known}")),
        ("cache:1:2, buffa:3,file", format!("unknown layer `buffa` at character 12; known: {known}")),
        ("", "empty layer name at character 1".into()),
        ("cache,,file", "empty layer name at character 7".into()),
        ("cache,:3", "empty layer name at character 7".into()),
        ("cache.fast:1:2", "unknown option `fast` of `cache.fast:1:2` at character 1".into()),
        ("file.sds", "unknown option `sds` of `file.sds` at character 1".into()),
        ("event,cache:x", format!("`cache:x` at character 7: argument `x` is not {size}")),
        ("cache:-1", format!("`cache:-1` at character 1: argument `-1` is not {size}")),
        ("cache:1:k", "`cache:1:k` at character 1: argument `k` is not a whole number".into()),
        ("cache:8:", "`cache:8:` at character 1: argument `` is not a whole number".into()),
        ("cache:0", "`cache:0` at character 1: the page size must be 4096 bytes to 1G, not 0".into()),
        ("cache:2G", "`cache:2G` at character 1: the page size must be 4096 bytes to 1G, not 2G".into()),
        (
            "cache:99999999999999999999999",
            "`cache:99999999999999999999999` at character 1: the page size must be a multiple of \
             4096 bytes, not 99999999999999999999999".into(),
        ),
        ("cache:5k", "`cache:5k` at character 1: the page size must be a multiple of 4096 bytes, not 5k".into()),
        ("cache:8:0", "`cache:8:0` at character 1: the number of pages must be 1 to 1048576, not 0".into()),
        (
            "bufa:1G:65",
            "`bufa:1G:65` at character 1: the number of pages must be so that all fit in 64G, not 65".into(),
        ),
        ("eie:4:4:x", "`eie:4:4:x` at character 1: argument `x` is not a whole number".into()),
        (
            "cachea:4:4:1:16",
            "`cachea:4:4:1:16` at character 1: the number of a shared cache must be 0 to 15, not 16".into(),
        ),
        ("cachea:4:4:1:2:3", "`cachea:4:4:1:2:3` at character 1: too many arguments, from `3` on".into()),
        ("bufa:4:4:1", "`bufa:4:4:1` at character 1: too many arguments, from `1` on".into()),
        ("event,direct:1", "`direct:1` at character 7: too many arguments, from `1` on".into()),
        ("mmap:1", "`mmap:1` at character 1: too many arguments, from `1` on".into()),
        ("cache:1:2:3", "`cache:1:2:3` at character 1: too many arguments, from `3` on".into()),
        ("file:3", "`file:3` at character 1: too many arguments, from `3` on".into()),
        ("file,event", "`file` at character 1 is a backend: nothing can follow it".into()),
        ("event,system,event", "`system` at character 7 is a backend: nothing can follow it".into()),
        ("event:", "`event:` at character 1: argument `` is not a file name".into()),
        ("fault", "`fault` at character 1: an operation or `log` is missing".into()),
        ("fault:write", "`fault:write` at character 1: the number of the operation that fails is missing".into()),
        (
            "fault:open:1",
            "`fault:open:1` at character 1: argument `open` is not read, write, sync, setlen, any or log".into(),
        ),
        (
            "fault:read:0",
            "`fault:read:0` at character 1: the number of the operation must be at least 1, not 0".into(),
        ),
        (
            "fault:read:1:short",
            "`fault:read:1:short` at character 1: argument `short` is not eio or enospc (only a write can be short)".into(),
        ),
        ("fault:read:1:ebadf", "`fault:read:1:ebadf` at character 1: argument `ebadf` is not eio, enospc or short".into()),
        ("throttle", "`throttle` at character 1: a bandwidth in bytes per second is missing".into()),
        (
            "throttle:0",
            "`throttle:0` at character 1: the bandwidth must be 1 to 1048576G bytes per second, not 0".into(),
        ),
        (
            "throttle:1M:5",
            "`throttle:1M:5` at character 1: argument `5` is not a time such as 5ms, 100us or 1s".into(),
        ),
        (
            "throttle:1M:5ms:share",
            "`throttle:1M:5ms:share` at character 1: argument `share` is not the word `shared`".into(),
        ),
        ("throttle:1M:90s", "`throttle:1M:90s` at character 1: the latency must be at most 60s, not 90s".into()),
    ] {
        let refused = Spec::parse(text).expect_err(text);
        assert_eq!(refused.to_string(), message, "{text}");
    }
}

#[test]
fn open_builds_the_stack_that_was_asked_for() {
    let folder = TempFolder::new("open");
    let path = folder.file("a");
    let stack = |options: &StorageOptions| Stack(&*open(&path, options).unwrap()).to_string();
    let create = StorageOptions { create: Create::Exclusive, ..StorageOptions::default() };
    assert_eq!(stack(&create), "cache,file");
    let again = open(&path, &create).unwrap_err();
    assert_eq!(again.raw_os_error(), libc::EEXIST);
    assert_eq!(again.path(), Some(&*path));
    let share = StorageOptions { share: true, ..StorageOptions::default() };
    assert_eq!(stack(&share), "file");
    let spec = Some(Spec::parse("cache:8:8,count").unwrap());
    assert_eq!(
        stack(&StorageOptions { spec: spec.clone(), ..StorageOptions::default() }),
        "cache:8:8,count,file"
    );
    assert_eq!(
        stack(&StorageOptions { spec, share: true, ..StorageOptions::default() }),
        "count,file"
    );

    std::fs::write(&path, b"contents").unwrap();
    let memory =
        StorageOptions { spec: Some(Spec::parse("memory").unwrap()), ..StorageOptions::default() };
    let loaded = open(&path, &memory).unwrap();
    loaded.write_at(8, b"!").unwrap();
    assert_eq!(zonda_testkit::storage::contents(&*loaded), b"contents!");
    assert_eq!(std::fs::read(&path).unwrap(), b"contents");

    let reader = open(&path, &StorageOptions { share: true, ..StorageOptions::default() }).unwrap();
    let refused = reader.write_at(3, b"xy").unwrap_err();
    assert!(matches!(refused, StorageError::ReadOnly { at: 3, len: 2, .. }), "{refused}");
    assert_eq!(refused.raw_os_error(), libc::EBADF);
    let missing = open(&folder.file("none"), &StorageOptions::default()).unwrap_err();
    assert_eq!(missing.raw_os_error(), libc::ENOENT);
    let emptied = StorageOptions { create: Create::Truncate, ..StorageOptions::default() };
    assert_eq!(open(&path, &emptied).unwrap().len(), Ok(0));
}

#[test]
fn a_device_without_room_gives_enospc_with_the_offset() {
    let options = StorageOptions { write: true, share: true, ..StorageOptions::default() };
    let full = open("/dev/full".as_ref(), &options).unwrap();
    let refused = full.write_at(4096, b"abc").unwrap_err();
    assert_eq!((refused.raw_os_error(), refused.offset()), (libc::ENOSPC, Some(4096)));
    assert_eq!(
        refused.to_string(),
        "/dev/full: write of 3 bytes at byte 4096: No space left on device (os error 28)"
    );
}

#[test]
fn memory_keeps_its_limit_and_gives_its_bytes() {
    let memory = Memory::with_limit(100);
    memory.write_at(90, &[1; 10]).unwrap();
    let refused = memory.write_at(95, &[1; 10]).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "memory: write of 10 bytes at byte 95: over the limit of 100 bytes"
    );
    assert_eq!(refused.raw_os_error(), libc::ENOMEM);
    assert!(memory.set_len(101).is_err());
    let bytes = memory.into_vec().unwrap();
    assert_eq!((bytes.len(), bytes[89], bytes[90]), (100, 0, 1));

    let large = zonda_testkit::Rng::new(9).bytes(3 << 20);
    let memory = Arc::new(Memory::from_slice(&large));
    assert!(memory.to_vec().unwrap() == large);
    memory.set_len((3 << 20) + 5).unwrap();
    let bytes = Arc::into_inner(memory).unwrap().into_vec().unwrap();
    assert!(bytes[..3 << 20] == large && bytes[3 << 20..] == [0; 5]);
}

/// Runs in a process of its own: see `the_environment`.
#[test]
#[ignore = "the child of the_environment"]
fn child_prints_what_the_environment_says() {
    use std::io::Write;
    let twice = [Spec::from_env(), Spec::from_env()];
    let spec = twice[1].as_ref().map_or("none".to_owned(), ToString::to_string);
    writeln!(std::io::stdout(), "spec={spec} sync={}", SyncLevel::from_env()).unwrap();
}

#[test]
fn the_environment() {
    let says = |vars: &[(&str, &str)]| {
        let out = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_prints_what_the_environment_says", "--ignored", "--nocapture"])
            .env_remove("ZONDA_IO")
            .env_remove("NETCDF_FFIOSPEC")
            .env_remove("NETCDF_FFIO_SPEC")
            .env_remove("ZONDA_SYNC")
            .envs(vars.iter().copied())
            .output()
            .unwrap();
        let stdout = String::from_utf8(out.stdout).unwrap();
        // The harness may print its own words on the same line.
        let found = stdout.find("spec=").unwrap_or_else(|| panic!("{stdout}"));
        let line = stdout[found..].lines().next().unwrap().to_owned();
        (line, String::from_utf8(out.stderr).unwrap())
    };
    assert_eq!(says(&[]), ("spec=none sync=none".into(), String::new()));
    let all =
        [("ZONDA_IO", "cache:1:2"), ("NETCDF_FFIOSPEC", "bufa:3:4"), ("NETCDF_FFIO_SPEC", "event")];
    assert_eq!(says(&all).0, "spec=cache:1:2,file sync=none");
    assert_eq!(says(&all[1..]).0, "spec=bufa:3:4,file sync=none");
    assert_eq!(says(&all[2..]).0, "spec=event,file sync=none");
    let (line, warning) = says(&[("ZONDA_IO", "cache:8:4,evnt"), ("ZONDA_SYNC", "full")]);
    assert_eq!(line, "spec=none sync=full");
    assert!(
        warning.starts_with(
            "zonda: ZONDA_IO=cache:8:4,evnt: unknown layer `evnt` at character 11; known: "
        ),
        "{warning}"
    );
    assert!(warning.ends_with("; using the default, cache,file\n"), "{warning}");
    assert_eq!(warning.lines().count(), 1, "once: {warning}");
    let (line, warning) = says(&[("ZONDA_SYNC", "always")]);
    assert_eq!(line, "spec=none sync=none");
    assert_eq!(
        warning,
        "zonda: ZONDA_SYNC=always: unknown sync level `always`; known: none, data, full; using the default, none\n"
    );
}
