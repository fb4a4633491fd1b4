//! The one static binary of the guest. What it does is decided by its first argument:
//!
//! | role | started by | what it does |
//! | --- | --- | --- |
//! | PID 1, whatever its arguments | the kernel | mounts the pseudo file systems, forks the agent, reaps, powers off |
//! | `agent` | init (by fork) | speaks frames with the host on the virtio-serial ports, runs steps |
//! | `agent-on-host-root` | virtme-ng's init | mounts what is missing, then is the agent |
//! | `serve` | the agent | the FUSE server of lab-fuse: a spec and questions as JSON lines |
//! | `client ...` | the agent | touches a mount under test on behalf of a step, see [`client`] |
//!
//! Every wait has a bound, and no role but a client ever touches a mount under test. What is
//! not here: verdicts (the host judges) and the FUSE server itself (package lab-fuse).

mod agent;
mod client;
mod init;
mod random;
mod report;
mod steps;
mod sys;
mod text;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    // Never by name alone: init mounts over /dev and powers the machine off.
    if std::process::id() == 1 {
        return init::main();
    }
    match args.first().map(String::as_str) {
        Some("agent") => agent::main(),
        Some("agent-on-host-root") => init::on_host_root(),
        Some("serve") => serve(),
        Some("client") => client::main(&args[1..]),
        _ => ExitCode::from(64),
    }
}

fn serve() -> ExitCode {
    sys::process::name("lab-serve");
    ExitCode::from(u8::try_from(lab_fuse::control::main()).unwrap_or(u8::MAX))
}
