//! Thread block clusters with a size set by the launch.

use curium_driver::{Graph, LaunchAttributes, LaunchConfig};
use curium_memory::DeviceBuffer;
use curium_tests::{TestDriver, TestResult, driver_test, kernels};

use super::tensor::on_compute_capability;
use super::{buffer, integers, kernel, values};

#[driver_test(on_compute_capability(9))]
fn blocks_read_their_rank_in_the_cluster(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let cluster_kernel = kernel::<(&mut [u32],)>(test, kernels::CLUSTER, "cluster_places");
    let mut output = DeviceBuffer::<u32>::zeroed(&stream, 6 * 8 * 4)?;
    let attributes = LaunchAttributes::new().with_cluster((4, 2));
    // SAFETY: the buffer has six words for each of the blocks.
    unsafe {
        cluster_kernel.launch_with(
            &stream,
            LaunchConfig::new((8, 4), 1),
            &attributes,
            (&mut output,),
        )
    }?;
    let each = |block: u32| {
        let x = block % 8;
        let y = block / 8;
        [y % 2 * 4 + x % 4, 8, x % 4, y % 2, x / 4, 2]
    };
    assert_eq!(values(&output), (0..32).flat_map(each).collect::<Vec<_>>());
    Ok(())
}

/// Blocks of clusters of any size read each other's totals.
#[driver_test(on_compute_capability(9))]
fn cluster_blocks_read_each_others_totals(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let sum = kernel::<(&[u32], &mut [u32])>(test, kernels::CLUSTER, "cluster_sum");
    let input = integers(1, 8 * 96);
    let source = buffer(&stream, &input);
    for cluster in [1_u32, 2, 4, 8] {
        let mut output = DeviceBuffer::<u32>::zeroed(&stream, input.len())?;
        let attributes = LaunchAttributes::new().with_cluster(cluster);
        // SAFETY: the buffers have a word for each thread.
        unsafe {
            sum.launch_with(
                &stream,
                LaunchConfig::new(8, 96),
                &attributes,
                (&source, &mut output),
            )
        }?;
        let threads = cluster as usize * 96;
        let totals = input.chunks(threads).map(|part| {
            part.iter()
                .fold(0_u32, |sum, value| sum.wrapping_add(*value))
        });
        let expected: Vec<u32> = totals
            .flat_map(|total| std::iter::repeat_n(total, threads))
            .collect();
        assert_eq!(values(&output), expected, "clusters of {cluster}");
    }
    Ok(())
}

#[driver_test(on_compute_capability(9))]
fn cluster_blocks_write_words_in_a_ring(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let ring = kernel::<(&[u32], &mut [u32])>(test, kernels::CLUSTER, "cluster_ring");
    let input = integers(2, 8 * 32);
    let source = buffer(&stream, &input);
    let mut output = DeviceBuffer::<u32>::zeroed(&stream, input.len())?;
    let attributes = LaunchAttributes::new().with_cluster(4);
    // SAFETY: the buffers have a word for each thread.
    unsafe {
        ring.launch_with(
            &stream,
            LaunchConfig::new(8, 32),
            &attributes,
            (&source, &mut output),
        )
    }?;
    let mut expected = input;
    expected
        .chunks_mut(4 * 32)
        .for_each(|cluster| cluster.rotate_right(32));
    assert_eq!(values(&output), expected);
    Ok(())
}

/// A cluster of a kernel node stays when its arguments are set again.
#[driver_test(on_compute_capability(9))]
fn kernel_node_update_keeps_its_cluster(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let config = LaunchConfig::new((8, 4), 1);
    let cluster_kernel = kernel::<(&mut [u32],)>(test, kernels::CLUSTER, "cluster_places");
    let outputs = [(); 3]
        .map(|()| DeviceBuffer::<u32>::zeroed(&stream, 6 * 8 * 4).expect("allocation failed"));
    let attributes = LaunchAttributes::new().with_cluster((4, 2));
    let mut graph = Graph::new(&test.context())?;
    let pointers = outputs.each_ref().map(|output| (output.as_pointer(),));
    // SAFETY: the buffers have six words for each of the blocks, and outlive the launches.
    let node =
        unsafe { graph.add_kernel_with(&[], &cluster_kernel, config, &attributes, pointers[0]) }?;
    // SAFETY: the buffers have six words for each of the blocks, and outlive the launches.
    unsafe { graph.set_kernel(&node, &cluster_kernel, config, pointers[1]) }?;
    let mut exec = graph.instantiate()?;
    exec.launch(&stream)?;
    // SAFETY: the buffers have six words for each of the blocks, and outlive the launches.
    unsafe { exec.set_kernel(&node, pointers[2]) }?;
    exec.launch(&stream)?;
    stream.synchronize()?;
    let sizes = outputs.map(|output| {
        values(&output)
            .chunks(6)
            .map(|position| position[1])
            .collect::<Vec<_>>()
    });
    assert_eq!(sizes, [vec![0; 32], vec![8; 32], vec![8; 32]]);
    Ok(())
}
