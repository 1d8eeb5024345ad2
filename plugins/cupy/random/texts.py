"""The CUDA C of kernels that draw random numbers; ``sources`` replaces the words in capitals.

References
----------
Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011: Philox4x64-10.
"""

from __future__ import annotations

PHILOX = """\
static __device__ __forceinline__ void philox(U64 k0, U64 k1, U64 c0, U64* four) {
    U64 c1 = 0, c2 = 0, c3 = 0;
#pragma unroll
    for (int i = 0; i < 10; i++) {
        const U64 low0 = 0xD2E7470EE14C6C93ULL * c0, high0 = __umul64hi(0xD2E7470EE14C6C93ULL, c0);
        const U64 low1 = 0xCA5A826395121157ULL * c2, high1 = __umul64hi(0xCA5A826395121157ULL, c2);
        c0 = high1 ^ c1 ^ k0; c1 = low1; c2 = high0 ^ c3 ^ k1; c3 = low0;
        k0 += 0x9E3779B97F4A7C15ULL; k1 += 0xBB67AE8584CAA73BULL;
    }
    four[0] = c0; four[1] = c1; four[2] = c2; four[3] = c3;
}
static __device__ __forceinline__ Word word_of(const U64* four, int i) {
    return (Word)(PER == 4 ? four[i] : i % 2 ? four[i / 2] >> 32 : four[i / 2]);
}
"""

#: Words from a position on; ``held`` has the first of them, from that of number ``first`` on.
WORDS = """\
struct Words {
    const Word* held;
    int at;
    U64 k0, k1;
    long long first;
    __device__ Word next() {
        const int here = at++;
        if (here < LENGTH) return held[here];
        U64 four[4];
        philox(k0, k1, (first + here) / PER + 1, four);
        return word_of(four, (int)((first + here) % PER));
    }
    __device__ Number uniform() { return (Number)(next() >> UNUSED) * (Number)UNIT; }
};
"""

NORMAL = """\
static __device__ Number draw(Words& words) {
    for (;;) {
        const Word word = words.next();
        const int layer = word & 255;
        const Word place = word >> 9 & PLACES;
        const Number size = place * WIDTHS[layer], x = word >> 8 & 1 ? -size : size;
        if (place < LIMITS[layer]) return x;
        if (layer == 0) {
            for (;;) {
                const Number far = -(Number)INVERSE * log1p(-words.uniform());
                const Number other = -log1p(-words.uniform());
                if (other + other > far * far)
                    return place >> 8 & 1 ? -((Number)START + far) : (Number)START + far;
            }
        }
        const Number height = (HEIGHTS[layer - 1] - HEIGHTS[layer]) * words.uniform();
        if (height + HEIGHTS[layer] < exp(-0.5 * x * x)) return x;
    }
}
"""
#: In single precision the exponential is rounded from double precision, as the host's library does.
EXPONENTIAL = """\
static __device__ Number draw(Words& words) {
    for (;;) {
        const Word word = words.next() >> SKIPPED;
        const int layer = word & 255;
        const Word place = word >> 8;
        const Number x = place * WIDTHS[layer];
        if (place < LIMITS[layer]) return x;
        if (layer == 0) return (Number)START - log1p(-words.uniform());
        const Number height = (HEIGHTS[layer - 1] - HEIGHTS[layer]) * words.uniform();
        if (height + HEIGHTS[layer] < (Number)exp(-(double)x)) return x;
    }
}
"""

WORDS_TO_NUMBERS = """\
    const long long groups = (count + PER - 1) / PER;
    for (long long n = blockIdx.x * (long long)blockDim.x + threadIdx.x; n < keys * groups;
            n += (long long)gridDim.x * blockDim.x) {
        const long long b = n / groups, group = n % groups;
        THE_KEY
        U64 four[4];
        philox(k0, k1, group + 1, four);
        __align__(16) Result numbers[PER];
#pragma unroll
        for (int j = 0; j < PER; j++) {
            const Word word = word_of(four, j);
            numbers[j] = RESULT;
        }
        WRITE
    }
"""
#: Results that lie side by side, 16 bytes at a time where that is possible, and others.
WRITE = """\
        const long long i = group * PER;
        Result* to = out + (b * count + i);
        if (i + PER <= count && (U64)to % 16 == 0) {
#pragma unroll
            for (int j = 0; j < PER * (int)sizeof(Result) / 16; j++)
                ((Pack*)to)[j] = ((const Pack*)numbers)[j];
        } else {
#pragma unroll
            for (int j = 0; j < PER; j++)
                if (i + j < count) to[j] = numbers[j];
        }
"""
WRITE_APART = """\
#pragma unroll
        for (int j = 0; j < PER; j++) {
            const long long i = group * PER + j;
            if (i < count) out[PLACE] = numbers[j];
        }
"""

