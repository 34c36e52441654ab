// Rust as it comes: generics, closures, threads, a caught panic, v0 mangling.
//   rusty [MS a thread] (200)
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::thread;

fn spin(mut x: u64, rounds: u64) -> u64 {
    for _ in 0..rounds {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    }
    x
}

// A hasher without a random seed: the same output on each run.
#[derive(Default)]
struct Plain(u64);

impl Hasher for Plain {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = spin(self.0 ^ u64::from(*byte), 1);
        }
    }
}

#[inline(never)]
fn fold_with<F: Fn(u64, u64) -> u64>(rounds: u64, step: F) -> u64 {
    (0..rounds).fold(1, step)
}

#[inline(never)]
fn count_words(seed: u64) -> u64 {
    let mut counts: HashMap<u64, u64, BuildHasherDefault<Plain>> = HashMap::default();
    for i in 0..3000 {
        *counts.entry(spin(seed + i % 700, 3)).or_insert(0) += 1;
    }
    counts.values().map(|count| count * count).sum()
}

fn work(ms: u64, seed: u64) -> u64 {
    let mut x = seed;
    for _ in 0..4 * ms {
        x = fold_with(40000, |sum, i| spin(sum ^ i ^ x, 30));
        x = spin(x ^ count_words(x % 1000), 1).wrapping_add(seed);
    }
    x
}

fn main() {
    let ms = std::env::args().nth(1).map_or(200, |text| text.parse().expect("a number of milliseconds"));
    let threads: Vec<_> = (1..3).map(|seed| thread::spawn(move || work(ms, seed))).collect();
    println!("{:016x}", work(ms, 0));
    for handle in threads {
        println!("{:016x}", handle.join().expect("a worker panicked"));
    }
    std::panic::set_hook(Box::new(|_| ()));
    println!("panic caught: {}", std::panic::catch_unwind(|| None::<u64>.expect("nothing there")).is_err());
}
