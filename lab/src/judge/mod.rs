//! Observations to verdicts, and snapshots; pure but for `store`.

mod allowed;
mod base;
mod completed;
mod decide;
pub mod dump;
mod equal;
pub mod evidence;
pub mod exit;
mod finding;
mod fio;
mod flags;
mod hang;
pub mod layout;
pub mod policy;
mod render;
mod rules;
pub mod snapshot;
pub mod store;
mod taint;
mod transport;
pub mod verdict;

#[cfg(test)]
mod bent;
#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_completed;

pub use base::{BaseCase, Compared, Said, against, ran_on_base, said};
pub use decide::judge;
pub use evidence::{CaseEnd, Evidence, Judgement};
