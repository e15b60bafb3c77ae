//! Compilation in build scripts.

use std::path::Path;
use std::process::Command;

use crate::library::with_nvrtc;
use curium_nvrtc::{Architecture, CompileOptions, build};

#[test]
fn build_script_writes_ptx_or_a_cubin_to_the_output_folder() {
    const ROLE: &str = "CURIUM_TEST_BUILD_SCRIPT";
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels/saxpy.cu");
    if std::env::var_os(ROLE).is_some() {
        let ptx = build::compile(&source, &CompileOptions::new());
        assert!(
            std::fs::read_to_string(ptx)
                .expect("it is written")
                .contains(".entry saxpy")
        );
        let options = CompileOptions::new().with_architecture(Architecture::new(8, 0).real());
        let cubin = build::compile(&source, &options);
        assert!(
            std::fs::read(cubin)
                .expect("it is written")
                .starts_with(b"\x7fELF")
        );
        return;
    }
    with_nvrtc(
        "build_script_writes_ptx_or_a_cubin_to_the_output_folder",
        |_| {
            let folder = tempfile::tempdir().expect("a folder can be created");
            let mut child =
                Command::new(std::env::current_exe().expect("the path of this program is known"));
            child.args([
                "--exact",
                "build_script::build_script_writes_ptx_or_a_cubin_to_the_output_folder",
                "--nocapture",
            ]);
            let output = child
                .env(ROLE, "child")
                .env("OUT_DIR", folder.path())
                .output()
                .expect("it can be run again");
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(
                output.status.success() && text.contains("cargo::rerun-if-changed="),
                "{text}"
            );
            let names = ["saxpy.ptx", "saxpy.cubin"].map(|name| folder.path().join(name).exists());
            assert_eq!(names, [true, true]);
        },
    );
}
