// Kernels that do what a kernel must not do. Each ends by itself; all take one thread.

// Writes `value` at `data[index]`, whatever `index` is.
extern "C" __global__ void write_at(unsigned int* data, unsigned long long index, unsigned int value)
{
    data[index] = value;
}

// Copies `data[index]`, whatever `index` is, to `result`.
extern "C" __global__ void read_at(const unsigned int* data, unsigned long long index, unsigned int* result)
{
    *result = data[index];
}

// Writes a word one byte behind `data`, where no word may lie.
extern "C" __global__ void write_misaligned(unsigned char* data, unsigned int value)
{
    *(volatile unsigned int*)(data + 1) = value;
}

// Stops with the trap instruction when `condition` is not zero.
extern "C" __global__ void trap(unsigned int condition)
{
    if (condition != 0) {
        asm volatile("trap;");
    }
}
