// Functions of float and double beside the host's, within the error that the programming guide gives.
#include "check.h"
#include <cmath>

__global__ void floats(const float* x, float* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float v = x[i], a = fabsf(v) + 0.001f;
    float r[] = {sinf(v), cosf(v), expf(v / 4), logf(a), powf(a, 1.7f), tanhf(v), sqrtf(a), cbrtf(v), atan2f(v, 2), erff(v), lgammaf(a), fmodf(v, 0.7f)};
    for (int k = 0; k < 12; ++k) out[i * 12 + k] = r[k];
}
__global__ void doubles(const float* x, double* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    double v = x[i], a = fabs(v) + 0.001;
    double r[] = {sin(v), cos(v), exp(v / 4), log(a), pow(a, 1.7), tanh(v), sqrt(a), cbrt(v), atan2(v, 2.0), erf(v), tgamma(a), remainder(v, 0.7)};
    for (int k = 0; k < 12; ++k) out[i * 12 + k] = r[k];
}

int main() {
    const int count = 1000;
    float *x = managed<float>(count), *f = managed<float>(count * 12);
    double* d = managed<double>(count * 12);
    for (int i = 0; i < count; ++i) x[i] = (i - 500) / 37.0f;
    floats<<<8, 128>>>(x, f, count);
    doubles<<<8, 128>>>(x, d, count);
    finish();
    for (int i = 0; i < count; ++i) {
        double v = x[i], a = std::fabs(v) + 0.001, b = std::fabs(x[i]) + 0.001f, fv = x[i];
        double w[] = {std::sin(v), std::cos(v), std::exp(v / 4), std::log(a), std::pow(a, 1.7), std::tanh(v), std::sqrt(a), std::cbrt(v),
                      std::atan2(v, 2.0), std::erf(v), std::tgamma(a), std::remainder(v, 0.7)};
        double s[] = {std::sin(fv), std::cos(fv), std::exp(fv / 4), std::log(b), std::pow(b, 1.7f), std::tanh(fv), std::sqrt(b), std::cbrt(fv),
                      std::atan2(fv, 2.0), std::erf(fv), std::lgamma(b), std::fmod(fv, (double)0.7f)};
        for (int k = 0; k < 12; ++k) {
            double wrong = std::fabs(d[i * 12 + k] - w[k]) / (std::fabs(w[k]) + 1e-3);
            double wrong_float = std::fabs(f[i * 12 + k] - s[k]) / (std::fabs(s[k]) + 1e-1);
            if (wrong > 1e-12 || wrong_float > 4e-6) {
                std::fprintf(stderr, "function %d of %g: %g and %g, not %g and %g\n", k, v, f[i * 12 + k], d[i * 12 + k], s[k], w[k]);
                return 1;
            }
        }
    }
}
