//! A layered drawing of a graph without cycles: layers by the longest path, few crossings by
//! barycenters, and short edges.

use std::collections::{BTreeMap, BTreeSet};

/// The width of a node.
pub(super) const NODE_WIDTH: i32 = 156;

/// The space between nodes of a layer.
const GAP: f64 = 14.0;

/// The width of an edge where it passes a layer.
const PASS_WIDTH: f64 = 14.0;

/// The distance between layers.
const LAYER_HEIGHT: i32 = 84;

/// The space around the picture.
const MARGIN: i32 = 8;

/// Half of the height of a node.
const HALF_HEIGHT: i32 = 20;

/// The number of times that layers are ordered and nodes are placed.
const SWEEPS: usize = 24;

/// A position in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) x: i32,
    pub(super) y: i32,
}

/// The positions of nodes and edges.
pub(super) struct Layout {
    pub(super) width: i32,
    pub(super) height: i32,
    /// Each node with its center.
    pub(super) nodes: Vec<(String, Point)>,
    /// The points of each edge, from the user down to what it uses.
    pub(super) edges: Vec<Vec<Point>>,
}

/// A node, or a point at which an edge passes a layer.
struct Item {
    name: Option<String>,
    layer: usize,
    x: f64,
    above: Vec<usize>,
    below: Vec<usize>,
}

impl Item {
    /// Returns the position in a picture that begins at `left`.
    fn point(&self, left: f64) -> Point {
        Point {
            x: MARGIN + (self.x - left).round() as i32,
            y: MARGIN + HALF_HEIGHT + LAYER_HEIGHT * self.layer as i32,
        }
    }

    fn width(&self) -> f64 {
        if self.name.is_some() {
            f64::from(NODE_WIDTH)
        } else {
            PASS_WIDTH
        }
    }
}

impl Layout {
    pub(super) fn new(graph: &BTreeMap<String, BTreeSet<String>>) -> Self {
        let mut depths = BTreeMap::new();
        for name in graph.keys() {
            depth(graph, name, &mut depths);
        }
        raise_leaves(graph, &mut depths);
        let last = depths.values().copied().max().unwrap_or(0);
        let mut items = Vec::new();
        let mut indices = BTreeMap::new();
        for name in graph.keys() {
            indices.insert(name.clone(), items.len());
            items.push(Item {
                name: Some(name.clone()),
                layer: last - depths[name],
                x: 0.0,
                above: Vec::new(),
                below: Vec::new(),
            });
        }
        let mut chains = Vec::new();
        for (name, dependencies) in graph {
            for dependency in dependencies {
                chains.push(chain(&mut items, indices[name], indices[dependency]));
            }
        }
        let mut layers = vec![Vec::new(); last + 1];
        for (index, item) in items.iter().enumerate() {
            layers[item.layer].push(index);
        }
        order(&mut items, &mut layers);
        assign_positions(&mut items, &layers);
        Self::from_items(&items, &chains, last)
    }

    fn from_items(items: &[Item], chains: &[Vec<usize>], last: usize) -> Self {
        let left = items
            .iter()
            .map(|item| item.x - item.width() / 2.0)
            .fold(f64::INFINITY, f64::min);
        let right = items
            .iter()
            .map(|item| item.x + item.width() / 2.0)
            .fold(f64::NEG_INFINITY, f64::max);
        let mut nodes = Vec::new();
        for item in items {
            if let Some(name) = &item.name {
                nodes.push((name.clone(), item.point(left)));
            }
        }
        let edges = chains.iter().map(|chain| {
            let mut points: Vec<Point> = chain
                .iter()
                .map(|index| items[*index].point(left))
                .collect();
            // From the lower edge of the user to the upper edge of what it uses.
            if let Some(first) = points.first_mut() {
                first.y += HALF_HEIGHT;
            }
            if let Some(last) = points.last_mut() {
                last.y -= HALF_HEIGHT;
            }
            points
        });
        Self {
            width: 2 * MARGIN + (right - left).ceil() as i32,
            height: 2 * (MARGIN + HALF_HEIGHT) + LAYER_HEIGHT * last as i32,
            nodes,
            edges: edges.collect(),
        }
    }
}

/// Returns the length of the longest path down from a node.
fn depth(
    graph: &BTreeMap<String, BTreeSet<String>>,
    name: &str,
    depths: &mut BTreeMap<String, usize>,
) -> usize {
    if let Some(depth) = depths.get(name) {
        return *depth;
    }
    let below = graph[name]
        .iter()
        .map(|dependency| 1 + depth(graph, dependency, depths))
        .max();
    let depth = below.unwrap_or(0);
    depths.insert(name.to_owned(), depth);
    depth
}

/// Moves nodes that depend on nothing to the layer below their users, which shortens edges.
fn raise_leaves(graph: &BTreeMap<String, BTreeSet<String>>, depths: &mut BTreeMap<String, usize>) {
    for (leaf, dependencies) in graph {
        let users = graph.iter().filter(|(_, used)| used.contains(leaf));
        let lowest = users.map(|(user, _)| depths[user]).min();
        if let (true, Some(lowest)) = (dependencies.is_empty(), lowest) {
            depths.insert(leaf.clone(), lowest - 1);
        }
    }
}

