//! How long until a guest answers: clone, cold boot, and virtme-ng, interleaved in one run.
//!
//! `cargo bench --bench boot -- [--rounds N] [--vng PATH] [--virtiofsd DIR] [--json FILE]`
//!
//! A round is one cold boot, three clones and, with `--vng`, one virtme-ng run that echoes a
//! nonce on the same kernel, vCPUs and memory; a virtme-ng run that does not echo is no
//! measurement and is counted as such. Times run from the spawn of the program to the nonce.

#![allow(clippy::print_stdout)] // a benchmark prints its table
#![allow(clippy::unwrap_used)] // and may end at the first surprise

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lab::config::scenario::Profile;
use lab::host::paths::{self, Overrides, Paths};
use lab::host::process::{self, Program};
use lab::host::slots::Share;
use lab::plan::{Selection, plan};
use lab::run::{Host, prepare, project};
use lab::vm::machine::Machine;
use lab::vm::qemu::Qemu;
use lab::vm::{End, Limits, Slowdown};

use lab::vm::spec::{Accel, Ram, VmSpec};
use lab::vm::template::Template;
use tokio_util::sync::CancellationToken;

const CLONES_PER_ROUND: usize = 3;

struct Options {
    rounds: usize,
    vng: Option<PathBuf>,
    virtiofsd: Option<PathBuf>,
    json: Option<PathBuf>,
}

#[derive(Default)]
struct Samples {
    cold_ms: Vec<f64>,
    clone_ms: Vec<f64>,
    vng_ms: Vec<f64>,
    vng_silent: usize,
}

fn options() -> Options {
    let mut options = Options { rounds: 10, vng: None, virtiofsd: None, json: None };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().unwrap_or_else(|| panic!("{arg} needs a value"));
        match arg.as_str() {
            "--rounds" => options.rounds = value().parse().unwrap(),
            "--vng" => options.vng = Some(value().into()),
            "--virtiofsd" => options.virtiofsd = Some(value().into()),
            "--json" => options.json = Some(value().into()),
            "--bench" => {}
            other => panic!("unknown argument {other}"),
        }
    }
    options
}

struct Bench {
    spec: VmSpec,
    limits: Limits,
    temp: tempfile::TempDir,
    cancel: CancellationToken,
}

