//! The example that measures the operations runs on the simulator. It lies in the folder `examples`
//! beside that of this test.
#![cfg(not(miri))]

use std::process::{Command, Output};

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn collectives(arguments: &[&str]) -> TestResult<Output> {
    let test = std::env::current_exe()?;
    let folder = test
        .parent()
        .and_then(|folder| folder.parent())
        .ok_or("no profile folder")?;
    let program = folder
        .join("examples")
        .join(format!("collectives{}", std::env::consts::EXE_SUFFIX));
    assert!(
        program.exists(),
        "collectives is not built: `cargo build -p curium-nccl --examples` builds it"
    );
    Ok(Command::new(program).args(arguments).output()?)
}

#[test]
fn every_operation_is_printed() -> TestResult {
    let output = collectives(&["--device", "sim"])?;
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows = text
        .lines()
        .skip(2)
        .map(|line| line.split(" |").next().unwrap_or_default());
    let printed: Vec<Vec<&str>> = rows.map(|row| row.split_whitespace().collect()).collect();
    let kinds = [
        "all_reduce",
        "reduce",
        "broadcast",
        "all_gather",
        "reduce_scatter",
        "all_to_all",
        "gather",
        "scatter",
        "send_receive",
        "replay",
    ];
    let expected: Vec<_> = kinds
        .iter()
        .flat_map(|kind| [vec![*kind, "1024"], vec![*kind, "4096"]])
        .collect();
    assert_eq!(printed, expected, "{text}");
    Ok(())
}

/// An unknown operation or device is an error.
#[test]
fn unknown_operation_is_an_error() -> TestResult {
    for (arguments, said) in [
        (&["all_reduced"][..], "no operation `all_reduced`"),
        (&["--device", "tpu"], "gpu or sim"),
    ] {
        let output = collectives(arguments)?;
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(said), "{text}");
    }
    Ok(())
}
