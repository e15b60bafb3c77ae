//! A product with its algorithm.

mod execute;
mod store;

use curium_driver::Stream;
use curium_driver::extend::refuse_wait;
use curium_memory::DeviceBuffer;

pub(super) use self::store::Target;
use super::descriptor::Descriptors;
use super::epilogue::Access;
use super::role::{ByRole, Requirement, Role, Roles};
use super::{Algorithm, BlasLt, ElementType, Matmul};
use crate::error::{PlanError, Result};

/// A matrix product with an algorithm of cuBLASLt. The algorithm is selected when the plan is
/// created and does not change, also in graphs and if less memory is free later.
///
/// Operations are enqueued on any stream of the context. They borrow the plan exclusively, because
/// its descriptors contain the addresses of biases and scales. Operands may be in buffers of any
/// stream, as for kernels. In a capture (`Graph::capture`), create the plan before, and pass the
/// capture scope to [`execute`](Self::execute): the graph keeps the operands and the workspace.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// # let cublaslt = curium_sim_libraries::cublaslt();
/// # /*
/// let driver = Driver::load()?;
/// let cublaslt = CuBlasLt::load()?;
/// # */
/// use curium_blas::MatrixLayout;
/// use curium_blas::lt::{BlasLt, Epilogue, Matmul, MatmulPlan, Operands, PlanOptions, TypedLayout};
/// use curium_memory::DeviceBuffer;
///
/// let stream = driver.device(0)?.primary_context()?.stream()?;
/// let lt = BlasLt::new(&cublaslt, stream.context())?;
/// let square = TypedLayout::new::<f32>(MatrixLayout::row_major(2, 2));
/// let layer = Matmul::new(square, square, square).with_epilogue(Epilogue::ReluBias);
/// let mut plan = MatmulPlan::new(&lt, &layer, PlanOptions::default())?;
/// let mut workspace = plan.workspace(&stream)?;
///
/// let input = DeviceBuffer::from_slice(&stream, &[1.0_f32, 2.0, 3.0, 4.0])?;
/// let weights = DeviceBuffer::from_slice(&stream, &[1.0_f32, 0.0, 0.0, -1.0])?;
/// let bias = DeviceBuffer::from_slice(&stream, &[10.0_f32, 3.0])?;
/// let mut output = DeviceBuffer::<f32>::uninit(&stream, 4)?;
/// let operands = Operands::new(&input, &weights, &mut output).with_bias(&bias).with_workspace(&mut workspace);
/// plan.execute(&stream, operands)?;
/// assert_eq!(output.to_vec()?, [11.0, 1.0, 13.0, 0.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MatmulPlan {
    lt: BlasLt,
    matmul: Matmul,
    requirements: ByRole<Option<Requirement>>,
    /// The roles that have a requirement.
    required: Roles,
    /// The descriptors and the algorithm; `None` if the result is empty.
    prepared: Option<(Descriptors, Algorithm)>,
}

/// The options of a [`MatmulPlan`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct PlanOptions {
    /// The maximum size of the workspace in bytes. By default it is the size that NVIDIA recommends
    /// for the device: 32 MiB from compute capability 9.0 on, 4 MiB before.
    pub workspace_limit: Option<usize>,
}

impl PlanOptions {
    /// Sets the maximum size of the workspace in bytes.
    #[must_use]
    pub const fn with_workspace_limit(mut self, bytes: usize) -> Self {
        self.workspace_limit = Some(bytes);
        self
    }

    pub(super) fn workspace_limit_for(self, lt: &BlasLt) -> usize {
        self.workspace_limit
            .unwrap_or(if lt.capability().major >= 9 {
                32 << 20
            } else {
                4 << 20
            })
    }
}

const NEW: &str = "MatmulPlan::new";

impl MatmulPlan {
    /// Creates the plan with the algorithm that the library expects to be the fastest.
    ///
    /// CUDA: `cublasLtMatmulAlgoGetHeuristic`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if the layouts do not agree;
    /// [`Error::Plan`](crate::Error::Plan) if the library has no algorithm; an error while the
    /// thread captures.
    #[doc(alias = "cublasLtMatmulAlgoGetHeuristic")]
    pub fn new(lt: &BlasLt, matmul: &Matmul, options: PlanOptions) -> Result<Self> {
        Self::candidates(lt, matmul, options, 1)?
            .into_iter()
            .next()
            .ok_or_else(|| no_algorithm(NEW, lt, matmul, options))
    }

