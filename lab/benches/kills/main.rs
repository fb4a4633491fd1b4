//! Kills `lab` and its QEMUs with SIGKILL at random moments of real runs, and counts what is lost.
//!
//! `cargo bench --bench kills -- [--kills N] [--seed N] [--lab PATH] [--out FILE]`
//!
//! A kill of `lab` is followed by `lab rerun --resume`, which is sometimes killed, too. What must
//! hold: no process of the run is left, the record can be reported, no case that had finished
//! runs again or changes, every planned case is finished once, all pass. After the kill of a
//! QEMU `lab` ends by itself, and what did not pass is INFRA and the host's.

#![allow(clippy::print_stdout)] // a benchmark prints its table
#![allow(clippy::unwrap_used)] // and may end at the first surprise
#![allow(clippy::disallowed_methods)] // it starts the program under test itself

mod place;
mod random;
mod record;
mod round;
mod table;

use std::path::PathBuf;

use place::Place;
use random::Random;
use table::Table;

struct Options {
    kills: u32,
    seed: u64,
    lab: PathBuf,
    out: Option<PathBuf>,
}

fn options() -> Options {
    let lab = env!("CARGO_BIN_EXE_lab").into();
    let mut options = Options { kills: 10, seed: 1, lab, out: None };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().unwrap_or_else(|| panic!("{arg} needs a value"));
        match arg.as_str() {
            "--kills" => options.kills = value().parse().unwrap(),
            "--seed" => options.seed = value().parse().unwrap(),
            "--lab" => options.lab = value().into(),
            "--out" => options.out = Some(value().into()),
            "--bench" => {}
            other => panic!("unknown argument {other}"),
        }
    }
    options
}

fn main() {
    let options = options();
    let place = Place::new(&options.lab);
    let mut random = Random(options.seed);
    let mut table = Table::default();
    let whole = round::undisturbed(&place);
    println!("an undisturbed run takes {} ms", whole.as_millis());
    while table.kills() < options.kills {
        round::round(&place, &mut random, whole, &mut table);
        println!("{}", table.line());
    }
    table.left_over = place.left_over();
    let text = table.markdown(options.seed, whole);
    println!("{text}");
    if let Some(out) = options.out {
        std::fs::write(out, text).unwrap();
    }
    assert!(table.clean(), "something was lost");
}
