//! Shares a context, streams and memory with code that uses the CUDA runtime API, on this machine's
//! driver.
//!
//! Each side copies and computes on the other's memory and stream, in the primary context of the
//! device, which the CUDA runtime uses too. The runtime library is loaded at run time:
//! `--runtime PATH` names it, and with `--allow-missing` its absence is not an error.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this program prints its results"
)]

use std::error::Error;
use std::ffi::{CStr, OsString, c_char, c_int, c_void};
use std::process::ExitCode;
use std::sync::Arc;

use curium_driver::AsRawStream as _;
use curium_driver::{Context, DevicePointer, Driver, Kernel, LaunchConfig, Library, Stream};
use curium_memory::DeviceBuffer;
use curium_tests::kernels;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;
/// `saxpy` on memory given by device pointers.
type Saxpy = Kernel<(f32, DevicePointer<f32>, DevicePointer<f32>, u32)>;
type Code = c_int;

/// The file names of the runtime library, the newest first.
const NAMES: [&str; 5] = [
    "libcudart.so.13",
    "libcudart.so.12",
    "libcudart.so.11.0",
    "libcudart.so",
    "/usr/local/cuda/lib64/libcudart.so",
];
const TO_DEVICE: c_int = 1;
const TO_HOST: c_int = 2;

/// The functions of the runtime API that this program uses.
struct Runtime {
    set_device: unsafe extern "C" fn(c_int) -> Code,
    malloc: unsafe extern "C" fn(*mut *mut c_void, usize) -> Code,
    free: unsafe extern "C" fn(*mut c_void) -> Code,
    copy: unsafe extern "C" fn(*mut c_void, *const c_void, usize, c_int, *mut c_void) -> Code,
    stream_create: unsafe extern "C" fn(*mut *mut c_void) -> Code,
    stream_destroy: unsafe extern "C" fn(*mut c_void) -> Code,
    error_string: unsafe extern "C" fn(Code) -> *const c_char,
    /// Keeps the library loaded.
    _library: libloading::Library,
}

/// A stream created and destroyed by the runtime.
struct RuntimeStream {
    raw: *mut c_void,
    runtime: Arc<Runtime>,
}

// SAFETY: the runtime's streams may be used and destroyed on any thread.
unsafe impl Send for RuntimeStream {}
// SAFETY: the runtime's streams may be used and destroyed on any thread.
unsafe impl Sync for RuntimeStream {}

/// Memory allocated by the runtime.
struct RuntimeMemory<'a> {
    address: *mut c_void,
    runtime: &'a Runtime,
}

fn main() -> ExitCode {
    match Options::parse(std::env::args_os().skip(1)).and_then(|options| options.run()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Default)]
struct Options {
    runtime: Option<OsString>,
    allow_missing: bool,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = OsString>) -> Outcome<Self> {
        let mut options = Self::default();
        while let Some(argument) = arguments.next() {
            match argument.to_str() {
                Some("--allow-missing") => options.allow_missing = true,
                Some("--runtime") => {
                    options.runtime = Some(arguments.next().ok_or("--runtime needs a path")?);
                }
                _ => return Err(format!("unknown argument {argument:?}").into()),
            }
        }
        Ok(options)
    }

    fn run(&self) -> Outcome {
        let runtime = match Runtime::load(self.runtime.as_ref()) {
            Err(error) if self.allow_missing => {
                println!("nothing was shared: {error}");
                return Ok(());
            }
            runtime => Arc::new(runtime?),
        };
        let driver = Driver::load()?;
        let context = driver.device(0)?.primary_context()?;
        // SAFETY: the ordinal is that of a device.
        runtime.check("cudaSetDevice", unsafe { (runtime.set_device)(0) })?;
        let saxpy: Saxpy = Library::from_ptx(&driver, kernels::SAXPY)?.kernel("saxpy")?;
        runtime_memory_on_our_stream(&runtime, &context, &saxpy)?;
        curium_memory_on_a_runtime_stream(&runtime, &context, &saxpy)
    }
}

/// The runtime allocates and copies on a Curium stream, and a Curium kernel computes on that
/// memory.
fn runtime_memory_on_our_stream(runtime: &Runtime, context: &Context, saxpy: &Saxpy) -> Outcome {
    let stream = context.stream()?;
    let x = [1.0_f32, 2.0, 3.0];
    let mut y = [10.0_f32, 20.0, 30.0];
    let device_x = runtime.allocate(size_of_val(&x))?;
    let device_y = runtime.allocate(size_of_val(&y))?;
    runtime.upload(&device_x, &x, &stream)?;
    runtime.upload(&device_y, &y, &stream)?;
    let current = Context::current_raw(context.driver())?;
    if current != context.as_raw() {
        return Err(format!(
            "the runtime works in the context {current:?}, and not in {context:?}"
        )
        .into());
    }
    let arguments = (2.0, device_x.pointer(), device_y.pointer(), 3);
    // SAFETY: `saxpy` reads and writes three values of each, which the runtime allocated and copied
    // on the same stream.
    unsafe { saxpy.launch(&stream, LaunchConfig::for_elements(3), arguments) }?;
    runtime.download(&mut y, device_y.pointer(), &stream)?;
    stream.synchronize()?;
    expect("the runtime's memory on our stream", &y)
}

