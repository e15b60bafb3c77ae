// What the language can do: calls, recursion, function pointers, tables, printing, and memory from the device's heap.

__device__ __noinline__ unsigned int fibonacci(unsigned int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

// The Fibonacci number of each index, by recursion.
extern "C" __global__ void recursion(unsigned int* output, unsigned int n)
{
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < n) {
        output[index] = fibonacci(index % 15);
    }
}

typedef int (*Operation)(int, int);
__device__ __noinline__ int sum(int a, int b) { return a + b; }
__device__ __noinline__ int difference(int a, int b) { return a - b; }
__device__ __noinline__ int product(int a, int b) { return a * b; }
__device__ Operation operations[3] = {sum, difference, product};

// Applies a function that each thread picks from a table.
extern "C" __global__ void function_pointers(const int* input, int* output, unsigned int n)
{
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < n) {
        output[index] = operations[index % 3](input[index], 7);
    }
}

// A switch with many cases and ways through.
extern "C" __global__ void many_cases(const unsigned int* input, unsigned int* output, unsigned int n)
{
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= n) {
        return;
    }
    unsigned int value = input[index];
    switch (value % 8) {
    case 0: value += 1; break;
    case 1: value *= 3;
    case 2: value ^= 0x55; break;
    case 3: value = ~value; break;
    case 4: value /= 3; break;
    case 5: value <<= 2; break;
    case 6: value -= 100;
    default: value += 7;
    }
    output[index] = value;
}

// A list that each thread builds on the device's heap, sums and frees.
extern "C" __global__ void device_heap(unsigned int* output, unsigned int n)
{
    struct Node {
        unsigned int value;
        Node* next;
    };
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= n) {
        return;
    }
    Node* list = 0;
    for (unsigned int value = 0; value <= index; ++value) {
        Node* node = new Node;
        node->value = value;
        node->next = list;
        list = node;
    }
    unsigned int total = 0;
    while (list) {
        Node* next = list->next;
        total += list->value;
        delete list;
        list = next;
    }
    output[index] = total;
}

template <typename T> struct Stack {
    T items[16];
    unsigned int count;
    __device__ Stack() : count(0) {}
    __device__ void push(T item) { items[count++] = item; }
    __device__ T pop() { return items[--count]; }
};

// The height of a binary tree in an array, walked with a stack of each thread's own.
extern "C" __global__ void tree_height(const unsigned char* present, unsigned int* heights, unsigned int nodes, unsigned int n)
{
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= n) {
        return;
    }
    const unsigned char* tree = present + index * nodes;
    Stack<uint2> stack;
    stack.push(make_uint2(0, 1));
    unsigned int height = 0;
    while (stack.count > 0) {
        uint2 node = stack.pop();
        if (node.x < nodes && tree[node.x]) {
            height = max(height, node.y);
            stack.push(make_uint2(2 * node.x + 1, node.y + 1));
            stack.push(make_uint2(2 * node.x + 2, node.y + 1));
        }
    }
    heights[index] = height;
}

__device__ unsigned int tickets;
__device__ volatile unsigned int partial[256];

// The sum of n values: the last block to finish adds what all left.
extern "C" __global__ void last_block(const unsigned int* input, unsigned int* result, unsigned int n)
{
    __shared__ bool last;
    __shared__ unsigned int total;
    if (threadIdx.x == 0) {
        total = 0;
    }
    __syncthreads();
    unsigned int mine = 0;
    for (unsigned int index = blockIdx.x * blockDim.x + threadIdx.x; index < n; index += gridDim.x * blockDim.x) {
        mine += input[index];
    }
    atomicAdd(&total, mine);
    __syncthreads();
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = total;
        __threadfence();
        last = atomicInc(&tickets, gridDim.x - 1) == gridDim.x - 1;
        total = 0;
    }
    __syncthreads();
    if (last && threadIdx.x < gridDim.x) {
        atomicAdd(&total, partial[threadIdx.x]);
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        *result = total;
    }
}

// A lock that all threads of all warps take in turn, to add without atomics.
extern "C" __global__ void spin_lock(unsigned int* lock, volatile unsigned int* counter)
{
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            *counter = *counter + 1;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}

// A barrier of the whole grid by atomics: every block must run. Each thread reads what another block wrote before it.
extern "C" __global__ void grid_barrier(unsigned int* arrived, unsigned int* values, unsigned int* output)
{
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int all = gridDim.x * blockDim.x;
    values[index] = index * 3;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1);
        while (atomicAdd(arrived, 0) < gridDim.x) {
        }
    }
    __syncthreads();
    output[index] = ((volatile unsigned int*)values)[(index + blockDim.x) % all];
}
