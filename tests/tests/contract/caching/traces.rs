//! Traces of allocations on several streams: see `tests/traces/README.md`.

use std::fs;
use std::path::Path;

use curium_diagnostics::AllocationLog;
use curium_tests::{TestDriver, TestResult, driver_test};

use super::caching;

/// The resource reserves at most 5 % more than the peak of the memory in use.
#[driver_test]
fn traces_reserve_little_more_than_they_use(test: &TestDriver) -> TestResult {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces");
    let mut traces = 0;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "log") {
            continue;
        }
        traces += 1;
        let log: AllocationLog = fs::read_to_string(&path)?.parse()?;
        let resource = caching(test)?;
        let replay = log.replay(&resource, &test.context())?;
        assert_eq!((replay.failures, replay.unknown_frees), (0, 0), "{path:?}");
        assert_reserved(
            &path,
            resource.statistics().reserved_bytes,
            replay.peak_bytes,
        );
        // The second time, on other streams, the memory is reused once the events at the ends of the first streams are passed.
        test.context().synchronize()?;
        log.replay(&resource, &test.context())?;
        assert_reserved(
            &path,
            resource.statistics().reserved_bytes,
            replay.peak_bytes,
        );
        // The model of the resource.
        let samples = log.simulate_caching(32 << 20);
        let simulated = samples.iter().map(|sample| sample.reserved_bytes).max();
        assert_reserved(&path, simulated.unwrap_or_default(), replay.peak_bytes);
    }
    assert!(traces >= 9, "{traces} traces");
    Ok(())
}

fn assert_reserved(path: &Path, reserved: u64, peak: u64) {
    let ratio = reserved as f64 / peak as f64;
    assert!(
        (1.0..=1.05).contains(&ratio),
        "{}: {ratio:.3} of the memory in use is reserved",
        path.display()
    );
}
