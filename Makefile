# countersink. `make help` lists the targets. Nothing here is recursive; every source file is named below.
VERSION := $(shell sed -n 's/^.define CSINK_VERSION "\(.*\)"/\1/p' include/internal/base.h)
PREFIX  ?= /usr/local
BINDIR  ?= $(PREFIX)/bin
LIBDIR  ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR  ?= $(PREFIX)/share/man
DESTDIR ?=
CC      ?= cc
CXX     ?= c++
AR      ?= ar
PKG_CONFIG ?= pkg-config
INSTALL ?= install
# SAN=address,undefined builds with sanitizers, into a tree of its own.
SAN     ?=
B       := build$(if $(SAN),-$(subst $(comma),-,$(SAN)))
comma   := ,

# ---- what is built ---------------------------------------------------------------------------------------------------
# Shared by the library and the launcher: no constructor, nothing interposed.
CORE_SRCS := \

# What else lives in the target: sampling, recording, interposed calls.
LIB_SRCS := \
	preload/sample/safe_load.c \
	preload/sample/unwind_fp.c \

LAUNCHER_SRCS := \

# tests/unit/test_NAME.c, each a TAP program.
UNIT_TESTS := \
	safe_load \

# tests/cli/NAME.t, each a TAP script; they see BUILD (the tree) in the environment.
CLI_TESTS := \

# tests/targets/NAME.c or .cc: programs that are profiled.
TARGETS := \

PUBLIC_HEADERS := $(wildcard include/countersink.h include/countersink/*.h)
MAN_PAGES := $(wildcard launcher/man/*.1)

# ---- how -------------------------------------------------------------------------------------------------------------
WARN     := -Wall -Wextra -Wmissing-prototypes -Wstrict-prototypes -Wshadow -Wpointer-arith -Wvla -Wundef
OPT      ?= -O2 -g
BASE_CFLAGS := -std=gnu11 $(OPT) $(WARN) -fno-strict-aliasing -D_GNU_SOURCE -Iinclude -I. \
	$(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer)
PIC_CFLAGS  := -fPIC -fvisibility=hidden -ftls-model=initial-exec
LAUNCHER_PKGS := libdw libelf zlib
# Asked for only when something is compiled with them, so that `make help` works on a bare machine.
LAUNCHER_CFLAGS = $(shell $(PKG_CONFIG) --cflags $(LAUNCHER_PKGS))
LAUNCHER_LIBS   = $(shell $(PKG_CONFIG) --libs $(LAUNCHER_PKGS)) -liberty -lm
LIB_LIBS := -ldl -lpthread
# Sanitized objects may hold symbols that only the program's runtime defines.
LIB_LDFLAGS := -shared -Wl,-soname,libcountersink.so -Wl,--version-script,preload/libcountersink.map \
	$(if $(SAN),,-Wl,-z,defs) -Wl,-z,now -Wl,-z,relro

obj = $(patsubst %.c,$(B)/obj/%.o,$(1))
CORE_OBJS := $(call obj,$(CORE_SRCS))
LIB_OBJS := $(call obj,$(LIB_SRCS))
LAUNCHER_OBJS := $(call obj,$(LAUNCHER_SRCS))
# Unit tests link everything but the launcher's main and what interposes.
TESTED_OBJS := $(filter-out $(B)/obj/launcher/main.o $(B)/obj/preload/inject/%,$(CORE_OBJS) $(LIB_OBJS) $(LAUNCHER_OBJS))
UNIT_BINS := $(addprefix $(B)/tests/unit/,$(UNIT_TESTS))
TARGET_BINS := $(addprefix $(B)/tests/targets/,$(TARGETS))

.PHONY: all
all: $(B)/bin/countersink $(B)/lib/libcountersink.so

# A change of flags rebuilds what they touch.
$(B)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(BASE_CFLAGS) $(CFLAGS) $(LDFLAGS) $(SAN)' | cmp -s - $@ || \
		echo '$(CC) $(BASE_CFLAGS) $(CFLAGS) $(LDFLAGS) $(SAN)' > $@
.PHONY: FORCE
FORCE:

$(B)/obj/preload/%.o: preload/%.c $(B)/flags
	@mkdir -p $(@D)
	$(CC) $(BASE_CFLAGS) $(PIC_CFLAGS) -MMD -MP $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

$(B)/obj/launcher/%.o: launcher/%.c $(B)/flags
	@mkdir -p $(@D)
	$(CC) $(BASE_CFLAGS) $(LAUNCHER_CFLAGS) -MMD -MP $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

$(B)/lib/libcountersink.so: $(CORE_OBJS) $(LIB_OBJS) preload/libcountersink.map
	@mkdir -p $(@D)
	$(CC) $(BASE_CFLAGS) $(CFLAGS) $(LIB_LDFLAGS) $(LDFLAGS) -o $@ $(CORE_OBJS) $(LIB_OBJS) $(LIB_LIBS)

$(B)/bin/countersink: $(LAUNCHER_OBJS) $(CORE_OBJS)
	@mkdir -p $(@D)
	$(CC) $(BASE_CFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(LAUNCHER_OBJS) $(CORE_OBJS) $(LAUNCHER_LIBS) $(LIB_LIBS)

$(B)/libtested.a: $(TESTED_OBJS)
	@rm -f $@
	$(AR) rcs $@ $(TESTED_OBJS)

$(B)/tests/unit/%: tests/unit/%.c tests/unit/tap.h $(B)/libtested.a
	@mkdir -p $(@D)
	$(CC) $(BASE_CFLAGS) $(LAUNCHER_CFLAGS) -MMD -MP -MF $@.d $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $< $(B)/libtested.a \
		$(LAUNCHER_LIBS) $(LIB_LIBS)

# Targets are built as programs in the wild are: optimised, no frame pointers, not sanitized.
$(B)/tests/targets/%: tests/targets/%.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -g -Wall -fomit-frame-pointer -D_GNU_SOURCE -o $@ $< -lpthread -lm -ldl

$(B)/tests/targets/%: tests/targets/%.cc
	@mkdir -p $(@D)
	$(CXX) -std=gnu++17 -O2 -g -Wall -fomit-frame-pointer -o $@ $< -lpthread

-include $(CORE_OBJS:.o=.d) $(LIB_OBJS:.o=.d) $(LAUNCHER_OBJS:.o=.d) $(UNIT_BINS:=.d)

# ---- what people call ------------------------------------------------------------------------------------------------
.PHONY: tests check clean
tests: all $(UNIT_BINS) $(TARGET_BINS)

check: tests ## build and run every test
	BUILD=$(CURDIR)/$(B) prove -j2 --timer $(UNIT_BINS) $(addprefix tests/cli/,$(addsuffix .t,$(CLI_TESTS)))

clean: ## remove what was built
	rm -rf build build-*

.PHONY: help
help: ## this list
	@echo 'countersink $(VERSION)'; sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST)