    /// Creates plans with at most `count` algorithms, in the order in which the library expects
    /// them to be fast. See [`Tuner`](super::Tuner), which measures them.
    ///
    /// CUDA: `cublasLtMatmulAlgoGetHeuristic`.
    ///
    /// # Errors
    ///
    /// As for [`MatmulPlan::new`], except that the list is empty if the library has no algorithm.
    pub fn candidates(
        lt: &BlasLt,
        matmul: &Matmul,
        options: PlanOptions,
        count: usize,
    ) -> Result<Vec<Self>> {
        refuse_wait(NEW)?;
        matmul.check(lt.capability())?;
        if matmul.is_empty() {
            return Ok(vec![Self::with(lt, matmul, None)]);
        }
        let descriptors = Descriptors::new(lt, matmul)?;
        let limit = options.workspace_limit_for(lt);
        let algorithms = Algorithm::search(
            lt,
            matmul,
            &descriptors,
            limit,
            count.clamp(1, MAX_CANDIDATES),
        )?;
        let mut plans = Vec::with_capacity(algorithms.len());
        for algorithm in algorithms {
            plans.push(Self::with(
                lt,
                matmul,
                Some((Descriptors::new(lt, matmul)?, algorithm)),
            ));
        }
        Ok(plans)
    }

    fn with(lt: &BlasLt, matmul: &Matmul, prepared: Option<(Descriptors, Algorithm)>) -> Self {
        let mut requirements = matmul.requirements();
        let bytes = prepared
            .as_ref()
            .map_or(0, |(_, algorithm)| algorithm.workspace_bytes);
        if bytes > 0 {
            requirements[Role::Workspace] =
                Some(Requirement::new(ElementType::U8, bytes, Access::Write, 256));
        }
        let required = Roles::present_in(&requirements);
        Self {
            lt: lt.clone(),
            matmul: *matmul,
            requirements,
            required,
            prepared,
        }
    }

    /// Creates another plan with the same algorithm, for another thread.
    ///
    /// # Errors
    ///
    /// An error of the library.
    pub fn try_clone(&self) -> Result<Self> {
        let prepared = match self.algorithm() {
            Some(algorithm) => Some((Descriptors::new(&self.lt, &self.matmul)?, *algorithm)),
            None => None,
        };
        Ok(Self::with(&self.lt, &self.matmul, prepared))
    }

    /// Allocates a workspace for the plan on `stream`: [`MatmulPlan::workspace_bytes`] bytes, or a
    /// few if the plan requires none.
    ///
    /// # Errors
    ///
    /// An error of the allocation.
    pub fn workspace(&self, stream: &Stream) -> Result<DeviceBuffer<u8>> {
        Ok(DeviceBuffer::uninit(
            stream,
            self.workspace_bytes().max(256),
        )?)
    }

    /// Returns the number of bytes of workspace that the plan requires.
    #[must_use]
    pub fn workspace_bytes(&self) -> usize {
        self.algorithm()
            .map_or(0, |algorithm| algorithm.workspace_bytes)
    }

    /// Returns the algorithm; `None` if the result is empty.
    #[must_use]
    pub fn algorithm(&self) -> Option<&Algorithm> {
        self.prepared.as_ref().map(|(_, algorithm)| algorithm)
    }

    /// Returns the description of the product.
    #[must_use]
    pub fn matmul(&self) -> &Matmul {
        &self.matmul
    }

    /// Returns the handle.
    #[must_use]
    pub fn lt(&self) -> &BlasLt {
        &self.lt
    }
}

/// The maximum number of algorithms that a search returns.
const MAX_CANDIDATES: usize = 1 << 10;

#[cold]
pub(super) fn no_algorithm(
    operation: &'static str,
    lt: &BlasLt,
    matmul: &Matmul,
    options: PlanOptions,
) -> crate::Error {
    let library = lt.library();
    let limit = options.workspace_limit_for(lt);
    let problem = format!(
        "{library:?} has no algorithm ({matmul}, alignment {}, workspace of at most {limit} bytes)",
        matmul.alignment()
    );
    PlanError::refused(operation, problem)
}
