//! The duration of launches and loads. These are measurements: run them in release, alone, with
//! `--ignored --nocapture`.

use crate::TestResult;
use std::ffi::{CString, c_void};
use std::fmt::Write;
use std::ptr;
use std::time::{Duration, Instant};

use curium_sim::Config;
use curium_sys::CUfunction;

use crate::support::{Fixture, handle, ok};

const EMPTY: &std::ffi::CStr = c"
.version 8.0
.target sm_75
.address_size 64

.visible .entry empty()
{
    ret;
}";

/// Returns the minimum and the median of several durations.
fn spread(mut measure: impl FnMut() -> Duration, times: usize) -> [Duration; 2] {
    let mut durations: Vec<Duration> = (0..times).map(|_| measure()).collect();
    durations.sort_unstable();
    [durations[0], durations[times / 2]]
}

/// Returns the number of voluntary context switches of this process.
fn context_switches() -> i64 {
    // SAFETY: all zeros are a value of the structure, which holds numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is valid for the one value that the call writes.
    let status = unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    assert_eq!(status, 0, "a process may query itself");
    usage.ru_nvcsw
}

#[test]
#[ignore = "a measurement"]
#[expect(clippy::print_stderr, reason = "it reports what it measured")]
fn empty_kernel_latency() {
    let fixture = Fixture::new();
    let module = handle!(fixture.api, cuModuleLoadData(_, EMPTY.as_ptr().cast()));
    let function: CUfunction = handle!(
        fixture.api,
        cuModuleGetFunction(_, module, c"empty".as_ptr())
    );
    let none: *mut *mut c_void = ptr::null_mut();
    for (grid, block) in [(1, 1), (1, 256), (64, 256)] {
        let launch = || {
            let begin = Instant::now();
            ok!(
                fixture.api,
                cuLaunchKernel(
                    function,
                    grid,
                    1,
                    1,
                    block,
                    1,
                    1,
                    0,
                    ptr::null_mut(),
                    none,
                    none
                )
            );
            ok!(fixture.api, cuCtxSynchronize());
            begin.elapsed()
        };
        let switches = context_switches();
        let [min, median] = spread(launch, 10_000);
        let switches = context_switches() - switches;
        eprintln!(
            "{grid} blocks of {block}: {median:?}, at least {min:?}, {switches} context switches in 10000"
        );
    }
}

#[test]
#[ignore = "a measurement"]
#[expect(clippy::print_stderr, reason = "it reports what it measured")]
fn allocation_of_a_gibibyte() {
    let config = Config::new().with_workers(2).with_memory_budget(4 << 30);
    let fixture = Fixture::with(
        config
            .with_race_checks(true)
            .with_uninitialized_checks(true),
    );
    let allocate_and_free = || {
        let begin = Instant::now();
        ok!(fixture.api, cuMemFree_v2(fixture.alloc(1 << 30)));
        begin.elapsed()
    };
    let [min, median] = spread(allocate_and_free, 50);
    eprintln!("1 GiB allocated and freed: {median:?}, at least {min:?}");
}

/// Returns a module of `lines` lines: kernels that load, compute and store, as compilers emit them.
fn long_module(lines: usize) -> TestResult<CString> {
    let mut text = String::from(".version 8.0\n.target sm_75\n.address_size 64\n");
    let mut written = 3;
    for kernel in 0.. {
        if written >= lines {
            break;
        }
        write!(
            text,
            ".visible .entry kernel_{kernel}(.param .u64 p)\n{{\n.reg .f32 %f<203>;\n.reg .b64 %rd<103>;\n\
             ld.param.u64 %rd1, [p];\ncvta.to.global.u64 %rd2, %rd1;\nld.global.f32 %f1, [%rd2];\n"
        )?;
        for step in 0..100 {
            let address = step + 2;
            let value = 2 * step + 1;
            let [next, after, other] = [address + 1, value + 1, value + 2];
            write!(
                text,
                "ld.global.f32 %f{after}, [%rd{address}+{}];\nfma.rn.f32 %f{other}, %f{after}, 0f3F800000, %f{value};\n\
                 st.global.f32 [%rd{address}], %f{other};\nadd.s64 %rd{next}, %rd{address}, 4;\n",
                4 * step
            )?;
        }
        text.push_str("ret;\n}\n");
        written += 409;
    }
    Ok(CString::new(text)?)
}

#[test]
#[ignore = "a measurement"]
#[expect(clippy::print_stderr, reason = "it reports what it measured")]
fn loading_of_many_lines() -> TestResult {
    let fixture = Fixture::new();
    let image = long_module(10_000)?;
    let lines = image
        .as_bytes()
        .iter()
        .filter(|byte| **byte == b'\n')
        .count();
    let load = || {
        let begin = Instant::now();
        let module = handle!(fixture.api, cuModuleLoadData(_, image.as_ptr().cast()));
        let duration = begin.elapsed();
        ok!(fixture.api, cuModuleUnload(module));
        duration
    };
    let [min, median] = spread(load, 20);
    eprintln!(
        "{lines} lines, {} bytes: {median:?}, at least {min:?}",
        image.as_bytes().len()
    );
    Ok(())
}
