//! A package with kernels and a build script, built by cargo.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

type TestResult = Result<(), Box<dyn std::error::Error>>;

const MAIN: &str = r#"mod kernels {
    #![allow(unused)]
    use curium_kernel::*;

    kernel!(0 saxpy = "curium.kernel.saxpy" "curium.meta.saxpy" (x x_length, y y_length) {
        let index = unsafe { tid_x() } as usize;
        y[index] += 3 * x[index];
    });
    // more
}
curium_kernel::include_kernels!("kernels");

fn main() {
    for (target, ptx) in IMAGES {
        println!("image {target} {}", ptx.contains(".entry saxpy"));
    }
    for (name, table) in KERNELS {
        println!("kernel {name} {}", table.len());
    }
}
"#;

/// A package in a folder of its own. The packages share a target folder, in which their names tell
/// them apart.
struct Package {
    folder: tempfile::TempDir,
}

impl Package {
    fn new(name: &str) -> Result<Self, Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let this = Path::new(env!("CARGO_MANIFEST_DIR"));
        let manifest = format!(
            "[package]\nname = {name:?}\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\ncurium-kernel = {{ path = {:?} }}\n\n\
             [build-dependencies]\ncurium-kernel-build = {{ path = {:?} }}\n\n[workspace]\n",
            this.join("tests/device").display().to_string(),
            this.display().to_string()
        );
        fs::create_dir(folder.path().join("src"))?;
        fs::write(folder.path().join("Cargo.toml"), manifest)?;
        fs::copy(
            this.join("../../Cargo.lock"),
            folder.path().join("Cargo.lock"),
        )?;
        let script = "fn main() { curium_kernel_build::Kernels::module(\"src/main.rs\", \"kernels\").targets([\"sm_80\", \"sm_90a\"]).compile(); }\n";
        fs::write(folder.path().join("build.rs"), script)?;
        let package = Self { folder };
        package.write(MAIN)?;
        Ok(package)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, main: &str) -> TestResult {
        Ok(fs::write(self.path("src/main.rs"), main)?)
    }

    fn cargo(&self, command: &str, variables: &[(&str, &str)]) -> Result<Output, std::io::Error> {
        Command::new(env!("CARGO"))
            .args([command, "--offline"])
            .current_dir(self.folder.path())
            .env(
                "CARGO_TARGET_DIR",
                Path::new(env!("CARGO_TARGET_TMPDIR")).join("build-script"),
            )
            .env_remove("CURIUM_KERNELS")
            .envs(variables.iter().copied())
            .output()
    }

    /// Runs the program.
    fn run(&self, variables: &[(&str, &str)]) -> Result<String, Box<dyn std::error::Error>> {
        let output = self.cargo("run", variables)?;
        let errors = String::from_utf8(output.stderr)?;
        if !output.status.success() {
            return Err(errors.into());
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Compiles the package, and returns the errors.
    fn errors(&self, variables: &[(&str, &str)]) -> Result<String, Box<dyn std::error::Error>> {
        let output = self.cargo("check", variables)?;
        let errors = String::from_utf8(output.stderr)?;
        if output.status.success() {
            return Err(format!("compiled: {errors}").into());
        }
        Ok(errors)
    }
}

const OUTPUT: &str = "image sm_80 true\nimage sm_90a true\nkernel saxpy 124\n";

/// The effect of a build in each mode, without the toolchain's parts, and for a published package.
#[test]
#[ignore = "builds a package with its build script; needs the toolchain's parts for kernels"]
fn modes_select_what_is_built() -> TestResult {
    let package = Package::new("modes_select_what_is_built")?;
    let missing = ("CURIUM_KERNELS_TOOLCHAIN", "no-such-toolchain");
    assert!(package.errors(&[missing])?.contains("prebuilt PTX"));
    assert!(
        package
            .errors(&[("CURIUM_KERNELS", "check")])?
            .contains("prebuilt PTX")
    );
    assert_eq!(package.run(&[("CURIUM_KERNELS", "update")])?, OUTPUT);
    let prebuilt = package.path("src/kernels.sm_80.ptx");
    let text = fs::read_to_string(&prebuilt)?;
    assert!(
        text.starts_with("// curium-kernels: 1") && !text.contains(".loc"),
        "{text}"
    );
    assert!(
        !text.contains(&*package.folder.path().to_string_lossy()),
        "{text}"
    );
    assert!(package.path("src/kernels.sm_90a.ptx").exists());
    for mode in ["check", "prebuilt", "build", ""] {
        assert_eq!(package.run(&[("CURIUM_KERNELS", mode)])?, OUTPUT, "{mode}");
    }
    assert_eq!(package.run(&[missing])?, OUTPUT);
    assert!(
        package
            .errors(&[("CURIUM_KERNELS", "other")])?
            .contains("none of build, prebuilt, update and check")
    );

    // Code of the host does not make the prebuilt PTX stale. Code of the kernels does.
    package.write(&MAIN.replace("fn main() {", "fn main() {\n    let _ = 1;"))?;
    assert_eq!(package.run(&[missing])?, OUTPUT);
    package.write(&MAIN.replace("3 * x", "5 * x"))?;
    let errors = package.errors(&[missing])?;
    assert!(
        errors.contains("`src/main.rs` has changed") && errors.contains("CURIUM_KERNELS=update"),
        "{errors}"
    );
    assert!(
        package
            .errors(&[("CURIUM_KERNELS", "check")])?
            .contains("and the compiler writes")
    );
    assert_eq!(package.run(&[])?, OUTPUT);

    // A published package uses its prebuilt PTX although it could compile it.
    package.write(MAIN)?;
    fs::write(&prebuilt, text.replace(".entry saxpy", ".entry other"))?;
    assert!(package.run(&[])?.contains("image sm_80 true"));
    fs::write(package.path("Cargo.toml.orig"), "")?;
    fs::write(
        package.path("build.rs"),
        fs::read_to_string(package.path("build.rs"))? + "\n",
    )?;
    assert!(package.run(&[])?.contains("image sm_80 false"));
    Ok(())
}

/// The features of the host's build reach the kernels, and prebuilt PTX belongs to them.
#[test]
#[ignore = "builds a package with its build script; needs the toolchain's parts for kernels"]
fn features_reach_the_kernels() -> TestResult {
    let package = Package::new("features_reach_the_kernels")?;
    let manifest = package.path("Cargo.toml");
    let text = fs::read_to_string(&manifest)?
        + "\n[features]\ndefault = [\"times-7777\"]\ntimes-7777 = []\nunrelated = []\n";
    fs::write(&manifest, &text)?;
    let factor = "(if cfg!(feature = \"times-7777\") { 7777 } else { 3 }) * x";
    let main = MAIN.replace("3 * x", factor);
    package.write(&main.replace(
        "{}\", ptx.contains",
        "{}\", ptx.contains(\"7777\") && ptx.contains",
    ))?;
    let with_feature = package.run(&[("CURIUM_KERNELS", "update")])?;
    assert!(with_feature.contains("image sm_80 true"), "{with_feature}");
    assert_eq!(
        package.run(&[("CURIUM_KERNELS", "prebuilt")])?,
        with_feature
    );

    // A feature that the kernels do not name changes nothing.
    fs::write(
        &manifest,
        text.replace("= [\"times", "= [\"unrelated\", \"times"),
    )?;
    assert_eq!(
        package.run(&[("CURIUM_KERNELS", "prebuilt")])?,
        with_feature
    );

    fs::write(&manifest, text.replace("= [\"times-7777\"]", "= []"))?;
    let errors = package.errors(&[("CURIUM_KERNELS", "prebuilt")])?;
    assert!(errors.contains("other features"), "{errors}");
    let without_feature = package.run(&[])?;
    assert!(
        without_feature.contains("image sm_80 false"),
        "{without_feature}"
    );
    Ok(())
}

/// Each error appears once: in the code that the host compiles too, or beside `include_kernels!`.
#[test]
#[ignore = "builds a package with its build script; needs the toolchain's parts for kernels"]
fn errors_appear_once() -> TestResult {
    let package = Package::new("errors_appear_once")?;
    package.write(&MAIN.replace("// more", "fn wrong() -> u32 { \"text\" }"))?;
    let errors = package.errors(&[])?;
    assert_eq!(errors.matches("mismatched types").count(), 1, "{errors}");
    assert!(errors.contains("--> src/main.rs:9:"), "{errors}");
    assert!(errors.contains("due to 1 previous error"), "{errors}");

    let constant = "const N: usize = 9; const fn check() { assert!(N < 5, \"N is less than five\") } #[cfg(target_arch = \"nvptx64\")] const OK: () = check();";
    package.write(&MAIN.replace("// more", constant))?;
    let errors = package.errors(&[])?;
    assert!(
        errors.contains("the kernels do not compile for the device"),
        "{errors}"
    );
    assert!(errors.contains("--> src/main.rs:9:"), "{errors}");
    assert!(errors.contains("due to 1 previous error"), "{errors}");

    package.write(&MAIN.replace(
        "3 * x[index]",
        "core::sync::atomic::AtomicU32::new(3).fetch_add(1, core::sync::atomic::Ordering::Relaxed)",
    ))?;
    let errors = package.errors(&[])?;
    assert!(
        errors.contains("uses an atomic of `core`") && errors.contains("kernel saxpy"),
        "{errors}"
    );
    assert!(errors.contains("due to 1 previous error"), "{errors}");
    Ok(())
}

/// Two modules of one name in one package: cargo reports both files, and compiles neither program.
#[test]
#[ignore = "builds a package with its build script; needs the toolchain's parts for kernels"]
fn modules_of_one_name_are_an_error() -> TestResult {
    let package = Package::new("modules_of_one_name_are_an_error")?;
    fs::create_dir(package.path("src/bin"))?;
    fs::write(package.path("src/bin/other.rs"), MAIN)?;
    let script = fs::read_to_string(package.path("build.rs"))?.replace(
        "}\n",
        "curium_kernel_build::Kernels::module(\"src/bin/other.rs\", \"kernels\").compile(); }\n",
    );
    fs::write(package.path("build.rs"), &script)?;
    let errors = package.errors(&[])?;
    let message = "error: modules_of_one_name_are_an_error@0.1.0: two modules of kernels are called `kernels`: one is in src/main.rs, the other in src/bin/other.rs;";
    assert!(errors.contains(message), "{errors}");

    fs::write(
        package.path("build.rs"),
        script.replace("other.rs\", \"kernels", "other.rs\", \"others"),
    )?;
    let other = MAIN
        .replace("mod kernels", "mod others")
        .replace("!(\"kernels\")", "!(\"others\")");
    fs::write(package.path("src/bin/other.rs"), other)?;
    let output = package.cargo("check", &[])?;
    let errors = String::from_utf8(output.stderr)?;
    assert!(output.status.success(), "{errors}");
    Ok(())
}

/// Mistakes in the setup of a package with the device crate that users have: each error names the
/// remedy.
#[test]
#[ignore = "builds a package with its build script"]
fn setup_mistakes_name_the_remedy() -> TestResult {
    let package = Package::new("setup_mistakes_name_the_remedy")?;
    let manifest = fs::read_to_string(package.path("Cargo.toml"))?;
    let this = Path::new(env!("CARGO_MANIFEST_DIR"));
    let device = this.join("tests/device").display().to_string();
    let kernel = this.join("../kernel").display().to_string();
    fs::write(
        package.path("Cargo.toml"),
        manifest.replace(&device, &kernel),
    )?;
    package.write(
        "mod kernels {\n    use curium_kernel::prelude::*;\n\n    #[kernel]\n    pub fn nothing(t: Thread) {}\n}\n\
         curium_kernel::include_kernels!(\"kernels\");\n\nfn main() {}\n",
    )?;
    // The kernels need not be compiled for the device.
    let missing = ("CURIUM_KERNELS_TOOLCHAIN", "no-such-toolchain");
    let errors = package.errors(&[missing])?;
    assert!(
        errors.contains("error: kernels are launched with the feature `host`"),
        "{errors}"
    );

    let remedy = "error: no build script compiles the module `kernels`: `main` of build.rs needs";
    fs::write(package.path("build.rs"), "fn main() {}\n")?;
    let errors = package.errors(&[missing])?;
    assert!(errors.contains(remedy), "{errors}");
    fs::remove_file(package.path("build.rs"))?;
    let errors = package.errors(&[missing])?;
    assert!(errors.contains(remedy), "{errors}");
    Ok(())
}

/// Writes the source, and returns how long cargo takes.
fn time_check(package: &Package, main: &str) -> Result<Duration, Box<dyn std::error::Error>> {
    package.write(main)?;
    let start = Instant::now();
    let output = package.cargo("check", &[])?;
    if !output.status.success() {
        return Err(String::from_utf8(output.stderr)?.into());
    }
    Ok(start.elapsed())
}

/// A build that changes nothing runs no build script; a change of the host's code compiles the
/// kernels again, though cargo has them.
#[test]
#[ignore = "builds a package with its build script; needs the toolchain's parts for kernels"]
fn unchanged_build_takes_a_second() -> TestResult {
    let package = Package::new("unchanged_build_takes_a_second")?;
    let first = time_check(&package, MAIN)?;
    let start = Instant::now();
    package.cargo("check", &[])?;
    let unchanged = start.elapsed();
    let host = time_check(
        &package,
        &MAIN.replace("fn main() {", "fn main() {\n    let _ = 1;"),
    )?;
    let kernels = time_check(&package, &MAIN.replace("3 * x", "5 * x"))?;
    let report = format!(
        "first {first:.1?}, unchanged {unchanged:.1?}, host changed {host:.1?}, kernels changed {kernels:.1?}"
    );
    fs::write(
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("times.txt"),
        &report,
    )?;
    assert!(unchanged < Duration::from_secs(5), "{report}");
    Ok(())
}
