//! Every backend and layer, alone and stacked, through the one suite.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use zonda_storage::backend::{File, Memory};
use zonda_storage::{Create, Spec, Storage, StorageOptions, SyncLevel, open};
use zonda_testkit::TempFolder;
use zonda_testkit::storage::conformance;

/// Runs the suite on `spec` over memory.
fn on_memory(spec: &str) {
    let spec = Spec::parse(&format!("{spec},memory")).unwrap();
    conformance(|| spec.build_in_memory().unwrap());
}

/// Runs the suite on `spec` over new files, opened as a program opens them.
fn on_files(spec: &str) {
    let folder = TempFolder::new("conformance");
    let spec = Spec::parse(spec).unwrap();
    let n = AtomicU64::new(0);
    conformance(|| {
        let path = folder.file(&n.fetch_add(1, Ordering::Relaxed).to_string());
        let options = StorageOptions {
            create: Create::Exclusive,
            spec: Some(spec.clone()),
            ..StorageOptions::default()
        };
        open(&path, &options).unwrap()
    });
}

#[test]
fn memory() {
    conformance(|| Arc::new(Memory::new()));
}

#[test]
fn file() {
    on_files("file");
}

#[test]
fn file_with_every_sync_level() {
    let folder = TempFolder::new("levels");
    for level in [SyncLevel::None, SyncLevel::Data, SyncLevel::Full] {
        let path = folder.file(&level.to_string());
        let file = File::open(&path, true, Create::Exclusive, level).unwrap();
        file.write_at(0, b"one").unwrap();
        file.barrier().unwrap();
        file.write_at(3, b"two").unwrap();
        file.sync().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"onetwo");
    }
}

#[test]
fn default_stack_on_a_file() {
    on_files("cache:64:64");
}

#[test]
fn tiny_cache_on_a_file() {
    on_files("cache:1:2");
}

#[test]
fn one_page() {
    on_memory("cache:1:1");
}

#[test]
fn tiny_cache() {
    on_memory("cache:1:2");
}

#[test]
fn small_pages_with_read_ahead() {
    on_memory("cache:1:16");
}

#[test]
fn pages_not_a_power_of_two() {
    on_memory("cache:3:5");
    on_memory("cache:29:141");
}

#[test]
fn cache_over_cache() {
    on_memory("cache:1:3,cache:4:4");
    on_memory("cache:8:4,cache:1:2");
}

#[test]
fn caches_with_a_thread() {
    for pages in ["1:1", "1:2", "1:3:1", "1:16:8", "3:5:2", "64:64:4"] {
        on_memory(&format!("cachea:{pages}"));
    }
    on_files("cachea:2:8:2");
}

#[test]
fn pages_that_files_share() {
    // All storages of the suite are there one after the other; two layers of a stack are two files.
    on_memory("cachea:1:6:1:3");
    on_memory("cachea:1:5:1:4,cachea:1:5:1:4");
}

#[test]
fn double_buffering() {
    for buffers in ["1:1", "1:2", "2:4", "29:2", "336:2"] {
        on_memory(&format!("bufa:{buffers}"));
    }
    on_files("bufa:4:3");
}

#[test]
fn second_level() {
    on_memory("eie:1:4:1");
    on_memory("cache:1:8,eie.sds:16:4:1");
    on_files("cache:29:141,eie.sds:4096:4:1");
}

#[test]
fn threads_over_threads() {
    on_memory("cachea:1:4:2,bufa:2:2,eie:8:4:1");
    on_memory("bufa:1:2,count,cachea:2:4,cache:1:2");
    on_memory("cache:1:4,cachea:2:4:1,throttle:1024G");
    on_memory("eie:4:4,cache:1:3,bufa:8:2");
}

/// The default has a thread where calls take long.
#[test]
fn default_on_a_slow_device() {
    on_memory("cache,throttle:1024G:30us");
    on_files("cache,throttle:1024G:30us");
}

#[test]
fn past_the_cache_of_the_system() {
    on_memory("direct");
    on_files("direct");
    on_files("cache:3:5,direct");
    on_files("cachea:16:4,direct,count");
    on_files("direct,cache:1:4");
}

#[test]
fn mapping() {
    on_memory("mmap");
    on_files("mmap");
    on_files("cache:1:4,mmap,bufa:1:2");
}

#[test]
fn passthrough() {
    on_memory("passthrough");
    on_memory("passthrough,cache:2:2,passthrough");
}

#[test]
fn count() {
    on_memory("count");
    on_files("count,cache:2:6,count");
}

#[test]
fn event() {
    let folder = TempFolder::new("event");
    let trace = folder.file("trace");
    let trace = trace.to_str().unwrap();
    on_memory(&format!("event:{trace}"));
    on_memory(&format!("event:{trace},cache:1:4,event:{trace},count,event:{trace}"));
    let text = std::fs::read_to_string(trace).unwrap();
    assert!(text.contains(" event#1 write ") && text.contains(" event#3 writev "));
}

#[test]
fn throttle() {
    on_memory("throttle:1024G");
    on_memory("cache:1:4,throttle:1024G");
}

#[test]
fn fault_that_never_strikes() {
    on_memory("fault:any:1000000000");
    on_memory("cache:1:4,fault:write:1000000000:short");
}
