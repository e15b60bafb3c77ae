//! `curium man`, run as a program.

mod program;

use std::process::Output;

fn man(arguments: &[&str]) -> Output {
    program::curium()
        .arg("man")
        .args(arguments)
        .output()
        .expect("the program was built")
}

#[test]
fn program_page_names_its_commands() {
    let output = man(&[]);
    let page = String::from_utf8(output.stdout).expect("the program writes UTF-8");
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
}

#[test]
fn folder_gets_a_page_for_every_command() {
    let folder = tempfile::tempdir().expect("a folder can be created");
    let to = folder.path().join("man1");
    assert!(
        man(&["--folder", to.to_str().expect("the path is text")])
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
    let page = std::fs::read_to_string(to.join("curium-doctor.1")).expect("the page was written");
    assert!(
        page.contains("Exit codes") && page.contains("3  CUDA does not work"),
        "{page}"
    );
}