TRIALS = """\
    __shared__ Word held[LENGTH];
    __shared__ unsigned char taken[BACK + TILE];
    __shared__ unsigned int begun[TILE / 32], redrawn[TILE / 32];
    const int t = threadIdx.x;
    const long long b = blockIdx.x / tiles, tile = blockIdx.x % tiles, first = tile * TILE - BACK;
    THE_KEY
    for (int p = t; p < LENGTH / PER; p += blockDim.x) {
        if (first + p * PER < 0) continue;
        U64 four[4];
        philox(k0, k1, first / PER + p + 1, four);
#pragma unroll
        for (int j = 0; j < PER; j++) held[p * PER + j] = word_of(four, j);
    }
    __syncthreads();
    for (int p = t; p < BACK + TILE; p += blockDim.x) {
        taken[p] = 1;
        if (first + p < 0) continue;
        TRY
    }
    __syncthreads();
    if (t < TILE / 32) {
        FIND
    }
    __syncthreads();
    int rank = 0, ranked = 0, seen = 0;
    for (int p = t; p < TILE; p += blockDim.x) {
        for (; seen < p / 32; seen++) {
            rank += __popc(begun[seen]);
            ranked += __popc(redrawn[seen]);
        }
        const unsigned int before = (1u << p % 32) - 1;
        if (!(begun[seen] >> p % 32 & 1)) continue;
        const int at = rank + __popc(begun[seen] & before);
        const int far = ranked + __popc(redrawn[seen] & before);
        MAKE
        KEEP
    }
"""
#: By whether a number may take several words: what a word gives, where numbers begin in 32 words,
#: and the number at a beginning.
TRY = {
    True: """\
        Words words = {held, p, k0, k1, first};
        const Number x = draw(words);
        taken[p] = (unsigned char)(words.at - p | (AGAIN ? 128 : 0));
""",
    False: """\
        const Word word = held[p];
        taken[p] = KEPT;
""",
}
FIND = {
    True: """\
        const int mine = BACK + 32 * t;
        int p = mine;  // no number from before it reaches past it
        for (int i = mine - 1; i >= 0 && i >= p - 32; i--)
            if (i + (taken[i] & 127) > p) p = i;
        while (p < mine) p += taken[p] & 127;
        unsigned int here = 0, again = 0;
        for (; p < mine + 32; p += taken[p] & 127) {
            here |= 1u << (p - mine);
            if (taken[p] & 128) again |= 1u << (p - mine);
        }
        begun[t] = here;
        redrawn[t] = again;
""",
    False: """\
        unsigned int here = 0;
        for (int i = 0; i < 32; i++) here |= (unsigned int)taken[32 * t + i] << i;
        begun[t] = here;
        redrawn[t] = 0;
""",
}
MAKE = {
    True: """\
        Words words = {held, BACK + p, k0, k1, first};
        const Number x = draw(words);
""",
    False: """\
        const Word word = held[p];
        const Number x = MADE;
""",
}
#: What is kept of a number: the result itself, if one tile has all of them, or for a second kernel.
KEEP_RESULT = "        if (at < count) out[b * count + at] = RESULT;\n"
KEEP = """\
        made[(b * tiles + tile) * TILE + at] = x;
"""
KEEP_RANK = """\
        ranks[(b * tiles + tile) * TILE + at] = (unsigned short)far;
"""
COUNT = """\
    if (t == 0) {
        U64 all = 0;
        for (int i = 0; i < TILE / 32; i++)
            all += (U64)__popc(begun[i]) | (U64)__popc(redrawn[i]) << 32;
        totals[b * tiles + tile] = all;
    }
"""

ORDER = """\
    __shared__ U64 sums[BLOCK];
    const int t = threadIdx.x;
    const long long b = blockIdx.x / tiles, tile = blockIdx.x % tiles;
    U64 sum = 0;
    for (long long i = t; i < tile; i += BLOCK) sum += totals[b * tiles + i];
    sums[t] = sum;
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        __syncthreads();
        if (t < half) sums[t] += sums[t + half];
    }
    __syncthreads();
    const long long before = sums[0] & 0xffffffffULL, again = sums[0] >> 32;
    const long long here = totals[b * tiles + tile] & 0xffffffffULL;
    for (int p = t; p < here && before + p < reserve; p += BLOCK) {
        const Number x = made[(b * tiles + tile) * TILE + p];
        PUT
    }
"""
PUT_RESULT = "        out[b * count + before + p] = RESULT;\n"
PUT_DRAW = """\
        drawn[b * reserve + before + p] = x;
        next[b * reserve + before + p] = count + again + ranks[(b * tiles + tile) * TILE + p];
"""

REDRAW = """\
    for (long long n = blockIdx.x * (long long)blockDim.x + threadIdx.x; n < keys * count;
            n += (long long)gridDim.x * blockDim.x) {
        const long long b = n / count;
        long long i = n % count;
        Number x = drawn[b * reserve + i];
        while (AGAIN) {
            i = next[b * reserve + i];
            if (i >= reserve) break;
            x = drawn[b * reserve + i];
        }
        out[n] = RESULT;
    }
"""
