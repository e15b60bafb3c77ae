//! Launches with typed arguments.

use std::ffi::c_void;
use std::marker::PhantomData;

use curium_driver::hazard::Operation;
use curium_driver::sys::{CUlaunchAttributeID, CUresult};
use curium_driver::{
    Arguments as DriverArguments, Error, LaunchAttributes, LaunchConfig, Result, Stream, Untyped,
};

use super::argument::{Argument, ImageAccess, PreparedArgument};
use super::grid::HostScope;
use super::load::Function;
use crate::parameter::{Description, GridRule, Parameter};

/// The names in the errors of a launch, and its attributes.
#[doc(hidden)]
pub struct Call<'a> {
    operation: &'static str,
    parameters: &'a [&'static str],
    attributes: Option<&'a LaunchAttributes<'a>>,
}

impl<'a> Call<'a> {
    #[must_use]
    pub fn new(operation: &'static str, parameters: &'a [&'static str]) -> Self {
        Self {
            operation,
            parameters,
            attributes: None,
        }
    }

    #[must_use]
    pub fn with_attributes(self, attributes: &'a LaunchAttributes<'a>) -> Self {
        Self {
            attributes: Some(attributes),
            ..self
        }
    }

    #[cold]
    fn argument_error(&self, parameter: usize, reason: &str) -> Error {
        Error::argument(
            self.operation,
            format!("parameter `{}`: {reason}", self.parameters[parameter]),
        )
    }

    /// Checks that the grid divides the memory of each parameter correctly.
    fn check_grid(&self, config: &LaunchConfig, parameters: &[Description]) -> Result<()> {
        let grid = config.grid;
        for (index, parameter) in parameters.iter().enumerate() {
            match parameter.grid {
                GridRule::Any => {}
                GridRule::Line if grid.y == 1 && grid.z == 1 => {}
                GridRule::Plane if grid.z == 1 => {
                    let [rows, columns, _] = parameter.sizes;
                    let limit =
                        |blocks: u32, size: u32| u64::from(blocks) * u64::from(size) <= 1 << 31;
                    if !limit(grid.y, rows) || !limit(grid.x, columns) {
                        let reason = format!(
                            "the tiles of {rows} rows and {columns} columns of a grid {grid} have more than 2^31 rows or columns"
                        );
                        return Err(self.argument_error(index, &reason));
                    }
                }
                rule => {
                    let expected = if rule == GridRule::Line {
                        "along x"
                    } else {
                        "along x and y"
                    };
                    let reason =
                        format!("it is divided between blocks {expected}, and the grid is {grid}");
                    return Err(self.argument_error(index, &reason));
                }
            }
        }
        Ok(())
    }

    /// Checks that no array is written through a surface and accessed through another argument.
    fn check_images(&self, images: &[Option<ImageAccess>]) -> Result<()> {
        for (index, image) in images.iter().enumerate() {
            let Some(image) = image else { continue };
            for (other_index, other) in images.iter().enumerate().skip(index + 1) {
                let Some(other) = other else { continue };
                if other.array == image.array && (image.is_written || other.is_written) {
                    let reason = format!(
                        "it is of the same array as the parameter `{}`, and one of them is written",
                        self.parameters[index]
                    );
                    return Err(self.argument_error(other_index, &reason));
                }
            }
        }
        Ok(())
    }

    /// Checks that the attributes do not let the kernel run concurrently with work that uses its
    /// arguments, and do not change the size of the clusters of a kernel whose type has one.
    fn check_attributes(&self, has_clusters: bool) -> Result<()> {
        let Some(attributes) = self.attributes else {
            return Ok(());
        };
        for attribute in attributes.as_raw() {
            match attribute.id {
                CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
                | CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION
                    if has_clusters =>
                {
                    let reason = "the size of the cluster is that of the kernel's `Cluster<…>`";
                    return Err(Error::argument(self.operation, reason));
                }
                CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_IGNORE
                | CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
                | CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE
                | CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
                | CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE
                | CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PRIORITY
                | CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION
                | CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
                | CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING
                | CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE
                | CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_MODE => {}
                other => {
                    let reason = format!(
                        "the launch attribute {other:?} can let the kernel run concurrently with work that uses its arguments"
                    );
                    return Err(Error::argument(self.operation, reason));
                }
            }
        }
        Ok(())
    }
}

/// The arguments for all parameters of a kernel: a tuple of [`Argument`]s.
///
/// # Safety
///
/// The words are those of one prepared argument for each parameter, in order.
#[doc(hidden)]
pub unsafe trait Arguments<P> {
    /// The prepared arguments.
    type Prepared;

