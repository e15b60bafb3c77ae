//! Reports of invalid kernels: a test for each kind, with the text of the report.

use crate::TestResult;
use std::ffi::{CStr, CString, OsStr, c_void};
use std::process::Command;
use std::ptr;
use std::time::Duration;

use curium_sim::{Checks, Config};
use curium_sim::{Report, ReportKind};
use curium_sys::{CUdeviceptr, CUresult};

use crate::support::{Fixture, cu, get, handle, ok};

const FAILED: CUresult = CUresult::CUDA_ERROR_LAUNCH_FAILED;
const ILLEGAL: CUresult = CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;

fn checking() -> Config {
    Config::new()
        .with_workers(2)
        .with_memory_budget(64 << 20)
        .with_checks(Checks::Quiet)
        .with_uninitialized_checks(true)
}

/// Returns a module with one kernel `main`, whose parameter is in `%p`, and a shared, a local and a
/// constant variable.
fn image(body: &str) -> TestResult<CString> {
    let text = format!(
        ".version 8.0
.target sm_75
.address_size 64
.const .align 4 .u32 table[4] = {{1, 2, 3, 4}};
.visible .entry main(.param .u64 p)
{{
    .reg .pred %q;
    .reg .b32 %r<8>;
    .reg .b64 %p, %d<8>;
    .shared .align 4 .b8 words[64];
    .local .align 4 .b8 own[16];
    ld.param.u64 %p, [p];
    mov.u32 %r0, %tid.x;
{body}
    ret;
}}"
    );
    Ok(CString::new(text)?)
}

/// Runs one warp of `body`, and returns the code of the wait for it.
fn run(fixture: &Fixture, body: &str, argument: CUdeviceptr) -> TestResult<CUresult> {
    Ok(run_image(fixture, &image(body)?, argument))
}

fn run_image(fixture: &Fixture, image: &CStr, argument: CUdeviceptr) -> CUresult {
    let module = handle!(fixture.api, cuModuleLoadData(_, image.as_ptr().cast()));
    let function = handle!(
        fixture.api,
        cuModuleGetFunction(_, module, c"main".as_ptr())
    );
    let mut argument = argument;
    let mut parameters: [*mut c_void; 1] = [(&raw mut argument).cast()];
    ok!(
        fixture.api,
        cuLaunchKernel(
            function,
            1,
            1,
            1,
            32,
            1,
            1,
            0,
            ptr::null_mut(),
            parameters.as_mut_ptr(),
            ptr::null_mut()
        )
    );
    cu!(fixture.api, cuCtxSynchronize())
}

/// Runs `body`, which fails with `code`, and returns the report.
#[track_caller]
fn fault(
    fixture: &Fixture,
    body: &str,
    argument: CUdeviceptr,
    code: CUresult,
) -> TestResult<Report> {
    assert_eq!(run(fixture, body, argument)?, code, "{body}");
    fixture.simulator.reset_errors();
    Ok(fixture.simulator.reports().pop().ok_or("no report")?)
}

#[track_caller]
fn assert_says(fault: &Report, parts: &[&str]) {
    let text = fault.to_string();
    for part in parts.iter().chain(&[
        "kernel `main`: ",
        ", block (0, 0, 0), thread (",
        "), PTX line 14",
    ]) {
        assert!(text.contains(part), "{text}\nwithout {part}");
    }
}

const LOAD: &str = "mad.wide.u32 %d1, %r0, 4, %p; ld.global.u32 %r1, [%d1]; setp.eq.u32 %q, %r1, 0x77777777; @%q trap;";

