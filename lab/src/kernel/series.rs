//! A series of patches: from a directory, an mbox, a git range, or a list archive.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::mail::{self, Subject};
use super::recipe::Patch;
use crate::config::kernel::SeriesPlace;
use crate::config::shipped;
use crate::host::files;
use crate::host::paths::{self, PathsError};
use crate::host::process::{self, Output, ProcessError, Program};

/// Most patches of a series.
const MAX_PATCHES: usize = 1000;
/// Largest file, bytes.
const MAX_BYTES: u64 = 16 << 20;
const GIT_LIMIT: Duration = Duration::from_secs(60);
const B4_LIMIT: Duration = Duration::from_secs(300);

/// What could be set otherwise in the configuration of a user, or of the repository, is said.
const FORMAT_PATCH: [&str; 18] = [
    "format-patch",
    "--quiet",
    "--no-signature",
    "--zero-commit",
    "--no-stat",
    "-N",
    "--no-attach",
    "--no-base",
    "--no-cover-letter",
    "--no-encode-email-headers",
    "--suffix=.patch",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--unified=3",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--submodule=short",
];

/// A series as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// For people, e.g. the name of its directory.
    pub name: String,
    /// Title of its cover letter.
    pub title: Option<String>,
    /// Version, where its mails say one.
    pub version: Option<u32>,
    /// The commit it was made on, where a mail says so.
    pub base_commit: Option<String>,
    /// In order, never empty.
    pub patches: Vec<Patch>,
    /// Mails that are no patch of it: answers, the cover letter.
    pub left_out: usize,
}

