//! Races between streams: what orders them, what does not, and what is said of them.

use std::ffi::c_void;
use std::ptr;

use curium_sim::exec::{Fault, FaultKind};
use curium_sim::{Checks, Config};
use curium_sys::{
    CU_STREAM_PER_THREAD, CUDA_MEMSET_NODE_PARAMS, CUdeviceptr, CUfunction, CUgraphNode, CUresult, CUstream,
};

use crate::support::{Fixture, cu, get, handle, ok};

const BLOCKING: u32 = 0;
const NON_BLOCKING: u32 = 1;
/// Words that each kernel accesses, one for each thread.
const WORDS: usize = 256;
const BYTES: usize = 4 * WORDS;

/// Kernels of one block that write, read and add to a word for each thread, that read and then tell others, and that wait to be told.
const KERNELS: &str = ".version 8.0
.target sm_75
.address_size 64
.visible .entry put(.param .u64 memory, .param .u64 unused)
{
    .reg .b32 %thread;
    .reg .b64 %place;
    mov.u32 %thread, %tid.x;
    ld.param.u64 %place, [memory];
    mad.wide.u32 %place, %thread, 4, %place;
    st.global.u32 [%place], %thread;
    ret;
}
.visible .entry put_bytes(.param .u64 memory, .param .u64 unused)
{
    .reg .b32 %thread;
    .reg .b64 %wide, %place;
    mov.u32 %thread, %tid.x;
    cvt.u64.u32 %wide, %thread;
    ld.param.u64 %place, [memory];
    add.u64 %place, %place, %wide;
    st.global.u8 [%place], %thread;
    ret;
}
.visible .entry take(.param .u64 memory, .param .u64 result)
{
    .reg .b32 %thread, %value;
    .reg .b64 %place, %to;
    mov.u32 %thread, %tid.x;
    ld.param.u64 %place, [memory];
    ld.param.u64 %to, [result];
    mad.wide.u32 %place, %thread, 4, %place;
    mad.wide.u32 %to, %thread, 4, %to;
    ld.global.u32 %value, [%place];
    st.global.u32 [%to], %value;
    ret;
}
.visible .entry add(.param .u64 memory, .param .u64 unused)
{
    .reg .b64 %place;
    ld.param.u64 %place, [memory];
    red.global.add.u32 [%place], 1;
    ret;
}
.visible .entry tell(.param .u64 memory, .param .u64 flag)
{
    .reg .b64 %place;
    ld.param.u64 %place, [memory];
    st.global.u32 [%place], 5;
    membar.sys;
    ld.param.u64 %place, [flag];
    st.volatile.global.u32 [%place], 1;
    ret;
}
.visible .entry listen(.param .u64 memory, .param .u64 flag)
{
    .reg .pred %waits;
    .reg .b32 %value;
    .reg .b64 %place, %flag;
    ld.param.u64 %place, [memory];
    ld.param.u64 %flag, [flag];
AGAIN:
    ld.volatile.global.u32 %value, [%flag];
    setp.ne.u32 %waits, %value, 1;
    @%waits bra AGAIN;
    membar.sys;
    st.global.u32 [%place], 6;
    ret;
}
";

/// A program with two streams, of which nothing orders one behind the other but what the program does.
struct Program {
    fixture: Fixture,
    streams: [CUstream; 2],
    memory: CUdeviceptr,
    module: curium_sys::CUmodule,
}

impl Program {
    fn new(config: Config, flags: u32) -> Self {
        let fixture = Fixture::with(config.with_checks(Checks::Quiet).with_race_checks(true));
        let text = format!("{KERNELS}\0");
        let module = handle!(fixture.api, cuModuleLoadData(_, text.as_ptr().cast()));
        let streams = [(); 2].map(|()| fixture.stream(flags));
        let memory = fixture.alloc(BYTES);
        Self { fixture, streams, memory, module }
    }

