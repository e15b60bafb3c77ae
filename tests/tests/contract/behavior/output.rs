//! Text output of kernels: `printf`, and the messages of failed assertions.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io::Write;
use std::ptr;

use curium_driver::Driver;
use curium_sim::{Checks, Config};
use curium_sys::{CUfunction, CUmodule, CUresult};
use curium_tests::{TestDriver, on_driver, on_simulator, uses_cuda, with_output_of_new_process};

use super::{OK, in_context};

/// A kernel that prints a word, one that traps after it, and one whose threads fail an assertion.
const SPEAKERS: &str = "
.version 7.8
.target sm_75
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);
.extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 g, .param .b64 c);
.global .align 1 .b8 line[11] = {107, 101, 114, 110, 101, 108, 32, 37, 100, 10, 0};
.global .align 1 .b8 word[6] = {104, 101, 108, 108, 111, 0};
.visible .entry prints(.param .u32 number)
{
    .reg .b32 %r<3>;
    .reg .b64 %d<4>;
    .local .align 8 .b8 text[8];
    mov.u64 %d0, line;
    cvta.global.u64 %d1, %d0;
    mov.u64 %d2, text;
    cvta.local.u64 %d3, %d2;
    ld.param.u32 %r0, [number];
    st.u32 [%d3], %r0;
    {
        .param .b64 f; st.param.b64 [f], %d1;
        .param .b64 v; st.param.b64 [v], %d3;
        .param .b32 r;
        call.uni (r), vprintf, (f, v);
        ld.param.b32 %r1, [r];
    }
    ret;
}
.visible .entry prints_and_traps()
{
    .reg .b32 %r;
    .reg .b64 %d<2>;
    mov.u64 %d0, word;
    cvta.global.u64 %d1, %d0;
    {
        .param .b64 f; st.param.b64 [f], %d1;
        .param .b64 v; st.param.b64 [v], 0;
        .param .b32 r;
        call.uni (r), vprintf, (f, v);
        ld.param.b32 %r, [r];
    }
    trap;
    ret;
}
.visible .entry fails()
{
    .reg .b64 %d<2>;
    mov.u64 %d0, word;
    cvta.global.u64 %d1, %d0;
    {
        .param .b64 m; st.param.b64 [m], %d1;
        .param .b64 f; st.param.b64 [f], %d1;
        .param .b32 l; st.param.b32 [l], 17;
        .param .b64 g; st.param.b64 [g], %d1;
        .param .b64 c; st.param.b64 [c], 1;
        call.uni __assertfail, (m, f, l, g, c);
    }
    ret;
}
";

// SAFETY: these functions of the C library have these signatures.
unsafe extern "C" {
    fn fflush(stream: *mut c_void) -> c_int;
    fn puts(text: *const c_char) -> c_int;
}

fn speaker(driver: &Driver, name: &str) -> (CUmodule, CUfunction) {
    let image = CString::new(SPEAKERS).expect("PTX has no NUL");
    let name = CString::new(name).expect("names have no NUL");
    let mut module = ptr::null_mut();
    let mut function = ptr::null_mut();
    assert_eq!(
        returned!(
            driver,
            cuModuleLoadData(&raw mut module, image.as_ptr().cast())
        ),
        OK
    );
    assert_eq!(
        returned!(
            driver,
            cuModuleGetFunction(&raw mut function, module, name.as_ptr())
        ),
        OK
    );
    (module, function)
}

/// Launches one block and waits for it.
fn run(
    driver: &Driver,
    function: CUfunction,
    threads: u32,
    arguments: &mut [*mut c_void],
) -> CUresult {
    let stream = ptr::null_mut();
    let arguments = arguments.as_mut_ptr();
    let none = ptr::null_mut();
    let launched = returned!(
        driver,
        cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, stream, arguments, none)
    );
    assert_eq!(launched, OK);
    returned!(driver, cuCtxSynchronize())
}

/// Flushes the buffers of the C library, and then writes a line of the host.
fn write_line(line: &str) {
    // SAFETY: with null it flushes all streams.
    assert_eq!(unsafe { fflush(ptr::null_mut()) }, 0);
    writeln!(std::io::stdout().lock(), "{line}").expect("the output is open");
}

