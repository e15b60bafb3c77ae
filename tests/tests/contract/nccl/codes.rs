//! The codes that NCCL returns for unusual calls of one rank, as observed with NCCL 2.28 on an
//! H200.

use std::ffi::{c_int, c_void};
use std::ptr;

use curium_driver::Context;
use curium_memory::DeviceBuffer;
use curium_nccl::sys::{
    Api, ncclComm_t, ncclDataType_t, ncclRedOp_t, ncclResult_t, ncclScalarResidence_t, ncclUniqueId,
};
use curium_tests::{TestResult, on_driver};

use super::{context, nccl};

const SUCCESS: ncclResult_t = ncclResult_t::ncclSuccess;
const CUDA: ncclResult_t = ncclResult_t::ncclUnhandledCudaError;
const ARGUMENT: ncclResult_t = ncclResult_t::ncclInvalidArgument;
const USAGE: ncclResult_t = ncclResult_t::ncclInvalidUsage;

/// Calls a function of NCCL, and returns its code.
macro_rules! code {
    ($api:expr, $function:ident($($argument:expr),* $(,)?)) => {{
        let function = $api.$function.expect("the library has it");
        // SAFETY: the tests pass live objects, and places for results, or values that NCCL refuses.
        unsafe { function($($argument),*) }
    }};
}

/// Calls the test with NCCL's functions and the only rank of a communicator, which the test may end
/// by setting it to null.
fn on_rank(test: impl Fn(&Api, &Context, &mut ncclComm_t)) -> TestResult {
    on_driver(|driver| {
        let library = nccl();
        let context = context(driver.driver(), 0);
        let run = context.entered(|_| {
            let api = library.api();
            let mut rank = ptr::null_mut();
            assert_eq!(
                code!(api, ncclCommInitAll(&raw mut rank, 1, ptr::null())),
                SUCCESS
            );
            test(api, &context, &mut rank);
            assert_eq!(code!(api, ncclCommDestroy(rank)), SUCCESS);
            Ok(())
        });
        run?;
        Ok(())
    })
}

fn memory(context: &Context) -> (DeviceBuffer<f32>, *mut c_void) {
    let stream = context.stream().expect("failed to create a stream");
    let buffer = DeviceBuffer::from_slice(&stream, &[1.0_f32, 2.0]).expect("allocation failed");
    stream.synchronize().expect("the copy succeeds");
    let address = ptr::without_provenance_mut(buffer.as_pointer().as_raw() as usize);
    (buffer, address)
}

/// Devices that do not exist or repeat are refused.
#[test]
fn wrong_devices_are_refused() -> TestResult {
    on_rank(|api, _, _| {
        let create = |devices: &[c_int]| {
            let mut ranks = [ptr::null_mut(); 2];
            code!(
                api,
                ncclCommInitAll(ranks.as_mut_ptr(), devices.len() as c_int, devices.as_ptr())
            )
        };
        assert_eq!(
            [create(&[99]), create(&[-1]), create(&[0, 0])],
            [ARGUMENT, ARGUMENT, USAGE]
        );
    })?;
    Ok(())
}

#[test]
fn identifier_survives_refusals() -> TestResult {
    on_rank(|api, _, _| {
        let mut id = ncclUniqueId { internal: [0; 128] };
        let mut rank = ptr::null_mut();
        assert_eq!(code!(api, ncclGetUniqueId(&raw mut id)), SUCCESS);
        for (size, number) in [(0, 0), (1, -1), (1, 1), (-1, 0), (2, 5)] {
            assert_eq!(
                code!(api, ncclCommInitRank(&raw mut rank, size, id, number)),
                ARGUMENT,
                "{number} of {size}"
            );
        }
        assert_eq!(
            code!(api, ncclCommInitRank(ptr::null_mut(), 1, id, 0)),
            ARGUMENT
        );
        assert_eq!(
            code!(api, ncclCommInitRank(&raw mut rank, 1, id, 0)),
            SUCCESS
        );
        assert_eq!(code!(api, ncclCommDestroy(rank)), SUCCESS);
    })?;
    Ok(())
}

/// Null can be ended, and a second finalize is refused.
#[test]
fn second_finalize_is_refused() -> TestResult {
    on_rank(|api, _, rank| {
        let null: ncclComm_t = ptr::null_mut();
        assert_eq!(code!(api, ncclCommFinalize(null)), SUCCESS);
        assert_eq!(code!(api, ncclCommDestroy(null)), SUCCESS);
        assert_eq!(code!(api, ncclCommAbort(null)), SUCCESS);
        assert_eq!(
            [
                code!(api, ncclCommFinalize(*rank)),
                code!(api, ncclCommFinalize(*rank))
            ],
            [SUCCESS, ARGUMENT]
        );
    })?;
    Ok(())
}

