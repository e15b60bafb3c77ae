//! The memory that the allocation nodes of a graph need at the same time.

use std::collections::{HashMap, VecDeque};

use super::node::NodeKind;
use super::{Graph, Node};
use crate::Result;

/// The effect of a node on memory.
#[derive(Clone, Copy)]
enum Use {
    Allocate { address: u64, bytes: u64 },
    Free { address: u64 },
    None,
}

/// A flow network whose minimum cut separates the nodes that have run from the others.
struct Network {
    /// The edges of each node, by index. An edge and its reverse have the numbers `2 * n` and
    /// `2 * n + 1`.
    outgoing: Vec<Vec<usize>>,
    edges: Vec<FlowEdge>,
    /// The distance of each node from the source; `None` if it is not reached.
    distances: Vec<Option<usize>>,
    /// The next edge of each node that may carry more.
    next: Vec<usize>,
}

struct FlowEdge {
    to: usize,
    /// The flow that it can still carry.
    capacity: u64,
}

/// More than all memory.
const UNLIMITED: u64 = u64::MAX / 2;

impl Graph {
    /// Returns the largest number of bytes that the allocation nodes of this graph can have
    /// allocated at the same time in one launch, whichever order the driver chooses for nodes that
    /// do not depend on each other. Memory that the graph does not free stays allocated after the
    /// launch.
    ///
    /// A launch needs this much memory, rounded up by the driver to whole pages, on the device for
    /// which [`Device::graph_memory`](crate::Device::graph_memory) reports it. Executable graphs
    /// that are not launched concurrently share it. Memory that a graph only uses, such as buffers
    /// from outside the capture, is not counted. Neither is that of child and body graphs.
    ///
    /// ```
    /// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
    /// use curium_driver::Graph;
    ///
    /// let mut graph = Graph::new(&driver.device(0)?.primary_context()?)?;
    /// let first = graph.add_allocation(&[], 2 << 20)?;
    /// // SAFETY: no node uses the memory.
    /// let freed = unsafe { graph.add_free(&[*first], &first) }?;
    /// let second = graph.add_allocation(&[freed], 3 << 20)?;
    /// // SAFETY: no node uses the memory.
    /// unsafe { graph.add_free(&[*second], &second) }?;
    /// assert_eq!(graph.peak_allocated_bytes()?, 3 << 20); // the second takes the place of the first
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// CUDA: `cuGraphGetNodes`, `cuGraphGetEdges_v2`, `cuGraphNodeGetType`,
    /// `cuGraphMemAllocNodeGetParams`, `cuGraphMemFreeNodeGetParams`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn peak_allocated_bytes(&self) -> Result<u64> {
        let nodes = self.nodes()?;
        let indices: HashMap<Node, usize> = nodes.iter().copied().zip(0..).collect();
        let mut uses = Vec::new();
        for node in &nodes {
            uses.push(match self.kind(*node)? {
                NodeKind::Allocation => {
                    let allocation = self.allocation(*node)?;
                    Use::Allocate {
                        address: allocation.address().as_raw(),
                        bytes: allocation.byte_len() as u64,
                    }
                }
                NodeKind::Free => Use::Free {
                    address: self.freed(*node)?.as_raw(),
                },
                _ => Use::None,
            });
        }
        let mut dependencies = Vec::new();
        for edge in self.edges()? {
            if let (Some(from), Some(to)) = (indices.get(&edge.from), indices.get(&edge.to)) {
                dependencies.push((*from, *to));
            }
        }
        let changes = changes(&uses, &dependencies);
        Ok(peak(&changes, &dependencies))
    }
}

