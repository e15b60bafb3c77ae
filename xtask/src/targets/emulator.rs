//! The emulators of other platforms.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::expect_success;
use crate::cargo::target_folder;

/// An emulator for the programs of one target.
pub(crate) struct Emulator {
    pub(crate) target: &'static str,
    /// Settings of cargo: the linker, if the compiler does not choose the right one, and
    /// optimization where the emulator is slow.
    pub(crate) settings: &'static [&'static str],
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    /// Emulation of Linux on ARM.
    Qemu,
    /// Windows in terms of this system.
    Wine,
}

/// The packages of Debian that are installed if a program is missing.
const PACKAGES: [(&str, &[&str]); 3] = [
    (
        "aarch64-linux-gnu-gcc",
        &["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"],
    ),
    ("qemu-aarch64", &["qemu-user"]),
    (
        "x86_64-w64-mingw32-gcc",
        &["gcc-mingw-w64-x86-64", "wine64"],
    ),
];

/// Older versions hold the simulator's reserved addresses in memory, which takes 24 GB.
const OLDEST_QEMU: u32 = 10;

/// Where the libraries of ARM are installed.
const ARM_ROOT: &str = "/usr/aarch64-linux-gnu";

/// The library of Windows that Wine 8 lacks, in terms of one that it has.
const RANDOM: &str = "
__declspec(dllimport) unsigned char __stdcall SystemFunction036(void *bytes, unsigned long size);
__declspec(dllexport) int __stdcall ProcessPrng(unsigned char *bytes, unsigned long long size) {
    while (size != 0) {
        unsigned long part = size < 65536 ? (unsigned long)size : 65536;
        if (!SystemFunction036(bytes, part)) return 0;
        bytes += part;
        size -= part;
    }
    return 1;
}
";

impl Emulator {
    pub(crate) const ALL: &[Self] = &[
        Self {
            target: "aarch64-unknown-linux-gnu",
            settings: &[
                "target.aarch64-unknown-linux-gnu.linker = 'aarch64-linux-gnu-gcc'",
                // QEMU is about 25 times slower than the processor, and the tests compute
                // references.
                "profile.dev.package.curium-tests.opt-level = 1",
            ],
            kind: Kind::Qemu,
        },
        Self {
            target: "x86_64-pc-windows-gnu",
            settings: &[],
            kind: Kind::Wine,
        },
    ];

    /// Installs what is missing: the standard library of the target, a linker and the emulator.
    pub(crate) fn prepare(&self) -> Result<()> {
        expect_success(
            Command::new("rustup")
                .args(["target", "add", self.target])
                .current_dir(crate::root()),
        )?;
        match self.kind {
            Kind::Qemu => {
                install(&PACKAGES[..2])?;
                if qemu_version()? < OLDEST_QEMU && is_bookworm() {
                    install_backport("qemu-user")?;
                }
                check_qemu()
            }
            Kind::Wine => {
                install(&PACKAGES[2..])?;
                wine().map(drop)
            }
        }
    }

    /// Returns a command that runs a program of the target.
    pub(crate) fn command(&self, program: &Path) -> Result<Command> {
        let runner = self.runner()?;
        let (emulator, arguments) = runner.split_first().context("an emulator has a name")?;
        let mut command = Command::new(emulator);
        command.args(arguments).arg(program);
        self.set_environment(&mut command, &runner, program.parent())?;
        Ok(command)
    }

    /// Makes cargo run programs of the target with this emulator.
    pub(crate) fn make_runner(&self, cargo: &mut Command) -> Result<()> {
        let runner = self.runner()?;
        let variable = self.target.to_uppercase().replace('-', "_");
        cargo.env(format!("CARGO_TARGET_{variable}_RUNNER"), runner.join(" "));
        self.set_environment(cargo, &runner, None)
    }

    fn runner(&self) -> Result<Vec<String>> {
        Ok(match self.kind {
            Kind::Qemu => ["qemu-aarch64", "-L", ARM_ROOT].map(str::to_owned).into(),
            Kind::Wine => vec![wine()?],
        })
    }

    fn set_environment(
        &self,
        command: &mut Command,
        runner: &[String],
        folder: Option<&Path>,
    ) -> Result<()> {
        match self.kind {
            Kind::Qemu => {
                // Tests start their own program, for which the system has no emulator.
                command.env("CURIUM_TEST_RUNNER", runner.join(" "));
            }
            Kind::Wine => {
                let prefix = target_folder()?.join("wine");
                let libraries = random_library(&prefix)?;
                if let Some(folder) = folder {
                    fs::copy(&libraries, folder.join("bcryptprimitives.dll"))?;
                }
                // Examples are built in folders of their own.
                let libraries = libraries.parent().context("a file is in a folder")?;
                command.env(
                    "WINEPATH",
                    format!("Z:{}", libraries.display().to_string().replace('/', "\\")),
                );
                command.env("WINEPREFIX", &prefix).env("WINEDEBUG", "-all");
            }
        }
        Ok(())
    }
}

