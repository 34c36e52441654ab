/*
 * leave STATUS: end the machine, and on arm64 have the emulator exit with that status, by semihosting:
 * SYS_EXIT_EXTENDED. Elsewhere, and where the emulator does not listen, the machine is switched off, and its exit
 * status says nothing.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/reboot.h>
#include <unistd.h>

#define SYS_EXIT_EXTENDED 0x20
#define APPLICATION_EXIT 0x20026

int main(int argc, char **argv)
{
#ifdef __aarch64__
	uint64_t block[2] = {APPLICATION_EXIT, argc > 1 ? (uint64_t)atoi(argv[1]) : 1};
	register uint64_t operation __asm__("x0") = SYS_EXIT_EXTENDED;
	register uint64_t parameter __asm__("x1") = (uintptr_t)block;

	__asm__ volatile("hlt #0xf000" : "+r"(operation) : "r"(parameter) : "memory");
#else
	(void)argc, (void)argv;
#endif
	reboot(RB_POWER_OFF);
	return 1;
}
