//! The pages of `docs/` and README.md: every command in them is run, or says why not. README.md beside this file has the
//! words that a page may use.

mod cluster;
mod expect;
mod page;
mod run;
mod shell;

use crate::common::prelude::*;
use crate::docs::cluster::Cluster;
use crate::docs::page::{Step, steps};
use crate::docs::run::run;
use crate::markdown;

/// The pages that are run, each with the cluster that it is for. A page without a block that runs needs no row.
macro_rules! pages {
    ($($test:ident: $page:literal on $cluster:expr;)*) => {
        const PAGES: &[&str] = &[$($page),*];

        mod pages {
            use super::{Cluster, cluster, run};

            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                run($page, stringify!($test), $cluster).await;
            })*
        }
    };
}

pages! {
    readme: "README.md" on Cluster::served();
    quick_start: "docs/guides/quick-start.md" on Cluster::empty();
    held: "docs/held.md" on Cluster::served();
    leader_worker_sets: "docs/guides/leader-worker-sets.md" on Cluster::served().with("kwok,lws");
    role_based_groups: "docs/guides/role-based-groups.md" on Cluster::served();
    grove: "docs/guides/grove.md" on Cluster::served().defining(cluster::GROVE);
    kai: "docs/guides/kai.md" on Cluster::served().defining(cluster::KAI);
    gangs: "docs/guides/gangs.md" on Cluster::served().with("kwok,lws").defining(cluster::COSCHEDULING);
    placement: "docs/guides/placement.md" on Cluster::served();
    segment_sizes: "docs/guides/segment-sizes.md" on Cluster::served();
    elastic: "docs/guides/elastic.md" on Cluster::served().allowing("scale");
    rollouts: "docs/guides/rollouts.md" on Cluster::served().allowing("recovery").watching("Job=jobs.v1.batch");
    recovery: "docs/guides/recovery.md" on Cluster::served().allowing("recovery");
    testing_your_specs: "docs/guides/testing-your-specs.md" on Cluster::empty();
    adopting: "docs/guides/adopting.md" on Cluster::served().audited();
}

/// Pages whose commands another test looks at, each with what it does.
const ELSEWHERE: &[(&str, &str)] =
    &[("docs/cli.md", "tests/offline/generated_cli.rs parses each, and runs those that need no cluster")];

/// Languages of blocks whose commands nobody would run.
const OTHER_SHELLS: &[&str] = &["", "sh", "bash", "shell", "zsh", "text"];

#[test]
fn every_command_of_every_page_is_run_or_says_why_not() {
    let (mut all_run, mut all_skipped, mut faults) = (0, 0, Vec::new());
    for page in markdown::pages() {
        let (steps, wrong) = steps(&markdown::read(&page));
        faults.extend(wrong.into_iter().map(|(line, fault)| format!("{page}:{line}: {fault}")));
        let run = steps.iter().filter(|step| matches!(step, Step::Run(command) if !command.hidden)).count();
        let skipped: Vec<_> = steps.iter().filter_map(Step::skipped).collect();
        if run + skipped.len() > 0 {
            println!("{page}: {run} commands run, {} blocks not run", skipped.len());
            skipped.iter().for_each(|(line, reason)| println!("  {line}: {reason}"));
        }
        if run > 0 && !PAGES.contains(&&*page) && !ELSEWHERE.iter().any(|(known, _)| *known == page) {
            faults.push(format!("{page}: {run} commands are neither marked nor run: no row in tests/live/docs/mod.rs"));
        }
        all_run += run;
        all_skipped += skipped.len();
    }
    println!("{all_run} commands run, {all_skipped} blocks not run");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert_eq!(PAGES.iter().collect::<BTreeSet<_>>().len(), PAGES.len(), "a page has two rows");
}
