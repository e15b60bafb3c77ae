// One parameter of every size: whoever launches it can see that each arrives whole and at its place.

struct Triple {
    unsigned int x;
    unsigned int y;
    unsigned int z;
};

// Writes each parameter, widened to 64 bits (floating point by its bits), to one word of `words` (10 of them).
extern "C" __global__ void params(unsigned char u8, unsigned short u16, unsigned int u32, unsigned long long u64, float f32,
                                  double f64, unsigned long long* words, Triple triple)
{
    words[0] = u8;
    words[1] = u16;
    words[2] = u32;
    words[3] = u64;
    words[4] = __float_as_uint(f32);
    words[5] = (unsigned long long)__double_as_longlong(f64);
    words[6] = (unsigned long long)words;
    words[7] = triple.x;
    words[8] = triple.y;
    words[9] = triple.z;
}
