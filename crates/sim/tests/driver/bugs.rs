//! Real bugs in kernels in CUDA C++ and in PTX, each with its whole report.

use std::ffi::{CString, c_void};
use std::ptr;

use curium_sim::{Checks, Config, DeviceModel};
use curium_sys::{CUdeviceptr, CUfunction, CUmodule, CUresult, CUstream};

use crate::TestResult;
use crate::support::{Fixture, cu, get, handle, ok};

/// The kernels, compiled from `bugs/bugs.cu`.
const CUDA_KERNELS: &str = include_str!("bugs/bugs.ptx");
/// Kernels without source lines.
const PTX_KERNELS: &str = include_str!("bugs/hand_written.ptx");
/// The number of bytes of the kernels' memory: an element for each of 64 threads.
const BYTES: usize = 256;

/// A buggy kernel, ready to launch.
struct Bug {
    fixture: Fixture,
    module: CUmodule,
    function: CUfunction,
    memory: CUdeviceptr,
}

/// Threads of a launch: blocks, and threads of a block.
struct Shape {
    grid: u32,
    block: [u32; 2],
}

const ONE_BLOCK: Shape = Shape {
    grid: 1,
    block: [64, 1],
};
const ONE_WARP: Shape = Shape {
    grid: 1,
    block: [32, 1],
};

impl Bug {
    /// Loads a kernel in CUDA C++ on a simulator with all checks on, and allocates initialized
    /// memory.
    fn new(kernel: &str) -> TestResult<Self> {
        Self::load(CUDA_KERNELS, kernel)
    }

    /// Loads a kernel in PTX.
    fn in_ptx(kernel: &str) -> TestResult<Self> {
        Self::load(PTX_KERNELS, kernel)
    }

    fn load(text: &str, kernel: &str) -> TestResult<Self> {
        let config = Config::new()
            .with_workers(1)
            .with_memory_budget(64 << 20)
            .with_device_model(DeviceModel::H100)
            .with_checks(Checks::Quiet)
            .with_race_checks(true)
            .with_uninitialized_checks(true)
            .with_instruction_limit(100_000);
        let fixture = Fixture::with(config);
        let image = CString::new(text)?;
        let module = handle!(fixture.api, cuModuleLoadData(_, image.as_ptr().cast()));
        let name = CString::new(kernel)?;
        let function = handle!(fixture.api, cuModuleGetFunction(_, module, name.as_ptr()));
        let memory = fixture.alloc(BYTES);
        ok!(fixture.api, cuMemsetD8_v2(memory, 0, BYTES));
        ok!(fixture.api, cuCtxSynchronize());
        Ok(Self {
            fixture,
            module,
            function,
            memory,
        })
    }

    fn launch(&self, shape: &Shape, stream: CUstream, mut arguments: Vec<u64>) {
        let mut parameters: Vec<*mut c_void> = arguments
            .iter_mut()
            .map(|argument| ptr::from_mut(argument).cast())
            .collect();
        ok!(
            self.fixture.api,
            cuLaunchKernel(
                self.function,
                shape.grid,
                1,
                1,
                shape.block[0],
                shape.block[1],
                1,
                0,
                stream,
                parameters.as_mut_ptr(),
                ptr::null_mut()
            )
        );
    }

    /// Launches the kernel, and asserts that it fails with a code and the text of a report, in
    /// which `P` is the address of the memory.
    #[track_caller]
    fn assert_fails(&self, shape: &Shape, arguments: Vec<u64>, code: CUresult, expected: &str) {
        self.launch(shape, ptr::null_mut(), arguments);
        self.assert_reported(code, expected);
    }

    #[track_caller]
    fn assert_reported(&self, code: CUresult, expected: &str) {
        assert_eq!(cu!(self.fixture.api, cuCtxSynchronize()), code);
        let reports = self.fixture.simulator.reports();
        let [report] = &reports[..] else {
            panic!("one report: {reports:?}")
        };
        let mut text = format!("{report:#}");
        for offset in (0..2048).rev() {
            let name = match offset {
                0 => "P".to_owned(),
                _ => format!("P+{offset}"),
            };
            text = text.replace(&format!("{:#x}", self.memory + offset), &name);
        }
        assert_eq!(text, expected);
    }
}

const FAILED: CUresult = CUresult::CUDA_ERROR_LAUNCH_FAILED;
const ILLEGAL: CUresult = CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;

