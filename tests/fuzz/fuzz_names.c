/* libFuzzer target: bytes as a mangled name. It takes no more than its limits, whatever it is. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/profile/demangle.h"
#include "launcher/profile/function_name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *symbol = malloc(size + 1), *name, *signature;
	bool refused;

	if (!symbol)
		abort();
	memcpy(symbol, data, size);
	symbol[size] = 0;
	csink_demangle_begin();
	name = csink_demangle(symbol, 0, &refused);
	signature = csink_symbol_signature(symbol);
	if ((name && refused) || (name && strlen(name) >= CSINK_DEMANGLED_BYTES))
		abort();
	free(signature);
	free(name);
	free(symbol);
	return 0;
}