/// Why there is no series.
#[derive(Debug, thiserror::Error)]
pub enum SeriesError {
    /// What was named holds no series, or not a whole one.
    #[error("series {name}: {why}")]
    Wrong {
        /// What was named.
        name: String,
        /// Why, with the fix where there is one.
        why: String,
    },
    /// It cannot be read.
    #[error("series {}: {source}", path.display())]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A program of the host could not be run.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// No place for temporary files.
    #[error(transparent)]
    Paths(#[from] PathsError),
}

/// Title of a patch, without the brackets of its subject.
pub fn title(patch: &Patch) -> String {
    let subject = mail::header(&patch.text, "subject");
    let title = subject.map(|text| mail::subject(&text).title).filter(|title| !title.is_empty());
    title.unwrap_or_else(|| patch.name.clone())
}

/// Reads a series.
///
/// # Errors
///
/// [`SeriesError`].
pub async fn read(place: &SeriesPlace, cancel: &CancellationToken) -> Result<Series, SeriesError> {
    match place {
        SeriesPlace::Shipped(name) => Ok(from_shipped(name)),
        SeriesPlace::Path(path) if path.is_dir() => directory(path, cancel).await,
        SeriesPlace::Path(path) => {
            let bytes = read_file(path)?;
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            mbox(&name, &bytes, cancel).await
        }
        SeriesPlace::Git { dir, range } => git(dir, range, cancel).await,
        SeriesPlace::Lore(id) => lore(id, cancel).await,
    }
}

fn from_shipped(name: &str) -> Series {
    let patch =
        |(name, text): &(&str, &str)| Patch { name: (*name).into(), text: text.as_bytes().into() };
    let patches = shipped::series(name).iter().map(patch).collect();
    let (name, none) = (name.to_owned(), None);
    Series { name, title: None, version: None, base_commit: none, patches, left_out: 0 }
}

fn read_file(path: &Path) -> Result<Vec<u8>, SeriesError> {
    files::read_bounded(path, MAX_BYTES)
        .map_err(|source| SeriesError::Read { path: path.to_owned(), source })
}

/// Files that end in `.patch`, `.diff` or `.eml`, by the number that their name begins with or
/// that their subject says, then by name.
async fn directory(dir: &Path, cancel: &CancellationToken) -> Result<Series, SeriesError> {
    let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let entries = std::fs::read_dir(dir)
        .map_err(|source| SeriesError::Read { path: dir.to_owned(), source })?;
    let is_patch = |path: &PathBuf| {
        path.extension().is_some_and(|e| e == "patch" || e == "diff" || e == "eml")
    };
    let mut paths: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(is_patch).collect();
    // The first ones of too many are always the same.
    paths.sort();
    let mut mails = Vec::new();
    for path in paths.iter().take(MAX_PATCHES + 1) {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = read_file(path)?;
        let bytes = if mail::is_encoded(&bytes) { decoded(&bytes, cancel).await?.0 } else { bytes };
        let subject = mail::header(&bytes, "subject").unwrap_or_default();
        mails.push(Mail { name: Some(file), subject: mail::subject(&subject), bytes });
    }
    mails.sort_by_cached_key(|m| (m.place(), m.name.clone()));
    whole(&name, mails, false)
}

/// One mail of a series.
struct Mail {
    /// File name, where it has one.
    name: Option<String>,
    subject: Subject,
    bytes: Vec<u8>,
}

impl Mail {
    /// Its place in a directory; files without any number come last.
    fn place(&self) -> usize {
        let name = self.name.as_deref().unwrap_or_default();
        let digits = name.len() - name.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number = name[..digits].parse().ok();
        number.or(self.subject.number.map(|(number, _)| number)).unwrap_or(usize::MAX)
    }
}

/// Mails in a file, split as git does.
async fn mbox(name: &str, bytes: &[u8], cancel: &CancellationToken) -> Result<Series, SeriesError> {
    let temp = paths::private_temp()?;
    let io = |source| SeriesError::Read { path: temp.path().to_owned(), source };
    let file = temp.path().join("mbox");
    std::fs::write(&file, bytes).map_err(io)?;
    let out = format!("-o{}", temp.path().display());
    // Ends of lines are kept: only a mail that has CR in its headers owes them to transport.
    let args =
        ["mailsplit".into(), out, "-b".into(), "--keep-cr".into(), file.display().to_string()];
    let output = process::run(Program::new("git", args), GIT_LIMIT, cancel).await?;
    let wrong = |why: String| SeriesError::Wrong { name: name.to_owned(), why };
    let count: usize = match output.stdout.trim().parse() {
        Ok(count) if output.status.success() => count,
        _ => return Err(wrong(format!("no mbox: {}", first_line(&output)))),
    };
    if count > MAX_PATCHES {
        return Err(wrong(format!("{count} mails; at most {MAX_PATCHES}")));
    }
    let mut mails = Vec::new();
    for number in 1..=count {
        let mail = std::fs::read(temp.path().join(format!("{number:04}"))).map_err(io)?;
        let (bytes, subject) = decoded(&mail, cancel).await?;
        mails.push(Mail { name: None, subject: mail::subject(&subject), bytes });
    }
    whole(name, mails, true)
}

/// A mail with its text out of the encoding of its transport, and its subject.
async fn decoded(
    mail: &[u8],
    cancel: &CancellationToken,
) -> Result<(Vec<u8>, String), SeriesError> {
    let temp = paths::private_temp()?;
    let io = |source| SeriesError::Read { path: temp.path().to_owned(), source };
    std::fs::write(temp.path().join("mail"), mail::unix_lines(mail)).map_err(io)?;
    // Brackets are kept, character sets as they are: the patch must come out byte by byte.
    let script = "exec git mailinfo -k -n --no-scissors message patch < mail";
    let mut program = Program::new("sh", ["-c", script]);
    program.cwd = Some(temp.path().to_owned());
    let output = process::run(program, GIT_LIMIT, cancel).await?;
    let subject = output.stdout.lines().find_map(|line| line.strip_prefix("Subject: "));
    let subject = subject.unwrap_or_default().to_owned();
    let read = |name: &str| std::fs::read(temp.path().join(name)).unwrap_or_default();
    let mut bytes = format!("Subject: {subject}\n\n").into_bytes();
    // Base64 can hold lines as mail has them.
    bytes.extend_from_slice(&mail::unix_lines(&read("message")));
    bytes.extend(b"---\n");
    bytes.extend_from_slice(&mail::unix_lines(&read("patch")));
    Ok((bytes, subject))
}

fn first_line(output: &Output) -> String {
    let text = format!("{}\n{}", output.stderr, output.stdout);
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or("git failed").to_owned()
}

/// The patches of one series, in order. `strict`: mails from a list, where answers and other
/// versions may be between them, so only what its subject calls a patch counts.
fn whole(name: &str, mails: Vec<Mail>, strict: bool) -> Result<Series, SeriesError> {
    let wrong = |why: String| Err(SeriesError::Wrong { name: name.to_owned(), why });
    let base_commit = mails.iter().find_map(|m| mail::base_commit(&m.bytes));
    let total = mails.len();
    let is_cover = |m: &Mail| matches!(m.subject.number, Some((0, _)));
    let title = mails.iter().find(|m| is_cover(m)).map(|m| m.subject.title.clone());
    let patches: Vec<Mail> = mails
        .into_iter()
        .filter(|m| !is_cover(m) && (!strict || m.subject.is_patch) && has_change(m))
        .collect();
    if patches.is_empty() {
        return wrong("no patch in it".into());
    }
    if patches.len() > MAX_PATCHES {
        return wrong(format!("more than {MAX_PATCHES} patches"));
    }
    let versions: Vec<u32> = patches.iter().map(|m| m.subject.version).collect();
    if let Some(other) = versions.iter().find(|v| strict && **v != versions[0]) {
        return wrong(format!("it holds v{} and v{other}; one mbox, one version", versions[0]));
    }
    let version = patches[0].subject.number.map(|_| versions[0]).filter(|_| strict);
    let left_out = total - patches.len();
    let patches = if strict { in_order(name, patches)? } else { patches };
    let patches = patches.into_iter().enumerate().map(|(index, m)| Patch {
        name: m.name.unwrap_or_else(|| mail::file_name(index + 1, &m.subject.title)),
        text: m.bytes.into(),
    });
    let (name, patches) = (name.to_owned(), patches.collect());
    Ok(Series { name, title, version, base_commit, patches, left_out })
}

fn has_change(m: &Mail) -> bool {
    let patch = Patch { name: String::new(), text: m.bytes.as_slice().into() };
    // One that reaches out of the tree is a patch, too: the build refuses it by name.
    !matches!(super::build::files_of_patch(&patch), Err(super::build::BuildError::NoPatch { .. }))
}

/// By number, each once, none missing. Mails without numbers keep the order of the file.
fn in_order(name: &str, mut patches: Vec<Mail>) -> Result<Vec<Mail>, SeriesError> {
    let wrong = |why: String| Err(SeriesError::Wrong { name: name.to_owned(), why });
    let numbers: Vec<_> = patches.iter().filter_map(|m| m.subject.number).collect();
    if numbers.is_empty() {
        return Ok(patches);
    }
    if numbers.len() < patches.len() {
        let odd = patches.iter().find(|m| m.subject.number.is_none());
        let title = odd.map(|m| m.subject.title.clone()).unwrap_or_default();
        return wrong(format!("`{title}` has no number, others have"));
    }
    let total = numbers[0].1;
    for number in 1..=total {
        match numbers.iter().filter(|found| **found == (number, total)).count() {
            1 => {}
            0 => return wrong(format!("patch {number}/{total} is missing")),
            _ => return wrong(format!("patch {number}/{total} is there more than once")),
        }
    }
    if numbers.len() != total {
        return wrong(format!("it has patches of several series (`{total}` and others)"));
    }
    patches.sort_by_key(|m| m.subject.number);
    Ok(patches)
}

async fn git(dir: &Path, range: &str, cancel: &CancellationToken) -> Result<Series, SeriesError> {
    let temp = paths::private_temp()?;
    let out = temp.path().display().to_string();
    let mut args: Vec<String> = vec!["-C".into(), dir.display().to_string()];
    args.extend(FORMAT_PATCH.map(String::from));
    args.extend(["--output-directory".into(), out, range.to_owned(), "--".into()]);
    let output = process::run(Program::new("git", args), GIT_LIMIT, cancel).await?;
    if !output.status.success() {
        let name = format!("{} {range}", dir.display());
        return Err(SeriesError::Wrong { name, why: first_line(&output) });
    }
    let read = directory(temp.path(), cancel).await;
    let name = range.rsplit("..").next().unwrap_or(range).replace('/', "-");
    match read {
        Ok(series) => Ok(Series { name, ..series }),
        Err(SeriesError::Wrong { why, .. }) => {
            Err(SeriesError::Wrong { name: range.to_owned(), why })
        }
        Err(error) => Err(error),
    }
}

async fn lore(id: &str, cancel: &CancellationToken) -> Result<Series, SeriesError> {
    let wrong = |why: String| SeriesError::Wrong { name: format!("lore:{id}"), why };
    let temp = paths::private_temp()?;
    let out = temp.path().display().to_string();
    let args = ["am", "--no-cover", "--outdir", &out, "--", id].map(String::from);
    let output = match process::run(Program::new("b4", args), B4_LIMIT, cancel).await {
        Err(ProcessError::Missing { .. }) => {
            let fix = "b4 is not installed: apt-get install b4, or pip install b4";
            return Err(wrong(fix.into()));
        }
        ended => ended?,
    };
    let entries = std::fs::read_dir(temp.path())
        .map_err(|source| SeriesError::Read { path: temp.path().to_owned(), source })?;
    let mut paths = entries.flatten().map(|entry| entry.path());
    let Some(path) = paths.find(|path| path.extension().is_some_and(|e| e == "mbx")) else {
        let last = output.stderr.lines().rfind(|line| !line.trim().is_empty());
        return Err(wrong(format!("b4: {}", last.unwrap_or("it left no mbox"))));
    };
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    mbox(&name, &read_file(&path)?, cancel).await
}

#[cfg(test)]
#[path = "series_tests.rs"]
mod tests;
