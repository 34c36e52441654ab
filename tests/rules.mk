# Tests, benchmarks and fuzzers: how they are built and run. Included by the Makefile, which has the lists of their sources.

# ---- recipes ---------------------------------------------------------------------------------------------------------
# Linked with everything that is tested.
define link_tested
@mkdir -p $(@D)
$(CC) $(BASE_CFLAGS) $(SAN_CFLAGS) $(LAUNCHER_CFLAGS) -MMD -MP -MF $@.d $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $< \
	$(B)/libtested.a $(LAUNCHER_LIBS) $(LIB_LIBS)
endef

# Programs and objects that stand alone are built as those in the wild are: optimised, with debug information, no frame
# pointers, not sanitized. TARGET_LDFLAGS: what one of them needs besides.
TARGET_CFLAGS := -O2 -g -Wall -Wextra -fomit-frame-pointer -D_GNU_SOURCE -Iinclude -I.
define make_program
@mkdir -p $(@D)
$(CC) -std=gnu11 $(TARGET_CFLAGS) $(TARGET_LDFLAGS) -MMD -MP -MF $@.d -o $@ $< -lpthread -lm -ldl
endef

define make_object
@mkdir -p $(@D)
$(CC) -std=gnu11 $(TARGET_CFLAGS) -fPIC -shared $(TARGET_LDFLAGS) -MMD -MP -MF $@.d -o $@ $< -lpthread -ldl
endef

# $(call make_fuzzer,SOURCES AND LIBRARIES)
CLANG ?= clang
define make_fuzzer
@mkdir -p $(@D)
$(CLANG) -std=gnu11 -g -O1 -Wall -Wextra -Wno-sign-compare -fno-strict-aliasing -D_GNU_SOURCE -Iinclude -I. \
	-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -o $@ $(1)
endef

# ---- how each is built -----------------------------------------------------------------------------------------------
$(B)/libtested.a: $(TESTED_OBJS)
	@rm -f $@
	$(AR) rcsD $@ $(TESTED_OBJS)

$(B)/tests/unit/test_%: tests/unit/test_%.c tests/unit/tap.h $(B)/libtested.a
	$(link_tested)

$(B)/tests/pmu/test_%: tests/pmu/test_%.c tests/unit/tap.h $(B)/libtested.a
	$(link_tested)

$(B)/tests/targets/%: tests/targets/%.c
	$(make_program)

$(B)/tests/targets/%.so: tests/targets/%.c
	$(make_object)

# Other interpreters than the one that like_python.so is alike.
LIKE_PYTHONS := $(addprefix $(B)/tests/targets/plugs/like_python_,next.so free.so pypy.so lazy.so)
$(B)/tests/targets/plugs/like_python_next.so: TARGET_LDFLAGS := -DVERSION=0x03ff00f0
$(B)/tests/targets/plugs/like_python_free.so: TARGET_LDFLAGS := -DVERSION=0x030d00f0 -DNO_GIL
$(B)/tests/targets/plugs/like_python_pypy.so: TARGET_LDFLAGS := -DPYPY
$(B)/tests/targets/plugs/like_python_lazy.so: TARGET_LDFLAGS := -DLAZY -Wl,-z,lazy
$(B)/tests/targets/like_python.so: | $(LIKE_PYTHONS)
$(LIKE_PYTHONS): tests/targets/like_python.c
	$(make_object)

# Programs like CPythons of each version, with records of their own; and such as are refused.
MADE_PYTHONS := $(addprefix $(B)/tests/targets/made/python_,6 7 8 9 10 11 12 13 14 free_13 free_14 cookie_14 offset_14 type_14)
$(B)/tests/targets/made/python_%: TARGET_LDFLAGS = -rdynamic -DMINOR=$(lastword $(subst _, ,$*)) $(MADE_$(firstword $(subst _, ,$*)))
MADE_free := -DNO_GIL
MADE_cookie := -DCOOKIE=1
MADE_offset := -DNEWEST=0x10048
MADE_type := -DTYPE=24
$(B)/tests/targets/made/python_%: tests/targets/made_python.c
	$(make_program)
MADE_LIBRARY := $(B)/tests/targets/made/libpython_14.so
MADE_LIBRARIES := $(patsubst %,$(B)/tests/targets/made/%/libpython_14.so,frame-pointers initial-exec)
$(B)/tests/targets/made_python: TARGET_LDFLAGS := -DPROGRAM -Wl,--no-as-needed,-rpath,'$$ORIGIN/made' $(MADE_LIBRARY)
$(B)/tests/targets/made_python: $(MADE_LIBRARY) | $(MADE_PYTHONS) $(MADE_LIBRARIES)
$(MADE_LIBRARY) $(MADE_LIBRARIES): TARGET_LDFLAGS = -DMINOR=14 -DLIBRARY -Wl,-soname,libpython_14.so $(MADE_$(notdir $(@D)))
MADE_frame-pointers := -O2 -fno-omit-frame-pointer
MADE_initial-exec := -O2 -ftls-model=initial-exec
$(MADE_LIBRARY) $(MADE_LIBRARIES): tests/targets/made_python.c
	$(make_object)

# Programs like V8 of each version of node; one with compressed pointers, and one whose functions have another type.
MADE_V8S := $(addprefix $(B)/tests/targets/made/v8_,18 20 22 24 packed_20 type_24)
$(B)/tests/targets/made/v8_%: TARGET_LDFLAGS = -rdynamic -DVERSION=$(lastword $(subst _, ,$*)) $(MADE_V8_$(firstword $(subst _, ,$*)))
MADE_V8_packed := -DTAGGED=4
MADE_V8_type := -DTYPE=100
$(B)/tests/targets/made/v8_%: tests/targets/made_v8.c
	$(make_program)
$(B)/tests/targets/made_v8: TARGET_LDFLAGS := -rdynamic
$(B)/tests/targets/made_v8: | $(MADE_V8S)

# Programs like HotSpot of some versions of the JDK; one that lacks a field, of an unknown version, without counters,
# two that redefine classes, one of which counts safepoints, and one that is linked without an index of its unwind tables.
MADE_HOTSPOTS := $(addprefix $(B)/tests/targets/made/hotspot_,11 17 21 24 25 missing_17 unknown_25 uncounted_17 redefining_17 safepoints_25 bare_17)
$(B)/tests/targets/made/hotspot_%: TARGET_LDFLAGS = -rdynamic -DVERSION=$(lastword $(subst _, ,$*)) $(MADE_HOTSPOT_$(firstword $(subst _, ,$*)))
MADE_HOTSPOT_missing := -DMISSING
MADE_HOTSPOT_bare := -Wl,--no-eh-frame-hdr
MADE_HOTSPOT_unknown := -DSHOWN_VERSION=99
MADE_HOTSPOT_uncounted := -DCOUNTS=0
MADE_HOTSPOT_redefining := -DREDEFINES=1
MADE_HOTSPOT_safepoints := -DREDEFINES=1 -DCOUNTS=3
$(B)/tests/targets/made/hotspot_%: tests/targets/made_hotspot.c
	$(make_program)
