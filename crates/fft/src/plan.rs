//! Plans: a transform of one shape, on one stream.

mod execute;

use std::ffi::c_int;
use std::marker::PhantomData;
use std::sync::Arc;

use curium_driver::AsRawStream as _;
use curium_driver::{DevicePointer, Stream};
use curium_memory::LibraryMemory;

use crate::CuFft;
use crate::element::Transform;
use crate::error::Result;
use crate::handle::Handle;
use crate::layout::Layout;
use crate::shape::Shape;
use crate::sys::cufftHandle;
use curium_sys::library_call as call;

/// A plan for transforms of one shape, from elements of type `I` to elements of type `O`, on one
/// stream.
///
/// The types determine the transform: complex to complex, real to complex (forward only) or complex
/// to real (inverse only). Transforms are not normalized, as in cuFFT: forward and inverse multiply
/// the data by the number of its elements.
///
/// Creating a plan takes milliseconds; it can be executed any number of times. It owns its
/// workspace. Transforms are enqueued on the stream and return before they have run. The memory may
/// be in buffers of any stream: a transform waits for earlier accesses on the device, and later
/// accesses wait for it. Executions share the workspace, so they borrow the plan exclusively.
/// Create one plan for each thread.
///
/// In a capture (`Graph::capture`), move an existing plan to the capture scope
/// ([`Plan::set_stream`]): its transforms become nodes. The graph keeps the plan, the workspace and
/// the memory for as long as it can be launched, and its launches are ordered with the other
/// transforms of the plan. The workspace of a plan that was created on the capture scope is memory
/// of the graph, so the plan returns an error after the capture.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// # let cufft = curium_sim_libraries::cufft();
/// # /*
/// let driver = Driver::load()?;
/// let cufft = CuFft::load()?;
/// # */
/// use curium_fft::{Complex32, Plan, Shape};
/// use curium_memory::DeviceBuffer;
///
/// let stream = driver.device(0)?.primary_context()?.stream()?;
/// let mut plan = Plan::<Complex32, Complex32>::new(&cufft, &stream, &Shape::new([4]))?;
/// let mut signal = DeviceBuffer::from_slice(&stream, &[1.0, 2.0, 3.0, 4.0].map(Complex32::from))?;
/// plan.forward_in_place(&mut signal)?;
/// assert_eq!(signal.to_vec()?[0], Complex32::new(10.0, 0.0));
/// plan.inverse_in_place(&mut signal)?;
/// assert_eq!(signal.to_vec()?[3], Complex32::new(16.0, 0.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A transform that the types exclude does not compile.
///
/// ```compile_fail,E0599
/// # use curium_fft::{Complex32, Plan};
/// # fn f(mut plan: Plan<f32, Complex32>, buffer: &mut curium_memory::DeviceBuffer<Complex32>) {
/// plan.inverse_in_place(buffer);
/// # }
/// ```
#[derive(Debug)]
pub struct Plan<I, O> {
    handle: Arc<Handle>,
    stream: Stream,
    workspace: LibraryMemory,
    layout: Layout,
    _types: PhantomData<fn(I) -> O>,
}

impl<I: Transform<O>, O> Plan<I, O> {
    /// Creates a plan on `stream`, with a workspace of the size that the library requires.
    ///
    /// CUDA: `cufftCreate`, `cufftSetAutoAllocation`, `cufftXtMakePlanMany`, `cufftSetWorkArea`,
    /// `cufftSetStream`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if the shape is not possible: a length is 0, an array
    /// is smaller than its data, elements of the output overlap, or a length of `f16` is not a
    /// power of two. An error of the library or of the allocation.
    #[doc(alias = "cufftPlan1d")]
    #[doc(alias = "cufftPlan2d")]
    #[doc(alias = "cufftPlan3d")]
    #[doc(alias = "cufftPlanMany")]
    #[doc(alias = "cufftMakePlanMany64")]
    #[doc(alias = "cufftXtMakePlanMany")]
    pub fn new(library: &CuFft, stream: &Stream, shape: &Shape) -> Result<Self> {
        let layout = Self::layout("Plan::new", shape)?;
        let handle = Handle::create(library, stream.context())?;
        let bytes = make(&handle, &layout, [I::INPUT, I::OUTPUT, I::EXECUTION])?;
        let mut plan = Self::for_stream(handle, stream, layout)?;
        if bytes > 0 {
            plan.set_workspace(bytes)?;
        }
        Ok(plan)
    }

    /// Takes ownership of a plan that other code created in the context of `stream`, and moves it
    /// to this stream. It keeps its workspace.
    ///
    /// # Safety
    ///
    /// `raw` is a live plan of `library` for a transform of these types and this shape, which no
    /// other code uses or destroys. A workspace that the plan does not own outlives the result and
    /// every graph that captures its transforms.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if the shape is not possible; an error of the library,
    /// in which case the plan is destroyed.
    pub unsafe fn from_raw(
        library: &CuFft,
        raw: cufftHandle,
        stream: &Stream,
        shape: &Shape,
    ) -> Result<Self> {
        let handle = Handle::new(raw, library, stream.context());
        Self::for_stream(handle, stream, Self::layout("Plan::from_raw", shape)?)
    }