    fn launch(&self, name: &std::ffi::CStr, stream: CUstream, mut memory: CUdeviceptr, mut other: CUdeviceptr) {
        let kernel: CUfunction = handle!(self.fixture.api, cuModuleGetFunction(_, self.module, name.as_ptr()));
        let mut parameters: [*mut c_void; 2] = [(&raw mut memory).cast(), (&raw mut other).cast()];
        let threads = if matches!(name.to_bytes(), b"put" | b"put_bytes" | b"take") { WORDS as u32 } else { 1 };
        ok!(
            self.fixture.api,
            cuLaunchKernel(kernel, 1, 1, 1, threads, 1, 1, 0, stream, parameters.as_mut_ptr(), ptr::null_mut())
        );
    }

    fn put(&self, stream: usize) {
        self.launch(c"put", self.streams[stream], self.memory, 0);
    }

    fn take(&self, stream: usize) {
        let result = self.fixture.alloc(BYTES);
        self.launch(c"take", self.streams[stream], self.memory, result);
    }

    /// Waits for everything, and returns the races that were found.
    fn end(&self) -> Vec<Fault> {
        let code = cu!(self.fixture.api, cuCtxSynchronize());
        let faults = self.fixture.simulator.kernel_faults();
        let expected = if faults.is_empty() { CUresult::CUDA_SUCCESS } else { CUresult::CUDA_ERROR_LAUNCH_FAILED };
        assert_eq!(code, expected, "{faults:?}");
        self.fixture.simulator.reset_errors();
        faults
    }
}

/// That a program races, or does not, in whatever order its streams run.
fn expect_race(races: bool, flags: u32, program: impl Fn(&Program)) {
    for seed in 0..12 {
        for workers in [1, 2] {
            let run = Program::new(Config::new().with_seed(seed).with_workers(workers), flags);
            program(&run);
            let faults = run.end();
            assert_eq!(!faults.is_empty(), races, "seed {seed}, {workers} workers: {faults:?}");
            assert!(faults.iter().all(|fault| matches!(fault.kind, FaultKind::StreamRace(_))), "{faults:?}");
        }
    }
}

#[test]
fn kernels_of_two_streams_race_if_one_writes_what_the_other_accesses() {
    expect_race(true, NON_BLOCKING, |program| {
        program.put(0);
        program.put(1);
    });
    expect_race(true, NON_BLOCKING, |program| {
        program.put(0);
        program.take(1);
    });
    expect_race(false, NON_BLOCKING, |program| {
        program.take(0);
        program.take(1);
    });
    expect_race(false, NON_BLOCKING, |program| {
        program.put(0);
        program.take(0);
        program.put(0);
    });
}

#[test]
fn neighbours_do_not_race_down_to_the_byte() {
    expect_race(false, NON_BLOCKING, |program| {
        let memory = program.fixture.alloc(3 * WORDS);
        program.launch(c"put_bytes", program.streams[0], memory + 1, 0);
        program.launch(c"put_bytes", program.streams[1], memory + 1 + WORDS as u64, 0);
    });
    expect_race(true, NON_BLOCKING, |program| {
        let memory = program.fixture.alloc(3 * WORDS);
        program.launch(c"put_bytes", program.streams[0], memory + 1, 0);
        program.launch(c"put_bytes", program.streams[1], memory + WORDS as u64, 0);
    });
}

#[test]
fn atomics_do_not_race_with_each_other_and_do_with_writes() {
    expect_race(false, NON_BLOCKING, |program| {
        program.streams.iter().for_each(|stream| program.launch(c"add", *stream, program.memory, 0));
    });
    expect_race(true, NON_BLOCKING, |program| {
        program.launch(c"add", program.streams[0], program.memory, 0);
        program.put(1);
    });
}

