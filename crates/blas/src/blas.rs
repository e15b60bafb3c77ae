//! The handle of cuBLAS on one stream.

mod mode;
mod pointer_staging;

use std::sync::Arc;

use curium_driver::AsRawStream as _;
use curium_driver::hazard::Operation;
use curium_driver::sys::CUdeviceptr;
use curium_driver::{DevicePointer, Stream};
use curium_memory::{DeviceBuffer, LibraryMemory};

pub use self::mode::MathMode;
use self::pointer_staging::PointerStaging;
use crate::CuBlas;
use crate::error::Result;
use crate::handle::Handle;
use crate::operand::OperandList;
use crate::sys::{Api, cublasHandle_t, cublasPointerMode_t};
use curium_sys::library_call as call;

/// The state of cuBLAS on one stream: a handle, its settings and its workspace.
///
/// Operations are enqueued on the stream and return before they have run, except for those that
/// return a number to the host. Operands may be in buffers of any stream: operations wait for
/// earlier accesses on the device, and later accesses wait for them.
///
/// A cuBLAS handle is shared mutable state, so operations borrow it exclusively. Create one handle
/// for each thread and each stream, or move a handle between streams with [`Blas::set_stream`].
///
/// In a capture (`Graph::capture`), move an existing handle to the capture scope: its operations
/// become nodes. The graph keeps the handle, the workspace and the operands for as long as it can
/// be launched, and its launches are ordered with the other operations of the handle. The workspace
/// of a handle that was created on the capture scope is memory of the graph, so the handle returns
/// errors after the capture. Do not drop a handle of another stream during a capture:
/// `cublasDestroy` synchronizes the device, which invalidates the capture.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// # let cublas = curium_sim_libraries::cublas();
/// # /*
/// let driver = Driver::load()?;
/// let cublas = CuBlas::load()?;
/// # */
/// use curium_blas::{Blas, Matrix, MatrixMut};
/// use curium_memory::DeviceBuffer;
///
/// let stream = driver.device(0)?.primary_context()?.stream()?;
/// let mut blas = Blas::new(&cublas, &stream)?;
/// let a = DeviceBuffer::from_slice(&stream, &[1.0_f32, 2.0, 3.0, 4.0])?;
/// let b = DeviceBuffer::from_slice(&stream, &[5.0_f32, 6.0, 7.0, 8.0])?;
/// let mut c = DeviceBuffer::zeroed(&stream, 4)?;
/// let a = Matrix::row_major(&a, 2, 2)?;
/// let b = Matrix::row_major(&b, 2, 2)?;
/// blas.gemm(1.0, a, b, 0.0, &mut MatrixMut::row_major(&mut c, 2, 2)?)?;
/// assert_eq!(c.to_vec()?, [19.0, 22.0, 43.0, 50.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Blas {
    handle: Arc<Handle>,
    stream: Stream,
    /// The workspace that was set.
    workspace: Option<LibraryMemory>,
    /// The workspace of the library, which it uses while no other one is set.
    default_workspace: LibraryMemory,
    pointer_mode: cublasPointerMode_t,
    pointer_staging: PointerStaging,
}

/// The advice of a refused operation.
const ON_ITS_SCOPE: &str = "move the handle to the capture scope with `set_stream`";

impl Blas {
    /// Creates a handle on `stream`, with a workspace of the size that NVIDIA recommends for the
    /// device: 32 MiB from compute capability 9.0 on, 4 MiB before.
    ///
    /// CUDA: `cublasCreate_v2`, `cublasSetStream_v2`, `cublasSetWorkspace_v2`.
    ///
    /// # Errors
    ///
    /// An error of the library or of the allocation.
    #[doc(alias = "cublasCreate")]
    pub fn new(library: &CuBlas, stream: &Stream) -> Result<Self> {
        let handle = Handle::create(library, stream.context())?;
        let mut blas = Self::for_stream(handle, stream)?;
        let major = stream.device().compute_capability()?.major;
        blas.set_workspace(if major >= 9 { 32 << 20 } else { 4 << 20 })?;
        Ok(blas)
    }

    /// Takes ownership of a handle that other code created in the context of `stream`, and sets its
    /// stream. cuBLAS manages its workspace.
    ///
    /// # Safety
    ///
    /// `raw` is a live handle of `library`, which no other code uses or destroys.
    ///
    /// # Errors
    ///
    /// An error of the library, in which case the handle is destroyed.
    pub unsafe fn from_raw(library: &CuBlas, raw: cublasHandle_t, stream: &Stream) -> Result<Self> {
        Self::for_stream(Handle::new(raw, library, stream.context()), stream)
    }

