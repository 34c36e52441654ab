# countersink. `make help` lists the targets. Nothing here is recursive; every source file is named below. tests/rules.mk builds
# and runs the tests.
VERSION := $(shell sed -n 's/^.define CSINK_VERSION "\(.*\)"/\1/p' include/internal/base.h)
PREFIX  ?= /usr/local
BINDIR  ?= $(PREFIX)/bin
LIBDIR  ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR  ?= $(PREFIX)/share/man
DESTDIR ?=
# CROSS=aarch64-linux-gnu- builds for another machine, into a tree of its own (build-aarch64). SYSROOT: where that
# machine's libraries and headers are, but for the C library's, which come with the compiler.
CROSS   ?=
SYSROOT ?=
ifneq ($(CROSS),)
CC      := $(CROSS)gcc
CXX     := $(CROSS)g++
AR      := $(CROSS)ar
endif
ifneq ($(SYSROOT),)
TRIPLET := $(CROSS:-=)
PKG_CONFIG := env PKG_CONFIG_LIBDIR=$(SYSROOT)/usr/lib/$(TRIPLET)/pkgconfig PKG_CONFIG_SYSROOT_DIR=$(SYSROOT) pkg-config
CPPFLAGS += -isystem $(SYSROOT)/usr/include -isystem $(SYSROOT)/usr/include/$(TRIPLET)
LDFLAGS  += -L$(SYSROOT)/usr/lib/$(TRIPLET) -Wl,-rpath-link,$(SYSROOT)/usr/lib/$(TRIPLET):$(SYSROOT)/lib/$(TRIPLET)
endif
CC      ?= cc
CXX     ?= c++
AR      ?= ar
PKG_CONFIG ?= pkg-config
INSTALL ?= install
RUSTC   ?= rustc
# SAN=address,undefined builds with sanitizers, into a tree of its own.
SAN     ?=
comma   := ,
PLAIN   := build$(if $(CROSS),-$(firstword $(subst -, ,$(CROSS))))
B       := $(PLAIN)$(if $(SAN),-$(subst $(comma),-,$(SAN)))

# ---- what is built ---------------------------------------------------------------------------------------------------
# Shared by the library and the launcher: no constructor, nothing interposed.
CORE_SRCS := \
	preload/counters/event.c \
	preload/counters/event_auto.c \
	preload/counters/event_bind.c \
	preload/counters/event_check.c \
	preload/counters/event_modifier.c \
	preload/counters/event_names.c \
	preload/counters/event_plan.c \
	preload/counters/event_pmu.c \
	preload/counters/event_print.c \
	preload/counters/event_rate.c \
	preload/counters/event_trace.c \
	preload/counters/explain.c \
	preload/counters/explain_event.c \
	preload/counters/explain_mmap.c \
	preload/counters/explain_open.c \
	preload/counters/explain_rows.c \
	preload/counters/explain_system.c \
	preload/counters/explain_take.c \
	preload/counters/explain_target.c \
	preload/counters/filters.c \
	preload/counters/halt.c \
	preload/counters/nearest.c \
	preload/counters/persist.c \
	preload/counters/persist_folder.c \
	preload/counters/persist_start.c \
	preload/counters/pfm.c \
	preload/counters/pmc.c \
	preload/counters/pmc_target.c \
	preload/counters/reserve.c \
	preload/counters/reserve_agent.c \
	preload/counters/reserve_ask.c \
	preload/counters/reserve_pcp.c \
	preload/counters/reserve_probe.c \
	preload/counters/reserve_words.c \
	preload/counters/status.c \
	preload/counters/sysfs.c \
	preload/counters/targets.c \
	preload/timer/alarm.c \
	preload/timer/create.c \
	preload/timer/dispatch.c \
	preload/timer/fork.c \
	preload/timer/heap.c \
	preload/timer/queue.c \
	preload/inject/program_file.c \
	preload/record/output_path.c \
	preload/record/run_dir.c \
	preload/record/recording.c \
	preload/record/hash_index.c \
	preload/record/stacks.c \
	preload/sample/safe_load.c \
	preload/sample/cfi_close.c \
	preload/sample/cfi_find.c \
	preload/sample/cfi_op.c \
	preload/sample/cfi_program.c \
	preload/sample/cfi_expr.c \

