// Fourier transforms of 1024 points, a block for each, in shared memory.
#define POINTS 1024
#define BITS 10

// exp(-i pi turns), and its conjugate backward.
__device__ float2 root(float turns, int backward)
{
    float2 root;
    sincospif(backward ? turns : -turns, &root.y, &root.x);
    return root;
}

__device__ double2 root(double turns, int backward)
{
    double2 root;
    sincospi(backward ? turns : -turns, &root.y, &root.x);
    return root;
}

template <typename C> __device__ C sum(C a, C b)
{
    a.x += b.x;
    a.y += b.y;
    return a;
}

template <typename C> __device__ C difference(C a, C b)
{
    a.x -= b.x;
    a.y -= b.y;
    return a;
}

template <typename C> __device__ C product(C a, C b)
{
    C product;
    product.x = a.x * b.x - a.y * b.y;
    product.y = a.x * b.y + a.y * b.x;
    return product;
}

// Radix 2: the points in the order of their reversed bits, then ten rounds of butterflies.
template <typename C, typename T> __device__ void transform(C* data, int backward)
{
    __shared__ C points[POINTS];
    C* mine = data + blockIdx.x * POINTS;
    for (unsigned int at = threadIdx.x; at < POINTS; at += blockDim.x) {
        points[__brev(at) >> (32 - BITS)] = mine[at];
    }
    for (unsigned int half = 1; half < POINTS; half *= 2) {
        __syncthreads();
        for (unsigned int pair = threadIdx.x; pair < POINTS / 2; pair += blockDim.x) {
            unsigned int place = pair % half;
            unsigned int low = pair / half * 2 * half + place;
            C turned = product(points[low + half], root((T)place / (T)half, backward));
            C other = points[low];
            points[low] = sum(other, turned);
            points[low + half] = difference(other, turned);
        }
    }
    __syncthreads();
    T scale = backward ? (T)1 / POINTS : (T)1;
    for (unsigned int at = threadIdx.x; at < POINTS; at += blockDim.x) {
        mine[at].x = points[at].x * scale;
        mine[at].y = points[at].y * scale;
    }
}

// Forward, or backward with the result divided by the number of points.
extern "C" __global__ void fourier(float2* data, int backward) { transform<float2, float>(data, backward); }

extern "C" __global__ void fourier_f64(double2* data, int backward) { transform<double2, double>(data, backward); }

// Radix 4, forward, from one array to the other and back without reversing bits; 256 threads.
extern "C" __global__ void fourier_radix4(float2* data)
{
    __shared__ float2 points[2][POINTS];
    float2* mine = data + blockIdx.x * POINTS;
    for (unsigned int at = threadIdx.x; at < POINTS; at += 256) {
        points[0][at] = mine[at];
    }
    unsigned int round = 0;
    for (unsigned int stride = 1; stride < POINTS; stride *= 4, ++round) {
        __syncthreads();
        const float2* from = points[round % 2] + threadIdx.x;
        unsigned int group = threadIdx.x / stride;
        float2* to = points[(round + 1) % 2] + threadIdx.x % stride + 4 * group * stride;
        float turns = (float)(2 * group * stride) / POINTS;
        float2 even = sum(from[0], from[POINTS / 2]);
        float2 even_rest = difference(from[0], from[POINTS / 2]);
        float2 odd = sum(from[POINTS / 4], from[3 * POINTS / 4]);
        float2 odd_rest = difference(from[POINTS / 4], from[3 * POINTS / 4]);
        float2 turned = make_float2(odd_rest.y, -odd_rest.x);
        to[0] = sum(even, odd);
        to[stride] = product(sum(even_rest, turned), root(turns, 0));
        to[2 * stride] = product(difference(even, odd), root(2 * turns, 0));
        to[3 * stride] = product(difference(even_rest, turned), root(3 * turns, 0));
    }
    __syncthreads();
    for (unsigned int at = threadIdx.x; at < POINTS; at += 256) {
        mine[at] = points[round % 2][at];
    }
}

#define PRIME 998244353ull

// The transform over the integers modulo 119 * 2^23 + 1, whose results are exact: `root` is of order 1024, and everything is
// multiplied by `scale` at the end.
extern "C" __global__ void number_transform(unsigned int* data, unsigned int root, unsigned int scale)
{
    __shared__ unsigned int points[POINTS];
    __shared__ unsigned int powers[POINTS / 2];
    unsigned int* mine = data + blockIdx.x * POINTS;
    for (unsigned int at = threadIdx.x; at < POINTS; at += blockDim.x) {
        points[__brev(at) >> (32 - BITS)] = mine[at];
    }
    for (unsigned int at = threadIdx.x; at < POINTS / 2; at += blockDim.x) {
        unsigned long long power = 1;
        unsigned long long square = root;
        for (unsigned int bits = at; bits > 0; bits /= 2) {
            power = bits % 2 ? power * square % PRIME : power;
            square = square * square % PRIME;
        }
        powers[at] = power;
    }
    for (unsigned int half = 1; half < POINTS; half *= 2) {
        __syncthreads();
        for (unsigned int pair = threadIdx.x; pair < POINTS / 2; pair += blockDim.x) {
            unsigned int place = pair % half;
            unsigned int low = pair / half * 2 * half + place;
            unsigned long long turned = (unsigned long long)points[low + half] * powers[place * (POINTS / 2 / half)] % PRIME;
            unsigned long long other = points[low];
            points[low] = (other + turned) % PRIME;
            points[low + half] = (other + PRIME - turned) % PRIME;
        }
    }
    __syncthreads();
    for (unsigned int at = threadIdx.x; at < POINTS; at += blockDim.x) {
        mine[at] = (unsigned long long)points[at] * scale % PRIME;
    }
}
