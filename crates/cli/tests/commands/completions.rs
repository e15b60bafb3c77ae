//! `curium completions`, run as a program.

use crate::program;

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

#[test]
fn completions_are_complete() -> TestResult {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = program::curium().args(["completions", shell]).output();
        let script = String::from_utf8(output?.stdout)?;
        for command in ["demo", "info", "doctor", "mem", "cache"] {
            assert!(script.contains(command), "{shell} lacks {command}");
        }
    }
    Ok(())
}
