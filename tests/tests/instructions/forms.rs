//! The instruction forms, by family.

mod atomic;
mod bits;
mod compare;
mod convert;
mod extended;
mod float;
mod function;
mod half;
mod integer;
mod narrow;
mod video;

use crate::form::Form;

/// A family of instructions and its forms.
pub(crate) struct Family {
    pub(crate) name: &'static str,
    pub(crate) forms: Vec<Form>,
}

/// Creates a family.
fn family(name: &'static str, forms: Vec<Form>) -> Family {
    Family { name, forms }
}

/// Returns all families.
pub(crate) fn families() -> Vec<Family> {
    vec![
        family("integer arithmetic", integer::forms()),
        family("extended precision", extended::forms()),
        family("logic and bits", bits::forms()),
        family("floating point", float::forms()),
        family("halves", half::forms()),
        family("functions", function::forms()),
        family("comparison and selection", compare::forms()),
        family("conversion", convert::forms()),
        family("conversion to small formats", narrow::forms()),
        family("video", video::forms()),
        family("atomic", atomic::forms()),
    ]
}
