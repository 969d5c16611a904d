//! The links of pages have targets.

use std::path::{Component, Path, PathBuf};

use crate::house::source::files;
use crate::markdown::{anchors, links, pages, parse, read};

/// Joins paths: `docs/guides` and `../rules.md` is `docs/rules.md`.
fn join(folder: &Path, target: &str) -> PathBuf {
    folder.join(target).components().fold(PathBuf::new(), |mut path, part| {
        match part {
            Component::ParentDir => _ = path.pop(),
            Component::CurDir => {}
            part => path.push(part),
        }
        path
    })
}

/// Returns why a link of a page is broken.
fn fault(page: &str, target: &str) -> Option<String> {
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = match file {
        "" => PathBuf::from(page),
        file => join(Path::new(page).parent().unwrap(), file),
    };
    if !path.exists() {
        return Some(format!("{} is not there", path.display()));
    }
    let known = || anchors(&read(path.to_str().unwrap()));
    (!anchor.is_empty() && !known().iter().any(|known| known == anchor))
        .then(|| format!("{} has no heading #{anchor}", path.display()))
}

/// Pages beside what they are about.
const BESIDE: &[&str] = &[
    "deploy/release/README.md",
    "examples/README.md",
    "policies/README.md",
    "src/core/api/VERSIONS.md",
    "tests/live/docs/README.md",
    "tests/live/tenants/README.md",
    "tests/live/worlds/README.md",
    "tests/neighbours/README.md",
];

#[test]
fn every_link_of_a_page_leads_somewhere() {
    let (mut count, mut faults) = (0, Vec::new());
    for page in pages().into_iter().chain(BESIDE.iter().map(|page| (*page).to_owned())) {
        for (line, target) in links(&read(&page)) {
            count += 1;
            assert!(!target.is_empty(), "{page}:{line}: a link to nothing");
            let elsewhere = ["https://", "http://", "mailto:"].iter().any(|scheme| target.starts_with(scheme));
            let fault = if elsewhere { None } else { fault(&page, &target) };
            faults.extend(fault.map(|fault| format!("{page}:{line}: ]({target}): {fault}")));
        }
    }
    assert!(count > 20, "links are written in another way: {count}");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Pages that code, manifests and alerts name.
#[test]
fn every_page_that_is_named_outside_of_pages_is_there() {
    let (mut count, mut faults) = (0, Vec::new());
    for file in ["src", "deploy", "policies", "examples"].iter().flat_map(|root| files(Path::new(root))) {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        for rest in text.split("docs/").skip(1) {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"/-.#".contains(c)).unwrap_or(rest.len());
            let target = format!("docs/{}", rest[..end].trim_end_matches('.'));
            if target.contains(".md") {
                count += 1;
                faults.extend(fault("README.md", &target).map(|fault| format!("{}: {fault}", file.display())));
            }
        }
    }
    assert!(count > 50, "pages are named in another way: {count}");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Who has one minute reads one screen.
#[test]
fn the_readme_is_short() {
    let text = std::fs::read_to_string("README.md").unwrap();
    let words = text.split_whitespace().count();
    assert!(words <= 900, "README.md has {words} words");
}

/// Readers cannot find a page that is in no index.
#[test]
fn the_index_names_every_page() {
    let index = read("docs/README.md");
    let named: Vec<_> = links(&index).into_iter().map(|(_, target)| join(Path::new("docs"), &target)).collect();
    let lost: Vec<_> = pages()
        .into_iter()
        .filter(|page| page.starts_with("docs/") && page != "docs/README.md")
        .filter(|page| !named.iter().any(|named| named == Path::new(page)))
        .collect();
    assert!(lost.is_empty(), "docs/README.md does not name {lost:?}");
}

#[test]
fn links_and_anchors_are_read_as_github_reads_them() {
    let items =
        parse("# A `b`, c: d\n[x](y.md#z) and [`u`](v)\n```\n[no](link)\n```\n<!-- [no](link) -->\n## A b c d\n");
    assert_eq!(links(&items), [(2, "y.md#z".to_owned()), (2, "v".to_owned())]);
    assert_eq!(anchors(&items), ["a-b-c-d", "a-b-c-d-1"]);
    assert!(fault("docs/rules.md", "../README.md#install").is_none());
    assert_eq!(fault("docs/rules.md", "#none").unwrap(), "docs/rules.md has no heading #none");
    assert_eq!(fault("docs/rules.md", "none.md").unwrap(), "docs/none.md is not there");
}
