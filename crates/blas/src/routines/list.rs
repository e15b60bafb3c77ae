//! The list of the routines that this crate calls.

/// Calls a macro with the list of the cuBLAS routines that have one function per element type.
///
/// The simulated library does not use the list: its functions follow from the header of cuBLAS. So
/// a function under the wrong routine, or parameters in the wrong order, fail the contract tests.
///
/// An entry lists the parameters of the routine with their kinds, and for each element type two
/// functions: one with 32-bit sizes, and one with 64-bit sizes (since CUDA 12.0). A routine without
/// sizes, or with 32-bit sizes only, lists its only function twice: sizes that the function cannot
/// take are refused. Routines under `every` exist for `f32`, `f64`, `Complex32` and `Complex64`,
/// those under `real` for `f32` and `f64`.
///
/// | kind | parameter |
/// |---|---|
/// | `dim` | a size, an increment or a leading dimension, of 32 or 64 bits |
/// | `stride` | a stride of a batch, always of 64 bits |
/// | `input`, `output` | a pointer to elements that the routine reads, or writes |
/// | `inputs`, `outputs` | an array of such pointers |
/// | `real`, `real_output` | a pointer to a real number: `f32` for `Complex32`, `f64` for `Complex64` |
/// | `index` | a pointer to an index in the result, with as many bits as `dim` |
/// | `operation`, `fill`, `diagonal`, `side` | an enumerator of this kind |
macro_rules! for_each_routine {
    ($callback:ident) => {
        $callback! {
            every {
                amax(n: dim, x: input, incx: dim, result: index)
                    { cublasIsamax_v2 cublasIsamax_v2_64, cublasIdamax_v2 cublasIdamax_v2_64,
                      cublasIcamax_v2 cublasIcamax_v2_64, cublasIzamax_v2 cublasIzamax_v2_64 }
                amin(n: dim, x: input, incx: dim, result: index)
                    { cublasIsamin_v2 cublasIsamin_v2_64, cublasIdamin_v2 cublasIdamin_v2_64,
                      cublasIcamin_v2 cublasIcamin_v2_64, cublasIzamin_v2 cublasIzamin_v2_64 }
                asum(n: dim, x: input, incx: dim, result: real_output)
                    { cublasSasum_v2 cublasSasum_v2_64, cublasDasum_v2 cublasDasum_v2_64,
                      cublasScasum_v2 cublasScasum_v2_64, cublasDzasum_v2 cublasDzasum_v2_64 }
                nrm2(n: dim, x: input, incx: dim, result: real_output)
                    { cublasSnrm2_v2 cublasSnrm2_v2_64, cublasDnrm2_v2 cublasDnrm2_v2_64,
                      cublasScnrm2_v2 cublasScnrm2_v2_64, cublasDznrm2_v2 cublasDznrm2_v2_64 }
                dot(n: dim, x: input, incx: dim, y: input, incy: dim, result: output)
                    { cublasSdot_v2 cublasSdot_v2_64, cublasDdot_v2 cublasDdot_v2_64,
                      cublasCdotu_v2 cublasCdotu_v2_64, cublasZdotu_v2 cublasZdotu_v2_64 }
                dot_conjugated(n: dim, x: input, incx: dim, y: input, incy: dim, result: output)
                    { cublasSdot_v2 cublasSdot_v2_64, cublasDdot_v2 cublasDdot_v2_64,
                      cublasCdotc_v2 cublasCdotc_v2_64, cublasZdotc_v2 cublasZdotc_v2_64 }
                axpy(n: dim, alpha: input, x: input, incx: dim, y: output, incy: dim)
                    { cublasSaxpy_v2 cublasSaxpy_v2_64, cublasDaxpy_v2 cublasDaxpy_v2_64,
                      cublasCaxpy_v2 cublasCaxpy_v2_64, cublasZaxpy_v2 cublasZaxpy_v2_64 }
                copy(n: dim, x: input, incx: dim, y: output, incy: dim)
                    { cublasScopy_v2 cublasScopy_v2_64, cublasDcopy_v2 cublasDcopy_v2_64,
                      cublasCcopy_v2 cublasCcopy_v2_64, cublasZcopy_v2 cublasZcopy_v2_64 }
                swap(n: dim, x: output, incx: dim, y: output, incy: dim)
                    { cublasSswap_v2 cublasSswap_v2_64, cublasDswap_v2 cublasDswap_v2_64,
                      cublasCswap_v2 cublasCswap_v2_64, cublasZswap_v2 cublasZswap_v2_64 }
                scal(n: dim, alpha: input, x: output, incx: dim)
                    { cublasSscal_v2 cublasSscal_v2_64, cublasDscal_v2 cublasDscal_v2_64,
                      cublasCscal_v2 cublasCscal_v2_64, cublasZscal_v2 cublasZscal_v2_64 }
                scal_real(n: dim, alpha: real, x: output, incx: dim)
                    { cublasSscal_v2 cublasSscal_v2_64, cublasDscal_v2 cublasDscal_v2_64,
                      cublasCsscal_v2 cublasCsscal_v2_64, cublasZdscal_v2 cublasZdscal_v2_64 }
                rot(n: dim, x: output, incx: dim, y: output, incy: dim, cosine: real, sine: input)
                    { cublasSrot_v2 cublasSrot_v2_64, cublasDrot_v2 cublasDrot_v2_64,
                      cublasCrot_v2 cublasCrot_v2_64, cublasZrot_v2 cublasZrot_v2_64 }
                rot_real(n: dim, x: output, incx: dim, y: output, incy: dim, cosine: real, sine: real)
                    { cublasSrot_v2 cublasSrot_v2_64, cublasDrot_v2 cublasDrot_v2_64,
                      cublasCsrot_v2 cublasCsrot_v2_64, cublasZdrot_v2 cublasZdrot_v2_64 }
                rotg(a: output, b: output, cosine: real_output, sine: output)
                    { cublasSrotg_v2 cublasSrotg_v2, cublasDrotg_v2 cublasDrotg_v2,
                      cublasCrotg_v2 cublasCrotg_v2, cublasZrotg_v2 cublasZrotg_v2 }
                gemv(operation: operation, m: dim, n: dim, alpha: input, a: input, lda: dim, x: input, incx: dim, beta: input, y: output, incy: dim)
                    { cublasSgemv_v2 cublasSgemv_v2_64, cublasDgemv_v2 cublasDgemv_v2_64,
                      cublasCgemv_v2 cublasCgemv_v2_64, cublasZgemv_v2 cublasZgemv_v2_64 }
                ger(m: dim, n: dim, alpha: input, x: input, incx: dim, y: input, incy: dim, a: output, lda: dim)
                    { cublasSger_v2 cublasSger_v2_64, cublasDger_v2 cublasDger_v2_64,
                      cublasCgeru_v2 cublasCgeru_v2_64, cublasZgeru_v2 cublasZgeru_v2_64 }
                ger_conjugated(m: dim, n: dim, alpha: input, x: input, incx: dim, y: input, incy: dim, a: output, lda: dim)
                    { cublasSger_v2 cublasSger_v2_64, cublasDger_v2 cublasDger_v2_64,
                      cublasCgerc_v2 cublasCgerc_v2_64, cublasZgerc_v2 cublasZgerc_v2_64 }
                symv(fill: fill, n: dim, alpha: input, a: input, lda: dim, x: input, incx: dim, beta: input, y: output, incy: dim)
                    { cublasSsymv_v2 cublasSsymv_v2_64, cublasDsymv_v2 cublasDsymv_v2_64,
                      cublasCsymv_v2 cublasCsymv_v2_64, cublasZsymv_v2 cublasZsymv_v2_64 }
                hemv(fill: fill, n: dim, alpha: input, a: input, lda: dim, x: input, incx: dim, beta: input, y: output, incy: dim)
                    { cublasSsymv_v2 cublasSsymv_v2_64, cublasDsymv_v2 cublasDsymv_v2_64,
                      cublasChemv_v2 cublasChemv_v2_64, cublasZhemv_v2 cublasZhemv_v2_64 }
                syr(fill: fill, n: dim, alpha: input, x: input, incx: dim, a: output, lda: dim)
                    { cublasSsyr_v2 cublasSsyr_v2_64, cublasDsyr_v2 cublasDsyr_v2_64,
                      cublasCsyr_v2 cublasCsyr_v2_64, cublasZsyr_v2 cublasZsyr_v2_64 }
                her(fill: fill, n: dim, alpha: real, x: input, incx: dim, a: output, lda: dim)
                    { cublasSsyr_v2 cublasSsyr_v2_64, cublasDsyr_v2 cublasDsyr_v2_64,
                      cublasCher_v2 cublasCher_v2_64, cublasZher_v2 cublasZher_v2_64 }
                syr2(fill: fill, n: dim, alpha: input, x: input, incx: dim, y: input, incy: dim, a: output, lda: dim)
                    { cublasSsyr2_v2 cublasSsyr2_v2_64, cublasDsyr2_v2 cublasDsyr2_v2_64,
                      cublasCsyr2_v2 cublasCsyr2_v2_64, cublasZsyr2_v2 cublasZsyr2_v2_64 }
                her2(fill: fill, n: dim, alpha: input, x: input, incx: dim, y: input, incy: dim, a: output, lda: dim)
                    { cublasSsyr2_v2 cublasSsyr2_v2_64, cublasDsyr2_v2 cublasDsyr2_v2_64,
                      cublasCher2_v2 cublasCher2_v2_64, cublasZher2_v2 cublasZher2_v2_64 }
                trmv(fill: fill, operation: operation, diagonal: diagonal, n: dim, a: input, lda: dim, x: output, incx: dim)
                    { cublasStrmv_v2 cublasStrmv_v2_64, cublasDtrmv_v2 cublasDtrmv_v2_64,
                      cublasCtrmv_v2 cublasCtrmv_v2_64, cublasZtrmv_v2 cublasZtrmv_v2_64 }
                trsv(fill: fill, operation: operation, diagonal: diagonal, n: dim, a: input, lda: dim, x: output, incx: dim)
                    { cublasStrsv_v2 cublasStrsv_v2_64, cublasDtrsv_v2 cublasDtrsv_v2_64,
                      cublasCtrsv_v2 cublasCtrsv_v2_64, cublasZtrsv_v2 cublasZtrsv_v2_64 }
                gbmv(operation: operation, m: dim, n: dim, lower: dim, upper: dim, alpha: input, a: input, lda: dim, x: input, incx: dim, beta: input, y: output, incy: dim)
                    { cublasSgbmv_v2 cublasSgbmv_v2_64, cublasDgbmv_v2 cublasDgbmv_v2_64,
                      cublasCgbmv_v2 cublasCgbmv_v2_64, cublasZgbmv_v2 cublasZgbmv_v2_64 }
                hbmv(fill: fill, n: dim, k: dim, alpha: input, a: input, lda: dim, x: input, incx: dim, beta: input, y: output, incy: dim)
                    { cublasSsbmv_v2 cublasSsbmv_v2_64, cublasDsbmv_v2 cublasDsbmv_v2_64,
                      cublasChbmv_v2 cublasChbmv_v2_64, cublasZhbmv_v2 cublasZhbmv_v2_64 }
                hpmv(fill: fill, n: dim, alpha: input, a: input, x: input, incx: dim, beta: input, y: output, incy: dim)
                    { cublasSspmv_v2 cublasSspmv_v2_64, cublasDspmv_v2 cublasDspmv_v2_64,
                      cublasChpmv_v2 cublasChpmv_v2_64, cublasZhpmv_v2 cublasZhpmv_v2_64 }
                hpr(fill: fill, n: dim, alpha: real, x: input, incx: dim, a: output)
                    { cublasSspr_v2 cublasSspr_v2_64, cublasDspr_v2 cublasDspr_v2_64,
                      cublasChpr_v2 cublasChpr_v2_64, cublasZhpr_v2 cublasZhpr_v2_64 }
                hpr2(fill: fill, n: dim, alpha: input, x: input, incx: dim, y: input, incy: dim, a: output)
                    { cublasSspr2_v2 cublasSspr2_v2_64, cublasDspr2_v2 cublasDspr2_v2_64,
                      cublasChpr2_v2 cublasChpr2_v2_64, cublasZhpr2_v2 cublasZhpr2_v2_64 }
                tbmv(fill: fill, operation: operation, diagonal: diagonal, n: dim, k: dim, a: input, lda: dim, x: output, incx: dim)
                    { cublasStbmv_v2 cublasStbmv_v2_64, cublasDtbmv_v2 cublasDtbmv_v2_64,
                      cublasCtbmv_v2 cublasCtbmv_v2_64, cublasZtbmv_v2 cublasZtbmv_v2_64 }
                tbsv(fill: fill, operation: operation, diagonal: diagonal, n: dim, k: dim, a: input, lda: dim, x: output, incx: dim)
                    { cublasStbsv_v2 cublasStbsv_v2_64, cublasDtbsv_v2 cublasDtbsv_v2_64,
                      cublasCtbsv_v2 cublasCtbsv_v2_64, cublasZtbsv_v2 cublasZtbsv_v2_64 }
                tpmv(fill: fill, operation: operation, diagonal: diagonal, n: dim, a: input, x: output, incx: dim)
                    { cublasStpmv_v2 cublasStpmv_v2_64, cublasDtpmv_v2 cublasDtpmv_v2_64,
                      cublasCtpmv_v2 cublasCtpmv_v2_64, cublasZtpmv_v2 cublasZtpmv_v2_64 }
                tpsv(fill: fill, operation: operation, diagonal: diagonal, n: dim, a: input, x: output, incx: dim)
                    { cublasStpsv_v2 cublasStpsv_v2_64, cublasDtpsv_v2 cublasDtpsv_v2_64,
                      cublasCtpsv_v2 cublasCtpsv_v2_64, cublasZtpsv_v2 cublasZtpsv_v2_64 }
                gemm(operation_a: operation, operation_b: operation, m: dim, n: dim, k: dim, alpha: input, a: input, lda: dim, b: input, ldb: dim, beta: input, c: output, ldc: dim)
                    { cublasSgemm_v2 cublasSgemm_v2_64, cublasDgemm_v2 cublasDgemm_v2_64,
                      cublasCgemm_v2 cublasCgemm_v2_64, cublasZgemm_v2 cublasZgemm_v2_64 }
                gemm_batched(operation_a: operation, operation_b: operation, m: dim, n: dim, k: dim, alpha: input, a: inputs, lda: dim, b: inputs, ldb: dim, beta: input, c: outputs, ldc: dim, count: dim)
                    { cublasSgemmBatched cublasSgemmBatched_64, cublasDgemmBatched cublasDgemmBatched_64,
                      cublasCgemmBatched cublasCgemmBatched_64, cublasZgemmBatched cublasZgemmBatched_64 }
                gemm_strided_batched(operation_a: operation, operation_b: operation, m: dim, n: dim, k: dim, alpha: input, a: input, lda: dim, stride_a: stride, b: input, ldb: dim, stride_b: stride, beta: input, c: output, ldc: dim, stride_c: stride, count: dim)
                    { cublasSgemmStridedBatched cublasSgemmStridedBatched_64, cublasDgemmStridedBatched cublasDgemmStridedBatched_64,
                      cublasCgemmStridedBatched cublasCgemmStridedBatched_64, cublasZgemmStridedBatched cublasZgemmStridedBatched_64 }
                symm(side: side, fill: fill, m: dim, n: dim, alpha: input, a: input, lda: dim, b: input, ldb: dim, beta: input, c: output, ldc: dim)
                    { cublasSsymm_v2 cublasSsymm_v2_64, cublasDsymm_v2 cublasDsymm_v2_64,
                      cublasCsymm_v2 cublasCsymm_v2_64, cublasZsymm_v2 cublasZsymm_v2_64 }
                hemm(side: side, fill: fill, m: dim, n: dim, alpha: input, a: input, lda: dim, b: input, ldb: dim, beta: input, c: output, ldc: dim)
                    { cublasSsymm_v2 cublasSsymm_v2_64, cublasDsymm_v2 cublasDsymm_v2_64,
                      cublasChemm_v2 cublasChemm_v2_64, cublasZhemm_v2 cublasZhemm_v2_64 }
                syrk(fill: fill, operation: operation, n: dim, k: dim, alpha: input, a: input, lda: dim, beta: input, c: output, ldc: dim)
                    { cublasSsyrk_v2 cublasSsyrk_v2_64, cublasDsyrk_v2 cublasDsyrk_v2_64,
                      cublasCsyrk_v2 cublasCsyrk_v2_64, cublasZsyrk_v2 cublasZsyrk_v2_64 }
                herk(fill: fill, operation: operation, n: dim, k: dim, alpha: real, a: input, lda: dim, beta: real, c: output, ldc: dim)
                    { cublasSsyrk_v2 cublasSsyrk_v2_64, cublasDsyrk_v2 cublasDsyrk_v2_64,
                      cublasCherk_v2 cublasCherk_v2_64, cublasZherk_v2 cublasZherk_v2_64 }
                syr2k(fill: fill, operation: operation, n: dim, k: dim, alpha: input, a: input, lda: dim, b: input, ldb: dim, beta: input, c: output, ldc: dim)
                    { cublasSsyr2k_v2 cublasSsyr2k_v2_64, cublasDsyr2k_v2 cublasDsyr2k_v2_64,
                      cublasCsyr2k_v2 cublasCsyr2k_v2_64, cublasZsyr2k_v2 cublasZsyr2k_v2_64 }
                her2k(fill: fill, operation: operation, n: dim, k: dim, alpha: input, a: input, lda: dim, b: input, ldb: dim, beta: real, c: output, ldc: dim)
                    { cublasSsyr2k_v2 cublasSsyr2k_v2_64, cublasDsyr2k_v2 cublasDsyr2k_v2_64,
                      cublasCher2k_v2 cublasCher2k_v2_64, cublasZher2k_v2 cublasZher2k_v2_64 }
                trmm(side: side, fill: fill, operation: operation, diagonal: diagonal, m: dim, n: dim, alpha: input, a: input, lda: dim, b: input, ldb: dim, c: output, ldc: dim)
                    { cublasStrmm_v2 cublasStrmm_v2_64, cublasDtrmm_v2 cublasDtrmm_v2_64,
                      cublasCtrmm_v2 cublasCtrmm_v2_64, cublasZtrmm_v2 cublasZtrmm_v2_64 }
                trsm(side: side, fill: fill, operation: operation, diagonal: diagonal, m: dim, n: dim, alpha: input, a: input, lda: dim, b: output, ldb: dim)
                    { cublasStrsm_v2 cublasStrsm_v2_64, cublasDtrsm_v2 cublasDtrsm_v2_64,
                      cublasCtrsm_v2 cublasCtrsm_v2_64, cublasZtrsm_v2 cublasZtrsm_v2_64 }
                trsm_batched(side: side, fill: fill, operation: operation, diagonal: diagonal, m: dim, n: dim, alpha: input, a: inputs, lda: dim, b: outputs, ldb: dim, count: dim)
                    { cublasStrsmBatched cublasStrsmBatched_64, cublasDtrsmBatched cublasDtrsmBatched_64,
                      cublasCtrsmBatched cublasCtrsmBatched_64, cublasZtrsmBatched cublasZtrsmBatched_64 }
                geam(operation_a: operation, operation_b: operation, m: dim, n: dim, alpha: input, a: input, lda: dim, beta: input, b: input, ldb: dim, c: output, ldc: dim)
                    { cublasSgeam cublasSgeam_64, cublasDgeam cublasDgeam_64,
                      cublasCgeam cublasCgeam_64, cublasZgeam cublasZgeam_64 }
                dgmm(side: side, m: dim, n: dim, a: input, lda: dim, x: input, incx: dim, c: output, ldc: dim)
                    { cublasSdgmm cublasSdgmm_64, cublasDdgmm cublasDdgmm_64,
                      cublasCdgmm cublasCdgmm_64, cublasZdgmm cublasZdgmm_64 }
            }
            real {
                rotm(n: dim, x: output, incx: dim, y: output, incy: dim, parameters: input)
                    { cublasSrotm_v2 cublasSrotm_v2_64, cublasDrotm_v2 cublasDrotm_v2_64 }
                rotmg(d1: output, d2: output, x1: output, y1: input, parameters: output)
                    { cublasSrotmg_v2 cublasSrotmg_v2, cublasDrotmg_v2 cublasDrotmg_v2 }
            }
        }
    };
}
