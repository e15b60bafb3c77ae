// wmma: products of half, bfloat16 and bytes.
#include "check.h"
#include <cuda_bf16.h>
#include <mma.h>
using namespace nvcuda;

template <class T, class Sum, class LayoutB>
__global__ void product(const T* a, const T* b, Sum* c) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, T, LayoutB> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, Sum> sum;
    wmma::fill_fragment(sum, Sum(1));
    for (int k = 0; k < 3; ++k) {
        wmma::load_matrix_sync(left, a + k * 16, 48);
        wmma::load_matrix_sync(right, b + k * 16, 48);
        wmma::mma_sync(sum, left, right, sum);
    }
    for (int i = 0; i < sum.num_elements; ++i) sum.x[i] = sum.x[i] * Sum(2);
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}

template <class T, class Sum>
void check() {
    T *a = managed<T>(16 * 48), *b = managed<T>(16 * 48);
    Sum* c = managed<Sum>(256);
    auto value = [](int i, int salt) { return i * salt % 9 - 4; };
    for (int i = 0; i < 16 * 48; ++i) a[i] = T((float)value(i, 5)), b[i] = T((float)value(i, 7));
    product<T, Sum, wmma::col_major><<<1, 32>>>(a, b, c);
    finish();
    for (int row = 0; row < 16; ++row)
        for (int column = 0; column < 16; ++column) {
            int sum = 1;
            for (int k = 0; k < 48; ++k) sum += value(row * 48 + k, 5) * value(column * 48 + k, 7);
            EXPECT_AT(row * 16 + column, (float)c[row * 16 + column], (float)(2 * sum));
        }
}

int main() {
    check<half, float>();
    check<half, half>();
    check<__nv_bfloat16, float>();
    check<signed char, int>();
}
