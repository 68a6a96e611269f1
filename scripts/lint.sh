#!/usr/bin/env bash
# Format, lints, files that are made from others and must not lag behind, and what documents lead to.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo fmt --all --check
cargo clippy --workspace --all-targets --quiet -- -D warnings
# Outside of the workspace, and built by nobody else until they run for hours.
cargo check --manifest-path fuzz/Cargo.toml --bins --quiet --locked --target-dir target
abi/generate.py --check
scripts/allocations.py
scripts/docs.py
scripts/messages.py --check
scripts/release/version.py --check

# STYLE: a file of more than 900 lines is several things. Generated and tabular files do not count,
# nor does the one public header, which C programs expect in one piece.
long=$(git ls-files --cached --others --exclude-standard -- '*.rs' '*.py' '*.sh' '*.c' '*.h' |
    grep -vx include/netcdf.h |
    while read -r file; do
        if [ -f "$file" ] && [ "$(wc -l <"$file")" -gt 900 ]; then echo "$file"; fi
    done)
if [ -n "$long" ]; then
    echo "longer than 900 lines: $long" >&2
    exit 1
fi
# What a promise rests on is checked in release builds, too: an error, or an assertion. Allowed are, with
# the reason: files whose check only finds mistakes of ours in tests, where nothing else depends on it.
debug_only=$(git grep -nE 'debug_assert|cfg!?\((not\()?debug_assertions' -- 'crates/*/src/*.rs' 'python/src/*.rs' |
    grep -vE "$(paste -sd '|' <<'ALLOWED'
^crates/zonda-runtime/src/lock/(mod|order)\.rs:
^crates/zonda-cli/src/main\.rs:[0-9]+: *super::definition\(\)\.debug_assert\(\);$
ALLOWED
)" || true)
# lock: the order in which locks are taken (lock/order.rs); one thread alone shows where the code breaks it.
# main.rs: clap's own check of the command line, called by a unit test.
if [ -n "$debug_only" ]; then
    echo "checked by debug builds only (an error instead, or a reason in scripts/lint.sh):" >&2
    echo "$debug_only" >&2
    exit 1
fi

# One crate starts threads and asks how many cores there are; tests may do so for themselves.
threads=$(git grep -nE 'thread::(spawn|Builder)|scope\.spawn\(|available_parallelism|rayon::' -- 'crates/*/src/*.rs' 'python/src/*.rs' |
    grep -vE "$(paste -sd '|' <<'ALLOWED'
^crates/zonda-runtime/
^crates/zonda-testkit/
^crates/zonda-capi/src/handles\.rs:[0-9]+:.*scope\.spawn\((\|\| insert|close)
^crates/zonda-storage/src/(temporary|layer/mmap)\.rs:[0-9]+: *scope\.spawn\(\|\| \{$
^crates/zonda-team/src/threads/
ALLOWED
)" || true)
# zonda-team: the ranks of a simulated team, which stand for processes. They do none of the library's work for a program.
if [ -n "$threads" ]; then
    echo "threads are started, and cores are counted, by zonda-runtime only (worker::spawn, threads()):" >&2
    echo "$threads" >&2
    exit 1
fi

# One module takes locks from std, without poisoning, and says why no other ones do (zonda-runtime/src/lock). A lock of
# the process is held by each fork (Global), and one that is held while another is taken has its place in the order.
locks=$(git grep -nE 'parking_lot|PoisonError|sync::(Mutex|RwLock|Condvar)|sync::\{[^}]*\b(Mutex|RwLock|Condvar)\b' -- 'crates/*/src/*.rs' 'crates/*/Cargo.toml' 'python/src/*.rs' |
    grep -vE '^crates/(zonda-runtime/src/lock/mod\.rs|zonda-testkit/)' || true)
if [ -n "$locks" ]; then
    echo "locks are those of zonda_runtime::lock:" >&2
    echo "$locks" >&2
    exit 1
fi
locks=$(git grep -nE '\b(Mutex|RwLock)::(new|default)\(|static [A-Z_]+: *(Mutex|RwLock)<' -- 'crates/*/src/*.rs' 'python/src/*.rs' |
    grep -vE "$(paste -sd '|' <<'ALLOWED'
^crates/(zonda-classic/src/(lock|file)|zonda-runtime/src/lock/mod|zonda-testkit)[/.]
^python/src/fork\.rs:.* FILES:
^crates/zonda-runtime/src/fork\.rs:.* (DONE|ALONE):
ALLOWED
)" || true)
if [ -n "$locks" ]; then
    echo "locks have a rank (Mutex::ranked), those of the process are a Global:" >&2
    echo "$locks" >&2
    exit 1
fi
# What is made once for the process is never waited for: a child forked meanwhile would wait for ever. Programs may.
once=$(git grep -nE 'static [A-Z_]+: *(std::sync::)?(OnceLock|LazyLock|Once)\b' -- 'crates/*/src/*.rs' 'python/src/*.rs' |
    grep -vE '^crates/zonda-(cli|plot|testkit)/' || true)
if [ -n "$once" ]; then
    echo "what is made once for the process is a zonda_runtime::Settled:" >&2
    echo "$once" >&2
    exit 1
fi
one_gate=$(git grep -nE 'pthread_atfork|fn at_fork' -- 'crates/*/src/*.rs' 'python/src/*.rs' | grep -v '^crates/zonda-runtime/' || true)
if [ -n "$one_gate" ]; then
    echo "forks come to zonda_runtime::fork only:" >&2
    echo "$one_gate" >&2
    exit 1
fi

# The table of methods of each type would have the text of all that the type holds (docs/dev/sizes.md): `impl Debug for dyn Trait` does.
shown=$(git grep -nE '\btrait \w+[^{]*:[^{]*\bDebug\b' -- 'crates/*/src/*.rs' || true)
if [ -n "$shown" ]; then
    echo "Debug is no supertrait:" >&2
    echo "$shown" >&2
    exit 1
fi

# What `make check` leaves out by name has that name still.
grep '^[a-z]' tests/slow-units.txt | sed 's/.*:://' | while read -r name; do
    if ! git grep -qE "fn $name\b" -- 'crates/*.rs'; then
        echo "tests/slow-units.txt names $name, and there is no such test" >&2
        exit 1
    fi
done

echo "format, clippy, generated files and lengths are fine"
