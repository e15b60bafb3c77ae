//! Thread block clusters with a size set by the launch.

use curium_driver::{Graph, LaunchAttributes, LaunchConfig};
use curium_memory::DeviceBuffer;
use curium_tests::kernels;

use super::tensor::on_device_of;
use super::{buffer, integers, kernel, values};

#[test]
fn blocks_read_their_rank_in_the_cluster() {
    on_device_of(9, |test| {
        let stream = test.stream();
        let places = kernel::<(&mut [u32],)>(test, kernels::CLUSTER, "cluster_places");
        let mut output = DeviceBuffer::<u32>::zeroed(&stream, 6 * 8 * 4).expect("memory suffices");
        let attributes = LaunchAttributes::new().with_cluster((4, 2));
        // SAFETY: the buffer has six words for each of the blocks.
        unsafe {
            places.launch_with(
                &stream,
                LaunchConfig::new((8, 4), 1),
                &attributes,
                (&mut output,),
            )
        }
        .expect("it launches");
        let each = |block: u32| {
            let (x, y) = (block % 8, block / 8);
            [y % 2 * 4 + x % 4, 8, x % 4, y % 2, x / 4, 2]
        };
        assert_eq!(values(&output), (0..32).flat_map(each).collect::<Vec<_>>());
    });
}

#[test]
fn blocks_of_clusters_of_any_size_read_each_others_totals() {
    on_device_of(9, |test| {
        let stream = test.stream();
        let sum = kernel::<(&[u32], &mut [u32])>(test, kernels::CLUSTER, "cluster_sum");
        let input = integers(1, 8 * 96);
        let source = buffer(&stream, &input);
        for cluster in [1_u32, 2, 4, 8] {
            let mut output =
                DeviceBuffer::<u32>::zeroed(&stream, input.len()).expect("memory suffices");
            let attributes = LaunchAttributes::new().with_cluster(cluster);
            // SAFETY: the buffers have a word for each thread.
            unsafe {
                sum.launch_with(
                    &stream,
                    LaunchConfig::new(8, 96),
                    &attributes,
                    (&source, &mut output),
                )
            }
            .expect("it launches");
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
    });
}

#[test]
fn blocks_of_a_cluster_write_words_around_in_a_ring() {
    on_device_of(9, |test| {
        let stream = test.stream();
        let ring = kernel::<(&[u32], &mut [u32])>(test, kernels::CLUSTER, "cluster_ring");
        let input = integers(2, 8 * 32);
        let source = buffer(&stream, &input);
        let mut output =
            DeviceBuffer::<u32>::zeroed(&stream, input.len()).expect("memory suffices");
        let attributes = LaunchAttributes::new().with_cluster(4);
        // SAFETY: the buffers have a word for each thread.
        unsafe {
            ring.launch_with(
                &stream,
                LaunchConfig::new(8, 32),
                &attributes,
                (&source, &mut output),
            )
        }
        .expect("it launches");
        let mut expected = input;
        expected
            .chunks_mut(4 * 32)
            .for_each(|cluster| cluster.rotate_right(32));
        assert_eq!(values(&output), expected);
    });
}

#[test]
fn cluster_of_a_kernel_node_stays_when_its_arguments_are_set_again() {
    on_device_of(9, |test| {
        let (stream, config) = (test.stream(), LaunchConfig::new((8, 4), 1));
        let places = kernel::<(&mut [u32],)>(test, kernels::CLUSTER, "cluster_places");
        let outputs = [(); 3]
            .map(|()| DeviceBuffer::<u32>::zeroed(&stream, 6 * 8 * 4).expect("memory suffices"));
        let attributes = LaunchAttributes::new().with_cluster((4, 2));
        let mut graph = Graph::new(&test.context()).expect("a graph can be created");
        let pointers = outputs.each_ref().map(|output| (output.as_pointer(),));
        // SAFETY: the buffers have six words for each of the blocks, and outlive the launches.
        let node = unsafe { graph.add_kernel_with(&[], &places, config, &attributes, pointers[0]) };
        let node = node.expect("the device has clusters");
        // SAFETY: as above.
        unsafe { graph.set_kernel(&node, &places, config, pointers[1]) }
            .expect("the kernel is the same");
        let mut exec = graph.instantiate().expect("the graph is valid");
        exec.launch(&stream).expect("it can be launched");
        // SAFETY: as above.
        unsafe { exec.set_kernel(&node, pointers[2]) }.expect("the kernel is the same");
        exec.launch(&stream).expect("it can be launched");
        stream.synchronize().expect("it runs");
        let sizes = outputs.map(|output| {
            values(&output)
                .chunks(6)
                .map(|place| place[1])
                .collect::<Vec<_>>()
        });
        assert_eq!(sizes, [vec![0; 32], vec![8; 32], vec![8; 32]]);
    });
}
