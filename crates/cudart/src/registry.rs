//! The kernels and variables of the program, which it registers before `main`.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;

use curium_sys::{CUdeviceptr, CUfunction, CUkernel, CUlibrary};
use parking_lot::Mutex;

use crate::cu;
use crate::state::{INVALID_DEVICE_FUNCTION, INVALID_SYMBOL, Result};

/// The registered kernels and variables. Addresses are stored as numbers: the objects belong to the
/// program and the driver.
#[derive(Default)]
struct Registry {
    binaries: Vec<Binary>,
    /// The kernels by the address of the host function.
    kernels: HashMap<usize, Symbol>,
    /// The variables by the address of the host variable.
    variables: HashMap<usize, Symbol>,
    /// The kernels of libraries that the program loaded, each with its library. They are passed in
    /// place of host functions.
    library_kernels: HashMap<usize, usize>,
}

/// The device code of one translation unit.
struct Binary {
    record: usize,
    library: Option<usize>,
    /// The names of managed variables, and the addresses of the host's pointers to them.
    managed: Vec<(CString, usize)>,
}

#[derive(Clone)]
struct Symbol {
    binary: usize,
    name: CString,
    kernel: Option<usize>,
}

static REGISTRY: Mutex<Option<Registry>> = Mutex::new(None);

fn with_registry<T>(operation: impl FnOnce(&mut Registry) -> T) -> T {
    operation(REGISTRY.lock().get_or_insert_default())
}

impl Registry {
    /// Returns the library of a binary, which is loaded on first use.
    fn library(&mut self, binary: usize) -> Result<CUlibrary> {
        let binary = self
            .binaries
            .get_mut(binary)
            .ok_or(INVALID_DEVICE_FUNCTION)?;
        if let Some(library) = binary.library {
            return Ok(ptr::with_exposed_provenance_mut(library));
        }
        let mut library: CUlibrary = ptr::null_mut();
        let image = ptr::with_exposed_provenance::<c_void>(binary.record);
        // SAFETY: `library` is valid for writes, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe {
            cu!(cuLibraryLoadData(
                &raw mut library,
                image,
                ptr::null_mut(),
                ptr::null_mut(),
                0,
                ptr::null_mut(),
                ptr::null_mut(),
                0
            ))
        }?;
        binary.library = Some(library.expose_provenance());
        Ok(library)
    }

    fn kernel(&mut self, host: usize) -> Result<CUkernel> {
        if self.library_kernels.contains_key(&host) {
            return Ok(ptr::with_exposed_provenance_mut(host));
        }
        let symbol = self
            .kernels
            .get(&host)
            .ok_or(INVALID_DEVICE_FUNCTION)?
            .clone();
        if let Some(kernel) = symbol.kernel {
            return Ok(ptr::with_exposed_provenance_mut(kernel));
        }
        let library = self.library(symbol.binary)?;
        let mut kernel: CUkernel = ptr::null_mut();
        // SAFETY: `kernel` is valid for writes, and the caller of the runtime function guarantees
        // the other arguments.
        unsafe {
            cu!(cuLibraryGetKernel(
                &raw mut kernel,
                library,
                symbol.name.as_ptr()
            ))
        }?;
        if let Some(symbol) = self.kernels.get_mut(&host) {
            symbol.kernel = Some(kernel.expose_provenance());
        }
        Ok(kernel)
    }

    fn variable(&mut self, host: usize) -> Result<(CUdeviceptr, usize)> {
        let symbol = self.variables.get(&host).ok_or(INVALID_SYMBOL)?.clone();
        let library = self.library(symbol.binary)?;
        let mut address = 0;
        let mut size = 0;
        // SAFETY: `address` and `size` are valid for writes, and the caller of the runtime function
        // guarantees the other arguments.
        unsafe {
            cu!(cuLibraryGetGlobal(
                &raw mut address,
                &raw mut size,
                library,
                symbol.name.as_ptr()
            ))
        }?;
        Ok((address, size))
    }

    /// Writes the addresses of the managed variables of a binary to the host's pointers.
    fn initialize_managed(&mut self, binary: usize) -> Result<()> {
        let managed = self
            .binaries
            .get(binary)
            .map(|binary| binary.managed.clone())
            .unwrap_or_default();
        for (name, host) in managed {
            let library = self.library(binary)?;
            let mut address = 0;
            let mut size = 0;
            // SAFETY: `address` and `size` are valid for writes, and the caller of the runtime
            // function guarantees the other arguments.
            unsafe {
                cu!(cuLibraryGetManaged(
                    &raw mut address,
                    &raw mut size,
                    library,
                    name.as_ptr()
                ))
            }?;
            let host = ptr::with_exposed_provenance_mut::<usize>(host);
            // SAFETY: the program registered the address of its pointer, which lives as long as the
            // program.
            unsafe { host.write(address as usize) };
        }
        Ok(())
    }
}

/// Returns the kernel of a host function.
pub(crate) fn kernel(host: *const c_void) -> Result<CUkernel> {
    with_registry(|registry| registry.kernel(host.addr()))
}

/// Records kernels of a library.
pub(crate) fn add_library_kernels(library: CUlibrary, kernels: &[CUkernel]) {
    with_registry(|registry| {
        for kernel in kernels {
            registry
                .library_kernels
                .insert(kernel.expose_provenance(), library.addr());
        }
    });
}

/// Removes the kernels of a library.
pub(crate) fn remove_library_kernels(library: CUlibrary) {
    with_registry(|registry| {
        registry
            .library_kernels
            .retain(|_, owner| *owner != library.addr());
    });
}

