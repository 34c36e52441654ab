// Benchmarks of criterion: one takes longer where there is a file "more", and some err, but not while they are listed.
use criterion::{black_box, criterion_group, criterion_main, BenchmarkId, Criterion};

#[inline(never)]
fn hash_of(n: u32) -> u32 {
    let mut h = 1u32;
    for i in 0..n {
        h = black_box(h.wrapping_mul(31).wrapping_add(i));
    }
    h
}

#[inline(never)]
fn sum_of(n: u32) -> u32 {
    let mut h = 1u32;
    for i in 0..n {
        h = black_box(h.wrapping_add(i));
    }
    h
}

fn all(c: &mut Criterion) {
    let n = if std::path::Path::new("more").exists() { 3200 } else { 2000 };
    let long = "n".repeat(150);

    c.bench_function("hash, [x] \"y\" (z)", move |b| b.iter(|| hash_of(n)));
    let mut group = c.benchmark_group("group");
    for i in [10u32, 100].iter() {
        group.bench_with_input(BenchmarkId::new("sum", i), i, |b, i| b.iter(|| sum_of(*i)));
    }
    group.finish();
    c.bench_function(&(long.clone() + "1"), |b| b.iter(|| sum_of(100)));
    c.bench_function(&(long + "2"), |b| b.iter(|| sum_of(100)));
    c.bench_function("panics", |_| panic!("it broke"));
    c.bench_function("ends", |_| std::process::exit(0));
    c.bench_function("hangs", |b| b.iter(|| std::thread::sleep(std::time::Duration::from_secs(3600))));
}

criterion_group!(benches, all);
criterion_main!(benches);
