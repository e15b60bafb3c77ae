/* Stands in for libcublas where a linker would look for it: forwards to the functions that `blas_in_c.rs` sets, which are those of the
 * library that Curium has loaded. */
typedef struct cublasContext *cublasHandle_t;
typedef int cublasStatus_t;

cublasStatus_t (*forward_create)(cublasHandle_t *);
cublasStatus_t (*forward_nrm2)(cublasHandle_t, int, const float *, int, float *);
cublasStatus_t (*forward_scal)(cublasHandle_t, int, const float *, float *, int);

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) {
    return forward_create(handle);
}

cublasStatus_t cublasSnrm2_v2(cublasHandle_t handle, int n, const float *x, int increment, float *result) {
    return forward_nrm2(handle, n, x, increment, result);
}

cublasStatus_t cublasSscal_v2(cublasHandle_t handle, int n, const float *factor, float *x, int increment) {
    return forward_scal(handle, n, factor, x, increment);
}
