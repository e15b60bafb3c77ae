// A surface that one kernel writes and a texture of the same array that another reads.
#include "check.h"

__global__ void fill(cudaSurfaceObject_t surface) {
    int x = threadIdx.x, y = blockIdx.x;
    surf2Dwrite(make_float2(x * 10 + y, x - y), surface, x * (int)sizeof(float2), y);
}

__global__ void twice(cudaSurfaceObject_t surface, float2* out) {
    int x = threadIdx.x, y = blockIdx.x;
    float2 value = surf2Dread<float2>(surface, x * (int)sizeof(float2), y, cudaBoundaryModeTrap);
    float2 outside = surf2Dread<float2>(surface, (x - 32) * (int)sizeof(float2), y, cudaBoundaryModeZero);
    out[y * 32 + x] = make_float2(value.x * 2 + outside.x, value.y * 2 + outside.y);
}

int main() {
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float2>();
    cudaArray_t array;
    CALL(cudaMallocArray(&array, &format, 32, 8, cudaArraySurfaceLoadStore));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaSurfaceObject_t surface;
    CALL(cudaCreateSurfaceObject(&surface, &resource));
    float2* out = managed<float2>(256);
    fill<<<8, 32>>>(surface);
    twice<<<8, 32>>>(surface, out);
    finish();
    for (int y = 0; y < 8; ++y)
        for (int x = 0; x < 32; ++x) EXPECT(out[y * 32 + x].x == 2 * (x * 10 + y) && out[y * 32 + x].y == 2 * (x - y));
    CALL(cudaDestroySurfaceObject(surface));
    CALL(cudaFreeArray(array));
}
