//! Bad descriptions and operands are errors with their shapes before the library is called.

use std::ffi::c_int;

use curium_blas::lt::{
    BlasLt, Compute, CuBlasLt, Epilogue, Matmul, MatmulPlan, Operands, PlanOptions, Scales,
    TypedLayout,
};
use curium_blas::sys::{cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t};
use curium_blas::{Error, MatrixLayout, Result};
use curium_driver::ContextOptions;
use curium_memory::DeviceBuffer;
use curium_sim::{Fault, Simulator};
use curium_sys::{CUresult, Function};
use curium_tests::{TestDriver, TestResult, copy_of, driver_test, simulator_test};
use float8::F8E4M3;
use half::{bf16, f16};

use super::{columns, execute, lt, plan, rows};

#[track_caller]
fn assert_refused<T>(result: Result<T>, parts: &[&str]) {
    let Err(Error::Shape(error)) = result else {
        panic!("it is not refused as a problem with shapes")
    };
    let text = error.to_string();
    assert!(
        parts.iter().all(|part| text.contains(part)),
        "{text} without one of {parts:?}"
    );
}

fn try_plan(lt: &BlasLt, matmul: Matmul) -> Result<MatmulPlan> {
    MatmulPlan::new(lt, &matmul, PlanOptions::default())
}

/// Descriptions that contradict themselves are refused.
#[driver_test]
fn contradictory_descriptions_are_refused(test: &TestDriver) {
    let lt = lt(test);
    let a = rows::<f32>(8, 16);
    let b = rows::<f32>(16, 4);
    let d = rows::<f32>(8, 4);
    let refused = |matmul: Matmul, parts: &[&str]| assert_refused(try_plan(&lt, matmul), parts);
    refused(
        Matmul::new(a, a, d),
        &[
            "MatmulPlan::new",
            "the shapes do not agree",
            "f32 8 × 16 row-major",
            "d is f32 8 × 4",
        ],
    );
    refused(
        Matmul::new(a, b, rows::<f32>(4, 8)),
        &["the shapes do not agree"],
    );
    refused(
        Matmul::new(a, b, d).with_c(rows::<f32>(8, 5)),
        &["the shapes do not agree", "c is f32 8 × 5"],
    );
    refused(
        Matmul::new(a, b, d).with_c(columns::<f32>(8, 4)),
        &["different orders"],
    );
    let narrow = TypedLayout::new::<f32>(MatrixLayout::row_major(8, 16).with_leading_dimension(15));
    refused(
        Matmul::new(narrow, b, d),
        &["leading dimension of a too small", "at least 16"],
    );
    let huge = TypedLayout::new::<f32>(MatrixLayout::row_major(usize::MAX, 16));
    refused(Matmul::new(huge, b, d), &["invalid layout of a"]);
    refused(
        Matmul::new(a, b, d).with_batches(2),
        &["the results overlap", "stride 0"],
    );
    let heads = TypedLayout::new::<f32>(MatrixLayout::row_major(8, 4).with_leading_dimension(12));
    refused(
        Matmul::new(a, b, heads.with_stride(3)).with_batches(3),
        &["the results overlap", "stride 3"],
    );
    refused(
        Matmul::new(a, b, heads.with_stride(4)).with_batches(4),
        &["the results overlap", "stride 4"],
    );
    refused(
        Matmul::new(a, b, d.with_stride(32)).with_batches(usize::MAX),
        &["too many products"],
    );
    refused(
        Matmul::new(rows::<f32>(8, 0), rows::<f32>(0, 4), d),
        &["the factors are empty"],
    );
    refused(
        Matmul::new(a, b, d).with_alignment(24),
        &["the alignment is not a power of two (24 bytes)"],
    );
    let auxiliary = Matmul::new(a, b, d).with_epilogue(Epilogue::ReluAuxiliary);
    refused(
        auxiliary.with_auxiliary_leading_dimension(64),
        &["auxiliary memory is 64", "multiple of 128"],
    );
    refused(
        auxiliary.with_auxiliary_leading_dimension(0),
        &["auxiliary memory is 0"],
    );
}

