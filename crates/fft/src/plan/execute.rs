//! Executions of a plan, forward and inverse.

use std::ffi::{c_int, c_void};

use curium_driver::sys::CUdeviceptr;
use curium_memory::DeviceSlice;
use num_complex::Complex;

use super::Plan;
use crate::element::Real;
use crate::error::{Error, Result, ShapeError};
use crate::operand::Operand;
use crate::sys::{CUFFT_FORWARD, CUFFT_INVERSE};
use curium_sys::library_call as call;

/// The direction of a transform: the sign of its exponent.
const FORWARD: c_int = CUFFT_FORWARD;
const INVERSE: c_int = CUFFT_INVERSE as c_int;

impl<R: Real> Plan<Complex<R>, Complex<R>> {
    /// Transforms `input` to `output`.
    ///
    /// CUDA: `cufftXtExec`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if a view is too short, or not aligned to the size of
    /// a complex number; an error of the library or of the driver.
    #[doc(alias = "cufftXtExec")]
    #[doc(alias = "cufftExecC2C")]
    #[doc(alias = "cufftExecZ2Z")]
    pub fn forward(
        &mut self,
        input: &DeviceSlice<Complex<R>>,
        output: &mut DeviceSlice<Complex<R>>,
    ) -> Result<()> {
        self.execute("Plan::forward", FORWARD, input, output)
    }

    /// Transforms `input` to `output` with the inverse transform.
    ///
    /// CUDA: `cufftXtExec`.
    ///
    /// # Errors
    ///
    /// As for [`Plan::forward`].
    pub fn inverse(
        &mut self,
        input: &DeviceSlice<Complex<R>>,
        output: &mut DeviceSlice<Complex<R>>,
    ) -> Result<()> {
        self.execute("Plan::inverse", INVERSE, input, output)
    }

    /// Transforms `data` in place.
    ///
    /// CUDA: `cufftXtExec`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if the view is too short or not aligned to the size of
    /// a complex number, or if input and output of the plan have different layouts; an error of the
    /// library or of the driver.
    pub fn forward_in_place(&mut self, data: &mut DeviceSlice<Complex<R>>) -> Result<()> {
        self.execute_in_place("Plan::forward_in_place", FORWARD, data)
    }

    /// Transforms `data` in place with the inverse transform.
    ///
    /// CUDA: `cufftXtExec`.
    ///
    /// # Errors
    ///
    /// As for [`Plan::forward_in_place`].
    pub fn inverse_in_place(&mut self, data: &mut DeviceSlice<Complex<R>>) -> Result<()> {
        self.execute_in_place("Plan::inverse_in_place", INVERSE, data)
    }
}

impl<R: Real> Plan<R, Complex<R>> {
    /// Transforms the real `input` to the complex `output`, which has `n / 2 + 1` numbers for `n`
    /// in the last dimension.
    ///
    /// CUDA: `cufftXtExec`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if a view is too short, or not aligned to the size of
    /// a complex number; an error of the library or of the driver.
    #[doc(alias = "cufftExecR2C")]
    #[doc(alias = "cufftExecD2Z")]
    pub fn forward(
        &mut self,
        input: &DeviceSlice<R>,
        output: &mut DeviceSlice<Complex<R>>,
    ) -> Result<()> {
        self.execute("Plan::forward", FORWARD, input, output)
    }

    /// Transforms real numbers to complex ones in place. The plan is made with
    /// [`Shape::in_place`](crate::Shape::in_place): rows of real numbers are padded to the length
    /// of the complex ones.
    ///
    /// CUDA: `cufftXtExec`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if the view is too short or not aligned to the size of
    /// a complex number, or if the plan's layouts do not agree; an error of the library or of the
    /// driver.
    pub fn forward_in_place(&mut self, data: &mut DeviceSlice<Complex<R>>) -> Result<()> {
        self.execute_in_place("Plan::forward_in_place", FORWARD, data)
    }
}

impl<R: Real> Plan<Complex<R>, R> {
    /// Transforms the complex `input`, which has `n / 2 + 1` numbers for `n` in the last dimension,
    /// to the real `output`. Overwrites the input.
    ///
    /// CUDA: `cufftXtExec`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if a view is too short, or not aligned to the size of
    /// a complex number; an error of the library or of the driver.
    #[doc(alias = "cufftExecC2R")]
    #[doc(alias = "cufftExecZ2D")]
    pub fn inverse(
        &mut self,
        input: &mut DeviceSlice<Complex<R>>,
        output: &mut DeviceSlice<R>,
    ) -> Result<()> {
        const OPERATION: &str = "Plan::inverse";
        check_len(OPERATION, "input", self.input_len(), input.len())?;
        check_len(OPERATION, "output", self.output_len(), output.len())?;
        check_aligned(
            OPERATION,
            "input",
            input.as_pointer().as_raw(),
            size_of::<Complex<R>>(),
        )?;
        check_aligned(
            OPERATION,
            "output",
            output.as_pointer().as_raw(),
            size_of::<Complex<R>>(),
        )?;
        self.enqueue(OPERATION, INVERSE, &mut { input }, Some(&mut { output }))
    }

