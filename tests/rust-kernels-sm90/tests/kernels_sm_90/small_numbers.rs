//! Instructions of newer GPUs, on the simulator with all checks.

use curium_driver::{Result, Stream};
use curium_kernel::{Bf16x2, E4m3x2, E5m2x2, F16x2, F32x2};
use curium_memory::DeviceBuffer;
use curium_test_kernels_sm90::Kernels;

fn on_device(body: impl Fn(&Kernels, &Stream) -> Result<()>) -> Result<()> {
    curium_test_mutants::on_device(Kernels::load, Kernels::from_library, body)
}

/// The instructions convert as integer arithmetic does.
#[test]
fn fp8_by_instructions() -> Result<()> {
    let mut random = fastrand::Rng::with_seed(5);
    let mut x: Vec<F32x2> = (0..500)
        .map(|_| F32x2::new(random.f32() * 900.0 - 450.0, random.f32() * 0.02))
        .collect();
    x.push(F32x2::new(f32::INFINITY, -1e9));
    x.push(F32x2::new(-0.0, 448.0));
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let mut codes = DeviceBuffer::<u16>::uninit(stream, 4 * x.len())?;
        let mut back = DeviceBuffer::<u32>::uninit(stream, 2 * x.len())?;
        kernels
            .fp8
            .launch(stream, x.len(), &device_x, &mut codes, &mut back)?;
        let codes = codes.to_vec()?;
        let back = back.to_vec()?;
        for (i, x) in x.iter().enumerate() {
            let half = F16x2::new(x.x, x.y);
            let e4m3 = E4m3x2::new(x.x, x.y);
            let e5m2 = E5m2x2::new(x.x, x.y);
            let expected = [
                e4m3,
                E4m3x2::from_bits(e5m2.to_bits()),
                E4m3x2::from_f16x2(half),
                E4m3x2::from_bits(E5m2x2::from_f16x2(half).to_bits()),
            ];
            let expected = expected.map(E4m3x2::to_bits);
            assert_eq!(codes[4 * i..4 * i + 4], expected, "{x:?}");
            assert_eq!(F16x2::from_bits(back[2 * i]).to_f32s(), e4m3.to_f32s());
            assert_eq!(F16x2::from_bits(back[2 * i + 1]).to_f32s(), e5m2.to_f32s());
        }
        Ok(())
    })
}

#[test]
fn functions_of_bfloat16() -> Result<()> {
    let x: Vec<F32x2> = (-40..40_i16)
        .map(|i| F32x2::new(f32::from(i) / 10.0, f32::from(i)))
        .collect();
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let mut y = DeviceBuffer::<u32>::uninit(stream, 2 * x.len())?;
        kernels
            .bf16_functions
            .launch(stream, x.len(), &device_x, &mut y)?;
        for (x, y) in x.iter().zip(y.to_vec()?.chunks(2)) {
            let numbers = Bf16x2::new(x.x, x.y).to_f32s();
            for (lane, number) in numbers.into_iter().enumerate() {
                let power = Bf16x2::from_bits(y[0]).to_f32s()[lane];
                let tangent = Bf16x2::from_bits(y[1]).to_f32s()[lane];
                assert!(
                    (power / number.exp2() - 1.0).abs() < 0.01,
                    "{number}: {power}"
                );
                assert!(
                    (tangent - number.tanh()).abs() < 0.01,
                    "{number}: {tangent}"
                );
            }
        }
        Ok(())
    })
}