fn print_in_turn(test: &TestDriver) {
    in_context(test, |driver| {
        let (module, prints) = speaker(driver, "prints");
        // The harness has begun a line.
        write_line("");
        for number in 1..4_u32 {
            let mut number = number;
            assert_eq!(run(driver, prints, 1, &mut [(&raw mut number).cast()]), OK);
            write_line(&format!("host {number}"));
        }
        assert_eq!(returned!(driver, cuModuleUnload(module)), OK);
    });
}

#[test]
fn printf_appears_when_its_kernel_ends() {
    with_output_of_new_process(
        || on_driver(print_in_turn),
        |output, _| {
            let lines = output
                .lines()
                .filter(|line| line.starts_with("kernel ") || line.starts_with("host "));
            let lines: Vec<&str> = lines.collect();
            assert_eq!(
                lines,
                [
                    "kernel 1", "host 1", "kernel 2", "host 2", "kernel 3", "host 3"
                ],
                "{output}"
            );
        },
    );
}

/// Writes lines through the C library, which buffers them, before and after a kernel prints.
fn print_between_c_lines(test: &TestDriver) {
    fn line(text: &CStr) {
        // SAFETY: the text ends with NUL.
        assert!(unsafe { puts(text.as_ptr()) } >= 0);
    }

    in_context(test, |driver| {
        let (module, prints) = speaker(driver, "prints");
        line(c"\nhost before");
        let mut number = 1_u32;
        assert_eq!(run(driver, prints, 1, &mut [(&raw mut number).cast()]), OK);
        line(c"host after");
        assert_eq!(returned!(driver, cuModuleUnload(module)), OK);
    });
    // SAFETY: as for `write_line`.
    assert_eq!(unsafe { fflush(ptr::null_mut()) }, 0);
}

#[test]
fn printf_is_in_order_with_c_output() {
    with_output_of_new_process(
        || on_driver(print_between_c_lines),
        |output, _| {
            let lines = output
                .lines()
                .filter(|line| line.starts_with("kernel ") || line.starts_with("host "));
            let lines: Vec<&str> = lines.collect();
            if cfg!(not(target_os = "linux")) {
                // The simulator writes to the standard library's stream elsewhere.
                return;
            }
            assert_eq!(lines, ["host before", "kernel 1", "host after"], "{output}");
        },
    );
}

/// A failed assertion is an error of the first wait with a line for each thread.
#[test]
fn failed_assertion_prints_a_line_per_thread() {
    let fail = |test: &TestDriver| {
        let driver = test.driver();
        let context = test.context();
        assert_eq!(returned!(driver, cuCtxSetCurrent(context.as_raw())), OK);
        let (_, fails) = speaker(driver, "fails");
        assert_eq!(run(driver, fails, 3, &mut []), CUresult::CUDA_ERROR_ASSERT);
        if let Some(simulator) = test.simulator() {
            simulator.reset_errors();
            assert_eq!(returned!(driver, cuCtxSetCurrent(ptr::null_mut())), OK);
        } else {
            write_line("the process ends here");
        }
    };
    with_output_of_new_process(
        || on_driver(fail),
        |_, errors| {
            for thread in 0..3 {
                let line = format!(
                    "hello:17: hello: block: [0,0,0], thread: [{thread},0,0] Assertion `hello` failed."
                );
                assert_eq!(errors.matches(&line).count(), 1, "{errors}");
            }
        },
    );
}

/// Printf of a kernel that fails appears though nothing waits.
#[test]
fn printf_appears_although_the_kernel_fails() {
    if uses_cuda() {
        // The driver does not document when the output of a kernel that fails appears.
        return;
    }
    fn fail(test: &TestDriver) {
        in_context(test, |driver| {
            let (_, traps) = speaker(driver, "prints_and_traps");
            let stream = ptr::null_mut();
            let none = ptr::null_mut::<*mut c_void>();
            assert_eq!(
                returned!(
                    driver,
                    cuLaunchKernel(traps, 1, 1, 1, 1, 1, 1, 0, stream, none, none)
                ),
                OK
            );
            let code = std::iter::repeat_with(|| returned!(driver, cuStreamQuery(stream)))
                .find(|code| *code != CUresult::CUDA_ERROR_NOT_READY);
            assert_eq!(code, Some(CUresult::CUDA_ERROR_LAUNCH_FAILED));
            test.simulator()
                .expect("this test runs on the simulator")
                .reset_errors();
        });
    }

    with_output_of_new_process(
        || {
            on_simulator(Config::new().with_checks(Checks::Quiet), |test, _| {
                fail(test);
            });
        },
        |output, _| assert!(output.contains("hello"), "{output}"),
    );
}
