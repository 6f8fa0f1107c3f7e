//! Catches: two modules of the crate that stand on each other.
//!
//! The graph of the modules at the top of `src/` is read from what the code names (`use crate::…`, `crate::…`), tests aside. A
//! name that the root of the crate re-exports counts as a name of the module it comes from.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

type Graph = BTreeMap<String, BTreeSet<String>>;

/// All source files below a folder but for tests.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.file_stem().is_some_and(|stem| stem == "tests") {
            continue;
        }
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The code of a file without comments and without the tests at its end.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or("");
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

fn is_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// The first names of a path or of the list of paths that the text begins with: of `{a::b, c}` they are `a` and `c`.
fn first_names(text: &str) -> Vec<String> {
    let Some(list) = text.strip_prefix('{') else {
        return vec![text.chars().take_while(|&letter| is_name(letter)).collect()];
    };
    let (mut names, mut depth, mut fresh) = (Vec::new(), 0_usize, true);
    for (at, letter) in list.char_indices() {
        match letter {
            '}' if depth == 0 => break,
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => fresh = true,
            letter if depth == 0 && fresh && is_name(letter) => {
                names.push(list[at..].chars().take_while(|&letter| is_name(letter)).collect());
                fresh = false;
            }
            _ => {}
        }
    }
    names
}

/// The module that each name at the root comes from.
fn exports(root: &str) -> BTreeMap<String, String> {
    let mut exports = BTreeMap::new();
    let uses = |statement: &'_ str| {
        let statement = statement.trim().trim_start_matches(['}', '\n']).trim();
        let public = statement.strip_prefix("pub use ");
        public.or_else(|| statement.strip_prefix("pub(crate) use ")).map(str::to_owned)
    };
    for statement in root.split(';').filter_map(uses) {
        let (module, names) = statement.split_once("::").unwrap();
        for name in first_names(names) {
            exports.insert(name, module.to_owned());
        }
    }
    exports
}

fn graph(src: &Path) -> Graph {
    let mut files = Vec::new();
    sources(src, &mut files);
    let module_of = |path: &Path| {
        let first = path.strip_prefix(src).unwrap().components().next().unwrap();
        Path::new(&first).with_extension("").to_string_lossy().into_owned()
    };
    let modules: BTreeSet<String> =
        files.iter().map(|path| module_of(path)).filter(|name| name != "lib").collect();
    let exports = exports(&code(&src.join("lib.rs")));
    let mut graph: Graph = modules.iter().map(|module| (module.clone(), BTreeSet::new())).collect();
    for path in files.iter().filter(|path| module_of(path) != "lib") {
        let (own, code) = (module_of(path), code(path));
        for (at, _) in code.match_indices("crate::") {
            for name in first_names(&code[at + "crate::".len()..]) {
                let module = if modules.contains(&name) { Some(&name) } else { exports.get(&name) };
                let module =
                    module.unwrap_or_else(|| panic!("{}: crate::{name} is not known", path.display()));
                if *module != own {
                    graph.get_mut(&own).unwrap().insert(module.clone());
                }
            }
        }
    }
    graph
}

/// Modules in layers: each stands only on those of the layers before. What is left over stands on itself.
fn layers(graph: &Graph) -> (Vec<Vec<String>>, Vec<String>) {
    let (mut done, mut layers) = (BTreeSet::new(), Vec::new());
    loop {
        let ready = |(module, below): &(&String, &BTreeSet<String>)| {
            !done.contains(*module) && below.iter().all(|module| done.contains(module))
        };
        let layer: Vec<String> = graph.iter().filter(ready).map(|(module, _)| module.clone()).collect();
        if layer.is_empty() {
            break;
        }
        done.extend(layer.iter().cloned());
        layers.push(layer);
    }
    let left = graph.keys().filter(|module| !done.contains(*module)).cloned().collect();
    (layers, left)
}

#[test]
fn modules_stand_on_each_other_without_a_cycle() {
    let graph = graph(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    let (layers, left) = layers(&graph);
    for (number, layer) in layers.iter().enumerate() {
        for module in layer {
            let below: Vec<&str> = graph[module].iter().map(String::as_str).collect();
            println!("{number:>2}  {module:<12} {}", below.join(" "));
        }
    }
    assert!(graph.len() > 20, "{graph:?}");
    assert!(left.is_empty(), "these modules are in a cycle, or stand on one: {left:?}");
}

#[test]
fn a_cycle_is_found() {
    let graph = |pairs: &[(&str, &str)]| -> Graph {
        let mut graph = Graph::new();
        for (one, other) in pairs {
            graph.entry((*other).into()).or_default();
            graph.entry((*one).into()).or_default().insert((*other).into());
        }
        graph
    };
    assert!(layers(&graph(&[("a", "b"), ("b", "c"), ("a", "c")])).1.is_empty());
    assert_eq!(layers(&graph(&[("a", "b"), ("b", "c"), ("c", "b")])).1, ["a", "b", "c"]);
    assert_eq!(first_names("{a::{b, c}, D, e::f}; rest"), ["a", "D", "e"]);
    assert_eq!(first_names("a::b::C, d"), ["a"]);
    assert_eq!(exports("mod a;\npub use a::{B, C};\npub use d::E;")["C"], "a");
}
