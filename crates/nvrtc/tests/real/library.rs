//! The real compiler and linker. Without them, tests report that they are skipped; if a path is
//! set, they fail.

use std::io::Write as _;

use curium_nvrtc::{
    CompileError, CompileOptions, CompiledProgram, Error, NvJitLink, Nvrtc, Program,
};

pub(crate) type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Returns the NVRTC of this machine, if it is installed.
pub(crate) fn nvrtc(name: &str) -> Option<Nvrtc> {
    installed(name, Nvrtc::load(), "CURIUM_NVRTC_PATH")
}

/// Runs `test` if NVRTC is installed.
pub(crate) fn with_nvrtc(name: &str, test: impl FnOnce(&Nvrtc) -> TestResult) -> TestResult {
    match nvrtc(name) {
        Some(nvrtc) => test(&nvrtc),
        None => Ok(()),
    }
}

/// Returns the library, if it is installed.
pub(crate) fn installed<T>(name: &str, loaded: Result<T, Error>, variable: &str) -> Option<T> {
    match loaded {
        Ok(library) => Some(library),
        Err(error) if std::env::var_os(variable).is_some() => panic!("{error}"),
        Err(_) => {
            // Written directly to the stream: output of the macros is not shown for tests that
            // pass.
            let written = writeln!(
                std::io::stderr(),
                "SKIPPED {name}: not on this machine; name it in {variable}"
            );
            written.expect("standard error is open");
            None
        }
    }
}

/// Returns the nvJitLink of this machine, if it is installed.
pub(crate) fn nvjitlink(name: &str) -> Option<NvJitLink> {
    installed(name, NvJitLink::load(), "CURIUM_NVJITLINK_PATH")
}

/// Creates a program named `k.cu` from `source`.
pub(crate) fn program(source: &str) -> Program {
    Program::new("k.cu", source)
}

pub(crate) fn compiled(
    nvrtc: &Nvrtc,
    program: &Program,
    options: &CompileOptions,
) -> CompiledProgram {
    nvrtc
        .compile(program, options)
        .unwrap_or_else(|error| panic!("the program is right: {error}"))
}

pub(crate) fn compile_error(
    nvrtc: &Nvrtc,
    program: &Program,
    options: &CompileOptions,
) -> Box<CompileError> {
    match nvrtc.compile(program, options) {
        Err(Error::Compile(error)) => error,
        other => panic!("this must not compile: {other:?}"),
    }
}
