//! Linking with a real nvJitLink.

use crate::library::TestResult;
use crate::library::{compiled, nvjitlink, program, with_nvrtc};
use curium_nvrtc::{
    Architecture, CompileOptions, CompiledProgram, Error, LinkInput, LinkOptions, LinkedProgram,
    NvJitLink, Program,
};

const SQUARE: &str = "__device__ float square(float x) { return x * x; }";
const KERNEL: &str = "__device__ float square(float x);\n\
    extern \"C\" __global__ void squares(float* x) { x[threadIdx.x] = square(x[threadIdx.x]); }";

fn sm_80() -> Architecture {
    Architecture::new(8, 0).real()
}

/// Runs a test if both are installed and nvJitLink is not older than NVRTC, whose LTO IR it would
/// otherwise reject.
macro_rules! with_both {
    ($name:literal, |$nvrtc:ident, $library:ident| $body:block) => {
        with_nvrtc($name, |$nvrtc| {
            let Some($library) = nvjitlink($name) else {
                return Ok(());
            };
            if $nvrtc.version() > $library.version()
                || $nvrtc.version().major() != $library.version().major()
            {
                return Ok(());
            }
            $body
        })
    };
}

fn linked(
    library: &NvJitLink,
    programs: &[CompiledProgram],
    options: &LinkOptions,
) -> TestResult<LinkedProgram> {
    let mut linker = library.linker(options)?;
    for program in programs {
        linker.add_program(program)?;
    }
    Ok(linker.complete()?)
}

#[test]
fn lto_ir_becomes_one_cubin() -> TestResult {
    with_both!("lto_ir_becomes_one_cubin", |nvrtc, library| {
        let compile_options = CompileOptions::new()
            .with_architecture(Architecture::new(8, 0))
            .with_link_time_optimization();
        let programs = [("square.cu", SQUARE), ("kernel.cu", KERNEL)]
            .map(|(name, source)| compiled(nvrtc, &Program::new(name, source), &compile_options));
        let options = LinkOptions::new(sm_80()).with_link_time_optimization();
        let cubin = linked(&library, &programs, &options)?;
        assert!(cubin.cubin()?.starts_with(b"\x7fELF"));
        cubin.image()?;
        let options = LinkOptions::new(Architecture::new(8, 0))
            .with_link_time_optimization()
            .with_ptx();
        let ptx = linked(&library, &programs, &options)?;
        let text = ptx.ptx()?;
        assert!(
            text.contains(".entry squares") && text.contains("mul.f32") && !text.contains("call"),
            "{text}"
        );
        assert!(matches!(ptx.cubin(), Err(Error::NoOutput { .. })));
        Ok(())
    })
}

#[test]
fn relocatable_ptx_is_linked() -> TestResult {
    with_both!("relocatable_ptx_is_linked", |nvrtc, library| {
        let options = CompileOptions::new()
            .with_architecture(Architecture::new(8, 0))
            .with_relocatable_code(true);
        let mut linker = library.linker(&LinkOptions::new(sm_80()))?;
        linker.add_program(&compiled(nvrtc, &Program::new("a.cu", SQUARE), &options))?;
        linker.add_program(&compiled(nvrtc, &Program::new("b.cu", KERNEL), &options))?;
        assert!(!linker.complete()?.cubin()?.is_empty());
        Ok(())
    })
}

#[test]
fn undefined_name_has_a_log() -> TestResult {
    with_both!("undefined_name_has_a_log", |nvrtc, library| {
        let options = CompileOptions::new()
            .with_architecture(Architecture::new(8, 0))
            .with_relocatable_code(true);
        let mut linker = library.linker(&LinkOptions::new(sm_80()))?;
        linker.add_program(&compiled(nvrtc, &program(KERNEL), &options))?;
        let error = linker.complete().expect_err("`square` is nowhere");
        let Error::Link(link) = &error else {
            panic!("{error:?}")
        };
        assert_eq!(link.call.function, "nvJitLinkComplete");
        // nvJitLink of CUDA 12 writes the name to standard error, and logs only that it failed.
        assert!(
            !link.log.is_empty() && (library.version().major() < 13 || link.log.contains("square")),
            "{error}"
        );
        Ok(())
    })
}

#[test]
fn wrong_ptx_names_the_input() -> TestResult {
    let Some(library) = nvjitlink("wrong_ptx_names_the_input") else {
        return Ok(());
    };
    let mut linker = library.linker(&LinkOptions::new(sm_80()))?;
    let error = match linker.add_ptx(
        "bad.ptx",
        ".version 7.0\n.target sm_80\n.address_size 64\n.entry k() { nonsense; }",
    ) {
        Err(error) => error,
        Ok(()) => linker.complete().expect_err("the PTX is wrong"),
    };
    let text = error.to_string();
    assert!(
        text.contains("nvJitLink") && text.contains("NVJITLINK_ERROR") && text.contains("line 4"),
        "{text}"
    );
    Ok(())
}

/// An unknown option and a missing file are errors.
#[test]
fn unknown_option_is_an_error() -> TestResult {
    let Some(library) = nvjitlink("unknown_option_is_an_error") else {
        return Ok(());
    };
    let error = library
        .linker(&LinkOptions::new(sm_80()).with_option("-nonsense"))
        .expect_err("it is not known");
    assert!(error.to_string().contains("-nonsense"), "{error}");
    let mut linker = library.linker(&LinkOptions::new(sm_80()))?;
    // SAFETY: the file does not exist.
    let error = unsafe { linker.add_file(LinkInput::Library, "/nowhere/lib.a") }
        .expect_err("there is no such file");
    assert!(error.to_string().contains("/nowhere/lib.a"), "{error}");
    Ok(())
}
