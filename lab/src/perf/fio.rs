//! The `json+` output of fio, read strictly.
//!
//! fio mixes messages into its output when something is wrong with the job; that is an error
//! here, not something to skip. Members that are not used are passed over.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Largest output that is read, bytes.
pub const MAX_OUTPUT: usize = 16 << 20;

/// Most jobs of one run.
const MAX_JOBS: usize = 4096;

/// One run of fio.
#[derive(Debug, Clone, PartialEq)]
pub struct FioRun {
    /// Version, e.g. `fio-3.33`.
    pub version: String,
    /// Jobs in order, at least one.
    pub jobs: Vec<FioJob>,
}

/// One job.
#[derive(Debug, Clone, PartialEq)]
pub struct FioJob {
    /// Name.
    pub name: String,
    /// errno of the first failure, 0 without one.
    pub error: i64,
    /// Reads.
    pub read: Direction,
    /// Writes.
    pub write: Direction,
}

/// One direction of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct Direction {
    /// Completed I/Os.
    pub total_ios: u64,
    /// I/Os that moved less than asked for.
    pub short_ios: u64,
    /// I/Os that were given up.
    pub drop_ios: u64,
    /// I/Os a second, finite and not negative.
    pub iops: f64,
    /// Bytes a second.
    pub bw_bytes_per_s: u64,
    /// Measured time, milliseconds.
    pub runtime_ms: u64,
    /// Completion latency.
    pub clat: Latency,
}

/// A distribution of latencies, nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Latency {
    /// Number of I/Os.
    pub count: u64,
    /// Least.
    pub min_ns: u64,
    /// Greatest.
    pub max_ns: u64,
    /// Mean, finite and not negative.
    pub mean_ns: f64,
    /// Percentile and value, ascending; empty without I/Os.
    pub percentiles: Vec<(f64, u64)>,
    /// Value and count. Runs are merged by adding these, never by averaging percentiles.
    pub bins: BTreeMap<u64, u64>,
}

impl FioRun {
    /// Sum over all jobs and both directions.
    pub fn sum(&self, field: impl Fn(&Direction) -> u64) -> u64 {
        let both = |j: &FioJob| field(&j.read).saturating_add(field(&j.write));
        self.jobs.iter().map(both).fold(0, u64::saturating_add)
    }
}

/// Why the output is not a result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FioError {
    /// Over [`MAX_OUTPUT`].
    #[error("fio wrote {0} bytes, the bound is {MAX_OUTPUT}")]
    TooLong(usize),
    /// It does not begin with an object: fio wrote a message.
    #[error("fio wrote text instead of JSON: {0}")]
    Text(String),
    /// It is no JSON, or lacks what is needed.
    #[error("fio's JSON: {0}")]
    Json(String),
    /// A number that cannot be.
    #[error("fio's {0} makes no sense")]
    Nonsense(String),
}

/// Reads the output of one run.
pub fn parse(output: &[u8]) -> Result<FioRun, FioError> {
    if output.len() > MAX_OUTPUT {
        return Err(FioError::TooLong(output.len()));
    }
    let body = output.trim_ascii_start();
    if body.first() != Some(&b'{') {
        return Err(FioError::Text(first_line(body)));
    }
    let raw: RawRun = serde_json::from_slice(body).map_err(|e| FioError::Json(e.to_string()))?;
    if raw.jobs.is_empty() || raw.jobs.len() > MAX_JOBS {
        return Err(FioError::Nonsense(format!("number of jobs, {},", raw.jobs.len())));
    }
    let jobs = raw.jobs.into_iter().map(RawJob::check).collect::<Result<_, _>>()?;
    Ok(FioRun { version: raw.version, jobs })
}

