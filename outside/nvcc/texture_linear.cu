// Textures of linear memory and of rows, with bytes read as fractions.
#include "check.h"

__global__ void fetch(cudaTextureObject_t words, cudaTextureObject_t bytes, int4* out, float4* fractions) {
    int i = threadIdx.x;
    out[i] = tex1Dfetch<int4>(words, 63 - i);
    fractions[i] = tex2D<float4>(bytes, i % 8 + 0.5f, i / 8 + 0.5f);
}

int main() {
    int4* words = managed<int4>(64);
    uchar4* bytes;
    size_t pitch;
    CALL(cudaMallocPitch((void**)&bytes, &pitch, 8 * sizeof(uchar4), 8));
    uchar4 host[64];
    for (int i = 0; i < 64; ++i) {
        words[i] = make_int4(i, -i, i * i, ~i);
        host[i] = make_uchar4(i * 4, 255 - i, i, 255);
    }
    CALL(cudaMemcpy2D(bytes, pitch, host, 32, 32, 8, cudaMemcpyHostToDevice));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = words;
    resource.res.linear.desc = cudaCreateChannelDesc<int4>();
    resource.res.linear.sizeInBytes = 64 * sizeof(int4);
    cudaTextureDesc description = {};
    description.readMode = cudaReadModeElementType;
    cudaTextureObject_t first, second;
    CALL(cudaCreateTextureObject(&first, &resource, &description, nullptr));
    resource = {};
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.devPtr = bytes;
    resource.res.pitch2D.desc = cudaCreateChannelDesc<uchar4>();
    resource.res.pitch2D.width = resource.res.pitch2D.height = 8;
    resource.res.pitch2D.pitchInBytes = pitch;
    description.readMode = cudaReadModeNormalizedFloat;
    CALL(cudaCreateTextureObject(&second, &resource, &description, nullptr));
    int4* out = managed<int4>(64);
    float4* fractions = managed<float4>(64);
    fetch<<<1, 64>>>(first, second, out, fractions);
    finish();
    for (int i = 0; i < 64; ++i) {
        int4 w = words[63 - i];
        EXPECT(out[i].x == w.x && out[i].y == w.y && out[i].z == w.z && out[i].w == w.w);
        EXPECT_AT(i, fractions[i].x, host[i].x / 255.0f);
        EXPECT_AT(i, fractions[i].y, host[i].y / 255.0f);
        EXPECT_AT(i, fractions[i].w, 1.0f);
    }
}