/// The report names the memory and the distance.
#[test]
fn out_of_bounds_report() -> TestResult {
    let fixture = Fixture::with(checking());
    let memory = fixture.alloc(100);
    ok!(fixture.api, cuMemsetD8_v2(memory, 0, 100));
    let report = fault(&fixture, LOAD, memory, ILLEGAL)?;
    let access = format!("illegal address: 4-byte read at {:#x}", memory + 100);
    let near = format!("just past the end of a 100-byte allocation at {memory:#x}");
    assert_says(&report, &[&access, "thread (25, 0, 0)", &near]);
    for (body, part) in [
        ("st.shared.u32 [words+72], %r0;", "4-byte write at 0x48"),
        (
            "st.shared.u32 [words+72], %r0;",
            ", 8 bytes past the end of the block's 64 bytes of shared memory",
        ),
        (
            "mov.u64 %d1, words; cvta.shared.u64 %d1, %d1; st.u32 [%d1+64], %r0;",
            ", just past the end of the block's 64",
        ),
        (
            "mov.u64 %d1, words; st.shared.u32 [%d1+62], %r0;",
            "misaligned address",
        ),
        (
            "mov.u32 %r1, words; st.shared.u8 [%r1+64], %r0;",
            "1-byte write at 0x40",
        ),
        (
            "st.local.u32 [own+20], %r0;",
            ", 4 bytes past the end of the thread's 16 bytes of local memory",
        ),
        (
            "mov.u64 %d1, own; cvta.local.u64 %d1, %d1; ld.u32 %r1, [%d1+16];",
            ", just past the end of the thread's 16",
        ),
        (
            "ld.param.u32 %r1, [p+8];",
            ", just past the end of the kernel's 8 bytes of parameters",
        ),
    ] {
        let code = if part == "misaligned address" {
            CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
        } else {
            ILLEGAL
        };
        assert_says(&fault(&fixture, body, memory, code)?, &[part]);
    }
    let report = fault(&fixture, "ld.const.u32 %r1, [table+24];", memory, ILLEGAL)?;
    assert_says(
        &report,
        &[
            "4-byte read at 0x",
            ", 8 bytes past the end of a 16-byte allocation at 0x",
        ],
    );
    Ok(())
}

#[test]
fn freed_memory_report() -> TestResult {
    let fixture = Fixture::with(checking());
    let memory = fixture.alloc(100);
    ok!(fixture.api, cuMemFree_v2(memory));
    let report = fault(&fixture, LOAD, memory, ILLEGAL)?;
    assert_says(
        &report,
        &[&format!(
            ", 0 bytes into a freed 100-byte allocation at {memory:#x}"
        )],
    );
    Ok(())
}

#[test]
fn misaligned_access_report() -> TestResult {
    let fixture = Fixture::with(checking());
    let memory = fixture.alloc(100);
    let report = fault(
        &fixture,
        "st.global.u32 [%p+6], %r0;",
        memory,
        CUresult::CUDA_ERROR_MISALIGNED_ADDRESS,
    )?;
    let near = format!(", 6 bytes into a 100-byte allocation at {memory:#x}");
    assert_says(&report, &["misaligned address: 4-byte write", &near]);
    Ok(())
}

#[test]
fn uninitialized_read_report() -> TestResult {
    let fixture = Fixture::with(checking());
    let memory = fixture.alloc(128);
    ok!(fixture.api, cuMemsetD8_v2(memory, 0, 40));
    let report = fault(&fixture, LOAD, memory, FAILED)?;
    let access = format!("uninitialized read: 4-byte read at {:#x}", memory + 40);
    let near = format!(", 40 bytes into a 128-byte allocation at {memory:#x}");
    assert_says(&report, &[&access, "thread (10, 0, 0)", &near]);
    for (body, part) in [
        (
            "ld.shared.u32 %r1, [words+8]; st.global.u32 [%p], %r1;",
            " in `words + 8`",
        ),
        (
            "ld.local.u32 %r1, [own+4]; st.global.u32 [%p], %r1;",
            ", 4 bytes into the thread's 16 bytes of local memory",
        ),
    ] {
        assert_says(
            &fault(&fixture, body, memory, FAILED)?,
            &["uninitialized read: 4-byte read", part],
        );
    }
    // Constants, parameters, and variables without an initial value are initialized.
    assert_eq!(
        run(
            &fixture,
            "ld.const.u32 %r1, [table+12]; ld.param.u32 %r2, [p+4];",
            memory
        )?,
        CUresult::CUDA_SUCCESS
    );
    Ok(())
}

