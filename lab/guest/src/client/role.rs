//! Which client role runs.

use std::path::Path;
use std::process::ExitCode;

use super::{background, layout, load, out, stat, tree};
use crate::sys::{errno, mount, process};

/// Runs the client role that the arguments name; 64 when they name none.
pub(crate) fn main(args: &[String]) -> ExitCode {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    process::name(&format!("lab-{}", args.first().unwrap_or(&"client")));
    match run(&args) {
        Some(()) => ExitCode::SUCCESS,
        None => ExitCode::from(64),
    }
}

fn run(args: &[&str]) -> Option<()> {
    match *args {
        ["tree", path] => tree::run(Path::new(path)),
        ["stat", path, cpu, count] => {
            stat::run(Path::new(path), cpu.parse().ok()?, count.parse().ok()?);
        }
        ["background", path, cpu, count] => {
            background::run(Path::new(path), cpu.parse().ok()?, count.parse().ok()?);
        }
        ["make-file", path] => background::make(Path::new(path)),
        ["load", path, cpu, seed, index] => {
            let (cpu, index) = (cpu.parse().ok()?, index.parse().ok()?);
            load::run(Path::new(path), cpu, seed.parse().ok()?, index);
        }
        ["layout", path, size, jobs] => {
            layout::run(Path::new(path), size.parse().ok()?, jobs.parse().ok()?);
        }
        ["umount", path, flags] => {
            let flags = flags.parse().ok()?;
            let _ = std::io::stdin().read_line(&mut String::new());
            let result = mount::unmount(Path::new(path), flags);
            out::line(&result.map_or_else(|e| errno::of(&e), |()| "ok".to_owned()));
        }
        _ => return None,
    }
    Some(())
}
