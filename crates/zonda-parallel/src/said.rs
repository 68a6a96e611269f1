//! What a rank defined since the ranks last agreed, so that they can tell whether all defined the same.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};
use zonda_format::VarRef;

/// The calls since the last agreement that changed definitions. Calls that failed changed nothing, and are not in it.
#[derive(Debug, Default)]
pub(crate) struct Said {
    calls: Vec<Call>,
    /// Attributes that got values: these may differ between ranks, and those of rank 0 count.
    pub(crate) atts: Vec<(VarRef, Box<[u8]>)>,
}

#[derive(Debug)]
struct Call {
    hash: u64,
    text: String,
}

impl Said {
    /// Notes a call, as a reader of an error would write it, and arguments that are too long to be told.
    pub(crate) fn call(&mut self, text: String, more: &[u8]) {
        let mut hasher = Sha256::new();
        hasher.update((text.len() as u64).to_le_bytes());
        hasher.update(&text);
        hasher.update(more);
        let hash = first_word(&hasher.finalize());
        self.calls.push(Call { hash, text });
    }

    /// Notes that an attribute got a value.
    pub(crate) fn att(&mut self, owner: VarRef, name: &[u8]) {
        if !self.atts.iter().any(|(of, known)| *of == owner && **known == *name) {
            self.atts.push((owner, name.into()));
        }
    }

    /// Notes that an attribute has another name.
    pub(crate) fn renamed_att(&mut self, owner: VarRef, name: &[u8], new_name: &[u8]) {
        let is_it = |(of, known): &&mut (VarRef, Box<[u8]>)| *of == owner && **known == *name;
        if let Some((_, known)) = self.atts.iter_mut().find(is_it) {
            *known = new_name.into();
        }
    }

    /// A hash of all calls.
    pub(crate) fn hash(&self) -> u128 {
        let mut hasher = Sha256::new();
        self.calls.iter().for_each(|call| hasher.update(call.hash.to_le_bytes()));
        let [high, low] = two_words(&hasher.finalize());
        u128::from(high) << 64 | u128::from(low)
    }

    /// The hash of each call, in order, as bytes that other ranks read.
    pub(crate) fn hashes(&self) -> Vec<u8> {
        self.calls.iter().flat_map(|call| call.hash.to_le_bytes()).collect()
    }

    /// The call of that number, for a message.
    pub(crate) fn text(&self, number: usize) -> &str {
        self.calls.get(number).map_or("no further definition", |call| &call.text)
    }

    /// All agreed on what there is.
    pub(crate) fn forget(&mut self) {
        self.calls.clear();
        self.atts.clear();
    }
}

/// The number of the first call in which one of the lists, each as [`Said::hashes`] gives it, differs from the first list.
pub(crate) fn first_difference(lists: &[Vec<u8>]) -> usize {
    let Some((first, others)) = lists.split_first() else { return 0 };
    let apart = |list: &Vec<u8>| {
        let (mine, its) = (first.chunks(8), list.chunks(8));
        let same = mine.zip(its).take_while(|(mine, its)| mine == its).count();
        let is_other = list != first;
        is_other.then_some(same)
    };
    others.iter().filter_map(apart).min().unwrap_or_default()
}

/// The call as C writes it: its name and its arguments.
pub(crate) fn call(name: &str, arguments: &[&dyn std::fmt::Display]) -> String {
    let mut text = format!("{name}(");
    for (n, argument) in arguments.iter().enumerate() {
        let comma = if n > 0 { ", " } else { "" };
        // Writing to a string cannot fail.
        let _ = write!(text, "{comma}{argument}");
    }
    text.push(')');
    text
}

fn first_word(digest: &[u8]) -> u64 {
    two_words(digest)[0]
}

fn two_words(digest: &[u8]) -> [u64; 2] {
    let mut words = digest.chunks_exact(8).map(|word| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(word);
        u64::from_le_bytes(bytes)
    });
    [words.next().unwrap_or_default(), words.next().unwrap_or_default()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(calls: &[&str]) -> Said {
        let mut said = Said::default();
        calls.iter().for_each(|text| said.call((*text).into(), b""));
        said
    }

    #[test]
    fn the_first_call_that_differs_is_found() {
        let lists =
            |all: &[&[&str]]| all.iter().map(|calls| said(calls).hashes()).collect::<Vec<_>>();
        assert_eq!(first_difference(&lists(&[&["a", "b"], &["a", "c"], &["a", "b"]])), 1);
        assert_eq!(first_difference(&lists(&[&["a"], &["a", "b"]])), 1);
        assert_eq!(first_difference(&lists(&[&["a", "b", "c"], &["a", "b"], &["x"]])), 0);
    }

    #[test]
    fn arguments_that_are_not_told_count_too() {
        let (mut one, mut other) = (said(&["a"]), said(&["a"]));
        assert_eq!(one.hash(), other.hash());
        one.call("b".into(), b"1");
        other.call("b".into(), b"2");
        assert_ne!(one.hash(), other.hash());
        assert_eq!(one.text(1), other.text(1));
        one.forget();
        assert_eq!(one.hash(), said(&[]).hash());
    }
}
