// Recursion, function pointers, virtual functions and memory from the device's heap.
#include "check.h"

struct Shape {
    __device__ virtual float area() const = 0;
    __device__ virtual ~Shape() {}
};
struct Square : Shape {
    float side;
    __device__ Square(float side) : side(side) {}
    __device__ float area() const override { return side * side; }
};
struct Triangle : Shape {
    float base, height;
    __device__ Triangle(float base, float height) : base(base), height(height) {}
    __device__ float area() const override { return base * height / 2; }
};

__device__ __noinline__ unsigned ackermann(unsigned m, unsigned n) {
    return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
__device__ int twice(int x) { return 2 * x; }
__device__ int square(int x) { return x * x; }
using Function = int (*)(int);
__device__ Function table[] = {twice, square};

__global__ void use(float* areas, unsigned* numbers, int* applied) {
    int i = threadIdx.x;
    Shape* shape = i % 2 ? (Shape*)new Square(i) : new Triangle(i, 3);
    areas[i] = shape->area();
    delete shape;
    numbers[i] = ackermann(2, i % 5);
    applied[i] = table[i % 3 == 0](i);
}

int main() {
    float* areas = managed<float>(64);
    unsigned* numbers = managed<unsigned>(64);
    int* applied = managed<int>(64);
    CALL(cudaDeviceSetLimit(cudaLimitStackSize, 16384));
    use<<<1, 64>>>(areas, numbers, applied);
    finish();
    for (int i = 0; i < 64; ++i) {
        EXPECT_AT(i, areas[i], i % 2 ? (float)i * i : i * 1.5f);
        EXPECT_AT(i, numbers[i], 2u * (i % 5) + 3);
        EXPECT_AT(i, applied[i], i % 3 == 0 ? i * i : 2 * i);
    }
}
