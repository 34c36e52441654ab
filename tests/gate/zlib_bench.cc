/* For tests/gate/suite-false: ten cases of zlib, by google-benchmark. */
#include <benchmark/benchmark.h>
#include <zlib.h>

#include <vector>

namespace
{

using Bytes = std::vector<unsigned char>;

/* As many letters as there are kinds, in random order. */
Bytes make_bytes(size_t bytes, unsigned kinds)
{
	unsigned long state = 1;
	Bytes made(bytes);

	for (auto &byte : made) {
		state = state * 6364136223846793005UL + 1442695040888963407UL;
		byte = static_cast<unsigned char>('a' + (state >> 33) % kinds);
	}
	return made;
}

const Bytes text = make_bytes(8192, 12), noise = make_bytes(8192, 256), large = make_bytes(65536, 12);

Bytes pack(const Bytes &in, int level, int strategy)
{
	Bytes out(in.size() * 2 + 1024);
	z_stream z = {};

	deflateInit2(&z, level, Z_DEFLATED, 15, 8, strategy);
	z.next_in = const_cast<unsigned char *>(in.data());
	z.avail_in = static_cast<unsigned>(in.size());
	z.next_out = out.data();
	z.avail_out = static_cast<unsigned>(out.size());
	deflate(&z, Z_FINISH);
	out.resize(z.total_out);
	deflateEnd(&z);
	return out;
}

void deflate_case(benchmark::State &state, const Bytes *in, int level, int strategy)
{
	for (auto _ : state)
		benchmark::DoNotOptimize(pack(*in, level, strategy).size());
}

void inflate_case(benchmark::State &state, const Bytes *in)
{
	Bytes packed = pack(*in, 6, Z_DEFAULT_STRATEGY), out(in->size());

	for (auto _ : state) {
		uLongf bytes = out.size();

		uncompress(out.data(), &bytes, packed.data(), packed.size());
		benchmark::DoNotOptimize(out.data());
	}
}

void checksum_case(benchmark::State &state, uLong (*checksum)(uLong, const Bytef *, uInt))
{
	for (auto _ : state)
		benchmark::DoNotOptimize(checksum(0, large.data(), static_cast<uInt>(large.size())));
}

} // namespace

BENCHMARK_CAPTURE(checksum_case, crc32, crc32);
BENCHMARK_CAPTURE(checksum_case, adler32, adler32);
BENCHMARK_CAPTURE(inflate_case, text, &text);
BENCHMARK_CAPTURE(inflate_case, noise, &noise);
BENCHMARK_CAPTURE(deflate_case, text_1, &text, 1, Z_DEFAULT_STRATEGY);
BENCHMARK_CAPTURE(deflate_case, text_6, &text, 6, Z_DEFAULT_STRATEGY);
BENCHMARK_CAPTURE(deflate_case, text_9, &text, 9, Z_DEFAULT_STRATEGY);
BENCHMARK_CAPTURE(deflate_case, noise_6, &noise, 6, Z_DEFAULT_STRATEGY);
BENCHMARK_CAPTURE(deflate_case, huffman, &text, 6, Z_HUFFMAN_ONLY);
BENCHMARK_CAPTURE(deflate_case, rle, &text, 6, Z_RLE);
BENCHMARK_MAIN();
