//! Memory that is allocated and freed.

use curium_sys::CUdeviceptr;

use super::{BYTES, NON_BLOCKING, Program, WORDS, expect_race};
use crate::support::{cu, get, handle, ok};

#[test]
fn reallocated_memory_has_no_accesses() {
    expect_race(false, NON_BLOCKING, |program| {
        let api = &program.fixture.api;
        for stream in program.streams {
            let memory: CUdeviceptr = get!(api, cuMemAllocAsync(_, BYTES, stream));
            program.launch(c"put", stream, memory, 0);
            ok!(api, cuMemFreeAsync(memory, stream));
        }
    });
}

#[test]
fn memory_in_stream_order_is_used_after_its_allocation_and_before_it_is_freed() {
    for is_ordered in [true, false] {
        let wait = |program: &Program| {
            if is_ordered {
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
        };
        expect_race(!is_ordered, NON_BLOCKING, |program| {
            let memory = get!(
                program.fixture.api,
                cuMemAllocAsync(_, BYTES, program.streams[0])
            );
            wait(program);
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
            wait(program);
            // The kernel runs first, because an access to freed memory is reported in any case.
            let third = program.fixture.stream(NON_BLOCKING);
            let last = pinned.cast::<u32>().wrapping_add(WORDS - 1);
            // SAFETY: as above; the simulator writes words at once.
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
