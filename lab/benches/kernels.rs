//! How long until a kernel: from scratch against virtme-ng's own configuration, after a change in
//! fs/fuse, and from a saved patch to a verdict.
//!
//! `cargo bench --bench kernels -- [--rounds N] [--scratch] [--vng PATH] [--twice] [--lab PATH]
//! [--out FILE]`
//!
//! Without flags: what a changed patch costs, on the tree of `v7.3` that is built first where it is
//! not. `--scratch` builds `v7.3` in an empty store and counts CPU time; `--twice` does so again and
//! compares the images; `--vng` builds the same source with the configuration of that virtme-ng,
//! right after, and gives the ratio. CPU time is that of all compilers together (user and system).

#![allow(clippy::print_stdout)] // a benchmark prints its table
#![allow(clippy::unwrap_used)] // and may end at the first surprise

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lab::config::kernel::KernelSource;
use lab::host::paths::{Overrides, Paths};
use lab::host::process::{self, Program};
use lab::kernel::build::Builder;
use lab::kernel::recipe::{Patch, Recipe};
use lab::kernel::{Fetch, assemble};
use lab::run::project;
use tokio_util::sync::CancellationToken;

const LIMIT: Duration = Duration::from_secs(4 * 3600);

struct Options {
    rounds: usize,
    scratch: bool,
    twice: bool,
    vng: Option<PathBuf>,
    lab: PathBuf,
    out: Option<PathBuf>,
}

fn options() -> Options {
    let mut options = Options {
        rounds: 5,
        scratch: false,
        twice: false,
        vng: None,
        lab: env!("CARGO_BIN_EXE_lab").into(),
        out: None,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().unwrap_or_else(|| panic!("{arg} needs a value"));
        match arg.as_str() {
            "--rounds" => options.rounds = value().parse().unwrap(),
            "--scratch" => options.scratch = true,
            "--twice" => (options.scratch, options.twice) = (true, true),
            "--vng" => (options.scratch, options.vng) = (true, Some(value().into())),
            "--lab" => options.lab = value().into(),
            "--out" => options.out = Some(value().into()),
            "--bench" => {}
            other => panic!("unknown argument {other}"),
        }
    }
    options
}

/// CPU time of all children that ended, seconds.
fn children_s() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = text.rsplit_once(") ").unwrap().1.split(' ').collect();
    let ticks = |index: usize| fields[index].parse::<f64>().unwrap();
    // cutime and cstime, in the 100 ticks a second of every Linux user space.
    (ticks(13) + ticks(14)) / 100.0
}

/// Wall and CPU time of what a future does, seconds.
async fn timed<T>(work: impl Future<Output = T>) -> (T, f64, f64) {
    let (begin, cpu) = (Instant::now(), children_s());
    let done = work.await;
    (done, begin.elapsed().as_secs_f64(), children_s() - cpu)
}

/// A change that no compiler can leave out.
fn change(number: usize) -> Patch {
    let text = format!(
        "Subject: [PATCH] fuse: lab: bench {number}\n\nText.\n---\n--- a/fs/fuse/dev_uring.c\n\
         +++ b/fs/fuse/dev_uring.c\n@@ -8,5 +8,7 @@\n #include \"args.h\"\n #include \
         \"dev_uring_i.h\"\n #include \"fuse_trace.h\"\n+static const char lab_bench[] __used = \
         \"{number}-{}\";\n+\n \n #include <linux/bitmap.h>\n",
        std::process::id()
    );
    Patch { name: format!("{number:04}-bench.patch"), text: text.into_bytes().into() }
}

/// Median, least and most.
fn spread(samples: &[f64]) -> String {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted[sorted.len() / 2];
    format!(
        "{middle:.1} s ({:.1} to {:.1}, n = {})",
        sorted[0],
        sorted[sorted.len() - 1],
        sorted.len()
    )
}

struct Bench {
    options: Options,
    cache: PathBuf,
    recipe: Recipe,
    cancel: CancellationToken,
    out: String,
}

impl Bench {
    fn row(&mut self, what: &str, seen: &str, limit: &str) {
        println!("{what}: {seen} (limit {limit})");
        let _ = writeln!(self.out, "| {what} | {seen} | {limit} |");
    }

    /// Builds in an empty store that shares only the unpacked source.
    async fn scratch(&self, dir: &Path) -> (String, f64, f64) {
        let build = dir.join("build");
        std::fs::create_dir_all(&build).unwrap();
        let sources = build.join("sources");
        if !sources.exists() {
            std::os::unix::fs::symlink(self.cache.join("build/sources"), &sources).unwrap();
        }
        let mut builder = Builder::new(dir, Fetch::Auto, &|_| ());
        builder.shut_in = false;
        let (built, wall, cpu) = timed(builder.build(&self.recipe, &self.cancel)).await;
        (built.unwrap().sha256, wall, cpu)
    }

