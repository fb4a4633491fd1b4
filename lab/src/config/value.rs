//! Values of configuration keys: text to numbers with units, names, CPU lists.

use std::collections::BTreeSet;
use std::time::Duration;

use toml_edit::{Item, Value};

use super::reader::Sink;

/// Entries of an array.
const MAX_ARRAY: usize = 256;

/// Longest string, bytes.
const MAX_STRING: usize = 512;

/// Most possible CPUs of a guest.
pub(super) const MAX_CPUS: u32 = 1024;

/// A value that can be read from an item. The error says what was expected, as in `a number`.
pub(super) trait FromItem: Sized {
    /// Reads it. Problems of parts with a place of their own go to the sink.
    fn from_item(item: &Item, sink: &Sink) -> Result<Self, String>;
}

impl FromItem for bool {
    fn from_item(item: &Item, _: &Sink) -> Result<bool, String> {
        item.as_bool().ok_or_else(|| "true or false".into())
    }
}

impl FromItem for i64 {
    fn from_item(item: &Item, _: &Sink) -> Result<i64, String> {
        item.as_integer().ok_or_else(|| "a whole number".into())
    }
}

impl FromItem for String {
    fn from_item(item: &Item, _: &Sink) -> Result<String, String> {
        let text = item.as_str().ok_or("a string")?;
        if text.is_empty() || text.len() > MAX_STRING || text.chars().any(char::is_control) {
            return Err(format!("one line of 1 to {MAX_STRING} bytes"));
        }
        Ok(text.to_string())
    }
}

/// `[a-z0-9][a-z0-9-]*`, at most 64 bytes.
pub(super) fn is_name(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    text.len() <= 64
        && text.bytes().next().is_some_and(plain)
        && text.bytes().all(|b| plain(b) || b == b'-')
}

/// What [`is_name`] takes, for messages.
pub(super) const NAME_FORM: &str = "1 to 64 of a-z, 0-9 and -, beginning with a letter or digit";

/// A name.
pub(super) struct Name(pub(super) String);

impl FromItem for Name {
    fn from_item(item: &Item, _: &Sink) -> Result<Name, String> {
        item.as_str()
            .filter(|text| is_name(text))
            .map(|text| Name(text.into()))
            .ok_or_else(|| format!("a name: {NAME_FORM}"))
    }
}

/// [`is_name`], and dots, as in `v7.3`: kernels are called after their versions.
pub(super) fn is_kernel_name(text: &str) -> bool {
    is_name(&text.replace('.', "-")) && !text.contains("..") && !text.ends_with('.')
}

/// What [`is_kernel_name`] takes, for messages.
pub(super) const KERNEL_NAME_FORM: &str =
    "1 to 64 of a-z, 0-9, - and single dots, beginning with a letter or digit";

/// Name of a kernel, or of a Debian package.
pub(super) struct KernelName(pub(super) String);

impl FromItem for KernelName {
    fn from_item(item: &Item, _: &Sink) -> Result<KernelName, String> {
        item.as_str()
            .filter(|text| is_kernel_name(text))
            .map(|text| KernelName(text.into()))
            .ok_or_else(|| format!("a name: {KERNEL_NAME_FORM}"))
    }
}

/// An absolute path of the guest: no `.` or `..`, no empty part, at most 200 bytes.
pub(super) struct GuestPath(pub(super) String);

impl FromItem for GuestPath {
    fn from_item(item: &Item, _: &Sink) -> Result<GuestPath, String> {
        let good_part = |part: &str| {
            !matches!(part, "" | "." | "..")
                && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
        };
        item.as_str()
            .filter(|text| text.len() <= 200)
            .filter(|text| text.strip_prefix('/').is_some_and(|t| t.split('/').all(good_part)))
            .map(|text| GuestPath(text.into()))
            .ok_or_else(|| {
                "an absolute path below /, of letters, digits, `.`, `_` and `-`, such as \
                 \"/mnt/ring\""
                    .into()
            })
    }
}

impl FromItem for Duration {
    fn from_item(item: &Item, _: &Sink) -> Result<Duration, String> {
        const MOST: Duration = Duration::from_secs(24 * 3600);
        item.as_str()
            .and_then(|text| humantime::parse_duration(text).ok())
            .filter(|d| *d <= MOST && d.subsec_nanos().is_multiple_of(1_000_000))
            .ok_or_else(|| {
                "a duration in whole milliseconds, such as \"250ms\" or \"30s\", at most a day"
                    .into()
            })
    }
}

