//! `lab shell`: a kernel with the host's root, by virtme-ng, for people and tools.
//!
//! vng's exit code says nothing (without a terminal it is 255 though the command ran), so the
//! command leaves its own in a directory that the guest may write to.

use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::launch::{Host, RunError};
use super::options::AccelChoice;
use super::{prepare, signals, source};
use crate::config::load::Project;
use crate::config::scenario::Profile;
use crate::host::files;
use crate::host::paths;
use crate::host::process::{self, Program};
use crate::plan::{self, Selection};
use crate::report::escape::clip;
use crate::vm::argv::QMP_SOCKET;
use crate::vm::spec::{Ram, VmSpec};
use crate::vm::vng::{self, Guest};

/// How often output is looked at.
const POLL: Duration = Duration::from_millis(100);
/// Bytes of output that are read at once, and kept of a line.
const MAX_CHUNK: u64 = 1 << 20;
const MAX_LINE: usize = 16 << 10;
/// Lines of vng's own words in an error.
const LAST_WORDS: usize = 6;

/// What `lab shell` is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellOptions {
    /// Name or path of the kernel.
    pub kernel: String,
    /// Name of the layout.
    pub topology: String,
    /// Accelerator.
    pub accel: AccelChoice,
    /// Command and its arguments; empty for a shell on the terminal.
    pub command: Vec<String>,
}

/// Boots the kernel and runs a shell or the command; `out` takes the command's lines. The
/// result is the command's exit code.
///
/// # Errors
///
/// [`RunError`]; [`RunError::Host`] where the guest did not come to the command's end.
pub fn shell(
    host: &Host<'_>,
    project: &Project,
    options: &ShellOptions,
    out: &(dyn Fn(&str) + Send + Sync),
) -> Result<u8, RunError> {
    if options.command.is_empty() && !std::io::stdin().is_terminal() {
        let text = "a shell needs a terminal; a command goes behind `--`";
        return Err(RunError::Rerun(text.into()));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let end = runtime.block_on(async {
        let cancel = CancellationToken::new();
        // On a terminal the keys are the guest's.
        if !options.command.is_empty() {
            signals::watch(cancel.clone())?;
        }
        tokio::select! {
            end = inside(host, project, options, out, &cancel) => end,
            () = cancel.cancelled() => Err(RunError::Interrupted),
        }
    });
    runtime.shutdown_background();
    end
}

async fn inside(
    host: &Host<'_>,
    project: &Project,
    options: &ShellOptions,
    out: &(dyn Fn(&str) + Send + Sync),
    cancel: &CancellationToken,
) -> Result<u8, RunError> {
    let dir = paths::private_temp()?;
    let spec = spec(host, project, options, dir.path(), cancel).await?;
    let vng = prepare::vng(host, cancel).await.map_err(RunError::Host)?;
    let is_root = rustix::process::geteuid().is_root();
    (host.tell)(&format!("QMP: {}", dir.path().join(QMP_SOCKET).display()));
    if options.command.is_empty() {
        let mut program = vng::program(&vng, &spec, &Guest::Shell, is_root);
        program.attached = true;
        let shell = process::spawn(program).await.map_err(|e| RunError::Host(e.to_string()))?;
        shell.wait().await; // vng's code is not the shell's
        return Ok(0);
    }
    let share = dir.path().join("share");
    fs::create_dir(&share)?;
    fs::write(share.join("run.sh"), script(&share, &options.command))?;
    let command = format!("sh {}", shell_words::quote(&share.join("run.sh").to_string_lossy()));
    let program = vng::program(&vng, &spec, &Guest::Command(&command, &share), is_root);
    let said = follow(program, &share, out).await?;
    layout(&share, &spec)?;
    let status = fs::read_to_string(share.join("status")).unwrap_or_default();
    status
        .trim()
        .parse()
        .map_err(|_| RunError::Host(format!("the command did not end; vng: {said}")))
}

/// The guest as data.
async fn spec(
    host: &Host<'_>,
    project: &Project,
    options: &ShellOptions,
    dir: &Path,
    cancel: &CancellationToken,
) -> Result<VmSpec, RunError> {
    let selection = Selection {
        kernels: vec![options.kernel.clone()],
        base: None,
        topologies: vec![options.topology.clone()],
        scenarios: Vec::new(),
        profile: Profile::Soak,
        repeat: 1,
        seed: 0,
        shard: None,
    };
    let mut plan = plan::plan(project, &selection).map_err(|e| RunError::Rerun(e.to_string()))?;
    // Any case of the layout: only kernel and topology count.
    plan.cases.truncate(1);
    let prepared = prepare::prepare(host, &plan, options.accel, cancel).await?;
    let case = plan.cases.first().ok_or(RunError::Nothing)?;
    let kernel = &prepared.kernels[&case.kernel];
    if let Some(config) = &kernel.config {
        let wanted = vng::REQUIRED.map(String::from);
        let missing = config.missing(&wanted);
        if !missing.is_empty() {
            let text = format!(
                "kernel {} cannot have the host's root: it lacks CONFIG_{}; one built with the \
                 fragment lean has it, such as v7.3",
                kernel.name,
                missing.join(", CONFIG_")
            );
            return Err(RunError::Host(text));
        }
    }
    Ok(VmSpec {
        qemu: prepared.qemu.path.clone(),
        name: "shell".into(),
        accel: prepared.accel,
        topology: (*case.topology).clone(),
        kernel: kernel.image.clone(),
        initrd: PathBuf::new(),
        cmdline: source::cmdline_of(prepared.accel, kernel, case),
        ram: Ram::Anonymous,
        incoming: false,
        dir: dir.to_owned(),
        vng: None,
    })
}

/// Notes the layout that the guest sees, runs the command, and leaves its exit code.
fn script(share: &Path, command: &[String]) -> String {
    let cwd = std::env::current_dir().unwrap_or_else(|_| "/".into());
    let quote = |path: &Path| shell_words::quote(&path.to_string_lossy()).into_owned();
    format!(
        "cd {share}\n\
         for node in /sys/devices/system/node/node[0-9]*; do\n  \
           echo \"${{node##*node}} $(cat $node/cpulist)\"\ndone > layout\n\
         cd {cwd} 2>/dev/null || cd /\n\
         {{ {command}; }} > {out} 2>&1\n\
         echo $? > {share}/status\n",
        share = quote(share),
        cwd = quote(&cwd),
        out = quote(&share.join("out")),
        command = shell_words::join(command),
    )
}

/// Runs vng to its end and hands out the lines of the command; what vng itself said last.
async fn follow(
    program: Program,
    share: &Path,
    out: &(dyn Fn(&str) + Send + Sync),
) -> Result<String, RunError> {
    let wrong = |e: process::ProcessError| RunError::Host(format!("virtme-ng: {e}"));
    let vng = process::spawn(program).await.map_err(wrong)?;
    let mut lines = Lines { path: share.join("out"), at: 0, rest: Vec::new() };
    while vng.exited().is_none() {
        tokio::select! {
            _ = vng.wait() => {}
            () = tokio::time::sleep(POLL) => {}
        }
        lines.read(out);
    }
    lines.read(out);
    lines.end(out);
    vng.drained().await;
    let text = format!("{}\n{}", vng.stdout(), vng.stderr());
    let last: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let from = last.len().saturating_sub(LAST_WORDS);
    Ok(last[from..].iter().map(|line| clip(line, 200)).collect::<Vec<_>>().join("; "))
}

/// A file that grows, by lines.
struct Lines {
    path: PathBuf,
    at: u64,
    rest: Vec<u8>,
}

impl Lines {
    fn read(&mut self, out: &(dyn Fn(&str) + Send + Sync)) {
        use std::io::{Read, Seek, SeekFrom};
        let Ok(mut file) = fs::File::open(&self.path) else { return };
        if file.seek(SeekFrom::Start(self.at)).is_err() {
            return;
        }
        let mut chunk = Vec::new();
        let Ok(count @ 1..) = file.take(MAX_CHUNK).read_to_end(&mut chunk) else { return };
        self.at += count as u64;
        self.rest.extend(chunk);
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            out(&clip(&String::from_utf8_lossy(&line[..end]), MAX_LINE));
        }
        if self.rest.len() > MAX_LINE {
            self.end(out);
        }
    }

    fn end(&mut self, out: &(dyn Fn(&str) + Send + Sync)) {
        if !self.rest.is_empty() {
            out(&clip(&String::from_utf8_lossy(&self.rest), MAX_LINE));
            self.rest.clear();
        }
    }
}

