//! A small number of random kernels. `cargo xtask kernels-random` runs more, with other seeds.
#![cfg(not(miri))]
#![expect(clippy::print_stderr, reason = "a test that does nothing says so")]

use std::env;
use std::path::PathBuf;

use curium_test_kernels_random::{Options, Verdict, run};

/// No check reports anything, the results are those of the interpreter, and wrong programs are
/// refused.
#[test]
fn random_kernels() -> anyhow::Result<()> {
    let options = Options {
        seed: 0,
        count: 25,
        batch: 25,
        wrong: 12,
        shrink: true,
        max_failures: 2,
        work: PathBuf::from(env!("CARGO_TARGET_TMPDIR")),
        kernel_crate: None,
    };
    match run(&options, |_| ())? {
        Verdict::Missing(message) => {
            let is_required =
                env::var("CURIUM_KERNELS").is_ok_and(|mode| mode == "check" || mode == "build");
            anyhow::ensure!(!is_required, "{message}");
            eprintln!("random kernels are not tested: {message}");
        }
        Verdict::Finished(figures, failures) => {
            assert!(failures.is_empty(), "{figures:?}\n{}", failures.join("\n"));
            assert_eq!((figures.programs, figures.wrong), (25, 12));
        }
    }
    Ok(())
}
