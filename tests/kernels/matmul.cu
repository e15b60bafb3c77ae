// product (rows x columns) = left (rows x depth) * right (depth x columns), all row-major, in blocks of 16 x 16 threads.
//
// Each element is the sum over `depth` in ascending order, each step one fused multiply-add.
#define TILE 16

extern "C" __global__ void matmul(const float* left, const float* right, float* product, unsigned int rows,
                                  unsigned int depth, unsigned int columns)
{
    __shared__ float left_tile[TILE][TILE];
    __shared__ float right_tile[TILE][TILE];
    unsigned int row = blockIdx.y * TILE + threadIdx.y;
    unsigned int column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0.0f;
    for (unsigned int start = 0; start < depth; start += TILE) {
        unsigned int across = start + threadIdx.x;
        unsigned int down = start + threadIdx.y;
        left_tile[threadIdx.y][threadIdx.x] = row < rows && across < depth ? left[row * depth + across] : 0.0f;
        right_tile[threadIdx.y][threadIdx.x] = down < depth && column < columns ? right[down * columns + column] : 0.0f;
        __syncthreads();
        for (unsigned int k = 0; k < TILE; ++k) {
            sum += left_tile[threadIdx.y][k] * right_tile[k][threadIdx.x];
        }
        __syncthreads();
    }
    if (row < rows && column < columns) {
        product[row * columns + column] = sum;
    }
}