# What else lives in the target: sampling, recording, interposed calls.
LIB_SRCS := \
	preload/counters/engine.c \
	preload/counters/engine_choose.c \
	preload/counters/engine_groups.c \
	preload/counters/engine_timer.c \
	preload/counters/fd_guard.c \
	preload/counters/group.c \
	preload/counters/switches.c \
	preload/inject/config.c \
	preload/inject/confine.c \
	preload/inject/env.c \
	preload/inject/exec.c \
	preload/inject/exit.c \
	preload/inject/filtered.c \
	preload/inject/finish.c \
	preload/inject/call_on_stack.c \
	preload/inject/fds.c \
	preload/inject/fork.c \
	preload/inject/held.c \
	preload/inject/libc.c \
	preload/inject/image.c \
	preload/inject/image_events.c \
	preload/inject/jumps.c \
	preload/inject/limits.c \
	preload/inject/loader.c \
	preload/inject/masks.c \
	preload/inject/plain.c \
	preload/inject/real.c \
	preload/inject/rights.c \
	preload/inject/seccomp_filter.c \
	preload/inject/sanitizer.c \
	preload/inject/shell.c \
	preload/inject/signals.c \
	preload/inject/signals_old.c \
	preload/inject/started.c \
	preload/inject/strangers.c \
	preload/inject/syscalls.c \
	preload/inject/threads.c \
	preload/inject/waits.c \
	preload/record/timeline.c \
	preload/sample/elf_symbol.c \
	preload/sample/housekeeping.c \
	preload/sample/modules.c \
	preload/sample/modules_scan.c \
	preload/sample/phases.c \
	preload/sample/private.c \
	preload/sample/process.c \
	preload/sample/sample.c \
	preload/sample/stuck.c \
	preload/sample/thread.c \
	preload/sample/unwind.c \
	preload/sample/weigh.c \
	preload/sample/unwind_fp.c \
	preload/sample/got_patch.c \
	preload/sample/unwind_libunwind.c \
	preload/sample/cfi_locate.c \
	preload/sample/cfi_row.c \
	preload/sample/cfi_step.c \
	preload/sample/code.c \
	preload/sample/walk_dwarf.c \
	preload/sample/walk_memo.c \
	preload/sample/walk_step.c \
	preload/sample/walk_untabled.c \

# What runs in signal handlers: objects that hold nothing else but requests of the same kind, and the functions that are
# entered there, also through pointers (OBJECT:FUNCTION for static ones). tests/cli/symbols.t holds both to their word.
HANDLER_OBJS := $(patsubst %.c,$(PLAIN)/obj/%.o, \
	preload/timer/alarm.c \
	preload/timer/dispatch.c \
	preload/timer/fork.c \
	preload/timer/heap.c \
	preload/timer/queue.c)
HANDLER_ROOTS := \
	signals:entry csink_walk_dwarf csink_walk_fp csink_walk_libunwind \
	housekeeping:drain housekeeping:refresh_modules housekeeping:count_interval \
	alarm:on_timer csink_timerq_run csink_timerq_next csink_timerq_setup csink_timerq_register csink_timerq_unregister \
	csink_timerq_block csink_timerq_unblock csink_timerq_isempty csink_timerq_misses csink_timerq_signal