#[test]
fn event_orders_what_waits_for_it_behind_what_it_was_recorded_behind() {
    for is_waited_for in [true, false] {
        expect_race(!is_waited_for, NON_BLOCKING, |program| {
            let api = &program.fixture.api;
            let event = handle!(api, cuEventCreate(_, 0));
            program.put(0);
            ok!(api, cuEventRecord(event, program.streams[0]));
            if is_waited_for {
                ok!(api, cuStreamWaitEvent(program.streams[1], event, 0));
            }
            program.take(1);
        });
    }
    // The record is of what came before it.
    expect_race(true, NON_BLOCKING, |program| {
        let api = &program.fixture.api;
        let event = handle!(api, cuEventCreate(_, 0));
        ok!(api, cuEventRecord(event, program.streams[0]));
        program.put(0);
        ok!(api, cuStreamWaitEvent(program.streams[1], event, 0));
        program.take(1);
    });
}

#[test]
fn event_that_has_happened_before_it_is_waited_for_orders_too() {
    expect_race(false, NON_BLOCKING, |program| {
        let api = &program.fixture.api;
        let [event, other] = [(); 2].map(|()| handle!(api, cuEventCreate(_, 0)));
        program.put(0);
        ok!(api, cuEventRecord(event, program.streams[0]));
        ok!(api, cuEventRecord(other, program.streams[0]));
        while cu!(api, cuEventQuery(other)) != CUresult::CUDA_SUCCESS {}
        ok!(api, cuStreamWaitEvent(program.streams[1], event, 0));
        program.take(1);
    });
}

#[test]
fn host_that_waits_orders_what_it_queues_then() {
    type Wait = fn(&Program);
    let waits: [Wait; 5] = [
        |program| ok!(program.fixture.api, cuStreamSynchronize(program.streams[0])),
        |program| ok!(program.fixture.api, cuCtxSynchronize()),
        |program| while cu!(program.fixture.api, cuStreamQuery(program.streams[0])) != CUresult::CUDA_SUCCESS {},
        |program| {
            let event = handle!(program.fixture.api, cuEventCreate(_, 0));
            ok!(program.fixture.api, cuEventRecord(event, program.streams[0]));
            ok!(program.fixture.api, cuEventSynchronize(event));
        },
        |program| ok!(program.fixture.api, cuMemFree_v2(program.fixture.alloc(4))),
    ];
    for wait in waits {
        expect_race(false, NON_BLOCKING, |program| {
            program.put(0);
            wait(program);
            program.take(1);
        });
    }
    // To wait for the other stream helps nobody.
    expect_race(true, NON_BLOCKING, |program| {
        program.put(0);
        ok!(program.fixture.api, cuStreamSynchronize(program.streams[1]));
        program.take(1);
    });
}

#[test]
fn legacy_stream_orders_blocking_streams_and_no_others() {
    for flags in [BLOCKING, NON_BLOCKING] {
        expect_race(flags == NON_BLOCKING, flags, |program| {
            program.put(0);
            let elsewhere = program.fixture.alloc(4);
            ok!(program.fixture.api, cuMemsetD8Async(elsewhere, 0, 4, ptr::null_mut()));
            program.take(1);
        });
    }
    expect_race(false, BLOCKING, |program| {
        program.put(0);
        ok!(program.fixture.api, cuMemsetD8Async(program.memory, 0, BYTES, ptr::null_mut()));
        program.launch(c"put", CU_STREAM_PER_THREAD, program.memory, 0);
        ok!(program.fixture.api, cuMemsetD8Async(program.memory, 0, BYTES, ptr::null_mut()));
    });
}

#[test]
fn copies_and_fills_race_like_kernels() {
    expect_race(true, NON_BLOCKING, |program| {
        program.put(0);
        ok!(program.fixture.api, cuMemsetD8Async(program.memory + 100, 0, 1, program.streams[1]));
    });
    expect_race(true, NON_BLOCKING, |program| {
        let to = program.fixture.alloc(BYTES);
        ok!(program.fixture.api, cuMemcpyDtoDAsync_v2(to, program.memory, BYTES, program.streams[1]));
        program.put(0);
    });
    expect_race(false, NON_BLOCKING, |program| {
        let to = program.fixture.alloc(BYTES);
        ok!(program.fixture.api, cuMemcpyDtoDAsync_v2(to, program.memory, BYTES, program.streams[1]));
        program.take(0);
    });
}

