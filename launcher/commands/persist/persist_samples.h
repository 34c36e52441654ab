/* `persist samples`: what the rings of a persistent event hold, in the order of time. */
#ifndef CSINK_PERSIST_SAMPLES_H
#define CSINK_PERSIST_SAMPLES_H

#include "include/countersink/persist.h"
#include "launcher/base/json.h"

/**
 * Print the samples on standard output, a line each as perf-script(1) does, or as JSON. How many samples are missing is
 * reported on standard error. The rings stay unchanged and continue to collect.
 * @json  where to, NULL: text.
 * Returns 0, -ENOMSG (it has no ring), -ENOMEM or -errno as csink_persist_open_member. Context: thread.
 */
int csink_persist_samples(const struct csink_persist_event *event, const char *base, struct csink_json *json);

#endif