$(B)/tests/targets/made_hotspot: TARGET_LDFLAGS := -rdynamic
$(B)/tests/targets/made_hotspot: | $(MADE_HOTSPOTS)
LOADED_HOTSPOT := $(B)/tests/targets/made/libhotspot.so
$(B)/tests/targets/load_main: | $(LOADED_HOTSPOT)
$(LOADED_HOTSPOT): tests/targets/made_hotspot.c
	$(make_object)

$(B)/tests/targets/old_names.so: TARGET_LDFLAGS := -Wl,--hash-style=sysv
$(B)/tests/targets/made_builtins: TARGET_LDFLAGS := -O2 -rdynamic -s

$(PMU_OWN_TARGETS:%=$(B)/tests/targets/%): $(B)/tests/targets/%: tests/pmu/%.c
	$(make_program)

# What guest_loader loads, by paths that only its own objects know.
PLUGS := $(addprefix $(B)/tests/targets/plugs/,inner/libguest_plug.so libguest_outer.so)
$(B)/tests/targets/guest_loader: TARGET_LDFLAGS := -Wl,--enable-new-dtags,-rpath,'$$ORIGIN/plugs'
$(B)/tests/targets/guest_loader: | $(PLUGS)
$(B)/tests/targets/plugs/libguest_outer.so: TARGET_LDFLAGS := -Wl,--enable-new-dtags,-rpath,'$$ORIGIN/inner'
$(PLUGS): tests/targets/guest_plug.c tests/targets/guest.h tests/targets/work.h
	$(make_object)

# What half_loaded loads: it fails, or not.
GO_PART := $(B)/tests/targets/plugs/go_part_whole.so
$(B)/tests/targets/half_loaded: TARGET_LDFLAGS := -rdynamic
$(B)/tests/targets/half_loaded: | $(GO_PART)
$(GO_PART) $(B)/tests/targets/go_part.so: TARGET_LDFLAGS = -Wl,-z,now,-z,nodelete $(if $(filter plugs,$(notdir $(@D))),-DWHOLE)
$(GO_PART): tests/targets/go_part.c
	$(make_object)

# Functions by libc's names: the program's are exported, its library's come before libc's.
NAMES_LIBRARY := $(B)/tests/targets/plugs/libguest_names.so
$(B)/tests/targets/guest_names: TARGET_LDFLAGS := -rdynamic -Wl,--no-as-needed,-rpath,'$$ORIGIN/plugs' $(NAMES_LIBRARY)
$(B)/tests/targets/guest_names: $(NAMES_LIBRARY)
$(NAMES_LIBRARY): TARGET_LDFLAGS := -fno-builtin -DGUEST_NAMES_LIBRARY -Wl,-soname,libguest_names.so
$(NAMES_LIBRARY): tests/targets/guest_names.c
	$(make_object)

# A library that works in its constructor; programs that are linked with it.
EARLY_LIBRARY := $(B)/tests/targets/plugs/libearly.so
EARLY := $(addprefix $(B)/tests/targets/early_,asan lsan tsan gprof)
$(B)/tests/targets/early: | $(EARLY)
$(B)/tests/targets/early $(EARLY): TARGET_LDFLAGS = -Wl,--no-as-needed,-rpath,'$$ORIGIN/plugs' $(EARLY_LIBRARY) $(EARLY_$(notdir $@))
EARLY_early_asan := -fsanitize=address
EARLY_early_lsan := -fsanitize=leak
EARLY_early_tsan := -fsanitize=thread -static-libtsan
EARLY_early_gprof := -pg -fno-omit-frame-pointer -no-pie
$(B)/tests/targets/early $(EARLY): $(EARLY_LIBRARY)
$(EARLY_LIBRARY): TARGET_LDFLAGS := -DEARLY_LIBRARY -Wl,-soname,libearly.so
$(EARLY_LIBRARY): tests/targets/early.c
	$(make_object)
$(EARLY): tests/targets/early.c
	$(make_program)

# Programs made by each sanitizer.
SANITIZED := $(addprefix $(B)/tests/targets/guest_memory_,address thread undefined leak)
$(B)/tests/targets/guest_memory_%: TARGET_LDFLAGS = -O1 -fsanitize=$*
$(B)/tests/targets/guest_memory_%: tests/targets/guest_memory.c tests/targets/guest.h tests/targets/work.h
	$(make_program)

# Nothing can be injected into these.
$(B)/tests/targets/static_%: TARGET_LDFLAGS := -static
$(B)/tests/targets/static_%: tests/targets/static_%.c
	$(make_program)

$(B)/tests/targets/%: tests/targets/%.cc
	@mkdir -p $(@D)
	$(CXX) -std=gnu++17 $(TARGET_CFLAGS) -MMD -MP -MF $@.d -o $@ $< -lpthread

$(B)/tests/targets/%: tests/targets/%.rs
	@mkdir -p $(@D)
	MAKEFLAGS= $(RUSTC) --edition 2021 -O -g -C force-frame-pointers=no -C symbol-mangling-version=v0 -o $@ $<

# Measures what is in the library, from inside.
$(addprefix $(B)/tests/bench/,walk_bench gate_looks): $(B)/tests/bench/%: tests/bench/%.c $(B)/libtested.a
	$(link_tested)

$(B)/tests/bench/%.so: tests/bench/%.c
	$(make_object)

$(B)/tests/bench/%: tests/bench/%.c
	$(make_program)

# The timer queue beside PCP's, which is loaded when it is there; -rdynamic steps the wall clock for both.
TIMERQ_BENCH := $(addprefix tests/bench/,timerq.c timerq_behaviour.c timerq_cost.c timerq_schedule.c timerq_peer.c)
TIMERQ_OBJS := $(filter $(PLAIN)/obj/preload/core/timer/%,$(SO_OBJS))
$(PLAIN)/tests/bench/timerq: $(TIMERQ_BENCH) tests/bench/timerq_peer.h $(TIMERQ_OBJS)
	@mkdir -p $(@D)
	$(CC) $(BASE_CFLAGS) $(CFLAGS) -rdynamic $(LDFLAGS) -o $@ $(TIMERQ_BENCH) $(TIMERQ_OBJS) -ldl -lpthread

