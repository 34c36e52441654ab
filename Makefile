# countersink. `make help` lists the targets. Nothing here is recursive. tests/rules.mk builds and runs the tests.
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
# EMULATOR: what runs a program of that machine here, for the completions that are installed (qemu-aarch64 -L /usr/aarch64-linux-gnu).
EMULATOR ?=
ifneq ($(CROSS),)
CC      := $(CROSS)gcc
CXX     := $(CROSS)g++
AR      := $(CROSS)ar
OBJCOPY := $(CROSS)objcopy
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
OBJCOPY ?= objcopy
PKG_CONFIG ?= pkg-config
INSTALL ?= install
RUSTC   ?= rustc
# SAN=address,undefined builds with sanitizers, into a tree of its own; SAN=coverage with counters for gcov.
SAN     ?=
comma   := ,
PLAIN   := build$(if $(CROSS),-$(firstword $(subst -, ,$(CROSS))))
B       := $(PLAIN)$(if $(SAN),-$(subst $(comma),-,$(SAN)))

# ---- what is built ---------------------------------------------------------------------------------------------------
# Sources and tests are taken by wildcard; what is named here is an exception. tests/cli/files.t fails on a file that no
# list and no rule takes.
sources = $(sort $(foreach at,$(1),$(wildcard $(at)/*.c)))
PRELOAD_SRCS := $(call sources,$(addprefix preload/,agent/* api api/* core core/*))

# What lives in the program only: interposed calls, sampling, unwinding.
AGENT_SRCS := $(filter preload/agent/%,$(PRELOAD_SRCS))

# The C API, which the launcher uses, too; and what API, agent and launcher share. No constructor, nothing interposed.
API_SRCS := $(filter preload/api/%,$(PRELOAD_SRCS))
CORE_SRCS := $(filter preload/core/%,$(PRELOAD_SRCS))

# What runs in signal handlers: objects that hold nothing else but requests of the same kind, and the functions that are
# entered there, also through pointers (OBJECT:FUNCTION for static ones). tests/cli/symbols.t holds both to their word.
HANDLER_OBJS := $(patsubst %.c,$(PLAIN)/obj/%.o,$(filter-out preload/core/timer/create.c,$(filter preload/core/timer/%,$(PRELOAD_SRCS))))
HANDLER_ROOTS := \
	csink_signal_entry bus_guard:on_bus csink_walk_dwarf csink_walk_fp \
	interp:on_module python:find python:walk_python python:describe python:names \
	php:find php:walk_php php:describe php:names perl:find perl:walk_perl perl:describe perl:names \
	ruby:find ruby:walk_ruby ruby:describe ruby:names v8:find v8:walk_v8 v8:describe v8:names \
	hotspot:find hotspot:walk_hotspot hotspot:describe hotspot:method_names hotspot:blob_names csink_hotspot_step \
	housekeeping:emit_due housekeeping:govern csink_fd_guard_enter csink_fd_guard_leave \
	alarm:on_timer alarm:ready alarm:set timer_fork:adopt csink_timerq_run csink_timerq_next csink_timerq_setup csink_timerq_register csink_timerq_unregister \
	csink_timerq_block csink_timerq_unblock csink_timerq_isempty csink_timerq_misses csink_timerq_signal

# A plugin for qemu-user, which counts instructions for the gate.
PLUGIN_SRCS := $(call sources,preload/qemu)
PLUGIN := countersink/qemu_count.so

# What `-e alloc` and `-e lock` preload beside the agent, before all other libraries.
OBJECTS := alloc lock
object_srcs = $(call sources,preload/$(1) preload/objects)
OBJECT_SRCS := $(sort $(foreach object,$(OBJECTS),$(call object_srcs,$(object))))
OBJECT_LIBS := $(OBJECTS:%=countersink/libcountersink-%.so)

# countersink-send is a program of its own, of the launcher's objects that it needs and libcurl.
SEND_SRCS := $(call sources,launcher/send)
LAUNCHER_SRCS := $(filter-out $(SEND_SRCS),$(call sources,launcher launcher/* launcher/*/*))

# The pages of export's html and of history: put together by assemble, and embedded.
PAGE_PARTS := $(addprefix launcher/output/html/,frame.html base.css elements.js)
HTML_PARTS := $(addprefix launcher/output/html/,page.html style.css format.js colors.js model.js flame.js timeline.js \
	table.js threads.js views.js app.js)
HISTORY_PARTS := $(addprefix launcher/commands/history/page/,history_page.html history_style.css history.js)

# tests/unit/test_NAME.c, each a TAP program.
UNIT_TESTS := $(patsubst tests/unit/test_%.c,%,$(call sources,tests/unit))

# tests/cli/NAME.t, each a TAP script; they see BUILD (the tree) in the environment. While one of LONE_CLI_TESTS runs,
# nothing else may: they use up what all processes of a user share, or measure time. The slow ones (over ten seconds, or
# over thirty of CPU time) make a tier of their own, so that `make check` stays short.
LONE_CLI_TESTS := exhausted
SLOW_LONE_CLI_TESTS := gate gate_baseline gate_suite gate_suite_hyperfine
SUITES_CLI_TESTS := gate_suite_catch2 gate_suite_criterion gate_suite_node gate_suite_pytest
# prove starts them in this order: the longest first, so that no processor has nothing to do at the end.
SLOW_CLI_TESTS := frames_java attach_frames frames_languages gate_suite_deterministic frames_async rotate reserve gate_bisect frames \
	gate_deterministic gate_ci outside frames_v8 frames_go caged ci_action damaged attach hardened programs_denied programs_unprivileged \
	made_pythons keep spool send
SLOW_UNIT_TESTS := persist_hostile recording_damaged
CLI_TESTS := $(filter-out $(LONE_CLI_TESTS) $(SLOW_CLI_TESTS) $(SLOW_LONE_CLI_TESTS) $(SUITES_CLI_TESTS),$(patsubst tests/cli/%.t,%,$(sort $(wildcard tests/cli/*.t))))

# tests/targets/NAME.c, .cc or .rs: programs that are profiled, but for objects that are loaded. guest_plug is built under
# other names (tests/rules.mk).
TARGET_OBJECTS := go_part handler_shim like_python old_names other_versions own_realloc send_shim slow_malloc slow_start
TARGETS := $(addsuffix .so,$(TARGET_OBJECTS)) $(filter-out $(TARGET_OBJECTS) guest_plug, \
	$(basename $(notdir $(sort $(wildcard tests/targets/*.c tests/targets/*.cc tests/targets/*.rs)))))

# tests/bench/NAME.c: what the benchmarks run, programs or objects that are loaded. timerq has a rule of its own.
BENCH_OBJECTS := signal_floor startcost
BENCHES := $(addsuffix .so,$(BENCH_OBJECTS)) $(filter-out $(BENCH_OBJECTS) timerq%, \
	$(basename $(notdir $(call sources,tests/bench))))

# tests/pmu/test_NAME.c, TAP programs for a machine that has hardware counters: the emulated one of tests/pmu/boot.
PMU_TESTS := $(patsubst tests/pmu/test_%.c,%,$(filter tests/pmu/test_%,$(call sources,tests/pmu)))

# Scripts, unit tests and targets that the same machine runs.
PMU_SCRIPTS := $(notdir $(sort $(wildcard tests/pmu/*.sh)))
PMU_UNIT_TESTS := cfi event_generic record recording recording_collect recording_outside safe_load
PMU_OWN_TARGETS := cases hog look_up shares wander
PMU_TARGETS := burn deep faulty $(PMU_OWN_TARGETS)

# Unit tests whose answers are the kernel's: tests/kernels runs them on others.
KERNEL_UNIT_TESTS := attach_objects attach_rings event event_generic event_plan event_times explain explain_denied explain_target \
	outside outside_program persist persist_many persist_others pmc pmc_errors pmc_self record recording recording_collect \
	recording_map recording_outside reserve

# Our entry in LD_PRELOAD names a directory per machine, in the kernel's words (preload/core/preload_entry.h): in those
# of our own is a link to the library, in others' a stub for the word size, machine and flags (preload/stub/stub.c).
ENTRY_NAMES_x86_64  := x86_64 haswell xeon_phi
ENTRY_NAMES_aarch64 := aarch64
ENTRY_NAMES_386     := i386 i486 i586 i686
ENTRY_NAMES_arm     := v6l v7l v8l
STUB_x86_64  := -DSTUB_BITS=64 -DSTUB_MACHINE=EM_X86_64 -DSTUB_FLAGS=0
STUB_aarch64 := -DSTUB_BITS=64 -DSTUB_MACHINE=EM_AARCH64 -DSTUB_FLAGS=0
STUB_386     := -DSTUB_BITS=32 -DSTUB_MACHINE=EM_386 -DSTUB_FLAGS=0
STUB_arm     := -DSTUB_BITS=32 -DSTUB_MACHINE=EM_ARM -DSTUB_FLAGS=EF_ARM_EABI_VER5
MACHINE      := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))
STUBS        := $(filter-out $(MACHINE),x86_64 aarch64 386 arm)
entry_files   = $(foreach machine,$(1),$(ENTRY_NAMES_$(machine):%=countersink/%/libcountersink.so))
# A shell that evaluates the entry once more knows no $PLATFORM, and leaves nothing in its place.
ENTRY_LINKS  := $(call entry_files,$(MACHINE)) countersink/libcountersink.so
# The same for the preload objects; in a stub's place is the stub.
object_files  = $(foreach machine,$(1),$(foreach object,$(OBJECTS),$(ENTRY_NAMES_$(machine):%=countersink/%/libcountersink-$(object).so)))
OBJECT_LINKS := $(call object_files,$(MACHINE) $(STUBS))
object_target = $(if $(filter $(call object_files,$(MACHINE)),$(1)),../$(notdir $(1)),libcountersink.so)
entry_target  = $(if $(filter countersink/libcountersink.so,$(1)),..,../..)/libcountersink.so
ENTRY_STUBS  := $(call entry_files,$(STUBS))
PUBLIC_HEADERS := $(wildcard include/countersink.h include/countersink/*.h)
MAN_PAGES := $(wildcard launcher/man/*.[1357])
# Where a manual page goes: man1/countersink.1 for launcher/man/countersink.1.
man_place = man$(patsubst .%,%,$(suffix $(1)))/$(notdir $(1))

# ---- how -------------------------------------------------------------------------------------------------------------
WARN     := -Wall -Wextra -Wmissing-prototypes -Wstrict-prototypes -Wshadow -Wpointer-arith -Wvla -Wundef -Wformat=2
OPT      ?= -O2 -g
# Debug information names sources from the top of the tree, so that the same bytes are built in any directory. PWD is how
# the compiler names that, by symbolic links, too; the recipe's shell has it, with blanks and quotes.
BASE_CFLAGS := -std=gnu11 $(OPT) -ffile-prefix-map="$$PWD"=. $(WARN) -fno-strict-aliasing -D_GNU_SOURCE -Iinclude -I.
# Sanitized, the same is compiled in half the time with -O1 -g1; reports have functions, files and lines as before. What there is to
# warn of, plain objects are compiled with warnings for.
COVERAGE := $(if $(filter coverage,$(SAN)),--coverage)
SAN_CFLAGS := $(if $(COVERAGE),--coverage -fprofile-update=atomic -O1,$(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer -O1 -g1 -w))
# Calls that code in a guest must not make: the compiler refuses them.
agent_cflags = $(if $(filter preload/agent/%,$(1)),-include preload/agent/poison.h)
PIC_CFLAGS  := -fPIC -fvisibility=hidden -ftls-model=initial-exec
# Behind the user's flags, for code that runs in programs. With _FORTIFY_SOURCE (a package's usual flags, some compilers'
# default) headers replace libc's functions by inline ones under the same names, which the agent itself defines, and by
# __NAME_chk of libc, which a program's libraries may interpose and which end the program with a message. With -flto the
# places of functions are the linker's choice (SO_COLD), and those that only assembly calls are lost.
PLAIN_CFLAGS := -U_FORTIFY_SOURCE -fno-lto
plain_cflags = $(if $(filter preload/api/%,$(1)),,$(PLAIN_CFLAGS))
# The launcher reads files and memory of others: what compiler and linker can check there, they do. A package's or user's
# _FORTIFY_SOURCE stays what it is; without optimisation, and beside sanitizers, which check the same, it does nothing.
# Moves that overlap: launcher/base/move.h.
# Branch protection is the launcher's only: in the agent an endbr64 at each function that is called by address takes
# 2,459 bytes of its 262,144 (x86-64, gcc 12), and what is not marked as a whole has no protection. So the
# launcher's files are marked, and the launcher is where the linker finds the same in the C library's start files.
FORTIFY_LEVEL = $(if $(shell echo 'unsigned long n(char *s) { return __builtin_dynamic_object_size(s, 0); }' | \
	$(CC) -w -Werror=implicit-function-declaration -fsyntax-only -xc - 2>/dev/null && echo yes),3,2)
IS_FORTIFIED = $(and $(filter-out -O0 -Og,$(filter -O%,$(OPT) $(CFLAGS))),$(if $(SAN)$(filter -O0,$(CFLAGS))$(findstring _FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS)),,yes))
FORTIFY_CFLAGS := $(if $(IS_FORTIFIED),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$(FORTIFY_LEVEL))
BRANCH_CFLAGS := $(if $(filter x86_64,$(MACHINE)),-fcf-protection=full,$(if $(filter aarch64,$(MACHINE)),-mbranch-protection=standard))
HARDEN_CFLAGS := -fPIE -fstack-protector-strong -fstack-clash-protection $(BRANCH_CFLAGS) $(FORTIFY_CFLAGS)
HARDEN_LDFLAGS = $(if $(STATIC),-no-pie,-pie) -Wl,-z,now -Wl,-z,relro
LAUNCHER_PKGS := libdw libelf zlib libunwind-generic
# $(call once,VARIABLE,COMMAND): asked for only when something is compiled with it, so that `make help` works on a bare machine;
# and then once.
once = $(eval $(1) := $$(shell $(2)))$($(1))
LAUNCHER_CFLAGS = $(call once,LAUNCHER_CFLAGS,$(PKG_CONFIG) --cflags $(LAUNCHER_PKGS))
# STATIC=1 links the launcher's libraries into it, but libc's: it runs where only these are. The linker's map names them.
# Distributions' libunwind.a is not position-independent, so that such a launcher is not, either.
STATIC ?=
DYNAMIC_LAUNCHER_PKG_LIBS = $(call once,DYNAMIC_LAUNCHER_PKG_LIBS,$(PKG_CONFIG) --libs $(LAUNCHER_PKGS))
DYNAMIC_LAUNCHER_LIBS = $(DYNAMIC_LAUNCHER_PKG_LIBS) -liberty -lm
STATIC_LAUNCHER_LIBS = -Wl,-Map,$(B)/launcher.map -Wl,-Bstatic \
	$(filter-out -pthread -lpthread -ldl -lm,$(shell $(PKG_CONFIG) --static --libs $(LAUNCHER_PKGS))) -liberty -Wl,-Bdynamic -lm
STATIC_CFLAGS := $(if $(STATIC),-include scripts/packaging/old_glibc.h)
LAUNCHER_LIBS = $(if $(STATIC),$(STATIC_LAUNCHER_LIBS),$(DYNAMIC_LAUNCHER_LIBS))
SEND_PKGS := libcurl zlib
SEND_LIBS = $(shell $(PKG_CONFIG) --libs $(SEND_PKGS))
# Where libcurl's headers are absent, or older than CURLOPT_PROTOCOLS_STR, countersink-send is left out.
HAS_CURL := $(shell $(PKG_CONFIG) --exists 'libcurl >= 7.85.0' 2>/dev/null && echo yes)
SEND_BIN := $(if $(HAS_CURL),countersink-send)
LIB_LIBS := -ldl -lpthread -lrt
# Of the core, what a library does not use is left out.
LIB_LDFLAGS := -shared -Wl,-z,defs -Wl,-z,now -Wl,-z,relro -Wl,--gc-sections
AGENT_LDFLAGS := $(LIB_LDFLAGS) -Wl,-soname,libcountersink.so -Wl,--version-script,preload/agent/libcountersink.map \
	-Wl,--sort-section=name -Wl,-z,noseparate-code -Wl,-z,nodelete
API_LIB := libcountersink-api.so.$(VERSION)
API_SONAME := libcountersink-api.so.$(firstword $(subst ., ,$(VERSION)))
API_LINKS := $(API_SONAME) libcountersink-api.so
API_LDFLAGS := $(LIB_LDFLAGS) -Wl,-soname,$(API_SONAME) -Wl,--version-script,preload/api/libcountersink-api.map

obj = $(patsubst %.c,$(B)/obj/%.o,$(1))
CORE_OBJS := $(call obj,$(CORE_SRCS) $(API_SRCS))
AGENT_OBJS := $(call obj,$(AGENT_SRCS))
LAUNCHER_OBJS := $(call obj,$(LAUNCHER_SRCS)) $(B)/obj/launcher/output/html_pages.o \
	$(B)/obj/launcher/commands/completion/completion_text.o $(B)/obj/launcher/gate/suite/modules.o
# The agent is injected into foreign programs, which cannot take a sanitizer's runtime in the middle of their lives: the
# libraries are always made of plain objects, but for the agent's with gcov's counters. A sanitized tree has sanitized ones beside them,
# for the launcher and unit tests.
# Code that programs never or rarely call is placed last, so that a program's start touches fewer pages of code. (The
# linker sorts sections by name: .text.FUNCTION comes behind .text.)
SO_COLD := $(addprefix preload/,$(addsuffix .c, \
	core/attr_size core/elf_symbol core/libc_version core/nearest core/own_fd core/perf_system core/preload_entry \
	core/program_file core/python_layout core/seccomp_probe core/status core/sysfs core/text_char core/timer/create core/timer/dispatch core/timer/heap core/timer/queue core/timer/timer_fork \
	core/event/event_rate core/event/event_read core/event/event_spec core/record/output_path core/record/run_dir \
	agent/interp/ruby agent/interpose/confine agent/interpose/credentials agent/interpose/exec agent/interpose/limit_calls \
	agent/interpose/loader \
	agent/interpose/memory_lock agent/interpose/shell agent/interpose/waits \
	agent/lifecycle/config agent/lifecycle/event_choice agent/lifecycle/filtered agent/lifecycle/finish agent/lifecycle/handover \
	agent/lifecycle/image_events agent/lifecycle/killed_runs \
	agent/lifecycle/own_run agent/lifecycle/pending_signals agent/lifecycle/seccomp_filter agent/lifecycle/started \
	agent/lifecycle/untracked_threads agent/sampler/engine_choose agent/sampler/stuck agent/unwind/got_patch \
	agent/unwind/go_frames agent/unwind/go_module core/go_rule core/go_table core/go_inlines \
	agent/unwind/jit_list agent/unwind/jit_ranges agent/unwind/jit_symbol agent/unwind/jit_tables core/jit_image))
SO_SRCS := $(CORE_SRCS) $(AGENT_SRCS)
# What most samples run through is optimised for speed, all other code for size.
SO_HOT := $(addprefix preload/,$(addsuffix .c, \
	core/safe_load core/record/hash_index core/record/stacks agent/interp/code_ids agent/interp/interp agent/interp/python \
	agent/lifecycle/plain agent/lifecycle/signal_entry \
	agent/sampler/group agent/sampler/sample agent/sampler/weigh \
	agent/unwind/cfi_row agent/unwind/modules agent/unwind/unwind_fp \
	agent/unwind/walk_dwarf agent/unwind/walk_memo agent/unwind/walk_step))
# What runs in our signal handlers alone, under their mask; the languages and the readers of just-in-time compilers' lists
# also look at modules that are new at fork, exec or exit, and interp.c and jit_list.c begin at start and fork, while the
# thread takes no samples. It calls nothing of the program's and waits for nothing, so that neither an exception nor a
# cancellation unwinds through it. Its unwind tables are for debuggers (.debug_frame), and take no memory in programs.
# tests/cli/symbols.t follows the calls.
HANDLER_ONLY := $(addprefix preload/,$(addsuffix .c, \
	core/cfi/cfi_close core/cfi/cfi_expr core/cfi/cfi_find core/cfi/cfi_op core/cfi/cfi_program core/cfi/cfi_read core/python_layout \
	core/go_rule \
	agent/interp/interp agent/interp/perl agent/interp/php agent/interp/python agent/interp/ruby \
	agent/interp/v8 agent/interp/v8_inlines agent/interp/v8_lines \
	agent/interp/hotspot agent/interp/hotspot_blobs agent/interp/hotspot_scopes agent/interp/hotspot_step agent/interp/hotspot_tables \
	agent/unwind/jit_tables \
	agent/sampler/stuck agent/sampler/timeline agent/sampler/weigh \
	agent/unwind/cfi_locate agent/unwind/cfi_row agent/unwind/cfi_step agent/unwind/code agent/unwind/find_object \
	agent/unwind/go_frames agent/unwind/jit_list agent/unwind/jit_ranges agent/unwind/jit_symbol agent/unwind/jit_tables core/jit_image \
	agent/unwind/unwind_fp agent/unwind/walk_dwarf agent/unwind/walk_memo agent/unwind/walk_step \
	agent/unwind/walk_untabled))
# What the constructor alone runs, before samples are taken, or mute (csink_engine_choose): no sample, exception or
# cancellation meets it. Without unwind tables, too; tests/cli/symbols.t follows the calls of a program, none of which
# leads there.
START_ONLY := $(addprefix preload/,$(addsuffix .c, \
	core/attr_size core/event/event_rate core/event/event_read core/event/event_spec \
	agent/lifecycle/config agent/lifecycle/event_choice agent/lifecycle/image_events agent/lifecycle/killed_runs \
	agent/sampler/engine_choose))
UNTABLED := $(HANDLER_ONLY) $(START_ONLY)
so_objs = $(sort $(patsubst %.c,$(PLAIN)/obj/%.o,$(1)) $(patsubst %.c,$(B)/obj/%.o,$(1)))
# gcc aligns arrays of 32 bytes and more to 32, for vector instructions: 400 bytes of the library were gaps between them.
SMALL_CFLAGS := $(if $(filter x86_64,$(MACHINE)),$(shell $(CC) -malign-data=abi -fsyntax-only -xc /dev/null 2>/dev/null && echo -malign-data=abi))
# Branch targets and functions need no alignment: as fast, and smaller.
SPEED_CFLAGS := -falign-jumps=1 -falign-functions=1 $(SMALL_CFLAGS)
SIZE_CFLAGS := -Os $(SMALL_CFLAGS)
# Not -Oz: it moves constants by push and pop, and between the two the unwind tables are wrong, where a sample may be taken.
COLD_CFLAGS := -ffunction-sections -fdata-sections
$(call so_objs,$(filter-out $(SO_HOT),$(SO_SRCS))): PLACE_CFLAGS := $(SIZE_CFLAGS)
$(call so_objs,$(SO_HOT)): PLACE_CFLAGS := $(SPEED_CFLAGS)
$(call so_objs,$(SO_COLD)): PLACE_CFLAGS += $(COLD_CFLAGS)
UNTABLED_CFLAGS := -fno-asynchronous-unwind-tables
$(call so_objs,$(UNTABLED)): TABLE_CFLAGS := $(UNTABLED_CFLAGS)
# Part of the flags stamp: a file that changes places is compiled again.
PLACES := $(SIZE_CFLAGS) but $(SPEED_CFLAGS) $(SO_HOT), $(COLD_CFLAGS) $(SO_COLD), $(UNTABLED_CFLAGS) $(UNTABLED)

SO_OBJS := $(SO_SRCS:%.c=$(if $(COVERAGE),$(B),$(PLAIN))/obj/%.o)
API_OBJS := $(patsubst %.c,$(PLAIN)/obj/%.o,$(API_SRCS) $(CORE_SRCS))
# Unit tests link everything but the launcher's main and what interposes.
TESTED_OBJS := $(filter-out $(B)/obj/launcher/main.o $(filter $(B)/obj/preload/agent/interpose/% $(B)/obj/preload/agent/lifecycle/%,$(AGENT_OBJS)), \
	$(CORE_OBJS) $(AGENT_OBJS) $(LAUNCHER_OBJS)) $(B)/obj/preload/alloc/live.o
UNIT_BINS := $(UNIT_TESTS:%=$(B)/tests/unit/test_%)
SLOW_UNIT_BINS := $(SLOW_UNIT_TESTS:%=$(B)/tests/unit/test_%)
TARGET_BINS := $(addprefix $(B)/tests/targets/,$(TARGETS))
BENCH_BINS := $(addprefix $(B)/tests/bench/,$(BENCHES))

.PHONY: all
all: $(if $(SEND_BIN),$(B)/bin/$(SEND_BIN),without-send) $(B)/bin/countersink $(addprefix $(B)/lib/,libcountersink.so $(ENTRY_LINKS) $(ENTRY_STUBS) $(API_LIB) $(API_LINKS) \
		libcountersink-api.a $(PLUGIN) $(OBJECT_LIBS) $(OBJECT_LINKS)) ## build the launcher and the libraries (the default)

.PHONY: without-send
without-send:
	@echo 'countersink-send is not built: the headers of libcurl 7.85 or later are not here (scripts/install-deps installs them)'

# $(call preload_rules,TREE,FLAGS): the tree's flags stamp, whose change rebuilds, and its preload objects.
define preload_rules
$(1)/flags: FORCE
	@mkdir -p $$(@D)
	@flags='$$(CC) $$(BASE_CFLAGS) $$(PIC_CFLAGS) $$(HARDEN_CFLAGS) $(2) $$(CPPFLAGS) $$(CFLAGS) $$(PLAIN_CFLAGS) $$(LDFLAGS) $$(STATIC_CFLAGS) $$(PLACES)'; \
		echo "$$$$flags" | cmp -s - $$@ || echo "$$$$flags" > $$@

$(1)/obj/preload/%.o: preload/%.c $(1)/flags
	@mkdir -p $$(@D)
	$$(CC) $$(BASE_CFLAGS) $$(PIC_CFLAGS) $(2) $$(or $$(call agent_cflags,$$<),$$(STATIC_CFLAGS)) $$(PLACE_CFLAGS) $$(TABLE_CFLAGS) -MMD -MP $$(CPPFLAGS) $$(CFLAGS) \
		$$(call plain_cflags,$$<) -c -o $$@ $$<
endef
$(eval $(call preload_rules,$(PLAIN),))
ifneq ($(SAN),)
$(eval $(call preload_rules,$(B),$(SAN_CFLAGS)))
endif
.PHONY: FORCE
FORCE:

$(B)/obj/launcher/%.o: launcher/%.c $(B)/flags
	@mkdir -p $(@D)
	$(CC) $(BASE_CFLAGS) $(HARDEN_CFLAGS) $(SAN_CFLAGS) $(STATIC_CFLAGS) $(LAUNCHER_CFLAGS) -MMD -MP $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

$(B)/page/html_head.html: $(PAGE_PARTS) $(HTML_PARTS)
$(B)/page/history_head.html: $(PAGE_PARTS) $(HISTORY_PARTS)
$(B)/page/%_head.html: launcher/output/html/assemble
	@mkdir -p $(@D)
	$< $@ $(@D)/$*_tail.html $(filter-out $<,$^)

$(B)/obj/launcher/output/html_pages.o: launcher/output/html_pages.S $(B)/page/html_head.html $(B)/page/history_head.html
	@mkdir -p $(@D)
	$(CC) -c -Wa,-I$(B)/page -o $@ $<

$(B)/obj/launcher/commands/completion/completion_text.o: launcher/commands/completion/completion_text.S \
		$(wildcard launcher/commands/completion/functions.*)
	@mkdir -p $(@D)
	$(CC) -c -Wa,-I$(<D) -o $@ $<

$(B)/obj/launcher/gate/suite/modules.o: launcher/gate/suite/modules.S launcher/gate/suite/tasks.mjs launcher/gate/suite/cases.py
	@mkdir -p $(@D)
	$(CC) -c -Wa,-I$(<D) -o $@ $<

# AGENT_FROM=DIRECTORY takes what runs in programs from the lib of another build: built with a new glibc it runs with old ones,
# and with an old glibc it cannot be built.
AGENT_FROM ?=
ifneq ($(AGENT_FROM),)
$(B)/lib/libcountersink.so $(addprefix $(B)/lib/,$(PLUGIN) $(OBJECT_LIBS)): $(B)/lib/%: $(AGENT_FROM)/%
	@mkdir -p $(@D)
	cp $< $@
else
$(B)/lib/libcountersink.so: $(SO_OBJS) preload/agent/libcountersink.map
	@mkdir -p $(@D)
	$(CC) $(BASE_CFLAGS) $(COVERAGE) $(CFLAGS) $(AGENT_LDFLAGS) $(LDFLAGS) -o $@ $(SO_OBJS) $(LIB_LIBS)

# Its undefined symbols are those of qemu, which loads it: no -z defs.
$(B)/lib/$(PLUGIN): $(PLUGIN_SRCS:%.c=$(PLAIN)/obj/%.o)
	@mkdir -p $(@D)
	$(CC) $(BASE_CFLAGS) $(CFLAGS) -shared -Wl,-z,now -Wl,-z,relro $(LDFLAGS) -o $@ $^ -lpthread

define object_rule
$(B)/lib/countersink/libcountersink-$(1).so: $(patsubst %.c,$(PLAIN)/obj/%.o,$(call object_srcs,$(1)) preload/core/elf_symbol.c) $(wildcard preload/$(1)/*.map)
	@mkdir -p $$(@D)
	$$(CC) $$(BASE_CFLAGS) $$(CFLAGS) $$(LIB_LDFLAGS) -Wl,-soname,$$(@F) $(patsubst %,-Wl$(comma)--version-script$(comma)%,$(wildcard preload/$(1)/*.map)) \
		$$(LDFLAGS) -o $$@ $$(filter %.o,$$^) -ldl -lpthread
endef
comma := ,
$(foreach object,$(OBJECTS),$(eval $(call object_rule,$(object))))

endif

$(B)/lib/$(API_LIB): $(API_OBJS) preload/api/libcountersink-api.map
	@mkdir -p $(@D)
	$(CC) $(BASE_CFLAGS) $(CFLAGS) $(API_LDFLAGS) $(LDFLAGS) -o $@ $(API_OBJS) $(LIB_LIBS)

$(addprefix $(B)/lib/,$(API_LINKS)): | $(B)/lib/$(API_LIB)
	@mkdir -p $(@D)
	ln -sf $(API_LIB) $@

$(B)/lib/libcountersink-api.a: $(API_OBJS)
	@mkdir -p $(@D)
	@rm -f $@
	$(AR) rcsD $@ $(API_OBJS)

$(addprefix $(B)/lib/,$(ENTRY_LINKS)): | $(B)/lib/libcountersink.so
	@mkdir -p $(@D)
	ln -sf $(call entry_target,$(@:$(B)/lib/%=%)) $@

$(addprefix $(B)/lib/,$(OBJECT_LINKS)): | $(addprefix $(B)/lib/,$(OBJECT_LIBS))
	@mkdir -p $(@D)
	ln -sf $(call object_target,$(@:$(B)/lib/%=%)) $@

define stub_rules
$(B)/obj/preload/stub/$(1).o: preload/stub/stub.c $(B)/flags
	@mkdir -p $$(@D)
	$$(CC) $$(BASE_CFLAGS) $(STUB_$(1)) -MMD -MP $$(CPPFLAGS) -c -o $$@ $$<

$(addprefix $(B)/lib/,$(call entry_files,$(1))): $(B)/obj/preload/stub/$(1).o
	@mkdir -p $$(@D)
	$$(OBJCOPY) -O binary -j .stub $$< $$@
	@chmod 644 $$@
endef
$(foreach machine,$(STUBS),$(eval $(call stub_rules,$(machine))))

$(B)/bin/countersink: $(LAUNCHER_OBJS) $(CORE_OBJS)
	@mkdir -p $(@D)
	$(CC) $(BASE_CFLAGS) $(SAN_CFLAGS) $(CFLAGS) $(HARDEN_LDFLAGS) $(LDFLAGS) -o $@ $(LAUNCHER_OBJS) $(CORE_OBJS) $(LAUNCHER_LIBS) $(LIB_LIBS)

# Of the archive the linker takes what is needed.
$(B)/obj/launcher.a: $(filter-out %/main.o,$(LAUNCHER_OBJS)) $(CORE_OBJS)
	@rm -f $@
	$(AR) rcsD $@ $^

$(B)/bin/countersink-send: $(call obj,$(SEND_SRCS)) $(B)/obj/launcher.a
	@mkdir -p $(@D)
	$(CC) $(BASE_CFLAGS) $(SAN_CFLAGS) $(CFLAGS) $(HARDEN_LDFLAGS) $(LDFLAGS) -o $@ $^ $(SEND_LIBS) $(LIB_LIBS) -lm

-include $(patsubst %.o,%.d,$(call obj,$(SEND_SRCS))) $(SO_OBJS:.o=.d) $(PLUGIN_SRCS:%.c=$(PLAIN)/obj/%.d) $(OBJECT_SRCS:%.c=$(PLAIN)/obj/%.d) $(API_OBJS:.o=.d) $(CORE_OBJS:.o=.d) $(AGENT_OBJS:.o=.d) $(LAUNCHER_OBJS:.o=.d) $(UNIT_BINS:=.d) \
	$(TARGET_BINS:=.d) $(BENCH_BINS:=.d) $(STUBS:%=$(B)/obj/preload/stub/%.d)

# ---- what people call ------------------------------------------------------------------------------------------------
include tests/rules.mk

.PHONY: demo
demo: all ## profile a pipeline of real programs, print the report and make a page of it
	@echo '$$ countersink -o $(B)/demo.html -- scripts/demo-work countersink $(B)/demo-log.html'
	@$(B)/bin/countersink -o $(B)/demo.html -- scripts/demo-work $(B)/bin/countersink $(B)/demo-log.html
	@echo 'The same as a page, for any browser: $(B)/demo.html. The profile: $(B)/demo.html.pb.gz;' \
		'print its report again: $(B)/bin/countersink report $(B)/demo.html.pb.gz'

.PHONY: lint
lint: compile_commands.json ## check the format of the sources, which rooms include which, the scripts, and what clang-tidy finds
	@status=0; clang-format --dry-run -Werror $$(git ls-files '*.c' '*.h' '*.cc') || status=1; \
	scripts/check-arrows || status=1; \
	shellcheck -S warning $$(git grep -lE '^#!(/usr)?/bin/(env )?(ba)?sh' -- scripts .ci tests) || status=1; \
	printf '%s\n' $(filter-out preload/stub/%,$(PRELOAD_SRCS) $(PLUGIN_SRCS) $(OBJECT_SRCS) $(LAUNCHER_SRCS) $(if $(HAS_CURL),$(SEND_SRCS))) | \
		xargs -P "$$(getconf _NPROCESSORS_ONLN)" -n 8 clang-tidy --quiet -p . 2>$(B)/tidy.log || { status=1; cat $(B)/tidy.log; }; \
	exit $$status

# One line a source, for editors; the flags are those that the rules above use.
define command_json
{"directory": "$(CURDIR)", "file": "$(1)", "command": "$(CC) $(subst ",\",$(BASE_CFLAGS)) $(2) $(CPPFLAGS) $(CFLAGS) -c $(1)"}
endef
commands = $(foreach src,$(PRELOAD_SRCS) $(PLUGIN_SRCS) $(OBJECT_SRCS),$(call command_json,$(src),$(PIC_CFLAGS) $(call agent_cflags,$(src)))$(newline)) \
	$(foreach src,$(LAUNCHER_SRCS) $(SEND_SRCS) $(UNIT_TESTS:%=tests/unit/test_%.c),$(call command_json,$(src),$(LAUNCHER_CFLAGS))$(newline))
# By make's own writing: the text is longer than a shell takes.
compile_commands.json: Makefile $(PRELOAD_SRCS) $(PLUGIN_SRCS) $(OBJECT_SRCS) $(LAUNCHER_SRCS) $(SEND_SRCS) ## write the compilation database for editors
	$(file >$@.new,$(commands))
	@{ echo '['; sed '/^ *$$/d; s/^ *//' $@.new | sed '$$!s/$$/,/'; echo ']'; } >$@
	@rm -f $@.new

.PHONY: install uninstall
DATADIR ?= $(PREFIX)/share
# The launcher writes its own completion.
COMPLETIONS = bash:bash-completion/completions/countersink zsh:zsh/site-functions/_countersink \
	fish:fish/vendor_completions.d/countersink.fish
completion_place = $(lastword $(subst :, ,$(1)))
completion_file = $(DATADIR)/$(completion_place)
# Directories may have blanks and quotes in their names, which neither make's lists nor the shell may split: $(call
# staged,PLACE) is a word of the shell, $(call one_word,NAME) a word of make's, which spaced() gives back.
blank := $(subst ,, )
quoted = '$(subst ','\'',$(1))'
staged = $(call quoted,$(DESTDIR)$(1))
one_word = $(subst $(blank),?,$(1))
spaced = $(subst ?,$(blank),$(1))
SCHEMAS := $(wildcard launcher/schema/*.json)
schema_file = $(DATADIR)/countersink/schema/$(notdir $(1))
# What a job of a CI runs: templates/perf-gate.yml.
CI_SCRIPTS := perf-gate.sh lib/gate_functions.sh
ci_script = $(DATADIR)/countersink/scripts/$(1)
INSTALLED = $(foreach schema,$(SCHEMAS),$(call staged,$(call schema_file,$(schema)))) \
	$(foreach file,$(CI_SCRIPTS),$(call staged,$(call ci_script,$(file)))) $(foreach c,$(COMPLETIONS),$(call staged,$(call completion_file,$(c)))) \
	$(foreach file,countersink countersink-send,$(call staged,$(BINDIR)/$(file))) \
	$(foreach file,$(LIB_FILES) $(ENTRY_LINKS) $(OBJECT_LINKS) $(LIBDIR_LINK) $(API_LINKS) $(CONFIG_FILES),$(call staged,$(LIBDIR)/$(file))) \
	$(foreach header,$(PUBLIC_HEADERS:include/%=%),$(call staged,$(INCLUDEDIR)/$(header))) \
	$(foreach page,$(MAN_PAGES),$(call staged,$(MANDIR)/$(call man_place,$(page))))
INSTALLED_DIRS = $(call staged,$(INCLUDEDIR)/countersink) $(foreach dir,schema scripts/lib scripts,$(call staged,$(DATADIR)/countersink/$(dir))) \
	$(call staged,$(DATADIR)/countersink) \
	$(foreach dir,cmake/countersink-api cmake pkgconfig $(dir $(ENTRY_LINKS) $(ENTRY_STUBS)) countersink,$(call staged,$(LIBDIR)/$(dir)))
# What programs link is in LIBDIR; what is loaded by its path in a directory of countersink's own.
AGENT := countersink/libcountersink.so
LIB_FILES := $(AGENT) $(PLUGIN) $(OBJECT_LIBS) $(ENTRY_STUBS) $(API_LIB) libcountersink-api.a
# The library's place in earlier versions. `make install LIBDIR_LINK=` leaves it out.
LIBDIR_LINK ?= $(if $(filter %/lib %/lib64,$(LIBDIR)),libcountersink.so)
CONFIG_FILES := pkgconfig/countersink-api.pc $(addprefix cmake/countersink-api/,countersink-api-config.cmake countersink-api-config-version.cmake)
# A tree that is moved takes them with it: they find the rest from their own place. In /usr, which is not moved, their paths
# are plain, so that pkg-config leaves them out, or puts PKG_CONFIG_SYSROOT_DIR before them.
below_prefix = $(filter $(call one_word,$(PREFIX))/%,$(call one_word,$(1)))
is_movable = $(and $(filter-out /usr,$(call one_word,$(PREFIX))),$(call below_prefix,$(LIBDIR)),$(call below_prefix,$(INCLUDEDIR)))
from = $(shell realpath -ms --relative-to=$(call quoted,$(1)) $(call quoted,$(2)))
# $(call put_in,NAME,TEXT): what sed writes in the place of @NAME@.
put_in = -e $(call quoted,s|@$(1)@|$(subst &,\&,$(subst |,\|,$(2)))|)
config_values = $(call put_in,version,$(VERSION)) $(call put_in,libs,$(LIB_LIBS)) $(call put_in,api_lib,$(API_LIB)) $(call put_in,api_soname,$(API_SONAME)) \
	$(call put_in,prefix,$(if $(is_movable),$${pcfiledir}/$(call from,$(LIBDIR)/pkgconfig,$(PREFIX)),$(PREFIX))) \
	$(call put_in,libdir,$(if $(is_movable),$${pcfiledir}/..,$(LIBDIR))) \
	$(call put_in,includedir,$(if $(is_movable),$${prefix}/$(call spaced,$(patsubst $(call one_word,$(PREFIX))/%,%,$(call one_word,$(INCLUDEDIR)))),$(INCLUDEDIR))) \
	$(call put_in,cmake_includedir,$(if $(is_movable),$${_countersink_libdir}/$(call from,$(LIBDIR),$(INCLUDEDIR)),$(INCLUDEDIR)))
# Launcher and libraries find each other by their places: ../lib, ../lib64 or Debian's ../lib/TRIPLET from the launcher,
# bin beside lib from the library (csink_path_of_private(), csink_libdir_end()).
LIBDIRS = $(addprefix $(patsubst %/,%,$(dir $(patsubst %/,%,$(call one_word,$(BINDIR))))),/lib /lib64 /lib/$(MACHINE)-linux-gnu)
# What is installed is for all users, whatever umask root has; INSTALL sees to that by itself.
install: all ## install under PREFIX (/usr/local), LIBDIR and the like; DESTDIR is put in front
	@$(if $(filter $(call one_word,$(LIBDIR)),$(LIBDIRS)),:,echo 'LIBDIR must be one of '$(call quoted,$(call spaced,$(LIBDIRS)))', beside BINDIR, not '$(call quoted,$(LIBDIR)) >&2; exit 1)
	$(INSTALL) -D -m 755 $(B)/bin/countersink $(call staged,$(BINDIR)/countersink)
	$(if $(SEND_BIN),$(INSTALL) -D -m 755 $(B)/bin/$(SEND_BIN) $(call staged,$(BINDIR)/$(SEND_BIN)))
	$(foreach file,$(LIB_FILES),$(INSTALL) -D -m 644 $(B)/lib/$(file) $(call staged,$(LIBDIR)/$(file))$(newline))
	$(foreach file,$(filter-out $(AGENT),$(ENTRY_LINKS)),@umask 022 && mkdir -p $(call staged,$(LIBDIR)/$(dir $(file))) && \
		ln -sf ../libcountersink.so $(call staged,$(LIBDIR)/$(file))$(newline))
	$(foreach file,$(OBJECT_LINKS),@umask 022 && mkdir -p $(call staged,$(LIBDIR)/$(dir $(file))) && \
		ln -sf $(call object_target,$(file)) $(call staged,$(LIBDIR)/$(file))$(newline))
	$(if $(LIBDIR_LINK),ln -sf $(AGENT) $(call staged,$(LIBDIR)/$(LIBDIR_LINK)))
	$(foreach file,$(API_LINKS),ln -sf $(API_LIB) $(call staged,$(LIBDIR)/$(file))$(newline))
	$(foreach file,$(CONFIG_FILES),@umask 022 && mkdir -p $(call staged,$(LIBDIR)/$(dir $(file))) && \
		sed $(config_values) preload/api/$(notdir $(file)).in >$(call staged,$(LIBDIR)/$(file))$(newline))
	$(foreach header,$(PUBLIC_HEADERS),$(INSTALL) -D -m 644 $(header) $(call staged,$(INCLUDEDIR)/$(header:include/%=%))$(newline))
	$(foreach page,$(MAN_PAGES),$(INSTALL) -D -m 644 $(page) $(call staged,$(MANDIR)/$(call man_place,$(page)))$(newline))
	$(foreach file,$(CI_SCRIPTS),$(INSTALL) -D -m $(if $(findstring /,$(file)),644,755) scripts/$(file) $(call staged,$(call ci_script,$(file)))$(newline))
	$(foreach schema,$(SCHEMAS),$(INSTALL) -D -m 644 $(schema) $(call staged,$(call schema_file,$(schema)))$(newline))
	$(foreach c,$(COMPLETIONS),@umask 022 && mkdir -p $(call staged,$(DATADIR)/$(dir $(call completion_place,$(c)))) && \
		$(EMULATOR) $(B)/bin/countersink completion $(firstword $(subst :, ,$(c))) >$(call staged,$(call completion_file,$(c)))$(newline))

uninstall: ## remove what install put there
	rm -f $(INSTALLED)
	-rmdir $(INSTALLED_DIRS) 2>/dev/null

.PHONY: dist
dist: ## make the source tarball of this commit, build/packages/countersink-VERSION.tar.xz
	@scripts/package dist

.PHONY: clean
clean: ## remove what was built
	rm -rf build build-* compile_commands.json

.PHONY: help
help: ## this list
	@echo 'countersink $(VERSION)'; sed -n 's/^\([a-z0-9_.-]*\):.*## \(.*\)/\1|\2/p' Makefile tests/rules.mk | sort | \
		awk -F'|' '{ printf "  make %-22s %s\n", $$1, $$2 }'

define newline


endef
