/* Options of countersink-send, and of `countersink send`, in the form that launcher/base/options.h describes. */
#ifndef CSINK_SEND_OPTIONS_H
#define CSINK_SEND_OPTIONS_H

#include "launcher/base/options.h"
#include "launcher/base/send_url.h"

#define CSINK_SEND_OPTIONS(X)                                                                                          \
	X(TO, 't', "URL", "", CSINK_OPT_NO_ENV,                                                                        \
	  "the server: pyroscope+https://HOST, parca+https://HOST, otlp+https://HOST, put+https://HOST/PATH or "       \
	  "s3+https://HOST/BUCKET/KEY; all kinds but s3 also take http://; pyroscope or otlp alone: as their "         \
	  "environment variables have it (default: $COUNTERSINK_SEND; one is needed)")                                 \
	CSINK_SENDING_OPTIONS(X)                                                                                       \
	X(SERVICE, 0, "NAME", "", CSINK_OPT_NO_ENV,                                                                    \
	  "pyroscope, parca, otlp: the application's name there (default: by the kind's variables, else the "          \
	  "command's)")                                                                                                \
	X(LABELS, 'l', "NAME[,NAME]...", "", CSINK_OPT_NO_ENV,                                                         \
	  "pyroscope, parca, otlp: keep these labels of samples, too, as for countersink export --labels")             \
	X(OTLP, 0, "1.11|1.9", "1.11", CSINK_OPT_NO_ENV,                                                               \
	  "otlp: field numbers of opentelemetry-proto 1.10 to 1.11 (v1development, Alpha), or of 1.8 and 1.9")         \
	X(QUIET, 'q', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV, "print only errors")

#define CSINK_SEND_OPTION_ID(id, ...) CSINK_SEND_OPT_##id,
enum csink_send_opt { CSINK_SEND_OPTIONS(CSINK_SEND_OPTION_ID) CSINK_NR_SEND_OPTS };

/* Exit statuses, beside CSINK_EXIT_OK, CSINK_EXIT_FAILED (a file cannot be read) and CSINK_EXIT_USAGE. */
enum csink_send_exit {
	CSINK_SEND_EXIT_REFUSED = 3, /* the server refused a profile, or may have it: no other try is made */
	CSINK_SEND_EXIT_UNREACHABLE =
		4, /* it could not be reached, or asked for later tries, until the time was over */
};

#endif
