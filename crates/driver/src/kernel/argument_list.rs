//! Arguments for kernels whose signature is known at run time only.

use std::any::type_name;
use std::ffi::c_void;
use std::fmt;
use std::mem::MaybeUninit;

use smallvec::SmallVec;

use super::signature::{Argument, Arguments, ByValue, Parameter};
use super::{Kernel, Untyped};
use crate::hazard::Operation;
use crate::{Error, Result};

/// The number of arguments whose addresses are stored without a heap allocation.
const INLINE_ARGUMENTS: usize = 16;

/// The arguments of a [`Kernel<Untyped>`](Untyped), for signatures that are known at run time only.
///
/// Accesses to memory are tracked, as for a tuple of arguments. A launch compares the number and
/// the sizes of the arguments with the parameters of the loaded kernel, which are queried once per
/// look-up. Drivers before CUDA 12.4 cannot report them: the parameters of PTX are then read from
/// its text, and those of machine code are not compared.
///
/// Each argument is a heap allocation. To avoid it, use a tuple with [`Kernel::typed`].
///
/// ```
/// # use curium_driver::{ArgumentList, Argument, Kernel, LaunchConfig, Stream, Untyped};
/// # use curium_driver::Result;
/// # fn example<X, Y>(kernel: &Kernel<Untyped>, stream: &Stream, n: u32, x: X, y: Y) -> Result<()>
/// # where X: for<'a> Argument<&'a [f32]>, Y: for<'a> Argument<&'a mut [f32]> {
/// let arguments = ArgumentList::new().value(2.0_f32).read::<f32>(x).write::<f32>(y).value(n);
/// // SAFETY: `saxpy` reads x, writes y, and guards its index with n.
/// unsafe { kernel.launch(stream, LaunchConfig::for_elements(n as usize), arguments) }
/// # }
/// ```
#[must_use = "the arguments are for a launch"]
#[derive(Default)]
pub struct ArgumentList<'a> {
    arguments: Vec<Box<dyn DynArgument + 'a>>,
}

/// An argument of any type.
trait DynArgument {
    /// Returns the size of the parameter in bytes.
    fn size(&self) -> usize;

    /// Returns the Rust type of the parameter, for errors.
    fn type_name(&self) -> &'static str;

    /// Binds the argument and returns the address of the value to pass.
    ///
    /// # Safety
    ///
    /// As for [`Argument::bind`].
    unsafe fn bind(&mut self, operation: &mut Operation<'_>) -> Result<*mut c_void>;

    /// Records the launch.
    ///
    /// # Safety
    ///
    /// As for [`Argument::launched`].
    unsafe fn launched(&mut self, operation: &mut Operation<'_>);
}

/// An argument, and the value passed to the kernel once the argument is bound.
struct Entry<P: Parameter, A> {
    argument: A,
    value: MaybeUninit<P::Raw>,
}

impl<'a> ArgumentList<'a> {
    /// Creates an empty list.
    #[inline]
    pub const fn new() -> Self {
        Self {
            arguments: Vec::new(),
        }
    }

    /// Appends a scalar, or another value that is passed by value. Pass `DevicePointer::null()` for
    /// a null pointer.
    #[inline]
    pub fn value<T: ByValue + 'a>(self, value: T) -> Self {
        self.argument::<T>(value)
    }

    /// Appends memory that the kernel reads: `&buffer` or a view.
    #[inline]
    pub fn read<T: 'a>(self, memory: impl Argument<&'a [T]> + 'a) -> Self {
        self.argument::<&'a [T]>(memory)
    }

    /// Appends memory that the kernel writes: `&mut buffer` or a mutable view.
    #[inline]
    pub fn write<T: 'a>(self, memory: impl Argument<&'a mut [T]> + 'a) -> Self {
        self.argument::<&'a mut [T]>(memory)
    }

    /// Appends an argument for a parameter of type `P`, such as `&texture` for a `TextureObject`.
    #[inline]
    pub fn argument<P: Parameter + 'a>(mut self, argument: impl Argument<P> + 'a) -> Self {
        self.arguments.push(Box::new(Entry::<P, _> {
            argument,
            value: MaybeUninit::uninit(),
        }));
        self
    }

    /// Returns the number of arguments.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.arguments.len()
    }

    /// Returns `true` if the list is empty.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.arguments.is_empty()
    }

    /// Returns the Rust types of the parameters.
    #[inline]
    fn type_names(&self) -> Vec<&'static str> {
        self.arguments
            .iter()
            .map(|argument| argument.type_name())
            .collect()
    }
}

// SAFETY: each argument is bound to the stream of the operation, and `launch` receives the
// addresses of their values in order. The boxes keep the values at a fixed address. `check` has
// compared the number and the sizes of the values with the parameters, if they are known.
unsafe impl Arguments<Untyped> for ArgumentList<'_> {
    #[inline]
    fn check(&self, kernel: &Kernel<Untyped>) -> Result<()> {
        let sizes: SmallVec<[usize; INLINE_ARGUMENTS]> = self
            .arguments
            .iter()
            .map(|argument| argument.size())
            .collect();
        let compared = kernel
            .inner
            .compare_parameters(&sizes, || self.type_names());
        compared.map_err(|error: Error| error.during("Kernel::launch"))
    }

    #[inline]
    fn launch_with(
        mut self,
        operation: &mut Operation<'_>,
        launch: impl FnOnce(&Operation<'_>, *mut *mut c_void) -> Result<()>,
    ) -> Result<()> {
        let mut addresses = SmallVec::<[*mut c_void; INLINE_ARGUMENTS]>::new();
        for argument in &mut self.arguments {
            // SAFETY: `launched` is called for the argument below, and the argument is not used in
            // between.
            addresses.push(unsafe { argument.bind(operation) }?);
        }
        launch(operation, addresses.as_mut_ptr())?;
        for argument in &mut self.arguments {
            // SAFETY: the argument was bound under this operation above, and not used since.
            unsafe { argument.launched(operation) };
        }
        Ok(())
    }
}

impl<P: Parameter, A: Argument<P>> DynArgument for Entry<P, A> {
    #[inline]
    fn size(&self) -> usize {
        size_of::<P::Raw>()
    }

    #[inline]
    fn type_name(&self) -> &'static str {
        type_name::<P>()
    }

    #[inline]
    unsafe fn bind(&mut self, operation: &mut Operation<'_>) -> Result<*mut c_void> {
        // SAFETY: this function has the contract of the inner argument, which its caller upholds.
        let value = unsafe { self.argument.bind(operation) }?;
        Ok(std::ptr::from_mut(self.value.write(value)).cast())
    }

    #[inline]
    unsafe fn launched(&mut self, operation: &mut Operation<'_>) {
        // SAFETY: this function has the contract of the inner argument, which its caller upholds.
        unsafe { self.argument.launched(operation) };
    }
}

impl fmt::Debug for ArgumentList<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ArgumentList({})", self.type_names().join(", "))
    }
}
