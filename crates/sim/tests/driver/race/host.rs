//! Races with the host.

use curium_sim::Config;
use curium_sim::ReportKind;
use curium_sys::CUdeviceptr;

use super::{BYTES, NON_BLOCKING, Program, expect_race};
use crate::support::{cu, get, handle, ok};

#[test]
fn registered_memory_is_checked() {
    for synchronizes in [false, true] {
        expect_race(!synchronizes, NON_BLOCKING, |program| {
            let api = &program.fixture.api;
            let pinned = handle!(api, cuMemHostAlloc(_, BYTES, 0));
            ok!(
                api,
                cuMemcpyDtoHAsync_v2(pinned, program.memory, BYTES, program.streams[0])
            );
            if synchronizes {
                ok!(api, cuStreamSynchronize(program.streams[0]));
            }
            let to = program.fixture.alloc(BYTES);
            // The host calls this function and waits for it, which orders nothing.
            ok!(
                api,
                cuMemcpyHtoDAsync_v2(to, pinned, BYTES, program.streams[1])
            );
            _ = cu!(api, cuStreamSynchronize(program.streams[1]));
        });
        expect_race(!synchronizes, NON_BLOCKING, |program| {
            let api = &program.fixture.api;
            let managed = get!(api, cuMemAllocManaged(_, BYTES, 1));
            program.launch(c"put", program.streams[0], managed, 0);
            if synchronizes {
                ok!(api, cuStreamSynchronize(program.streams[0]));
            }
            let mut bytes = vec![0_u8; BYTES];
            _ = cu!(
                api,
                cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), managed, BYTES)
            );
        });
    }
}

/// The host changes memory of a copy that is still enqueued.
#[test]
fn host_change_is_reported() {
    for (wait, is_source) in [(true, true), (true, false), (false, true), (false, false)] {
        let program = Program::new(Config::new().with_workers(1), NON_BLOCKING);
        let api = &program.fixture.api;
        let pinned = handle!(api, cuMemHostAlloc(_, BYTES, 0));
        let [stream, _] = program.streams;
        if is_source {
            ok!(
                api,
                cuMemcpyHtoDAsync_v2(program.memory, pinned, BYTES, stream)
            );
        } else {
            ok!(
                api,
                cuMemcpyDtoHAsync_v2(pinned, program.memory, BYTES, stream)
            );
        }
        if wait {
            ok!(api, cuStreamSynchronize(stream));
        }
        // SAFETY: the memory is as long; a single worker does not begin before somebody waits.
        unsafe { pinned.cast::<u8>().wrapping_add(12).write(1) };
        let faults = program.end();
        let Some(fault) = faults.first() else {
            assert!(wait, "the change is seen");
            continue;
        };
        assert!(!wait && fault.kind == ReportKind::HostRace, "{fault}");
        let verb = if is_source { "read" } else { "write" };
        let access = format!(
            "{}-byte {verb} at {:#x}, 12 bytes into a {BYTES}-byte allocation",
            BYTES - 12,
            pinned.addr() + 12
        );
        let text = fault.to_string();
        assert!(
            text.starts_with(
                "copy: the host changed memory while a copy that uses it was queued: "
            ),
            "{text}"
        );
        assert!(text.contains(&access), "{text} without {access}");
    }
}

#[test]
fn wait_value_orders_the_host() {
    let program = Program::new(Config::new().with_workers(1), NON_BLOCKING);
    let api = &program.fixture.api;
    let [flag, pinned] = [4, BYTES].map(|size| handle!(api, cuMemHostAlloc(_, size, 0)));
    let [stream, _] = program.streams;
    // SAFETY: the memory is large enough, and nobody uses it yet.
    unsafe { flag.cast::<u32>().write(0) };
    ok!(
        api,
        cuStreamWaitValue32_v2(stream, flag as CUdeviceptr, 1, 1)
    );
    ok!(
        api,
        cuMemcpyHtoDAsync_v2(program.memory, pinned, BYTES, stream)
    );
    // SAFETY: the memory is large enough, and the copy that reads it waits for the flag.
    unsafe { pinned.cast::<u8>().write(1) };
    // SAFETY: the memory is large enough, and the simulator reads the flag as one word.
    unsafe { flag.cast::<u32>().write_volatile(1) };
    assert_eq!(program.end(), []);
}
