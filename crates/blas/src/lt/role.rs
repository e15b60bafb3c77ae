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
    /// The number of bytes from the first element to the last.
    pub(super) bytes: usize,
    pub(super) access: Use,
    /// The number of bytes that the address is a multiple of.
    pub(super) alignment: usize,
}

impl Requirement {
    /// Returns the requirement of one element.
    pub(super) fn scalar(element: ElementType, access: Use) -> Self {
        Self::new(element, 1, access, element.bytes())
    }

    /// `len` is the number of elements from the first to the last.
    pub(super) fn new(element: ElementType, len: usize, access: Use, alignment: usize) -> Self {
        Self {
            element,
            bytes: len.saturating_mul(element.bytes()),
            access,
            alignment,
        }
    }

    /// Returns the number of elements from the first to the last.
    pub(super) fn len(&self) -> usize {
        self.bytes / self.element.bytes()
    }
}

/// A value for each role.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct ByRole<T>(pub(super) [T; Role::ALL.len()]);

/// A set of roles.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Roles(u16);

impl Roles {
    /// Returns the roles that have a value.
    pub(super) fn with_values<T>(values: &ByRole<Option<T>>) -> Self {
        Role::ALL
            .into_iter()
            .filter(|role| values[*role].is_some())
            .collect()
    }

    #[inline]
    pub(super) fn insert(&mut self, role: Role) {
        self.0 |= 1 << role as u16;
    }

    #[inline]
    pub(super) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[inline]
    pub(super) fn without(self, role: Role) -> Self {
        Self(self.0 & !(1 << role as u16))
    }

    #[inline]
    pub(super) fn is_subset(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// Returns the roles in their order.
    #[inline]
    pub(super) fn iter(self) -> impl Iterator<Item = Role> {
        let mut remaining = self.0;
        std::iter::from_fn(move || {
            let role = *Role::ALL.get(remaining.trailing_zeros() as usize)?;
            remaining &= remaining - 1;
            Some(role)
        })
    }
}

impl FromIterator<Role> for Roles {
    fn from_iter<I: IntoIterator<Item = Role>>(roles: I) -> Self {
        let mut set = Self::default();
        roles.into_iter().for_each(|role| set.insert(role));
        set
    }
}

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

    #[inline]
    fn index(&self, role: Role) -> &T {
        &self.0[role as usize]
    }
}

impl<T> std::ops::IndexMut<Role> for ByRole<T> {
    #[inline]
    fn index_mut(&mut self, role: Role) -> &mut T {
        &mut self.0[role as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_listed_in_their_order() {
        assert!(
            Role::ALL
                .iter()
                .enumerate()
                .all(|(index, role)| *role as usize == index)
        );
    }

    #[test]
    fn roles_are_unique_and_ordered() {
        let some: Roles = [Role::Workspace, Role::A, Role::D, Role::A]
            .into_iter()
            .collect();
        assert_eq!(
            some.iter().collect::<Vec<_>>(),
            [Role::A, Role::D, Role::Workspace]
        );
        assert_eq!(Roles::default().iter().count(), 0);
        let all: Roles = Role::ALL.into_iter().collect();
        assert_eq!(some.union(all).iter().collect::<Vec<_>>(), Role::ALL);
        assert_eq!(
            some.without(Role::A).iter().collect::<Vec<_>>(),
            [Role::D, Role::Workspace]
        );
        assert!(
            some.is_subset(all) && some.without(Role::D).is_subset(some) && !all.is_subset(some)
        );
        let mut values = ByRole([None; Role::ALL.len()]);
        values[Role::Bias] = Some(1);
        assert_eq!(
            Roles::with_values(&values),
            [Role::Bias].into_iter().collect()
        );
    }
}
