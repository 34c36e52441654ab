/* unwind_mix ROUNDS: exceptions through deep frames, longjmp, streams, maps, sorting, regular expressions. */
#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

struct Guard {
	std::string text;
	~Guard()
	{
		text.clear();
	}
};

__attribute__((noinline)) static int throw_at(int depth)
{
	Guard guard{std::string(static_cast<size_t>(depth) * 7 + 20, 'x')};

	if (depth == 0)
		throw std::runtime_error("deep");
	return throw_at(depth - 1) + static_cast<int>(guard.text.size());
}

static jmp_buf back;

__attribute__((noinline)) static void jump_at(int depth)
{
	volatile char room[64];

	room[depth % 64] = 1;
	if (depth > 0)
		jump_at(depth - 1);
	if (room[depth % 64])
		longjmp(back, 1);
}

__attribute__((noinline)) static void jump(int depth)
{
	if (!setjmp(back))
		jump_at(depth);
}

static long mix(int round)
{
	std::map<std::string, int> map;
	std::vector<int> numbers(1000);
	long sum = 0;

	for (int i = 0; i < 100; i++) {
		std::ostringstream out;
		out << i * round << " " << 1.5 * i;
		map[out.str()] = i;
	}
	for (int &number : numbers)
		number = rand();
	std::sort(numbers.begin(), numbers.end());
	if (round % 50 == 0)
		sum += std::regex_match(std::string("aaaaabbbb"), std::regex("(a+)(b+)"));
	return sum + static_cast<long>(map.size()) + numbers[0];
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 300;
	long sum = 0;

	for (int i = 0; i < rounds; i++) {
		try {
			throw_at(i % 20);
		} catch (const std::exception &e) {
			sum += e.what()[0];
		}
		jump(i % 10);
		sum += mix(i);
	}
	printf("%ld\n", sum);
	return 0;
}
