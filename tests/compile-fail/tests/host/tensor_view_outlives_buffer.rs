//! A tensor view does not outlive the buffer, and is not created from a map alone.

use curium_driver::{LaunchConfig, SafeKernel, Stream};
use curium_memory::{DeviceBuffer, TensorLayout, TensorMap, TensorRead, TensorView};

fn view<'a>(buffer: DeviceBuffer<f32>, layout: &TensorLayout) -> TensorView<'a> {
    TensorView::tiled(&buffer, layout, &[4, 4]).unwrap()
}

fn launch(stream: &Stream, kernel: &SafeKernel<(TensorRead,)>, map: TensorMap) {
    kernel.launch(stream, LaunchConfig::new(1, 32), (map,)).unwrap();
}

fn main() {}
