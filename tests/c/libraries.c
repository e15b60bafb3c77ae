/* A program that is linked to cuBLAS, cuRAND and cuFFT by their names: `load/libraries_in_c.rs` builds and runs it. It declares what it
 * uses of them, since a machine without the toolkit lacks their headers. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>

typedef unsigned long long CUdeviceptr;
typedef struct cublasContext *cublasHandle_t;
typedef struct curandGenerator *curandGenerator_t;
typedef int cufftHandle;

int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
int cuMemcpyHtoD_v2(CUdeviceptr destination, const void *source, size_t bytes);
int cuMemcpyDtoH_v2(void *destination, CUdeviceptr source, size_t bytes);

int cublasCreate_v2(cublasHandle_t *handle);
int cublasSgemm_v2(cublasHandle_t handle, int operation_a, int operation_b, int m, int n, int k, const float *alpha,
                   const float *a, int lda, const float *b, int ldb, const float *beta, float *c, int ldc);
int cublasSgeqrfBatched(cublasHandle_t handle, int m, int n, float *const *a, int lda, float *const *tau, int *info, int count);
const char *cublasGetStatusName(int status);

int curandCreateGenerator(curandGenerator_t *generator, int type);
int curandGenerateUniform(curandGenerator_t generator, float *numbers, size_t count);

int cufftPlan1d(cufftHandle *plan, int length, int type, int batches);
int cufftExecC2C(cufftHandle plan, float *input, float *output, int direction);

enum { LENGTH = 16, NO_TRANSPOSE = 0, PSEUDO_DEFAULT = 100, COMPLEX_TO_COMPLEX = 0x29, FORWARD = -1 };

#define CHECK(call) do { int code = (call); if (code != 0) { fprintf(stderr, "%s: %d\n", #call, code); return 1; } } while (0)

static float *pointer(CUdeviceptr address) { return (float *)(size_t)address; }

int main(void) {
    void *context;
    CUdeviceptr memory[2];
    CHECK(cuInit(0));
    CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuMemAlloc_v2(&memory[0], 2 * LENGTH * sizeof(float)));
    CHECK(cuMemAlloc_v2(&memory[1], 2 * LENGTH * sizeof(float)));

    const float matrix[4] = {1, 2, 3, 4}, one = 1, zero = 0;
    float product[4];
    cublasHandle_t handle;
    CHECK(cublasCreate_v2(&handle));
    CHECK(cuMemcpyHtoD_v2(memory[0], matrix, sizeof matrix));
    CHECK(cublasSgemm_v2(handle, NO_TRANSPOSE, NO_TRANSPOSE, 2, 2, 2, &one, pointer(memory[0]), 2, pointer(memory[0]), 2, &zero,
                         pointer(memory[1]), 2));
    CHECK(cuMemcpyDtoH_v2(product, memory[1], sizeof product));
    printf("product: %g %g %g %g\n", product[0], product[1], product[2], product[3]);

    float numbers[LENGTH];
    curandGenerator_t generator;
    CHECK(curandCreateGenerator(&generator, PSEUDO_DEFAULT));
    CHECK(curandGenerateUniform(generator, pointer(memory[0]), LENGTH));
    CHECK(cuMemcpyDtoH_v2(numbers, memory[0], sizeof numbers));
    int valid = 0;
    for (int i = 0; i < LENGTH; i++) valid += numbers[i] > 0 && numbers[i] <= 1;
    printf("uniform: %d %d\n", valid, numbers[0] != numbers[1]);

    float wave[2 * LENGTH], spectrum[2 * LENGTH];
    for (int i = 0; i < LENGTH; i++) {
        wave[2 * i] = (float)cos(2 * 3.14159265358979323846 * 3 * i / LENGTH);
        wave[2 * i + 1] = 0;
    }
    cufftHandle plan;
    CHECK(cufftPlan1d(&plan, LENGTH, COMPLEX_TO_COMPLEX, 1));
    CHECK(cuMemcpyHtoD_v2(memory[0], wave, sizeof wave));
    CHECK(cufftExecC2C(plan, pointer(memory[0]), pointer(memory[1]), FORWARD));
    CHECK(cuMemcpyDtoH_v2(spectrum, memory[1], sizeof spectrum));
    printf("spectrum:");
    for (int i = 0; i < LENGTH; i++) printf(" %.0f", fabs(spectrum[2 * i]));
    printf("\n");

    int code = cublasSgeqrfBatched(handle, 2, 2, NULL, 2, NULL, NULL, 0);
    code = cublasSgeqrfBatched(handle, 2, 2, NULL, 2, NULL, NULL, 0);
    printf("factorization: %s\n", cublasGetStatusName(code));
    return 0;
}