    fn for_stream(handle: Handle, stream: &Stream) -> Result<Self> {
        let api = handle.library().api();
        let raw = stream.as_raw().cast();
        let _entered = stream.context().enter()?;
        // SAFETY: the handle and the stream are live, and their context is current.
        unsafe { call!(api, cublasSetStream_v2(handle.raw(), raw)) }?;
        let pointer_mode = cublasPointerMode_t::CUBLAS_POINTER_MODE_HOST;
        // A handle of other code may be in the other mode.
        // SAFETY: the handle is live, and its context is current.
        unsafe { call!(api, cublasSetPointerMode_v2(handle.raw(), pointer_mode)) }?;
        let handle = Arc::new(handle);
        // Destroying a handle synchronizes the device, which invalidates a capture.
        stream.enqueue_release("Blas::new")?.keep(&handle);
        Ok(Self {
            handle,
            stream: stream.clone(),
            workspace: None,
            default_workspace: LibraryMemory::opaque(stream),
            pointer_mode,
            pointer_staging: PointerStaging::default(),
        })
    }

    /// Replaces the workspace by one of `bytes` bytes; 0 leaves the memory to the library, and
    /// operations are ordered as if it were one buffer. Graphs keep the workspace that they
    /// captured.
    ///
    /// CUDA: `cublasSetWorkspace_v2`.
    ///
    /// # Errors
    ///
    /// An error of the allocation or of the library.
    #[doc(alias = "cublasSetWorkspace")]
    pub fn set_workspace(&mut self, bytes: usize) -> Result<()> {
        let workspace = if bytes == 0 {
            None
        } else {
            Some(LibraryMemory::allocate(&self.stream, bytes)?)
        };
        self.pass_workspace(workspace)
    }

    /// Moves the handle to another stream of its context, with its workspace and its settings.
    /// Returns immediately: operations on the new stream wait on the device for those on the
    /// previous one, because they share the workspace.
    ///
    /// In a capture, pass the capture scope: the operations become nodes. Afterwards, move the
    /// handle to another stream.
    ///
    /// ```
    /// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
    /// # let cublas = curium_sim_libraries::cublas();
    /// use curium_blas::{Blas, Vector, VectorMut};
    /// use curium_driver::Graph;
    /// use curium_memory::DeviceBuffer;
    ///
    /// # let stream = driver.device(0)?.primary_context()?.stream()?;
    /// let mut blas = Blas::new(&cublas, &stream)?;
    /// let x = DeviceBuffer::from_slice(&stream, &[1.0_f32, 2.0])?;
    /// let mut y = DeviceBuffer::zeroed(&stream, 2)?;
    /// let graph = Graph::capture(stream.context(), |scope| {
    ///     blas.set_stream(scope)?;
    ///     blas.axpy(2.0, Vector::new(&x), &mut VectorMut::new(&mut y))
    /// })?;
    /// blas.set_stream(&stream)?;
    /// graph.instantiate()?.launch(&stream)?;
    /// blas.scal(10.0, &mut VectorMut::new(&mut y))?; // after the launch
    /// assert_eq!(y.to_vec()?, [20.0, 40.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// CUDA: `cublasSetStream_v2`, `cublasSetWorkspace_v2`.
    ///
    /// # Errors
    ///
    /// An argument error if the stream belongs to another context; an error of the library.
    #[doc(alias = "cublasSetStream")]
    pub fn set_stream(&mut self, stream: &Stream) -> Result<()> {
        const OPERATION: &str = "Blas::set_stream";
        let old = self.stream.context().as_raw();
        let new = stream.context().as_raw();
        if old != new {
            let reason =
                format!("the stream belongs to another context ({new:p} instead of {old:p})");
            return Err(curium_driver::Error::argument(OPERATION, reason).into());
        }
        // As in `on`.
        stream.enqueue_release(OPERATION)?.keep(&self.handle);
        let raw = stream.as_raw().cast();
        // SAFETY: the handle and the stream are live, and their context is current.
        self.configure(|api, handle| unsafe { call!(api, cublasSetStream_v2(handle, raw)) })?;
        self.stream = stream.clone();
        // The new stream comes without the workspace.
        match self.workspace.take() {
            Some(workspace) => self.pass_workspace(Some(workspace)),
            None => Ok(()),
        }
    }

    /// Passes a workspace to the library, which uses its own if there is none.
    fn pass_workspace(&mut self, workspace: Option<LibraryMemory>) -> Result<()> {
        let address = workspace
            .as_ref()
            .and_then(LibraryMemory::as_pointer)
            .map_or(0, DevicePointer::as_raw);
        let bytes = workspace.as_ref().map_or(0, LibraryMemory::byte_len);
        let pointer = std::ptr::without_provenance_mut(address as usize);
        // SAFETY: the memory lives as long as the handle uses it, and is in stream order before and
        // after its work.
        self.configure(|api, raw| unsafe {
            call!(api, cublasSetWorkspace_v2(raw, pointer, bytes))
        })?;
        self.workspace = workspace;
        Ok(())
    }