/// Copies propagate which bytes are written, and are not checked.
#[test]
fn copies_propagate_definedness() -> TestResult {
    let fixture = Fixture::with(checking());
    let api = &fixture.api;
    let from = fixture.alloc(128);
    let to = fixture.alloc(128);
    ok!(api, cuMemsetD8_v2(to, 0, 128));
    fixture.upload(from, &[1; 64]);
    ok!(api, cuMemcpyDtoD_v2(to, from, 128));
    // As on hardware, uninitialized bytes can be copied to the host.
    assert_eq!(fixture.download(to, 128)[..64], [1; 64]);
    assert_eq!(fault(&fixture, LOAD, to, FAILED)?.thread, [16, 0, 0]);
    ok!(api, cuMemsetD32_v2(from + 64, 7, 16));
    ok!(api, cuMemcpyDtoD_v2(to, from, 128));
    assert_eq!(run(&fixture, LOAD, to)?, CUresult::CUDA_SUCCESS);
    Ok(())
}

#[test]
fn reused_memory_is_uninitialized() -> TestResult {
    let fixture = Fixture::with(checking());
    for is_written in [true, false, true] {
        let memory: CUdeviceptr = get!(fixture.api, cuMemAllocAsync(_, 128, ptr::null_mut()));
        if is_written {
            ok!(
                fixture.api,
                cuMemsetD8Async(memory, 0, 128, ptr::null_mut())
            );
            assert_eq!(run(&fixture, LOAD, memory)?, CUresult::CUDA_SUCCESS);
        } else {
            assert_eq!(
                fault(&fixture, LOAD, memory, FAILED)?.kind,
                ReportKind::Uninitialized
            );
        }
        ok!(fixture.api, cuMemFreeAsync(memory, ptr::null_mut()));
    }
    Ok(())
}

/// Host-visible memory counts as written.
#[test]
fn host_memory_is_initialized() -> TestResult {
    let fixture = Fixture::with(checking());
    let pinned: *mut c_void = handle!(fixture.api, cuMemHostAlloc(_, 128, 0));
    let managed: CUdeviceptr = get!(fixture.api, cuMemAllocManaged(_, 128, 1));
    for memory in [pinned.addr() as CUdeviceptr, managed] {
        assert_eq!(run(&fixture, LOAD, memory)?, CUresult::CUDA_SUCCESS);
    }
    Ok(())
}

/// Returns a kernel that allocates memory, executes an instruction, and reads the memory.
fn allocating_image(write: &str) -> TestResult<CString> {
    let body = format!(
        "setp.ne.u32 %q, %r0, 0; @%q ret;
    {{ .param .b64 size; .param .b64 at; st.param.b64 [size], 16;
      call.uni (at), malloc, (size); ld.param.b64 %d1, [at]; }}
    {write}
    ld.u32 %r1, [%d1]; setp.eq.u32 %q, %r1, 0x77777777; @%q trap;
    {{ .param .b64 gone; st.param.b64 [gone], %d1; call.uni free, (gone); }}"
    );
    let text = image(&body)?.into_string()?;
    let declarations = ".extern .func (.param .b64 at) malloc (.param .b64 size);\n\
                        .extern .func free (.param .b64 gone);\n.const";
    Ok(CString::new(text.replacen(".const", declarations, 1))?)
}

#[test]
fn kernel_heap_is_uninitialized() -> TestResult {
    let fixture = Fixture::with(checking());
    let written = allocating_image("st.u32 [%d1], 1;")?;
    assert_eq!(run_image(&fixture, &written, 0), CUresult::CUDA_SUCCESS);
    let unwritten = allocating_image("")?;
    let code = run_image(&fixture, &unwritten, 0);
    assert_eq!(code, FAILED, "the same bytes were allocated again");
    Ok(())
}

#[test]
fn report_mode_continues() -> TestResult {
    let fixture = Fixture::with(checking().with_checks(Checks::Report));
    let memory = fixture.alloc(128);
    let body =
        "mad.wide.u32 %d1, %r0, 4, %p; ld.global.u32 %r1, [%d1]; setp.eq.u32 %q, %r1, 0x77777777;
        @%q trap; st.global.u32 [%d1], %r0;";
    assert_eq!(run(&fixture, body, memory)?, CUresult::CUDA_SUCCESS);
    let expected: Vec<u8> = (0..32_u32).flat_map(u32::to_le_bytes).collect();
    assert_eq!(
        fixture.download(memory, 128),
        expected,
        "every thread did its work"
    );
    let faults = fixture.simulator.reports();
    assert!(
        matches!(&faults[..], [fault] if fault.kind == ReportKind::Uninitialized),
        "{faults:?}"
    );
    Ok(())
}