#[test]
fn host_memory_that_the_device_knows_is_watched_in_copies() {
    let copies = |program: &Program, wait: bool| {
        let api = &program.fixture.api;
        let pinned = handle!(api, cuMemHostAlloc(_, BYTES, 0));
        ok!(api, cuMemcpyDtoHAsync_v2(pinned, program.memory, BYTES, program.streams[0]));
        if wait {
            ok!(api, cuStreamSynchronize(program.streams[0]));
        }
        let to = program.fixture.alloc(BYTES);
        // The host calls this one and waits for it, which does not help.
        ok!(api, cuMemcpyHtoDAsync_v2(to, pinned, BYTES, program.streams[1]));
        _ = cu!(api, cuStreamSynchronize(program.streams[1]));
    };
    expect_race(true, NON_BLOCKING, |program| copies(program, false));
    expect_race(false, NON_BLOCKING, |program| copies(program, true));
    let managed = |program: &Program, wait: bool| {
        let api = &program.fixture.api;
        let managed = get!(api, cuMemAllocManaged(_, BYTES, 1));
        program.launch(c"put", program.streams[0], managed, 0);
        if wait {
            ok!(api, cuStreamSynchronize(program.streams[0]));
        }
        let mut bytes = vec![0_u8; BYTES];
        _ = cu!(api, cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), managed, BYTES));
    };
    expect_race(true, NON_BLOCKING, |program| managed(program, false));
    expect_race(false, NON_BLOCKING, |program| managed(program, true));
}

unsafe extern "C" fn nothing(_data: *mut c_void) {}

#[test]
fn what_goes_through_the_host_or_through_memory_is_no_race() {
    expect_race(false, NON_BLOCKING, |program| {
        let api = &program.fixture.api;
        program.put(0);
        // A host function may tell the host that the work before it is done.
        ok!(api, cuLaunchHostFunc(program.streams[0], Some(nothing), ptr::null_mut()));
        ok!(api, cuLaunchHostFunc(program.streams[0], Some(nothing), ptr::null_mut()));
        while cu!(api, cuStreamQuery(program.streams[0])) != CUresult::CUDA_SUCCESS {}
        program.take(1);
    });
    expect_race(false, NON_BLOCKING, |program| {
        let api = &program.fixture.api;
        let flag = program.fixture.alloc(4);
        ok!(api, cuMemsetD32_v2(flag, 0, 1));
        ok!(api, cuCtxSynchronize());
        ok!(api, cuStreamWaitValue32_v2(program.streams[1], flag, 1, 1));
        program.take(1);
        program.put(0);
        ok!(api, cuStreamWriteValue32_v2(program.streams[0], flag, 1, 0));
    });
}

#[test]
fn kernel_that_is_told_by_another_one_with_fences_does_not_race_with_it() {
    for seed in 0..10 {
        let program = Program::new(Config::new().with_seed(seed).with_workers(2), NON_BLOCKING);
        let flag = program.fixture.alloc(4);
        ok!(program.fixture.api, cuMemsetD32_v2(flag, 0, 1));
        ok!(program.fixture.api, cuCtxSynchronize());
        program.launch(c"listen", program.streams[1], program.memory, flag);
        program.launch(c"tell", program.streams[0], program.memory, flag);
        assert_eq!(program.end(), []);
    }
}

