//! The one static binary of the guest. What it does is decided by its first argument:
//!
//! | role | started by | what it does |
//! | --- | --- | --- |
//! | `init`, or any name as PID 1 | the kernel | mounts the pseudo file systems, forks the agent, reaps, powers off |
//! | `agent` | init (by fork) | speaks frames with the host on the virtio-serial ports, runs steps |
//!
//! Every wait has a bound, and no role but a client ever touches a mount under test. What is
//! not here: verdicts (the host judges) and the FUSE server itself (package lab-fuse).

mod agent;
mod init;
mod report;
mod sys;

use std::process::ExitCode;

fn main() -> ExitCode {
    let role = std::env::args().nth(1).unwrap_or_default();
    if std::process::id() == 1 {
        return init::main();
    }
    match role.as_str() {
        "init" => init::main(),
        "agent" => agent::main(),
        _ => ExitCode::from(64),
    }
}