# ---- what people call ------------------------------------------------------------------------------------------------
PACKAGE_TESTS := api deb dist rpm tar tar_arm64
KERNEL_TESTS := debian_11 debian_12 debian_13 units_11 units_12 units_13
# Where python3 is a version manager's script, which looks for the interpreter at each start, for 0.1 s of CPU time: the
# interpreter's own directory.
PYTHON_DIR = $(shell python3=$$(command -v python3) && head -c 2 "$$python3" | grep -q '^\#!' && \
	"$$python3" -c 'import os, sys; print(os.path.dirname(sys.executable))')
# A third of what tests take is waiting: for children, servers and signals. So three run at once.
PROVE = BUILD=$(CURDIR)/$(B) PATH="$(PYTHON_DIR:%=%:)$$PATH" prove -j$(or $(JOBS),3) --timer --failures

.PHONY: tests check check-unit check-guests check-pmu check-san bench demo
tests: all $(UNIT_BINS) $(TARGET_BINS) $(B)/tests/symbols/resolve ## build what the tests need

check: tests ## build, and run every test but the slow ones: about five minutes on two processors
	$(PROVE) $(filter-out $(SLOW_UNIT_BINS),$(UNIT_BINS)) $(CLI_TESTS:%=tests/cli/%.t)
	$(PROVE) -j1 $(LONE_CLI_TESTS:%=tests/cli/%.t)

.PHONY: check-slow
check-slow: tests ## build, and run the slow tests: about ten minutes on two processors
	$(PROVE) $(SLOW_UNIT_BINS) $(SLOW_CLI_TESTS:%=tests/cli/%.t)
	$(PROVE) -j1 $(SLOW_LONE_CLI_TESTS:%=tests/cli/%.t)

# Of the programs in tests/targets they use these alone.
check-unit: all $(UNIT_BINS) $(addprefix $(B)/tests/targets/,gate_work inlines static_stacks unwind_mix) ## build and run the unit tests alone
	$(PROVE) $(UNIT_BINS)

.PHONY: guest-packages
guest-packages:
	@scripts/install-deps guests

# Programs of other languages, which start others in ways of their own.
RUNTIMES := $(addprefix $(B)/tests/targets/runtimes/,go rust Spawns.class Work.class Jobs.class)
$(RUNTIMES): | guest-packages
$(B)/tests/targets/runtimes/go: tests/guests/sources/spawns.go
	@mkdir -p $(@D) $(B)/go-cache
	CGO_ENABLED=1 GOCACHE=$(abspath $(B)/go-cache) go build -o $@ $<

$(B)/tests/targets/runtimes/rust: tests/guests/sources/spawns.rs
	@mkdir -p $(@D)
	$(RUSTC) -O -g -o $@ $<

$(B)/tests/targets/runtimes/%.class: tests/guests/sources/%.java
	@mkdir -p $(@D)
	javac -d $(@D) $<

$(B)/tests/targets/runtimes/%.class: tests/frames/%.java
	@mkdir -p $(@D)
	javac -d $(@D) $<

# Each class of guests that breaks profilers, with and without us: GUESTS='regex...' chooses, GUEST_RUNS=N multiplies,
# GUEST_USER=65534 tries them as that user, GUEST_ALLOC=4096 while their allocations are sampled, every 4,096 bytes,
# GUEST_LOCK=1 while waits for locks are measured.
check-guests: tests $(SANITIZED) $(RUNTIMES) ## compare programs that break profilers with and without countersink
	BUILD=$(CURDIR)/$(B) JOBS=$(or $(JOBS),2) tests/guests/guests.py $(GUESTS:%='%')

# Programs of the world and their own tests: SUITES='regex...' chooses.
.PHONY: check-guests-suites
check-guests-suites: all ## compare the test suites of CPython, redis, nginx, node, java, Go and others with and without countersink
	@scripts/install-deps guests
	BUILD=$(CURDIR)/$(B) JOBS=$(or $(JOBS),2) tests/guests/suites.py $(SUITES)
# ATTACH_RUNS to deepen.
ATTACH_RUNS ?= 10
ATTACH_EVENTS ?= task-clock,page-faults,context-switches,raw_syscalls:sys_enter
$(B)/tests/attach/truth: tests/attach/truth.c
	$(make_program)

.PHONY: check-attach
check-attach: $(B)/tests/attach/truth $(B)/tests/targets/lineages
check-attach: all ## compare attach's counts with those of a control group's events (root)
	$(B)/tests/attach/truth $(B)/bin/countersink $(ATTACH_EVENTS) $(ATTACH_RUNS) 0.995 1.005 \
		$(B)/tests/targets/lineages 32 4 1

# What is released, built as users get it.
.PHONY: check-package
check-package: all ## build the source tarball and the packages; install, use and remove them in systems of their own
	@scripts/install-deps package
	@$(MAKE) -s build-aarch64/arm64/leave
	@$(PROVE) $(PACKAGE_TESTS:%=tests/package/%.t)

# Emulated machines with the kernels of Debian's releases. The tarball is that of the committed HEAD.
.PHONY: check-kernels
check-kernels: tests $(B)/kernels/leave ## run countersink on Linux 5.10, 6.1 and 6.12, in emulated machines (root, a Debian mirror)
	@scripts/install-deps kernels
	@rm -rf $(B)/packages/kernels
	@scripts/package tar --suite bullseye --max-glibc 2.28 --output $(B)/packages/kernels
	@UNITS='$(KERNEL_UNIT_TESTS:%=$(B)/tests/unit/test_%)' $(PROVE) $(KERNEL_TESTS:%=tests/kernels/%.t)

$(B)/kernels/leave: TARGET_LDFLAGS := -static
$(B)/kernels/leave: tests/emulator/leave.c
	$(make_program)

.PHONY: known-calls
known-calls: all ## judge stacks without unwind tables, and of 32-bit programs, by the calls that a program makes
	@COUNTERSINK=$(B)/bin/countersink CC_SOURCE=tests/targets/known_calls.c tests/attach/known_calls

# Whatever is installed here: SWEEP='regex...' chooses programs and workloads, SWEEP_KEEP=FILE keeps what differed.
.PHONY: check-guests-sweep soak-leaks
check-guests-sweep: tests ## compare the output of every installed program, and of sixty jobs, with and without countersink
	BUILD=$(CURDIR)/$(B) JOBS=$(or $(JOBS),2) /usr/bin/python3 -B tests/guests/sweep.py $(SWEEP)

