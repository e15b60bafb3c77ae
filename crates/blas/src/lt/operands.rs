//! The operands of one product.

use std::fmt;

use curium_driver::Argument;
use curium_driver::hazard::Operation;
use curium_memory::{DeviceBuffer, DeviceSlice, DeviceView, DeviceViewMut};

use super::epilogue::Access;
use super::role::{ByRole, Requirement, Role, Roles};
use super::{ElementType, MatmulElement};
use crate::error::{Result, ShapeError};
use crate::operand::sealed::Operand;

/// The device memory and the scalars of one product.
///
/// The layouts are those of the plan. The memory of each operand begins with the first element, and
/// contains the last one of the last product.
///
/// `alpha` is 1 and `beta` is 0 unless they are set.
pub struct Operands<'a> {
    slots: ByRole<Option<Slot<'a>>>,
    /// The roles of the slots that have memory.
    set: Roles,
    pub(super) factors: Factors,
}

/// The factors of the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Factors {
    pub(super) alpha: f64,
    pub(super) beta: f64,
}

/// The memory for a role.
struct Slot<'a> {
    memory: Memory<'a>,
    element: ElementType,
}

/// Borrowed device memory.
enum Memory<'a> {
    Read(DeviceView<'a, u8>),
    Write(DeviceViewMut<'a, u8>),
}

impl Factors {
    pub(super) const UNIT: Self = Self {
        alpha: 1.0,
        beta: 0.0,
    };
}

impl<'a> Operands<'a> {
    /// Creates the operands of `d` = `a` · `b`.
    #[must_use]
    #[inline]
    pub fn new<A: MatmulElement, B: MatmulElement, D: MatmulElement>(
        a: &'a DeviceSlice<A>,
        b: &'a DeviceSlice<B>,
        d: &'a mut DeviceSlice<D>,
    ) -> Self {
        Self::empty()
            .read(Role::A, a)
            .read(Role::B, b)
            .write(Role::D, d)
    }

    #[inline]
    fn empty() -> Self {
        // `[const { None }; N]` would copy every byte of each slot; this writes only the tags.
        Self {
            slots: ByRole(std::array::from_fn(|_| None)),
            set: Roles::default(),
            factors: Factors::UNIT,
        }
    }

    /// Sets `alpha` and `beta`, which are converted to the plan's
    /// [scale type](super::Matmul::scale_type).
    #[must_use]
    pub fn with_factors(mut self, alpha: f64, beta: f64) -> Self {
        self.factors = Factors { alpha, beta };
        self
    }

    /// Sets `alpha` and `beta` in device memory, for a plan with
    /// [`Matmul::with_device_factors`](super::Matmul::with_device_factors).
    #[must_use]
    pub fn with_device_factors<T: MatmulElement>(
        self,
        alpha: &'a DeviceSlice<T>,
        beta: &'a DeviceSlice<T>,
    ) -> Self {
        self.read(Role::Alpha, alpha).read(Role::Beta, beta)
    }

    /// Sets the addend, for a plan with a layout for it.
    #[must_use]
    pub fn with_c<T: MatmulElement>(self, c: &'a DeviceSlice<T>) -> Self {
        self.read(Role::C, c)
    }

    /// Sets the bias.
    #[must_use]
    pub fn with_bias<T: MatmulElement>(self, bias: &'a DeviceSlice<T>) -> Self {
        self.read(Role::Bias, bias)
    }

    /// Sets the memory for the gradient of the bias.
    #[must_use]
    pub fn with_bias_gradient<T: MatmulElement>(self, bias: &'a mut DeviceSlice<T>) -> Self {
        self.write(Role::Bias, bias)
    }

    /// Sets the auxiliary memory that the epilogue of a gradient reads.
    #[must_use]
    pub fn with_auxiliary<T: MatmulElement>(self, auxiliary: &'a DeviceSlice<T>) -> Self {
        self.read(Role::Auxiliary, auxiliary)
    }

    /// Sets the auxiliary memory that the epilogue writes.
    #[must_use]
    pub fn with_auxiliary_output<T: MatmulElement>(
        self,
        auxiliary: &'a mut DeviceSlice<T>,
    ) -> Self {
        self.write(Role::Auxiliary, auxiliary)
    }

    /// Sets the factor of `a` in memory.
    #[must_use]
    pub fn with_scale_a(self, scale: &'a DeviceSlice<f32>) -> Self {
        self.read(Role::ScaleA, scale)
    }

    /// Sets the factor of `b` in memory.
    #[must_use]
    pub fn with_scale_b(self, scale: &'a DeviceSlice<f32>) -> Self {
        self.read(Role::ScaleB, scale)
    }

    /// Sets the factor of `c` in memory.
    #[must_use]
    pub fn with_scale_c(self, scale: &'a DeviceSlice<f32>) -> Self {
        self.read(Role::ScaleC, scale)
    }

    /// Sets the factor of `d` in memory.
    #[must_use]
    pub fn with_scale_d(self, scale: &'a DeviceSlice<f32>) -> Self {
        self.read(Role::ScaleD, scale)
    }

    /// Sets the memory for the maximum of the absolute values of `d`.
    #[must_use]
    pub fn with_amax_d(self, amax: &'a mut DeviceSlice<f32>) -> Self {
        self.write(Role::AmaxD, amax)
    }

    /// Sets the workspace, of at least
    /// [`MatmulPlan::workspace_bytes`](super::MatmulPlan::workspace_bytes) bytes. Products that
    /// share a workspace run one after the other.
    #[must_use]
    #[inline]
    pub fn with_workspace(self, workspace: &'a mut DeviceSlice<u8>) -> Self {
        self.write(Role::Workspace, workspace)
    }

    /// Creates operands of bytes that are taken for the elements that the plan requires.
    pub(super) fn from_byte_buffers(
        buffers: impl Iterator<Item = (Role, Option<Requirement>, &'a mut DeviceBuffer<u8>)>,
    ) -> Self {
        let mut operands = Self::empty();
        for (role, requirement, buffer) in buffers {
            let (element, access) = requirement
                .map_or((ElementType::U8, Access::Write), |requirement| {
                    (requirement.element, requirement.access)
                });
            let memory = match access {
                Access::Read => Memory::Read(buffer.view()),
                Access::Write => Memory::Write(buffer.view_mut()),
            };
            operands.insert(role, Slot { memory, element });
        }
        operands
    }

    #[inline]
    fn insert(&mut self, role: Role, slot: Slot<'a>) {
        self.slots[role] = Some(slot);
        self.set.insert(role);
    }

    #[inline]
    fn read<T: MatmulElement>(mut self, role: Role, memory: &'a DeviceSlice<T>) -> Self {
        let memory = Memory::Read(memory.as_bytes());
        self.insert(
            role,
            Slot {
                memory,
                element: T::TYPE,
            },
        );
        self
    }

    #[inline]
    fn write<T: MatmulElement>(mut self, role: Role, memory: &'a mut DeviceSlice<T>) -> Self {
        let memory = Memory::Write(memory.as_bytes_mut());
        self.insert(
            role,
            Slot {
                memory,
                element: T::TYPE,
            },
        );
        self
    }

    /// Checks that the memory is what the plan requires.
    #[inline]
    pub(super) fn check(
        &self,
        operation: &'static str,
        requirements: &ByRole<Option<Requirement>>,
        required: Roles,
    ) -> Result<()> {
        let is_satisfied =
            required
                .iter()
                .all(|role| match (&requirements[role], &self.slots[role]) {
                    (Some(requirement), Some(slot)) => slot.satisfies(requirement),
                    _ => false,
                });
        // A workspace that is shared with other plans may be present.
        if is_satisfied && self.set.without(Role::Workspace).is_subset(required) {
            return Ok(());
        }
        self.explain(operation, requirements, required)
    }

    /// Returns the error of [`Self::check`].
    #[cold]
    fn explain(
        &self,
        operation: &'static str,
        requirements: &ByRole<Option<Requirement>>,
        required: Roles,
    ) -> Result<()> {
        for role in required.union(self.set).iter() {
            let problem = match (&requirements[role], &self.slots[role]) {
                (Some(requirement), Some(slot)) => slot.problem(role, requirement),
                (Some(requirement), None) => Some(missing(role, requirement)),
                (None, Some(_)) if role != Role::Workspace => {
                    Some(format!("the plan does not use {}", role.name()))
                }
                (None, _) => None,
            };
            if let Some(problem) = problem {
                return Err(ShapeError::refused(operation, problem));
            }
        }
        Ok(())
    }

    /// Returns the address for a role, 0 if there is none.
    #[inline]
    pub(super) fn address(&self, role: Role) -> u64 {
        self.slots[role]
            .as_ref()
            .map_or(0, |slot| slot.memory.address())
    }

    /// Makes the operation's stream wait for the accesses that conflict with those of the product
    /// to the memory of `roles`.
    ///
    /// # Safety
    ///
    /// If the product is enqueued, `launched` is called before the memory is used for anything
    /// else.
    #[inline]
    pub(super) unsafe fn bind(
        &mut self,
        roles: Roles,
        operation: &mut Operation<'_>,
    ) -> curium_driver::Result<()> {
        for role in roles.iter() {
            if let Some(slot) = &mut self.slots[role] {
                // SAFETY: the caller calls `launched` with these roles if the product is enqueued.
                unsafe { slot.memory.bind(operation) }?;
            }
        }
        Ok(())
    }

    /// Records that the product was enqueued on the operation's stream.
    ///
    /// # Safety
    ///
    /// `bind` succeeded with the same operation and roles.
    #[inline]
    pub(super) unsafe fn launched(&mut self, roles: Roles, operation: &mut Operation<'_>) {
        for role in roles.iter() {
            if let Some(slot) = &mut self.slots[role] {
                // SAFETY: the caller's `bind` succeeded with this operation and these roles.
                unsafe { slot.memory.launched(operation) };
            }
        }
    }
}

impl Slot<'_> {
    /// Returns `true` if the memory is what the plan requires. Alignments are powers of two.
    #[inline]
    fn satisfies(&self, requirement: &Requirement) -> bool {
        let Requirement {
            element,
            bytes,
            access,
            alignment,
        } = *requirement;
        self.element == element
            && self.memory.len() >= bytes
            && (access == Access::Write) == matches!(self.memory, Memory::Write(_))
            && self.memory.address() & (alignment as u64 - 1) == 0
    }

    fn problem(&self, role: Role, requirement: &Requirement) -> Option<String> {
        let Requirement {
            element,
            access,
            alignment,
            ..
        } = *requirement;
        let name = role.name();
        let len = requirement.len();
        if self.element != element {
            return Some(format!(
                "{name} consists of {}, the plan's of {element}",
                self.element
            ));
        }
        let available = self.memory.len() / element.bytes();
        if available < len {
            return Some(format!(
                "memory too small for {name} ({len} elements, {available} available)"
            ));
        }
        if access == Access::Write && matches!(self.memory, Memory::Read(_)) {
            return Some(format!(
                "the plan writes {name}; use the method for an output"
            ));
        }
        if access == Access::Read && matches!(self.memory, Memory::Write(_)) {
            return Some(format!(
                "the plan reads {name}; use the method for an input"
            ));
        }
        let address = self.memory.address();
        if !address.is_multiple_of(alignment as u64) {
            let problem = format!(
                "the address of {name} is not a multiple of {alignment} bytes ({address:#x})"
            );
            let is_matrix = matches!(role, Role::A | Role::B | Role::C | Role::D);
            return Some(
                problem
                    + if is_matrix {
                        "; create the plan with a smaller alignment"
                    } else {
                        ""
                    },
            );
        }
        None
    }
}

fn missing(role: Role, requirement: &Requirement) -> String {
    let Requirement {
        element, access, ..
    } = requirement;
    let verb = if *access == Access::Write {
        "writes"
    } else {
        "reads"
    };
    format!(
        "{} is missing (the plan {verb} {} elements of {element})",
        role.name(),
        requirement.len()
    )
}

impl Memory<'_> {
    #[inline]
    fn address(&self) -> u64 {
        match self {
            Self::Read(memory) => memory.as_pointer().as_raw(),
            Self::Write(memory) => memory.as_pointer().as_raw(),
        }
    }

    #[inline]
    fn len(&self) -> usize {
        match self {
            Self::Read(memory) => memory.len(),
            Self::Write(memory) => memory.len(),
        }
    }
}

