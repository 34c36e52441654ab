/*
 * Compare the library that a program runs with to the headers that it was compiled with.
 *
 *	cc -o version version.c $(pkg-config --cflags --libs countersink-api)
 */
#include <countersink/version.h>
#include <stdio.h>

int main(void)
{
	printf("headers %d, library %u\n", CSINK_API_VERSION, csink_api_version());
	return csink_api_version() < CSINK_API_VERSION;
}