#[test]
fn nodes_of_a_graph_race_unless_edges_order_them() {
    for is_ordered in [true, false] {
        expect_race(!is_ordered, NON_BLOCKING, |program| {
            let api = &program.fixture.api;
            let graph = handle!(api, cuGraphCreate(_, 0));
            let params = CUDA_MEMSET_NODE_PARAMS {
                dst: program.memory,
                pitch: 0,
                value: 1,
                elementSize: 4,
                width: 4,
                height: 1,
            };
            let add = |after: &[CUgraphNode]| {
                let context = program.fixture.context;
                handle!(api, cuGraphAddMemsetNode(_, graph, after.as_ptr(), after.len(), &raw const params, context))
            };
            let first = add(&[]);
            add(if is_ordered { std::slice::from_ref(&first) } else { &[] });
            let executable = handle!(api, cuGraphInstantiateWithFlags(_, graph, 0));
            ok!(api, cuGraphLaunch(executable, program.streams[0]));
            // Launches of one executable come one after the other, in whatever streams.
            ok!(api, cuGraphLaunch(executable, program.streams[1]));
        });
    }
}

#[test]
fn memory_that_is_allocated_again_was_accessed_by_nobody() {
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
                ok!(program.fixture.api, cuEventRecord(event, program.streams[0]));
                ok!(program.fixture.api, cuStreamWaitEvent(program.streams[1], event, 0));
            }
        };
        expect_race(!is_ordered, NON_BLOCKING, |program| {
            let memory = get!(program.fixture.api, cuMemAllocAsync(_, BYTES, program.streams[0]));
            wait(program);
            program.launch(c"put", program.streams[1], memory, 0);
        });
        expect_race(!is_ordered, NON_BLOCKING, |program| {
            let memory = get!(program.fixture.api, cuMemAllocAsync(_, BYTES, program.streams[0]));
            ok!(program.fixture.api, cuCtxSynchronize());
            let pinned = handle!(program.fixture.api, cuMemHostAlloc(_, BYTES, 0));
            // SAFETY: the memory is as long, and nobody uses it yet.
            unsafe { pinned.cast::<u8>().write_bytes(0, BYTES) };
            program.launch(c"take", program.streams[0], memory, pinned as CUdeviceptr);
            wait(program);
            // The kernel comes first: an access to memory that was freed is found in any case.
            let third = program.fixture.stream(NON_BLOCKING);
            let last = pinned.cast::<u32>().wrapping_add(WORDS - 1);
            // SAFETY: as above; the simulator writes words at once.
            while !is_ordered && unsafe { last.read_volatile() } == 0 {
                ok!(program.fixture.api, cuMemsetD8Async(program.memory, 0, 1, third));
                _ = cu!(program.fixture.api, cuStreamQuery(third));
            }
            ok!(program.fixture.api, cuMemFreeAsync(memory, program.streams[1]));
        });
    }
}

#[test]
fn report_names_both_sides_the_place_and_the_allocation() {
    let program = Program::new(Config::new().with_workers(1), NON_BLOCKING);
    let api = &program.fixture.api;
    let numbers: [u64; 2] = program.streams.map(|stream| get!(api, cuStreamGetId(stream, _)));
    ok!(api, cuMemsetD8Async(program.memory + 64, 0, 4, program.streams[0]));
    // The order of the two is the one in which they are asked for.
    while cu!(api, cuStreamQuery(program.streams[0])) == CUresult::CUDA_ERROR_NOT_READY {}
    program.put(1);
    assert_eq!(program.end(), [], "the query told the host");
    program.put(0);
    let gate = program.fixture.block(program.streams[1]);
    ok!(api, cuMemsetD8Async(program.memory + 64, 0, 4, program.streams[1]));
    ok!(api, cuStreamSynchronize(program.streams[0]));
    gate.open();
    assert_eq!(program.end(), [], "the host function learns what the host knows");
    let event = handle!(api, cuEventCreate(_, 0));
    ok!(api, cuEventRecord(event, program.streams[1]));
    ok!(api, cuStreamWaitEvent(program.streams[0], event, 0));
    ok!(api, cuMemsetD8Async(program.memory + 64, 0, 4, program.streams[1]));
    program.put(0);
    let fault = program.end().remove(0);
    let text = fault.to_string();
    let (memory, [first, second]) = (program.memory, numbers);
    let expected = if fault.kernel.is_empty() {
        format!(
            "fill in stream {second}: race with kernel `put` in stream {first}, which wrote there and which nothing orders before it: \
             write of 4 bytes at {:#x}, 64 bytes into {BYTES} bytes at {memory:#x} that are allocated",
            memory + 64
        )
    } else {
        format!(
            "kernel `put` in stream {first}: race with fill in stream {second}, which wrote there and which nothing orders before it: \
             write of 4 bytes at {:#x}, block (0, 0, 0), thread (16, 0, 0), PTX line 11, 64 bytes into {BYTES} bytes at {memory:#x} \
             that are allocated",
            memory + 64
        )
    };
    assert_eq!(text, expected);
}

