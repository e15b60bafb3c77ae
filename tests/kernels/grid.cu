// nvrtc: --fmad=false
//
// Numbers on a grid: without contraction a CPU gets the same results bit for bit.

// Transposes a matrix through a tile of shared memory, by blocks of 32 by 8 threads.
extern "C" __global__ void transpose(const float* input, float* output, unsigned int width, unsigned int height)
{
    __shared__ float tile[32][33];
    unsigned int x = blockIdx.x * 32 + threadIdx.x;
    unsigned int y = blockIdx.y * 32 + threadIdx.y;
    for (unsigned int row = 0; row < 32; row += 8) {
        if (x < width && y + row < height) {
            tile[threadIdx.y + row][threadIdx.x] = input[(y + row) * width + x];
        }
    }
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (unsigned int row = 0; row < 32; row += 8) {
        if (x < height && y + row < width) {
            output[(y + row) * height + x] = tile[threadIdx.x][threadIdx.y + row];
        }
    }
}

__constant__ float weights[9] = {0.0625f, 0.125f, 0.0625f, 0.125f, 0.25f, 0.125f, 0.0625f, 0.125f, 0.0625f};

// A 3 by 3 convolution with constant weights; the border repeats.
extern "C" __global__ void blur(const float* input, float* output, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) {
        return;
    }
    float sum = 0.0f;
    for (int row = -1; row <= 1; ++row) {
        for (int column = -1; column <= 1; ++column) {
            int from_x = min(max(x + column, 0), width - 1);
            int from_y = min(max(y + row, 0), height - 1);
            sum += weights[(row + 1) * 3 + column + 1] * input[from_y * width + from_x];
        }
    }
    output[y * width + x] = sum;
}

// One step of heat along a line; the ends stay.
extern "C" __global__ void heat(const double* before, double* after, unsigned int n, double rate)
{
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= n) {
        return;
    }
    bool inside = index > 0 && index < n - 1;
    double change = inside ? before[index - 1] - 2.0 * before[index] + before[index + 1] : 0.0;
    after[index] = before[index] + rate * change;
}

// One step of the game of life on a torus.
extern "C" __global__ void life(const unsigned char* before, unsigned char* after, unsigned int width, unsigned int height)
{
    unsigned int x = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) {
        return;
    }
    unsigned int around = 0;
    for (unsigned int row = height - 1; row <= height + 1; ++row) {
        for (unsigned int column = width - 1; column <= width + 1; ++column) {
            around += before[(y + row) % height * width + (x + column) % width];
        }
    }
    unsigned char alive = before[y * width + x];
    around -= alive;
    after[y * width + x] = around == 3 || (alive && around == 2);
}

// A product of a matrix of rows with a vector, a warp per row.
extern "C" __global__ void matrix_vector(const float* matrix, const float* vector, float* result, unsigned int rows,
                                         unsigned int columns)
{
    unsigned int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    unsigned int lane = threadIdx.x % 32;
    if (row >= rows) {
        return;
    }
    float sum = 0.0f;
    for (unsigned int column = lane; column < columns; column += 32) {
        sum += matrix[row * columns + column] * vector[column];
    }
    for (unsigned int offset = 16; offset > 0; offset /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    }
    if (lane == 0) {
        result[row] = sum;
    }
}

// One step of bodies that attract each other; x, y, z and mass of each.
extern "C" __global__ void bodies(const float4* positions, float4* forces, unsigned int n)
{
    __shared__ float4 tile[64];
    unsigned int index = blockIdx.x * blockDim.x + threadIdx.x;
    float4 mine = index < n ? positions[index] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float3 force = make_float3(0.0f, 0.0f, 0.0f);
    for (unsigned int base = 0; base < n; base += 64) {
        __syncthreads();
        unsigned int from = base + threadIdx.x;
        tile[threadIdx.x] = from < n ? positions[from] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        __syncthreads();
        for (unsigned int other = 0; other < 64; ++other) {
            float x = tile[other].x - mine.x;
            float y = tile[other].y - mine.y;
            float z = tile[other].z - mine.z;
            float square = x * x + y * y + z * z + 0.01f;
            float scale = tile[other].w / (square * sqrtf(square));
            force.x += x * scale;
            force.y += y * scale;
            force.z += z * scale;
        }
    }
    if (index < n) {
        forces[index] = make_float4(force.x, force.y, force.z, 0.0f);
    }
}
