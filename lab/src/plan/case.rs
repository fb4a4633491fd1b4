//! One planned case.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::config::scenario::{ImageKind, Scenario};
use crate::config::topology::Topology;
use crate::vm::vng::REQUIRED;

/// One planned case.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// `kernel/topology/scenario`, with `#N` behind it from the second repeat on.
    pub id: String,
    /// Kernel name as given.
    pub kernel: String,
    /// Layout.
    pub topology: Arc<Topology>,
    /// Scenario.
    pub scenario: Arc<Scenario>,
    /// Seed of every random choice of the case.
    pub seed: u64,
    /// It runs on the base kernel, only to be compared with.
    pub base: bool,
    /// What the scenario wants and the kernel's entry does not offer.
    pub lacking: Vec<String>,
}

impl Case {
    /// Topology, scenario and repeat: what the same case has in common on all kernels.
    pub fn place(&self) -> &str {
        self.id.get(self.kernel.len() + 1..).unwrap_or(&self.id)
    }

    /// Id without the repeat.
    pub fn base_id(&self) -> &str {
        self.id.split('#').next().unwrap_or(&self.id)
    }
}

/// Seed of a case: the same run seed and place ([`Case::place`]) give the same seed everywhere and
/// always. It is the same on all kernels, so that they make the same choices.
pub fn case_seed(run_seed: u64, place: &str) -> u64 {
    hash("lab case seed", run_seed, place)
}

/// Shard of a case, 0 to `of` - 1. It depends on the place alone, so it stays when others come,
/// and what is compared is in one shard.
pub(super) fn shard_of(place: &str, of: u32) -> u32 {
    // Below `of`, which is a u32.
    (hash("lab case shard", 0, place) % u64::from(of.max(1))) as u32
}

fn hash(purpose: &str, number: u64, id: &str) -> u64 {
    let mut hasher = Sha256::new();
    hasher.update(purpose.as_bytes());
    hasher.update([0]);
    hasher.update(number.to_le_bytes());
    hasher.update(id.as_bytes());
    let digest = hasher.finalize();
    digest.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// Why the case cannot run, or none. `enabled` tells whether a kernel option is `y`; without it
/// the options are not looked at. Names every option that is missing.
pub fn skip_reason(case: &Case, enabled: Option<&dyn Fn(&str) -> bool>) -> Option<String> {
    let requires = &case.scenario.requires;
    let (cpus, nodes) = (case.topology.cpus, case.topology.nodes.len());
    if cpus < requires.min_cpus {
        return Some(format!("needs {} CPUs, the topology has {cpus}", requires.min_cpus));
    }
    if nodes < requires.min_nodes as usize {
        return Some(format!("needs {} NUMA nodes, the topology has {nodes}", requires.min_nodes));
    }
    if !case.lacking.is_empty() {
        return Some(format!("the kernel's entry does not offer {}", case.lacking.join(", ")));
    }
    let enabled = enabled?;
    let on_host = case.scenario.image == ImageKind::Host;
    let root = REQUIRED.iter().filter(|_| on_host).map(|option| (*option).to_owned());
    let root: Vec<String> = root.collect();
    let missing: Vec<String> = requires
        .config
        .iter()
        .chain(&root)
        .filter(|option| !enabled(option))
        .map(|option| format!("CONFIG_{option}"))
        .collect();
    (!missing.is_empty()).then(|| format!("the kernel lacks {}", missing.join(", ")))
}