#[test]
fn missing_barrier() -> TestResult {
    let bug = Bug::new("missing_barrier")?;
    bug.assert_fails(&ONE_BLOCK, vec![bug.memory], FAILED, "kernel `missing_barrier`: race with block (0, 0, 0), thread (31, 0, 0): 4-byte write \
         at 0x80 in `missing_barrier::tile + 128`, block (0, 0, 0), thread (32, 0, 0), \
         tests/driver/bugs/bugs.cu:12:5, PTX line 42
       12 | tile[threadIdx.x] = x[threadIdx.x];
  the other thread read at tests/driver/bugs/bugs.cu:5:5 in `neighbor(float const*, int)`, PTX line 50
        5 | return tile[index];
    inlined at tests/driver/bugs/bugs.cu:13:5
       13 | x[threadIdx.x] = neighbor(tile, 63 - threadIdx.x);
  hint: make an update by several threads one atomic operation; between other accesses, put a barrier: `__syncthreads`, or `__syncwarp` within a warp");
    Ok(())
}

#[test]
fn off_by_one() -> TestResult {
    let bug = Bug::new("off_by_one")?;
    let shape = Shape {
        grid: 2,
        block: [64, 1],
    };
    bug.assert_fails(
        &shape,
        vec![bug.memory, 64],
        ILLEGAL,
        "kernel `off_by_one`: illegal address: 4-byte read at P+256, just past the end of a \
         256-byte allocation at P, block (1, 0, 0), thread (0, 0, 0), \
         tests/driver/bugs/bugs.cu:21:9, PTX line 86
       21 | x[i] *= 2.0f;",
    );
    Ok(())
}

#[test]
fn wrong_mask() -> TestResult {
    let bug = Bug::new("wrong_mask")?;
    let code = CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION;
    bug.assert_fails(
        &ONE_WARP,
        vec![bug.memory],
        code,
        "kernel `wrong_mask`: illegal instruction: the member mask does not contain the \
         executing lane, block (0, 0, 0), thread (16, 0, 0), tests/driver/bugs/bugs.cu:28:5, \
         PTX line 119
       28 | sum += __shfl_down_sync(0xffff, sum, 8);",
    );
    Ok(())
}

#[test]
fn skipped_barrier() -> TestResult {
    let bug = Bug::new("skipped_barrier")?;
    bug.assert_fails(
        &ONE_BLOCK,
        vec![bug.memory],
        FAILED,
        "kernel `skipped_barrier`: divergent barrier: warp 0 with lanes 0-15 waiting for lanes \
         16-31, block (0, 0, 0), thread (0, 0, 0), tests/driver/bugs/bugs.cu:38:9, PTX line \
         157
       38 | __syncthreads();
  the missing lanes are at tests/driver/bugs/bugs.cu:39:5, PTX line 162
       39 | x[threadIdx.x] = tile[threadIdx.x];
  hint: move the barrier to where all threads of the block execute it",
    );
    Ok(())
}

#[test]
fn early_return() -> TestResult {
    let bug = Bug::new("early_return")?;
    bug.assert_fails(
        &ONE_BLOCK,
        vec![bug.memory, 40],
        FAILED,
        "kernel `early_return`: uninitialized read: 4-byte read at 0xa0 in `early_return::tile \
         + 160`, block (0, 0, 0), thread (8, 0, 0), tests/driver/bugs/bugs.cu:50:5, PTX line \
         202
       50 | x[threadIdx.x] = tile[threadIdx.x ^ 32];
  bytes 160 to 255 of the 256 of `early_return::tile` are not written
  other bytes of it were written by threads (0, 0, 0) to (39, 0, 0) at \
         tests/driver/bugs/bugs.cu:48:5, PTX line 195
       48 | tile[threadIdx.x] = x[threadIdx.x];
  threads (40, 0, 0) to (63, 0, 0) have ended",
    );
    Ok(())
}

#[test]
fn warp_race() -> TestResult {
    let bug = Bug::new("warp_race")?;
    bug.assert_fails(
        &ONE_WARP,
        vec![bug.memory],
        FAILED,
        "kernel `warp_race`: race with block (0, 0, 0), thread (1, 0, 0): 4-byte read at 0x4 \
         in `warp_race::tile + 4`, block (0, 0, 0), thread (0, 0, 0), \
         tests/driver/bugs/bugs.cu:58:5, PTX line 234
       58 | x[threadIdx.x] = tile[threadIdx.x ^ 1];
  the other thread wrote at tests/driver/bugs/bugs.cu:57:5, PTX line 230
       57 | tile[threadIdx.x] = x[threadIdx.x];
  hint: make an update by several threads one atomic operation; between other accesses, put a barrier: `__syncthreads`, or `__syncwarp` within a warp",
    );
    Ok(())
}

#[test]
fn endless_loop() -> TestResult {
    let bug = Bug::new("endless_loop")?;
    let code = CUresult::CUDA_ERROR_LAUNCH_TIMEOUT;
    bug.assert_fails(
        &ONE_BLOCK,
        vec![bug.memory],
        code,
        "kernel `endless_loop`: over budget: the launch executed 100000 instructions, block \
         (0, 0, 0), thread (32, 0, 0), tests/driver/bugs/bugs.cu:64:5, PTX line 256
  64 threads from thread (0, 0, 0) on are at tests/driver/bugs/bugs.cu:64:5, PTX line 256
       64 | while (*flag == 0) {
  the loop ends by the condition at tests/driver/bugs/bugs.cu:64:5, PTX line 257: \
         `setp.eq.s32 %p1, %r1, 0` with %r1 = 0, as one iteration before
  hint: check the condition that ends the loop, and who writes what it reads; if the kernel ends eventually, raise the limit by `with_instruction_limit`",
    );
    Ok(())
}

#[test]
fn misaligned_vector() -> TestResult {
    let bug = Bug::new("misaligned_vector")?;
    let code = CUresult::CUDA_ERROR_MISALIGNED_ADDRESS;
    bug.assert_fails(
        &ONE_WARP,
        vec![bug.memory],
        code,
        "kernel `misaligned_vector`: misaligned address: 16-byte read at P+4, 4 bytes into a \
         256-byte allocation at P, block (0, 0, 0), thread (0, 0, 0), \
         tests/driver/bugs/bugs.cu:71:5, PTX line 277
       71 | float4 v = *reinterpret_cast<float4 *>(x + 1);
  lanes 0-31 of the warp fail at the same address
  hint: the address must be a multiple of the size",
    );
    Ok(())
}

#[test]
fn use_after_free_across_streams() -> TestResult {
    let bug = Bug::new("use_after_free")?;
    let api = &bug.fixture.api;
    let freeing = bug.fixture.stream(1);
    let other = bug.fixture.stream(1);
    ok!(api, cuMemFreeAsync(bug.memory, freeing));
    ok!(api, cuStreamSynchronize(freeing));
    bug.launch(&ONE_WARP, other, vec![bug.memory]);
    let id: u64 = get!(api, cuStreamGetId(freeing, _));
    bug.assert_reported(
        ILLEGAL,
        &"kernel `use_after_free`: illegal address: 4-byte write at P, 0 bytes into a freed \
         256-byte allocation at P, which was freed in stream ID, block (0, 0, 0), thread (0, \
         0, 0), tests/driver/bugs/bugs.cu:78:5, PTX line 302
       78 | x[threadIdx.x] = 1.0f;
  hint: free the memory after the access: in its stream, or after a wait"
            .replace("ID", &id.to_string()),
    );
    Ok(())
}

#[test]
fn uninitialized_shared_memory() -> TestResult {
    let bug = Bug::new("uninitialized_shared")?;
    bug.assert_fails(
        &ONE_BLOCK,
        vec![bug.memory],
        FAILED,
        "kernel `uninitialized_shared`: uninitialized read: 4-byte read at 0x80 in \
         `uninitialized_shared::tile + 128`, block (0, 0, 0), thread (32, 0, 0), \
         tests/driver/bugs/bugs.cu:88:5, PTX line 344
       88 | x[threadIdx.x] = tile[threadIdx.x];
  bytes 128 to 255 of the 256 of `uninitialized_shared::tile` are not written
  other bytes of it were written by threads (0, 0, 0) to (31, 0, 0) at \
         tests/driver/bugs/bugs.cu:86:9, PTX line 337
       86 | tile[threadIdx.x] = x[threadIdx.x];",
    );
    Ok(())
}

#[test]
fn wrong_pitch() -> TestResult {
    let bug = Bug::new("wrong_pitch")?;
    let shape = Shape {
        grid: 1,
        block: [16, 4],
    };
    bug.assert_fails(
        &shape,
        vec![bug.memory, 64, 4],
        ILLEGAL,
        "kernel `wrong_pitch`: illegal address: 4-byte write at P+256, just past the end of a \
         256-byte allocation at P, block (0, 0, 0), thread (0, 1, 0), \
         tests/driver/bugs/bugs.cu:95:9, PTX line 377
       95 | x[threadIdx.y * pitch + threadIdx.x] = 0.0f;
  lanes 16-31 of the warp fail at P+256 to P+316 (stride 4); lanes 0-15 succeed at P to P+60 \
         (stride 4)",
    );
    Ok(())
}

#[test]
fn missing_atomic() -> TestResult {
    let mut bug = Bug::new("missing_atomic")?;
    let module = bug.module;
    let mut bytes = 0;
    ok!(
        bug.fixture.api,
        cuModuleGetGlobal_v2(
            &raw mut bug.memory,
            &raw mut bytes,
            module,
            c"total".as_ptr()
        )
    );
    let shape = Shape {
        grid: 2,
        block: [1, 1],
    };
    bug.assert_fails(
        &shape,
        vec![],
        FAILED,
        "kernel `missing_atomic`: race with block (0, 0, 0), thread (0, 0, 0): 4-byte read at \
         P+8 in `total + 8`, 8 bytes into a 16-byte allocation at P, block (1, 0, 0), thread \
         (0, 0, 0), tests/driver/bugs/bugs.cu:102:5, PTX line 392
      102 | total[2] += 1;
  the other thread wrote at tests/driver/bugs/bugs.cu:102:5, PTX line 394
      102 | total[2] += 1;
  hint: blocks run in any order: use atomic operations, or a second launch",
    );
    Ok(())
}

#[test]
fn wrong_rank_in_a_cluster() -> TestResult {
    let bug = Bug::new("wrong_rank")?;
    let shape = Shape {
        grid: 2,
        block: [1, 1],
    };
    bug.assert_fails(
        &shape,
        vec![5],
        ILLEGAL,
        "kernel `wrong_rank`: illegal address: 4-byte write at 0x6000000 in `wrong_rank::box`, \
         in block 5 of a cluster of 2 blocks, block (0, 0, 0), thread (0, 0, 0), \
         tests/driver/bugs/bugs.cu:111:5, PTX line 421
      111 | asm volatile(\"st.shared::cluster.u32 [%0], %1;\" :: \"r\"(address), \"r\"(rank));",
    );
    Ok(())
}

#[test]
fn missing_neutral_value() -> TestResult {
    let bug = Bug::new("missing_neutral_value")?;
    let shape = Shape {
        grid: 1,
        block: [24, 1],
    };
    bug.assert_fails(&shape, vec![bug.memory], FAILED, "kernel `missing_neutral_value`: undefined value: shuffled from lane 24, which did not \
         execute the shuffle, block (0, 0, 0), thread (0, 0, 0), tests/driver/bugs/bugs.cu:121:9, \
         PTX line 479
      121 | x[0] = sum;
  value shuffled at tests/driver/bugs/bugs.cu:119:9, PTX line 452
      119 | sum += __shfl_down_sync(0xffffffff, sum, offset);
  lane 24 has no thread: the block has 24
  hint: execute the shuffle in all lanes whose values are used, with a neutral value where there is no element");
    Ok(())
}

#[test]
fn missing_conversion_in_ptx() -> TestResult {
    let bug = Bug::in_ptx("missing_conversion")?;
    bug.assert_fails(&ONE_BLOCK, vec![bug.memory], ILLEGAL, "kernel `missing_conversion`: illegal address: 4-byte write at 0x0, block (0, 0, 0), thread \
         (0, 0, 0), PTX line 15
    PTX 15 | st.u32 [%d2], %r1;
  hint: a null pointer, or the address of a shared or local variable that was not converted to a generic one");
    Ok(())
}

#[test]
fn wrong_scale_in_ptx() -> TestResult {
    let bug = Bug::in_ptx("wrong_scale")?;
    bug.assert_fails(
        &ONE_BLOCK,
        vec![bug.memory],
        ILLEGAL,
        "kernel `wrong_scale`: illegal address: 4-byte write at P+256, just past the end of a \
         256-byte allocation at P, block (0, 0, 0), thread (32, 0, 0), PTX line 28
    PTX 28 | st.global.u32 [%d2], %r1;
  lanes 0-31 of the warp fail at P+256 to P+504 (stride 8)",
    );
    Ok(())
}

#[test]
fn lost_updates_in_ptx() -> TestResult {
    let bug = Bug::in_ptx("lost_updates")?;
    bug.assert_fails(&ONE_WARP, vec![bug.memory], FAILED, "kernel `lost_updates`: race with block (0, 0, 0), thread (1, 0, 0): 4-byte write at 0x0 in \
         `sum`, block (0, 0, 0), thread (0, 0, 0), PTX line 42
    PTX 42 | st.shared.u32 [sum], %r2;
  the other thread read at PTX line 40
    PTX 40 | ld.shared.u32 %r2, [sum];
  hint: make an update by several threads one atomic operation; between other accesses, put a barrier: `__syncthreads`, or `__syncwarp` within a warp");
    Ok(())
}

#[test]
fn missing_lane_in_ptx() -> TestResult {
    let bug = Bug::in_ptx("missing_lane")?;
    bug.assert_fails(&ONE_WARP, vec![bug.memory], CUresult::CUDA_ERROR_LAUNCH_TIMEOUT, "kernel `missing_lane`: deadlock: warp 0 with lanes 1-31 waiting for lane 0, block (0, 0, 0), \
         thread (1, 0, 0), PTX line 54
    PTX 54 | shfl.sync.idx.b32 %r2, %r1, 0, 31, 0xffffffff;
  the missing lanes are at PTX line 56
    PTX 56 | bar.warp.sync 0xffffffff;
  hint: let all lanes of the mask execute the instruction; a lane that others read cannot be left out of the mask");
    Ok(())
}

#[test]
fn wrong_count_in_ptx() -> TestResult {
    let bug = Bug::in_ptx("wrong_count")?;
    bug.assert_fails(&ONE_BLOCK, vec![bug.memory], CUresult::CUDA_ERROR_LAUNCH_TIMEOUT, "kernel `wrong_count`: deadlock: no thread can continue: 32 of 96 threads are at barrier 1, block \
         (0, 0, 0), thread (0, 0, 0), PTX line 67
  32 threads from thread (0, 0, 0) on wait at PTX line 67
    PTX 67 | @%p1 bar.sync 1, 96;
  threads (32, 0, 0) to (63, 0, 0) have ended
  hint: as many threads as the barrier expects must execute it");
    Ok(())
}

#[test]
fn never_zero_in_ptx() -> TestResult {
    let bug = Bug::in_ptx("never_zero")?;
    bug.assert_fails(&ONE_WARP, vec![bug.memory], CUresult::CUDA_ERROR_LAUNCH_TIMEOUT, "kernel `never_zero`: over budget: the launch executed 100000 instructions, block (0, 0, 0), \
         thread (0, 0, 0), PTX line 78
  32 threads from thread (0, 0, 0) on are at PTX line 78
    PTX 78 | add.u64 %d1, %d1, 1;
  the loop ends by the condition at PTX line 79: `setp.ne.u64 %p1, %d1, 0` with %d1 = 48131, 48130 one iteration before
  hint: check the condition that ends the loop, and who writes what it reads; if the kernel ends eventually, raise the limit by `with_instruction_limit`");
    Ok(())
}

#[test]
fn missing_init_in_ptx() -> TestResult {
    let bug = Bug::in_ptx("missing_init")?;
    bug.assert_fails(&ONE_WARP, vec![bug.memory], FAILED, "kernel `missing_init`: uninitialized read: 8-byte read at 0x0 in `barrier`, block (0, 0, 0), \
         thread (0, 0, 0), PTX line 89
    PTX 89 | mbarrier.arrive.shared.b64 %d1, [barrier];
  no byte of `barrier` is written");
    Ok(())
}

#[test]
fn missing_wait_in_ptx() -> TestResult {
    let bug = Bug::in_ptx("missing_wait")?;
    bug.assert_fails(&ONE_BLOCK, vec![bug.memory], FAILED, "kernel `missing_wait`: uninitialized read: 4-byte read at 0x0 in `tile[0]`, an asynchronous \
         copy to these bytes is pending, block (0, 0, 0), thread (0, 0, 0), PTX line 108
    PTX 108 | st.global.u32 [%d2], %r2;
  value loaded at PTX line 107
    PTX 107 | ld.shared.u32 %r2, [%r3];
  hint: wait for the copy before the read, and at a barrier before other threads read");
    Ok(())
}
