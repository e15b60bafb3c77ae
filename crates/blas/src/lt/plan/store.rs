//! Plans as bytes, for later runs of a program.

use std::fmt;

use super::MatmulPlan;
use crate::error::{PlanError, Result};
use crate::lt::descriptor::Descriptors;
use crate::lt::matmul::Reader;
use crate::lt::{Algorithm, BlasLt, Matmul};

const OPERATION: &str = "MatmulPlan::from_bytes";

/// The first bytes of a record, and the version of its format.
const MAGIC: u64 = u64::from_le_bytes(*b"cublaslt");
const FORMAT: u64 = 1;

/// The library and the device that an algorithm is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::lt) struct Target([u64; 5]);

impl Target {
    pub(in crate::lt) fn current(lt: &BlasLt) -> Self {
        let version = lt.library().version();
        let capability = lt.capability();
        Self(
            [
                version.major,
                version.minor,
                version.patch,
                capability.major,
                capability.minor,
            ]
            .map(u64::from),
        )
    }

    pub(in crate::lt) fn numbers(self) -> [u64; 5] {
        self.0
    }
}

impl MatmulPlan {
    /// Returns the plan as bytes: the description, the algorithm, and the versions of the library
    /// and of the device that it is for.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut numbers = vec![MAGIC, FORMAT];
        numbers.extend(Target::current(&self.lt).numbers());
        numbers.push(self.prepared.is_some().into());
        if let Some(algorithm) = self.algorithm() {
            numbers.extend(algorithm.raw);
        }
        let mut bytes: Vec<u8> = numbers.into_iter().flat_map(u64::to_le_bytes).collect();
        bytes.extend(self.matmul.to_bytes());
        bytes.extend(checksum(&bytes).to_le_bytes());
        bytes
    }

    /// Creates a plan from the result of [`MatmulPlan::to_bytes`], with the same algorithm.
    ///
    /// CUDA: `cublasLtMatmulAlgoCheck`.
    ///
    /// # Safety
    ///
    /// `bytes` are the result of [`MatmulPlan::to_bytes`], without deliberate changes: the library
    /// trusts the bytes of an algorithm, and the checksum detects only accidental damage.
    ///
    /// # Errors
    ///
    /// [`Error::Plan`](crate::Error::Plan) if the bytes are damaged, or the plan is for another
    /// version of the library or another device. Create a new plan in this case. An error while the
    /// thread captures.
    #[doc(alias = "cublasLtMatmulAlgoCheck")]
    pub unsafe fn from_bytes(lt: &BlasLt, bytes: &[u8]) -> Result<Self> {
        curium_driver::extend::refuse_wait(OPERATION)?;
        let len = bytes.len();
        let (record, sum) = bytes.split_last_chunk().ok_or_else(|| damaged(len))?;
        if checksum(record) != u64::from_le_bytes(*sum) {
            return Err(damaged(len));
        }
        let mut reader = Reader(record);
        if (reader.number(), reader.number()) != (Some(MAGIC), Some(FORMAT)) {
            return Err(damaged(len));
        }
        let target = target(&mut reader).ok_or_else(|| damaged(len))?;
        if target != Target::current(lt) {
            return Err(other_target(target, Target::current(lt)));
        }
        let algorithm = algorithm(&mut reader).ok_or_else(|| damaged(len))?;
        let matmul = Matmul::read(&mut reader).ok_or_else(|| damaged(len))?;
        matmul.check(lt.capability())?;
        let Some(raw) = algorithm else {
            return Ok(Self::with(lt, &matmul, None));
        };
        let descriptors = Descriptors::new(lt, &matmul)?;
        // SAFETY: the caller guarantees that the bytes are those of a plan, and the version is that
        // of the library.
        let Some(algorithm) = unsafe { Algorithm::check(lt, &descriptors, raw) }? else {
            return Err(PlanError::refused(
                OPERATION,
                format!("the library does not support the algorithm ({matmul})"),
            ));
        };
        Ok(Self::with(lt, &matmul, Some((descriptors, algorithm))))
    }
}

fn target(reader: &mut Reader<'_>) -> Option<Target> {
    let mut numbers = [0; 5];
    for number in &mut numbers {
        *number = reader.number()?;
    }
    Some(Target(numbers))
}

/// Reads an optional algorithm.
fn algorithm(reader: &mut Reader<'_>) -> Option<Option<[u64; 8]>> {
    if reader.number()? == 0 {
        return Some(None);
    }
    let mut raw = [0; 8];
    for number in &mut raw {
        *number = reader.number()?;
    }
    Some(Some(raw))
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch, capability_major, capability_minor] = self.0;
        write!(
            formatter,
            "cuBLASLt {major}.{minor}.{patch} and compute capability {capability_major}.{capability_minor}"
        )
    }
}

#[cold]
fn damaged(len: usize) -> crate::Error {
    PlanError::refused(OPERATION, format!("not a serialized plan ({len} bytes)"))
}

#[cold]
fn other_target(stored: Target, current: Target) -> crate::Error {
    let problem = format!("the plan is for {stored}, this is {current}; create a new plan");
    PlanError::refused(OPERATION, problem)
}

/// Returns the FNV-1a hash of bytes.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
