//! Races between streams: synchronization that orders accesses, accesses that race, and the
//! reports.

mod host;
mod memory;
mod report;

use std::ffi::c_void;
use std::ptr;

use curium_sim::{Checks, Config};
use curium_sim::{Report, ReportKind};
use curium_sys::{
    CU_STREAM_PER_THREAD, CUDA_MEMSET_NODE_PARAMS, CUdeviceptr, CUfunction, CUgraphNode, CUresult,
    CUstream,
};

use crate::support::{Fixture, cu, handle, ok};

const BLOCKING: u32 = 0;
const NON_BLOCKING: u32 = 1;
/// The number of words that each kernel accesses, one for each thread.
const WORDS: usize = 256;
const BYTES: usize = 4 * WORDS;

/// Kernels of one block that write, read and add to a word for each thread, that read and then
/// signal others, and that wait for a signal.
const KERNELS: &str = ".version 8.0
.target sm_75
.address_size 64
.visible .entry put(.param .u64 memory, .param .u64 unused)
{
    .reg .b32 %thread;
    .reg .b64 %address;
    mov.u32 %thread, %tid.x;
    ld.param.u64 %address, [memory];
    mad.wide.u32 %address, %thread, 4, %address;
    st.global.u32 [%address], %thread;
    ret;
}
.visible .entry put_bytes(.param .u64 memory, .param .u64 unused)
{
    .reg .b32 %thread;
    .reg .b64 %wide, %address;
    mov.u32 %thread, %tid.x;
    cvt.u64.u32 %wide, %thread;
    ld.param.u64 %address, [memory];
    add.u64 %address, %address, %wide;
    st.global.u8 [%address], %thread;
    ret;
}
.visible .entry take(.param .u64 memory, .param .u64 result)
{
    .reg .b32 %thread, %value;
    .reg .b64 %address, %to;
    mov.u32 %thread, %tid.x;
    ld.param.u64 %address, [memory];
    ld.param.u64 %to, [result];
    mad.wide.u32 %address, %thread, 4, %address;
    mad.wide.u32 %to, %thread, 4, %to;
    ld.global.u32 %value, [%address];
    st.global.u32 [%to], %value;
    ret;
}
.visible .entry add(.param .u64 memory, .param .u64 unused)
{
    .reg .b64 %address;
    ld.param.u64 %address, [memory];
    red.global.add.u32 [%address], 1;
    ret;
}
.visible .entry tell(.param .u64 memory, .param .u64 flag)
{
    .reg .b64 %address;
    ld.param.u64 %address, [memory];
    st.global.u32 [%address], 5;
    membar.sys;
    ld.param.u64 %address, [flag];
    st.volatile.global.u32 [%address], 1;
    ret;
}
.visible .entry listen(.param .u64 memory, .param .u64 flag)
{
    .reg .pred %waits;
    .reg .b32 %value;
    .reg .b64 %address, %flag;
    ld.param.u64 %address, [memory];
    ld.param.u64 %flag, [flag];
AGAIN:
    ld.volatile.global.u32 %value, [%flag];
    setp.ne.u32 %waits, %value, 1;
    @%waits bra AGAIN;
    membar.sys;
    st.global.u32 [%address], 6;
    ret;
}
";

/// A program with two streams, which only the program orders.
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
        Self {
            fixture,
            streams,
            memory,
            module,
        }
    }

    fn launch(
        &self,
        name: &std::ffi::CStr,
        stream: CUstream,
        mut memory: CUdeviceptr,
        mut other: CUdeviceptr,
    ) {
        let kernel: CUfunction = handle!(
            self.fixture.api,
            cuModuleGetFunction(_, self.module, name.as_ptr())
        );
        let mut parameters: [*mut c_void; 2] = [(&raw mut memory).cast(), (&raw mut other).cast()];
        let threads = if matches!(name.to_bytes(), b"put" | b"put_bytes" | b"take") {
            WORDS as u32
        } else {
            1
        };
        ok!(
            self.fixture.api,
            cuLaunchKernel(
                kernel,
                1,
                1,
                1,
                threads,
                1,
                1,
                0,
                stream,
                parameters.as_mut_ptr(),
                ptr::null_mut()
            )
        );
    }

    fn write(&self, stream: usize) {
        self.launch(c"put", self.streams[stream], self.memory, 0);
    }

    fn read(&self, stream: usize) {
        let result = self.fixture.alloc(BYTES);
        self.launch(c"take", self.streams[stream], self.memory, result);
    }

    /// Waits for everything, and returns the reported races.
    fn end(&self) -> Vec<Report> {
        let code = cu!(self.fixture.api, cuCtxSynchronize());
        let faults = self.fixture.simulator.reports();
        let expected = if faults.is_empty() {
            CUresult::CUDA_SUCCESS
        } else {
            CUresult::CUDA_ERROR_LAUNCH_FAILED
        };
        assert_eq!(code, expected, "{faults:?}");
        self.fixture.simulator.reset_errors();
        faults
    }
}

