/* The status of the reservation, for people and for programs. */
#ifndef CSINK_RESERVE_PRINT_H
#define CSINK_RESERVE_PRINT_H

#include <stdio.h>

#include "launcher/commands/reserve/reserve_status.h"

void csink_reserve_status_print(FILE *out, const struct csink_reserve_status *status);
void csink_reserve_status_print_json(FILE *out, const struct csink_reserve_status *status);

#endif
