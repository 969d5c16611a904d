//! What a pod gets from its group at its birth alone: variables, which nothing adds later.

use super::engine::read_annotation;
use super::{Group, Role};

impl Group {
    /// Reports whether a pod of this role gets variables from the group when it is created. `asked` is the engine that the pod
    /// asks for itself; `numbered` says that its replica has a number.
    pub fn equips(&self, role: &Role, asked: Option<&str>, numbered: bool) -> bool {
        let Some(asked) = asked else { return role.engine.as_ref().is_some_and(Result::is_ok) };
        let has_peers = || {
            let hosts = self.roles.iter().any(|role| role.workload.hosts.is_some());
            hosts && self.batch_size(&role.name).is_some()
        };
        let meets = |engine: &super::Engine| engine.meets_beyond_replica() || (engine.names_peers() && has_peers());
        numbered && read_annotation(asked).is_ok_and(|engine| meets(&engine))
    }

    /// Reports whether the group equips any pod of this role, as far as its templates tell.
    pub fn equips_role(&self, role: &Role) -> bool {
        let numbered = role.workload.without_ordinals().is_none();
        let engines = &role.workload.engines;
        let asked = engines.iter().any(|engine| self.equips(role, Some(engine), numbered));
        self.discovery || asked || (engines.is_empty() && self.equips(role, None, numbered))
    }
}
