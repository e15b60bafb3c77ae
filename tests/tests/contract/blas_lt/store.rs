//! Plans that are stored and read again.

use std::ffi::c_int;

use curium_blas::lt::{BlasLt, CuBlasLt, Epilogue, Matmul, MatmulPlan, Operands, PlanOptions};
use curium_blas::sys::{cublasStatus_t, libraryPropertyType_t};
use curium_blas::{Error, Result};
use curium_memory::DeviceBuffer;
use curium_sim::Simulator;
use curium_tests::{TestDriver, TestResult, copy_of, driver_test, simulator_test};

use super::{execute, lt, plan, rows};

/// Reads a plan whose bytes are those of [`MatmulPlan::to_bytes`], or damaged.
fn read(lt: &BlasLt, bytes: &[u8]) -> Result<MatmulPlan> {
    // SAFETY: the bytes come from a plan of this process.
    unsafe { MatmulPlan::from_bytes(lt, bytes) }
}

#[track_caller]
fn assert_refused(result: Result<MatmulPlan>, part: &str) {
    let Err(Error::Plan(error)) = result else {
        panic!("it is not refused")
    };
    assert!(error.to_string().contains(part), "{error}");
}

/// A stored plan has the same algorithm and the same results.
#[driver_test]
fn stored_plan_restores_its_algorithm(test: &TestDriver) -> TestResult {
    let lt = lt(test);
    let stream = test.stream();
    let square = rows::<f32>(64, 64);
    let matmul = Matmul::new(square, square, square).with_epilogue(Epilogue::GeluBias);
    let options = PlanOptions::default();
    for mut plan in MatmulPlan::candidates(&lt, &matmul, options, 4)? {
        let mut read = read(&lt, &plan.to_bytes())?;
        assert_eq!(
            (read.algorithm(), read.matmul()),
            (plan.algorithm(), plan.matmul())
        );
        let a = DeviceBuffer::filled(&stream, 64 * 64, 0.3_f32)?;
        let mut one = a.try_clone()?;
        let mut other = a.try_clone()?;
        execute(
            &mut plan,
            &stream,
            Operands::new(&a, &a, &mut one).with_bias(&a),
        );
        execute(
            &mut read,
            &stream,
            Operands::new(&a, &a, &mut other).with_bias(&a),
        );
        assert_eq!(one.to_vec()?, other.to_vec()?);
    }
    Ok(())
}

#[driver_test]
fn empty_result_plan_is_stored(test: &TestDriver) -> TestResult {
    let lt = lt(test);
    let matmul = Matmul::new(rows::<f32>(0, 4), rows::<f32>(4, 4), rows::<f32>(0, 4));
    let read = read(&lt, &plan(&lt, &matmul).to_bytes())?;
    assert_eq!((read.algorithm(), read.matmul()), (None, &matmul));
    Ok(())
}

#[driver_test]
fn damaged_plans_are_refused(test: &TestDriver) {
    let lt = lt(test);
    let square = rows::<f32>(16, 16);
    let bytes = plan(&lt, &Matmul::new(square, square, square)).to_bytes();
    for end in 0..bytes.len() {
        assert_refused(read(&lt, &bytes[..end]), "not a serialized plan");
    }
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        assert_refused(read(&lt, &damaged), "not a serialized plan");
    }
}

/// The simulated library with another version.
fn newer() -> TestResult<CuBlasLt> {
    unsafe extern "C" fn version(
        property: libraryPropertyType_t,
        value: *mut c_int,
    ) -> cublasStatus_t {
        // SAFETY: the caller passes a place for the value.
        unsafe {
            value.write(if property == libraryPropertyType_t::MAJOR_VERSION {
                99
            } else {
                1
            });
        };
        cublasStatus_t::CUBLAS_STATUS_SUCCESS
    }
    let mut api = copy_of(curium_sim_libraries::cublaslt().api());
    api.cublasLtGetProperty = Some(version);
    // SAFETY: the functions are those of the simulated library, and a version.
    Ok(unsafe { CuBlasLt::from_api(api) }?)
}

#[simulator_test]
fn plan_from_another_version_is_refused(test: &TestDriver, _: &Simulator) -> TestResult {
    let square = rows::<f32>(16, 16);
    let bytes = plan(&lt(test), &Matmul::new(square, square, square)).to_bytes();
    let newer = BlasLt::new(&newer()?, &test.context())?;
    assert_refused(
        read(&newer, &bytes),
        "the plan is for cuBLASLt 13.10.0 and compute capability",
    );
    assert_refused(read(&newer, &bytes), "this is cuBLASLt 99.1.1");
    Ok(())
}