    /// Returns the size of the workspace in bytes.
    #[must_use]
    pub fn workspace_bytes(&self) -> usize {
        self.workspace.as_ref().map_or(0, LibraryMemory::byte_len)
    }

    /// Returns the stream.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Returns the library.
    #[must_use]
    pub fn library(&self) -> &CuBlas {
        self.handle.library()
    }

    /// Returns the raw handle, for functions that this crate does not wrap. Calls must not change
    /// the stream, the workspace or the pointer mode. Their accesses are not tracked.
    #[must_use]
    pub fn as_raw(&mut self) -> cublasHandle_t {
        self.handle.raw()
    }

    /// Calls a function of the library that enqueues nothing.
    pub(crate) fn configure(
        &mut self,
        set: impl FnOnce(&Api, cublasHandle_t) -> Result<()>,
    ) -> Result<()> {
        let _entered = self.handle.context().enter()?;
        set(self.handle.library().api(), self.handle.raw())
    }

    #[inline]
    pub(crate) fn set_pointer_mode(&mut self, mode: cublasPointerMode_t) -> Result<()> {
        if self.pointer_mode == mode {
            Ok(())
        } else {
            self.change_pointer_mode(mode)
        }
    }

    #[cold]
    fn change_pointer_mode(&mut self, mode: cublasPointerMode_t) -> Result<()> {
        // SAFETY: the handle is live, and its context is current.
        self.configure(|api, raw| unsafe { call!(api, cublasSetPointerMode_v2(raw, mode)) })?;
        self.pointer_mode = mode;
        Ok(())
    }

    /// Copies addresses to device memory, on the stream.
    pub(crate) fn pointers(
        &mut self,
        name: &'static str,
        addresses: &[CUdeviceptr],
    ) -> Result<DeviceBuffer<u64>> {
        self.stream.check_enqueue(name, ON_ITS_SCOPE)?;
        self.pointer_staging.upload(&self.stream, addresses)
    }

    /// Enqueues an operation on its operands.
    #[inline]
    pub(crate) fn enqueue(
        &mut self,
        name: &'static str,
        mode: cublasPointerMode_t,
        operands: impl OperandList,
        call: impl FnOnce(&Api, cublasHandle_t) -> Result<()>,
    ) -> Result<()> {
        operands.check_alignments(name)?;
        self.set_pointer_mode(mode)?;
        let Self {
            handle,
            stream,
            workspace,
            default_workspace,
            ..
        } = self;
        let workspace = workspace.as_mut().unwrap_or(default_workspace);
        let operation = stream.enqueue_or(name, ON_ITS_SCOPE)?;
        operation.keep(handle);
        ordered(operation, workspace, operands, || {
            let _entered = handle.context().enter()?;
            call(handle.library().api(), handle.raw())
        })
    }

    /// Enqueues an operation that returns a number to the host, and waits for it.
    pub(crate) fn compute(
        &mut self,
        name: &'static str,
        operands: impl OperandList,
        call: impl FnOnce(&Api, cublasHandle_t) -> Result<()>,
    ) -> Result<()> {
        operands.check_alignments(name)?;
        self.set_pointer_mode(cublasPointerMode_t::CUBLAS_POINTER_MODE_HOST)?;
        let Self {
            handle,
            stream,
            workspace,
            default_workspace,
            ..
        } = self;
        let workspace = workspace.as_mut().unwrap_or(default_workspace);
        let operation = stream.enqueue_uncaptured(name)?.blocking();
        ordered(operation, workspace, operands, || {
            let _entered = handle.context().enter()?;
            call(handle.library().api(), handle.raw())
        })
    }
}

/// Enqueues an operation between the waits for its operands and the records of its accesses.
#[inline]
fn ordered(
    mut operation: Operation<'_>,
    workspace: &mut LibraryMemory,
    mut operands: impl OperandList,
    call: impl FnOnce() -> Result<()>,
) -> Result<()> {
    // SAFETY: `launched` follows the call.
    unsafe { workspace.bind(&mut operation) }?;
    // SAFETY: `launched` follows the call.
    unsafe { operands.bind(&mut operation) }?;
    let called = call();
    // A failure may come after some work was enqueued.
    // SAFETY: `bind` succeeded with this operation.
    unsafe { workspace.launched(&mut operation) };
    // SAFETY: `bind` succeeded with this operation.
    unsafe { operands.launched(&mut operation) };
    called
}
