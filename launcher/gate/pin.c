/* See pin.h. Source: sched_setaffinity(2). */
#include "launcher/gate/pin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/message.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/profile.h"

/* Whether the kernel lets this process run there: tried, and taken back. */
static int try_cpu(int cpu, const cpu_set_t *before)
{
	cpu_set_t set;
	int err = 0;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		err = -errno;
	else
		sched_setaffinity(0, sizeof(*before), before);
	return err;
}

int csink_gate_pin_init(struct csink_gate_pin *pin, bool pairs, char *why, size_t why_size)
{
	/* More CPUs than a set holds: none is drawn. */
	bool is_known = !sched_getaffinity(0, sizeof(pin->allowed), &pin->allowed);
	int err;

	if (pin->how != CSINK_GATE_PIN_CPU) {
		pin->cpu = -1;
		pin->may_draw = pin->how == CSINK_GATE_PIN_AUTO && pairs && is_known && CPU_COUNT(&pin->allowed) > 1;
		return 0;
	}
	err = try_cpu(pin->cpu, &pin->allowed);
	if (!err)
		return 0;
	return csink_why(-EINVAL, why, why_size, "--pin: CPU %d cannot be used: %s", pin->cpu, strerror(-err));
}

static bool is_one(const struct csink_profile *p, const char *fact)
{
	const char *text = csink_profile_fact(p, fact, 0);

	return text && !strcmp(text, "1");
}

void csink_gate_pin_learn(struct csink_gate_pin *pin, const struct csink_profile *profile)
{
	if (profile && is_one(profile, CSINK_FACT_PROCESSES) && is_one(profile, CSINK_FACT_THREADS) &&
	    !csink_profile_fact(profile, CSINK_FACT_UNPROFILED, 0) &&
	    !csink_profile_fact(profile, CSINK_FACT_OUTSIDE, 0))
		pin->is_single = true;
	else
		pin->has_several = true;
}

void csink_gate_pin_draw(struct csink_gate_pin *pin, struct csink_random *random)
{
	uint32_t nth;

	if (pin->how == CSINK_GATE_PIN_CPU)
		return;
	pin->cpu = -1;
	if (!pin->may_draw || !pin->is_single || pin->has_several)
		return;
	nth = csink_random_below(random, (uint32_t)CPU_COUNT(&pin->allowed));
	for (int cpu = 0; cpu < CPU_SETSIZE && pin->cpu < 0; cpu++) {
		if (CPU_ISSET(cpu, &pin->allowed) && !nth--)
			pin->cpu = cpu;
	}
	pin->has_drawn = true;
}

void csink_gate_pin_begin(const struct csink_gate_pin *pin, struct csink_inherited *inherited)
{
	inherited->has_cpus = pin->cpu >= 0;
	CPU_ZERO(&inherited->cpus);
	if (inherited->has_cpus)
		CPU_SET(pin->cpu, &inherited->cpus);
}

void csink_gate_pin_end(struct csink_inherited *inherited)
{
	inherited->has_cpus = false;
}
