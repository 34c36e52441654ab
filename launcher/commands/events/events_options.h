/* Options of `countersink events`, in the form that launcher/base/options.h describes. */
#ifndef CSINK_EVENTS_OPTIONS_H
#define CSINK_EVENTS_OPTIONS_H

#include "launcher/base/options.h"

#define CSINK_EVENTS_OPTIONS(X)                                                                                        \
	X(USABLE, 'u', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV, "list only events that can be opened here")         \
	X(JSON, 'j', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV, "print JSON, with the reason of each refusal")

#define CSINK_EVENTS_OPTION_ID(id, ...) CSINK_EVENTS_OPT_##id,
enum csink_events_opt { CSINK_EVENTS_OPTIONS(CSINK_EVENTS_OPTION_ID) CSINK_NR_EVENTS_OPTS };

#endif
