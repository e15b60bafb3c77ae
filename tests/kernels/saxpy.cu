// y = a * x + y. Each product and sum is one fused multiply-add, rounded once.
extern "C" __global__ void saxpy(float a, const float* x, float* y, unsigned int n)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = a * x[i] + y[i];
    }
}