/// Asserts that a program races, or does not, regardless of the order of its streams.
fn expect_race(races: bool, flags: u32, program: impl Fn(&Program)) {
    for seed in 0..12 {
        for workers in [1, 2] {
            let run = Program::new(Config::new().with_seed(seed).with_workers(workers), flags);
            program(&run);
            let faults = run.end();
            assert_eq!(
                !faults.is_empty(),
                races,
                "seed {seed}, {workers} workers: {faults:?}"
            );
            assert!(
                faults
                    .iter()
                    .all(|fault| matches!(fault.kind, ReportKind::StreamRace)),
                "{faults:?}"
            );
        }
    }
}

#[test]
fn unordered_kernels_race() {
    expect_race(true, NON_BLOCKING, |program| {
        program.write(0);
        program.write(1);
    });
    expect_race(true, NON_BLOCKING, |program| {
        program.write(0);
        program.read(1);
    });
    expect_race(false, NON_BLOCKING, |program| {
        program.read(0);
        program.read(1);
    });
    expect_race(false, NON_BLOCKING, |program| {
        program.write(0);
        program.read(0);
        program.write(0);
    });
}

#[test]
fn neighbors_do_not_race() {
    expect_race(false, NON_BLOCKING, |program| {
        let memory = program.fixture.alloc(3 * WORDS);
        program.launch(c"put_bytes", program.streams[0], memory + 1, 0);
        program.launch(
            c"put_bytes",
            program.streams[1],
            memory + 1 + WORDS as u64,
            0,
        );
    });
    expect_race(true, NON_BLOCKING, |program| {
        let memory = program.fixture.alloc(3 * WORDS);
        program.launch(c"put_bytes", program.streams[0], memory + 1, 0);
        program.launch(c"put_bytes", program.streams[1], memory + WORDS as u64, 0);
    });
}

#[test]
fn atomics_race_with_writes_only() {
    expect_race(false, NON_BLOCKING, |program| {
        program
            .streams
            .iter()
            .for_each(|stream| program.launch(c"add", *stream, program.memory, 0));
    });
    expect_race(true, NON_BLOCKING, |program| {
        program.launch(c"add", program.streams[0], program.memory, 0);
        program.write(1);
    });
}

#[test]
fn event_orders_work() {
    for is_waited_for in [true, false] {
        expect_race(!is_waited_for, NON_BLOCKING, |program| {
            let api = &program.fixture.api;
            let event = handle!(api, cuEventCreate(_, 0));
            program.write(0);
            ok!(api, cuEventRecord(event, program.streams[0]));
            if is_waited_for {
                ok!(api, cuStreamWaitEvent(program.streams[1], event, 0));
            }
            program.read(1);
        });
    }
    // The event records the work before it.
    expect_race(true, NON_BLOCKING, |program| {
        let api = &program.fixture.api;
        let event = handle!(api, cuEventCreate(_, 0));
        ok!(api, cuEventRecord(event, program.streams[0]));
        program.write(0);
        ok!(api, cuStreamWaitEvent(program.streams[1], event, 0));
        program.read(1);
    });
}

#[test]
fn completed_event_orders_work() {
    expect_race(false, NON_BLOCKING, |program| {
        let api = &program.fixture.api;
        let [event, other] = [(); 2].map(|()| handle!(api, cuEventCreate(_, 0)));
        program.write(0);
        ok!(api, cuEventRecord(event, program.streams[0]));
        ok!(api, cuEventRecord(other, program.streams[0]));
        while cu!(api, cuEventQuery(other)) != CUresult::CUDA_SUCCESS {}
        ok!(api, cuStreamWaitEvent(program.streams[1], event, 0));
        program.read(1);
    });
}

