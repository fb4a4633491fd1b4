//! The tree of operations, line by line from a client.

use std::time::Duration;

use lab_proto::message::{Fault, FaultKind};
use lab_proto::observe::{Observation, TreeObservation};

use super::child::{Client, Line};
use super::run::{Context, fault};

/// Most lines, as the observation promises.
const MAX_LINES: usize = 4096;

pub(super) fn run(path: &str, context: &Context<'_>) -> Result<Observation, Fault> {
    let client = Client::start(&["tree", path])?;
    let (mut lines, mut at) = (Vec::new(), "start".to_owned());
    loop {
        match client.line(context.call_limit) {
            Line::Text(line) => match line.strip_prefix("? ") {
                Some(op) => at = op.to_owned(),
                None if lines.len() < MAX_LINES => lines.push(line),
                None => return Err(fault(FaultKind::Agent, "client: endless tree")),
            },
            Line::Silent => return Err(client.hang(&at, context.call_limit)),
            Line::Ended => break,
        }
    }
    client.finish(Duration::from_secs(1));
    if !lines.last().is_some_and(|line| line.starts_with("stat root")) {
        return Err(fault(FaultKind::Agent, format!("client: tree ended in {at}")));
    }
    Ok(Observation::Tree(TreeObservation { lines }))
}