    /// The parameters.
    const PARAMETERS: &'static [Description];

    /// Checks the arguments.
    fn prepare(self, call: &Call<'_>) -> Result<Self::Prepared>;

    /// Returns the dynamic shared memory in bytes.
    fn shared_bytes(prepared: &Self::Prepared) -> u32;

    /// Binds the arguments, runs `launch` with the address of each word, and records the launch.
    fn launch_with(
        prepared: Self::Prepared,
        operation: &mut Operation<'_>,
        launch: impl FnOnce(&Operation<'_>, *mut *mut c_void) -> Result<()>,
    ) -> Result<()>;
}

/// Launches a kernel.
///
/// # Safety
///
/// `P` lists the parameters of the kernel after its scope `S`.
///
/// # Errors
///
/// An argument error that names the parameter; otherwise the errors of the driver.
#[doc(hidden)]
pub unsafe fn launch<S: HostScope, P, K, A: Arguments<P>>(
    function: &Function<K>,
    call: &Call<'_>,
    stream: &Stream,
    grid: S::Grid,
    arguments: A,
) -> Result<()> {
    call.check_attributes(S::CLUSTER != [0; 3])?;
    let prepared = arguments.prepare(call)?;
    let configuration =
        S::configuration(grid).map_err(|reason| Error::argument(call.operation, reason))?;
    let Some(config) = configuration else {
        // The grid is empty.
        return Ok(());
    };
    call.check_grid(&config, A::PARAMETERS)?;
    let config = config.with_shared_bytes(A::shared_bytes(&prepared));
    function.allow_shared_bytes(stream.context(), config.shared_bytes)?;
    let arguments = Bound::<A, P> {
        prepared,
        _parameters: PhantomData,
    };
    let attributes = match call.attributes {
        None if !S::IS_COOPERATIVE => {
            // SAFETY: the kernel is safe code, and receives what its parameters require: the caller
            // guarantees the types, and the grid, the sizes and the borrows were checked.
            return unsafe { function.kernel().launch(stream, config, arguments) };
        }
        None => LaunchAttributes::new(),
        Some(attributes) => *attributes,
    };
    let attributes = if S::IS_COOPERATIVE {
        attributes.with_cooperative(true)
    } else {
        attributes
    };
    // SAFETY: as without attributes, which `check_attributes` limits to those that do not change
    // the order of work.
    let launched = unsafe {
        function
            .kernel()
            .launch_with(stream, config, &attributes, arguments)
    };
    launched.map_err(|error| explain::<S, K>(error, function, call, stream, &config))
}

/// Adds the maximum to the error of a cooperative launch with too many blocks.
#[cold]
fn explain<S: HostScope, K>(
    error: Error,
    function: &Function<K>,
    call: &Call<'_>,
    stream: &Stream,
    config: &LaunchConfig,
) -> Error {
    let is_too_large = error.code() == Some(CUresult::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    let maximum = is_too_large
        .then(|| function.suggested_blocks::<S>(stream.context(), config.shared_bytes as usize));
    match maximum {
        Some(Ok(maximum)) => Error::argument(
            call.operation,
            format!(
                "the grid has {} blocks, and at most {maximum} are resident at the same time, which a cooperative grid requires",
                config.grid.total()
            ),
        ),
        _ => error,
    }
}

/// The prepared arguments of a launch, for the driver.
struct Bound<A: Arguments<P>, P> {
    prepared: A::Prepared,
    _parameters: PhantomData<P>,
}

// SAFETY: the addresses are those of the kernel's words, bound to the stream.
unsafe impl<A: Arguments<P>, P> DriverArguments<Untyped> for Bound<A, P> {
    fn launch_with(
        self,
        operation: &mut Operation<'_>,
        launch: impl FnOnce(&Operation<'_>, *mut *mut c_void) -> Result<()>,
    ) -> Result<()> {
        A::launch_with(self.prepared, operation, launch)
    }
}

macro_rules! tuples {
    ($count:literal: $($index:tt $parameter:ident $argument:ident),*) => {
        // SAFETY: each word is that of the argument for its parameter, in order; absent words are
        // left out, as on the device.
        unsafe impl<$($parameter: Parameter, $argument: Argument<$parameter>),*> Arguments<($($parameter,)*)> for ($($argument,)*) {
            type Prepared = ($($argument::Prepared,)*);

            const PARAMETERS: &'static [Description] = &[$($parameter::DESCRIPTION),*];

            #[allow(unused_variables, clippy::unused_unit, reason = "the empty tuple has nothing to prepare")]
            fn prepare(self, call: &Call<'_>) -> Result<Self::Prepared> {
                let prepared = ($(self.$index.prepare().map_err(|reason| call.argument_error($index, &reason))?,)*);
                call.check_images(&[$(prepared.$index.image()),*])?;
                Ok(prepared)
            }

            #[allow(unused_variables, reason = "the empty tuple has no shared memory")]
            fn shared_bytes(prepared: &Self::Prepared) -> u32 {
                0 $(+ prepared.$index.shared_bytes())*
            }

            #[allow(unused_variables, unused_mut, clippy::unused_unit, reason = "the empty tuple has nothing to bind")]
            fn launch_with(
                mut prepared: Self::Prepared,
                operation: &mut Operation<'_>,
                launch: impl FnOnce(&Operation<'_>, *mut *mut c_void) -> Result<()>,
            ) -> Result<()> {
                // SAFETY: `launched` is called for each argument below, and none is used in
                // between.
                let mut words = ($(unsafe { prepared.$index.bind(operation) }?,)*);
                let mut addresses: [*mut c_void; 3 * $count] = [std::ptr::null_mut(); 3 * $count];
                let mut count = 0;
                $(
                    let [first, second, third] = $parameter::DESCRIPTION.words;
                    for (word, address) in [
                        (first, (&raw mut words.$index.first).cast::<c_void>()),
                        (second, (&raw mut words.$index.second).cast()),
                        (third, (&raw mut words.$index.third).cast()),
                    ] {
                        if !word.is_absent() {
                            addresses[count] = address;
                            count += 1;
                        }
                    }
                )*
                launch(operation, addresses.as_mut_ptr())?;
                // SAFETY: each argument was bound under this operation above, and not used since.
                $(unsafe { prepared.$index.launched(operation) };)*
                Ok(())
            }
        }
    };
}

tuples!(0:);
tuples!(1: 0 P0 A0);
tuples!(2: 0 P0 A0, 1 P1 A1);
tuples!(3: 0 P0 A0, 1 P1 A1, 2 P2 A2);
tuples!(4: 0 P0 A0, 1 P1 A1, 2 P2 A2, 3 P3 A3);
tuples!(5: 0 P0 A0, 1 P1 A1, 2 P2 A2, 3 P3 A3, 4 P4 A4);
tuples!(6: 0 P0 A0, 1 P1 A1, 2 P2 A2, 3 P3 A3, 4 P4 A4, 5 P5 A5);
tuples!(7: 0 P0 A0, 1 P1 A1, 2 P2 A2, 3 P3 A3, 4 P4 A4, 5 P5 A5, 6 P6 A6);
tuples!(8: 0 P0 A0, 1 P1 A1, 2 P2 A2, 3 P3 A3, 4 P4 A4, 5 P5 A5, 6 P6 A6, 7 P7 A7);
tuples!(9: 0 P0 A0, 1 P1 A1, 2 P2 A2, 3 P3 A3, 4 P4 A4, 5 P5 A5, 6 P6 A6, 7 P7 A7, 8 P8 A8);
tuples!(10: 0 P0 A0, 1 P1 A1, 2 P2 A2, 3 P3 A3, 4 P4 A4, 5 P5 A5, 6 P6 A6, 7 P7 A7, 8 P8 A8, 9 P9 A9);
tuples!(11: 0 P0 A0, 1 P1 A1, 2 P2 A2, 3 P3 A3, 4 P4 A4, 5 P5 A5, 6 P6 A6, 7 P7 A7, 8 P8 A8, 9 P9 A9, 10 P10 A10);
tuples!(12: 0 P0 A0, 1 P1 A1, 2 P2 A2, 3 P3 A3, 4 P4 A4, 5 P5 A5, 6 P6 A6, 7 P7 A7, 8 P8 A8, 9 P9 A9, 10 P10 A10, 11 P11 A11);
