//! The rules that need the whole tree.

use crate::circles;
use crate::findings::Finding;
use crate::graph::Graph;
use crate::names::{repeated_types, retired_names};
use crate::shape;
use crate::source::Source;

/// Imports that do not go downwards.
pub fn layers(tree: &[Source]) -> Vec<Finding> {
    let mut found = crate::layers::src_layers(&Graph::new("src", tree).arrows());
    found.extend(crate::layers::filters_layers(
        &Graph::new("filters", tree).arrows(),
    ));
    found
}

/// Uses of Pingora outside its folders.
pub fn pingora(tree: &[Source]) -> Vec<Finding> {
    let src = tree.iter().filter(|file| file.is_under("src/"));
    src.flat_map(crate::layers::pingora).collect()
}

/// Files in circles across folders.
pub fn circles(tree: &[Source]) -> Vec<Finding> {
    let mut found = circles::findings(&Graph::new("src", tree).arrows());
    found.extend(circles::findings(&Graph::new("filters", tree).arrows()));
    found
}

/// Public types that share their name with another one of their crate.
pub fn repeated(tree: &[Source]) -> Vec<Finding> {
    let mut found = repeated_types(tree, "src/");
    found.extend(repeated_types(tree, "filters/"));
    found
}

/// Definitions under retired names.
pub fn retired(tree: &[Source]) -> Vec<Finding> {
    let product = tree
        .iter()
        .filter(|file| file.is_under("src/") || file.is_under("filters/"));
    product.flat_map(retired_names).collect()
}

/// Functions longer than they may be.
pub fn long_functions(tree: &[Source]) -> Vec<Finding> {
    tree.iter().flat_map(shape::long_functions).collect()
}
