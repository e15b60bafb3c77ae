//! The pinned NVRTC, which compiles CUDA C++ to PTX on any machine.
//!
//! `curium-nvrtc` is not used: `xtask` generates the bindings that it is built from, and must build
//! without them.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LAZY, Symbol};

use crate::package::{self, Package};

type Program = *mut c_void;
type Status = c_int;
type CreateProgram = unsafe extern "C" fn(
    *mut Program,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> Status;
type CompileProgram = unsafe extern "C" fn(Program, c_int, *const *const c_char) -> Status;
type DestroyProgram = unsafe extern "C" fn(*mut Program) -> Status;
type GetSize = unsafe extern "C" fn(Program, *mut usize) -> Status;
type GetText = unsafe extern "C" fn(Program, *mut c_char) -> Status;

/// A loaded NVRTC.
pub(crate) struct Nvrtc {
    create: Symbol<CreateProgram>,
    compile: Symbol<CompileProgram>,
    destroy: Symbol<DestroyProgram>,
    ptx: OutputGetter,
    log: OutputGetter,
    // Keeps the code of the functions above loaded, and the library of the built-in functions,
    // which NVRTC opens by name.
    _libraries: [Library; 2],
}

/// The pair of functions that return the size and the content of a text of a program.
struct OutputGetter {
    size: Symbol<GetSize>,
    text: Symbol<GetText>,
}

/// A program that is destroyed with its owner.
struct OwnedProgram<'a> {
    raw: Program,
    nvrtc: &'a Nvrtc,
}

impl Nvrtc {
    /// Loads NVRTC from its package.
    pub(crate) fn load(package: &Package) -> Result<Self> {
        let folder = package.unpacked()?;
        let builtins = open(&folder, "libnvrtc-builtins.so")?;
        let library = open(&folder, "libnvrtc.so")?;
        Ok(Self {
            // SAFETY: NVRTC's header declares the function with the type `CreateProgram`.
            create: unsafe { symbol(&library, c"nvrtcCreateProgram") }?,
            // SAFETY: NVRTC's header declares the function with the type `CompileProgram`.
            compile: unsafe { symbol(&library, c"nvrtcCompileProgram") }?,
            // SAFETY: NVRTC's header declares the function with the type `DestroyProgram`.
            destroy: unsafe { symbol(&library, c"nvrtcDestroyProgram") }?,
            ptx: OutputGetter {
                // SAFETY: NVRTC's header declares the function with the type `GetSize`.
                size: unsafe { symbol(&library, c"nvrtcGetPTXSize") }?,
                // SAFETY: NVRTC's header declares the function with the type `GetText`.
                text: unsafe { symbol(&library, c"nvrtcGetPTX") }?,
            },
            log: OutputGetter {
                // SAFETY: NVRTC's header declares the function with the type `GetSize`.
                size: unsafe { symbol(&library, c"nvrtcGetProgramLogSize") }?,
                // SAFETY: NVRTC's header declares the function with the type `GetText`.
                text: unsafe { symbol(&library, c"nvrtcGetProgramLog") }?,
            },
            _libraries: [library, builtins],
        })
    }

    /// Compiles `source`, called `name` in messages, to PTX.
    pub(crate) fn compile(&self, name: &str, source: &str, options: &[&str]) -> Result<String> {
        let program = self.program(name, source)?;
        let options = options
            .iter()
            .map(|option| CString::new(*option))
            .collect::<Result<Vec<_>, _>>()?;
        let pointers: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
        let count = c_int::try_from(pointers.len())?;
        // SAFETY: `program` is live, and `pointers` are `count` strings that live until the end of
        // this function.
        let status = unsafe { (self.compile)(program.raw, count, pointers.as_ptr()) };
        ensure!(
            status == 0,
            "{name} does not compile (NVRTC error {status}):\n{}",
            self.log
                .read(&program)
                .unwrap_or_else(|error| error.to_string())
                .trim()
        );
        self.ptx.read(&program)
    }

    fn program(&self, name: &str, source: &str) -> Result<OwnedProgram<'_>> {
        let c_name = CString::new(name)?;
        let source = CString::new(source).with_context(|| format!("{name} contains a NUL"))?;
        let mut raw = std::ptr::null_mut();
        let no_headers = std::ptr::null();
        // SAFETY: both strings are live, `raw` is writable, and no header is passed.
        let status = unsafe {
            (self.create)(
                &raw mut raw,
                source.as_ptr(),
                c_name.as_ptr(),
                0,
                no_headers,
                no_headers,
            )
        };
        ensure!(
            status == 0,
            "NVRTC cannot make a program of {name} (error {status})"
        );
        Ok(OwnedProgram { raw, nvrtc: self })
    }
}

impl OutputGetter {
    fn read(&self, program: &OwnedProgram<'_>) -> Result<String> {
        let mut size = 0;
        // SAFETY: the program is live, and `size` is writable.
        let status = unsafe { (self.size)(program.raw, &raw mut size) };
        ensure!(
            status == 0,
            "NVRTC does not report the size of its output (error {status})"
        );
        let mut bytes = vec![0_u8; size];
        // SAFETY: the program is live, and `bytes` has the size that NVRTC reported.
        let status = unsafe { (self.text)(program.raw, bytes.as_mut_ptr().cast()) };
        ensure!(
            status == 0,
            "NVRTC does not hand out its output (error {status})"
        );
        let text = CStr::from_bytes_until_nul(&bytes).context("NVRTC's output does not end")?;
        Ok(text.to_str()?.to_owned())
    }
}

impl Drop for OwnedProgram<'_> {
    fn drop(&mut self) {
        // SAFETY: the program is live and not used again. A failure cannot be handled.
        unsafe { (self.nvrtc.destroy)(&raw mut self.raw) };
    }
}

/// Opens the library in `folder` whose file name starts with `name`.
fn open(folder: &Path, name: &str) -> Result<Library> {
    let path = package::find(folder, |file| file.starts_with(name))
        .with_context(|| format!("{} contains no {name}", folder.display()))?;
    // SAFETY: the file belongs to the pinned package, verified by its checksum; its initializers
    // only set up its own state.
    let result = unsafe { Library::open(Some(&path), RTLD_LAZY | RTLD_GLOBAL) };
    result.with_context(|| path.display().to_string())
}

/// Looks up a function.
///
/// # Safety
///
/// `T` is the type of the function `name`.
unsafe fn symbol<T>(library: &Library, name: &CStr) -> Result<Symbol<T>> {
    // SAFETY: the function has the type `T`, as the caller guarantees.
    let symbol = unsafe { library.get(name.to_bytes_with_nul()) };
    symbol.with_context(|| format!("NVRTC lacks {}", name.to_string_lossy()))
}
