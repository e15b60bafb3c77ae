//! Real bugs in kernels in Rust, each with its whole report.
#![cfg(not(miri))]

use curium_driver::{Device, Driver, Stream};
use curium_kernel::host::Blocks;
use curium_memory::DeviceBuffer;
use curium_sim::{Checks, Config, Simulator};
use curium_test_book::Kernels;

type TestResult = Result<(), Box<dyn std::error::Error>>;

/// The number of threads of each launch.
const THREADS: usize = 64;

/// A simulator with all checks on, and the kernels.
struct Bug {
    simulator: Simulator,
    stream: Stream,
    kernels: Kernels,
}

impl Bug {
    fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let config = Config::new()
            .with_workers(1)
            .with_checks(Checks::Quiet)
            .with_race_checks(true)
            .with_uninitialized_checks(true)
            .with_instruction_limit(100_000);
        let simulator = Simulator::new(config)?;
        let device: Device = simulator.driver::<Driver>()?.device(0)?;
        Ok(Self {
            stream: device.primary_context()?.stream()?,
            kernels: Kernels::load(&device)?,
            simulator,
        })
    }

    /// Asserts that the launches fail with the text of a report.
    #[track_caller]
    fn assert_reported(&self, address: u64, expected: &str) {
        assert!(self.stream.synchronize().is_err());
        let reports = self.simulator.reports();
        let [report] = &reports[..] else {
            panic!("one report: {reports:?}")
        };
        let mut text = without_compiler_lines(&format!("{report:#}"));
        let end = 4 * THREADS as u64;
        for offset in (0..=end).rev() {
            let name = match offset {
                0 => "P".to_owned(),
                _ if offset == end => "END".to_owned(),
                _ => format!("P+{offset}"),
            };
            text = text.replace(&format!("{:#x}", address + offset), &name);
        }
        assert_eq!(text, expected);
    }
}

/// Removes what depends on the compiler: the lines and the instructions of the PTX, and the lines
/// and columns of other packages.
fn without_compiler_lines(report: &str) -> String {
    let lines = report.lines().filter(|line| !line.starts_with("    PTX "));
    let lines: Vec<String> = lines.map(without_positions).collect();
    lines.join("\n")
}

/// Removes the PTX line, and the position in a file of another package.
fn without_positions(line: &str) -> String {
    let mut text = String::new();
    for (index, part) in line.split(", PTX line ").enumerate() {
        text += match index {
            0 => part,
            _ => part.trim_start_matches(|character: char| character.is_ascii_digit()),
        };
    }
    let words: Vec<String> = text
        .split(' ')
        .map(|word| match word.split_once(".rs:") {
            Some((file, _)) if !file.starts_with("src/") => format!("{file}.rs"),
            _ => word.to_owned(),
        })
        .collect();
    words.join(" ")
}

#[test]
fn index_out_of_bounds() -> TestResult {
    let bug = Bug::new()?;
    let x = DeviceBuffer::<f32>::zeroed(&bug.stream, THREADS)?;
    let mut y = DeviceBuffer::<f32>::zeroed(&bug.stream, THREADS)?;
    let kernel = &bug.kernels.differences;
    kernel.launch(&bug.stream, THREADS, &x, &mut y)?;
    bug.assert_reported(x.as_pointer().as_raw(),
        "kernel `differences`: assertion failed: `index out of bounds` (index 64, length 64), block (0, 0, 0), thread (63, 0, 0), src/bugs.rs:9:14
        9 | *y = x[t.index() + 1] - x[t.index()];",
    );
    Ok(())
}

#[test]
fn unchecked_index() -> TestResult {
    let bug = Bug::new()?;
    let x = DeviceBuffer::<f32>::zeroed(&bug.stream, THREADS)?;
    let mut y = DeviceBuffer::<f32>::zeroed(&bug.stream, THREADS)?;
    let kernel = &bug.kernels.unchecked_differences;
    kernel.launch(&bug.stream, THREADS, &x, &mut y)?;
    bug.assert_reported(x.as_pointer().as_raw(),
        "kernel `unchecked_differences`: illegal address: 4-byte read at END, just past the end of a 256-byte \
         allocation at P, block (0, 0, 0), thread (63, 0, 0), src/bugs.rs:18:29
       18 | let next = unsafe { *x.get_unchecked(t.index() + 1) };
  lane 31 of the warp fails at END; lanes 0-30 succeed at P+132 to P+252 (stride 4)",
    );
    Ok(())
}