/// Returns by how many bytes each node changes the allocated memory. Allocations that cannot be
/// live at the same time may have the same address, so nodes are visited in an order in which each
/// follows those that it depends on.
fn changes(uses: &[Use], dependencies: &[(usize, usize)]) -> Vec<i64> {
    let mut changes = vec![0; uses.len()];
    let mut live = HashMap::new();
    for node in in_order(uses.len(), dependencies) {
        match uses[node] {
            Use::Allocate { address, bytes } => {
                changes[node] = bytes.cast_signed();
                live.insert(address, bytes);
            }
            // A node may free the memory of another graph.
            Use::Free { address } => {
                if let Some(bytes) = live.remove(&address) {
                    changes[node] = -bytes.cast_signed();
                }
            }
            Use::None => {}
        }
    }
    changes
}

/// Returns the nodes in an order in which each follows those that it depends on.
fn in_order(nodes: usize, dependencies: &[(usize, usize)]) -> Vec<usize> {
    let mut missing = vec![0_usize; nodes];
    let mut dependents = vec![Vec::new(); nodes];
    for (from, to) in dependencies {
        missing[*to] += 1;
        dependents[*from].push(*to);
    }
    let mut order: Vec<usize> = (0..nodes).filter(|node| missing[*node] == 0).collect();
    let mut next = 0;
    while let Some(node) = order.get(next).copied() {
        next += 1;
        for dependent in &dependents[node] {
            missing[*dependent] -= 1;
            if missing[*dependent] == 0 {
                order.push(*dependent);
            }
        }
    }
    order
}

/// Returns the largest sum of `changes` over the nodes that may have run at one time: with each
/// node, all those that it depends on have run.
///
/// This is a maximum closure: the sum of the increases, less the minimum cut between these and the
/// decreases.
fn peak(changes: &[i64], dependencies: &[(usize, usize)]) -> u64 {
    let source = changes.len();
    let target = source + 1;
    let mut network = Network::new(changes.len() + 2);
    let mut increases = 0;
    for (node, change) in changes.iter().enumerate() {
        if *change > 0 {
            increases += change.unsigned_abs();
            network.connect(source, node, change.unsigned_abs());
        } else if *change < 0 {
            network.connect(node, target, change.unsigned_abs());
        }
    }
    for (from, to) in dependencies {
        network.connect(*to, *from, UNLIMITED);
    }
    increases - network.maximum_flow(source, target)
}

impl Network {
    fn new(nodes: usize) -> Self {
        Self {
            outgoing: vec![Vec::new(); nodes],
            edges: Vec::new(),
            distances: Vec::new(),
            next: Vec::new(),
        }
    }

    fn connect(&mut self, from: usize, to: usize, capacity: u64) {
        for (from, to, capacity) in [(from, to, capacity), (to, from, 0)] {
            self.outgoing[from].push(self.edges.len());
            self.edges.push(FlowEdge { to, capacity });
        }
    }

    /// Returns the maximum flow, by Dinic's algorithm.
    fn maximum_flow(&mut self, source: usize, target: usize) -> u64 {
        let mut flow = 0;
        while self.find_distances(source, target) {
            self.next = vec![0; self.outgoing.len()];
            loop {
                let added = self.augment(source, target);
                if added == 0 {
                    break;
                }
                flow += added;
            }
        }
        flow
    }

    /// Computes the distances from the source. Returns `false` if the target is not reached.
    fn find_distances(&mut self, source: usize, target: usize) -> bool {
        self.distances = vec![None; self.outgoing.len()];
        self.distances[source] = Some(0);
        let mut reached = VecDeque::from([(source, 0)]);
        while let Some((node, distance)) = reached.pop_front() {
            for edge in &self.outgoing[node] {
                let FlowEdge { to, capacity } = self.edges[*edge];
                if capacity > 0 && self.distances[to].is_none() {
                    self.distances[to] = Some(distance + 1);
                    reached.push_back((to, distance + 1));
                }
            }
        }
        self.distances[target].is_some()
    }