/// The guest has the layout that was asked for.
fn layout(share: &Path, spec: &VmSpec) -> Result<(), RunError> {
    let Ok(bytes) = files::read_bounded(&share.join("layout"), 64 << 10) else {
        return Ok(()); // it did not come so far; the missing status says so
    };
    let seen = String::from_utf8_lossy(&bytes).into_owned();
    let wrong = seen.lines().find_map(|line| {
        let (node, cpus) = line.split_once(' ')?;
        let cpus = parse_list(cpus.trim());
        let node: usize = node.parse().ok()?;
        let wanted =
            (0..spec.topology.cpus).filter(|cpu| spec.topology.node_of(*cpu) == Some(node));
        let wanted: Vec<u32> = wanted.collect();
        (cpus != wanted).then(|| format!("node {node} has CPUs {cpus:?}, not {wanted:?}"))
    });
    wrong.map_or(Ok(()), |text| {
        Err(RunError::Host(format!("the guest has another layout than asked for: {text}")))
    })
}

/// `0-1,4` to numbers.
fn parse_list(text: &str) -> Vec<u32> {
    let part = |part: &str| -> Option<std::ops::RangeInclusive<u32>> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    text.split(',').filter_map(part).take(1024).flatten().take(4096).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_quoted_and_its_code_kept() {
        let dir = tempfile::tempdir().unwrap();
        let command = ["printf", "%s\\n", "a b", "$HOME"].map(String::from);
        let text = script(dir.path(), &command);
        assert!(text.contains("{ printf '%s\\n' 'a b' '$HOME'; } > "), "{text}");
        assert!(text.contains("echo $? > "), "{text}");
    }

    #[test]
    fn lines_are_told_as_they_come() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let said = std::sync::Mutex::new(Vec::new());
        let out = |line: &str| said.lock().unwrap().push(line.to_owned());
        let mut lines = Lines { path: path.clone(), at: 0, rest: Vec::new() };
        lines.read(&out);
        fs::write(&path, "one\ntw").unwrap();
        lines.read(&out);
        fs::write(&path, "one\ntwo\n\x1b[31m").unwrap();
        lines.read(&out);
        lines.end(&out);
        let said = said.into_inner().unwrap();
        assert_eq!(said[..2], ["one", "two"]);
        assert!(!said[2].contains('\x1b'), "{said:?}");
    }

    #[test]
    fn lists_of_cpus_are_read() {
        assert_eq!(parse_list("0-1,4"), [0, 1, 4]);
        assert_eq!(parse_list(""), Vec::<u32>::new());
    }
}