#[test]
fn nobody_looks_for_races_unless_it_is_asked_for() {
    let fixture = Fixture::new();
    let memory = fixture.alloc(BYTES);
    for stream in [fixture.stream(NON_BLOCKING), fixture.stream(NON_BLOCKING)] {
        ok!(fixture.api, cuMemsetD8Async(memory, 0, BYTES, stream));
    }
    ok!(fixture.api, cuCtxSynchronize());
    assert_eq!(fixture.simulator.kernel_faults(), []);
}

#[test]
fn report_mode_goes_on_after_a_race() {
    let config = Config::new().with_checks(Checks::Report).with_race_checks(true);
    let fixture = Fixture::with(config);
    let memory = fixture.alloc(BYTES);
    for stream in [fixture.stream(NON_BLOCKING), fixture.stream(NON_BLOCKING)] {
        ok!(fixture.api, cuMemsetD8Async(memory, 7, BYTES, stream));
    }
    ok!(fixture.api, cuCtxSynchronize());
    assert_eq!(fixture.download(memory, BYTES), vec![7; BYTES]);
    assert_eq!(fixture.simulator.kernel_faults().len(), 1);
}

#[test]
fn host_that_changes_memory_under_a_queued_copy_is_reported_unless_it_has_waited() {
    for (wait, is_source) in [(true, true), (true, false), (false, true), (false, false)] {
        let program = Program::new(Config::new().with_workers(1), NON_BLOCKING);
        let api = &program.fixture.api;
        let pinned = handle!(api, cuMemHostAlloc(_, BYTES, 0));
        let [stream, _] = program.streams;
        if is_source {
            ok!(api, cuMemcpyHtoDAsync_v2(program.memory, pinned, BYTES, stream));
        } else {
            ok!(api, cuMemcpyDtoHAsync_v2(pinned, program.memory, BYTES, stream));
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
        assert!(!wait && fault.kind == FaultKind::HostRace, "{fault}");
        let verb = if is_source { "read" } else { "write" };
        let place = format!("{verb} of {} bytes at {:#x}, 12 bytes into {BYTES} bytes", BYTES - 12, pinned.addr() + 12);
        let text = fault.to_string();
        assert!(text.starts_with("copy: the host changed memory while a copy that uses it was queued: "), "{text}");
        assert!(text.contains(&place), "{text} without {place}");
    }
}

#[test]
fn host_that_is_let_in_by_a_value_that_the_stream_waits_for_is_no_race() {
    let program = Program::new(Config::new().with_workers(1), NON_BLOCKING);
    let api = &program.fixture.api;
    let [flag, pinned] = [4, BYTES].map(|size| handle!(api, cuMemHostAlloc(_, size, 0)));
    let [stream, _] = program.streams;
    // SAFETY: the memory is large enough, and nobody uses it yet.
    unsafe { flag.cast::<u32>().write(0) };
    ok!(api, cuStreamWaitValue32_v2(stream, flag as CUdeviceptr, 1, 1));
    ok!(api, cuMemcpyHtoDAsync_v2(program.memory, pinned, BYTES, stream));
    // SAFETY: as above; the copy waits for the flag.
    unsafe { pinned.cast::<u8>().write(1) };
    // SAFETY: as above; the simulator reads the flag as one word.
    unsafe { flag.cast::<u32>().write_volatile(1) };
    assert_eq!(program.end(), []);
}
