// nvrtc: --gpu-architecture=compute_90
//
// Blocks that see each other's shared memory, and barrier objects.

// The histogram of n bytes: each of the two blocks of a cluster counts in the shared memory of the one that has the bin.
extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_histogram(const unsigned char* data, unsigned int* bins, unsigned int n)
{
    __shared__ unsigned int mine[128];
    unsigned int rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    for (unsigned int bin = threadIdx.x; bin < 128; bin += blockDim.x) {
        mine[bin] = 0;
    }
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
    unsigned int base = (unsigned int)__cvta_generic_to_shared(mine);
    for (unsigned int index = blockIdx.x * blockDim.x + threadIdx.x; index < n; index += gridDim.x * blockDim.x) {
        unsigned int bin = data[index];
        unsigned int address;
        asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(base + bin % 128 * 4), "r"(bin / 128));
        asm volatile("red.shared::cluster.add.u32 [%0], 1;" ::"r"(address) : "memory");
    }
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
    for (unsigned int bin = threadIdx.x; bin < 128; bin += blockDim.x) {
        atomicAdd(&bins[rank * 128 + bin], mine[bin]);
    }
}

// Reverses 64 words through shared memory: half of the threads produce, half consume, by a barrier object.
extern "C" __global__ void barrier_object(const unsigned int* input, unsigned int* output)
{
    __shared__ unsigned int tile[64];
    __shared__ unsigned long long barrier;
    unsigned int address = (unsigned int)__cvta_generic_to_shared(&barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" ::"r"(address) : "memory");
    }
    __syncthreads();
    if (threadIdx.x < 64) {
        tile[threadIdx.x] = input[threadIdx.x];
        asm volatile("{\n\t.reg .b64 state;\n\tmbarrier.arrive.shared::cta.b64 state, [%0];\n\t}" ::"r"(address) : "memory");
    } else {
        unsigned int done = 0;
        while (!done) {
            asm volatile("{\n\t.reg .pred over;\n\tmbarrier.try_wait.parity.shared::cta.b64 over, [%1], 0;\n\tselp.u32 %0, 1, 0, over;\n\t}"
                         : "=r"(done)
                         : "r"(address)
                         : "memory");
        }
        output[127 - threadIdx.x] = tile[threadIdx.x - 64];
    }
}

// What each block of a grid of clusters knows of its place: 6 words.
extern "C" __global__ void cluster_places(unsigned int* output)
{
    unsigned int* out = output + 6 * (blockIdx.y * gridDim.x + blockIdx.x);
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(out[0]));
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(out[1]));
    asm("mov.u32 %0, %%cluster_ctaid.x;" : "=r"(out[2]));
    asm("mov.u32 %0, %%cluster_ctaid.y;" : "=r"(out[3]));
    asm("mov.u32 %0, %%clusterid.x;" : "=r"(out[4]));
    asm("mov.u32 %0, %%nclusterid.x;" : "=r"(out[5]));
}

// The sum of the values of a cluster of any size, in every thread: each block adds up the totals in the others' shared memory.
extern "C" __global__ void cluster_sum(const unsigned int* input, unsigned int* output)
{
    __shared__ unsigned int total;
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) {
        total = 0;
    }
    __syncthreads();
    atomicAdd(&total, input[index]);
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
    unsigned int base = (unsigned int)__cvta_generic_to_shared(&total);
    unsigned int blocks;
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
    unsigned int sum = 0;
    for (unsigned int rank = 0; rank < blocks; ++rank) {
        unsigned int address;
        unsigned int part;
        asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(base), "r"(rank));
        asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(part) : "r"(address) : "memory");
        sum += part;
    }
    output[index] = sum;
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
}

// Each block writes its 32 words into the shared memory of the next block of its cluster.
extern "C" __global__ void cluster_ring(const unsigned int* input, unsigned int* output)
{
    __shared__ unsigned int inbox[32];
    unsigned int index = blockIdx.x * 32 + threadIdx.x;
    unsigned int rank;
    unsigned int blocks;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
    // No block writes to another that has not begun.
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
    unsigned int slot = (unsigned int)__cvta_generic_to_shared(&inbox[threadIdx.x]);
    unsigned int there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(slot), "r"((rank + 1) % blocks));
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(there), "r"(input[index]) : "memory");
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
    output[index] = inbox[threadIdx.x];
}