impl Bench {
    fn dir(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    async fn cold(&self, index: usize) -> f64 {
        let mut spec = self.spec.clone();
        spec.dir = self.dir(&format!("b{index}"));
        let record = self.dir("cold");
        let mut machine = Machine::start(&spec, &record, &self.limits, &self.cancel).await.unwrap();
        machine.agent_hello(self.limits.boot, &self.cancel).await.unwrap();
        ready_ms(machine).await
    }

    async fn clone(&self, template: &Template, index: usize) -> f64 {
        let dir = self.dir(&format!("c{index}"));
        let record = self.dir("clone");
        let cloned = template.clone_into("bench", &dir, &record, &self.limits, &self.cancel);
        ready_ms(cloned.await.unwrap()).await
    }

    /// None when the nonce was not echoed.
    async fn vng(&self, options: &Options, index: usize) -> Option<f64> {
        let vng = options.vng.as_ref()?;
        let nonce = format!("nonce-{index}-{:x}", std::process::id());
        let mut words = vec![vng.display().to_string(), "--verbose".into(), "--run".into()];
        words.push(self.spec.kernel.display().to_string());
        words.extend(["--cpus", "4", "--user", "root"].map(String::from));
        for node in &self.spec.topology.nodes {
            let cpus: Vec<u32> = node.cpus.iter().copied().collect();
            let mib = node.memory_bytes >> 20;
            words.push("--numa".into());
            words.push(format!("{mib}M,cpus={}-{}", cpus[0], cpus[cpus.len() - 1]));
        }
        let memory = self.spec.topology.memory_bytes() >> 20;
        words.extend(["--memory".into(), format!("{memory}M")]);
        if self.spec.accel == Accel::Tcg {
            words.push("--disable-kvm".into());
        }
        words.extend(["--".into(), "echo".into(), nonce.clone()]);
        // virtme-ng wants a terminal; `script` gives it one.
        let mut program =
            Program::new("script", ["-qefc", &shell_words::join(&words), "/dev/null"]);
        // virtme-ng looks for its own helpers and for virtiofsd in PATH.
        let usual = std::env::var_os("PATH").unwrap_or_default();
        let own = vng.parent().map(Path::to_owned).into_iter().chain(options.virtiofsd.clone());
        let path = std::env::join_paths(own.chain(std::env::split_paths(&usual))).unwrap();
        program.env.push(("PATH".into(), path));
        echo_ms(program, &nonce).await
    }
}

/// From the spawn of `program` until its output has the nonce on a line of its own.
async fn echo_ms(program: Program, nonce: &str) -> Option<f64> {
    let begin = Instant::now();
    let running = process::spawn(program).await.unwrap();
    let seen = |text: &str| text.lines().any(|l| l.trim() == nonce);
    while begin.elapsed() < Duration::from_secs(120) {
        if seen(&running.stdout()) {
            return Some(begin.elapsed().as_secs_f64() * 1e3);
        }
        if running.exited().is_some() && !seen(&running.stdout()) {
            return None;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    None
}

async fn ready_ms(machine: Machine) -> f64 {
    let ready = machine.ready_after().unwrap();
    machine.end(End::Quit).await;
    ready.as_secs_f64() * 1e3
}

fn quantile(sorted: &[f64], q: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * q).ceil() as usize]
}

fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn report(samples: &Samples, json: Option<&Path>) {
    let (cold, clone, vng) =
        (sorted(&samples.cold_ms), sorted(&samples.clone_ms), sorted(&samples.vng_ms));
    let mut rows = vec![("cold boot", &cold), ("clone", &clone)];
    if !vng.is_empty() {
        rows.push(("virtme-ng", &vng));
    }
    println!("{:<10} {:>4} {:>8} {:>8} {:>8}  ms", "what", "n", "min", "median", "p95");
    for (name, values) in rows {
        let (low, median, high) = (values[0], quantile(values, 0.5), quantile(values, 0.95));
        println!("{name:<10} {:>4} {low:>8.0} {median:>8.0} {high:>8.0}", values.len());
    }
    let clone_ratio = quantile(&clone, 0.95) / quantile(&cold, 0.5);
    println!("clone p95 / cold median: {clone_ratio:.3} (limit 0.10)");
    let vng_ratio = (!vng.is_empty()).then(|| quantile(&cold, 0.5) / quantile(&vng, 0.5));
    if let Some(ratio) = vng_ratio {
        println!("cold median / virtme-ng median: {ratio:.3} (limit 0.8)");
    }
    if samples.vng_silent > 0 {
        println!("virtme-ng runs that did not echo: {}", samples.vng_silent);
    }
    if let Some(path) = json {
        let value = serde_json::json!({
            "cold_ms": samples.cold_ms, "clone_ms": samples.clone_ms, "vng_ms": samples.vng_ms,
            "vng_silent": samples.vng_silent, "clone_ratio": clone_ratio, "vng_ratio": vng_ratio,
        });
        std::fs::write(path, value.to_string()).unwrap();
    }
}

async fn prepare_bench(cancel: CancellationToken) -> Bench {
    let cwd = std::env::current_dir().unwrap();
    let found = project::open(None, &cwd).unwrap();
    let env = |name: &str| std::env::var_os(name);
    let paths = Paths::find(env, found.root.as_deref(), Overrides::default()).unwrap();
    let selection = Selection {
        base: None,
        kernels: vec!["stock".into()],
        topologies: vec!["2x2".into()],
        scenarios: vec!["correctness/tree".into()],
        profile: Profile::Quick,
        repeat: 1,
        seed: 1,
        shard: None,
    };
    let plan = plan(&found.project, &selection).unwrap();
    let tell = |line: &str| println!("{line}");
    let host = Host {
        paths: &paths,
        root: found.root.as_deref(),
        qemu: None,
        share: Share::default(),
        guest: None,
        vng: None,
        keep: lab::run::Keep::default(),
        tell: &tell,
    };
    let prepared = prepare::for_bench(&host, &plan, &cancel).await.unwrap();
    let temp = paths::private_temp().unwrap();
    let qemu = Qemu::find(None, &cancel).await.unwrap();
    let spec = VmSpec {
        qemu: qemu.path,
        name: "bench".into(),
        accel: prepared.accel,
        topology: prepared.topology,
        kernel: prepared.kernel,
        initrd: prepared.image,
        cmdline: prepared.cmdline,
        ram: Ram::Anonymous,
        incoming: false,
        dir: temp.path().join("t"),
        vng: None,
    };
    let limits = Limits::new(Slowdown::plain(prepared.accel));
    Bench { spec, limits, temp, cancel }
}

fn main() {
    let options = options();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let bench = prepare_bench(CancellationToken::new()).await;
        let record = bench.dir("template");
        let template =
            Template::make(&bench.spec, &record, &bench.limits, &bench.cancel).await.unwrap();
        let mut samples = Samples::default();
        for round in 0..options.rounds {
            samples.cold_ms.push(bench.cold(round).await);
            for index in 0..CLONES_PER_ROUND {
                let index = round * CLONES_PER_ROUND + index;
                samples.clone_ms.push(bench.clone(&template, index).await);
            }
            if options.vng.is_some() {
                match bench.vng(&options, round).await {
                    Some(ms) => samples.vng_ms.push(ms),
                    None => samples.vng_silent += 1,
                }
            }
        }
        report(&samples, options.json.as_deref());
    });
}