/// Connects two nodes, with an item in each layer between them, and returns all of these items.
fn chain(items: &mut Vec<Item>, from: usize, to: usize) -> Vec<usize> {
    let mut chain = vec![from];
    for layer in items[from].layer + 1..items[to].layer {
        chain.push(items.len());
        items.push(Item {
            name: None,
            layer,
            x: 0.0,
            above: Vec::new(),
            below: Vec::new(),
        });
    }
    chain.push(to);
    for pair in chain.windows(2) {
        items[pair[0]].below.push(pair[1]);
        items[pair[1]].above.push(pair[0]);
    }
    chain
}

/// Returns the mean position of some items.
fn mean(items: &[Item], neighbors: &[usize]) -> Option<f64> {
    if neighbors.is_empty() {
        return None;
    }
    let sum: f64 = neighbors.iter().map(|index| items[*index].x).sum();
    Some(sum / neighbors.len() as f64)
}

/// Orders each layer by the mean position of the neighbors, and keeps the order with the fewest
/// crossings.
fn order(items: &mut [Item], layers: &mut Vec<Vec<usize>>) {
    number(items, layers);
    let mut best = layers.clone();
    let mut fewest = crossings(items, layers);
    for sweep in 0..SWEEPS {
        let goes_down = sweep % 2 == 0;
        for step in 0..layers.len() {
            let layer = if goes_down {
                step
            } else {
                layers.len() - 1 - step
            };
            let mut keyed = Vec::new();
            for index in &layers[layer] {
                let item = &items[*index];
                let neighbors = if goes_down { &item.above } else { &item.below };
                keyed.push((mean(items, neighbors).unwrap_or(item.x), *index));
            }
            keyed.sort_by(|one, other| one.0.total_cmp(&other.0));
            layers[layer] = keyed.into_iter().map(|(_, index)| index).collect();
            number(items, layers);
        }
        let count = crossings(items, layers);
        if count < fewest {
            fewest = count;
            best.clone_from(layers);
        }
    }
    *layers = best;
    number(items, layers);
}

/// Sets the position of each item to its number in its layer, relative to the middle of the layer.
fn number(items: &mut [Item], layers: &[Vec<usize>]) {
    for layer in layers {
        for (position, index) in layer.iter().enumerate() {
            items[*index].x = position as f64 - (layer.len() - 1) as f64 / 2.0;
        }
    }
}

/// Returns the number of pairs of edges that cross.
fn crossings(items: &[Item], layers: &[Vec<usize>]) -> usize {
    let mut count = 0;
    for layer in layers {
        let mut edges = Vec::new();
        for index in layer {
            for below in &items[*index].below {
                edges.push((items[*index].x, items[*below].x));
            }
        }
        for (number, one) in edges.iter().enumerate() {
            for other in &edges[number + 1..] {
                count += usize::from((one.0 - other.0) * (one.1 - other.1) < 0.0);
            }
        }
    }
    count
}

/// Places the items of each layer near their neighbors, in their order.
fn assign_positions(items: &mut [Item], layers: &[Vec<usize>]) {
    for layer in layers {
        let wanted = vec![0.0; layer.len()];
        place_layer(items, layer, &wanted);
    }
    for sweep in 0..SWEEPS {
        for step in 0..layers.len() {
            let layer = if sweep % 2 == 0 {
                step
            } else {
                layers.len() - 1 - step
            };
            let mut wanted = Vec::new();
            for index in &layers[layer] {
                let item = &items[*index];
                let mut neighbors = item.above.clone();
                neighbors.extend(&item.below);
                wanted.push(mean(items, &neighbors).unwrap_or(item.x));
            }
            place_layer(items, &layers[layer], &wanted);
        }
    }
}

/// Places items as near as possible to the wanted positions without overlap: the least squares of a
/// monotone sequence, by pooling adjacent violators.
fn place_layer(items: &mut [Item], layer: &[usize], wanted: &[f64]) {
    let mut offsets = Vec::new();
    let mut offset = 0.0;
    for (position, index) in layer.iter().enumerate() {
        if position > 0 {
            let before = items[layer[position - 1]].width();
            offset += (before + items[*index].width()) / 2.0 + GAP;
        }
        offsets.push(offset);
    }
    // Pools of adjacent items, each with the sum of what its items want and their number.
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for (wanted, offset) in wanted.iter().zip(&offsets) {
        let mut pool = (wanted - offset, 1);
        while let Some((sum, count)) = pools.last().copied() {
            if sum / (count as f64) < pool.0 / (pool.1 as f64) {
                break;
            }
            pools.pop();
            pool = (sum + pool.0, count + pool.1);
        }
        pools.push(pool);
    }
    let mut position = 0;
    for (sum, count) in pools {
        for _ in 0..count {
            items[layer[position]].x = sum / count as f64 + offsets[position];
            position += 1;
        }
    }
}
