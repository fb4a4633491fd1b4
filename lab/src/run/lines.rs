//! Files and lines for what the kernel said, where its debug info is at hand.

use std::path::Path;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::detect::{Fault, frame, is_plumbing};
use crate::kernel::Kernel;
use crate::kernel::symbols::Symbols;

/// Longest search in debug info: it only adds to what is known already.
const LIMIT: Duration = Duration::from_secs(30);

/// What the first message of every kernel begins with.
const BANNER: &str = "Linux version ";

/// Adds file and line to the lines of faults, and to each fault the place where it is. `console`
/// is what the kernel printed in its boot. The second part says why there are none, where debug
/// info is there and cannot be used. An interrupt ends the search.
pub(super) async fn add(
    faults: Vec<Fault>,
    kernel: &Kernel,
    console: &str,
    cancel: &CancellationToken,
) -> (Vec<Fault>, Option<String>) {
    let (Some(vmlinux), Some(banner)) = (&kernel.vmlinux, banner(console)) else {
        return (faults, None);
    };
    if faults.is_empty() {
        return (faults, None);
    }
    let (vmlinux, banner, plain) = (vmlinux.clone(), banner.to_owned(), faults.clone());
    // A search that is given up goes on in its thread and ends by itself.
    let search = tokio::task::spawn_blocking(move || located(faults, &vmlinux, &banner));
    let waiting = tokio::time::timeout(LIMIT, search);
    let Some(searched) = cancel.run_until_cancelled(waiting).await else { return (plain, None) };
    match searched {
        Ok(Ok(Ok(located))) => (located, None),
        Ok(Ok(Err(why))) => (plain, Some(format!("no files and lines: {why}"))),
        Ok(Err(_)) => (plain, Some("no files and lines: the debug info is damaged".into())),
        Err(_) => (plain, Some(format!("no files and lines after {} s", LIMIT.as_secs()))),
    }
}

fn located(mut faults: Vec<Fault>, vmlinux: &Path, banner: &str) -> Result<Vec<Fault>, String> {
    let symbols = Symbols::open(vmlinux, banner).map_err(|e| e.to_string())?;
    for fault in &mut faults {
        let title: Vec<&str> = fault.title.split_whitespace().collect();
        // Where no frame is named in the title: the innermost that did more than report.
        let mut innermost = None;
        for line in &mut fault.lines {
            let Some(at) = frame(line) else { continue };
            let Some(place) = symbols.locate(&at.name, at.offset, at.size, at.exact) else {
                continue;
            };
            let name = at.name.split('.').next().unwrap_or_default();
            if title.contains(&name) && fault.place.is_none() {
                fault.place = Some(place.clone());
            }
            if innermost.is_none() && !is_plumbing(name) {
                innermost = Some(place.clone());
            }
            line.push_str("  ");
            line.push_str(&place);
        }
        fault.place = fault.place.take().or(innermost);
    }
    Ok(faults)
}

/// The kernel's first message.
fn banner(console: &str) -> Option<&str> {
    let line = console.lines().find(|line| line.contains(BANNER))?;
    line.find(BANNER).map(|at| line[at..].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_banner_is_told_without_its_time() {
        let console = "SeaBIOS\r\n[    0.000000] Linux version 7.3.4 (a@b) (gcc) #1 SMP \r\nx\r\n";
        assert_eq!(banner(console), Some("Linux version 7.3.4 (a@b) (gcc) #1 SMP"));
        assert_eq!(banner("nothing"), None);
    }
}