/// Returns the host function of a kernel or of its function, one of which may be null. A kernel
/// without a host function is returned as its handle.
pub(crate) fn host_function(function: CUfunction, kernel: CUkernel) -> Result<*const c_void> {
    let loaded: Vec<(usize, usize)> = with_registry(|registry| {
        let hosts = registry.kernels.iter();
        let mut loaded: Vec<_> = hosts
            .filter_map(|(host, symbol)| symbol.kernel.map(|kernel| (*host, kernel)))
            .collect();
        loaded.extend(
            registry
                .library_kernels
                .keys()
                .map(|kernel| (*kernel, *kernel)),
        );
        loaded
    });
    for (host, candidate) in loaded {
        let candidate: CUkernel = ptr::with_exposed_provenance_mut(candidate);
        let mut candidate_function = CUfunction::default();
        // SAFETY: `candidate_function` is valid for writes, and the kernel is loaded.
        unsafe { cu!(cuKernelGetFunction(&raw mut candidate_function, candidate)) }?;
        if candidate == kernel || candidate.cast() == function || candidate_function == function {
            return Ok(ptr::with_exposed_provenance(host));
        }
    }
    Ok(if kernel.is_null() {
        function.cast_const().cast()
    } else {
        kernel.cast_const().cast()
    })
}

/// Returns the address and the size of a variable.
pub(crate) fn variable(host: *const c_void) -> Result<(CUdeviceptr, usize)> {
    with_registry(|registry| registry.variable(host.addr()))
}

/// Returns the index of the binary of a handle.
///
/// # Safety
///
/// The handle was returned by `__cudaRegisterFatBinary`.
unsafe fn binary_index(handle: *mut *mut c_void) -> usize {
    // SAFETY: the caller guarantees the handle, which points to the index.
    unsafe { handle.cast::<usize>().read() }
}

/// Returns the symbol with this name in the code of a handle.
///
/// # Safety
///
/// The handle was returned by `__cudaRegisterFatBinary`, and the name is text that ends with NUL.
unsafe fn symbol(handle: *mut *mut c_void, name: *const c_char) -> Symbol {
    // SAFETY: the caller guarantees the name.
    let name = unsafe { CStr::from_ptr(name) }.to_owned();
    Symbol {
        // SAFETY: the caller guarantees the handle.
        binary: unsafe { binary_index(handle) },
        name,
        kernel: None,
    }
}

/// Registers the code of a translation unit.
// SAFETY: no other symbol of a program that uses this runtime has this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterFatBinary(record: *mut c_void) -> *mut *mut c_void {
    let binary = Binary {
        record: record.expose_provenance(),
        library: None,
        managed: Vec::new(),
    };
    let position = with_registry(|registry| {
        registry.binaries.push(binary);
        registry.binaries.len() - 1
    });
    // The handle lives as long as the process, because programs unregister at exit.
    Box::into_raw(Box::new(position)).cast()
}

/// Ends the registration of a translation unit, which requires no action.
// SAFETY: no other symbol of a program that uses this runtime has this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterFatBinaryEnd(_handle: *mut *mut c_void) {}

/// Unregisters the code of a translation unit. Nothing is unloaded: the driver may have shut down
/// before the program's destructors run.
// SAFETY: no other symbol of a program that uses this runtime has this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaUnregisterFatBinary(_handle: *mut *mut c_void) {}

/// Registers a kernel.
// SAFETY: no other symbol of a program that uses this runtime has this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterFunction(
    handle: *mut *mut c_void,
    host: *const c_char,
    _device_function: *mut c_char,
    name: *const c_char,
    _thread_limit: c_int,
    _thread: *mut c_void,
    _block: *mut c_void,
    _block_size: *mut c_void,
    _grid_size: *mut c_void,
    _warp_size: *mut c_int,
) {
    // SAFETY: the compiler passes the handle of the binary and a name.
    let symbol = unsafe { symbol(handle, name) };
    with_registry(|registry| registry.kernels.insert(host.addr(), symbol));
}

/// Registers a variable.
// SAFETY: no other symbol of a program that uses this runtime has this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterVar(
    handle: *mut *mut c_void,
    host: *mut c_char,
    _device_address: *mut c_char,
    name: *const c_char,
    _is_extern: c_int,
    _size: usize,
    _is_constant: c_int,
    _is_global: c_int,
) {
    // SAFETY: the compiler passes the handle of the binary and a name.
    let symbol = unsafe { symbol(handle, name) };
    with_registry(|registry| registry.variables.insert(host.addr(), symbol));
}

/// Registers a managed variable, which the host accesses through a pointer.
// SAFETY: no other symbol of a program that uses this runtime has this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaRegisterManagedVar(
    handle: *mut *mut c_void,
    host: *mut *mut c_void,
    _device_address: *mut c_char,
    name: *const c_char,
    _is_extern: c_int,
    _size: usize,
    _is_constant: c_int,
    _is_global: c_int,
) {
    // SAFETY: the compiler passes the handle of the binary and a name.
    let symbol = unsafe { symbol(handle, name) };
    let host = host.expose_provenance();
    with_registry(|registry| {
        if let Some(binary) = registry.binaries.get_mut(symbol.binary) {
            binary.managed.push((symbol.name.clone(), host));
        }
        registry.variables.insert(host, symbol);
    });
}

/// Prepares the managed variables of a translation unit before their first use by the host.
// SAFETY: no other symbol of a program that uses this runtime has this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudaInitModule(handle: *mut *mut c_void) -> c_char {
    // SAFETY: the compiler passes the handle of the binary.
    let binary = unsafe { binary_index(handle) };
    let initialized = crate::state::enter()
        .and_then(|()| with_registry(|registry| registry.initialize_managed(binary)));
    c_char::from(crate::state::record(initialized) == 0)
}
