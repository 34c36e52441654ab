/* The version of the API library: see include/countersink/version.h. Context: any. */
#include "include/countersink/version.h"
#include "include/internal/base.h"

CSINK_EXPORT unsigned csink_api_version(void)
{
	return CSINK_API_VERSION;
}
