//! The result of a planned product is not one of its factors.

use curium_blas::lt::{MatmulPlan, Operands};
use curium_driver::Stream;
use curium_memory::DeviceBuffer;

fn square(plan: &mut MatmulPlan, stream: &Stream, mut buffer: DeviceBuffer<f32>) {
    let operands = Operands::new(&buffer, &buffer, &mut buffer);
    plan.execute(stream, operands).unwrap();
}

fn main() {}
