// Starts 1,000 programs, half of them by fork and exec (pre_exec rules posix_spawn out), and is itself replaced 1,000
// times.
use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::Command;

fn main() {
    let links: u32 = std::env::args().nth(1).map_or(0, |text| text.parse().unwrap());
    if links == 0 {
        let mut ended = BTreeMap::new();
        for i in 0..1000 {
            let mut command = Command::new("true");
            if i % 2 == 1 {
                unsafe { command.pre_exec(|| Ok(())) };
            }
            *ended.entry(command.status().unwrap().to_string()).or_insert(0) += 1;
        }
        println!("{:?}", ended);
    }
    if links == 1000 {
        println!("end of the chain");
        std::process::exit(5);
    }
    let own = std::env::current_exe().unwrap();
    println!("{}", Command::new(own).arg((links + 1).to_string()).exec());
}
