//! The command line: clap structs, one file per verb. No logic of the lab lives here.

mod args;
mod bisect;
mod dispatch;
mod git_bisect;
mod how;
mod kernel;
mod list;
mod out;
mod report;
mod reporters;
mod rerun;
mod select;
mod series;
mod shell;
mod show;
mod test;

pub(crate) use dispatch::main;