    async fn scratch_builds(&mut self) {
        let place = |cache: &Path| {
            tempfile::Builder::new().prefix(".tmp-bench-").tempdir_in(cache.join("build")).unwrap()
        };
        let first = place(&self.cache);
        let (sha256, wall, lean) = self.scratch(first.path()).await;
        self.row("lean, from scratch", &format!("{lean:.0} CPU-s, {wall:.0} s"), "-");
        drop(first);
        if self.options.twice {
            let second = place(&self.cache);
            let (again, ..) = self.scratch(second.path()).await;
            let told = if again == sha256 { "the same image" } else { "ANOTHER image" };
            self.row("lean, from scratch in another place", told, "the same image");
        }
        if let Some(vng) = self.options.vng.clone() {
            let dir = place(&self.cache);
            let (wall, cpu) = self.by_vng(&vng, dir.path()).await;
            let seen = format!("{cpu:.0} CPU-s, {wall:.0} s");
            self.row("virtme-ng's configuration, from scratch", &seen, "-");
            self.row("CPU time, lean / virtme-ng", &format!("{:.2}", lean / cpu), "0.45");
        }
    }

    /// The same source and compiler, with what `vng --kconfig` asks for.
    async fn by_vng(&self, vng: &Path, dir: &Path) -> (f64, f64) {
        let tree = dir.join("linux");
        let sources = std::fs::read_dir(self.cache.join("build/sources")).unwrap().flatten();
        let source = sources.map(|e| e.path()).find(|path| path.join("Makefile").is_file());
        let copy = ["-al".into(), source.unwrap().into_os_string(), tree.clone().into_os_string()];
        self.run(Program::new("cp", copy), dir).await;
        let (path, own) = (std::env::var_os("PATH").unwrap_or_default(), vng.parent().unwrap());
        let dirs = std::iter::once(own.to_owned()).chain(std::env::split_paths(&path));
        let path = std::env::join_paths(dirs).unwrap();
        let work = async {
            let mut kconfig = Program::new(vng, ["--kconfig"]);
            kconfig.env.push(("PATH".into(), path));
            self.run(kconfig, &tree).await;
            let jobs = std::thread::available_parallelism().map_or(1, usize::from);
            let args = ["-s".into(), format!("-j{jobs}"), "bzImage".into()];
            self.run(Program::new("make", args), &tree).await;
        };
        let ((), wall, cpu) = timed(work).await;
        assert!(tree.join("arch/x86/boot/bzImage").is_file());
        (wall, cpu)
    }

    async fn run(&self, mut program: Program, cwd: &Path) {
        program.cwd = Some(cwd.to_owned());
        let name = program.name();
        let output = process::run(program, LIMIT, &self.cancel).await.unwrap();
        assert!(output.status.success(), "{name}: {}{}", output.stdout, output.stderr);
    }

    async fn image_of_a_change(&mut self) {
        let builder = Builder::new(&self.cache, Fetch::Auto, &|_| ());
        builder.build(&self.recipe, &self.cancel).await.unwrap();
        let mut walls = Vec::new();
        for number in 0..self.options.rounds {
            let recipe = Recipe { patches: vec![change(number)], ..self.recipe.clone() };
            let (built, wall, _) = timed(builder.build(&recipe, &self.cancel)).await;
            built.unwrap();
            walls.push(wall);
        }
        self.row("a change in fs/fuse to an image", &spread(&walls), "15 s");
    }

    /// From a patch on disk to the verdict of a smoke case, by the program as users run it.
    async fn verdict_of_a_patch(&mut self) {
        let dir = tempfile::tempdir().unwrap();
        for part in ["kernels", "scenarios", "mine"] {
            std::fs::create_dir(dir.path().join(part)).unwrap();
        }
        let entry = "summary = 'mine'\nbase = 'v7.3'\nseries = 'mine'\n";
        std::fs::write(dir.path().join("kernels/mine.toml"), entry).unwrap();
        let mut walls = Vec::new();
        for number in 0..self.options.rounds {
            let patch = change(1000 + number);
            std::fs::write(dir.path().join("mine/0001-x.patch"), &patch.text).unwrap();
            let args =
                ["test", "--kernel", "mine", "--topology", "2x2", "--scenario", "teardown/abort"];
            let mut lab = Program::new(&self.options.lab, args);
            lab.env.push(("LAB_RUNS".into(), dir.path().join("runs").into()));
            lab.cwd = Some(dir.path().to_owned());
            let (ended, wall, _) = timed(process::run(lab, LIMIT, &self.cancel)).await;
            let output = ended.unwrap();
            assert!(output.stdout.contains("1 passed"), "{}{}", output.stdout, output.stderr);
            walls.push(wall);
        }
        self.row("a saved patch to a verdict", &spread(&walls), "30 s");
    }
}

#[tokio::main]
async fn main() {
    let cancel = CancellationToken::new();
    let env = |name: &str| std::env::var_os(name);
    let paths = Paths::find(env, None, Overrides::default()).unwrap();
    let cwd = std::env::current_dir().unwrap();
    let found = project::open(None, &cwd).unwrap();
    let entry = &found.project.kernels["v7.3"];
    let KernelSource::Built(spec) = &entry.source else { panic!("v7.3 is built") };
    let recipe = assemble::recipe("v7.3", spec, &cancel).await.unwrap();
    let mut bench =
        Bench { options: options(), cache: paths.cache, recipe, cancel, out: String::new() };
    bench.out.push_str("| what | seen | limit |\n| --- | --- | --- |\n");
    bench.image_of_a_change().await;
    bench.verdict_of_a_patch().await;
    if bench.options.scratch {
        bench.scratch_builds().await;
    }
    if let Some(path) = &bench.options.out {
        std::fs::write(path, &bench.out).unwrap();
    }
}
