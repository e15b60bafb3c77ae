//! A compilation in progress.

use std::any::Any;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;

use curium_driver::extend::contain_callback;
use curium_sys::library_call as call;
use parking_lot::Mutex;

use crate::text::{Texts, bytes, c_text, read_text};
use crate::{
    CallError, CompileError, CompileOptions, CompiledProgram, Error, PrecompiledHeader, Program,
    Result, diagnostic,
};
use curium_sys::nvrtc::{Api, nvrtcProgram, nvrtcResult};

/// NVRTC's object for one program.
pub(crate) struct Unit<'a> {
    raw: nvrtcProgram,
    api: &'a Api,
    program: &'a Program,
}

/// Returns `true` to cancel. NVRTC calls it on its own threads.
pub(crate) struct Cancellation<'a> {
    is_cancelled: &'a (dyn Fn() -> bool + Sync),
    answer: Mutex<Answer>,
}

/// The last result of the callback.
#[derive(Default)]
struct Answer {
    /// `true` once the compilation is cancelled: NVRTC requires the same result from then on.
    is_yes: bool,
    panic: Option<Box<dyn Any + Send>>,
}

impl<'a> Unit<'a> {
    /// Passes a program to NVRTC, which copies its texts.
    pub(crate) fn new(api: &'a Api, program: &'a Program) -> Result<Self> {
        let source = c_text(&program.source, || {
            format!("the source of `{}`", program.name)
        })?;
        let name = c_text(&program.name, || "the name of the source".to_owned())?;
        let names = Texts::new(
            program.headers.iter().map(|(name, _)| name),
            "the name of a header",
        )?;
        let texts = Texts::new(program.headers.iter().map(|(_, text)| text), "a header")?;
        let source = source.as_ptr();
        let name = name.as_ptr();
        let count = names.count::<c_int>();
        let names = names.as_ptr();
        let texts = texts.as_ptr();
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` is valid for writes, and both arrays have `count` live, NUL-terminated
        // strings.
        unsafe {
            call!(
                api,
                nvrtcCreateProgram(&raw mut raw, source, name, count, texts, names)
            )
        }?;
        let unit = Self { raw, api, program };
        program
            .expressions
            .iter()
            .try_for_each(|expression| unit.add_expression(expression))?;
        Ok(unit)
    }

    /// Compiles the program and reads all outputs of NVRTC.
    pub(crate) fn compile(&self, options: &CompileOptions) -> Result<CompiledProgram> {
        let arguments = Texts::new(options.to_arguments().iter(), "an option")?;
        let count = arguments.count::<c_int>();
        let pointers = arguments.as_ptr();
        // SAFETY: the program is live, and `pointers` has `count` live, NUL-terminated strings.
        let result = unsafe { call!(self.api, nvrtcCompileProgram(self.raw, count, pointers)) };
        let log = self.log()?;
        let diagnostics = diagnostic::parse(&log, self.program);
        match result {
            Ok(()) => self.outputs(log, diagnostics),
            Err(Error::Call(call)) => Err(self.failure(call, log, diagnostics)),
            Err(error) => Err(error),
        }
    }

    /// Compiles the program like [`Unit::compile`] unless it is cancelled.
    pub(crate) fn compile_unless(
        &self,
        options: &CompileOptions,
        cancellation: &Cancellation<'_>,
    ) -> Result<CompiledProgram> {
        let payload = ptr::from_ref(cancellation).cast_mut().cast::<c_void>();
        // SAFETY: the program is live; `is_cancelled` accepts this payload, which outlives the
        // compilation below, the only one of this program.
        unsafe {
            call!(
                self.api,
                nvrtcSetFlowCallback(self.raw, Some(is_cancelled), payload)
            )
        }?;
        let result = self.compile(options);
        let panic = cancellation.answer.lock().panic.take();
        match panic {
            Some(panic) => resume_unwind(panic),
            None => result,
        }
    }

    fn add_expression(&self, expression: &str) -> Result<()> {
        let text = c_text(expression, || format!("the name expression {expression:?}"))?;
        // SAFETY: the program is live and not compiled yet, and the string is NUL-terminated. NVRTC
        // copies it.
        unsafe { call!(self.api, nvrtcAddNameExpression(self.raw, text.as_ptr())) }
    }

    fn failure(&self, call: CallError, log: String, diagnostics: Vec<crate::Diagnostic>) -> Error {
        let name = self.program.name.as_str().into();
        if call.code == nvrtcResult::NVRTC_ERROR_CANCELLED.0 {
            return Error::Cancelled { name };
        }
        Error::Compile(Box::new(CompileError {
            name,
            call,
            log: log.into(),
            diagnostics,
        }))
    }

    fn outputs(&self, log: String, diagnostics: Vec<crate::Diagnostic>) -> Result<CompiledProgram> {
        let mut compiled = CompiledProgram::new(&self.program.name, log, diagnostics);
        compiled.ptx = self.ptx()?;
        compiled.cubin = self.cubin()?;
        compiled.lto_ir = self.lto_ir()?;
        compiled.optix_ir = self.optix_ir()?;
        compiled.tile_ir = self.tile_ir()?;
        for expression in &self.program.expressions {
            compiled
                .lowered_names
                .push((expression.clone(), self.lowered_name(expression)?));
        }
        compiled.precompiled_header = self.precompiled_header()?;
        Ok(compiled)
    }

    /// Returns the lowered (mangled) name of a name expression.
    fn lowered_name(&self, expression: &str) -> Result<String> {
        let text = c_text(expression, || format!("the name expression {expression:?}"))?;
        let mut lowered = ptr::null();
        // SAFETY: the program is live and compiled, the string is NUL-terminated, and `lowered` is
        // valid for writes.
        unsafe {
            call!(
                self.api,
                nvrtcGetLoweredName(self.raw, text.as_ptr(), &raw mut lowered)
            )
        }?;
        // SAFETY: NVRTC returns a NUL-terminated string that lives as long as the program.
        let lowered = unsafe { CStr::from_ptr(lowered) };
        Ok(lowered.to_string_lossy().into_owned())
    }

    fn precompiled_header(&self) -> Result<PrecompiledHeader> {
        let Some(function) = self.api.nvrtcGetPCHCreateStatus else {
            return Ok(PrecompiledHeader::NotTried);
        };
        // SAFETY: the program is live.
        let status = unsafe { function(self.raw) };
        match status {
            nvrtcResult::NVRTC_SUCCESS => Ok(PrecompiledHeader::Created),
            nvrtcResult::NVRTC_ERROR_NO_PCH_CREATE_ATTEMPTED => Ok(PrecompiledHeader::NotTried),
            nvrtcResult::NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED => {
                let mut needed = 0;
                // SAFETY: the program is live, and `needed` is valid for writes.
                unsafe {
                    call!(
                        self.api,
                        nvrtcGetPCHHeapSizeRequired(self.raw, &raw mut needed)
                    )
                }?;
                Ok(PrecompiledHeader::HeapExhausted { needed })
            }
            _ => Ok(PrecompiledHeader::Failed),
        }
    }

    fn log(&self) -> Result<String> {
        let mut size = 0;
        // SAFETY: the program is live, and `size` is valid for writes.
        unsafe { call!(self.api, nvrtcGetProgramLogSize(self.raw, &raw mut size)) }?;
        read_text(size, |buffer| {
            // SAFETY: the program is live, and `buffer` has the size that NVRTC reported.
            unsafe { call!(self.api, nvrtcGetProgramLog(self.raw, buffer)) }
        })
    }

    /// Returns the PTX, or `None` if it is empty.
    fn ptx(&self) -> Result<Option<String>> {
        let mut size = 0;
        // SAFETY: the program is live, and `size` is valid for writes.
        unsafe { call!(self.api, nvrtcGetPTXSize(self.raw, &raw mut size)) }?;
        if size <= 1 {
            return Ok(None);
        }
        let ptx = read_text(size, |buffer| {
            // SAFETY: the program is live, and `buffer` has the size that NVRTC reported.
            unsafe { call!(self.api, nvrtcGetPTX(self.raw, buffer)) }
        })?;
        Ok(Some(ptx))
    }

    fn destroy(&mut self) {
        if let Some(function) = self.api.nvrtcDestroyProgram {
            // SAFETY: the program is live, owned by this value, and not used afterwards. The only
            // failure is an invalid handle, which this is not.
            unsafe { function(&raw mut self.raw) };
        }
    }
}

/// The functions that return the size and the bytes of one kind of output. `None` if NVRTC is too
/// old.
macro_rules! output {
    ($name:ident, $size:ident, $get:ident $(, $old_size:ident, $old_get:ident)?) => {
        impl Unit<'_> {
            fn $name(&self) -> Result<Option<Vec<u8>>> {
                let functions = (self.api.$size, self.api.$get);
                $(let functions = (functions.0.or(self.api.$old_size), functions.1.or(self.api.$old_get));)?
                match functions {
                    (Some(size), Some(get)) => self.read(stringify!($get), size, get),
                    _ => Ok(None),
                }
            }
        }
    };
}

output!(cubin, nvrtcGetCUBINSize, nvrtcGetCUBIN);
// Before CUDA 12.0, the functions for LTO IR had other names.
output!(
    lto_ir,
    nvrtcGetLTOIRSize,
    nvrtcGetLTOIR,
    nvrtcGetNVVMSize,
    nvrtcGetNVVM
);
output!(optix_ir, nvrtcGetOptiXIRSize, nvrtcGetOptiXIR);
output!(tile_ir, nvrtcGetTileIRSize, nvrtcGetTileIR);

impl Unit<'_> {
    fn read(
        &self,
        function: &'static str,
        size_of: unsafe extern "C" fn(nvrtcProgram, *mut usize) -> nvrtcResult,
        get: unsafe extern "C" fn(nvrtcProgram, *mut c_char) -> nvrtcResult,
    ) -> Result<Option<Vec<u8>>> {
        let mut size = 0;
        // SAFETY: the program is live, and `size` is valid for writes.
        let status = unsafe { size_of(self.raw, &raw mut size) };
        self.api.check(function, status)?;
        if size == 0 {
            return Ok(None);
        }
        let output = bytes(size, |buffer| {
            // SAFETY: the program is live, and `buffer` has the size that NVRTC reported.
            let status = unsafe { get(self.raw, buffer) };
            Ok(self.api.check(function, status)?)
        })?;
        Ok(Some(output))
    }
}

impl Drop for Unit<'_> {
    fn drop(&mut self) {
        self.destroy();
    }
}

impl<'a> Cancellation<'a> {
    pub(crate) fn new(is_cancelled: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self {
            is_cancelled,
            answer: Mutex::default(),
        }
    }

    /// Returns `true` to cancel. A panic of the callback also cancels, and is resumed later.
    fn query(&self) -> bool {
        let mut answer = self.answer.lock();
        if !answer.is_yes {
            let result = catch_unwind(AssertUnwindSafe(self.is_cancelled));
            answer.is_yes = *result.as_ref().unwrap_or(&true);
            answer.panic = result.err();
        }
        answer.is_yes
    }
}

/// The callback of NVRTC; 1 cancels the compilation.
///
/// # Safety
///
/// `payload` is the address of a live [`Cancellation`].
unsafe extern "C" fn is_cancelled(payload: *mut c_void, _reserved: *mut c_void) -> c_int {
    contain_callback("the cancellation callback of a compilation", 1, || {
        // SAFETY: the caller guarantees the payload.
        let cancellation = unsafe { &*payload.cast::<Cancellation<'_>>() };
        c_int::from(cancellation.query())
    })
}
