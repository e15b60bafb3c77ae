/* A library that computes with cuBLAS on the handle of its caller: `blas_in_c.rs` builds and calls it. It declares what it uses of
 * cuBLAS, whose headers a machine without the toolkit lacks. */
#include <stddef.h>

typedef struct cublasContext *cublasHandle_t;
typedef int cublasStatus_t;

enum { SUCCESS = 0, INVALID_VALUE = 7 };

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle);
cublasStatus_t cublasSnrm2_v2(cublasHandle_t handle, int n, const float *x, int increment, float *result);
cublasStatus_t cublasSscal_v2(cublasHandle_t handle, int n, const float *factor, float *x, int increment);

/* Returns a new handle, which the caller destroys, or NULL. */
cublasHandle_t new_handle(void) {
    cublasHandle_t handle = NULL;
    return cublasCreate_v2(&handle) == SUCCESS ? handle : NULL;
}

/* Scales n numbers in device memory to the Euclidean norm 1, on the stream of the handle. */
cublasStatus_t normalize(cublasHandle_t handle, int n, float *x) {
    float norm = 0;
    cublasStatus_t status = cublasSnrm2_v2(handle, n, x, 1, &norm);
    if (status != SUCCESS) return status;
    if (norm == 0) return INVALID_VALUE;
    const float factor = 1 / norm;
    return cublasSscal_v2(handle, n, &factor, x, 1);
}
