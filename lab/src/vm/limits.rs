//! How long each part of a VM's life may take: every limit of the lab that waits for a guest is
//! here or is a limit of the scenario, and one [`Slowdown`] stretches them all.
//!
//! | limit | waits for | when it passes |
//! | --- | --- | --- |
//! | [`Limits::boot`] | the agent's first answer after a cold boot | the boot failed |
//! | [`Limits::wake`] | the same of a clone | the clone failed |
//! | [`Limits::silence`] | any sign of life, while something else is awaited | as that limit |
//! | step, call and case of the scenario | the step, a call in it, all steps | HANG |
//! | [`Limits::request`] | a short answer of the agent | the agent is lost |
//! | [`Limits::sysrq`] | the kernel's own answer in an escalation | the next means is tried |
//! | [`Limits::end`] | each step of the end of a VM (its grace) | the next step |
//!
//! What QEMU alone answers (sockets, machine protocol) is not guest work and is not stretched.
//! The kernel's own detectors are set to come later than the lab's limits where code is executed
//! slowly, so that they do not tell of stalls that are none.

use std::time::Duration;

use super::spec::Accel;

/// Options of a kernel that make it slow, and by what factor. A boot with KASAN and lockdep
/// together takes about eight times as long; how that divides between the two is estimated.
const SANITIZERS: [(&str, u32); 3] = [("KASAN", 4), ("KCSAN", 5), ("PROVE_LOCKING", 2)];

/// The most that limits are stretched: a guest that is slower still is of no use.
const MAX_FACTOR: u32 = 32;

/// How much slower a guest is than a plain kernel under KVM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slowdown(u32);

impl Slowdown {
    /// A plain kernel under KVM.
    pub const NONE: Slowdown = Slowdown(1);

    /// Of a kernel whose configuration has the options that `has` tells of. From 1 to 32.
    pub fn of(accel: Accel, has: impl Fn(&str) -> bool) -> Slowdown {
        let slow = SANITIZERS.iter().filter(|(option, _)| has(option));
        let factor: u32 = slow.map(|(_, factor)| factor).product();
        Slowdown((accel.slowdown() * factor).min(MAX_FACTOR))
    }

    /// Of a kernel without sanitizers.
    pub fn plain(accel: Accel) -> Slowdown {
        Slowdown::of(accel, |_| false)
    }

    /// The factor.
    pub fn factor(self) -> u32 {
        self.0
    }

    /// A limit for a plain kernel under KVM, stretched.
    pub fn stretch(self, limit: Duration) -> Duration {
        limit.saturating_mul(self.0)
    }

    /// Settings of the kernel's own detectors, as words of its command line: RCU stalls, hung
    /// tasks, lockups. None where the guest runs at full speed.
    pub fn kernel_args(self) -> Vec<String> {
        let [stall_s, hung_s, thresh_s] = match self.0 {
            ..=1 => return Vec::new(),
            2..=3 => [100, 140, 55],
            _ => [300, 420, 165],
        };
        vec![
            format!("rcupdate.rcu_cpu_stall_timeout={stall_s}"),
            format!("sysctl.kernel.hung_task_timeout_secs={hung_s}"),
            format!("watchdog_thresh={thresh_s}"),
        ]
    }
}

/// Limits of one VM, each for one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// What stretched them, and stretches those of the scenario.
    pub slowdown: Slowdown,
    /// From the start of QEMU to each of its sockets.
    pub connect: Duration,
    /// Greeting and negotiation of the machine protocol.
    pub greeting: Duration,
    /// One command of the machine protocol.
    pub command: Duration,
    /// From the hello to its answer in a cold boot.
    pub boot: Duration,
    /// How long neither console nor agent may show life.
    pub silence: Duration,
    /// From the hello to its answer in a clone.
    pub wake: Duration,
    /// A short request to the agent.
    pub request: Duration,
    /// Saving or loading a template's state.
    pub state: Duration,
    /// The whole answer of the kernel to one sysrq or NMI.
    pub sysrq: Duration,
    /// Writing a vmcore.
    pub vmcore: Duration,
    /// Each step of the end of a VM.
    pub end: Duration,
}

impl Limits {
    /// The limits of a guest that is slower by `slowdown`.
    pub fn new(slowdown: Slowdown) -> Limits {
        let seconds = |base: u64| slowdown.stretch(Duration::from_secs(base));
        Limits {
            slowdown,
            connect: Duration::from_secs(10),
            greeting: Duration::from_secs(10),
            command: Duration::from_secs(10),
            boot: seconds(15),
            silence: seconds(10),
            wake: seconds(5),
            request: seconds(5),
            state: seconds(5),
            sysrq: seconds(4),
            vmcore: Duration::from_secs(120),
            end: Duration::from_secs(3),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accelerator_and_sanitizers_multiply_up_to_a_bound() {
        let with = |options: &'static [&str]| move |name: &str| options.contains(&name);
        let factor = |accel, options| Slowdown::of(accel, with(options)).factor();
        assert_eq!(factor(Accel::Kvm, &[]), 1);
        assert_eq!(factor(Accel::Tcg, &[]), 4);
        assert_eq!(factor(Accel::Kvm, &["PROVE_LOCKING", "FUSE_FS"]), 2);
        assert_eq!(factor(Accel::Tcg, &["KASAN", "PROVE_LOCKING"]), 32);
        assert_eq!(factor(Accel::Tcg, &["KASAN", "KCSAN"]), MAX_FACTOR);
    }

    #[test]
    fn one_factor_stretches_every_limit_of_guest_work() {
        let (one, four) = (Slowdown::plain(Accel::Kvm), Slowdown::plain(Accel::Tcg));
        let (fast, slow) = (Limits::new(one), Limits::new(four));
        let guest = |l: &Limits| [l.boot, l.silence, l.wake, l.request, l.state, l.sysrq];
        for (fast, slow) in guest(&fast).into_iter().zip(guest(&slow)) {
            assert_eq!(fast * 4, slow);
        }
        assert_eq!(fast.connect, slow.connect);
        assert_eq!(four.stretch(Duration::MAX), Duration::MAX);
    }

    #[test]
    fn a_guest_that_boots_without_a_word_is_not_silent_before_a_boot_takes() {
        let limits = Limits::new(Slowdown::plain(Accel::Tcg));
        assert!(limits.silence < limits.boot);
        assert!(limits.silence > limits.wake, "a clone has nothing to print");
    }

    #[test]
    fn detectors_of_a_slow_kernel_come_late() {
        assert_eq!(Slowdown::plain(Accel::Kvm).kernel_args(), Vec::<String>::new());
        let text = Slowdown::plain(Accel::Tcg).kernel_args().join(" ");
        assert_eq!(
            text,
            "rcupdate.rcu_cpu_stall_timeout=300 sysctl.kernel.hung_task_timeout_secs=420 \
             watchdog_thresh=165"
        );
        let lockdep = Slowdown::of(Accel::Kvm, |name| name == "PROVE_LOCKING");
        assert!(lockdep.kernel_args().join(" ").contains("stall_timeout=100"));
    }
}