fn first_line(text: &[u8]) -> String {
    let line = text.split(|b| *b == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(&line[..line.len().min(400)]).trim().to_string();
    if line.is_empty() { "nothing at all".into() } else { line }
}

#[derive(Deserialize)]
struct RawRun {
    #[serde(rename = "fio version")]
    version: String,
    jobs: Vec<RawJob>,
}

#[derive(Deserialize)]
struct RawJob {
    jobname: String,
    error: i64,
    read: RawDirection,
    write: RawDirection,
}

#[derive(Deserialize)]
struct RawDirection {
    total_ios: u64,
    short_ios: u64,
    drop_ios: u64,
    iops: f64,
    bw_bytes: u64,
    runtime: u64,
    clat_ns: RawLatency,
}

#[derive(Deserialize)]
struct RawLatency {
    min: u64,
    max: u64,
    mean: f64,
    #[serde(rename = "N")]
    count: u64,
    // Absent in a direction without I/Os.
    #[serde(default)]
    percentile: BTreeMap<String, u64>,
    #[serde(default)]
    bins: BTreeMap<String, u64>,
}

impl RawJob {
    fn check(self) -> Result<FioJob, FioError> {
        Ok(FioJob {
            read: self.read.check("read")?,
            write: self.write.check("write")?,
            name: self.jobname,
            error: self.error,
        })
    }
}

impl RawDirection {
    fn check(self, name: &str) -> Result<Direction, FioError> {
        if self.total_ios > 0 && self.runtime == 0 {
            return Err(FioError::Nonsense(format!("{name} runtime")));
        }
        Ok(Direction {
            total_ios: self.total_ios,
            short_ios: self.short_ios,
            drop_ios: self.drop_ios,
            iops: measure(self.iops, name, "iops")?,
            bw_bytes_per_s: self.bw_bytes,
            runtime_ms: self.runtime,
            clat: self.clat_ns.check(name)?,
        })
    }
}

impl RawLatency {
    fn check(self, name: &str) -> Result<Latency, FioError> {
        let nonsense = |what: &str| FioError::Nonsense(format!("{name} {what}"));
        let mut percentiles = Vec::with_capacity(self.percentile.len());
        for (key, value) in &self.percentile {
            let p: f64 = key.parse().map_err(|_| nonsense("percentile"))?;
            percentiles.push((p, *value));
        }
        percentiles.sort_by(|a, b| a.0.total_cmp(&b.0));
        if percentiles.windows(2).any(|w| w[0].1 > w[1].1) {
            return Err(nonsense("order of percentiles"));
        }
        let mut bins = BTreeMap::new();
        for (key, count) in &self.bins {
            bins.insert(key.parse().map_err(|_| nonsense("bin"))?, *count);
        }
        let mean_ns = measure(self.mean, name, "mean latency")?;
        let (min_ns, max_ns, count) = (self.min, self.max, self.count);
        Ok(Latency { count, min_ns, max_ns, mean_ns, percentiles, bins })
    }
}

fn measure(value: f64, name: &str, what: &str) -> Result<f64, FioError> {
    let sane = value.is_finite() && value >= 0.0;
    sane.then_some(value).ok_or_else(|| FioError::Nonsense(format!("{name} {what}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = include_str!("samples/fio-3.33.json");

    #[test]
    fn real_output_is_read() {
        let run = parse(SAMPLE.as_bytes()).unwrap();
        assert_eq!(run.version, "fio-3.33");
        assert_eq!(run.sum(|d| d.total_ios), 1024);
        let read = &run.jobs[0].read;
        assert_eq!((run.jobs[0].error, read.short_ios, read.drop_ios), (0, 0, 0));
        assert_eq!(
            (read.iops, read.bw_bytes_per_s, read.runtime_ms),
            (1_024_000.0, 4_194_304_000, 1)
        );
        assert_eq!(read.clat.percentiles.len(), 17);
        assert_eq!(read.clat.percentiles[6], (50.0, 382));
        assert_eq!(read.clat.bins.values().sum::<u64>(), read.clat.count);
        assert_eq!(run.jobs[0].write.total_ios, 0);
    }

    #[test]
    fn text_is_an_error_before_instead_of_and_after_the_json() {
        let text = |s: &str| matches!(parse(s.as_bytes()), Err(FioError::Text(_)));
        assert!(text("fio: status-interval too small\n"));
        assert!(text(&format!("fio: warning\n{SAMPLE}")));
        assert!(text(""));
        let after = format!("{SAMPLE}\nfio: pid=12, err=5");
        assert!(matches!(parse(after.as_bytes()), Err(FioError::Json(_))));
        assert!(matches!(parse(&SAMPLE.as_bytes()[..900]), Err(FioError::Json(_))));
    }

    #[test]
    fn missing_members_and_nonsense_are_errors() {
        for member in ["total_ios", "short_ios", "drop_ios", "bw_bytes", "clat_ns", "error"] {
            let text = SAMPLE.replace(&format!("\"{member}\""), "\"elsewhere\"");
            assert!(matches!(parse(text.as_bytes()), Err(FioError::Json(_))), "{member}");
        }
        for (from, to) in [
            ("\"iops\": 1024000.0", "\"iops\": -1.0"),
            ("\"50.000000\": 382", "\"50.000000\": 1"),
            ("\"50.000000\": 382", "\"half\": 382"),
            ("\"runtime\": 1,", "\"runtime\": 0,"),
        ] {
            let text = SAMPLE.replacen(from, to, 1);
            assert_ne!(text, SAMPLE);
            assert!(matches!(parse(text.as_bytes()), Err(FioError::Nonsense(_))), "{to}");
        }
        assert!(parse(br#"{"fio version":"x","jobs":[]}"#).is_err());
    }
}
