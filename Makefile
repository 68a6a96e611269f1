# Recipes are short: the scripts they call do the work and explain themselves.

PREFIX ?= /usr/local
CARGO ?= cargo
# How the library is compiled: `fast` takes minutes, `release` is what is released, tested and measured.
PROFILE ?= fast

.DEFAULT_GOAL := help
.PHONY: build demo test check par bench floors limits counts bench-writes bench-remote remote-table bench-python python-suites stacks crash interop model edit async assertions race mutants study-overlap study-chunks study-cosmo conformance wheel install uninstall release release-test fuzz aarch64 lint doc docs docs-test clean help

build: ## Rust crates, then the libraries and tools in dist/; PROFILE=release for those that are released
	scripts/setup.sh --build
	$(CARGO) build --profile $(PROFILE) -p zonda-capi -p zonda-cli -p zonda-tls-engine
	ZONDA_BUILT=$${CARGO_TARGET_DIR:-target}/$(PROFILE) scripts/link.sh dist

demo: ## one program on two libraries: the 1995 case study, with a table
	scripts/setup.sh --demo
	@$(MAKE) --no-print-directory build PROFILE=release
	scripts/demo.sh

test: ## everything; one line per stage, and N passed, N failed at the end
	scripts/setup.sh --test
	@$(MAKE) --no-print-directory build PROFILE=release
	@scripts/test.sh

check: ## the part of the tests that takes about two minutes
	scripts/setup.sh --test
	@$(MAKE) --no-print-directory build PROFILE=release
	@scripts/test.sh --quick

bench: ## measurements against the distribution's library and the limit; hours
	scripts/setup.sh --demo
	@$(MAKE) --no-print-directory build PROFILE=release
	bench/run.py
	bench/reads.py
	bench/writes.py
	bench/edits.py
	bench/trace.py
	bench/floors.py

floors: ## small calls and small files beside the same work by hand: the table of docs/status/performance.md, ten minutes
	scripts/setup.sh --demo --test
	@$(MAKE) --no-print-directory build PROFILE=release
	bench/floors.py

limits: ## chunks, copies, large files and xarray beside what the machine allows: a table of docs/status/performance.md, half an hour
	scripts/setup.sh --demo --python
	@$(MAKE) --no-print-directory build PROFILE=release
	scripts/wheel.sh out/wheels out/venv/bin/python
	out/venv/bin/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps out/wheels/zonda-*-abi3-*.whl
	bench/limits.py

counts: ## instructions, calls, allocations, copies and shared lines of small work, beside their limits; four minutes
	scripts/setup.sh --test
	@$(MAKE) --no-print-directory build PROFILE=release
	tests/counts/run.py
	tests/counts/locked.py

bench-writes: ## the part about writing netCDF-4
	scripts/setup.sh --demo
	@$(MAKE) --no-print-directory build PROFILE=release
	bench/writes.py

bench-remote: ## files behind a server, at 20 ms and 0 ms a request, beside netCDF-C, fsspec, GDAL and curl
	scripts/setup.sh --demo --test
	@$(MAKE) --no-print-directory build PROFILE=release
	bench/remote.py

remote-table: ## the same arrays in a file, by OPeNDAP and by byte ranges, at 0 ms and 20 ms a request: the table and the plot
	scripts/setup.sh --demo --test
	@$(MAKE) --no-print-directory build PROFILE=release
	bench/remote_table.py

bench-python: ## Python libraries on the same arrays; hours
	scripts/setup.sh --demo --python
	@$(MAKE) --no-print-directory build PROFILE=release
	scripts/wheel.sh out/wheels out/venv/bin/python
	out/venv/bin/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps out/wheels/zonda-*-abi3-*.whl
	ZONDA_PYTHON=$(CURDIR)/out/venv/bin/python bench/python.py

python-suites: ## the test suites of netCDF4-python, h5netcdf and xarray on Zonda
	scripts/setup.sh --python
	@$(MAKE) --no-print-directory build PROFILE=release
	scripts/wheel.sh out/wheels out/venv/bin/python
	out/venv/bin/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps out/wheels/zonda-*-abi3-*.whl
	ZONDA_PYTHON=$(CURDIR)/out/venv/bin/python python/tests/suites/run.py

stacks: ## the default storage stack against others, on every family of workloads
	scripts/setup.sh --demo
	@$(MAKE) --no-print-directory build PROFILE=release
	bench/stacks.py

crash: ## every state that a death, a power cut or a full disk can leave; 500 kills
	scripts/setup.sh --test
	@$(MAKE) --no-print-directory build PROFILE=release
	tests/crash/run.py --long

