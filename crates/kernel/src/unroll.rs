//! Loops that are unrolled.

/// Repeats a block for each index, like a loop with `#pragma unroll`.
///
/// LLVM unrolls small loops by itself. A loop that indexes an array in registers has to be
/// unrolled, because registers have no addresses: the array would be in local memory. This macro
/// guarantees it for blocks of any size. The range is `0..2`, `0..4`, `0..8`, `0..16` or `0..32`,
/// in these spellings. The block cannot `break` or `continue`.
///
/// ```
/// use curium_kernel::unroll;
///
/// let mut squares = [0; 8];
/// unroll!(i in 0..8 {
///     squares[i] = i * i;
/// });
/// assert_eq!(squares, [0, 1, 4, 9, 16, 25, 36, 49]);
/// ```
#[doc(alias = "#pragma unroll")]
#[macro_export]
macro_rules! unroll {
    ($index:ident in 0..2 $body:block) => {
        $crate::unroll!(@ $index [0 1] $body)
    };
    ($index:ident in 0..4 $body:block) => {
        $crate::unroll!(@ $index [0 1 2 3] $body)
    };
    ($index:ident in 0..8 $body:block) => {
        $crate::unroll!(@ $index [0 1 2 3 4 5 6 7] $body)
    };
    ($index:ident in 0..16 $body:block) => {
        $crate::unroll!(@ $index [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15] $body)
    };
    ($index:ident in 0..32 $body:block) => {
        $crate::unroll!(
            @ $index
            [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31]
            $body
        )
    };
    (@ $index:ident [$($value:literal)*] $body:block) => {{
        $({
            let $index: usize = $value;
            $body
        })*
    }};
}
