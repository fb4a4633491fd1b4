//! Builds the guest binary and hands its path to `include_bytes!`.
//!
//! The guest is another package for another target configuration (static), so it is built by a
//! cargo of its own in a target directory of its own: the outer cargo holds the lock of the
//! usual one. `LAB_GUEST_BIN` names a ready binary instead.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// What of the outer build must not reach the guest's.
const CLEANED: [&str; 7] = [
    "RUSTFLAGS",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "CLIPPY_ARGS",
    "CARGO_TARGET_DIR",
    "CARGO_BUILD_TARGET",
    "CARGO_BUILD_RUSTFLAGS",
];

fn main() {
    println!("cargo:rerun-if-env-changed=LAB_GUEST_BIN");
    let root = PathBuf::from(required("CARGO_MANIFEST_DIR"));
    for input in ["lab/build.rs", "lab/guest", "lab/proto", "lab/fuse", "Cargo.lock", "Cargo.toml"]
    {
        println!("cargo:rerun-if-changed={}", root.join(input).display());
    }
    let binary = match env::var_os("LAB_GUEST_BIN") {
        Some(path) => std::path::absolute(path).expect("LAB_GUEST_BIN is a path"),
        None => build(&root),
    };
    assert!(binary.is_file(), "no guest binary at {}", binary.display());
    println!("cargo:rustc-env=LAB_GUEST_BIN={}", binary.display());
}

fn build(root: &Path) -> PathBuf {
    let out = PathBuf::from(required("OUT_DIR"));
    // OUT_DIR is <target>/<profile>/build/<package>/out.
    let target = out.ancestors().nth(4).expect("OUT_DIR is below the target directory");
    let target = target.join("guest");
    let mut cargo = Command::new(required("CARGO"));
    cargo
        .current_dir(root)
        .args(["build", "--locked", "-p", "lab-guest", "--profile", "guest"])
        .args(["--target", TARGET, "--target-dir"])
        .arg(&target)
        .env("CARGO_ENCODED_RUSTFLAGS", "-Ctarget-feature=+crt-static");
    for name in CLEANED {
        cargo.env_remove(name);
    }
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(|n| n.starts_with("CARGO_PROFILE_")) {
            cargo.env_remove(&name);
        }
    }
    // A build script is no part of the lab that runs: there is no process module to go through.
    #[allow(clippy::disallowed_methods)]
    let status = cargo.status().expect("cargo can be started");
    assert!(status.success(), "the guest binary did not build: {status}");
    target.join(TARGET).join("guest").join("lab-guest")
}

fn required(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}
