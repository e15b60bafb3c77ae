//! Many random allocations, deallocations and accesses: nothing is leaked, and the process does not
//! grow. `cargo run -p curium-measurements --release --example soak` runs ten million.

use curium_tests::{Soak, TestDriver, TestResult, driver_test};

#[driver_test]
fn soak_leaves_nothing_and_does_not_grow(test: &TestDriver) -> TestResult {
    let soak = Soak {
        operations: if cfg!(miri) { 300 } else { 60_000 },
        threads: 3,
        seed: 7,
    };
    let soaked = soak.run(&test.context())?;
    assert!(soaked.allocations > soak.operations / 3, "{soaked:?}");
    Ok(())
}