# A hundred bytes lost with each: soak's bounds must be broken.
soak-leaks: all $(B)/tests/targets/soak ## prove that make soak finds leaks: seven minutes
	for leak in thread fork object thread-map object-map fork-map; do \
		BUILD=$(CURDIR)/$(B) tests/guests/soak.py 60 $$leak 100 || exit 1; done

# Churn of processes, threads and objects: SOAK_SECONDS to deepen.
.PHONY: soak-services
soak-services: all ## servers under load with slices, in each way, their processes killed at random (SOAK_SECONDS)
	scripts/install-deps services
	tests/services/soak --keepers --seconds=$(SOAK_SECONDS)

.PHONY: soak
SOAK_SECONDS ?= 600
soak: all $(B)/tests/targets/soak ## look for leaks of memory, files, threads and descriptors
	BUILD=$(CURDIR)/$(B) tests/guests/soak.py $(SOAK_SECONDS)

check-san: ## run the unit tests under AddressSanitizer and UndefinedBehaviorSanitizer
	$(MAKE) SAN=address,undefined check-unit

# Lines that tests run: of the handler's sources, also in the agent, and of those that read files of others. What tests report is not
# judged here: counters are written when a program exits, also where it may not. COVERAGE_LEAST=90 fails below that. COVERAGE_TESTS: which.
COVERAGE_LEAST ?= 0
# Not merge_tree: it stops a program within write(2), where that may hold a lock of the counters' files that all others wait for.
COVERAGE_TESTS ?= $(UNIT_BINS) $(patsubst %,tests/cli/%.t,$(filter-out merge_tree,$(CLI_TESTS)) \
	$(filter attach_% frames% gate_deterministic jit outside,$(SLOW_CLI_TESTS)))
COVERED_HANDLER = $(sort $(HANDLER_ONLY) $(SO_HOT))
COVERED_PARSERS = $(filter launcher/% preload/%,$(filter %.c,$(sort $(FUZZ_SRCS) $(FUZZ_READER_SRCS) $(foreach reader,$(FUZZ_FILES),$(FUZZ_SRCS_$(reader))) \
	$(FUZZ_LINES_SRCS) $(FUZZ_OBJECTS_SRCS) $(filter launcher/collect/recording%,$(LAUNCHER_SRCS)))))
.PHONY: coverage coverage-run
coverage: ## print how many lines of the handler and of the parsers the tests run (COVERAGE_LEAST=90 fails below)
	@+$(MAKE) SAN=coverage coverage-run

coverage-run: tests
	@find $(B) -name '*.gcda' -exec rm -f {} +
	-@GCOV_ERROR_FILE=/dev/null $(PROVE) -Q $(COVERAGE_TESTS) 2>$(B)/coverage.log || echo 'coverage: some tests failed with the counters; their lines are counted'
	@tests/coverage $(B) $(COVERAGE_LEAST) handler:$(subst $(blank),$(comma),$(strip $(COVERED_HANDLER))) \
		parsers:$(subst $(blank),$(comma),$(strip $(COVERED_PARSERS)))

# The launcher's threads (relay, readers of events) and those of unit tests. The agent in programs is not instrumented. What is judged are
# ThreadSanitizer's reports alone: some tests wait for what takes much longer under it.
TSAN_TESTS ?= $(addprefix $(B)/tests/unit/test_,record suite symbols timerq_armed timerq_process timerq_threads) \
	$(addprefix tests/cli/,attach.t follow.t outside_short.t relay.t)
TSAN_REPORTS = $(CURDIR)/$(B)/tsan
.PHONY: check-tsan tsan-run
check-tsan: ## look for data races: unit tests and launcher under ThreadSanitizer
	@+$(MAKE) SAN=thread tsan-run

