/* Patterns: word i of a pattern is seed + i * STEP. Word i of one pattern equals word j of
 * another one only if their seeds differ by exactly (j - i) * STEP modulo 2^64, which mixed seeds
 * practically never do. The addition carries
 * from word to word, so filling and comparing cost one add and one memory access per 8 bytes.
 * Storages inside contiguous groups start at any byte, hence memcpy for words. */
#include "pattern.h"

#include <string.h>

#include "streams/base/random.h"
#include "tarn/device.h"

#define STEP TARN_PATTERN_STEP
#define BLOCK_WORDS 512u

uint64_t tarn_seed_mix(uint64_t a, uint64_t b)
{
    uint64_t x = tarn_random_mix(a * STEP + b);
    return x ? x : 1;
}

unsigned char tarn_pattern_byte(uint64_t seed, uint64_t i)
{
    uint64_t word = seed + i / 8 * STEP;
    unsigned char bytes[8];
    memcpy(bytes, &word, 8);
    return bytes[i % 8];
}

void tarn_pattern_fill(unsigned char *bytes, uint64_t size, uint64_t seed)
{
    uint64_t words = size / 8, word = seed;
    for (uint64_t i = 0; i < words; i++, word += STEP) memcpy(bytes + 8 * i, &word, 8);
    memcpy(bytes + 8 * words, &word, size % 8);
}

/* Do `words` words begin with `word` and continue as a pattern? Compares all of them: a loop
 * without an exit is faster. */
static int block_matches(const unsigned char *bytes, uint64_t words, uint64_t word)
{
    uint64_t difference = 0;
    for (uint64_t i = 0; i < words; i++, word += STEP) {
        uint64_t found;
        memcpy(&found, bytes + 8 * i, 8);
        difference |= found ^ word;
    }
    return difference == 0;
}

uint64_t tarn_pattern_compare(const unsigned char *bytes, uint64_t size, uint64_t seed)
{
    uint64_t words = size / 8, matched = 0; /* words */
    while (matched < words) {
        uint64_t block = words - matched < BLOCK_WORDS ? words - matched : BLOCK_WORDS;
        if (!block_matches(bytes + 8 * matched, block, seed + matched * STEP)) break;
        matched += block;
    }
    uint64_t i = 8 * matched;
    while (i < size && bytes[i] == tarn_pattern_byte(seed, i)) i++;
    return i;
}