/// Reports of one place are counted, so that a loop of launches does not repeat them.
#[test]
fn repeated_reports_are_counted() -> TestResult {
    let fixture = Fixture::with(checking().with_checks(Checks::Report));
    let memory = fixture.alloc(128);
    for _ in 0..3 {
        let body = "st.global.u32 [%p+4096], %r0;";
        assert_eq!(run(&fixture, body, memory)?, CUresult::CUDA_SUCCESS);
    }
    run(&fixture, "st.global.u32 [%p+8192], %r0;", memory)?;
    let reports = fixture.simulator.reports();
    let counts: Vec<u64> = reports.iter().map(|report| report.count).collect();
    assert_eq!(counts, [3, 1], "{reports:?}");
    assert!(
        reports[0].to_string().ends_with(", (3 times)"),
        "{}",
        reports[0]
    );
    Ok(())
}

/// A stream that waits for a value is reported after the time limit, unless the value is written
/// before.
#[test]
fn stream_waiting_in_vain_is_reported() -> TestResult {
    for is_written in [true, false] {
        let limit = Duration::from_millis(if is_written { 60_000 } else { 50 });
        let fixture = Fixture::with(checking().with_time_limit(limit));
        let memory = fixture.alloc(4);
        ok!(fixture.api, cuMemsetD8_v2(memory, 0, 4));
        ok!(fixture.api, cuCtxSynchronize());
        let [waiting, writing] = [fixture.stream(1), fixture.stream(1)];
        let id: u64 = get!(fixture.api, cuStreamGetId(waiting, _));
        ok!(fixture.api, cuStreamWaitValue32_v2(waiting, memory, 7, 0));
        if is_written {
            ok!(fixture.api, cuStreamWriteValue32_v2(writing, memory, 7, 0));
            ok!(fixture.api, cuStreamSynchronize(waiting));
            continue;
        }
        assert_eq!(
            cu!(fixture.api, cuStreamSynchronize(waiting)),
            CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
        );
        let report = fixture.simulator.reports().pop().ok_or("no report")?;
        let expected = format!(
            "stream {id}: deadlock: a stream waits for a value that no work writes: 4-byte read at {memory:#x}, \
             0 bytes into a 4-byte allocation at {memory:#x}"
        );
        assert_eq!(report.to_string(), expected);
    }
    Ok(())
}

/// Uninitialized reads are not checked by default.
#[test]
fn default_ignores_uninitialized() -> TestResult {
    let fixture = Fixture::new();
    assert_eq!(
        run(&fixture, LOAD, fixture.alloc(128))?,
        CUresult::CUDA_SUCCESS
    );
    Ok(())
}

/// Set in a process that must abort.
const CHILD: &str = "CURIUM_SIM_TEST_ABORTS";

#[test]
fn abort_mode_aborts() -> TestResult {
    if std::env::var_os(CHILD).is_some() {
        let fixture = Fixture::with(checking().with_checks(Checks::Abort));
        run(&fixture, LOAD, fixture.alloc(128))?;
        return Ok(());
    }
    let name = "check::abort_mode_aborts";
    // The emulator for this program, where the system has none.
    let runner = std::env::var("CURIUM_TEST_RUNNER").unwrap_or_default();
    let program = std::env::current_exe()?;
    let mut words = runner
        .split_whitespace()
        .map(OsStr::new)
        .chain([program.as_os_str()]);
    let mut command = Command::new(words.next().ok_or("empty command")?);
    let output = command
        .args(words)
        .args([name, "--exact", "--nocapture"])
        .env(CHILD, "1")
        .output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{text}");
    assert!(
        text.contains("curium-sim: kernel `main`: uninitialized read: 4-byte read at 0x"),
        "{text}"
    );
    #[cfg(unix)]
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&output.status),
        Some(6),
        "{text}"
    );
    Ok(())
}
