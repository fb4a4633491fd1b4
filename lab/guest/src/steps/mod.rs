//! The steps of a scenario, as the agent drives them: it starts servers and clients, watches
//! the kernel, and puts together what was seen. Calls on a mount are made by clients only.

mod child;
mod fio;
mod mounts;
mod place;
mod run;
mod sabotage;
mod serve;
mod teardown;
mod trace;
mod tree;

pub(crate) use run::{Context, run};
