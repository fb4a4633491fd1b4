//! One fio run: its output goes to the host as an artifact, unread.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use lab_proto::message::{Fault, FaultKind};
use lab_proto::observe::{FioObservation, Observation};
use lab_proto::server::ServerAsk;
use lab_proto::step::Step;

use super::child::{Client, Line};
use super::run::{ASK_LIMIT, Context, fault};
use crate::report::facts::FIO;
use crate::sys::process;

/// Most of standard error that is kept, bytes.
const MAX_STDERR: u64 = 4096;

/// Time beyond twice the run's own for starting and for what a writing job lays out, guest time.
const SLACK: Duration = Duration::from_secs(120);

pub(super) fn run(step: &Step, context: &Context<'_>) -> Result<Observation, Fault> {
    let Step::Fio { path, runtime_ms, ramp_ms, .. } = step else {
        return Err(fault(FaultKind::Agent, "not a fio step"));
    };
    if !Path::new(FIO).exists() {
        return Err(fault(FaultKind::Unsupported, format!("no {FIO} in this image")));
    }
    lay_out(step, context)?;
    let argv = arguments(step, context.seed);
    for server in context.case.servers() {
        // Telemetry of the run alone; a server that is silent shows below.
        let _ = server.ask(&ServerAsk::Reset, ASK_LIMIT);
    }
    let files = Files::new(context.case.number());
    let limit = Duration::from_millis(runtime_ms.saturating_add(*ramp_ms)) * 2 + SLACK;
    let exit = execute(&argv, &files, limit, path)?;
    let artifact = files.artifact.clone();
    let artifact_bytes = context
        .bulk
        .send(context.session, &artifact, &files.stdout)
        .map_err(|e| fault(FaultKind::Agent, format!("artifact: {e}")))?;
    let stderr = tail(&files.stderr);
    let stats = context.case.stats(ASK_LIMIT).0;
    Ok(Observation::Fio(FioObservation { argv, exit, artifact, artifact_bytes, stderr, stats }))
}

/// Writes the files that a reading job needs; fio takes files that are there as they are.
fn lay_out(step: &Step, context: &Context<'_>) -> Result<(), Fault> {
    let Step::Fio { path, rw, size, jobs, .. } = step else { return Ok(()) };
    if !reads(rw) {
        return Ok(());
    }
    let client = Client::start(&["layout", path, &size.to_string(), &jobs.to_string()])?;
    loop {
        match client.line(context.call_limit) {
            Line::Text(line) if line == "ok" => {}
            Line::Text(line) if line == "done" => break,
            Line::Text(line) => {
                return Err(fault(FaultKind::Server, format!("laying files out: {line}")));
            }
            Line::Silent => return Err(client.hang("laying files out", context.call_limit)),
            Line::Ended => return Err(fault(FaultKind::Agent, "client: layout ended")),
        }
    }
    client.finish(Duration::from_secs(1));
    Ok(())
}

/// Whether a job of this kind reads, alone or mixed.
fn reads(rw: &str) -> bool {
    rw.contains("read") || rw.ends_with("rw")
}

/// Where one run writes. Removed with the value.
struct Files {
    artifact: String,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Files {
    fn new(number: u32) -> Files {
        let artifact = format!("fio-{number}.json");
        let stdout = Path::new("/run").join(&artifact);
        Files { stderr: stdout.with_extension("err"), artifact, stdout }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.stdout);
        let _ = fs::remove_file(&self.stderr);
    }
}

/// Runs fio in a process group of its own: it forks a process per job.
fn execute(argv: &[String], files: &Files, limit: Duration, path: &str) -> Result<String, Fault> {
    use std::os::unix::process::CommandExt;
    let failed = |e: std::io::Error| fault(FaultKind::Agent, format!("fio: {e}"));
    let mut command = Command::new(FIO);
    command
        .args(argv)
        .current_dir("/run")
        .stdin(Stdio::null())
        .stdout(File::create(&files.stdout).map_err(failed)?)
        .stderr(File::create(&files.stderr).map_err(failed)?)
        .process_group(0);
    let mut child = process::spawn(&mut command).map_err(failed)?;
    match process::wait_for(&mut child, limit) {
        Some(end) => Ok(end.to_string()),
        None => {
            let text = format!("fio on {path}: still runs after {} s", limit.as_secs());
            // It stays, so that a diagnosis shows where it waits.
            std::thread::spawn(move || child.wait());
            Err(fault(FaultKind::Hang, text))
        }
    }
}

fn arguments(step: &Step, seed: u64) -> Vec<String> {
    let Step::Fio { path, rw, block_size, size, iodepth, jobs, engine, direct, .. } = step else {
        return Vec::new();
    };
    let Step::Fio { runtime_ms, ramp_ms, .. } = step else { return Vec::new() };
    let mut argv = vec![
        "--name=lab".to_owned(),
        format!("--directory={path}"),
        format!("--rw={rw}"),
        format!("--bs={block_size}"),
        format!("--size={size}"),
        format!("--iodepth={iodepth}"),
        format!("--numjobs={jobs}"),
        format!("--ioengine={engine}"),
        format!("--direct={}", u8::from(*direct)),
        "--time_based=1".to_owned(),
        format!("--runtime={runtime_ms}ms"),
        "--allrandrepeat=1".to_owned(),
        // fio reads a signed number.
        format!("--randseed={}", seed >> 1),
        "--output-format=json+".to_owned(),
        "--eta=never".to_owned(),
    ];
    if *ramp_ms > 0 {
        argv.push(format!("--ramp_time={ramp_ms}ms"));
    }
    argv
}

/// The last bytes of a file as text.
fn tail(path: &Path) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(MAX_STDERR)))?;
        let mut bytes = Vec::new();
        file.take(MAX_STDERR).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_that_only_write_need_no_files() {
        for rw in ["read", "randread", "rw", "randrw", "readwrite"] {
            assert!(reads(rw), "{rw}");
        }
        assert!(!reads("write") && !reads("randwrite"));
    }

    #[test]
    fn the_job_is_repeatable_and_timed() {
        let step = Step::Fio {
            path: "/m".into(),
            rw: "randread".into(),
            block_size: 4096,
            size: 1 << 20,
            iodepth: 4,
            jobs: 1,
            engine: "io_uring".into(),
            direct: true,
            runtime_ms: 1500,
            ramp_ms: 0,
        };
        let line = arguments(&step, 9).join(" ");
        for part in ["--rw=randread", "--direct=1", "--runtime=1500ms", "--randseed=4"] {
            assert!(line.contains(part), "{part} in {line}");
        }
        assert!(!line.contains("ramp_time"));
    }
}
