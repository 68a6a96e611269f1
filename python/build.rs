//! How the module is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Rust's std has the C library drop thread-local values, which it then does in `exit` before any exit function, on a
    // thread that may have the lock of the allocator: a signal handler that calls `exit` in the middle of an allocation
    // would wait for itself. Where there is no such function (the reference is weak), std drops them at the end of
    // each thread by a key of pthread, and in `exit` not at all. So the reference gets a name that nobody has.
    // scripts/link.sh does the same for libnetcdf.
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-link-arg-cdylib=-Wl,--wrap=__cxa_thread_atexit_impl");
    }
}