LAUNCHER_SRCS := \
	launcher/main.c \
	launcher/commands.c \
	launcher/options.c \
	launcher/options_print.c \
	launcher/cmd_completion.c \
	launcher/cmd_help.c \
	launcher/cmd_run.c \
	launcher/run/alone.c \
	launcher/run/clocks.c \
	launcher/run/folder.c \
	launcher/run/inherited.c \
	launcher/run/leftovers.c \
	launcher/run/output.c \
	launcher/run/outside.c \
	launcher/run/proc.c \
	launcher/run/program.c \
	launcher/run/rate.c \
	launcher/run/relay.c \
	launcher/run/save.c \
	launcher/run/spawn.c \
	launcher/run/tree.c \
	launcher/run/tree_table.c \
	launcher/cmd_stat.c \
	launcher/stat/counters.c \
	launcher/stat/intervals.c \
	launcher/stat/machine.c \
	launcher/stat/metrics.c \
	launcher/stat/moments.c \
	launcher/stat/print.c \
	launcher/stat/threads.c \
	launcher/stat/threads_sum.c \
	launcher/cmd_gate.c \
	launcher/cmd_gate_settings.c \
	launcher/cmd_gate_tell.c \
	launcher/gate/baseline.c \
	launcher/gate/callgrind.c \
	launcher/gate/command.c \
	launcher/gate/data.c \
	launcher/gate/fingerprint.c \
	launcher/gate/functions.c \
	launcher/gate/judge.c \
	launcher/gate/judge_functions.c \
	launcher/gate/keep.c \
	launcher/gate/moves.c \
	launcher/gate/placement.c \
	launcher/gate/places.c \
	launcher/gate/print_json.c \
	launcher/gate/print_junit.c \
	launcher/gate/print_markdown.c \
	launcher/gate/print_tap.c \
	launcher/gate/rollup.c \
	launcher/gate/run.c \
	launcher/gate/series.c \
	launcher/gate/take.c \
	launcher/gate/turn.c \
	launcher/gate/words.c \
	launcher/gate/stats/bootstrap.c \
	launcher/gate/stats/permutation.c \
	launcher/gate/stats/power.c \
	launcher/gate/stats/random.c \
	launcher/gate/stats/wilcoxon.c \
	launcher/cmd_attach.c \
	launcher/attach/choose.c \
	launcher/attach/counters.c \
	launcher/attach/counts.c \
	launcher/attach/follow.c \
	launcher/attach/images.c \
	launcher/attach/images_proc.c \
	launcher/attach/objects.c \
	launcher/attach/print_json.c \
	launcher/attach/rings.c \
	launcher/attach/rows.c \
	launcher/attach/select.c \
	launcher/attach/target.c \
	launcher/attach/walk.c \
	launcher/cmd_report.c \
	launcher/cmd_diff.c \
	launcher/cmd_merge.c \
	launcher/cmd_persist.c \
	launcher/persist/events.c \
	launcher/persist/keeper.c \
	launcher/persist/listing.c \
	launcher/cmd_reserve.c \
	launcher/reserve/command.c \
	launcher/reserve/hooks.c \
	launcher/reserve/print.c \
	launcher/reserve/reservation.c \
	launcher/reserve/scan.c \
	launcher/reserve/status.c \
	launcher/cmd_doctor.c \
	launcher/cmd_events.c \
	launcher/doctor/doctor.c \
	launcher/doctor/engine.c \
	launcher/doctor/group.c \
	launcher/doctor/holders.c \
	launcher/doctor/limits.c \
	launcher/doctor/pmu.c \
	launcher/doctor/rights.c \
	launcher/events/catalog.c \
	launcher/cmd_export.c \
	launcher/output/calltree.c \
	launcher/output/calltree_order.c \
	launcher/output/export.c \
	launcher/output/export_callgrind.c \
	launcher/output/export_firefox.c \
	launcher/output/export_folded.c \
	launcher/output/export_perf.c \
	launcher/output/export_perf_file.c \
	launcher/output/export_speedscope.c \
	launcher/output/html.c \
	launcher/output/html_data.c \
	launcher/output/threads.c \
	launcher/output/annotate.c \
	launcher/output/diff_print.c \
	launcher/output/json.c \
	launcher/output/folded_read.c \
	launcher/output/format.c \
	launcher/output/pprof_parts.c \
	launcher/output/pprof_read.c \
	launcher/output/pprof_unpack.c \
	launcher/output/pprof_wire.c \
	launcher/output/pprof_write.c \
	launcher/output/open.c \
	launcher/output/pager.c \
	launcher/output/progress.c \
	launcher/output/report.c \
	launcher/output/report_head.c \
	launcher/output/report_machine.c \
	launcher/output/report_rows.c \
	launcher/output/report_table.c \
	launcher/output/report_tree.c \
	launcher/profile/collect.c \
	launcher/profile/collect_account.c \
	launcher/profile/collect_facts.c \
	launcher/profile/collect_frames.c \
	launcher/profile/collect_list.c \
	launcher/profile/collect_said.c \
	launcher/profile/collect_samples.c \
	launcher/profile/collect_symbols.c \
	launcher/profile/epochs.c \
	launcher/profile/annotate.c \
	launcher/profile/derived.c \
	launcher/profile/diff.c \
	launcher/profile/filter.c \
	launcher/profile/merge.c \
	launcher/profile/merge_facts.c \
	launcher/profile/merge_order.c \
	launcher/profile/merge_rank.c \
	launcher/profile/perfmap.c \
	launcher/profile/pick.c \
	launcher/profile/tree.c \
	launcher/profile/profile.c \
	launcher/profile/profile_facts.c \
	launcher/profile/profile_samples.c \
	launcher/profile/recording_read.c \
	launcher/profile/recording_refs.c \
	launcher/profile/recording_walk.c \
	launcher/profile/rows.c \
	launcher/profile/symbols.c \
	launcher/profile/symbols_cache.c \
	launcher/profile/symbols_dwarf.c \
	launcher/profile/symbols_elf.c \
	launcher/profile/roots.c \
	launcher/profile/symbols_fetch.c \
	launcher/profile/symbols_functions.c \
	launcher/profile/symbols_lines.c \
	launcher/profile/symbols_entries.c \
	launcher/profile/symbols_name.c \
	launcher/profile/symbols_scan.c \
	launcher/profile/symbols_units.c \

