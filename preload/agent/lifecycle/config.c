/* Reads COUNTERSINK_... variables into csink_config: see config.h. Runs in the constructor, before any sample. */
#include "preload/agent/lifecycle/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "include/internal/share.h"
#include "include/internal/shared_options.h"
#include "preload/agent/interp/interp.h"
#include "preload/agent/sampler/engine.h"
#include "preload/agent/unwind/unwind.h"
#include "preload/core/names_match.h"

/* As a number: what the default of CSINK_OPT_MAX_MEMORY says in words. */
enum { DEFAULT_MIB = 256 };

struct csink_config csink_config;

/* An option's variable, and behind its NUL the default. Not in a table, which would hold options of the launcher as
 * well; not as pointers, which the loader would have to relocate in every program. */
#define X(id, sh, arg, def, flags, help)                                                                               \
	static const char option_##id[] __attribute__((unused)) = CSINK_ENV_PREFIX #id "\0" def;
CSINK_RUN_OPTIONS(X)
#undef X

static const char *default_of(const char *option)
{
	return option + strlen(option) + 1;
}

static const char *value_of(const char *option)
{
	const char *value = getenv(option);

	return value && *value ? value : default_of(option);
}

static void complain(const char *option, const char *want)
{
	const char *def = default_of(option);

	snprintf(csink_config.bad, sizeof(csink_config.bad), "%s=%s: %s; using %s", option, value_of(option), want,
		 *def ? def : "none");
}

/* Digits, and K, M or G for 1,024 once, twice or thrice; 0: something else, or too large. Without libc's strtoull,
 * whose pages most programs have not touched.
 */
static uint64_t digits_of(const char *text)
{
	uint64_t n = 0;

	for (; *text >= '0' && *text <= '9'; text++)
		if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, (uint64_t)(*text - '0'), &n))
			return 0;
	if (*text && n >> 34)
		return 0;
	switch (*text) {
	case 'G':
		n <<= 10;
		/* fall through */
	case 'M':
		n <<= 10;
		/* fall through */
	case 'K':
		n <<= 10;
		text++;
		break;
	default:
		break;
	}
	return *text ? 0 : n;
}

static uint64_t number_of(const char *option, uint64_t otherwise)
{
	const char *value = value_of(option);
	uint64_t n = digits_of(value);

	if (n || !*value)
		return n ? n : otherwise;
	complain(option, "not a number above 0");
	return otherwise;
}

static bool flag_of(const char *option)
{
	const char *value = value_of(option);

	return !strcmp(value, "1") || !strcmp(value, "yes") || !strcmp(value, "true") || !strcmp(value, "on");
}

static int name_of(const char *option, int (*parse)(const char *name))
{
	int n = parse(value_of(option));

	if (n < 0) {
		complain(option, "no such name");
		n = parse(default_of(option));
	}
	return n;
}

bool csink_config_is_asked(void)
{
	const char *run_dir = getenv(CSINK_ENV_RUN_DIR), *preload = getenv("LD_PRELOAD");

	return !getauxval(AT_SECURE) && ((run_dir && *run_dir) || (preload && strstr(preload, "libcountersink")));
}

void csink_config_read(void)
{
	struct csink_config *config = &csink_config;
	const char *run_dir = getenv(CSINK_ENV_RUN_DIR), *owner = getenv(CSINK_ENV_RUN_OWNER);
	const char *parent = getenv(CSINK_ENV_RUN_PARENT), *rotate;

	config->events = value_of(option_EVENTS);
	config->period = number_of(option_PERIOD, 0);
	config->engine = name_of(option_ENGINE, csink_engine_parse);
	config->unwind = name_of(option_UNWIND, csink_unwind_parse);
	config->frames = name_of(option_FRAMES, csink_interp_parse);
	config->max_depth = (uint32_t)CSINK_MIN(number_of(option_MAX_DEPTH, CSINK_MAX_DEPTH), CSINK_MAX_DEPTH);
	config->max_bytes = CSINK_MIN(number_of(option_MAX_MEMORY, DEFAULT_MIB), CSINK_REC_MAX_BYTES >> 20) << 20;
	config->budget = csink_share_parse(value_of(option_BUDGET));
	if (!config->budget && *value_of(option_BUDGET))
		complain(option_BUDGET, "not a share above 0 and below 100 %");
	config->off_cpu = flag_of(option_OFF_CPU);
	config->timeline = flag_of(option_TIMELINE);
	config->follow = value_of(option_FOLLOW);
	config->parent = parent ? (pid_t)digits_of(parent) : 0;
	config->quiet = flag_of(option_QUIET);
	config->report = flag_of(option_REPORT);
	config->output = getenv(option_OUTPUT);
	config->shell_is_outside = getenv(CSINK_ENV_RUN_SHELL) != NULL;
	config->standalone = !run_dir || !*run_dir || (owner && *owner);
	config->has_slices = config->standalone && (rotate = getenv(CSINK_ENV_PREFIX "ROTATE")) && *rotate;
	config->frequency = number_of(option_FREQUENCY, CSINK_DEFAULT_FREQUENCY);
	if (config->has_slices && !(getenv(option_FREQUENCY) && *getenv(option_FREQUENCY)))
		config->frequency = CSINK_SLICES_FREQUENCY;
	if (!config->output || !*config->output)
		config->output = config->standalone ? CSINK_LIB_DEFAULT_OUTPUT : default_of(option_OUTPUT);
	if (run_dir && strlen(run_dir) < sizeof(config->run_dir))
		strcpy(config->run_dir, run_dir);
	config->owner = owner && *owner ? (pid_t)digits_of(owner) : config->standalone ? getpid() : 0;
}

bool csink_config_follows(const char *name)
{
	const char *follow = csink_config.follow, *slash = name ? strrchr(name, '/') : NULL;
	char comm[17] = "";

	if (!strcmp(follow, "all"))
		return true;
	if (!strcmp(follow, "none"))
		return csink_config.standalone ? csink_config.owner == getpid() : csink_config.parent == getppid();
	/* The kernel's name is cut to 15 characters; the one that it was called by is what it says of itself. */
	csink_rawcall(SYS_prctl, PR_GET_NAME, comm);
	return csink_names_match(follow, comm) || (name && csink_names_match(follow, slash ? slash + 1 : name));
}