interop: ## netCDF-4 files by Zonda, read and changed by every other program, in full
	scripts/setup.sh --test
	@$(MAKE) --no-print-directory build PROFILE=release
	tests/interop/run.py --long

model: ## 100 thousand random steps through netCDF-4 files, beside a plain model
	scripts/setup.sh --test
	@$(MAKE) --no-print-directory build PROFILE=release
	tests/model/run.py --long

edit: ## every edit of every kind of file that others make, cut off anywhere, and beside readers
	scripts/setup.sh --test
	@$(MAKE) --no-print-directory build PROFILE=release
	tests/edit/run.py --long

async: ## 2400 random lives with write-behind and without; the reference's own tests with it; kills at random moments
	scripts/setup.sh --test
	@$(MAKE) --no-print-directory build PROFILE=release
	tests/async/run.py --long
	tests/async/helper.py --long
	tests/async/kills.py --long
	tests/conformance/run.py --allowed --async on
	tests/conformance/run.py --allowed --async helper

par: ## teams of ranks by each MPI that can be installed: the steps, refusals, waits, figures; tests of netCDF-C and netCDF-Fortran
	scripts/setup.sh --test --par
	tests/par/run.py --long

assertions: ## the tests of what must not be lost, on a release build with the checks of debug builds
	scripts/setup.sh --test
	@$(MAKE) --no-print-directory build PROFILE=release
	scripts/assertions.sh

race: ## the unit tests of what threads share, under ThreadSanitizer
	scripts/setup.sh --test
	scripts/race.sh

mutants: ## whether the tests find defects: each of tests/mutants, in a copy of the tree
	scripts/setup.sh --test
	tests/mutants/run.py

study-overlap: ## chunk x slice x overlap of compute and output: the table and the plot
	scripts/setup.sh --demo
	@$(MAKE) --no-print-directory build PROFILE=release
	bench/study_overlap.py

study-chunks: ## shapes of chunks x compression x access, stacks of images and slices from Fortran: tables and plots of docs/dev/chunk-study.md
	scripts/setup.sh --demo
	@$(MAKE) --no-print-directory build PROFILE=release
	bench/study_chunks.py

study-cosmo: ## a weather model's output: gathered, and by 1, 2, 3 and 6 groups of I/O servers; the table and the plot
	scripts/setup.sh --par
	@$(MAKE) --no-print-directory build PROFILE=release
	bench/study_cosmo.py

conformance: ## the reference's own tests on this library
	scripts/setup.sh --test
	@$(MAKE) --no-print-directory build PROFILE=release
	tests/conformance/run.py
	tests/conformance/run.py --all --only '^(ncdump|ncgen3)/' --tools dist/bin
	tests/conformance/run.py --report

wheel: ## the Python package, in out/wheels, fit for other distributions where auditwheel is there
	scripts/setup.sh --build
	@$(MAKE) --no-print-directory build PROFILE=release
	scripts/wheel.sh out/wheels

install: ## copies dist/ to PREFIX (/usr/local) without debug symbols; DESTDIR for packagers
	scripts/install.sh $(PREFIX)

uninstall: ## removes what make install put into PREFIX
	scripts/uninstall.sh $(PREFIX)

release: ## packages of this version in out/release: Debian, wheels, musl, sources, with checksums
	scripts/setup.sh --build --release
	scripts/release.sh out/release

release-test: ## what make release made, installed, used, upgraded and removed in fresh root file systems: the table; as root
	scripts/setup.sh --build --release
	tests/release/run.py

fuzz: ## each fuzz target for FUZZ_SECONDS (600)
	scripts/setup.sh --fuzz
	fuzz/run.sh

aarch64: ## the Rust tests on aarch64, under emulation
	scripts/aarch64.sh

doc: ## the documentation of the crates in target/doc/zonda, without a warning; that of the command (same name) is only checked
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --exclude zonda-python --exclude zonda-cli --no-deps --all-features --quiet
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --package zonda-cli --no-deps --quiet --target-dir target/doc-cli

docs: ## the site, in out/site: to be read by a browser, with or without a server
	scripts/setup.sh --docs
	NO_MKDOCS_2_WARNING=1 out/docs/bin/mkdocs build --strict

docs-test: ## the site's examples, links, reference and pictures at two widths; manual pages and completions
	scripts/setup.sh --test --par --docs
	@$(MAKE) --no-print-directory build PROFILE=release
	[ -x out/python/bin/python ] || python/tests/run.sh python/tests/api/test_examples.py
	tests/docs/run.py
	tests/docs/screens.py

lint: ## format, clippy, generated files
	@scripts/lint.sh

clean: ## removes what was built, downloaded and measured
	$(CARGO) clean --quiet
	rm -rf dist out

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
