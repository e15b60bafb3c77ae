//! Executions of plans.

use std::ffi::{c_int, c_void};
use std::ptr;

use curium_sim::{LibraryOperation, Operand};
use curium_sys::cufft::{Api, CUFFT_FORWARD, CUFFT_INVERSE, cufftHandle, cufftResult};
use rustfft::FftDirection;

use super::compute::transform;
use super::plan::{self, Form, MAX_BYTES, Plan, Precision, Transform};
use super::{Result, code};

/// The operands of a transform, at these positions.
const INPUT: usize = 0;
const OUTPUT: usize = 1;
const WORKSPACE: usize = 2;

/// Enqueues a transform.
fn enqueue(plan: &Plan, input: u64, output: u64, direction: FftDirection) -> Result {
    let transform = plan
        .transform
        .clone()
        .ok_or(cufftResult::CUFFT_INVALID_PLAN)?;
    if !plan.has_workspace() {
        return Err(cufftResult::CUFFT_NO_WORKSPACE);
    }
    if transform.workspace_bytes() > MAX_BYTES {
        return Err(cufftResult::CUFFT_EXEC_FAILED);
    }
    // A real result that is elsewhere costs the input.
    let overwrites_input = transform.form == Form::ComplexToReal && input != output;
    let read = if overwrites_input {
        Operand::read_write()
    } else {
        Operand::read()
    };
    let mut operands = vec![
        transform.input.in_memory(read, input),
        transform.output.in_memory(Operand::write(), output),
    ];
    if let Some((address, bytes)) = plan.written_workspace() {
        // As on hardware, a transform overwrites its workspace, and plans that use one workspace on
        // two streams race.
        operands.push(Operand::write().with_run(address, bytes));
    }
    let operation = LibraryOperation::new("cufftXtExec", operands, move |operands| {
        let result = compute(&transform, direction, &operands[INPUT]);
        operands[OUTPUT].copy_from_slice(&result);
        if overwrites_input {
            operands[INPUT].fill(u8::MAX);
        }
        if let Some(workspace) = operands.get_mut(WORKSPACE) {
            workspace.fill(u8::MAX);
        }
    });
    // SAFETY: the caller of the library guarantees the memory, as that of a kernel.
    unsafe { operation.enqueue(ptr::without_provenance_mut(plan.stream)) }
        .map_err(|_| cufftResult::CUFFT_EXEC_FAILED)
}

fn compute(planned: &Transform, direction: FftDirection, input: &[u8]) -> Vec<u8> {
    let Transform { form, lengths, .. } = planned;
    match planned.precision {
        Precision::Half => transform::<half::f16>(*form, lengths, direction, input),
        Precision::Single => transform::<f32>(*form, lengths, direction, input),
        Precision::Double => transform::<f64>(*form, lengths, direction, input),
    }
}

pub(super) unsafe extern "C" fn execute(
    handle: cufftHandle,
    input: *mut c_void,
    output: *mut c_void,
    direction: c_int,
) -> cufftResult {
    code(plan::with(handle, |plan| {
        let direction = match direction {
            CUFFT_FORWARD => FftDirection::Forward,
            direction if direction == CUFFT_INVERSE as c_int => FftDirection::Inverse,
            _ => return Err(cufftResult::CUFFT_INVALID_VALUE),
        };
        enqueue(plan, input.addr() as u64, output.addr() as u64, direction)
    }))
}

/// Adds the function that executes plans.
pub(super) fn add_to(api: &mut Api) {
    api.cufftXtExec = Some(execute);
}
