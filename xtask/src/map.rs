//! `cargo xtask map`: draws `docs/crates.svg`, the picture of the crates and their dependencies.

mod layout;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use self::layout::{Layout, NODE_WIDTH, Point};
use crate::stale;

/// The picture, which the README shows.
const PICTURE: &str = "docs/crates.svg";

/// The crates of the picture, with what they are for. A crate that is missing here, or gone, is an
/// error.
const ROLES: &[(&str, &str)] = &[
    ("curium", "the layers in one crate"),
    ("curium-blas", "cuBLAS, cuBLASLt"),
    ("curium-cli", "the program"),
    ("curium-cudart", "CUDA runtime, simulated"),
    ("curium-diagnostics", "traces, snapshots"),
    ("curium-driver", "streams, graphs, launches"),
    ("curium-fft", "cuFFT"),
    ("curium-format", "PTX, fatbins, versions"),
    ("curium-interop", "graphics, processes"),
    ("curium-kernel", "kernels in Rust"),
    ("curium-kernel-build", "compiles kernels"),
    ("curium-macros", "#[kernel], ptx!"),
    ("curium-memory", "buffers, copies, pools"),
    ("curium-nccl", "NCCL"),
    ("curium-nvrtc", "CUDA C++ at run time"),
    ("curium-ptx", "PTX, executed on the CPU"),
    ("curium-rand", "cuRAND"),
    ("curium-sim", "the driver on the CPU"),
    ("curium-sim-libraries", "simulated libraries"),
    ("curium-sys", "the C ABI, loader"),
];

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Compare the picture with the expected text instead of writing it.
    #[arg(long)]
    check: bool,
}

/// The crates, each with those that it depends on directly.
type Graph = BTreeMap<String, BTreeSet<String>>;

pub(crate) fn run(options: &Options) -> Result<()> {
    let graph = read()?;
    let roles: BTreeMap<&str, &str> = ROLES.iter().copied().collect();
    for name in graph.keys() {
        ensure!(
            roles.contains_key(name.as_str()),
            "{name} has no role in xtask/src/map.rs"
        );
    }
    for name in roles.keys() {
        ensure!(
            graph.contains_key(*name),
            "xtask/src/map.rs names {name}, which does not exist"
        );
    }
    let files = BTreeMap::from([(crate::root().join(PICTURE), draw(&graph, &roles))]);
    if options.check {
        return stale::check(&files, "cargo xtask map");
    }
    stale::write(&files)
}

/// Reads the manifests of the crates.
fn read() -> Result<Graph> {
    let folder = crate::root().join("crates");
    let mut graph = Graph::new();
    for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path().join("Cargo.toml");
        if path.exists() {
            let (name, dependencies) = read_manifest(&path)?;
            graph.insert(name, dependencies);
        }
    }
    let names: BTreeSet<String> = graph.keys().cloned().collect();
    for dependencies in graph.values_mut() {
        dependencies.retain(|name| names.contains(name));
    }
    Ok(graph)
}

/// Returns the name of a package, and the names of its dependencies on every platform, optional
/// ones included. Those of tests are left out.
fn read_manifest(path: &Path) -> Result<(String, BTreeSet<String>)> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let manifest: toml::Table = text.parse().with_context(|| path.display().to_string())?;
    let name = manifest
        .get("package")
        .and_then(|package| package.get("name"))
        .and_then(toml::Value::as_str)
        .with_context(|| format!("{}: no name", path.display()))?;
    let mut dependencies = BTreeSet::new();
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    let of_targets = targets
        .into_iter()
        .flat_map(toml::Table::values)
        .filter_map(|target| target.get("dependencies"));
    let tables = [
        manifest.get("dependencies"),
        manifest.get("build-dependencies"),
    ];
    for table in tables.into_iter().flatten().chain(of_targets) {
        dependencies.extend(
            table
                .as_table()
                .into_iter()
                .flat_map(toml::Table::keys)
                .cloned(),
        );
    }
    Ok((name.to_owned(), dependencies))
}

/// Returns the graph without the dependencies that follow from others.
fn reduced(graph: &Graph) -> Graph {
    let mut reduced = graph.clone();
    for (name, dependencies) in graph {
        let mut indirect = BTreeSet::new();
        for dependency in dependencies {
            for next in &graph[dependency] {
                collect(graph, next, &mut indirect);
            }
        }
        if let Some(direct) = reduced.get_mut(name) {
            direct.retain(|dependency| !indirect.contains(dependency));
        }
    }
    reduced
}

/// Adds a crate, and all that it depends on.
fn collect(graph: &Graph, name: &str, names: &mut BTreeSet<String>) {
    if names.insert(name.to_owned()) {
        for dependency in &graph[name] {
            collect(graph, dependency, names);
        }
    }
}

