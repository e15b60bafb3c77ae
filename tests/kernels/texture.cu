// Reading textures, and reading and writing surfaces, in each geometry. Thread i reads at place i of `at` and writes out[i].
#define THREAD unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return

extern "C" __global__ void read_line(cudaTextureObject_t texture, const float* at, float* out, unsigned int n)
{
    THREAD;
    out[i] = tex1D<float>(texture, at[i]);
}

extern "C" __global__ void read_plane(cudaTextureObject_t texture, const float* at, float* out, unsigned int n)
{
    THREAD;
    out[i] = tex2D<float>(texture, at[2 * i], at[2 * i + 1]);
}

extern "C" __global__ void read_volume(cudaTextureObject_t texture, const float* at, float* out, unsigned int n)
{
    THREAD;
    out[i] = tex3D<float>(texture, at[3 * i], at[3 * i + 1], at[3 * i + 2]);
}

// Four channels of bytes as numbers from 0 to 1.
extern "C" __global__ void read_colors(cudaTextureObject_t texture, const float* at, float* out, unsigned int n)
{
    THREAD;
    float4 color = tex2D<float4>(texture, at[2 * i], at[2 * i + 1]);
    out[4 * i] = color.x;
    out[4 * i + 1] = color.y;
    out[4 * i + 2] = color.z;
    out[4 * i + 3] = color.w;
}

// Whole numbers of two channels, read as they are.
extern "C" __global__ void read_pairs(cudaTextureObject_t texture, const float* at, unsigned int* out, unsigned int n)
{
    THREAD;
    uint2 pair = tex2D<uint2>(texture, at[2 * i], at[2 * i + 1]);
    out[2 * i] = pair.x;
    out[2 * i + 1] = pair.y;
}

extern "C" __global__ void read_line_of_layer(cudaTextureObject_t texture, const float* at, float* out, unsigned int n)
{
    THREAD;
    out[i] = tex1DLayered<float>(texture, at[2 * i], (int)at[2 * i + 1]);
}

extern "C" __global__ void read_layer(cudaTextureObject_t texture, const float* at, float* out, unsigned int n)
{
    THREAD;
    out[i] = tex2DLayered<float>(texture, at[3 * i], at[3 * i + 1], (int)at[3 * i + 2]);
}

extern "C" __global__ void read_cube(cudaTextureObject_t texture, const float* at, float* out, unsigned int n)
{
    THREAD;
    out[i] = texCubemap<float>(texture, at[3 * i], at[3 * i + 1], at[3 * i + 2]);
}

extern "C" __global__ void read_cube_of_layer(cudaTextureObject_t texture, const float* at, float* out, unsigned int n)
{
    THREAD;
    out[i] = texCubemapLayered<float>(texture, at[4 * i], at[4 * i + 1], at[4 * i + 2], (int)at[4 * i + 3]);
}

extern "C" __global__ void read_level(cudaTextureObject_t texture, const float* at, float* out, unsigned int n)
{
    THREAD;
    out[i] = tex2DLod<float>(texture, at[3 * i], at[3 * i + 1], at[3 * i + 2]);
}

extern "C" __global__ void read_gradient(cudaTextureObject_t texture, const float* at, float* out, unsigned int n)
{
    THREAD;
    float2 dx = make_float2(at[3 * i + 2], 0.0f);
    float2 dy = make_float2(0.0f, at[3 * i + 2]);
    out[i] = tex2DGrad<float>(texture, at[3 * i], at[3 * i + 1], dx, dy);
}

extern "C" __global__ void gather(cudaTextureObject_t texture, const float* at, float* out, unsigned int n)
{
    THREAD;
    float4 found = tex2Dgather<float4>(texture, at[2 * i], at[2 * i + 1], 0);
    out[4 * i] = found.x;
    out[4 * i + 1] = found.y;
    out[4 * i + 2] = found.z;
    out[4 * i + 3] = found.w;
}

// By whole numbers, from a buffer.
extern "C" __global__ void fetch(cudaTextureObject_t texture, const int* at, unsigned int* out, unsigned int n)
{
    THREAD;
    out[i] = tex1Dfetch<unsigned int>(texture, at[i]);
}

// What a texture and a surface say of themselves.
extern "C" __global__ void sizes(cudaTextureObject_t texture, cudaSurfaceObject_t surface, unsigned int* out)
{
    asm volatile("txq.width.b32 %0, [%1];" : "=r"(out[0]) : "l"(texture));
    asm volatile("txq.height.b32 %0, [%1];" : "=r"(out[1]) : "l"(texture));
    asm volatile("suq.width.b32 %0, [%1];" : "=r"(out[2]) : "l"(surface));
    asm volatile("suq.height.b32 %0, [%1];" : "=r"(out[3]) : "l"(surface));
}

// Writes x + 10 y + 100 z, reads it from the next column, where there is none from the edge or nothing, and adds that.
extern "C" __global__ void surface_plane(cudaSurfaceObject_t surface, float* out, unsigned int width, unsigned int height)
{
    for (unsigned int i = 0; i < width * height; ++i) {
        int x = i % width;
        int y = i / width;
        surf2Dwrite<float>(x + 10 * y, surface, x * sizeof(float), y);
    }
    for (unsigned int i = 0; i < width * height; ++i) {
        int x = (i % width + 1) * sizeof(float);
        int y = i / width;
        out[2 * i] = surf2Dread<float>(surface, x, y, cudaBoundaryModeClamp);
        out[2 * i + 1] = surf2Dread<float>(surface, x, y, cudaBoundaryModeZero);
    }
    surf2Dwrite<float>(99, surface, width * sizeof(float), 0, cudaBoundaryModeZero);
}

extern "C" __global__ void surface_volume(cudaSurfaceObject_t surface, unsigned int width, unsigned int height, unsigned int depth)
{
    for (unsigned int i = 0; i < width * height * depth; ++i) {
        uchar4 value = make_uchar4(i % width, i / width % height, i / width / height, 255);
        surf3Dwrite<uchar4>(value, surface, i % width * sizeof(uchar4), i / width % height, i / width / height);
    }
}

extern "C" __global__ void surface_layers(cudaSurfaceObject_t surface, unsigned int width, unsigned int layers)
{
    for (unsigned int i = 0; i < width * layers; ++i) {
        unsigned short other = surf1DLayeredread<unsigned short>(surface, i % width * 2, i / width);
        surf1DLayeredwrite<unsigned short>(other + i, surface, i % width * 2, i / width);
    }
}

// Each thread adds its index to one of the elements.
extern "C" __global__ void surface_add(cudaSurfaceObject_t surface, unsigned int width, unsigned int n)
{
    THREAD;
    int x = i % width * 4;
    asm volatile("sured.b.add.1d.u32.trap [%0, {%1}], %2;" : : "l"(surface), "r"(x), "r"(i));
}

// Past the end.
extern "C" __global__ void surface_trap(cudaSurfaceObject_t surface, unsigned int x)
{
    surf1Dwrite<unsigned int>(1, surface, x * 4);
}
