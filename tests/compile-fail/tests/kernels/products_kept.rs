//! Products do not leave the code that starts them.

use curium_kernel::prelude::*;

type Square = SwizzledTile<u16, 64, 64>;

#[kernel]
pub fn kernel(
    block: Block<128>,
    mut ring: TmaRing<(Square, Square)>,
    a: TensorMap<Square>,
    b: TensorMap<Square>,
) {
    let mut sums = Registers::new(Accumulators::<64>::ZERO);
    ring.pipeline(&block, 1, |_| (a.at(0, 0), b.at(0, 0)), |_, (a, b)| {
        block.warp_groups_with(&mut sums, |warp_group, sums| {
            let mut kept = None;
            warp_group.multiply(sums, |products| kept = Some(products));
            if let Some(products) = kept {
                products.add_bf16(a, 0, b);
            }
        });
    });
}

fn main() {}