/// A size in bytes.
pub(super) struct Size(pub(super) u64);

impl FromItem for Size {
    fn from_item(item: &Item, _: &Sink) -> Result<Size, String> {
        const MOST: u64 = 1 << 44;
        item.as_str()
            .filter(|text| text.ends_with('B'))
            .and_then(|text| text.parse::<bytesize::ByteSize>().ok())
            .map(|size| size.as_u64())
            .filter(|bytes| *bytes <= MOST)
            .map(Size)
            .ok_or_else(|| "a size such as \"4KiB\" or \"512MiB\", at most 16TiB".into())
    }
}

/// A list of CPUs as the kernel writes it: `0-3,8`.
pub(super) struct CpuList(pub(super) BTreeSet<u32>);

impl FromItem for CpuList {
    fn from_item(item: &Item, _: &Sink) -> Result<CpuList, String> {
        item.as_str()
            .and_then(parse_cpus)
            .map(CpuList)
            .ok_or_else(|| format!("CPU numbers below {MAX_CPUS} such as \"0-3,8\", each once"))
    }
}

fn parse_cpus(text: &str) -> Option<BTreeSet<u32>> {
    let mut cpus = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (parse_cpu(first)?, parse_cpu(last)?);
        if first > last || !(first..=last).all(|cpu| cpus.insert(cpu)) {
            return None;
        }
    }
    Some(cpus)
}

fn parse_cpu(text: &str) -> Option<u32> {
    // `parse` alone would take `+1`.
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|cpu| digits && *cpu < MAX_CPUS)
}

/// A value and where it stands.
pub(super) struct At<T> {
    /// The value.
    pub(super) value: T,
    /// Its bytes in the file.
    pub(super) span: std::ops::Range<usize>,
}

impl<T: FromItem> FromItem for At<T> {
    fn from_item(item: &Item, sink: &Sink) -> Result<At<T>, String> {
        Ok(At { value: T::from_item(item, sink)?, span: item.span().unwrap_or(0..0) })
    }
}

impl<T: FromItem> FromItem for Vec<T> {
    fn from_item(item: &Item, sink: &Sink) -> Result<Vec<T>, String> {
        let array = item.as_array().ok_or("an array")?;
        if array.len() > MAX_ARRAY {
            return Err(format!("an array of at most {MAX_ARRAY} entries"));
        }
        let mut values = Vec::with_capacity(array.len());
        for value in array {
            match T::from_item(&Item::Value(value.clone()), sink) {
                Ok(value) => values.push(value),
                Err(expected) => sink.add(place(value), format!("entry must be {expected}")),
            }
        }
        Ok(values)
    }
}

fn place(value: &Value) -> std::ops::Range<usize> {
    value.span().unwrap_or(0..0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: FromItem>(text: &str) -> Result<T, String> {
        let item = Item::Value(text.parse().unwrap());
        T::from_item(&item, &Sink::default())
    }

    #[test]
    fn cpu_lists_are_strict() {
        let list = |text| read::<CpuList>(text).map(|l| l.0.into_iter().collect::<Vec<_>>());
        assert_eq!(list("'0-2,8'"), Ok(vec![0, 1, 2, 8]));
        for bad in ["''", "'3-1'", "'0,0'", "'0-2,2'", "'+1'", "'1024'", "'0-4000000000'", "'a'"] {
            assert!(list(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn units_are_required() {
        assert_eq!(read::<Size>("'512MiB'").map(|s| s.0), Ok(512 << 20));
        assert!(read::<Size>("'512'").is_err() && read::<Size>("512").is_err());
        assert_eq!(read::<Duration>("'250ms'"), Ok(Duration::from_millis(250)));
        assert!(read::<Duration>("'30'").is_err() && read::<Duration>("'2days'").is_err());
        assert!(read::<Duration>("'5us'").is_err());
    }

    #[test]
    fn paths_stay_inside_the_guest() {
        assert!(read::<GuestPath>("'/mnt/ring'").is_ok());
        for bad in ["'/'", "'mnt'", "'/mnt/../etc'", "'/mnt/'", "'/a b'", "'/a//b'"] {
            assert!(read::<GuestPath>(bad).is_err(), "{bad}");
        }
    }
}