# The page of export's html: put together by assemble, and embedded.
PAGE_SCRIPTS := $(addprefix launcher/output/html/,format.js colors.js model.js flame.js timeline.js table.js threads.js \
	views.js app.js)
PAGE_PARTS := launcher/output/html/assemble launcher/output/html/page.html launcher/output/html/style.css $(PAGE_SCRIPTS)

# tests/unit/test_NAME.c, each a TAP program.
UNIT_TESTS := \
	event_times \
	export \
	attach_objects \
	record \
	options \
	output_path \
	outside \
	outside_program \
	recording \
	recording_collect \
	pprof \
	report \
	views \
	symbols_cache \
	symbols \
	symbols_lines \
	event \
	event_generic \
	event_plan \
	explain \
	explain_denied \
	explain_target \
	persist \
	persist_others \
	persist_many \
	safe_load \
	elf_symbol \
	status \
	stuck \
	pmc \
	pmc_errors \
	halt \
	reserve \
	timerq \
	timerq_armed \
	timerq_handler \
	timerq_process \
	timerq_threads \
	unwind \
	cfi \
	unwind_signals \
	unwind_untabled \
	unwind_lies \
	unwind_rows \
	gate_stats \
	gate_fingerprint \
	gate_judge \
	gate_moves \
	gate_placement \
	gate_places \

# tests/cli/NAME.t, each a TAP script; they see BUILD (the tree) in the environment.
CLI_TESTS := \
	export \
	attach \
	attach_refused \
	report \
	report_views \
	diff \
	merge \
	readers \
	debug_files \
	phases \
	doctor \
	events \
	stat \
	events_run \
	errnos \
	persist \
	relay \
	reserve \
	status \
	totals \
	static \
	follow \
	killed \
	leftovers \
	caged \
	security \
	run \
	output \
	cli \
	demo \
	install \
	programs \
	programs_denied \
	programs_unchanged \
	programs_unprivileged \
	readme \
	gate \
	gate_baseline \
	gate_ci \
	handler \
	symbols \
	loader \
	off_cpu \
	threads \
	stacks \

# The same, but nothing else may run: they use up what all processes of a user share.
LONE_CLI_TESTS := \
	exhausted \

