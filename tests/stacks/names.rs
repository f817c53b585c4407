// SPDX-License-Identifier: GPL-2.0-only
// Generic code and closures, for their names alone.
use std::collections::HashMap;

trait Filler {
    fn fill(&self, n: usize) -> Vec<u8>;
}

struct Counting;

impl Filler for Counting {
    fn fill(&self, n: usize) -> Vec<u8> {
        (0..n).map(|i| i as u8).collect()
    }
}

fn main() {
    let mut line = String::new();
    let mut kept: HashMap<usize, Vec<u8>> = HashMap::new();

    while std::io::stdin().read_line(&mut line).unwrap() > 0 {
        let filler: Box<dyn Filler> = Box::new(Counting);
        for i in 0..100 {
            kept.insert(kept.len() + i, filler.fill(100000));
        }
        println!("{} {}", line, kept.len());
    }
}