/// Installs the packages of programs that are missing.
fn install(packages: &[(&str, &[&str])]) -> Result<()> {
    let missing = packages
        .iter()
        .filter(|(program, _)| find(program).is_none());
    let names: Vec<_> = missing
        .flat_map(|(_, packages)| packages.iter().copied())
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    ensure!(
        find("apt-get").is_some(),
        "missing: install {}",
        names.join(", ")
    );
    expect_success(
        apt_get()
            .args(["install", "--yes", "--no-install-recommends"])
            .args(names),
    )
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// Debian installs the program outside of `PATH`.
fn wine() -> Result<String> {
    let candidates = [
        find("wine64"),
        find("wine"),
        Some(PathBuf::from("/usr/lib/wine/wine64")),
    ];
    let found = candidates.into_iter().flatten().find(|file| file.is_file());
    Ok(found
        .context("Wine is not installed")?
        .display()
        .to_string())
}

fn check_qemu() -> Result<()> {
    let version = qemu_version()?;
    ensure!(
        version >= OLDEST_QEMU,
        "qemu-aarch64 is version {version}; install {OLDEST_QEMU} or newer"
    );
    Ok(())
}

fn qemu_version() -> Result<u32> {
    let output = Command::new("qemu-aarch64")
        .arg("--version")
        .output()
        .context("qemu-aarch64 cannot be run")?;
    let text = String::from_utf8_lossy(&output.stdout);
    first_number(&text).with_context(|| format!("the version of qemu-aarch64 is unknown: {text}"))
}

fn first_number(text: &str) -> Option<u32> {
    text.split_once("version ")?
        .1
        .split('.')
        .next()?
        .parse()
        .ok()
}

/// Returns `true` on Debian 12.
fn is_bookworm() -> bool {
    fs::read_to_string("/etc/os-release")
        .is_ok_and(|text| text.contains("VERSION_CODENAME=bookworm"))
}

/// Installs a newer version of a package of Debian 12, and leaves the system's list of sources as
/// it is.
fn install_backport(package: &str) -> Result<()> {
    let folder = target_folder()?.join("backports");
    fs::create_dir_all(folder.join("lists/partial"))?;
    let mirror = mirror_of_bookworm()?;
    let sources =
        ["bookworm", "bookworm-backports"].map(|release| format!("deb {mirror} {release} main\n"));
    fs::write(folder.join("sources.list"), sources.concat())?;
    let folder = folder.display();
    let options = [
        format!("Dir::Etc::SourceList={folder}/sources.list"),
        "Dir::Etc::SourceParts=/dev/null".to_owned(),
        format!("Dir::State::Lists={folder}/lists"),
    ];
    let settings: Vec<_> = options.iter().flat_map(|option| ["-o", option]).collect();
    expect_success(apt_get().args(&settings).arg("update"))?;
    let install = [
        "install",
        "--yes",
        "--no-install-recommends",
        "--target-release",
        "bookworm-backports",
        package,
    ];
    expect_success(apt_get().args(&settings).args(install))
}

/// Returns the address from which the system installs the packages of Debian 12.
fn mirror_of_bookworm() -> Result<String> {
    let mut command = Command::new("apt-get");
    command.args([
        "indextargets",
        "--format",
        "$(RELEASE) $(REPO_URI)",
        "Created-By: Packages",
    ]);
    let output = command.output().context("apt-get cannot be run")?;
    let targets = String::from_utf8_lossy(&output.stdout);
    let mirror = targets
        .lines()
        .find_map(|line| line.strip_prefix("bookworm "));
    Ok(mirror
        .context("the system has no source of packages of Debian 12")?
        .to_owned())
}

fn apt_get() -> Command {
    let mut command = if find("sudo").is_some() {
        Command::new("sudo")
    } else {
        Command::new("env")
    };
    command.arg("apt-get");
    command
}

/// Returns `bcryptprimitives.dll`, built once.
fn random_library(prefix: &Path) -> Result<PathBuf> {
    let folder = prefix.with_extension("libraries");
    let library = folder.join("bcryptprimitives.dll");
    if !library.is_file() {
        fs::create_dir_all(&folder)?;
        let source = folder.join("random.c");
        fs::write(&source, RANDOM)?;
        let mut compiler = Command::new("x86_64-w64-mingw32-gcc");
        expect_success(
            compiler
                .args(["-shared", "-O2", "-o"])
                .arg(&library)
                .arg(&source)
                .arg("-ladvapi32"),
        )?;
    }
    Ok(library)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_of_qemu_is_its_first_number() {
        assert_eq!(
            first_number("qemu-aarch64 version 10.0.2 (Debian 1:10.0.2)"),
            Some(10)
        );
        assert_eq!(first_number("qemu-aarch64 version 7.2.17"), Some(7));
        assert_eq!(first_number("no version"), None);
    }
}
