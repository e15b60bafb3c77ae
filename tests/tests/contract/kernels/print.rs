//! Output of `printf` in kernels, read from the output of a process.

use curium_driver::LaunchConfig;
use curium_tests::{on_driver, with_output_of_new_process};

use super::{buffer, launch, values};

#[test]
fn every_thread_prints_a_line() {
    fn run() {
        on_driver(|test| {
            let stream = test.stream();
            launch!(test, &stream, PRINT::"print_threads", (u32,), LaunchConfig::new(3, 40), (0x9e37_79b9,));
            stream.synchronize().expect("the kernel ends");
        });
    }

    with_output_of_new_process(run, |output, _| {
        // The first line follows the output of the test harness.
        let mut thread_lines: Vec<&str> = output
            .lines()
            .filter_map(|line| line.find("thread ").map(|start| &line[start..]))
            .collect();
        let line = |index: u32| {
            let seen = 0x9e37_79b9_u32.wrapping_mul(index + 1);
            format!(
                "thread {} of block {} has {seen:08x}",
                index % 40,
                index / 40
            )
        };
        let mut expected: Vec<String> = (0..120).map(line).collect();
        thread_lines.sort_unstable();
        expected.sort_unstable();
        assert_eq!(thread_lines, expected);
    });
}

#[test]
fn every_format_prints_as_in_c() {
    fn run() {
        on_driver(|test| {
            let stream = test.stream();
            let mut counts = buffer(&stream, &[-1_i32; 5]);
            launch!(test, &stream, PRINT::"print_forms", (i32, f64, i64, &mut [i32]), LaunchConfig::new(1, 1),
                (1234, std::f64::consts::PI, -5_000_000_000, &mut counts));
            assert_eq!(
                values(&counts),
                [0, 9, 4, 6, 4],
                "how many arguments each line has"
            );
        });
    }

    with_output_of_new_process(run, |output, _| {
        let expected = "nothing\n\
            [1234] [ 1234] [1234 ] [01234] [+1234] [4d2] [4D2] [0x4d2] [2322]\n\
            [1234] [-5000000000] [18446744068709551616] [1234]\n\
            [3.141593] [3.142] [      3.14] [3.1       ] [3.141593e+00] [3.14159]\n\
            [x] [text] [     right] [left      ]\n\
            100 %\n";
        assert!(output.contains(expected), "{output}");
    });
}