/// An operator serves elements of its type until it is destroyed.
#[test]
fn operator_applies_to_its_type() -> TestResult {
    on_rank(|api, context, rank| {
        let (buffer, address) = memory(context);
        let mut operator = ncclRedOp_t::ncclSum;
        let mut factor = 2.0_f32;
        let element = ncclDataType_t::ncclFloat32;
        let residence = ncclScalarResidence_t::ncclScalarHostImmediate;
        let factor = (&raw mut factor).cast();
        let created = code!(
            api,
            ncclRedOpCreatePreMulSum(&raw mut operator, factor, element, residence, *rank)
        );
        assert_eq!(created, SUCCESS);
        let reduce = |element| {
            code!(
                api,
                ncclAllReduce(
                    address,
                    address,
                    2,
                    element,
                    operator,
                    *rank,
                    ptr::null_mut()
                )
            )
        };
        assert_eq!(
            [reduce(element), reduce(ncclDataType_t::ncclInt32)],
            [SUCCESS, ARGUMENT]
        );
        let destroy = || code!(api, ncclRedOpDestroy(operator, *rank));
        assert_eq!(
            [destroy(), destroy(), reduce(element)],
            [SUCCESS, ARGUMENT, ARGUMENT]
        );
        context.synchronize().expect("the operation succeeds");
        assert_eq!(buffer.to_vec().expect("read failed"), [2.0, 4.0]);
    })?;
    Ok(())
}

/// A send to the rank itself without a receive is refused at the end of the group.
#[test]
fn unmatched_send_is_refused() -> TestResult {
    on_rank(|api, context, rank| {
        let (_buffer, address) = memory(context);
        assert_eq!(code!(api, ncclGroupStart()), SUCCESS);
        assert_eq!(
            code!(
                api,
                ncclSend(
                    address,
                    2,
                    ncclDataType_t::ncclFloat32,
                    0,
                    *rank,
                    ptr::null_mut()
                )
            ),
            SUCCESS
        );
        assert_eq!(code!(api, ncclGroupEnd()), USAGE);
        assert_eq!(code!(api, ncclCommAbort(*rank)), SUCCESS);
        *rank = ptr::null_mut();
    })?;
    Ok(())
}

/// Memory of zero bytes is null and other memory cannot be freed.
#[test]
fn zero_bytes_are_null() -> TestResult {
    on_rank(|api, context, _| {
        let (_buffer, foreign) = memory(context);
        let mut address = ptr::without_provenance_mut(1);
        assert_eq!(code!(api, ncclMemAlloc(&raw mut address, 0)), SUCCESS);
        assert!(address.is_null());
        assert_eq!(code!(api, ncclMemFree(address)), SUCCESS);
        assert_eq!(
            [
                code!(api, ncclMemAlloc(ptr::null_mut(), 64)),
                code!(api, ncclMemFree(foreign))
            ],
            [CUDA, CUDA]
        );
    })?;
    Ok(())
}

#[test]
fn empty_registration() -> TestResult {
    on_rank(|api, context, rank| {
        let (_buffer, address) = memory(context);
        let mut handle = ptr::null_mut();
        assert_eq!(
            code!(api, ncclCommRegister(*rank, address, 0, &raw mut handle)),
            SUCCESS
        );
        assert_eq!(code!(api, ncclCommDeregister(*rank, handle)), SUCCESS);
        assert_eq!(
            code!(api, ncclCommDeregister(*rank, ptr::null_mut())),
            SUCCESS
        );
    })?;
    Ok(())
}

/// Shrink without a rank to leave out or of an unknown rank is refused.
#[test]
fn invalid_shrink_is_refused() -> TestResult {
    on_rank(|api, _, rank| {
        if api.ncclCommShrink.is_none() {
            return;
        }
        let shrink = |mut excluded: c_int, count| {
            let mut child = ptr::null_mut();
            code!(
                api,
                ncclCommShrink(
                    *rank,
                    &raw mut excluded,
                    count,
                    &raw mut child,
                    ptr::null_mut(),
                    0
                )
            )
        };
        assert_eq!(
            [shrink(0, 0), shrink(0, 1), shrink(5, 1), shrink(-1, 1)],
            [ARGUMENT; 4]
        );
    })?;
    Ok(())
}
