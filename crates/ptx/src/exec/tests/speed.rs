//! The speed of kernels. These are measurements: run them in release, alone, with
//! `--ignored --nocapture`.

mod operations;

use super::TestResult;
use std::iter;
use std::time::{Duration, Instant};

use super::super::Checking;
use super::kernels::{Run, bodies, mandelbrot, matmul, saxpy};

/// The measured rates of a launch.
struct Rate {
    /// Thread instructions per second of elapsed time.
    wall: f64,
    /// Thread instructions per second of two cores' processor time: the rate on idle cores.
    processor: f64,
}

/// Returns the processor time of the process, including its threads.
fn processor_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is valid for the one value that the call writes.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    assert_eq!(status, 0, "the system has a clock for the process");
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
}

/// Returns the best of several launches, because other load only slows launches down.
fn rate(run: &Run) -> Rate {
    let mut best = Rate {
        wall: 0.0,
        processor: 0.0,
    };
    for _ in 0..5 {
        let begin = Instant::now();
        let used = processor_time();
        let instructions = run.launch().thread_instructions as f64;
        let wall = begin.elapsed();
        let used = processor_time() - used;
        best.wall = best.wall.max(instructions / wall.as_secs_f64());
        best.processor = best.processor.max(2.0 * instructions / used.as_secs_f64());
    }
    best
}

#[expect(clippy::print_stderr, reason = "it reports what it measured")]
fn report(name: &str, run: &Run) {
    let Rate { wall, processor } = rate(run);
    eprintln!(
        "{name:<12} {:5.2} G thread instructions/s, {:5.2} by processor time",
        wall / 1e9,
        processor / 1e9
    );
}

/// Prints the relative processor time of a launch with checks: of races, of uninitialized reads,
/// and of both.
#[expect(clippy::print_stderr, reason = "it reports what it measured")]
fn compare(name: &str, make: impl Fn() -> Run) {
    let of = |races, uninitialized| {
        Checking::nothing()
            .with_races(races)
            .with_uninitialized(uninitialized)
    };
    let checked = [(true, false), (false, true), (true, true)]
        .map(|(races, uninitialized)| of(races, uninitialized));
    let runs: Vec<Run> = iter::once(make())
        .chain(checked.map(|checking| make().with_checks(checking)))
        .collect();
    let mut best = [f64::INFINITY; 4];
    // The launches alternate, so other load affects all of them.
    for _ in 0..7 {
        for (run, best) in runs.iter().zip(&mut best) {
            let begin = processor_time();
            run.launch();
            *best = best.min((processor_time() - begin).as_secs_f64());
        }
    }
    let [races, uninitialized, all] = [1, 2, 3].map(|checked| best[checked] / best[0]);
    eprintln!(
        "{name:<12} takes {races:.2} times as long with races, {uninitialized:.2} with uninitialized, {all:.2} with all"
    );
}

#[test]
#[ignore = "a measurement"]
fn checking_cost() {
    compare("saxpy", || saxpy(1 << 22).0);
    compare("matmul", || matmul(512));
    compare("bodies", || bodies(8192));
    compare("mandelbrot", || mandelbrot(1024, 768, 500));
}

/// Reading and lowering ten thousand lines of kernels as a compiler writes them.
#[test]
#[ignore = "a measurement"]
#[expect(clippy::print_stderr, reason = "it reports what it measured")]
fn long_module_time() -> TestResult {
    const LINES: usize = 10_000;
    let kernel = include_str!("matmul.ptx");
    let mut text = ".version 8.8\n.target sm_90\n.address_size 64\n".to_owned();
    for number in 0.. {
        if text.lines().count() >= LINES {
            break;
        }
        text += &kernel.replace("main", &format!("main{number}"));
    }
    let mut best = f64::INFINITY;
    for _ in 0..15 {
        let begin = processor_time();
        let module = crate::syntax::parse(&text)?;
        super::super::lower(&module)?;
        best = best.min((processor_time() - begin).as_secs_f64());
    }
    eprintln!(
        "{} lines of PTX: {:.1} ms",
        text.lines().count(),
        best * 1e3
    );
    Ok(())
}

#[test]
#[ignore = "a measurement"]
fn saxpy_throughput() {
    report("saxpy", &saxpy(1 << 22).0);
}

#[test]
#[ignore = "a measurement"]
#[expect(clippy::print_stderr, reason = "it reports what it measured")]
fn saxpy_element_time() {
    for power in 3..=8 {
        let elements = 10_u32.pow(power);
        let (run, _) = saxpy(elements);
        let instructions = run.launch().thread_instructions as f64;
        let Rate { wall, processor } = rate(&run);
        let nanoseconds = |rate: f64| instructions / rate / f64::from(elements) * 1e9;
        eprintln!(
            "10^{power} elements: {:.2} ns each, {:.2} by processor time",
            nanoseconds(wall),
            nanoseconds(processor)
        );
    }
}

#[test]
#[ignore = "a measurement"]
fn mandelbrot_throughput() {
    report("mandelbrot", &mandelbrot(1024, 768, 500));
}

#[test]
#[ignore = "a measurement"]
fn matmul_throughput() {
    report("matmul", &matmul(512));
}

#[test]
#[ignore = "a measurement"]
fn n_body_throughput() {
    report("bodies", &bodies(8192));
}