impl Operand for Memory<'_> {
    #[inline]
    unsafe fn bind(&mut self, operation: &mut Operation<'_>) -> curium_driver::Result<()> {
        match self {
            // SAFETY: the caller calls `launched` after the operation was enqueued.
            Self::Read(memory) => unsafe { Argument::<&[u8]>::bind(memory, operation) }.map(|_| ()),
            Self::Write(memory) => {
                // SAFETY: the caller calls `launched` after the operation was enqueued.
                unsafe { Argument::<&mut [u8]>::bind(memory, operation) }.map(|_| ())
            }
        }
    }

    #[inline]
    unsafe fn launched(&mut self, operation: &mut Operation<'_>) {
        match self {
            // SAFETY: `bind` succeeded with this operation.
            Self::Read(memory) => unsafe { Argument::<&[u8]>::launched(memory, operation) },
            // SAFETY: `bind` succeeded with this operation.
            Self::Write(memory) => unsafe { Argument::<&mut [u8]>::launched(memory, operation) },
        }
    }
}

impl fmt::Debug for Operands<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = formatter.debug_map();
        for role in Role::ALL {
            if let Some(slot) = &self.slots[role] {
                map.entry(
                    &role,
                    &format_args!("{} bytes of {}", slot.memory.len(), slot.element),
                );
            }
        }
        map.finish()
    }
}
