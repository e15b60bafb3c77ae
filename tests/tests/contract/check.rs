//! Reports of the simulator about faulty kernels: the kernel, the thread, the address, and the
//! nearby allocations.
#![cfg(not(miri))]

use curium_driver::{
    DevicePointer, Event, EventFlags, Kernel, LaunchConfig, Library, Signature, Stream,
};
use curium_memory::DeviceBuffer;
use curium_sim::{Checks, Config, Report, ReportKind, Severity, Simulator};
use curium_tests::{
    TestDriver, TestResult, kernels, looks_for_races, on_simulator, simulator_test, skip, uses_cuda,
};

/// Two warps that exchange words through shared memory, with `BARRIER` replaced by the code in
/// between.
pub(crate) const EXCHANGE: &str = ".version 8.0
.target sm_75
.address_size 64
.visible .entry exchange(.param .u64 out)
{
    .reg .b32 %thread, %address, %other, %value;
    .reg .b64 %out, %own;
    .shared .align 4 .b8 words[256];
    mov.u32 %thread, %tid.x;
    mov.u32 %address, words;
    mad.lo.u32 %address, %thread, 4, %address;
    st.shared.u32 [%address], 0;
    bar.sync 0;
    st.shared.u32 [%address], %thread;
    BARRIER
    xor.b32 %other, %thread, 32;
    mov.u32 %address, words;
    mad.lo.u32 %address, %other, 4, %address;
    ld.shared.u32 %value, [%address];
    ld.param.u64 %out, [out];
    mad.wide.u32 %out, %thread, 4, %out;
    st.global.u32 [%out], %value;
    ret;
}
";

fn checking() -> Config {
    Config::new()
        .with_checks(Checks::Quiet)
        .with_race_checks(true)
}

/// Launches a kernel that fails, and returns the simulator's report.
fn reported_fault<S: Signature>(
    test: &TestDriver,
    simulator: &Simulator,
    name: &str,
    launch: impl FnOnce(&Kernel<S>) -> curium_driver::Result<()>,
) -> TestResult<Report> {
    let library = Library::from_ptx(test.driver(), kernels::FAULTS)?;
    launch(&library.kernel(name)?)?;
    test.context().synchronize().expect_err("the kernel fails");
    simulator.reset_errors();
    let mut faults = simulator.reports();
    assert_eq!(faults.len(), 1, "{faults:?}");
    Ok(faults.remove(0))
}

/// A write past an allocation names kernel thread line and the distance.
#[simulator_test(checking())]
fn write_past_an_allocation_is_located(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, 25)?;
    let address = buffer.as_pointer().as_raw();
    let fault =
        reported_fault::<(&mut [u32], u64, u32)>(test, simulator, "write_at", |write_at| {
            // SAFETY: the simulator detects the out-of-bounds write and does not perform it.
            unsafe { write_at.launch(&stream, LaunchConfig::new(1, 1), (&mut buffer, 27, 1)) }
        })?;
    assert_eq!(
        (fault.kind, fault.block, fault.thread),
        (ReportKind::IllegalAddress, [0; 3], [0; 3])
    );
    let line = kernels::FAULTS
        .lines()
        .nth(fault.location.line as usize - 1)
        .ok_or("no such line")?;
    assert!(line.contains("st.global"), "{line}");
    let text = fault.to_string();
    let location = format!("4-byte write at {:#x}", address + 108);
    let distance = format!("8 bytes past the end of a 100-byte allocation at {address:#x}");
    for part in [
        "`write_at`",
        &location,
        "block (0, 0, 0), thread (0, 0, 0), PTX line",
        &distance,
    ] {
        assert!(text.contains(part), "{text} without {part}");
    }
    Ok(())
}