    fn layout(operation: &'static str, shape: &Shape) -> Result<Layout> {
        let layout = Layout::new(operation, I::FORM, shape)?;
        if I::NEEDS_POWERS_OF_TWO {
            layout.check_powers_of_two(operation)?;
        }
        Ok(layout)
    }

    fn for_stream(handle: Handle, stream: &Stream, layout: Layout) -> Result<Self> {
        let raw = stream.as_raw().cast();
        // SAFETY: the plan and the stream are live, and their context is current.
        handle.entered(|| unsafe {
            call!(handle.library().api(), cufftSetStream(handle.raw(), raw))
        })?;
        let handle = Arc::new(handle);
        // Destroying a plan frees memory, which may invalidate a capture.
        stream.enqueue_release("Plan::new")?.keep(&handle);
        Ok(Self {
            handle,
            stream: stream.clone(),
            workspace: LibraryMemory::opaque(stream),
            layout,
            _types: PhantomData,
        })
    }

    fn set_workspace(&mut self, bytes: usize) -> Result<()> {
        let workspace = LibraryMemory::allocate(&self.stream, bytes)?;
        let address = workspace.as_pointer().map_or(0, DevicePointer::as_raw);
        let pointer = std::ptr::without_provenance_mut(address as usize);
        let api = self.handle.library().api();
        let raw = self.handle.raw();
        self.handle.entered(|| {
            // SAFETY: the plan is live, and the memory lives as long as the plan uses it.
            unsafe { call!(api, cufftSetWorkArea(raw, pointer)) }
        })?;
        self.workspace = workspace;
        Ok(())
    }
}

impl<I, O> Plan<I, O> {
    /// Moves the plan to another stream of its context, with its workspace. Returns immediately:
    /// transforms on the new stream wait on the device for those on the previous one, because they
    /// share the workspace.
    ///
    /// In a capture, pass the capture scope: the transforms become nodes. Afterwards, move the plan
    /// to another stream.
    ///
    /// CUDA: `cufftSetStream`.
    ///
    /// # Errors
    ///
    /// An argument error if the stream belongs to another context; an error of the library.
    #[doc(alias = "cufftSetStream")]
    pub fn set_stream(&mut self, stream: &Stream) -> Result<()> {
        const OPERATION: &str = "Plan::set_stream";
        let old = self.stream.context().as_raw();
        let new = stream.context().as_raw();
        if old != new {
            let reason =
                format!("the stream belongs to another context ({new:p} instead of {old:p})");
            return Err(curium_driver::Error::argument(OPERATION, reason).into());
        }
        // As in `on`.
        stream.enqueue_release(OPERATION)?.keep(&self.handle);
        let api = self.handle.library().api();
        let raw = stream.as_raw().cast();
        self.handle
            // SAFETY: the plan and the stream are live, and a context is current.
            .entered(|| unsafe { call!(api, cufftSetStream(self.handle.raw(), raw)) })?;
        self.stream = stream.clone();
        Ok(())
    }

    /// Returns the minimum length of the input in elements.
    #[must_use]
    pub fn input_len(&self) -> usize {
        self.layout.input.span()
    }

    /// Returns the minimum length of the output in elements.
    #[must_use]
    pub fn output_len(&self) -> usize {
        self.layout.output.span()
    }

    /// Returns the size of the workspace in bytes.
    #[must_use]
    pub fn workspace_bytes(&self) -> usize {
        self.workspace.byte_len()
    }

    /// Returns the stream.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Returns the library.
    #[must_use]
    pub fn library(&self) -> &CuFft {
        self.handle.library()
    }

    /// Returns the raw plan, for functions that this crate does not wrap. Calls must not change the
    /// stream or the workspace. Their accesses are not tracked.
    #[must_use]
    pub fn as_raw(&mut self) -> cufftHandle {
        self.handle.raw()
    }
}

/// Makes the plan, and returns the size of its workspace.
fn make(
    handle: &Handle,
    layout: &Layout,
    [input, output, execution]: [crate::sys::cudaDataType; 3],
) -> Result<usize> {
    let mut lengths: Vec<_> = layout.lengths.iter().map(|length| *length as i64).collect();
    let mut input_embedding = layout.input.embedding();
    let mut output_embedding = layout.output.embedding();
    let mut bytes = 0;
    let api = handle.library().api();
    handle.entered_relaxed(|| {
        // SAFETY: the plan is live, its context is current, the arrays have one element for each
        // dimension, and `bytes` is valid for writes.
        unsafe {
            call!(
                api,
                cufftXtMakePlanMany(
                    handle.raw(),
                    lengths.len() as c_int,
                    lengths.as_mut_ptr(),
                    input_embedding.as_mut_ptr(),
                    layout.input.stride(),
                    layout.input.distance(),
                    input,
                    output_embedding.as_mut_ptr(),
                    layout.output.stride(),
                    layout.output.distance(),
                    output,
                    layout.batches as i64,
                    &raw mut bytes,
                    execution
                )
            )
        }
    })?;
    Ok(bytes)
}