# tests/targets/NAME.c, .cc or .rs: programs that are profiled.
TARGETS := \
	hold_lock \
	hold_rings \
	static_cage \
	lineages \
	waits \
	inlines \
	deny_perf \
	siglog \
	static_spin \
	terminal \
	burn \
	crash \
	exec_chain \
	headless \
	faulty \
	exits \
	fdcheck \
	forks \
	rusage \
	rusty \
	shortthreads \
	signals \
	sigmask \
	sleepy \
	syscalls \
	threads8 \
	throwcc \
	deep \
	handler_shim.so \
	old_names.so \
	dlstorm \
	ends_together \
	blocked \
	manythreads \
	newstacks \
	unwind_mix \
	walk_ends \
	guest_fds \
	guest_ends \
	guest_loader \
	guest_memory \
	guest_perf \
	guest_processes \
	guest_rights \
	guest_seccomp \
	guest_signals \
	guest_stacks \
	guest_strangers \
	guest_waits \
	guest_watch \
	gate_work \
	phases \
	soak \
	slow_start.so \
	guest_names \

# tests/bench/NAME.c: what the benchmarks run.
BENCHES := \
	floor \
	frames \
	measure \
	signal_floor.so \
	startcost.so \
	threadcost \
	walk_bench \

# tests/pmu/test_NAME.c, TAP programs for a machine that has hardware counters: the emulated one of tests/pmu/boot.
PMU_TESTS := \
	counts \
	offline \
	sampling \
	walker \

# Scripts in tests/pmu, unit tests and targets that the same machine runs.
PMU_SCRIPTS := \
	run.sh \
	stat.sh \
	bare.sh \
	hybrid.sh \

PMU_UNIT_TESTS := \
	cfi \
	event_generic \
	record \
	recording \
	recording_collect \
	safe_load \

PMU_TARGETS := \
	burn \
	deep \
	faulty \
	hog \
	shares \
	wander \

