//! `curium completions`, run as a program.

mod program;

#[test]
fn completions_name_every_command() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = program::curium().args(["completions", shell]).output();
        let script = String::from_utf8(output.expect("the program was built").stdout)
            .expect("the program writes UTF-8");
        for command in ["demo", "info", "doctor", "mem", "cache"] {
            assert!(script.contains(command), "{shell} lacks {command}");
        }
    }
}
