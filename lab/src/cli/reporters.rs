//! Which reporters a command gets and where they write.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use lab::report::{Jsonl, Junit, Ktap, Options, Reporter, Sink, SinkFault, Terminal};
use lab::run::options::Format;
use rustix::fs::Access;

/// The reporters of a run that goes on.
pub(super) fn live(
    format: Format,
    junit: Option<&Path>,
    dir: &Path,
    fault: &SinkFault,
) -> io::Result<Vec<Box<dyn Reporter>>> {
    make(format, junit, dir, Some(io::stderr().is_terminal()), fault)
}

/// The reporters of a run that is over: no bar.
pub(super) fn replayed(
    format: Format,
    junit: Option<&Path>,
    dir: &Path,
    fault: &SinkFault,
) -> io::Result<Vec<Box<dyn Reporter>>> {
    make(format, junit, dir, None, fault)
}

/// Whether a report can be written to `path`, before anything is started: opening a pipe would
/// wait for a reader for ever.
pub(super) fn check(path: Option<&Path>) -> Result<(), String> {
    let Some(path) = path else { return Ok(()) };
    let wrong = |why: &str| Err(format!("--junit {}: {why}", path.display()));
    match std::fs::metadata(path) {
        Ok(meta) if !meta.is_file() => return wrong("not a regular file"),
        Ok(_) if rustix::fs::access(path, Access::WRITE_OK).is_err() => {
            return wrong("it cannot be written to");
        }
        _ => {}
    }
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !dir.is_dir() {
        return wrong("its directory is not there");
    }
    match path.exists() || rustix::fs::access(dir, Access::WRITE_OK).is_ok() {
        true => Ok(()),
        false => wrong("its directory cannot be written to"),
    }
}

/// `live` tells of a run that goes on whether it may show a bar.
fn make(
    format: Format,
    junit: Option<&Path>,
    dir: &Path,
    live: Option<bool>,
    fault: &SinkFault,
) -> io::Result<Vec<Box<dyn Reporter>>> {
    let out: Box<dyn Write + Send> = Box::new(anstream::stdout());
    let sink = Sink::watched(out, fault.clone());
    let mut made: Vec<Box<dyn Reporter>> = vec![match format {
        // The stream strips colours where they are not wanted.
        Format::Human => {
            let (bar, quiet_notes) = (live.unwrap_or(false), live.is_some());
            let run_dir = dir.to_owned();
            Box::new(Terminal::new(sink, Options { color: true, bar, quiet_notes, run_dir }))
        }
        Format::Ktap => Box::new(Ktap::new(sink)),
        Format::Jsonl => Box::new(Jsonl::new(sink)),
    }];
    if let Some(path) = junit {
        let file = std::fs::File::create(path).map_err(|e| {
            io::Error::new(e.kind(), format!("{} cannot be written: {e}", path.display()))
        })?;
        made.push(Box::new(Junit::new(Sink::watched(Box::new(file), fault.clone()))));
    }
    Ok(made)
}