/// Types that the library does not combine are refused.
#[driver_test]
fn unsupported_type_combinations_are_refused(test: &TestDriver) -> TestResult {
    let lt = lt(test);
    let refused = |matmul: Matmul, parts: &[&str]| assert_refused(try_plan(&lt, matmul), parts);
    let square = rows::<f32>(16, 16);
    refused(
        Matmul::new(square, rows::<bf16>(16, 16), square),
        &["a is f32, b is bf16", "computed in f32"],
    );
    refused(
        Matmul::new(square, square, rows::<f16>(16, 16)),
        &["d is f16"],
    );
    refused(
        Matmul::new(square, square, square).with_compute(Compute::F64),
        &["computed in f64"],
    );
    refused(
        Matmul::new(square, square, square).with_scales(Scales::A),
        &["scales require factors of 8-bit floats"],
    );
    let a = rows::<F8E4M3>(16, 32);
    let b = columns::<F8E4M3>(32, 16);
    let of_result = Matmul::new(a, b, rows::<bf16>(16, 16)).with_scales(Scales::D);
    let capability = test.device().compute_capability()?;
    if (capability.major, capability.minor) < (8, 9) {
        refused(of_result, &["compute capability 8.9"]);
        return Ok(());
    }
    refused(
        of_result,
        &["requires a result of 8-bit floats (d is bf16)"],
    );
    let odd = rows::<F8E4M3>(16, 24);
    refused(
        Matmul::new(odd, columns::<F8E4M3>(24, 16), rows::<bf16>(16, 16)),
        &["inner dimension is 24", "16"],
    );
    refused(
        Matmul::new(a, columns::<F8E4M3>(32, 24), rows::<bf16>(16, 24)),
        &["consecutive elements of the result is 24"],
    );
    let device = Matmul::new(a, b, rows::<F8E4M3>(16, 16)).with_device_factors();
    refused(device, &["factors in device memory require a separate c"]);
    if capability.major == 9 {
        let wrong = Matmul::new(a, rows::<F8E4M3>(32, 16), rows::<bf16>(16, 16));
        refused(wrong, &["8-bit floats in this order", "store `a` by rows"]);
    }
    let a = rows::<i8>(8, 8);
    let b = columns::<i8>(8, 8);
    let d = columns::<i32>(8, 8);
    refused(
        Matmul::new(a, b, d).with_epilogue(Epilogue::Relu),
        &["i8 with the epilogue Relu"],
    );
    refused(
        Matmul::new(rows::<i8>(8, 6), columns::<i8>(6, 8), d),
        &["inner dimension is 6", "multiple of 4"],
    );
    refused(
        Matmul::new(columns::<i8>(8, 8), b, d),
        &["i8 in this order"],
    );
    Ok(())
}

#[driver_test]
fn operands_that_the_plan_does_not_take_are_refused(test: &TestDriver) -> TestResult {
    let lt = lt(test);
    let stream = test.stream();
    let square = rows::<f32>(16, 16);
    let mut plan = plan(
        &lt,
        &Matmul::new(square, square, square).with_epilogue(Epilogue::Bias),
    );
    let buffer = DeviceBuffer::<f32>::zeroed(&stream, 256)?;
    let mut result = DeviceBuffer::<f32>::zeroed(&stream, 257)?;
    let small = DeviceBuffer::<f32>::zeroed(&stream, 255)?;
    let other = DeviceBuffer::<i32>::zeroed(&stream, 256)?;
    let mut workspace = plan.workspace(&stream)?;
    let mut refused = |operands: Operands<'_>, parts: &[&str]| {
        assert_refused(plan.execute(&stream, operands), parts);
    };
    let complete = Operands::new(&buffer, &buffer, &mut result).with_bias(&buffer);
    refused(
        complete.with_c(&buffer).with_workspace(&mut workspace),
        &["MatmulPlan::execute", "does not use c"],
    );
    refused(
        Operands::new(&buffer, &buffer, &mut result),
        &["the bias is missing", "reads 16 elements of f32"],
    );
    let operands = Operands::new(&small, &buffer, &mut result).with_bias(&buffer);
    refused(
        operands,
        &["memory too small for a (256 elements, 255 available)"],
    );
    refused(
        Operands::new(&other, &buffer, &mut result),
        &["a consists of i32, the plan's of f32"],
    );
    let mut part = result.slice_mut(1..)?;
    let operands = Operands::new(&buffer, &buffer, &mut part)
        .with_bias(&buffer)
        .with_workspace(&mut workspace);
    refused(
        operands,
        &[
            "address of d is not a multiple of 256 bytes",
            "smaller alignment",
        ],
    );
    let mut gradient = DeviceBuffer::<f32>::zeroed(&stream, 16)?;
    let operands = Operands::new(&buffer, &buffer, &mut result).with_bias_gradient(&mut gradient);
    refused(
        operands.with_workspace(&mut workspace),
        &["the plan reads the bias"],
    );
    Ok(())
}

#[driver_test]
fn factors_that_the_plan_cannot_represent_are_refused(test: &TestDriver) -> TestResult {
    let lt = lt(test);
    let stream = test.stream();
    let mut plan = plan(
        &lt,
        &Matmul::new(rows::<i8>(8, 8), columns::<i8>(8, 8), columns::<i32>(8, 8)),
    );
    let factor = DeviceBuffer::<i8>::zeroed(&stream, 64)?;
    let mut d = DeviceBuffer::<i32>::zeroed(&stream, 64)?;
    let mut workspace = plan.workspace(&stream)?;
    let operands = Operands::new(&factor, &factor, &mut d)
        .with_factors(0.5, 0.0)
        .with_workspace(&mut workspace);
    assert_refused(
        plan.execute(&stream, operands),
        &["the factor is not an i32 (0.5)"],
    );
    Ok(())
}