/// The error of the call that returns a kernel's failure carries the report. No hint recommends the
/// simulator there.
#[simulator_test(checking())]
fn error_carries_the_report(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let library = Library::from_ptx(test.driver(), kernels::FAULTS)?;
    let write_at = library.kernel::<(&mut [u32], u64, u32)>("write_at")?;
    let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, 25)?;
    // SAFETY: the simulator detects the out-of-bounds write and does not perform it.
    unsafe { write_at.launch(&stream, LaunchConfig::new(1, 1), (&mut buffer, 27, 1)) }?;
    let error = stream.synchronize().err().ok_or("the kernel succeeded")?;
    let text = error.to_string();
    for part in [
        "kernel `write_at`: illegal address: 4-byte write at 0x",
        "8 bytes past the end of a 100-byte allocation",
        "thread (0, 0, 0), PTX line",
        "| st.global.u32 [",
    ] {
        assert!(text.contains(part), "{text} without {part}");
    }
    assert!(!text.contains("simulator"), "{text}");
    // Later errors need not repeat it.
    let later = stream
        .synchronize()
        .err()
        .ok_or("no error from a lost context")?;
    assert!(!later.to_string().contains("`write_at`"), "{later}");
    simulator.reset_errors();
    Ok(())
}

#[simulator_test(checking())]
fn use_after_free_is_reported(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let freed = DeviceBuffer::<u32>::zeroed(&stream, 25)?;
    let address = freed.as_pointer().as_raw();
    drop(freed);
    stream.synchronize()?;
    let mut result = DeviceBuffer::<u32>::zeroed(&stream, 1)?;
    let fault = reported_fault::<(DevicePointer<u32>, u64, &mut [u32])>(
        test,
        simulator,
        "read_at",
        |read_at| {
            let pointer = DevicePointer::from_raw(address);
            // SAFETY: the simulator detects the read of freed memory and does not perform it.
            unsafe { read_at.launch(&stream, LaunchConfig::new(1, 1), (pointer, 5, &mut result)) }
        },
    )?;
    let text = fault.to_string();
    assert!(
        text.contains(&format!(
            "20 bytes into a freed 100-byte allocation at {address:#x}, which was freed in stream "
        )),
        "{text}"
    );
    Ok(())
}

/// Runs [`EXCHANGE`]; returns the simulator's reports.
fn exchange(config: Config, barrier: &str) -> TestResult<Vec<Report>> {
    let mut faults = Vec::new();
    on_simulator(config, |test, simulator| -> TestResult {
        let stream = test.stream();
        let mut out = DeviceBuffer::<u32>::zeroed(&stream, 64)?;
        let library = Library::from_ptx(test.driver(), &EXCHANGE.replace("BARRIER", barrier))?;
        let kernel = library.kernel::<(&mut [u32],)>("exchange")?;
        // SAFETY: the kernel writes one word for each of its 64 threads.
        unsafe { kernel.launch(&stream, LaunchConfig::new(1, 64), (&mut out,)) }?;
        faults = if stream.synchronize().is_err() {
            simulator.reports()
        } else {
            Vec::new()
        };
        simulator.reset_errors();
        if !barrier.is_empty() {
            let expected: Vec<u32> = (0..64).map(|thread| thread ^ 32).collect();
            assert_eq!(out.to_vec()?, expected);
        }
        Ok(())
    })?;
    Ok(faults)
}

/// A race in shared memory names both threads for every seed.
#[test]
fn race_names_both_threads() -> TestResult {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    for seed in 0..20 {
        let faults = exchange(checking().with_seed(seed), "")?;
        let fault = faults.first().ok_or("no race reported")?;
        let ReportKind::Race { thread: with, .. } = fault.kind else {
            panic!("{fault}")
        };
        assert_eq!(fault.thread[0] ^ u32::from(with[0]), 32, "{fault}");
        let text = fault.to_string();
        for part in [
            "`exchange`",
            "race with block (0, 0, 0), thread (",
            ": 4-byte ",
            " in `words",
            "PTX line",
        ] {
            assert!(text.contains(part), "{text} without {part}");
        }
    }
    Ok(())
}

