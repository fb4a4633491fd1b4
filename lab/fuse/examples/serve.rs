//! The server as a program of its own, for trials: JSON lines as in `lab_proto::server`.

fn main() {
    std::process::exit(lab_fuse::control::main());
}