    /// Adds flow along one shortest path, and returns it. Graphs are deeper than the stack, so this
    /// does not recurse.
    fn augment(&mut self, source: usize, target: usize) -> u64 {
        let mut path: Vec<usize> = Vec::new();
        let mut node = source;
        while node != target {
            if let Some(edge) = self.next_edge(node) {
                path.push(edge);
                node = self.edges[edge].to;
                continue;
            }
            // A dead end: the edge that leads to it carries no more.
            let Some(edge) = path.pop() else {
                return 0;
            };
            node = self.edges[edge ^ 1].to;
            self.next[node] += 1;
        }
        let added = path.iter().map(|edge| self.edges[*edge].capacity).min();
        let added = added.unwrap_or_default();
        for edge in path {
            self.edges[edge].capacity -= added;
            self.edges[edge ^ 1].capacity += added;
        }
        added
    }

    /// Returns the next edge of a node that carries more and leads away from the source.
    fn next_edge(&mut self, node: usize) -> Option<usize> {
        let beyond = self.distances[node].map(|distance| distance + 1);
        while let Some(edge) = self.outgoing[node].get(self.next[node]) {
            let FlowEdge { to, capacity } = self.edges[*edge];
            if capacity > 0 && self.distances[to] == beyond {
                return Some(*edge);
            }
            self.next[node] += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the peak by trying every set of nodes that may have run.
    fn exhaustive_peak(changes: &[i64], dependencies: &[(usize, usize)]) -> u64 {
        let sets = (0_u32..1 << changes.len()).filter(|set| {
            let contains = |node: usize| set >> node & 1 == 1;
            dependencies
                .iter()
                .all(|(from, to)| contains(*from) || !contains(*to))
        });
        let sums = sets.map(|set| {
            let nodes = (0..changes.len()).filter(|node| set >> node & 1 == 1);
            nodes.map(|node| changes[node]).sum::<i64>()
        });
        sums.max().unwrap_or_default().unsigned_abs()
    }

    /// The driver gives an allocation the address of an earlier one that is free by then.
    #[test]
    fn allocations_share_an_address_one_after_another() {
        let allocate = |bytes| Use::Allocate { address: 64, bytes };
        let free = Use::Free { address: 64 };
        // In the order of the dependencies: 2, 1, 3, 0, and a node that frees the memory of another
        // graph.
        let uses = [
            free,
            free,
            allocate(5),
            allocate(7),
            Use::Free { address: 1 },
        ];
        let dependencies = [(2, 1), (1, 3), (3, 0)];
        assert_eq!(changes(&uses, &dependencies), [-7, -5, 5, 7, 0]);
        assert_eq!(peak(&changes(&uses, &dependencies), &dependencies), 7);
    }

    /// The peak of random graphs is that of the worst order of their nodes.
    #[test]
    fn peak_is_the_worst_order() {
        let mut state = 1_u64;
        let mut random = |limit: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % limit
        };
        for _ in 0..if cfg!(miri) { 5 } else { 300 } {
            let pairs = 1 + random(6) as usize;
            let mut changes = Vec::new();
            let mut dependencies = Vec::new();
            for pair in 0..pairs {
                let bytes = 1 + random(9).cast_signed();
                changes.extend([bytes, -bytes]);
                dependencies.push((2 * pair, 2 * pair + 1));
            }
            for to in 1..changes.len() {
                for from in 0..to {
                    if random(4) == 0 {
                        dependencies.push((from, to));
                    }
                }
            }
            assert_eq!(
                peak(&changes, &dependencies),
                exhaustive_peak(&changes, &dependencies),
                "{changes:?} {dependencies:?}"
            );
        }
    }

    /// A long chain needs neither much time nor much stack.
    #[test]
    fn long_chain_peak() {
        let count = if cfg!(miri) { 20 } else { 5000 };
        let changes: Vec<i64> = (0..count).flat_map(|_| [7, -7]).collect();
        let chain: Vec<_> = (1..changes.len()).map(|node| (node - 1, node)).collect();
        assert_eq!(peak(&changes, &chain), 7);
        assert_eq!(peak(&changes, &[]), 7 * count as u64);
    }
}
