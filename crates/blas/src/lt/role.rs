//! The memory that a product uses, by its role.

use super::ElementType;
use super::epilogue::Access;

/// Declares the roles with their names in errors.
macro_rules! roles {
    ($($role:ident = $name:literal,)*) => {
        /// The role of memory in a product.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub(super) enum Role {
            $($role,)*
        }

        impl Role {
            pub(super) const ALL: [Self; [$($name),*].len()] = [$(Self::$role),*];

            /// Returns the name in errors.
            pub(super) const fn name(self) -> &'static str {
                match self {
                    $(Self::$role => $name,)*
                }
            }
        }
    };
}

roles! {
    A = "a",
    B = "b",
    C = "c",
    D = "d",
    Alpha = "alpha",
    Beta = "beta",
    Bias = "the bias",
    Auxiliary = "the auxiliary memory",
    ScaleA = "the scale of a",
    ScaleB = "the scale of b",
    ScaleC = "the scale of c",
    ScaleD = "the scale of d",
    AmaxD = "the maximum of d",
    Workspace = "the workspace",
}

/// The memory that a product requires for one role.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Requirement {
    pub(super) element: ElementType,
    /// The number of bytes from the first element to the last.
    pub(super) bytes: usize,
    pub(super) access: Access,
    /// The number of bytes that the address is a multiple of.
    pub(super) alignment: usize,
}

impl Requirement {
    /// Returns the requirement of one element.
    pub(super) fn scalar(element: ElementType, access: Access) -> Self {
        Self::new(element, 1, access, element.bytes())
    }

    /// `len` is the number of elements from the first to the last.
    pub(super) fn new(element: ElementType, len: usize, access: Access, alignment: usize) -> Self {
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
    pub(super) fn present_in<T>(values: &ByRole<Option<T>>) -> Self {
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
        for role in roles {
            set.insert(role);
        }
        set
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

    fn roles(roles: &[Role]) -> Roles {
        roles.iter().copied().collect()
    }

    #[test]
    fn set_is_unique_and_ordered() {
        let set = roles(&[Role::Workspace, Role::A, Role::D, Role::A]);
        let order: Vec<_> = set.iter().collect();
        assert_eq!(order, [Role::A, Role::D, Role::Workspace]);
        assert_eq!(Roles::default().iter().count(), 0);
        let order: Vec<_> = roles(&Role::ALL).iter().collect();
        assert_eq!(order, Role::ALL);
    }

    #[test]
    fn union_has_the_roles_of_both() {
        let union = roles(&[Role::A, Role::B]).union(roles(&[Role::B, Role::D]));
        assert_eq!(union, roles(&[Role::A, Role::B, Role::D]));
    }

    #[test]
    fn without_removes_one_role() {
        let set = roles(&[Role::A, Role::D]);
        assert_eq!(set.without(Role::A), roles(&[Role::D]));
        assert_eq!(set.without(Role::B), set);
    }

    #[test]
    fn subset_has_no_other_role() {
        let set = roles(&[Role::A, Role::D]);
        assert!(set.is_subset(set));
        assert!(roles(&[Role::D]).is_subset(set));
        assert!(!set.is_subset(roles(&[Role::D])));
    }

    #[test]
    fn present_roles_have_a_value() {
        let mut values = ByRole([None; Role::ALL.len()]);
        values[Role::Bias] = Some(1);
        assert_eq!(Roles::present_in(&values), roles(&[Role::Bias]));
    }
}