#[test]
fn unfilled_tile() -> TestResult {
    let bug = Bug::new()?;
    let mut y = DeviceBuffer::<u32>::zeroed(&bug.stream, THREADS)?;
    let kernel = &bug.kernels.unfilled_tile;
    kernel.launch(&bug.stream, Blocks::new(1), &mut y)?;
    bug.assert_reported(y.as_pointer().as_raw(),
        "kernel `unfilled_tile`: uninitialized read: 4-byte read at 0x7c in \
         `curium_test_book_bugs_curium_entry_unfilled_tile_CURIUM_SHARED_0 + 124`, block (0, 0, 0), thread (32, 0, 0), \
         src/bugs.rs:29:17 in `curium_test_book::bugs::unfilled_tile::{closure#0}::{closure#0}`
       29 | *y = tile[63 - t.index_in_block()];
    inlined at curium-kernel-0.1.0/src/block.rs in `<curium_kernel::block::Block<64>>::threads_with`
    inlined at src/bugs.rs:27:15 in `curium_test_book::bugs::unfilled_tile::{closure#0}`
       27 | block.threads_with(&mut y, |t, y| {
    inlined at curium-kernel-0.1.0/src/synced.rs in `<&mut curium_kernel::shared::Shared<[u32; 64]> as curium_kernel::synced::Synced>::synced`
    inlined at curium-kernel-0.1.0/src/shared.rs in `<curium_kernel::shared::Shared<[u32; 64]>>::synced`
    inlined at src/bugs.rs:26:10
       26 | tile.synced(&block, |tile| {
  no byte of `curium_test_book_bugs_curium_entry_unfilled_tile_CURIUM_SHARED_0` is written",
    );
    Ok(())
}

#[test]
fn uninitialized_buffer() -> TestResult {
    let bug = Bug::new()?;
    let x = DeviceBuffer::<f32>::uninit(&bug.stream, THREADS + 1)?;
    let mut y = DeviceBuffer::<f32>::zeroed(&bug.stream, THREADS)?;
    let kernel = &bug.kernels.differences;
    kernel.launch(&bug.stream, THREADS, &x, &mut y)?;
    bug.assert_reported(x.as_pointer().as_raw(),
        "kernel `differences`: uninitialized read: 4-byte read at P+4, 4 bytes into a 260-byte allocation at P, \
         block (0, 0, 0), thread (0, 0, 0), src/bugs.rs:9:9
        9 | *y = x[t.index() + 1] - x[t.index()];
  no byte of the allocation is written",
    );
    Ok(())
}

#[test]
fn flag_that_nobody_sets() -> TestResult {
    let bug = Bug::new()?;
    let mut flag = DeviceBuffer::<u32>::zeroed(&bug.stream, 1)?;
    let kernel = &bug.kernels.wait_for_flag;
    kernel.launch(&bug.stream, Blocks::new(1), &mut flag)?;
    bug.assert_reported(flag.as_pointer().as_raw(),
        "kernel `wait_for_flag`: over budget: the launch executed 100000 instructions, block (0, 0, 0), thread (0, 0, 0), \
         src/bugs.rs:38:37 in `curium_test_book::bugs::wait_for_flag::{closure#0}`
  64 threads from thread (0, 0, 0) on are at src/bugs.rs:38:37 in `curium_test_book::bugs::wait_for_flag::{closure#0}`
    at curium-kernel-0.1.0/src/atomic.rs in `<u32 as curium_kernel::atomic::AtomicNumber>::load`
    inlined at curium-kernel-0.1.0/src/atomic.rs in `<curium_kernel::atomic::Atomic<u32>>::load`
    inlined at src/bugs.rs:38:37 in `curium_test_book::bugs::wait_for_flag::{closure#0}`
       38 | block.threads(|t| while flag[0].load(t, Acquire) == 0 {});
    inlined at curium-kernel-0.1.0/src/block.rs in `<curium_kernel::block::Block<64>>::threads`
    inlined at src/bugs.rs:38:11
       38 | block.threads(|t| while flag[0].load(t, Acquire) == 0 {});
  the loop ends by the condition at src/bugs.rs:38:29 in `curium_test_book::bugs::wait_for_flag::{closure#0}`: \
         `setp.eq.b32 %p2, %r1, 0` with %r1 = 0, as one iteration before
  hint: check the condition that ends the loop, and who writes what it reads; if the kernel ends eventually, raise the limit by `with_instruction_limit`",
    );
    Ok(())
}

#[test]
fn guarded_barrier() -> TestResult {
    let bug = Bug::new()?;
    let mut y = DeviceBuffer::<u32>::zeroed(&bug.stream, THREADS)?;
    let kernel = &bug.kernels.guarded_barrier;
    kernel.launch(&bug.stream, Blocks::new(1), &mut y)?;
    bug.assert_reported(y.as_pointer().as_raw(),
        "kernel `guarded_barrier`: divergent barrier: warp 0 with lanes 0-15 waiting for lanes 16-31, block (0, 0, 0), \
         thread (0, 0, 0), src/bugs.rs:47:22 in `curium_test_book::bugs::guarded_barrier::{closure#0}`
       47 | unsafe { ptx!(\"bar.sync 0;\") };
    inlined at curium-kernel-0.1.0/src/block.rs in `<curium_kernel::block::Block<64>>::threads_with`
    inlined at src/bugs.rs:44:11
       44 | block.threads_with(&mut y, |t, y| {
  the missing lanes are at src/bugs.rs:49:28 in `curium_test_book::bugs::guarded_barrier::{closure#0}`
    at curium-kernel-0.1.0/src/elements.rs in `<curium_kernel::elements::Elements<u32>>::first`
    inlined at src/bugs.rs:49:28 in `curium_test_book::bugs::guarded_barrier::{closure#0}`
       49 | if let Some(y) = y.first() {
    inlined at curium-kernel-0.1.0/src/block.rs in `<curium_kernel::block::Block<64>>::threads_with`
    inlined at src/bugs.rs:44:11
       44 | block.threads_with(&mut y, |t, y| {
  hint: move the barrier to where all threads of the block execute it",
    );
    Ok(())
}
