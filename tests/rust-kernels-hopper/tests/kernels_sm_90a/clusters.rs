//! Clusters and distributed shared memory.

use curium_driver::{Device, LaunchAttributes, Result};
use curium_kernel::host::Blocks;
use curium_memory::DeviceBuffer;
use curium_test_kernels_hopper::Kernels;

use super::on_device;

#[test]
fn distributed_shared_memory() -> Result<()> {
    let x: Vec<u32> = (0..1000).collect();
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let mut y = DeviceBuffer::uninit(stream, 8)?;
        kernels
            .cluster_sums
            .launch(stream, Blocks::new(8), &device_x, &mut y)?;
        let expected: Vec<u32> = x.chunks(256).map(|x| x.iter().sum()).collect();
        for (index, y) in y.to_vec()?.iter().enumerate() {
            assert_eq!(*y, expected[index / 2]);
        }
        Ok(())
    })
}

/// Blocks add to the bins of other blocks.
#[test]
fn histogram_over_a_cluster() -> Result<()> {
    let data: Vec<u8> = (0..3000_u32).map(|i| (i * i % 251) as u8).collect();
    let mut expected = vec![0_u32; 256];
    for byte in &data {
        expected[usize::from(*byte)] += 1;
    }
    on_device(|kernels, stream| {
        let device_data = DeviceBuffer::from_slice(stream, &data)?;
        let mut total = DeviceBuffer::zeroed(stream, 256)?;
        kernels
            .cluster_histogram
            .launch(stream, Blocks::new(8), &device_data, &mut total)?;
        assert_eq!(total.to_vec()?, expected);
        Ok(())
    })
}

#[test]
fn threads_read_the_next_block() -> Result<()> {
    let x: Vec<u32> = (0..256).collect();
    let expected: Vec<u32> = (0..256)
        .map(|i| i / 128 * 128 + (i % 128 + 32) % 128)
        .collect();
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let mut y = DeviceBuffer::uninit(stream, 256)?;
        kernels
            .rotate
            .launch(stream, Blocks::new(8), &device_x, &mut y)?;
        assert_eq!(y.to_vec()?, expected);
        Ok(())
    })
}

#[test]
fn grid_is_whole_clusters() -> Result<()> {
    curium_sim::test(|device: Device| {
        let context = device.primary_context()?;
        let stream = context.stream()?;
        let kernels = Kernels::load(&device)?;
        let suggested = kernels.rotate.suggested_blocks(&context, 0)?;
        assert!(suggested.is_multiple_of(4), "{suggested}");
        let x = DeviceBuffer::<u32>::zeroed(&stream, 256)?;
        let mut y = DeviceBuffer::<u32>::zeroed(&stream, 256)?;
        let launch = kernels.rotate.launch(&stream, Blocks::new(6), &x, &mut y);
        let text = match launch {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        };
        assert!(text.contains("not a multiple of the cluster"), "{text}");
        let attributes = LaunchAttributes::new().with_preferred_cluster((8, 1, 1));
        let launch = kernels
            .rotate
            .launch_with(&stream, Blocks::new(8), &attributes, &x, &mut y);
        let text = match launch {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        };
        assert!(text.contains("the size of the cluster"), "{text}");
        Ok(())
    })
}
