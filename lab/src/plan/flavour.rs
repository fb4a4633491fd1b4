//! `NAME+FLAVOUR`: an entry that is built, with more fragments.

use std::sync::Arc;

use crate::config::kernel::{KernelEntry, KernelSource};
use crate::config::load::Project;
use crate::config::nearest::suggestion;

/// A name with its flavours in the order of the alphabet, so that a kernel has one name only.
pub(super) fn canonical(text: &str) -> String {
    let (name, flavours) = text.split_once('+').unwrap_or((text, ""));
    let mut words: Vec<&str> = flavours.split('+').collect();
    words.sort_unstable();
    if name.len() == text.len() { text.to_owned() } else { format!("{name}+{}", words.join("+")) }
}

/// The entry that `text` names, with its flavours. The error is for people.
pub(super) fn find(project: &Project, text: &str) -> Result<Arc<KernelEntry>, String> {
    let text = &canonical(text);
    let mut words = text.split('+');
    let name = words.next().unwrap_or_default();
    let Some(entry) = project.kernels.get(name) else {
        let known = project.kernels.keys().map(String::as_str);
        let hint = suggestion(name, known);
        return Err(format!("no kernel is named `{name}`; {hint} (a path has a `/`)"));
    };
    if name == text {
        return Ok(Arc::clone(entry));
    }
    let mut entry = (**entry).clone();
    entry.name = text.to_owned();
    let KernelSource::Built(build) = &mut entry.source else {
        return Err(format!(
            "`{name}` is prebuilt and has no flavours; a kernel with a [source] has, such as v7.3"
        ));
    };
    for word in words {
        let Some(flavour) = project.flavours.get(word) else {
            let hint = suggestion(word, project.flavours.keys().map(String::as_str));
            return Err(format!("no flavour is named `{word}`; {hint}"));
        };
        if build.fragments.iter().any(|fragment| fragment.name == word) {
            return Err(format!("`{text}` has `{word}` already"));
        }
        build.fragments.push(flavour.fragment.clone());
        entry.cmdline.extend(flavour.cmdline.iter().cloned());
    }
    Ok(Arc::new(entry))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::load;
    use crate::config::shipped;

    fn find(text: &str) -> Result<Arc<KernelEntry>, String> {
        super::find(&load(&shipped::files()).unwrap(), text)
    }

    #[test]
    fn a_flavour_adds_fragment_and_arguments() {
        let entry = find("v4-patched+kasan+debug").unwrap();
        assert_eq!(entry.name, "v4-patched+debug+kasan");
        assert_eq!(find("v4-patched+debug+kasan").unwrap(), entry);
        let KernelSource::Built(build) = &entry.source else { panic!("{entry:?}") };
        let names: Vec<&str> = build.fragments.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["lean", "debug", "kasan"]);
        assert!(entry.cmdline.contains(&"nokaslr".to_owned()), "{:?}", entry.cmdline);
        assert_eq!(entry.queue_policy.as_deref(), Some("next-cpu"));
    }

    #[test]
    fn what_cannot_be_flavoured_is_told() {
        assert!(find("stock+kasan").unwrap_err().contains("prebuilt"));
        assert!(find("v7.3+kasam").unwrap_err().contains("`kasan`"));
        assert!(find("v7.3+lean").unwrap_err().contains("already"));
        assert!(find("v7.3+").unwrap_err().contains("no flavour"));
        assert!(find("v7.4+kasan").unwrap_err().contains("no kernel is named `v7.4`"));
    }
}