/// [`EXCHANGE`] between the threads of one warp.
fn exchange_in_warp(config: Config, between: &str) -> TestResult<Vec<Report>> {
    let mut faults = Vec::new();
    on_simulator(config, |test, simulator| -> TestResult {
        let stream = test.stream();
        let mut out = DeviceBuffer::<u32>::zeroed(&stream, 32)?;
        let text = EXCHANGE
            .replace("%thread, 32;", "%thread, 1;")
            .replace("BARRIER", between);
        let library = Library::from_ptx(test.driver(), &text)?;
        let kernel = library.kernel::<(&mut [u32],)>("exchange")?;
        // SAFETY: the kernel writes one word for each of its 32 threads.
        unsafe { kernel.launch(&stream, LaunchConfig::new(1, 32), (&mut out,)) }?;
        faults = if stream.synchronize().is_err() {
            simulator.reports()
        } else {
            Vec::new()
        };
        simulator.reset_errors();
        Ok(())
    })?;
    Ok(faults)
}

/// A race within a warp is found unless the warp synchronizes in between.
#[test]
fn warp_race_needs_a_barrier() -> TestResult {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    for joined in [
        "bar.warp.sync -1;",
        "bar.sync 0;",
        "shfl.sync.idx.b32 %other, %thread, 0, 31, -1;",
    ] {
        assert_eq!(exchange_in_warp(checking(), joined)?, [], "{joined}");
    }
    let faults = exchange_in_warp(checking(), "add.u32 %other, %thread, 1;")?;
    let fault = faults.first().ok_or("no race reported")?;
    assert_eq!(
        (fault.kind, fault.thread),
        (
            ReportKind::Race {
                block: [0; 3],
                thread: [1, 0, 0],
                wrote: true,
                same_value: false
            },
            [0; 3]
        ),
        "{fault}"
    );
    Ok(())
}

/// Work of two streams on one buffer without hazard tracking: nothing orders the launches.
fn unordered_streams(order: impl Fn(&Stream, &Stream) -> TestResult) -> TestResult<Vec<Report>> {
    let mut faults = Vec::new();
    on_simulator(checking(), |test, simulator| -> TestResult {
        let writer = test.stream();
        let reader = test.stream();
        let buffer = DeviceBuffer::<u32>::zeroed(&writer, 25)?;
        let mut result = DeviceBuffer::<u32>::zeroed(&reader, 1)?;
        test.context().synchronize()?;
        let library = Library::from_ptx(test.driver(), kernels::FAULTS)?;
        let write = library.kernel::<(DevicePointer<u32>, u64, u32)>("write_at")?;
        let read = library.kernel::<(DevicePointer<u32>, u64, &mut [u32])>("read_at")?;
        let pointer = DevicePointer::from_raw(buffer.as_pointer().as_raw());
        // SAFETY: the kernel writes within the buffer, which outlives the test's last
        // synchronization.
        unsafe { write.launch(&writer, LaunchConfig::new(1, 1), (pointer, 5, 7)) }?;
        order(&writer, &reader)?;
        // SAFETY: the kernel reads within the buffer; the simulator detects the race.
        unsafe { read.launch(&reader, LaunchConfig::new(1, 1), (pointer, 5, &mut result)) }?;
        faults = if test.context().synchronize().is_err() {
            simulator.reports()
        } else {
            Vec::new()
        };
        simulator.reset_errors();
        Ok(())
    })?;
    Ok(faults)
}

/// A race between streams names both kernels and streams the address and the allocation.
#[test]
fn race_names_both_kernels() -> TestResult {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    let faults = unordered_streams(|_, _| Ok(()))?;
    let text = faults.first().ok_or("no race reported")?.to_string();
    for part in [
        "kernel `read_at` in stream ",
        "race with kernel `write_at` in stream ",
        "and is not ordered before it",
        ": 4-byte ",
        "block (0, 0, 0), thread (0, 0, 0), PTX line",
        ", 20 bytes into a 100-byte allocation at 0x",
    ] {
        let other = text
            .replace("kernel `write_at`", "kernel `?`")
            .replace("kernel `read_at`", "kernel `write_at`");
        let other = other.replace("kernel `?`", "kernel `read_at`");
        assert!(
            text.contains(part) || other.contains(part),
            "{text} without {part}"
        );
    }
    fn event_between(writer: &Stream, reader: &Stream) -> TestResult {
        let event = Event::new(writer.context(), EventFlags::empty())?;
        event.record(writer)?;
        reader.wait_event(&event)?;
        Ok(())
    }

    assert_eq!(unordered_streams(event_between)?, []);
    assert_eq!(
        unordered_streams(|writer, _| Ok(writer.synchronize()?))?,
        []
    );
    Ok(())
}

