//! The real compiler and linker. Where there is none, tests say that they are skipped; if its path is set, they fail.

use std::io::Write as _;

use curium_nvrtc::{CompileError, CompileOptions, CompiledProgram, Error, NvJitLink, Nvrtc, Program};

/// Runs `test` if there is an NVRTC.
pub(crate) fn with_nvrtc(name: &str, test: impl FnOnce(&Nvrtc)) {
    if let Some(nvrtc) = found(name, Nvrtc::load(), "CURIUM_NVRTC_PATH") {
        test(&nvrtc);
    }
}

/// The library, if there is one.
pub(crate) fn found<T>(name: &str, loaded: Result<T, Error>, variable: &str) -> Option<T> {
    match loaded {
        Ok(library) => Some(library),
        Err(error) if std::env::var_os(variable).is_some() => panic!("{error}"),
        Err(_) => {
            // Straight to the stream: what goes through the macros is not shown for tests that pass.
            let said = writeln!(std::io::stderr(), "SKIPPED {name}: not on this machine; name it in {variable}");
            said.expect("standard error is open");
            None
        }
    }
}

/// The nvJitLink of this machine, if there is one.
pub(crate) fn nvjitlink(name: &str) -> Option<NvJitLink> {
    found(name, NvJitLink::load(), "CURIUM_NVJITLINK_PATH")
}

/// `source` as a program called `k.cu`.
pub(crate) fn program(source: &str) -> Program {
    Program::new("k.cu", source)
}

pub(crate) fn compiled(nvrtc: &Nvrtc, program: &Program, options: &CompileOptions) -> CompiledProgram {
    nvrtc.compile(program, options).unwrap_or_else(|error| panic!("the program is right: {error}"))
}

pub(crate) fn compile_error(nvrtc: &Nvrtc, program: &Program, options: &CompileOptions) -> Box<CompileError> {
    match nvrtc.compile(program, options) {
        Err(Error::Compile(error)) => error,
        other => panic!("this must not compile: {other:?}"),
    }
}
