// What kernels print.

// A line of each thread of the grid.
extern "C" __global__ void print_threads(unsigned int seed)
{
    printf("thread %u of block %u has %08x\n", threadIdx.x, blockIdx.x, seed * (blockIdx.x * blockDim.x + threadIdx.x + 1));
}

// Lines in every form that arguments have, by one thread, and how many arguments each line but the last has.
extern "C" __global__ void print_forms(int number, double fraction, long long wide, int* counts)
{
    counts[0] = printf("nothing\n");
    counts[1] = printf("[%d] [%5d] [%-5d] [%05d] [%+d] [%x] [%X] [%#x] [%o]\n", number, number, number, number, number, number, number,
                       number, number);
    counts[2] = printf("[%u] [%lld] [%llu] [%hd]\n", number, wide, wide, (short)number);
    counts[3] = printf("[%f] [%.3f] [%10.2f] [%-10.1f] [%e] [%g]\n", fraction, fraction, fraction, fraction, fraction, fraction);
    counts[4] = printf("[%c] [%s] [%10s] [%-10s]\n", 'x', "text", "right", "left");
    printf("100 %%\n");
}