#[test]
fn ordered_exchange_is_no_race() -> TestResult {
    for barrier in ["bar.sync 0;", "barrier.sync 3, 64;"] {
        for seed in 0..20 {
            assert_eq!(
                exchange(checking().with_seed(seed), barrier)?,
                [],
                "{barrier}, seed {seed}"
            );
        }
    }
    // Race detection is off by default.
    if !looks_for_races() {
        assert_eq!(exchange(Config::new(), "")?, []);
    }
    Ok(())
}

/// Returns a kernel of two blocks of two warps with a body.
fn body(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_70\n.address_size 64\n.visible .entry main(.param .u64 out)\n{{\n\
         .reg .b32 %thread, %block, %value, %warp;\n.reg .b64 %out, %own;\n.reg .pred %p, %q;\n.shared .align 16 .b8 words[64];\n\
         mov.u32 %thread, %tid.x;\nmov.u32 %block, %ctaid.x;\nshr.u32 %warp, %thread, 5;\nld.param.u64 %out, [out];\n{body}\nret;\n}}\n"
    )
}

/// Launches a kernel with this body on `blocks` blocks of 64 threads. Returns whether it succeeded,
/// and the severities of the reports.
fn severities(seed: u64, blocks: u32, text: &str) -> TestResult<(bool, Vec<Severity>)> {
    let mut actual = (true, Vec::new());
    on_simulator(
        checking().with_seed(seed),
        |test, simulator| -> TestResult {
            let stream = test.stream();
            let mut out = DeviceBuffer::<u32>::zeroed(&stream, 64)?;
            let library = Library::from_ptx(test.driver(), &body(text))?;
            let kernel = library.kernel::<(&mut [u32],)>("main")?;
            // SAFETY: the kernel accesses the 64 words of its argument.
            unsafe { kernel.launch(&stream, LaunchConfig::new(blocks, 64), (&mut out,)) }?;
            actual.0 = stream.synchronize().is_ok();
            actual.1 = simulator.reports().iter().map(Report::severity).collect();
            for report in simulator.reports() {
                assert!(
                    report
                        .to_string()
                        .contains("kernel `main`: race with block ("),
                    "{report}"
                );
                assert_eq!(
                    report.to_string().starts_with("warning: "),
                    report.severity() == Severity::Warning,
                    "{report}"
                );
            }
            simulator.reset_errors();
            Ok(())
        },
    )?;
    Ok(actual)
}

/// Launches a kernel with this body on one block of 64 threads, and returns the report that fails
/// it.
fn failure(text: &str) -> TestResult<Option<Report>> {
    let mut reports = Vec::new();
    on_simulator(checking(), |test, simulator| -> TestResult {
        let stream = test.stream();
        let mut out = DeviceBuffer::<u32>::zeroed(&stream, 64)?;
        let library = Library::from_ptx(test.driver(), &body(text))?;
        let kernel = library.kernel::<(&mut [u32],)>("main")?;
        // SAFETY: the kernel accesses the 64 words of its argument.
        unsafe { kernel.launch(&stream, LaunchConfig::new(1, 64), (&mut out,)) }?;
        let has_failed = stream.synchronize().is_err();
        reports = simulator.reports();
        assert_eq!(has_failed, !reports.is_empty(), "{reports:?}");
        simulator.reset_errors();
        Ok(())
    })?;
    Ok(reports.pop())
}

