//! `curium mem`, run as a program.

use std::fs;
use std::path::Path;

use crate::program::{self, Outcome};

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn mem(folder: &Path, arguments: &[&str]) -> Outcome {
    let mut command = program::curium();
    command.arg("mem").args(arguments).current_dir(folder);
    program::run(&mut command).expect("failed to start the program")
}

/// Returns a log of memory that rises to 8 MiB in 8 blocks and falls to 1 MiB.
fn log() -> String {
    let mut text = String::from("curium allocation log 1\n");
    for block in 0..8 {
        text.push_str(&format!(
            "{} allocate {:#x} 1048576 256 1 x.rs:1:1\n",
            block * 1000,
            (block + 1) << 20
        ));
    }
    for block in 0..7 {
        text.push_str(&format!(
            "{} free {:#x} 1048576 256 1\n",
            (block + 8) * 1000,
            (block + 1) << 20
        ));
    }
    text.push_str("16000 fail 0x0 99 256 1\n");
    text
}

#[test]
fn log_is_drawn_and_summed_up() -> TestResult {
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("a.log"), log())?;
    let Outcome {
        code,
        stdout,
        stderr,
    } = mem(
        folder.path(),
        &["a.log", "--output", "a.svg", "--snapshot", "a.pickle"],
    );
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(
        stdout.contains("8 allocations, 7 frees, 1 failure\n"),
        "{stdout}"
    );
    assert!(
        stdout.contains("peak     8.0 MiB in 8 blocks")
            && stdout.contains("at end   1.0 MiB in 1 block\n"),
        "{stdout}"
    );
    assert!(stdout.contains("cache    32.0 MiB reserved"), "{stdout}");
    let svg = fs::read_to_string(folder.path().join("a.svg"))?;
    assert!(
        svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"),
        "{svg}"
    );
    for text in [
        "device memory",
        "in use",
        "held by a cache",
        "fragmentation",
    ] {
        assert!(svg.contains(text), "the image contains {text}");
    }
    let pickle = fs::read(folder.path().join("a.pickle"))?;
    assert_eq!((pickle.first(), pickle.last()), (Some(&0x80), Some(&b'.')));
    Ok(())
}

#[test]
fn invalid_log_names_its_line() -> TestResult {
    let folder = tempfile::tempdir()?;
    fs::write(
        folder.path().join("bad.log"),
        "curium allocation log 1\n1 allocate here 1 1 1\n",
    )?;
    fs::write(folder.path().join("empty.log"), "curium allocation log 1\n")?;
    for (arguments, expected) in [
        (
            &["bad.log"][..],
            "bad.log is not an allocation log: line 2 of the allocation log: invalid address \"here\"",
        ),
        (&["empty.log"], "empty.log contains no event"),
        (&["absent.log"], "the log absent.log could not be read"),
    ] {
        let Outcome {
            code,
            stdout,
            stderr,
        } = mem(folder.path(), arguments);
        assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    }
    assert!(!folder.path().join("curium-mem.svg").exists());
    Ok(())
}

/// Times, addresses and sizes that no machine has are rejected, and events may be in any order.
#[test]
fn implausible_log_is_no_panic() -> std::io::Result<()> {
    let folder = tempfile::tempdir()?;
    let exit_code = |events: &str| {
        let path = folder.path().join("hostile.log");
        fs::write(path, format!("curium allocation log 1\n{events}\n"))?;
        let Outcome {
            code,
            stderr: errors,
            ..
        } = mem(
            folder.path(),
            &["hostile.log", "--snapshot", "snapshot.pkl"],
        );
        assert!(!errors.contains("panicked"), "{errors}");
        std::io::Result::Ok(code)
    };
    for event in [
        "1 allocate 0xffffffffffffffff 4096 256 1",
        "1 allocate 0x1000 18446744073709551615 256 1",
        "1 allocate 0x1000 4096 9223372036854775808 1",
        "18446744073709551615 allocate 0x1000 4096 256 1",
    ] {
        assert_eq!(exit_code(event)?, Some(1), "{event}");
    }
    let failed = "1099511627776 fail 0x1000 18446744073709551615 256 1";
    let allocated = "1 allocate 0x2000 4096 256 1";
    assert_eq!(exit_code(&format!("{failed}\n{allocated}"))?, Some(0));
    Ok(())
}
