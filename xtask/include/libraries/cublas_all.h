/* Every header that declares functions of cuBLAS and cuBLASLt. */
#include <cublas_v2.h>
#include <cublasLt.h>