/// A part of each warp arrives at a barrier, and the others at another one, or at none.
#[test]
fn divergent_barrier_names_lanes() -> TestResult {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    let arms = "and.b32 %value, %thread, 1; setp.eq.u32 %p, %value, 1; @%p bra ODD;
        bar.sync 0; bra JOIN; ODD: OTHER JOIN: st.global.u32 [%out], 7;";
    for other in ["bar.sync 0;", "mov.u32 %value, 1;"] {
        let report = failure(&arms.replace("OTHER", other))?.ok_or("no divergence reported")?;
        let ReportKind::DivergentBarrier(divergence) = report.kind else {
            panic!("{report}")
        };
        let lanes = [divergence.waiting, divergence.missing];
        assert!(
            lanes == [0x5555_5555, 0xaaaa_aaaa] || lanes == [0xaaaa_aaaa, 0x5555_5555],
            "{report}"
        );
        assert!(
            report.other.is_some() && report.location.line != 0,
            "{report}"
        );
        let text = report.to_string();
        for part in [
            "kernel `main`: divergent barrier: warp 0 with lanes ",
            " waiting for ",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
    Ok(())
}

/// Threads that returned early do not take part in barriers and warp instructions.
#[test]
fn early_return_is_accepted() -> TestResult {
    for text in [
        "setp.gt.u32 %p, %thread, 40; @%p ret; bar.sync 0; bar.warp.sync -1;",
        "setp.gt.u32 %p, %thread, 40; @%p bra END; bar.sync 0; mad.wide.u32 %own, %thread, 4, %out;
         st.global.u32 [%own], 1; END:",
    ] {
        assert_eq!(failure(text)?, None, "{text}");
    }
    Ok(())
}

/// Threads of one warp add to a word without an atomic operation, and exchange words without
/// synchronization.
#[test]
fn races_within_a_warp() -> TestResult {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    let one_warp = "setp.gt.u32 %p, %thread, 31; @%p ret;";
    for text in [
        "ld.global.u32 %value, [%out]; add.u32 %value, %value, %thread; st.global.u32 [%out], %value;",
        "st.global.u32 [%out], %thread;",
        "st.shared.u32 [words], %thread;",
        "mad.wide.u32 %own, %thread, 4, %out; st.global.u32 [%own], 1; xor.b32 %value, %thread, 1;
         mad.wide.u32 %own, %value, 4, %out; ld.global.u32 %value, [%own];",
    ] {
        let report = failure(&format!("{one_warp}{text}"))?.ok_or("no race reported")?;
        assert!(
            matches!(
                report.kind,
                ReportKind::Race {
                    same_value: false,
                    ..
                }
            ),
            "{report}"
        );
    }
    Ok(())
}

/// Threads of one warp that store the same value, or to volatile memory, and a member that never
/// arrives.
#[test]
fn stuck_warps_fail() -> TestResult {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    let one_warp = "setp.gt.u32 %p, %thread, 31; @%p ret;";
    for text in [
        "st.global.u32 [%out], 7;",
        "st.shared.u32 [words], 7;",
        "ld.volatile.global.u32 %value, [%out]; st.volatile.global.u32 [%out], %thread;",
        "setp.eq.u32 %p, %thread, 3; @%p st.global.u32 [%out], 7; bar.warp.sync -1; ld.global.u32 %value, [%out];",
    ] {
        assert_eq!(failure(&format!("{one_warp}{text}"))?, None, "{text}");
    }
    let stuck = "setp.gt.u32 %p, %thread, 20; @%p bra HIGH; bar.warp.sync -1; bra END; HIGH: barrier.sync 1; END:";
    let report = failure(&format!("{one_warp}{stuck}"))?.ok_or("no missing member reported")?;
    assert!(
        matches!(report.kind, ReportKind::MissingMembers(_)),
        "{report}"
    );
    Ok(())
}

/// Each of two blocks stores a word of its own, and the last one to increment a counter loads the
/// word of the other.
const LAST_BLOCK_LOADS: &str = "setp.ne.u32 %p, %thread, 0;
    @%p bra END;
    mad.wide.u32 %own, %block, 4, %out;
    st.global.u32 [%own], %block;
    FENCE
    atom.global.add.u32 %value, [%out+32], 1;
    FENCE
    setp.eq.u32 %q, %value, 0;
    @%q bra END;
    xor.b32 %value, %block, 1;
    mad.wide.u32 %own, %value, 4, %out;
    ld.global.u32 %value, [%own];
    END:";

/// Races for device memory of the same value are warnings.
#[test]
fn benign_device_races_warn() -> TestResult {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    let warning = (true, vec![Severity::Warning]);
    let error = (false, vec![Severity::Error]);
    for (blocks, text, expected) in [
        (2, "st.global.u32 [%out], 7;", &warning),
        (2, "st.u32 [%out], 7;", &warning),
        (1, "st.global.u32 [%out], 7;", &warning),
        (2, "st.global.v2.u32 [%out], {7, 8};", &warning),
        (2, "st.global.u16 [%out+2], 7;", &warning),
        (2, "st.global.u32 [%out], %block;", &error),
        (1, "st.global.u32 [%out], %warp;", &error),
        (2, "st.global.v2.u32 [%out], {7, %block};", &error),
        (
            2,
            "st.global.u64 [%out], %out; st.global.u32 [%out], %warp;",
            &error,
        ),
        (
            2,
            "ld.global.u32 %value, [%out]; st.global.u32 [%out], 7;",
            &error,
        ),
    ] {
        for seed in 0..4 {
            let actual = severities(seed, blocks, text)?;
            let last = (actual.0, actual.1.into_iter().rev().take(1).collect());
            assert_eq!(&last, expected, "{text}, {blocks} blocks, seed {seed}");
        }
    }
    Ok(())
}

/// Accesses of device memory that are ordered or atomic are not reported.
#[test]
fn atomic_accesses_are_no_races() -> TestResult {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    let exchange = "mad.wide.u32 %out, %thread, 4, %out; st.global.u32 [%out], %thread; bar.sync 0; xor.b32 %value, %thread, 32; \
                    ld.param.u64 %out, [out]; mad.wide.u32 %out, %value, 4, %out; ld.global.u32 %value, [%out];";
    for (blocks, text) in [
        (2, "atom.global.add.u32 %value, [%out], 1;"),
        (2, "red.global.add.u32 [%out], 1;"),
        (2, "ld.global.u32 %value, [%out];"),
        (2, "st.volatile.global.u32 [%out], %block;"),
        (2, "st.relaxed.gpu.global.u32 [%out], %block;"),
        (1, exchange),
        (2, &LAST_BLOCK_LOADS.replace("FENCE", "membar.gl;")),
    ] {
        for seed in 0..4 {
            assert_eq!(
                severities(seed, blocks, text)?,
                (true, Vec::new()),
                "{text}, {blocks} blocks, seed {seed}"
            );
        }
    }
    assert!(
        !severities(0, 1, &exchange.replace("bar.sync 0;", ""))?.0,
        "without a barrier, the accesses race"
    );
    assert!(
        !severities(0, 2, &LAST_BLOCK_LOADS.replace("FENCE", ""))?.0,
        "without a fence, the accesses race"
    );
    Ok(())
}

/// Races for shared memory of the same value are warnings.
#[test]
fn benign_shared_races_warn() -> TestResult {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    let warning = (true, vec![Severity::Warning]);
    let error = (false, vec![Severity::Error]);
    for (text, expected) in [
        ("st.shared.u32 [words], 7;", &warning),
        ("st.shared.v2.u32 [words+8], {7, 8};", &warning),
        ("st.shared.u8 [words+3], 7;", &warning),
        ("st.shared.u32 [words], %warp;", &error),
        ("st.shared.v2.u32 [words+8], {7, %warp};", &error),
        (
            "ld.shared.u32 %value, [words]; st.shared.u32 [words], 7;",
            &error,
        ),
        (
            "st.shared.u32 [words], 7; ld.shared.u32 %value, [words];",
            &error,
        ),
    ] {
        for seed in 0..4 {
            let actual = severities(seed, 1, text)?;
            let last = (actual.0, actual.1.into_iter().rev().take(1).collect());
            assert_eq!(&last, expected, "{text}, seed {seed}");
        }
    }
    Ok(())
}
