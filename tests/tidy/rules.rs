//! The rules with lists of leftovers, each applied to the whole tree.

use crate::findings::Finding;
use crate::names::{repeated_types, retired_names};
use crate::shape;
use crate::source::Source;

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
