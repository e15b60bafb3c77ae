//! The memory that a product uses, by its role.

use super::ElementType;
use super::epilogue::Use;

/// The role of memory in a product.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Role {
    A,
    B,
    C,
    D,
    Alpha,
    Beta,
    Bias,
    Auxiliary,
    ScaleA,
    ScaleB,
    ScaleC,
    ScaleD,
    AmaxD,
    Workspace,
}

/// The memory that a product requires for one role.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Requirement {
    pub(super) element: ElementType,
    /// The number of elements from the first to the last.
    pub(super) len: usize,
    pub(super) access: Use,
    /// The number of bytes that the address is a multiple of.
    pub(super) alignment: usize,
}

/// A value for each role.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct ByRole<T>(pub(super) [T; Role::ALL.len()]);

impl Role {
    pub(super) const ALL: [Self; 14] = [
        Self::A,
        Self::B,
        Self::C,
        Self::D,
        Self::Alpha,
        Self::Beta,
        Self::Bias,
        Self::Auxiliary,
        Self::ScaleA,
        Self::ScaleB,
        Self::ScaleC,
        Self::ScaleD,
        Self::AmaxD,
        Self::Workspace,
    ];

    /// Returns the name in errors.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
            Self::C => "c",
            Self::D => "d",
            Self::Alpha => "alpha",
            Self::Beta => "beta",
            Self::Bias => "the bias",
            Self::Auxiliary => "the auxiliary memory",
            Self::ScaleA => "the scale of a",
            Self::ScaleB => "the scale of b",
            Self::ScaleC => "the scale of c",
            Self::ScaleD => "the scale of d",
            Self::AmaxD => "the maximum of d",
            Self::Workspace => "the workspace",
        }
    }
}

impl<T> std::ops::Index<Role> for ByRole<T> {
    type Output = T;

    fn index(&self, role: Role) -> &T {
        &self.0[role as usize]
    }
}

impl<T> std::ops::IndexMut<Role> for ByRole<T> {
    fn index_mut(&mut self, role: Role) -> &mut T {
        &mut self.0[role as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_listed_in_their_order() {
        assert!(Role::ALL.iter().enumerate().all(|(index, role)| *role as usize == index));
    }
}
