// A program of small functions that the compiler inlines into each other: names, overloads, templates, a static one, a
// lambda, a recursive one. What it does is of no interest; argv[1] says how often (default 1).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace shapes
{
struct Square {
	double side;
	double area() const
	{
		return side * side;
	}
};

struct Circle {
	double radius;
	double area() const
	{
		return 3.14159 * radius * radius;
	}
};

template <class T> __attribute__((noinline)) double sum(const std::vector<T> &all)
{
	double total = 0;

	for (const T &one : all)
		total += one.area();
	return total;
}

__attribute__((noinline)) unsigned mix(unsigned value)
{
	return value * 2654435761u ^ value >> 15;
}

__attribute__((noinline)) double mix(double value)
{
	return value * 1.0001 + 0.5;
}
} // namespace shapes

static inline unsigned rotate(unsigned value, int by)
{
	return value << by | value >> (32 - by);
}

static inline unsigned scramble(unsigned value)
{
	value = rotate(value, 7) + 0x9e3779b9;
	return rotate(value, 13) ^ value;
}

__attribute__((noinline)) unsigned churn(const unsigned char *bytes, size_t len)
{
	unsigned hash = 1;

	for (size_t i = 0; i < len; i++)
		hash = scramble(hash ^ bytes[i]);
	return hash;
}

__attribute__((noinline)) static unsigned descend(unsigned depth, const std::string &text)
{
	if (!depth)
		return churn((const unsigned char *)text.data(), text.size());
	return descend(depth - 1, text) + depth;
}

__attribute__((noinline)) static void shuffle(std::vector<unsigned> &all)
{
	for (unsigned &one : all)
		one = shapes::mix(one);
	std::sort(all.begin(), all.end(), [](unsigned a, unsigned b) { return (a ^ 5) < (b ^ 5); });
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1;
	std::vector<shapes::Square> squares(1000, {2});
	std::vector<shapes::Circle> circles(1000, {1});
	std::vector<unsigned> numbers(1000);
	std::string text(10000, 'x');
	double total = 0;

	for (unsigned i = 0; i < numbers.size(); i++)
		numbers[i] = i;
	for (int i = 0; i < rounds; i++) {
		total += shapes::sum(squares) + shapes::sum(circles) + descend(20, text);
		shuffle(numbers);
		total = shapes::mix(total) + numbers[500];
	}
	std::printf("%f\n", total);
	return 0;
}
