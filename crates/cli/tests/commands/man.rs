//! `curium man`, run as a program.

use std::process::Output;

use crate::program;

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn man(arguments: &[&str]) -> TestResult<Output> {
    Ok(program::curium().arg("man").args(arguments).output()?)
}

#[test]
fn page_names_the_commands() -> TestResult {
    let output = man(&[])?;
    let page = String::from_utf8(output.stdout)?;
    assert!(
        output.status.success() && page.contains(".TH curium 1"),
        "{page}"
    );
    for command in [
        "demo",
        "info",
        "doctor",
        "bench",
        "trace",
        "mem",
        "cache",
        "completions",
        "man",
    ] {
        assert!(
            page.contains(&format!("curium\\-{command}(1)")),
            "{command}: {page}"
        );
    }
    Ok(())
}

#[test]
fn every_command_has_a_page() -> TestResult {
    let folder = tempfile::tempdir()?;
    let to = folder.path().join("man1");
    assert!(
        man(&["--folder", to.to_str().ok_or("the path is not UTF-8")?])?
            .status
            .success()
    );
    for page in [
        "curium.1",
        "curium-demo.1",
        "curium-doctor.1",
        "curium-cache-show.1",
    ] {
        assert!(to.join(page).exists(), "{page}");
    }
    let page = std::fs::read_to_string(to.join("curium-doctor.1"))?;
    assert!(
        page.contains("Exit codes") && page.contains("3  CUDA does not work"),
        "{page}"
    );
    Ok(())
}