/// Returns the picture: users above what they use.
fn draw(graph: &Graph, roles: &BTreeMap<&str, &str>) -> String {
    let graph = reduced(graph);
    let layout = Layout::new(&graph);
    let mut svg = format!(
        r#"<!-- Generated by cargo xtask map; do not edit. -->
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-family="system-ui, sans-serif" text-anchor="middle">
  <title>The crates of Curium and their dependencies</title>
  <style>
    path {{ fill: none; stroke: #8a94a3; stroke-width: 1.5 }}
    rect {{ fill: #f3f5f8; stroke: #5b6675 }}
    .kernels rect {{ fill: #fdebd3; stroke: #b3681b }}
    .simulated rect {{ fill: #e0f1e4; stroke: #3d7d4c }}
    text {{ fill: #1b2430; font-size: 13px; font-weight: 600 }}
    text + text {{ font-size: 11px; font-weight: 400 }}
    @media (prefers-color-scheme: dark) {{
      path {{ stroke: #77818f }}
      rect {{ fill: #242b35; stroke: #8a94a3 }}
      .kernels rect {{ fill: #46301a; stroke: #d99a52 }}
      .simulated rect {{ fill: #1e3826; stroke: #6fb680 }}
      text {{ fill: #e8ecf1 }}
    }}
  </style>
"#,
        width = layout.width,
        height = layout.height,
    );
    for edge in &layout.edges {
        let _ = writeln!(svg, "  <path d=\"{}\"/>", curve(edge));
    }
    for (name, point) in &layout.nodes {
        let class = match name.as_str() {
            "curium-kernel" | "curium-kernel-build" | "curium-macros" => " class=\"kernels\"",
            "curium-cudart" | "curium-ptx" | "curium-sim" | "curium-sim-libraries" => {
                " class=\"simulated\""
            }
            _ => "",
        };
        let Point { x, y } = *point;
        let left = x - NODE_WIDTH / 2;
        let top = y - 20;
        let role = roles.get(name.as_str()).copied().unwrap_or_default();
        let _ = writeln!(
            svg,
            "  <g{class}><rect x=\"{left}\" y=\"{top}\" width=\"{NODE_WIDTH}\" height=\"40\" rx=\"6\"/>\
             <text x=\"{x}\" y=\"{}\">{name}</text><text x=\"{x}\" y=\"{}\">{role}</text></g>",
            y - 3,
            y + 12,
        );
    }
    svg + "</svg>\n"
}

/// Returns the data of a path through the points, which is vertical at each of them.
fn curve(points: &[Point]) -> String {
    let mut data = format!("M{} {}", points[0].x, points[0].y);
    for pair in points.windows(2) {
        let [from, to] = [pair[0], pair[1]];
        let middle = (from.y + to.y) / 2;
        let _ = write!(
            data,
            " C{} {middle} {} {middle} {} {}",
            from.x, to.x, to.x, to.y
        );
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(&str, &[&str])]) -> Graph {
        edges
            .iter()
            .map(|(name, dependencies)| {
                let dependencies = dependencies.iter().map(|name| (*name).to_owned());
                ((*name).to_owned(), dependencies.collect())
            })
            .collect()
    }

    #[test]
    fn implied_dependencies_are_left_out() {
        let whole = graph(&[
            ("a", &["b", "c", "d"]),
            ("b", &["c"]),
            ("c", &["d"]),
            ("d", &[]),
        ]);
        let expected = graph(&[("a", &["b"]), ("b", &["c"]), ("c", &["d"]), ("d", &[])]);
        assert_eq!(reduced(&whole), expected);
    }

    /// The picture has each crate and each dependency, and no two crates overlap.
    #[test]
    fn picture_is_complete() -> Result<()> {
        let graph = read()?;
        let reduced = reduced(&graph);
        let layout = Layout::new(&reduced);
        assert_eq!(layout.nodes.len(), graph.len());
        let edges: usize = reduced.values().map(BTreeSet::len).sum();
        assert_eq!(layout.edges.len(), edges);
        let points: Vec<Point> = layout.nodes.iter().map(|(_, point)| *point).collect();
        for (index, one) in points.iter().enumerate() {
            assert!(one.x >= NODE_WIDTH / 2 && one.x + NODE_WIDTH / 2 <= layout.width);
            for other in &points[index + 1..] {
                let is_apart = one.y != other.y || (one.x - other.x).abs() > NODE_WIDTH;
                assert!(is_apart, "{one:?} {other:?}");
            }
        }
        for (name, dependencies) in &reduced {
            for dependency in dependencies {
                let y = |name: &str| {
                    let node = layout.nodes.iter().find(|(other, _)| other == name);
                    node.map(|(_, point)| point.y)
                };
                assert!(y(name) < y(dependency), "{name} {dependency}");
            }
        }
        Ok(())
    }
}
