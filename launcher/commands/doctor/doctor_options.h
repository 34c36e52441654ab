/* Options of `countersink doctor`, in the form that launcher/base/options.h describes. */
#ifndef CSINK_DOCTOR_OPTIONS_H
#define CSINK_DOCTOR_OPTIONS_H

#include "launcher/base/options.h"

#define CSINK_DOCTOR_OPTIONS(X) X(JSON, 'j', "", "0", CSINK_OPT_BOOL | CSINK_OPT_NO_ENV, "print JSON")

#define CSINK_DOCTOR_OPTION_ID(id, ...) CSINK_DOCTOR_OPT_##id,
enum csink_doctor_opt { CSINK_DOCTOR_OPTIONS(CSINK_DOCTOR_OPTION_ID) CSINK_NR_DOCTOR_OPTS };

#endif
