//! The package of the README, as a newcomer creates it: run, tested, changed, broken, and packed.
//!
//! The tests are ignored because they compile Curium; `cargo xtask ci --step rust-kernels` runs
//! them. They need the toolchain's parts for kernels.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// A package in a folder of its own. All packages share a folder for builds.
struct Package {
    folder: tempfile::TempDir,
    name: String,
}

/// An error or a warning of the compiler.
#[derive(Debug)]
struct Message {
    level: String,
    text: String,
    /// The file and the line of the primary span.
    location: Option<(String, u64)>,
    rendered: String,
}

/// The folder of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the code blocks of the README in a language.
fn blocks(language: &str) -> TestResult<Vec<String>> {
    let text = fs::read_to_string(root().join("README.md"))?;
    let fence = format!("```{language}\n");
    let blocks = text
        .split(&fence)
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap_or_default().to_owned());
    Ok(blocks.collect())
}

impl Package {
    /// Creates the package from the code blocks of the README. Its name is that of its program, so
    /// each test has another.
    fn from_readme(name: &str) -> TestResult<Self> {
        let folder = tempfile::tempdir()?;
        fs::create_dir(folder.path().join("src"))?;
        let [main, script] = &blocks("rust")?[..] else {
            return Err("the README has two blocks of Rust".into());
        };
        let [dependencies] = &blocks("toml")?[..] else {
            return Err("the README has one block of TOML".into());
        };
        let crates = root().join("crates").canonicalize()?;
        let dependencies = dependencies.replace("../curium/crates", &crates.to_string_lossy());
        let manifest = format!(
            "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n{dependencies}\n[workspace]\n"
        );
        let package = Self {
            folder,
            name: name.to_owned(),
        };
        package.write("Cargo.toml", &manifest)?;
        package.write("build.rs", script)?;
        package.write("src/main.rs", main)?;
        fs::copy(root().join("Cargo.lock"), package.path("Cargo.lock"))?;
        Ok(package)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> TestResult {
        Ok(fs::write(self.path(name), text)?)
    }

    /// Replaces a text of the program, which must occur in it.
    fn replace(&self, from: &str, to: &str) -> TestResult {
        let path = self.path("src/main.rs");
        let text = fs::read_to_string(&path)?;
        if !text.contains(from) {
            return Err(format!("the README has no `{from}`").into());
        }
        Ok(fs::write(path, text.replacen(from, to, 1))?)
    }

    /// Returns the number of the line with a text.
    fn line(&self, text: &str) -> TestResult<u64> {
        let main = fs::read_to_string(self.path("src/main.rs"))?;
        let line = main.lines().position(|line| line.contains(text));
        Ok(line.ok_or("no such line")? as u64 + 1)
    }

    fn cargo(&self, arguments: &[&str], variables: &[(&str, &str)]) -> TestResult<Output> {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("new-package");
        Ok(Command::new(env!("CARGO"))
            .args(arguments)
            .arg("--offline")
            .current_dir(self.folder.path())
            .env("CARGO_TARGET_DIR", target)
            .env("CURIUM_DRIVER_PATH", self.path("no-driver"))
            .env_remove("CURIUM_KERNELS")
            .envs(variables.iter().copied())
            .output()?)
    }

    /// Runs cargo, and returns its output.
    fn succeed(&self, arguments: &[&str], variables: &[(&str, &str)]) -> TestResult<String> {
        let output = self.cargo(arguments, variables)?;
        if !output.status.success() {
            return Err(String::from_utf8(output.stderr)?.into());
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Returns the messages about the package, as an editor receives them.
    fn check(&self, variables: &[(&str, &str)]) -> TestResult<Vec<Message>> {
        let output = self.cargo(&["check", "--message-format=json"], variables)?;
        let mut messages = Vec::new();
        for line in String::from_utf8(output.stdout)?.lines() {
            let line: Value = serde_json::from_str(line)?;
            if line["reason"] != "compiler-message" || line["target"]["name"] != *self.name {
                continue;
            }
            let message = &line["message"];
            let spans = message["spans"].as_array();
            let primary = spans
                .into_iter()
                .flatten()
                .find(|span| span["is_primary"] == true);
            let location = primary.map(|span| {
                let file = span["file_name"].as_str().unwrap_or_default().to_owned();
                (file, span["line_start"].as_u64().unwrap_or_default())
            });
            messages.push(Message {
                level: message["level"].as_str().unwrap_or_default().to_owned(),
                text: message["message"].as_str().unwrap_or_default().to_owned(),
                location,
                rendered: message["rendered"].as_str().unwrap_or_default().to_owned(),
            });
        }
        // A summary has no place.
        messages.retain(|message| message.location.is_some());
        Ok(messages)
    }

    /// Runs rust-analyzer over the package; `None` if it is not installed.
    fn analyze(&self) -> TestResult<Option<Output>> {
        // rustup's proxy is there without the component, too.
        let version = self.rust_analyzer().arg("--version").output();
        if !version.is_ok_and(|version| version.status.success()) {
            return Ok(None);
        }
        self.cargo(&["check"], &[])?;
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("new-package");
        let output = self
            .rust_analyzer()
            .args(["diagnostics", "."])
            .env("CARGO_TARGET_DIR", target)
            .env("CARGO_NET_OFFLINE", "true")
            .output()?;
        Ok(Some(output))
    }

    fn rust_analyzer(&self) -> Command {
        let mut command = Command::new("rust-analyzer");
        command.current_dir(self.folder.path());
        command
    }

    /// Builds the package, and adds the time to a report.
    fn time_build(&self, name: &str, report: &mut String) -> TestResult<Duration> {
        let start = Instant::now();
        self.succeed(&["build"], &[])?;
        let time = start.elapsed();
        *report += &format!("{name}: {time:.1?}\n");
        Ok(time)
    }

    /// Asserts that there is one error, with this text, at the line of the program with `marker`.
    fn expect_error(&self, marker: &str, text: &str) -> TestResult {
        let mut messages = self.check(&[])?;
        // A variable may be unused because of the error.
        messages.retain(|message| message.level == "error");
        let [message] = &messages[..] else {
            return Err(format!("{} messages: {messages:#?}", messages.len()).into());
        };
        let location = Some(("src/main.rs".to_owned(), self.line(marker)?));
        assert!(message.text.contains(text), "{message:#?}");
        assert_eq!(message.location, location, "{message:#?}");
        Ok(())
    }
}

const OUTPUT: &str = "Curium Simulator (H100 model): [12.0, 24.0, 36.0]\n";

/// The program runs and its test passes. Without the toolchain's parts, both do so once the
/// kernels' PTX is committed.
#[test]
#[ignore = "compiles Curium; needs the toolchain's parts for kernels"]
fn program_of_the_readme_runs() -> TestResult {
    let package = Package::from_readme("app-runs")?;
    assert_eq!(package.succeed(&["run"], &[])?, OUTPUT);
    let tested = package.succeed(&["test"], &[])?;
    assert!(
        tested.contains("saxpy_multiplies_and_adds ... ok"),
        "{tested}"
    );

    let missing = ("CURIUM_KERNELS_TOOLCHAIN", "no-such-toolchain");
    let messages = package.check(&[missing])?;
    assert_eq!(messages.len(), 1, "{messages:#?}");
    assert!(
        messages[0].text.contains("needs prebuilt PTX"),
        "{messages:#?}"
    );
    package.succeed(&["build"], &[("CURIUM_KERNELS", "update")])?;
    assert!(package.path("src/kernels.sm_80.ptx").exists());
    assert_eq!(package.succeed(&["run"], &[missing])?, OUTPUT);
    let tested = package.succeed(&["test"], &[missing])?;
    assert!(
        tested.contains("saxpy_multiplies_and_adds ... ok"),
        "{tested}"
    );
    Ok(())
}

/// `cargo check` reports a wrong kernel or launch once, at its line, and knows the launchers
/// without having seen them.
#[test]
#[ignore = "compiles Curium; needs the toolchain's parts for kernels"]
fn errors_appear_once() -> TestResult {
    let package = Package::from_readme("app-wrong")?;
    assert!(package.check(&[])?.is_empty(), "the README has no warnings");
    for (from, to, marker, text) in [
        // In a kernel.
        (
            "*y += a * x[t.index()]",
            "*y += \"text\"",
            "\"text\"",
            "cannot add-assign `&str` to `f32`",
        ),
        (
            "x[t.index()]",
            "x[t.indexx()]",
            "indexx",
            "no method named `indexx`",
        ),
        (
            "mut y: PerThread<f32>",
            "y: &mut [f32]",
            "y: &mut [f32]",
            "`PerThread<T>`",
        ),
        // In a launch.
        (
            ", 2.0, &x, &mut y)",
            ", 2.0, &x, &y)",
            "&x, &y)",
            "cannot be passed for the kernel parameter",
        ),
        (
            ", 2.0, &x, &mut y)",
            ", 2, &x, &mut y)",
            "2, &x",
            "cannot be passed for the kernel parameter",
        ),
        (
            ", 2.0, &x, &mut y)",
            ", 2.0, &y, &mut y)",
            "&y, &mut y",
            "cannot borrow `y` as mutable",
        ),
        (
            ", 2.0, &x, &mut y)",
            ", 2.0, &x)",
            "2.0, &x)",
            "takes 5 arguments but 4",
        ),
        (
            "kernels.saxpy.launch",
            "kernels.saxpi.launch",
            "saxpi",
            "no field `saxpi`",
        ),
    ] {
        let package = Package::from_readme("app-wrong")?;
        package.replace(from, to)?;
        package
            .expect_error(marker, text)
            .map_err(|error| format!("{to}: {error}"))?;
    }
    Ok(())
}

/// What only the compilation for the GPU finds is one error, which names the line of the kernel.
#[test]
#[ignore = "compiles Curium; needs the toolchain's parts for kernels"]
fn device_errors_appear_once() -> TestResult {
    let atomic = "core::sync::atomic::AtomicU32::new(1).swap(2, core::sync::atomic::Ordering::SeqCst); *y += a";
    for (from, to, text) in [
        ("*y += a", atomic, "uses an atomic of `core`"),
        (
            "*y += a",
            "#[cfg(target_arch = \"nvptx64\")] let a = \"text\"; *y += a",
            "cannot multiply `&str` by `f32`",
        ),
    ] {
        let package = Package::from_readme("app-device")?;
        package.replace(from, to)?;
        let messages = package.check(&[])?;
        assert_eq!(messages.len(), 1, "{messages:#?}");
        assert!(messages[0].text.contains(text), "{messages:#?}");
        let location = format!("src/main.rs:{}", package.line("*y += a")?);
        assert!(
            messages[0].text.contains(&location),
            "{location}: {messages:#?}"
        );
        // Nothing refers to the missing code.
        assert!(
            !messages[0].rendered.contains("cannot find"),
            "{messages:#?}"
        );
    }
    Ok(())
}

/// rust-analyzer, if it is installed, resolves everything in the program: kernels, launchers and
/// the struct of the build script.
#[test]
#[ignore = "compiles Curium; needs the toolchain's parts for kernels"]
fn editors_understand_kernels() -> TestResult {
    let package = Package::from_readme("app-editor")?;
    let Some(output) = package.analyze()? else {
        return Ok(());
    };
    let text = String::from_utf8(output.stdout)?;
    assert!(text.contains("diagnostic scan complete"), "{text}");
    let errors: BTreeSet<&str> = text
        .lines()
        .filter(|line| line.contains("severity: Error"))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");

    // It would report what it cannot resolve.
    package.replace("kernels.saxpy.launch", "kernels.saxpi.launch")?;
    package.replace("x[t.index()]", "x[t.indexx()]")?;
    let output = package.analyze()?.ok_or("no rust-analyzer")?;
    let text = String::from_utf8(output.stdout)?;
    for wrong in ["saxpi", "indexx"] {
        assert!(text.contains(wrong), "{wrong}: {text}");
    }
    Ok(())
}

/// The package alone has what a build without the toolchain's parts needs: the prebuilt PTX.
#[test]
#[ignore = "compiles Curium; needs the toolchain's parts for kernels"]
fn packed_package_is_complete() -> TestResult {
    let package = Package::from_readme("app-packed")?;
    package.succeed(&["build"], &[("CURIUM_KERNELS", "update")])?;
    let list = package.succeed(&["package", "--list", "--allow-dirty"], &[])?;
    let packed = Package::from_readme("app-unpacked")?;
    for file in list.lines() {
        // Cargo writes these for the package, from files of other names.
        if !["Cargo.toml.orig", "Cargo.lock", ".cargo_vcs_info.json"].contains(&file) {
            fs::copy(package.path(file), packed.path(file))?;
        }
    }
    packed.write("Cargo.toml.orig", "")?;
    let missing = ("CURIUM_KERNELS_TOOLCHAIN", "no-such-toolchain");
    assert_eq!(packed.succeed(&["run"], &[missing])?, OUTPUT);
    // It is also used where the kernels could be compiled.
    let ptx = fs::read_to_string(packed.path("src/kernels.sm_80.ptx"))?;
    packed.write("src/kernels.sm_80.ptx", &ptx.replace("saxpy(", "other("))?;
    let error = packed.cargo(&["run"], &[])?;
    assert!(
        String::from_utf8(error.stderr)?.contains("saxpy"),
        "the kernel has another name"
    );
    Ok(())
}

/// Writes the times of builds to `times-new-package.txt`. A build that changes nothing takes less
/// than a second on an idle machine.
#[test]
#[ignore = "compiles Curium; needs the toolchain's parts for kernels"]
fn unchanged_build_is_fast() -> TestResult {
    let package = Package::from_readme("app-timed")?;
    let mut report = String::new();
    package.time_build(
        "first, with dependencies in the folder of builds",
        &mut report,
    )?;
    let unchanged = package.time_build("unchanged", &mut report)?;
    package.replace("fn main() ->", "fn unused() {}\n\nfn main() ->")?;
    package.time_build("host changed", &mut report)?;
    package.replace("a * x", "2.0 * a * x")?;
    package.time_build("kernel changed", &mut report)?;
    fs::write(
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("times-new-package.txt"),
        &report,
    )?;
    assert!(unchanged < Duration::from_secs(5), "{report}");
    Ok(())
}
