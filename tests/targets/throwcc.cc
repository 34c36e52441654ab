// C++ as it comes: exceptions through several frames, std::thread, templates that are inlined, a sort.
//   throwcc [MS a thread] (200)
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "work.h"

namespace shop
{

template <typename T> struct Ledger {
	std::vector<T> entries;

	// Inlined into its callers: visible only in the debug information.
	template <typename F> inline __attribute__((always_inline)) T fold(T start, F &&step) const
	{
		for (const T &entry : entries)
			start = step(start, entry);
		return start;
	}
};

struct Refused : std::runtime_error {
	uint64_t code;
	explicit Refused(uint64_t c) : std::runtime_error("refused"), code(c)
	{
	}
};

// The exception passes all of these frames.
__attribute__((noinline)) uint64_t check_depth(int depth, uint64_t value)
{
	if (depth == 0)
		throw Refused(spin(value, 200));
	return check_depth(depth - 1, value + 1) + 1;
}

__attribute__((noinline)) uint64_t throw_and_catch(uint64_t value)
{
	try {
		return check_depth(8, value);
	} catch (const Refused &refused) {
		return refused.code;
	}
}

__attribute__((noinline)) uint64_t sum_ledger(Ledger<uint64_t> &ledger)
{
	return ledger.fold(0, [](uint64_t sum, uint64_t entry) { return spin(sum ^ entry, 40); });
}

__attribute__((noinline)) void sort_ledger(Ledger<uint64_t> &ledger)
{
	std::sort(ledger.entries.begin(), ledger.entries.end(),
		  [](uint64_t a, uint64_t b) { return spin(a, 2) < spin(b, 2); });
}

} // namespace shop

static void run(uint64_t ms, uint64_t seed, uint64_t *result)
{
	shop::Ledger<uint64_t> ledger;
	uint64_t x = seed;

	for (uint64_t i = 0; i < 2 * ms; i++) {
		for (int n = 0; n < 40; n++)
			x = shop::throw_and_catch(x);
		ledger.entries.clear();
		for (uint64_t n = 0; n < 1500; n++)
			ledger.entries.push_back(spin(x + n, 3));
		shop::sort_ledger(ledger);
		x = shop::sum_ledger(ledger);
	}
	*result = x;
}

int main(int argc, char **argv)
{
	uint64_t ms = arg_num(argc, argv, 1, 200), results[3] = {};
	std::vector<std::thread> threads;

	for (uint64_t n = 1; n < 3; n++)
		threads.emplace_back(run, ms, n, &results[n]);
	run(ms, 0, &results[0]);
	for (auto &thread : threads)
		thread.join();
	for (uint64_t result : results)
		std::printf("%016llx\n", (unsigned long long)result);
	return 0;
}
