// A texture of an array: nearest and linear filtering, clamped and wrapped coordinates, integers read as fractions.
#include "check.h"
#include <cmath>
#include <vector>

const int W = 16, H = 8;

__global__ void sample(cudaTextureObject_t texture, float* out, int count, bool normalized) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float x = -3 + (i % 64) * 0.375f, y = -2 + (i / 64) * 0.25f;
    out[i] = normalized ? tex2D<float>(texture, x / W, y / H) : tex2D<float>(texture, x, y);
}

float wanted(const std::vector<float>& data, float x, float y, bool linear, bool wrap) {
    auto at = [&](int i, int j) {
        i = wrap ? (i % W + W) % W : i < 0 ? 0 : i >= W ? W - 1 : i;
        j = wrap ? (j % H + H) % H : j < 0 ? 0 : j >= H ? H - 1 : j;
        return data[j * W + i];
    };
    if (!linear) return at((int)std::floor(x), (int)std::floor(y));
    float fx = std::floor(x - 0.5f), fy = std::floor(y - 0.5f), a = x - 0.5f - fx, b = y - 0.5f - fy;
    int i = (int)fx, j = (int)fy;
    return (1 - a) * (1 - b) * at(i, j) + a * (1 - b) * at(i + 1, j) + (1 - a) * b * at(i, j + 1) + a * b * at(i + 1, j + 1);
}

int main() {
    std::vector<float> data(W * H);
    for (int i = 0; i < W * H; ++i) data[i] = i * 37 % 64;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    CALL(cudaMallocArray(&array, &format, W, H));
    CALL(cudaMemcpy2DToArray(array, 0, 0, data.data(), W * 4, W * 4, H, cudaMemcpyHostToDevice));
    std::vector<float> back(W * H);
    CALL(cudaMemcpy2DFromArray(back.data(), W * 4, array, 0, 0, W * 4, H, cudaMemcpyDeviceToHost));
    EXPECT(back == data);
    const int count = 64 * 48;
    float* out = managed<float>(count);
    for (int mode = 0; mode < 4; ++mode) {
        bool linear = mode & 1, wrap = mode & 2;
        cudaResourceDesc resource = {};
        resource.resType = cudaResourceTypeArray;
        resource.res.array.array = array;
        cudaTextureDesc description = {};
        description.addressMode[0] = description.addressMode[1] = wrap ? cudaAddressModeWrap : cudaAddressModeClamp;
        description.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
        description.normalizedCoords = wrap;
        cudaTextureObject_t texture;
        CALL(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
        sample<<<count / 64, 64>>>(texture, out, count, wrap);
        finish();
        for (int i = 0; i < count; ++i) {
            float x = -3 + (i % 64) * 0.375f, y = -2 + (i / 64) * 0.25f;
            EXPECT_AT(i, out[i], wanted(data, x, y, linear, wrap));
        }
        CALL(cudaDestroyTextureObject(texture));
    }
    CALL(cudaFreeArray(array));
}