    /// Transforms complex numbers to real ones in place. The plan is made with
    /// [`Shape::in_place`](crate::Shape::in_place): rows of real numbers are padded to the length
    /// of the complex ones.
    ///
    /// CUDA: `cufftXtExec`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if the view is too short or not aligned to the size of
    /// a complex number, or if the plan's layouts do not agree; an error of the library or of the
    /// driver.
    pub fn inverse_in_place(&mut self, data: &mut DeviceSlice<Complex<R>>) -> Result<()> {
        self.execute_in_place("Plan::inverse_in_place", INVERSE, data)
    }
}

impl<I, O> Plan<I, O> {
    #[inline(always)]
    fn execute(
        &mut self,
        operation: &'static str,
        direction: c_int,
        input: &DeviceSlice<I>,
        output: &mut DeviceSlice<O>,
    ) -> Result<()> {
        check_len(operation, "input", self.input_len(), input.len())?;
        check_len(operation, "output", self.output_len(), output.len())?;
        for (name, address) in [
            ("input", input.as_pointer().as_raw()),
            ("output", output.as_pointer().as_raw()),
        ] {
            // One of the types is complex.
            check_aligned(operation, name, address, size_of::<I>().max(size_of::<O>()))?;
        }
        self.enqueue(operation, direction, &mut { input }, Some(&mut { output }))
    }

    #[inline(always)]
    fn execute_in_place<T>(
        &mut self,
        operation: &'static str,
        direction: c_int,
        data: &mut DeviceSlice<T>,
    ) -> Result<()> {
        check_len(
            operation,
            "data",
            self.layout.span_in_place(operation)?,
            data.len(),
        )?;
        check_aligned(
            operation,
            "data",
            data.as_pointer().as_raw(),
            size_of::<T>(),
        )?;
        self.enqueue(operation, direction, &mut { data }, None)
    }

    /// Enqueues a transform between the waits for its memory and the records of its accesses.
    /// Without an output it is in place.
    // Inlined: docs/performance.md, "Functions around a call".
    #[inline(always)]
    fn enqueue(
        &mut self,
        name: &'static str,
        direction: c_int,
        input: &mut dyn Operand,
        mut output: Option<&mut dyn Operand>,
    ) -> Result<()> {
        let Self {
            handle,
            stream,
            workspace,
            ..
        } = self;
        let mut operation =
            stream.enqueue_or(name, "move the plan to the capture scope with `set_stream`")?;
        operation.keep(handle);
        // SAFETY: `launched` follows the call.
        unsafe { workspace.bind(&mut operation) }?;
        // SAFETY: `launched` follows the call.
        let input_ptr = device_pointer(unsafe { input.bind(&mut operation) }?);
        let output_ptr = match &mut output {
            // SAFETY: `launched` follows the call.
            Some(output) => device_pointer(unsafe { output.bind(&mut operation) }?),
            None => input_ptr,
        };
        let api = handle.library().api();
        let raw = handle.raw();
        // SAFETY: the plan is live, its context is current, and the memory has the lengths that its
        // layout needs.
        let called = handle
            .entered(|| unsafe { call!(api, cufftXtExec(raw, input_ptr, output_ptr, direction)) });
        // A failure may come after some work was enqueued.
        // SAFETY: `bind` succeeded with this operation.
        unsafe { workspace.launched(&mut operation) };
        // SAFETY: `bind` succeeded with this operation.
        unsafe { input.launched(&mut operation) };
        if let Some(output) = output {
            // SAFETY: `bind` succeeded with this operation.
            unsafe { output.launched(&mut operation) };
        }
        called
    }
}

/// Returns a device address as C's pointer.
fn device_pointer(address: CUdeviceptr) -> *mut c_void {
    std::ptr::without_provenance_mut(address as usize)
}

#[inline]
fn check_len(operation: &'static str, name: &str, required: usize, available: usize) -> Result<()> {
    if available >= required {
        Ok(())
    } else {
        Err(too_short(operation, name, required, available))
    }
}

#[cold]
fn too_short(operation: &'static str, name: &str, required: usize, available: usize) -> Error {
    ShapeError::refused(
        operation,
        format!("{name} too short ({available} elements, the plan needs {required})"),
    )
}

/// Checks that memory is aligned as C's complex numbers are, which cuFFT requires of real numbers,
/// too. Rust's have half of the alignment. `alignment` is the size of a complex number, a power of
/// two.
#[inline]
fn check_aligned(
    operation: &'static str,
    name: &str,
    address: CUdeviceptr,
    alignment: usize,
) -> Result<()> {
    if address & (alignment as CUdeviceptr - 1) == 0 {
        return Ok(());
    }
    Err(misaligned(operation, name, address, alignment))
}

#[cold]
fn misaligned(
    operation: &'static str,
    name: &str,
    address: CUdeviceptr,
    alignment: usize,
) -> Error {
    let problem = format!(
        "{name} misaligned (address {address:#x}, cuFFT needs multiples of {alignment} bytes)"
    );
    ShapeError::refused(operation, problem)
}