tsan-run: tests
	@rm -rf $(TSAN_REPORTS) && mkdir -m 1777 $(TSAN_REPORTS)
	-@TSAN_OPTIONS='log_path=$(TSAN_REPORTS)/report exitcode=0' $(PROVE) $(TSAN_TESTS) || \
		echo 'check-tsan: some tests failed under ThreadSanitizer, which is slow; its reports alone are judged'
	@if [ -n "$$(ls $(TSAN_REPORTS))" ]; then cat $(TSAN_REPORTS)/*; exit 1; fi
	@echo 'check-tsan: no reports'

# Real hardware counters, by emulation. The guest's packages are kept in build/, which only `make clean` empties.
PMU_CROSS := aarch64-linux-gnu-
PMU_GUEST := $(CURDIR)/build/pmu-guest
check-pmu: ## test hardware counters on an emulated arm64 machine
	@scripts/install-deps pmu
	@tests/pmu/fetch_guest $(PMU_GUEST)
	@+$(MAKE) CROSS=$(PMU_CROSS) SYSROOT=$(PMU_GUEST)/tree pmu-guest
	@BUILD=$(CURDIR)/build-aarch64 prove -j$(or $(JOBS),2) --timer --failures tests/pmu/with.t tests/pmu/profile.t tests/pmu/without.t tests/pmu/hybrid.t

# What the guest runs, for a machine of its kind.
.PHONY: pmu-guest
PMU_BINS := $(PMU_TESTS:%=$(B)/tests/pmu/test_%) $(PMU_UNIT_TESTS:%=$(B)/tests/unit/test_%)
pmu-guest: all $(PMU_BINS) $(PMU_TARGETS:%=$(B)/tests/targets/%) $(B)/pmu/leave
	@BUILD=$(CURDIR)/$(B) GUEST=$(dir $(SYSROOT)) tests/pmu/pack $(PMU_BINS) $(PMU_SCRIPTS:%=tests/pmu/%)

$(B)/pmu/leave: TARGET_LDFLAGS := -static
$(B)/pmu/leave: tests/emulator/leave.c
	$(make_program)

# Everything in an emulated arm64 machine without a PMU: ARM64_UNITS and ARM64_CLI choose. What needs a program that the machine
# lacks is skipped by the tests themselves.
ARM64_UNITS ?= $(UNIT_TESTS)
ARM64_CLI ?= $(CLI_TESTS) $(SLOW_CLI_TESTS) $(LONE_CLI_TESTS) $(SLOW_LONE_CLI_TESTS)
# No compiler of Rust for arm64 is declared.
ARM64_TARGETS := $(filter-out $(basename $(notdir $(wildcard tests/targets/*.rs))),$(TARGETS))
.PHONY: check-arm64 arm64-tests
check-arm64: ## run unit tests and tests of the command line in an emulated arm64 machine (ARM64_UNITS, ARM64_CLI): hours
	@scripts/install-deps arm64
	@$(MAKE) -s build-aarch64/arm64/leave
	@tests/pmu/fetch_guest $(PMU_GUEST)
	@tests/arm64/pack_system $(CURDIR)/build/arm64-guest
	@+$(MAKE) CROSS=$(PMU_CROSS) SYSROOT=$(PMU_GUEST)/tree arm64-tests
	@BUILD=$(CURDIR)/build-aarch64 SYSTEM=$(CURDIR)/build/arm64-guest SECONDS_MAX=$(or $(SECONDS_MAX),43200) CLI='$(ARM64_CLI:%=tests/cli/%.t)' \
		UNITS='$(ARM64_UNITS:%=$(CURDIR)/build-aarch64/tests/unit/test_%)' \
		prove -j$(or $(JOBS),2) --timer --failures $(if $(ARM64_UNITS),tests/arm64/units.t) $(if $(ARM64_CLI),tests/arm64/cli.t)

arm64-tests: all $(ARM64_UNITS:%=$(B)/tests/unit/test_%) $(ARM64_TARGETS:%=$(B)/tests/targets/%) $(B)/tests/symbols/resolve

build-aarch64/arm64/leave: tests/emulator/leave.c
	@mkdir -p $(@D)
	$(PMU_CROSS)gcc -std=gnu11 $(TARGET_CFLAGS) -static -o $@ $<

bench: all $(BENCH_BINS) ## measure beside perf and gperftools (BENCH_RUNS=N to deepen)
	@scripts/install-deps bench
	@BUILD=$(CURDIR)/$(B) tests/bench/run_bench

# A C++ and a Rust program, named by us, llvm-symbolizer and addr2line.
SYMBOLS_NUMBER ?= 100000
$(B)/tests/symbols/resolve: tests/symbols/resolve.c $(B)/libtested.a
	$(link_tested)

.PHONY: check-symbols bench-report
check-symbols: $(B)/tests/symbols/resolve $(B)/tests/targets/rusty ## compare names with llvm-symbolizer's and addr2line's (SYMBOLS_NUMBER addresses)
	@scripts/install-deps symbols
	@JOBS=$(or $(JOBS),2) tests/bench/report_program $(B)/symbols 4
	tests/symbols/compare_symbols $(B)/tests/symbols/resolve $(B)/symbols/program $(SYMBOLS_NUMBER)
	tests/symbols/compare_symbols $(B)/tests/symbols/resolve $(B)/tests/targets/rusty $(SYMBOLS_NUMBER)

bench-report: all ## time reports of a million samples over a large binary, beside perf report and pprof
	@scripts/install-deps symbols
	@BUILD=$(CURDIR)/$(B) tests/bench/report

.PHONY: bench-engine
bench-engine: all $(TARGET_BINS) $(BENCH_BINS) ## measure the handler from inside, what threads cost, bytes a sample
	@BUILD=$(CURDIR)/$(B) tests/bench/engine

# RECORDING_SECONDS, RECORDING_HZ: see the script.
# What is sampled from outside: TREES='names' chooses, OUTSIDE_USER=65534 measures as that user, OUTSIDE_ROUNDS=N adds
# pairs with and without each profiler.
.PHONY: bench-outside
bench-outside: tests ## measure how much of programs that cannot be injected is in a profile of their tree
	BUILD=$(CURDIR)/$(B) tests/outside/measure.py $(TREES)

# WALL_ROUNDS=N, WALL_UNIT=US (of a unit of work), WALL_REALTIME=1 (as root), PROGRAMS='names': see the script.
.PHONY: bench-wall
bench-wall: all $(B)/tests/targets/parallel ## measure what functions gain a run, beside what CPU time, wall % and critical % predict
	BUILD=$(CURDIR)/$(B) tests/wall/predict --rounds $(or $(WALL_ROUNDS),25) --unit $(or $(WALL_UNIT),1000) $(if $(WALL_REALTIME),--realtime) $(PROGRAMS)

.PHONY: bench-alloc
bench-alloc: all $(B)/tests/bench/alloc_pairs $(B)/tests/targets/allocates ## what sampling of allocations costs, beside jemalloc's, tcmalloc's and heaptrack; and its errors (BENCH_RUNS)
	@BUILD=$(CURDIR)/$(B) tests/bench/allocations

.PHONY: bench-lock
bench-lock: all $(B)/tests/bench/lock_pairs $(B)/tests/targets/locks ## what the measurement of waits costs an uncontended lock (BENCH_RUNS)
	@BUILD=$(CURDIR)/$(B) tests/bench/locks

.PHONY: bench-recording
bench-recording: all ## measure what a recording takes: ten minutes of python3 at the default rate
	@BUILD=$(CURDIR)/$(B) tests/bench/recording

# STRESS_SECONDS to shorten or deepen.
.PHONY: stress-frames bench-frames bench-agct
stress-frames: all ## sample Python, PHP, Perl, Ruby, node, Java and Go at 20 kHz in four processes (STRESS_SECONDS, LANGUAGES, PYTHONS, NODES)
	@BUILD=$(CURDIR)/$(B) tests/frames/stress

bench-frames: all $(B)/tests/targets/handler_shim.so ## what frames of Python, PHP, Perl, Ruby, node, Java and Go cost in the handler (BENCH_ROUNDS, LANGUAGES, PYTHONS)
	@BUILD=$(CURDIR)/$(B) tests/bench/frames_languages

bench-agct: all tests/frames/agct_agent.c ## of how many samples of Java stacks are known: by HotSpot's AsyncGetCallTrace(), and by countersink (AGCT_SECONDS, JAVAS)
	@BUILD=$(CURDIR)/$(B) tests/frames/agct

.PHONY: stress
stress: all $(TARGET_BINS) ## open and close objects, sample at 20 kHz, make 100,000 threads: for minutes
	@BUILD=$(CURDIR)/$(B) tests/bench/stress

# Programs that are killed, and those that salvage their recordings. STARTS for how many programs.
STARTS ?= 2000
.PHONY: stress-salvage
stress-salvage: all ## kill 2,000 programs and a third of what salvages their recordings: one profile of each (STARTS)
	@top=$$(mktemp -d) && BUILD=$(CURDIR)/$(B) tests/salvage/stress $$top $(STARTS); status=$$?; rm -rf $$top; exit $$status

# The walkers side by side inside real programs. DIFF_SECONDS to deepen.
DIFF_SECONDS ?= 20
WALK_DIFF_HEADERS := $(addprefix tests/diff/,walk_diff.h verdict.h appeal.h judge.h)
$(B)/tests/diff/walk_diff.so: tests/diff/walk_diff.c $(WALK_DIFF_HEADERS) $(B)/libtested.a
	@mkdir -p $(@D)
	$(CC) $(BASE_CFLAGS) $(PIC_CFLAGS) $(CPPFLAGS) $(CFLAGS) -shared -Wl,-z,now -Wl,-Bsymbolic $(LDFLAGS) -o $@ $< \
		$(B)/libtested.a $(LIB_LIBS)

$(B)/tests/diff/walk_diff_print: tests/diff/walk_diff_print.c tests/diff/walk_diff.h
	$(make_program)

$(B)/tests/diff/cfi_scan: tests/diff/cfi_scan.c $(B)/libtested.a
	$(link_tested)

.PHONY: check-walkers fuzz fuzz-recording
check-walkers: $(B)/tests/diff/walk_diff_print $(B)/tests/targets/deep $(B)/tests/targets/unwind_mix
check-walkers: $(B)/tests/diff/walk_diff.so ## compare stack walks with libunwind's inside real programs
	@BUILD=$(CURDIR)/$(B) tests/diff/run_diff $(DIFF_SECONDS) $(DIFF_NAMES)

# What frame rules this system's programs have, and how the walker takes them.
CFI_FILES ?= $(wildcard /usr/bin/* /usr/sbin/* /usr/lib/*.so* /usr/lib/*-linux-gnu/*.so* /usr/lib64/*.so*)
.PHONY: check-cfi
check-cfi: $(B)/tests/diff/cfi_scan ## read the frame rules of every installed program and library with our parser
	@$(B)/tests/diff/cfi_scan $(CFI_FILES)

# Hostile call frame information; needs clang. FUZZ_SECONDS to deepen. FUZZ_LIMITS: what one input may take of any reader.
FUZZ_SECONDS ?= 60
FUZZ_LIMITS := -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=1024
FUZZ_SRCS := tests/fuzz/fuzz_eh_frame.c $(addprefix preload/core/,private_memory.c safe_load.c \
	$(addprefix cfi/cfi_,close.c expr.c find.c next.c op.c program.c read.c)) \
	$(addprefix preload/agent/unwind/,cfi_locate.c cfi_row.c code.c)
FUZZ_SEEDS = $(wildcard /lib/*/libc.so.6 /lib/*/libgcc_s.so.1 /lib/*/libm.so.6 /lib/*/ld-linux-*.so.* /usr/lib/*/libcrypto.so.3 \
	/usr/lib/*/libstdc++.so.6 /usr/bin/perl /usr/bin/git)
$(B)/tests/fuzz/eh_frame: $(FUZZ_SRCS) tests/fuzz/no_modules.h
	$(call make_fuzzer,$(FUZZ_SRCS))

$(B)/tests/fuzz/eh_frame_corpus: tests/fuzz/eh_frame_corpus.c
	$(make_program)

# Hostile profiles: pprof, folded stacks. Seeds are real ones. Readers are instrumented; what they call is in libtested.a.
FUZZ_PROFILES := pprof folded
FUZZ_READER_SRCS := $(filter launcher/output/pprof% launcher/output/folded_read.c launcher/output/report_table.c \
	launcher/profile/profile.c launcher/profile/profile_facts.c launcher/profile/profile_samples.c \
	launcher/profile/rows.c launcher/profile/function_name.c launcher/profile/tree.c launcher/profile/demangle.c \
	launcher/profile/diff.c launcher/profile/merge.c launcher/profile/merge_facts.c launcher/profile/merge_order.c, \
	$(LAUNCHER_SRCS))
$(FUZZ_PROFILES:%=$(B)/tests/fuzz/%): $(B)/tests/fuzz/%: tests/fuzz/fuzz_%.c $(FUZZ_READER_SRCS) $(B)/libtested.a
	$(call make_fuzzer,$< $(FUZZ_READER_SRCS) $(B)/libtested.a $(LAUNCHER_LIBS) $(LIB_LIBS))

# Other files that are read where others may have written them.
FUZZ_FILES := perfmap names callgrind history symbols jit_image go_table
FUZZ_SRCS_perfmap := launcher/symbols/perfmap.c launcher/base/regular.c
FUZZ_SRCS_names := launcher/profile/demangle.c launcher/profile/function_name.c
FUZZ_SRCS_callgrind := launcher/gate/callgrind.c launcher/gate/gate_functions.c
FUZZ_SRCS_history := launcher/base/json_read.c launcher/gate/history_read.c launcher/gate/history_changes.c \
	launcher/gate/stats/change_points.c $(addprefix launcher/commands/history/history_,table.c export.c html.c)
FUZZ_SRCS_go_table := $(addprefix preload/core/go_,inlines.c rule.c table.c)
FUZZ_SRCS_symbols := $(filter launcher/symbols/symbols%,$(LAUNCHER_SRCS)) $(FUZZ_SRCS_go_table)
FUZZ_SRCS_jit_image := preload/core/jit_image.c launcher/collect/jit_images.c $(FUZZ_SRCS_symbols)
FUZZ_READERS := $(FUZZ_PROFILES) $(FUZZ_FILES)
$(foreach reader,$(FUZZ_FILES),$(eval $(B)/tests/fuzz/$(reader): $(FUZZ_SRCS_$(reader))))
$(FUZZ_FILES:%=$(B)/tests/fuzz/%): $(B)/tests/fuzz/%: tests/fuzz/fuzz_%.c $(B)/libtested.a
	$(call make_fuzzer,$< $(FUZZ_SRCS_$*) $(B)/libtested.a $(LAUNCHER_LIBS) $(LIB_LIBS))

$(B)/tests/fuzz/go_corpus: tests/fuzz/go_corpus.c tests/unit/made_go.h
	$(make_program)

.PHONY: fuzz-readers
fuzz-readers: $(FUZZ_READERS:%=$(B)/tests/fuzz/%) $(B)/tests/fuzz/go_corpus $(B)/tests/targets/inlines all ## feed broken profiles, maps, names, histories, objects and tables of Go to their readers
	@BUILD=$(CURDIR)/$(B) FUZZ_SECONDS=$(FUZZ_SECONDS) FUZZ_LIMITS='$(FUZZ_LIMITS)' tests/fuzz/readers $(FUZZ_READERS)

fuzz: $(B)/tests/fuzz/eh_frame $(B)/tests/fuzz/eh_frame_corpus ## feed broken frame tables to their reader
	@mkdir -p $(B)/tests/fuzz/seeds $(B)/tests/fuzz/found
	$(B)/tests/fuzz/eh_frame_corpus $(B)/tests/fuzz/seeds $(FUZZ_SEEDS)
	cd $(B)/tests/fuzz && ./eh_frame -max_total_time=$(FUZZ_SECONDS) -max_len=4096 $(FUZZ_LIMITS) found seeds

# Hostile recordings, from the file to the report.
FUZZ_REC_SRCS = tests/fuzz/fuzz_recording.c $(filter launcher/base/% launcher/profile/% launcher/symbols/% launcher/output/%,$(LAUNCHER_SRCS)) \
	launcher/collect/run_directory.c launcher/base/proc.c preload/core/record/run_dir.c preload/core/nearest.c
$(B)/tests/fuzz/recording: $(FUZZ_REC_SRCS) $(B)/obj/launcher/output/html_pages.o $(B)/libtested.a
	$(call make_fuzzer,$^ $(LAUNCHER_LIBS) $(LIB_LIBS))

$(B)/tests/fuzz/recording_corpus: tests/fuzz/recording_corpus.c tests/unit/record.h
	$(make_program)

fuzz-recording: $(B)/tests/fuzz/recording $(B)/tests/fuzz/recording_corpus ## feed broken recordings to their reader
	@mkdir -p $(B)/tests/fuzz/recordings $(B)/tests/fuzz/recordings-found
	$(B)/tests/fuzz/recording_corpus $(B)/tests/fuzz/recordings
	cd $(B)/tests/fuzz && ./recording -max_total_time=$(FUZZ_SECONDS) -max_len=16384 $(FUZZ_LIMITS) \
		recordings-found recordings

# Hostile line tables.
FUZZ_LINES_SRCS := tests/fuzz/fuzz_lines.c launcher/profile/profile.c launcher/base/hash.c \
	launcher/symbols/symbols_lines.c
$(B)/tests/fuzz/line_tables: $(FUZZ_LINES_SRCS) tests/fuzz/fuzz_lines.h launcher/symbols/symbols_impl.h $(B)/libtested.a
	$(call make_fuzzer,$(FUZZ_LINES_SRCS) $(B)/libtested.a $(LAUNCHER_LIBS) $(LIB_LIBS))

$(B)/tests/fuzz/lines_corpus: tests/fuzz/lines_corpus.c tests/fuzz/fuzz_lines.h
	@mkdir -p $(@D)
	$(CC) $(BASE_CFLAGS) $(LAUNCHER_CFLAGS) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $< $(LAUNCHER_LIBS)

.PHONY: fuzz-lines
fuzz-lines: $(B)/tests/fuzz/line_tables $(B)/tests/fuzz/lines_corpus tests ## feed broken line tables to their reader
	@BUILD=$(CURDIR)/$(B) FUZZ_SECONDS=$(FUZZ_SECONDS) FUZZ_LIMITS='$(FUZZ_LIMITS)' tests/fuzz/lines

# Hostile objects, which others have mapped.
FUZZ_OBJECTS_SRCS := tests/fuzz/fuzz_objects.c $(addprefix launcher/base/,proc.c regular.c roots.c) $(addprefix preload/core/,sysfs.c task_stat.c) \
	$(addprefix launcher/attach/,code_bytes.c code_paths.c eh_index.c go_object.c interpreters.c object_code.c object_file.c \
		objects.c python_states.c remote.c walk_code.c walk_copied.c walk_go.c walk_libunwind.c x86_decode.c) $(FUZZ_SRCS_go_table) launcher/symbols/eh_frame_32.c \
	$(filter-out tests/%,$(FUZZ_SRCS))
$(B)/tests/fuzz/objects: $(FUZZ_OBJECTS_SRCS) tests/fuzz/no_modules.h $(B)/libtested.a
	$(call make_fuzzer,$(FUZZ_OBJECTS_SRCS) $(B)/libtested.a $(LAUNCHER_LIBS) $(LIB_LIBS) $(shell $(PKG_CONFIG) --libs libunwind-generic))

.PHONY: fuzz-objects
fuzz-objects: $(B)/tests/fuzz/objects ## feed broken objects to what attach reads them with
	@BUILD=$(CURDIR)/$(B) FUZZ_SECONDS=$(FUZZ_SECONDS) FUZZ_LIMITS='$(FUZZ_LIMITS)' tests/fuzz/objects

# All of them. FUZZ_KEPT is what they start from and add to, and where inputs are put that broke a reader; CI keeps it from run to run.
FUZZ_KEPT ?= $(B)/fuzz-kept
FUZZ_BROKEN = $(abspath $(FUZZ_KEPT))/broken/
.PHONY: check-fuzz
check-fuzz: ## run every fuzzer for FUZZ_SECONDS, from and to the corpus in FUZZ_KEPT
	@mkdir -p $(FUZZ_BROKEN) && tests/fuzz/kept take $(abspath $(FUZZ_KEPT)) $(B)/tests/fuzz $(FUZZ_READERS)
	@+$(MAKE) -k -j$(or $(JOBS),2) --output-sync=target FUZZ_LIMITS='$(FUZZ_LIMITS) -artifact_prefix=$(FUZZ_BROKEN)' \
		fuzz-readers fuzz fuzz-recording fuzz-lines fuzz-objects; status=$$?; \
		tests/fuzz/kept put $(abspath $(FUZZ_KEPT)) $(B)/tests/fuzz $(FUZZ_READERS) && exit $$status

# For tests/cli/files.t: what the lists above and the Makefile's take.
.PHONY: show-sources show-version
show-version:
	@echo $(VERSION)

show-sources:
	@printf '%s\n' $(PRELOAD_SRCS) preload/stub/stub.c $(PLUGIN_SRCS) $(OBJECT_SRCS) $(LAUNCHER_SRCS) $(SEND_SRCS) launcher/output/html_pages.S \
		launcher/commands/completion/completion_text.S launcher/gate/suite/modules.S $(UNIT_TESTS:%=tests/unit/test_%.c) \
		$(patsubst %,tests/cli/%.t,$(CLI_TESTS) $(LONE_CLI_TESTS) $(SLOW_CLI_TESTS) $(SLOW_LONE_CLI_TESTS) \
			$(SUITES_CLI_TESTS)) \
		$(foreach target,$(basename $(TARGETS)),$(firstword $(wildcard tests/targets/$(target).c*) tests/targets/$(target).rs)) \
		$(patsubst %,tests/bench/%.c,$(basename $(BENCHES))) $(PMU_TESTS:%=tests/pmu/test_%.c) \
		$(PMU_OWN_TARGETS:%=tests/pmu/%.c) $(FUZZ_READERS:%=tests/fuzz/fuzz_%.c) $(wildcard tests/reserve/*.t tests/examples/*.c)

# For tests/cli/symbols.t.
.PHONY: show-handler-objs show-handler-roots show-library-objs show-untabled-objs
show-untabled-objs:
	@echo $(UNTABLED:%.c=$(PLAIN)/obj/%.o)
show-handler-objs:
	@echo $(HANDLER_OBJS)
show-handler-roots:
	@echo $(HANDLER_ROOTS) | tr ' ' ,
show-library-objs:
	@echo $(SO_OBJS)

# The gate's statistics against R and scipy, live.
$(B)/tests/stats/calc: tests/stats/calc.c $(B)/libtested.a
	$(link_tested)

.PHONY: check-stats
check-stats: $(B)/tests/stats/calc ## compare the gate's statistics with those of R and scipy
	@scripts/install-deps stats
	@tests/stats/compare_stats $<

.PHONY: check-cluster bench-merges
check-cluster: all $(B)/tests/targets/burn ## profile parallel jobs under OpenMPI, MPICH and Slurm (one node)
	@scripts/install-deps cluster
	BUILD=$(CURDIR)/$(B) JOBS_SOURCE=$(CURDIR)/tests/cluster/imbalance.c prove tests/cluster/jobs

bench-merges: all ## merge 10,000 profiles in three orders and two shapes of tree: the same bytes, time and memory
	@BUILD=$(CURDIR)/$(B) tests/cluster/merges $(MERGES)

.PHONY: check-suites
check-suites: all ## compare suites of Catch2, of pytest-benchmark, and of harnesses that come from npm (which is asked) and as crates
	@scripts/install-deps suites
	@tests/browser/fetch_npm $(B)/npm-suites tests/gate/suites/package.json
	@mkdir -p $(B)/criterion
	@cp $(addprefix tests/gate/suites/criterion/,Cargo.toml criterion_suite.rs) $(B)/criterion/
	cargo build --release --offline --quiet --manifest-path $(B)/criterion/Cargo.toml --target-dir $(B)/criterion \
		--config 'source.crates-io.replace-with="debian"' --config 'source.debian.directory="/usr/share/cargo/registry"'
	BUILD=$(CURDIR)/$(B) NPM=$(CURDIR)/$(B)/npm-suites prove --timer --failures --comments $(SUITES_CLI_TESTS:%=tests/cli/%.t)

# The examples for CI, run as they are: they clone and build what is committed here, twice each.
.PHONY: check-ci
check-ci: all ## run the examples for GitHub's and GitLab's CI, every step of them (apt and npm are asked)
	@scripts/install-deps ci
	@tests/browser/fetch_npm $(B)/npm-ci tests/gate/package.json
	BUILD=$(CURDIR)/$(B) NPM=$(CURDIR)/$(B)/npm-ci prove --timer --failures --comments tests/gate/ci-examples.t

# How often the gate is wrong, and what it finds; takes hours. KINDS=copies, GATES=20 POWER_GATES=5 for a glance.
.PHONY: gate-power
gate-power: all ## measure the gate's false alarms and its power on a real program
	@BUILD=$(CURDIR)/$(B) tests/gate/power $(B)/gate-power
	@BUILD=$(CURDIR)/$(B) tests/gate/python-power $(B)/gate-python-power

# Change points of a history, on ratios that were measured: COMMITS, SERIES, PAIRS, SEED; see the script.
$(B)/tests/gate/history_power: tests/gate/history_power.c $(B)/libtested.a
	$(link_tested)

.PHONY: history-power
history-power: $(B)/tests/gate/history_power ## simulate false alarms and power of a history's change points
	@tests/gate/history-power $< $(sort $(wildcard tests/gate/ratios/*))

$(B)/tests/gate/suite_power $(B)/tests/gate/command_power: $(B)/tests/gate/%: tests/gate/%.c tests/gate/measured_runs.h $(B)/libtested.a
	$(link_tested)

.PHONY: command-power
command-power: $(B)/tests/gate/command_power ## simulate the false alarms and power of a gate of one command
	@tests/gate/command-power $< $(sort $(wildcard tests/gate/runs/*))

.PHONY: suite-power
suite-power: $(B)/tests/gate/suite_power ## simulate a suite's false alarms and power
	@tests/gate/suite-power $< $(sort $(wildcard tests/gate/runs/*))

# The reservation against PCP's own daemons, which are unpacked and run in private directories, not installed.
$(B)/tests/reserve/reserve_figures: tests/reserve/reserve_figures.c tests/reserve/ioctl_log.h $(B)/libtested.a
	$(link_tested)

$(B)/tests/reserve/ioctl_log.so: tests/reserve/ioctl_log.c tests/reserve/ioctl_log.h
	$(make_object)

.PHONY: check-reserve
check-reserve: tests $(B)/tests/reserve/reserve_figures $(B)/tests/reserve/ioctl_log.so ## test the reservation against PCP's own agent
	@scripts/install-deps agent --unpack $(B)/pcp
	$(PROVE) --comments $(wildcard tests/reserve/*.t)

.PHONY: bench-timerq
bench-timerq: $(PLAIN)/tests/bench/timerq ## compare the timer queue with __pmAF of PCP
	-@scripts/install-deps agent --unpack $(B)/pcp
	@LD_LIBRARY_PATH=$(B)/pcp/usr/lib$${LD_LIBRARY_PATH:+:$$LD_LIBRARY_PATH} $<

# The page in a browser, and other tools' own readers on what export writes: heavier than what `check` needs, so apart.
# Browser pictures stay in $(B)/browser.
.PHONY: check-html
check-html: all $(B)/tests/targets/burn ## test the pages in Chromium, and exports with the tools that they are for
	@scripts/install-deps export
	@tests/browser/fetch_npm $(B)/npm
	BUILD=$(CURDIR)/$(B) NPM=$(CURDIR)/$(B)/npm prove --timer --failures --comments tests/browser/page.t tests/browser/history_page.t tests/browser/tools.t
