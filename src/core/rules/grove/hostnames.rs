//! Hostnames of Grove pods: `<set>-<replica>[-<scaling group>-<replica>]-<clique>-<index>`. The hostname is the first part of
//! every address.

use crate::model::clique_set::{Clique, clique_name};
use crate::model::object_name::LABEL_MAX;
use crate::model::{CliqueSet, FieldPath};
use crate::rules::violation::quoted;
use crate::rules::{Cause, Report, World};

/// Grove's own limit for the summed length of the names of set, scaling group and clique.
const NAME_SUM_MAX: usize = 45;

/// Requires hostnames that are DNS labels, for current pods and for those that scaling will make.
pub(super) fn valid(set: &CliqueSet, _: &World, report: &mut Report) {
    let of_set = (&*set.key.name, &*set.key.name, FieldPath::new("metadata").child("name"));
    let of_groups = set.scaling_groups.iter().map(|group| (&*group.name, &*group.name, group.at.child("name")));
    let of_cliques = set.cliques.iter().map(|clique| (&*clique.name, &*clique.name, clique.at.child("name")));
    for (subject, name, path) in std::iter::once(of_set).chain(of_groups).chain(of_cliques) {
        if name.contains('.') {
            let detail = "must not contain '.': it becomes a part of hostnames, which are DNS labels";
            report.error(subject, path, Cause::Invalid, quoted(name), detail);
        }
    }
    for clique in &set.cliques {
        let path = clique.at.child("name");
        if let Some(hostname) = too_long(set, clique, Scale::Now) {
            let detail = format!("makes hostname {hostname:?}; may not be more than {LABEL_MAX} bytes");
            report.error(&clique.name, path, Cause::TooLong, None, detail);
        } else if let Some(hostname) = too_long(set, clique, Scale::Most) {
            let detail = format!("at most replicas makes hostname {hostname:?} of more than {LABEL_MAX} bytes");
            report.warn(&clique.name, path, Cause::TooLong, None, detail);
        }
    }
}

#[derive(Clone, Copy)]
enum Scale {
    /// The replicas in the set.
    Now,
    /// The most replicas that autoscaling may make.
    Most,
}

impl Scale {
    fn last(self, replicas: u32, max: Option<u32>) -> u32 {
        let replicas = match self {
            Self::Now => replicas,
            Self::Most => max.map_or(replicas, |max| max.max(replicas)),
        };
        replicas.saturating_sub(1)
    }
}

/// Returns the hostname of the clique's last pod, if it is too long.
fn too_long(set: &CliqueSet, clique: &Clique, scale: Scale) -> Option<String> {
    let index = scale.last(clique.replicas, clique.max_replicas);
    let group = set.group_of(clique).map(|group| (&*group.name, scale.last(group.replicas, group.max_replicas)));
    let name = clique_name(&set.key.name, set.replicas.saturating_sub(1), group, &clique.name);
    Some(format!("{name}-{index}")).filter(|hostname| hostname.len() > LABEL_MAX)
}

/// Warns where names exceed the limit of Grove's own webhook, which ignores replicas.
pub(super) fn name_sum(set: &CliqueSet, _: &World, report: &mut Report) {
    for clique in &set.cliques {
        let group = set.group_of(clique).map_or(0, |group| group.name.len());
        let sum = set.key.name.len() + group + clique.name.len();
        if sum > NAME_SUM_MAX {
            let detail =
                format!("the names of set, scaling group and clique have {sum} bytes; Grove allows {NAME_SUM_MAX}");
            report.warn(&clique.name, clique.at.child("name"), Cause::TooLong, None, detail);
        }
    }
}