PUBLIC_HEADERS := $(wildcard include/countersink.h include/countersink/*.h)
MAN_PAGES := $(wildcard launcher/man/*.1)

# ---- how -------------------------------------------------------------------------------------------------------------
WARN     := -Wall -Wextra -Wmissing-prototypes -Wstrict-prototypes -Wshadow -Wpointer-arith -Wvla -Wundef
OPT      ?= -O2 -g
BASE_CFLAGS := -std=gnu11 $(OPT) $(WARN) -fno-strict-aliasing -D_GNU_SOURCE -Iinclude -I.
SAN_CFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
PIC_CFLAGS  := -fPIC -fvisibility=hidden -ftls-model=initial-exec
LAUNCHER_PKGS := libdw libelf zlib
# Asked for only when something is compiled with them, so that `make help` works on a bare machine.
LAUNCHER_CFLAGS = $(shell $(PKG_CONFIG) --cflags $(LAUNCHER_PKGS))
LAUNCHER_LIBS   = $(shell $(PKG_CONFIG) --libs $(LAUNCHER_PKGS)) -liberty -lm
LIB_LIBS := -ldl -lpthread
LIB_LDFLAGS := -shared -Wl,-soname,libcountersink.so -Wl,--version-script,preload/libcountersink.map \
	-Wl,-z,defs -Wl,-z,now -Wl,-z,relro -Wl,--sort-section=name

obj = $(patsubst %.c,$(B)/obj/%.o,$(1))
CORE_OBJS := $(call obj,$(CORE_SRCS))
LIB_OBJS := $(call obj,$(LIB_SRCS))
LAUNCHER_OBJS := $(call obj,$(LAUNCHER_SRCS)) $(B)/obj/launcher/output/html_page.o
# The library is injected into foreign programs, which cannot take a sanitizer's runtime in the middle of their lives:
# it is always made of plain objects. A sanitized tree has sanitized ones beside them, for the launcher and unit tests.
# What few programs ever call comes last in it, so that a program's start touches fewer pages of code.
SO_LAST := $(addprefix preload/,$(addsuffix .c,counters/event_% counters/explain% counters/halt counters/nearest \
	counters/persist% counters/pfm counters/pmc% counters/reserve% counters/sysfs counters/targets inject/held \
	inject/program_file inject/seccomp_filter inject/shell inject/started inject/waits sample/unwind_libunwind))
SO_SRCS := $(filter-out $(SO_LAST),$(CORE_SRCS) $(LIB_SRCS)) $(filter $(SO_LAST),$(CORE_SRCS) $(LIB_SRCS))
SO_OBJS := $(SO_SRCS:%.c=$(PLAIN)/obj/%.o)
# Unit tests link everything but the launcher's main and what interposes.
TESTED_OBJS := $(filter-out $(B)/obj/launcher/main.o $(filter $(B)/obj/preload/inject/%,$(LIB_OBJS)), \
	$(CORE_OBJS) $(LIB_OBJS) $(LAUNCHER_OBJS))
UNIT_BINS := $(UNIT_TESTS:%=$(B)/tests/unit/test_%)
TARGET_BINS := $(addprefix $(B)/tests/targets/,$(TARGETS))
BENCH_BINS := $(addprefix $(B)/tests/bench/,$(BENCHES))

.PHONY: all
all: $(B)/bin/countersink $(B)/lib/libcountersink.so ## build the launcher and the library (the default)

# $(call preload_rules,TREE,FLAGS): the tree's flags stamp, whose change rebuilds, and its preload objects.
define preload_rules
$(1)/flags: FORCE
	@mkdir -p $$(@D)
	@echo '$$(CC) $$(BASE_CFLAGS) $$(PIC_CFLAGS) $(2) $$(CPPFLAGS) $$(CFLAGS) $$(LDFLAGS)' | cmp -s - $$@ || \
		echo '$$(CC) $$(BASE_CFLAGS) $$(PIC_CFLAGS) $(2) $$(CPPFLAGS) $$(CFLAGS) $$(LDFLAGS)' > $$@

$(1)/obj/preload/%.o: preload/%.c $(1)/flags
	@mkdir -p $$(@D)
	$$(CC) $$(BASE_CFLAGS) $$(PIC_CFLAGS) $(2) -MMD -MP $$(CPPFLAGS) $$(CFLAGS) -c -o $$@ $$<
endef
$(eval $(call preload_rules,$(PLAIN),))
ifneq ($(SAN),)
$(eval $(call preload_rules,$(B),$(SAN_CFLAGS)))
endif
.PHONY: FORCE
FORCE:

$(B)/obj/launcher/%.o: launcher/%.c $(B)/flags
	@mkdir -p $(@D)
	$(CC) $(BASE_CFLAGS) $(SAN_CFLAGS) $(LAUNCHER_CFLAGS) -MMD -MP $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

$(B)/page/html_head.html: $(PAGE_PARTS)
	@mkdir -p $(@D)
	launcher/output/html/assemble $@ $(@D)/html_tail.html $(PAGE_SCRIPTS)

$(B)/obj/launcher/output/html_page.o: launcher/output/html_page.S $(B)/page/html_head.html
	@mkdir -p $(@D)
	$(CC) -c -Wa,-I$(B)/page -o $@ $<

$(B)/lib/libcountersink.so: $(SO_OBJS) preload/libcountersink.map
	@mkdir -p $(@D)
	$(CC) $(BASE_CFLAGS) $(CFLAGS) $(LIB_LDFLAGS) $(LDFLAGS) -o $@ $(SO_OBJS) $(LIB_LIBS)

$(B)/bin/countersink: $(LAUNCHER_OBJS) $(CORE_OBJS)
	@mkdir -p $(@D)
	$(CC) $(BASE_CFLAGS) $(SAN_CFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(LAUNCHER_OBJS) $(CORE_OBJS) $(LAUNCHER_LIBS) $(LIB_LIBS)

-include $(SO_OBJS:.o=.d) $(CORE_OBJS:.o=.d) $(LIB_OBJS:.o=.d) $(LAUNCHER_OBJS:.o=.d) $(UNIT_BINS:=.d) \
	$(TARGET_BINS:=.d) $(BENCH_BINS:=.d)

# ---- what people call ------------------------------------------------------------------------------------------------
include tests/rules.mk

.PHONY: demo
demo: all ## profile a pipeline of real programs and print the report
	@echo '$$ countersink -o $(B)/demo.pb.gz -- scripts/demo-work $(B)/demo.xz'
	@$(B)/bin/countersink -o $(B)/demo.pb.gz -- scripts/demo-work $(B)/demo.xz
	@echo 'The profile is $(B)/demo.pb.gz; see it again: $(B)/bin/countersink report $(B)/demo.pb.gz'

.PHONY: lint
lint: ## check the format of the sources, and the scripts
	@status=0; clang-format --dry-run -Werror $$(git ls-files '*.c' '*.h' '*.cc') || status=1; \
	shellcheck -S warning $$(git grep -lE '^#!(/usr)?/bin/(env )?(ba)?sh' -- scripts .ci tests) || status=1; exit $$status

# One line a source, for editors; the flags are those that the rules above use.
define command_json
{"directory": "$(CURDIR)", "file": "$(1)", "command": "$(CC) $(BASE_CFLAGS) $(2) $(CPPFLAGS) $(CFLAGS) -c $(1)"}
endef
compile_commands.json: Makefile ## write the compilation database for editors
	@{ sep='['; \
	$(foreach src,$(CORE_SRCS) $(LIB_SRCS),printf '%s\n%s' "$$sep" '$(call command_json,$(src),$(PIC_CFLAGS))'; sep=,;) \
	$(foreach src,$(LAUNCHER_SRCS) $(UNIT_TESTS:%=tests/unit/test_%.c),printf '%s\n%s' "$$sep" \
		'$(call command_json,$(src),$(LAUNCHER_CFLAGS))'; sep=,;) \
	printf '\n]\n'; } > $@

.PHONY: install uninstall
DATADIR ?= $(PREFIX)/share
# The launcher writes its own completion.
COMPLETIONS = bash:bash-completion/completions/countersink zsh:zsh/site-functions/_countersink \
	fish:fish/vendor_completions.d/countersink.fish
completion_file = $(DATADIR)/$(lastword $(subst :, ,$(1)))
INSTALLED = $(foreach c,$(COMPLETIONS),$(call completion_file,$(c))) \
	$(BINDIR)/countersink $(LIBDIR)/libcountersink.so $(PUBLIC_HEADERS:include/%=$(INCLUDEDIR)/%) \
	$(MAN_PAGES:launcher/man/%=$(MANDIR)/man1/%)
# The two find each other by their places: ../lib or ../lib64 from the launcher, ../bin from the library.
LIBDIRS = $(addprefix $(patsubst %/,%,$(dir $(BINDIR))),/lib /lib64)
install: all ## install under PREFIX (/usr/local), LIBDIR and the like; DESTDIR is put in front
	@$(if $(filter $(LIBDIR),$(LIBDIRS)),:,echo 'LIBDIR must be one of $(LIBDIRS), beside BINDIR, not $(LIBDIR)' >&2; exit 1)
	$(INSTALL) -D -m 755 $(B)/bin/countersink $(DESTDIR)$(BINDIR)/countersink
	$(INSTALL) -D -m 644 $(B)/lib/libcountersink.so $(DESTDIR)$(LIBDIR)/libcountersink.so
	$(foreach header,$(PUBLIC_HEADERS),$(INSTALL) -D -m 644 $(header) \
		$(DESTDIR)$(header:include/%=$(INCLUDEDIR)/%)$(newline))
	$(foreach page,$(MAN_PAGES),$(INSTALL) -D -m 644 $(page) $(DESTDIR)$(MANDIR)/man1/$(notdir $(page))$(newline))
	$(foreach c,$(COMPLETIONS),@mkdir -p $(DESTDIR)$(dir $(call completion_file,$(c))) && \
		$(B)/bin/countersink completion $(firstword $(subst :, ,$(c))) >$(DESTDIR)$(call completion_file,$(c))$(newline))

uninstall: ## remove what install put there
	rm -f $(addprefix $(DESTDIR),$(INSTALLED))
	-rmdir $(DESTDIR)$(INCLUDEDIR)/countersink 2>/dev/null

.PHONY: clean
clean: ## remove what was built
	rm -rf build build-* compile_commands.json

.PHONY: help
help: ## this list
	@echo 'countersink $(VERSION)'; sed -n 's/^\([a-z_.-]*\):.*## \(.*\)/\1|\2/p' Makefile tests/rules.mk | sort | \
		awk -F'|' '{ printf "  make %-22s %s\n", $$1, $$2 }'

define newline


endef
