/* Options of `countersink export`, in the form that launcher/base/options.h describes. */
#ifndef CSINK_EXPORT_OPTIONS_H
#define CSINK_EXPORT_OPTIONS_H

#include "launcher/base/options.h"
#include "launcher/output/export.h"

#define CSINK_EXPORT_OPTIONS(X)                                                                                        \
	X(FORMAT, 'f', CSINK_EXPORT_CHOICES, "", CSINK_OPT_NO_ENV, "the format (default: from the extension of FILE)") \
	X(OUTPUT, 'o', "FILE", "", CSINK_OPT_NO_ENV, "write to FILE instead of standard output (-)")                   \
	X(EVENT, 'e', "NAME", "", CSINK_OPT_NO_ENV,                                                                    \
	  "the event to export, for formats that hold one, not pprof, wire and otlp (default: the event that "         \
	  "sampled)")                                                                                                  \
	CSINK_FOLD_NATIVE_OPTION(X, CSINK_OPT_NO_ENV)                                                                  \
	X(LABELS, 'l', "NAME[,NAME]...", "", CSINK_OPT_NO_ENV,                                                         \
	  "wire, otlp: keep these labels, too (pid, tid, process, thread, timestamp, run, pseudo; all)")               \
	X(OTLP, 0, "1.11|1.9", "1.11", CSINK_OPT_NO_ENV,                                                               \
	  "otlp: field numbers of opentelemetry-proto 1.10 to 1.11, or of 1.8 and 1.9")                                \
	X(SERVICE, 0, "NAME", "", CSINK_OPT_NO_ENV, "otlp: the service (default: the command's name)")                 \
	X(BASE, 'b', "FILE", "", CSINK_OPT_NO_ENV, "html: show the changes since the profile FILE")

#define CSINK_EXPORT_OPTION_ID(id, ...) CSINK_EXPORT_OPT_##id,
enum csink_export_opt { CSINK_EXPORT_OPTIONS(CSINK_EXPORT_OPTION_ID) CSINK_NR_EXPORT_OPTS };

#endif
