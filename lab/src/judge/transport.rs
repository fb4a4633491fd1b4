//! The transport is asserted, never assumed.

use lab_proto::observe::{Observation, ServeObservation};
use lab_proto::server::{ServerSpec, ServerStats, Transport};
use lab_proto::step::Step;

use super::evidence::Evidence;
use super::finding::Finding;
use super::policy;
use super::verdict::{Owner, Verdict};

/// Opcodes that the kernel sends over /dev/fuse also when the ring is ready.
const DEV_FUSE_ALWAYS: [&str; 3] = ["forget", "batch_forget", "interrupt"];

/// What is wrong with the transport of any server of the case.
pub(super) fn check(evidence: &Evidence<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for named in &evidence.scenario.steps {
        let Step::Serve(spec) = &named.step else { continue };
        let Some(Observation::Served(seen)) = evidence.observation(&named.name) else { continue };
        let report = &seen.report;
        if report.transport != spec.transport {
            findings.extend(other_transport(&named.name, spec, seen));
        } else if spec.transport == Transport::Ring {
            findings.extend(ring(evidence, (&named.name, spec), seen));
            findings.extend(bypass(evidence, &named.name, &report.name));
        }
    }
    findings
}

/// Another transport than the one asked for is right only where it was asked for by name.
fn other_transport(step: &str, spec: &ServerSpec, seen: &ServeObservation) -> Option<Finding> {
    if spec.transport == Transport::Ring && spec.fallback && seen.report.fallback_reason.is_some() {
        return None;
    }
    let (owner, offer) = match seen.enable_uring {
        Some(true) => (Owner::Server, "the kernel offers the ring"),
        Some(false) => (Owner::Kernel, "fuse.enable_uring is off"),
        None => (Owner::Kernel, "the kernel has no fuse.enable_uring"),
    };
    let cause = format!(
        "step `{step}`: server `{}` asked for {} and got {} ({offer})",
        seen.report.name,
        spec.transport.name(),
        seen.report.transport.name()
    );
    let reason = seen.report.fallback_reason.iter().map(|r| format!("server: {r}"));
    Some(Finding::new(Verdict::Fail, owner, cause).because(reason))
}

/// One registered queue for each possible CPU, or each that was asked for, each with its io_uring instance.
fn ring(
    evidence: &Evidence<'_>,
    (step, spec): (&str, &ServerSpec),
    seen: &ServeObservation,
) -> Option<Finding> {
    let report = &seen.report;
    let possible = evidence.topology.max_cpus;
    let wanted = policy::queues(&spec.queues, evidence.topology).len() as u32;
    let wrong = if seen.possible_cpus != possible {
        let cause = format!(
            "step `{step}`: guest has {} possible CPUs, topology `{}` has {possible}",
            seen.possible_cpus, evidence.topology.name
        );
        return Some(Finding::infra(cause));
    } else if report.queues != wanted {
        match wanted == possible {
            true => format!("{} queues registered, {possible} CPUs are possible", report.queues),
            false => format!("{} queues registered, {wanted} were asked for", report.queues),
        }
    } else if seen.uring_fds < report.queues {
        format!("{} queues told, {} io_uring instances open", report.queues, seen.uring_fds)
    } else if seen.enable_uring != Some(true) {
        "the ring told, but fuse.enable_uring is not on".into()
    } else {
        return None;
    };
    let cause = format!("step `{step}`: server `{}`: {wrong}", report.name);
    Some(Finding::new(Verdict::Fail, Owner::Server, cause))
}

/// Once the ring is ready, no request comes over /dev/fuse.
fn bypass(evidence: &Evidence<'_>, step: &str, server: &str) -> Option<Finding> {
    let strays = |s: &ServerStats| -> Vec<String> {
        let stray = |(op, n): &&(String, u64)| *n > 0 && !DEV_FUSE_ALWAYS.contains(&op.as_str());
        s.dev_fuse.iter().filter(stray).map(|(op, n)| format!("{op} {n}")).collect()
    };
    let all = stats(evidence).filter(|s| s.name == server).map(strays);
    let found = all.into_iter().find(|s| !s.is_empty())?;
    Some(Finding::fail(format!(
        "step `{step}`: requests of `{server}` came over /dev/fuse though its ring was ready: {}",
        found.join(", ")
    )))
}

/// Every telemetry of the case.
fn stats<'a>(evidence: &Evidence<'a>) -> impl Iterator<Item = &'a ServerStats> {
    let observed = evidence.observations.iter().flat_map(|(_, o)| -> Vec<&ServerStats> {
        match o {
            Observation::Unmounted(u) => u.stats.iter().collect(),
            Observation::Placed(p) => vec![&p.stats],
            Observation::TornDown(t) => t.stats.iter().collect(),
            Observation::Fio(f) => f.stats.iter().collect(),
            _ => Vec::new(),
        }
    });
    observed.chain(evidence.final_stats)
}
