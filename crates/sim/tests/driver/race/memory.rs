//! Memory that is allocated and freed.

use curium_sys::CUdeviceptr;

use super::{BYTES, NON_BLOCKING, Program, WORDS, expect_race};
use crate::support::{cu, get, handle, ok};

#[test]
fn reallocated_memory_is_fresh() {
    expect_race(false, NON_BLOCKING, |program| {
        let api = &program.fixture.api;
        for stream in program.streams {
            let memory: CUdeviceptr = get!(api, cuMemAllocAsync(_, BYTES, stream));
            program.launch(c"put", stream, memory, 0);
            ok!(api, cuMemFreeAsync(memory, stream));
        }
    });
}

/// Makes the second stream wait for the first.
fn order_streams(program: &Program) {
    let event = handle!(program.fixture.api, cuEventCreate(_, 0));
    ok!(
        program.fixture.api,
        cuEventRecord(event, program.streams[0])
    );
    ok!(
        program.fixture.api,
        cuStreamWaitEvent(program.streams[1], event, 0)
    );
}

/// Stream-ordered memory is used after its allocation and before it is freed.
#[test]
fn stream_ordered_lifetime() {
    for is_ordered in [true, false] {
        expect_race(!is_ordered, NON_BLOCKING, |program| {
            let memory = get!(
                program.fixture.api,
                cuMemAllocAsync(_, BYTES, program.streams[0])
            );
            if is_ordered {
                order_streams(program);
            }
            program.launch(c"put", program.streams[1], memory, 0);
        });
        expect_race(!is_ordered, NON_BLOCKING, |program| {
            let memory = get!(
                program.fixture.api,
                cuMemAllocAsync(_, BYTES, program.streams[0])
            );
            ok!(program.fixture.api, cuCtxSynchronize());
            let pinned = handle!(program.fixture.api, cuMemHostAlloc(_, BYTES, 0));
            // SAFETY: the memory is as long, and nobody uses it yet.
            unsafe { pinned.cast::<u8>().write_bytes(0, BYTES) };
            program.launch(c"take", program.streams[0], memory, pinned as CUdeviceptr);
            if is_ordered {
                order_streams(program);
            }
            // The kernel runs first, because an access to freed memory is reported in any case.
            let third = program.fixture.stream(NON_BLOCKING);
            let last = pinned.cast::<u32>().wrapping_add(WORDS - 1);
            // SAFETY: the word is in the pinned memory, and the simulator writes words at once.
            while !is_ordered && unsafe { last.read_volatile() } == 0 {
                ok!(
                    program.fixture.api,
                    cuMemsetD8Async(program.memory, 0, 1, third)
                );
                _ = cu!(program.fixture.api, cuStreamQuery(third));
            }
            ok!(
                program.fixture.api,
                cuMemFreeAsync(memory, program.streams[1])
            );
        });
    }
}