#[test]
fn host_wait_orders_later_work() {
    type Wait = fn(&Program);
    let waits: [Wait; 5] = [
        |program| ok!(program.fixture.api, cuStreamSynchronize(program.streams[0])),
        |program| ok!(program.fixture.api, cuCtxSynchronize()),
        |program| {
            while cu!(program.fixture.api, cuStreamQuery(program.streams[0]))
                != CUresult::CUDA_SUCCESS
            {}
        },
        |program| {
            let event = handle!(program.fixture.api, cuEventCreate(_, 0));
            ok!(
                program.fixture.api,
                cuEventRecord(event, program.streams[0])
            );
            ok!(program.fixture.api, cuEventSynchronize(event));
        },
        |program| ok!(program.fixture.api, cuMemFree_v2(program.fixture.alloc(4))),
    ];
    for wait in waits {
        expect_race(false, NON_BLOCKING, |program| {
            program.write(0);
            wait(program);
            program.read(1);
        });
    }
    // Waiting for the other stream orders nothing here.
    expect_race(true, NON_BLOCKING, |program| {
        program.write(0);
        ok!(program.fixture.api, cuStreamSynchronize(program.streams[1]));
        program.read(1);
    });
}

#[test]
fn legacy_stream_orders_streams() {
    for flags in [BLOCKING, NON_BLOCKING] {
        expect_race(flags == NON_BLOCKING, flags, |program| {
            program.write(0);
            let elsewhere = program.fixture.alloc(4);
            ok!(
                program.fixture.api,
                cuMemsetD8Async(elsewhere, 0, 4, ptr::null_mut())
            );
            program.read(1);
        });
    }
    expect_race(false, BLOCKING, |program| {
        program.write(0);
        ok!(
            program.fixture.api,
            cuMemsetD8Async(program.memory, 0, BYTES, ptr::null_mut())
        );
        program.launch(c"put", CU_STREAM_PER_THREAD, program.memory, 0);
        ok!(
            program.fixture.api,
            cuMemsetD8Async(program.memory, 0, BYTES, ptr::null_mut())
        );
    });
}

#[test]
fn copies_and_fills_race() {
    expect_race(true, NON_BLOCKING, |program| {
        program.write(0);
        ok!(
            program.fixture.api,
            cuMemsetD8Async(program.memory + 100, 0, 1, program.streams[1])
        );
    });
    expect_race(true, NON_BLOCKING, |program| {
        let to = program.fixture.alloc(BYTES);
        ok!(
            program.fixture.api,
            cuMemcpyDtoDAsync_v2(to, program.memory, BYTES, program.streams[1])
        );
        program.write(0);
    });
    expect_race(false, NON_BLOCKING, |program| {
        let to = program.fixture.alloc(BYTES);
        ok!(
            program.fixture.api,
            cuMemcpyDtoDAsync_v2(to, program.memory, BYTES, program.streams[1])
        );
        program.read(0);
    });
}

unsafe extern "C" fn nothing(_data: *mut c_void) {}

#[test]
fn synchronization_prevents_races() {
    expect_race(false, NON_BLOCKING, |program| {
        let api = &program.fixture.api;
        program.write(0);
        // A host function may signal the host that the earlier work has completed.
        ok!(
            api,
            cuLaunchHostFunc(program.streams[0], Some(nothing), ptr::null_mut())
        );
        ok!(
            api,
            cuLaunchHostFunc(program.streams[0], Some(nothing), ptr::null_mut())
        );
        while cu!(api, cuStreamQuery(program.streams[0])) != CUresult::CUDA_SUCCESS {}
        program.read(1);
    });
    expect_race(false, NON_BLOCKING, |program| {
        let api = &program.fixture.api;
        let flag = program.fixture.alloc(4);
        ok!(api, cuMemsetD32_v2(flag, 0, 1));
        ok!(api, cuCtxSynchronize());
        ok!(api, cuStreamWaitValue32_v2(program.streams[1], flag, 1, 1));
        program.read(1);
        program.write(0);
        ok!(api, cuStreamWriteValue32_v2(program.streams[0], flag, 1, 0));
    });
}

#[test]
fn fences_order_kernels() {
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
fn unordered_graph_nodes_race() {
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
            let mut previous: Option<CUgraphNode> = None;
            for _ in 0..2 {
                let after = previous.as_slice();
                let node = handle!(
                    api,
                    cuGraphAddMemsetNode(
                        _,
                        graph,
                        after.as_ptr(),
                        after.len(),
                        &raw const params,
                        program.fixture.context
                    )
                );
                previous = is_ordered.then_some(node);
            }
            let executable = handle!(api, cuGraphInstantiateWithFlags(_, graph, 0));
            ok!(api, cuGraphLaunch(executable, program.streams[0]));
            // Launches of one executable graph are ordered, in any streams.
            ok!(api, cuGraphLaunch(executable, program.streams[1]));
        });
    }
}