/// A Curium kernel computes on a runtime stream, and the runtime copies the Curium buffer to the
/// host there.
fn curium_memory_on_a_runtime_stream(
    runtime: &Arc<Runtime>,
    context: &Context,
    saxpy: &Saxpy,
) -> Outcome {
    let theirs = RuntimeStream::new(runtime)?;
    let raw = theirs.raw.cast();
    // SAFETY: the runtime created the stream in the primary context, and destroys it when `theirs`
    // is dropped.
    let stream = unsafe { Stream::borrow_raw(context, raw, theirs) };
    let x = DeviceBuffer::from_slice(&stream, &[1.0_f32, 2.0, 3.0])?;
    let y = DeviceBuffer::from_slice(&stream, &[10.0_f32, 20.0, 30.0])?;
    let arguments = (2.0, x.as_pointer(), y.as_pointer(), 3);
    // SAFETY: `saxpy` reads and writes three values of each buffer, which are used only on this
    // stream.
    unsafe { saxpy.launch(&stream, LaunchConfig::for_elements(3), arguments) }?;
    let mut result = [0.0_f32; 3];
    runtime.download(&mut result, y.as_pointer(), &stream)?;
    stream.synchronize()?;
    expect("our memory on a stream of the runtime", &result)
}

fn expect(what: &str, result: &[f32]) -> Outcome {
    if result != [12.0, 24.0, 36.0] {
        return Err(format!("{what}: the result is {result:?}, and not [12, 24, 36]").into());
    }
    println!("{what}: {result:?}");
    Ok(())
}

impl Runtime {
    fn load(path: Option<&OsString>) -> Outcome<Self> {
        let names = path.map_or_else(
            || NAMES.map(OsString::from).to_vec(),
            |path| vec![path.clone()],
        );
        // SAFETY: loading the CUDA runtime runs its initializers, which any program that links it
        // runs too.
        let library = names
            .iter()
            .find_map(|name| unsafe { libloading::Library::new(name) }.ok());
        let library =
            library.ok_or_else(|| format!("no CUDA runtime was found; tried {names:?}"))?;
        /// Looks up a function by name, with the type of the field that stores it.
        macro_rules! function {
            ($name:literal) => {{
                // SAFETY: the runtime exports this function with the signature that the field has.
                *unsafe { library.get(concat!($name, "\0").as_bytes()) }?
            }};
        }
        Ok(Self {
            set_device: function!("cudaSetDevice"),
            malloc: function!("cudaMalloc"),
            free: function!("cudaFree"),
            copy: function!("cudaMemcpyAsync"),
            stream_create: function!("cudaStreamCreate"),
            stream_destroy: function!("cudaStreamDestroy"),
            error_string: function!("cudaGetErrorString"),
            _library: library,
        })
    }

    fn check(&self, function: &str, code: Code) -> Outcome {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the function accepts any code, and returns text that lives as long as the
        // library.
        let text = unsafe { (self.error_string)(code) };
        // SAFETY: the function accepts any code, and returns text that lives as long as the
        // library; the text is NUL-terminated.
        let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
        Err(format!("{function} failed with {code}: {text}").into())
    }

    fn allocate(&self, bytes: usize) -> Outcome<RuntimeMemory<'_>> {
        let mut address = std::ptr::null_mut();
        // SAFETY: `address` is valid for writes.
        self.check("cudaMalloc", unsafe {
            (self.malloc)(&raw mut address, bytes)
        })?;
        Ok(RuntimeMemory {
            address,
            runtime: self,
        })
    }

    fn upload(&self, to: &RuntimeMemory<'_>, from: &[f32], stream: &Stream) -> Outcome {
        let source = from.as_ptr().cast();
        let stream = stream.as_raw().cast();
        // SAFETY: both sides have this many bytes; the runtime has read the pageable memory when
        // the call returns.
        self.check("cudaMemcpyAsync", unsafe {
            (self.copy)(to.address, source, size_of_val(from), TO_DEVICE, stream)
        })
    }

    fn download(&self, to: &mut [f32], from: DevicePointer<f32>, stream: &Stream) -> Outcome {
        let source = std::ptr::with_exposed_provenance(from.as_raw() as usize);
        let target = to.as_mut_ptr().cast();
        let bytes = size_of_val(to);
        let stream = stream.as_raw().cast();
        // SAFETY: both sides have this many bytes; the runtime has written the pageable memory when
        // the call returns.
        self.check("cudaMemcpyAsync", unsafe {
            (self.copy)(target, source, bytes, TO_HOST, stream)
        })
    }
}

impl RuntimeStream {
    fn new(runtime: &Arc<Runtime>) -> Outcome<Self> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: `raw` is valid for writes.
        runtime.check("cudaStreamCreate", unsafe {
            (runtime.stream_create)(&raw mut raw)
        })?;
        Ok(Self {
            raw,
            runtime: Arc::clone(runtime),
        })
    }
}

impl RuntimeMemory<'_> {
    fn pointer(&self) -> DevicePointer<f32> {
        DevicePointer::from_raw(self.address.expose_provenance() as u64)
    }
}

impl Drop for RuntimeStream {
    fn drop(&mut self) {
        // SAFETY: the stream is live, and no work uses it any more.
        let code = unsafe { (self.runtime.stream_destroy)(self.raw) };
        if let Err(error) = self.runtime.check("cudaStreamDestroy", code) {
            eprintln!("error: {error}");
        }
    }
}

impl Drop for RuntimeMemory<'_> {
    fn drop(&mut self) {
        // SAFETY: the memory is live; the runtime waits for the work that uses it.
        let code = unsafe { (self.runtime.free)(self.address) };
        if let Err(error) = self.runtime.check("cudaFree", code) {
            eprintln!("error: {error}");
        }
    }
}