#[simulator_test]
fn workspace_that_is_missing_or_too_small_is_refused(
    test: &TestDriver,
    _: &Simulator,
) -> TestResult {
    let lt = lt(test);
    let stream = test.stream();
    let square = rows::<f32>(64, 64);
    let mut plan = plan(&lt, &Matmul::new(square, square, square));
    let bytes = plan.workspace_bytes();
    assert!(
        bytes > 0,
        "the library for simulated devices prefers an algorithm with a workspace"
    );
    let a = DeviceBuffer::<f32>::zeroed(&stream, 64 * 64)?;
    let mut d = DeviceBuffer::<f32>::zeroed(&stream, 64 * 64)?;
    let mut small = DeviceBuffer::<u8>::zeroed(&stream, bytes - 1)?;
    assert_refused(
        plan.execute(&stream, Operands::new(&a, &a, &mut d)),
        &["the workspace is missing"],
    );
    let operands = Operands::new(&a, &a, &mut d).with_workspace(&mut small);
    assert_refused(
        plan.execute(&stream, operands),
        &["too small for the workspace"],
    );
    let options = PlanOptions::default().with_workspace_limit(0);
    let without = MatmulPlan::new(&lt, &Matmul::new(square, square, square), options)?;
    assert_eq!(without.workspace_bytes(), 0);
    Ok(())
}

#[driver_test]
fn foreign_stream_is_refused(test: &TestDriver) -> TestResult {
    let lt = lt(test);
    let square = rows::<f32>(8, 8);
    let mut plan = plan(&lt, &Matmul::new(square, square, square));
    let context = test.device().create_context(ContextOptions::new())?;
    let stream = context.stream()?;
    let a = DeviceBuffer::<f32>::zeroed(&stream, 64)?;
    let mut d = DeviceBuffer::<f32>::zeroed(&stream, 64)?;
    let mut workspace = plan.workspace(&stream)?;
    let operands = Operands::new(&a, &a, &mut d).with_workspace(&mut workspace);
    assert_refused(plan.execute(&stream, operands), &["another context"]);
    Ok(())
}

/// A library without an algorithm for any product.
fn without_algorithms() -> TestResult<CuBlasLt> {
    unsafe extern "C" fn nothing(
        _: cublasLtHandle_t,
        _: cublasLtMatmulDesc_t,
        _: cublasLtMatrixLayout_t,
        _: cublasLtMatrixLayout_t,
        _: cublasLtMatrixLayout_t,
        _: cublasLtMatrixLayout_t,
        _: curium_blas::sys::cublasLtMatmulPreference_t,
        _: c_int,
        _: *mut curium_blas::sys::cublasLtMatmulHeuristicResult_t,
        _: *mut c_int,
    ) -> curium_blas::sys::cublasStatus_t {
        curium_blas::sys::cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED
    }
    let mut api = copy_of(curium_sim_libraries::cublaslt().api());
    api.cublasLtMatmulAlgoGetHeuristic = Some(nothing);
    // SAFETY: the functions are those of the simulated library, and one that finds nothing.
    Ok(unsafe { CuBlasLt::from_api(api) }?)
}

/// A product without an algorithm is an error with its shapes.
#[simulator_test]
fn product_without_algorithm_reports_its_shapes(test: &TestDriver, _: &Simulator) -> TestResult {
    let lt = BlasLt::new(&without_algorithms()?, &test.context())?;
    let square = rows::<f32>(8, 8);
    let Err(Error::Plan(error)) = try_plan(&lt, Matmul::new(square, square, square)) else {
        panic!("there is one")
    };
    let text = error.to_string();
    assert!(
        text.contains("has no algorithm (a is f32 8 × 8 row-major"),
        "{text}"
    );
    Ok(())
}

/// A failure of a launch is returned and the plan stays usable.
#[simulator_test]
fn plan_stays_usable_after_a_failed_launch(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let lt = lt(test);
    let stream = test.stream();
    let square = rows::<f32>(8, 8);
    let mut plan = plan(&lt, &Matmul::new(square, square, square));
    let a = DeviceBuffer::filled(&stream, 64, 1.0_f32)?;
    let mut d = DeviceBuffer::<f32>::zeroed(&stream, 64)?;
    simulator.inject(
        Fault::on(Function::cuLaunchKernel).returns(CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES),
    );
    let error = plan
        .execute(&stream, Operands::new(&a, &a, &mut d))
        .expect_err("the launch fails");
    assert!(
        error.to_string().contains("cublasLtMatmul")
            && error.to_string().contains("EXECUTION_FAILED"),
        "{error}"
    );
    execute(&mut plan, &stream, Operands::new(&a, &a, &mut d));
    assert_eq!(d.to_vec()?, [8.0; 64]);
    Ok(())
}
