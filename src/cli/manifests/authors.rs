//! The policy that asks for the rights of authors: rolegate acts with rights of its own, so whoever sets a field by which it does
//! must have them too. The API server asks, in every namespace and mode, and while no replica answers. It is the twin of the rules
//! of rights (`rules::group::guarded`): a right is asked for unless all that it guards is as before.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::installation::Installation;
use super::judged::{Judged, Policy, quoted};
use crate::api::ObjectKind;
use crate::api::pod::POD;
use crate::api::pod_group::{KUBE_POD_GROUP, POD_GROUP, VOLCANO_POD_GROUP};
use crate::api::provisioning::{CAPACITY_BUFFER, PROVISIONING_REQUEST};
use crate::api::role_coordination::ROLE_COORDINATION;
use crate::model::{CARRIERS, WorkloadKind, names};

/// Most kinds of `--ready-kinds` that the policy asks for: each costs a variable, and a policy may ask some thirty questions.
pub const MOST_READY_KINDS: usize = 12;

/// Most roles, coordinations and roles of these that are compared each with each. Beyond, a comparison costs more than an expression
/// may, and the author would read of that and of no right.
const MOST_COMPARED: usize = 300;

/// Most pairs of a role and a coordination that are looked at one by one.
const MOST_PAIRS: usize = 20_000;

/// The variable with these kinds, which differs from installation to installation.
pub const READY_KINDS: &str = "readyKinds";

/// Returns the policy.
pub fn policy(installation: &Installation) -> Policy {
    let asked = Asked::all(installation);
    let mut variables: Vec<_> = shared();
    variables.extend(asked.iter().flat_map(|asked| asked.variables.clone()));
    let validations = asked.into_iter().map(|asked| {
        json!({
            "expression": asked.expression,
            "messageExpression": format!("'{} in namespace ' + request.namespace", asked.message),
            "message": asked.message,
            "reason": "Forbidden",
        })
    });
    let groups: BTreeSet<_> = CARRIERS.iter().map(|kind| kind.group).collect();
    let plurals: BTreeSet<_> = CARRIERS.iter().map(|kind| kind.plural).collect();
    Judged {
        suffix: "authors".to_owned(),
        so: "Whoever sets a field by which rolegate acts must have the right to it.".to_owned(),
        groups: groups.into_iter().collect(),
        resources: plurals.into_iter().collect(),
        operations: &["CREATE", "UPDATE"],
        own: false,
        variables,
        validations: validations.collect(),
    }
    .policy(installation, &[], None)
}

/// What is asked for one right.
struct Asked {
    variables: Vec<Value>,
    expression: String,
    message: &'static str,
}

fn variable(name: impl Into<String>, expression: impl Into<String>) -> Value {
    json!({ "name": name.into(), "expression": expression.into() })
}

/// Returns an optional value if it is an object, else an empty one. What a foreign definition keeps may have any shape.
fn map_of(value: &str) -> String {
    format!("[{value}.orValue(null)].map(any, type(any) == map ? dyn(any) : dyn({{}}))[0]")
}

fn list_of(value: &str) -> String {
    format!("[{value}.orValue(null)].map(any, type(any) == list ? dyn(any) : dyn([]))[0]")
}

/// Returns an optional value, with a default for an empty one.
fn or(value: &str, default: &str) -> String {
    format!("[{value}.orValue(null)].map(any, any == null || any == dyn('') ? dyn({default}) : dyn(any))[0]")
}

/// Returns an optional time: `60m` is `1h`.
fn time(value: &str, default: &str) -> String {
    let text = or(value, default);
    format!(
        "[{text}].map(any, type(any) == string && any.matches('^([0-9]{{1,6}}(h|m|s|ms))+$') ? dyn(duration(any)) : dyn(any))[0]"
    )
}

/// A field that a right guards: how its value is spelled, its names, and its default.
type Guarded = (fn(&str, &str) -> String, &'static [&'static str], &'static str);

const RECOVERY: &[Guarded] = &[
    (or, &["policy"], "'None'"),
    (time, &["unreadyFor"], "''"),
    (or, &["limit"], "3"),
    (time, &["window"], "'1h'"),
    (or, &["maxConcurrent"], "1"),
];

const ROLLING: &[Guarded] = &[
    (or, &["maxSkew"], "'100%'"),
    (or, &["maxUnavailableRatio", "maxUnavailable"], "1"),
    (or, &["partition"], "'0%'"),
    (or, &["by"], "'Replica'"),
    (or, &["steps"], "[]"),
    (or, &["readyWhen"], "{}"),
    (or, &["onFailure"], "'Pause'"),
    (time, &["failAfter"], "'10m'"),
];

const PROVISION: &[Guarded] = &[
    (or, &["by"], "'CapacityBuffer'"),
    (or, &["class"], "''"),
    (time, &["after"], "'5s'"),
    (time, &["deadline"], "'15m'"),
    (or, &["maxSegmentsAhead"], "1"),
];

/// Returns an expression for whether these fields below a path are as before.
fn alike(path: &str, fields: &[Guarded]) -> String {
    let of = |object: &str, (spelled, names, default): &Guarded| {
        let all = names.iter().map(|name| format!("{object}.{path}.?{name}"));
        spelled(&all.reduce(|first, other| format!("{first}.or({other})")).unwrap_or_default(), default)
    };
    let all = ["now", "was"].map(|object| fields.iter().map(|field| of(object, field)).collect::<Vec<_>>().join(", "));
    all.map(|all| format!("[{all}]")).join(" == ")
}

/// Returns the variables that all rights share: the objects, free of spelling. Index 0 is the object, 1 the one before.
fn shared() -> Vec<Value> {
    let strategy = |field: &str| map_of(&format!("s.?{field}"));
    let first_list = |fields: [&str; 2]| {
        let all = fields.map(|field| format!("spec.?{field}.orValue(null)")).join(", ");
        format!("([{all}].filter(any, type(any) == list) + [dyn([])])[0]")
    };
    let record = format!(
        "{{'name': dyn(c.?name.orValue('')), 'roles': dyn({roles}), 'fit': {fit}, 'provision': {provision}, 'flat': dyn(s), \
         'segment': {segment}, 'affine': {affine}, 'deploy': {deploy}, 'rolling': dyn(type(s.?rollingUpdate.orValue(null)) == map ? \
         s.rollingUpdate : s)}}",
        roles = list_of("c.?roles"),
        fit = or("c.?whenNoFit", "'hold'"),
        provision = map_of("c.?provision"),
        segment = strategy("segmentPlacement"),
        affine = strategy("affinityScheduling"),
        deploy = strategy("rollingDeploy"),
    );
    let constraint = format!(
        "[[{}, {}]].map(both, both[0].size() > 0 ? both[0] : both[1])[0]",
        map_of("e.deploy.?deployTopologyConstraint"),
        map_of("e.flat.?deployTopologyConstraint")
    );
    let refined = format!(
        "{{'name': e.name, 'roles': e.roles, 'fit': e.fit, 'provision': e.provision, 'rolling': e.rolling, 'constraint': \
         dyn({constraint}), 'segmented': {segmented}, 'sizes': dyn([{segmented}, {ratios}, {steps}]), 'direct': \
         dyn(e.deploy.filter(key, type(e.deploy[key]) == int)), 'deploy': e.deploy, 'affinity': dyn([e.segment.?topologyAffinity\
         .orValue(null), e.affine.?topologyKey.orValue(null)]), 'recoveries': dyn([{in_segment}, {in_affine}, {in_deploy}]), \
         'gangs': dyn([e.segment.?podGroupPolicy.orValue(null), e.affine.?podGroupPolicy.orValue(null), {constraint}\
         .?podGroupPolicy.orValue(null)].map(any, type(any) == map ? dyn(any) : dyn({{}}))), 'awaited': dyn([{segment_ready}, \
         {rolling_ready}])}}",
        segmented = map_of("e.segment.?segmentSize"),
        ratios = map_of("e.affine.?ratios"),
        steps = map_of("e.deploy.?roleDeployStep"),
        in_segment = map_of("e.segment.?recovery"),
        in_affine = map_of("e.affine.?recovery"),
        in_deploy = map_of("e.deploy.?recovery"),
        segment_ready = map_of("e.segment.?readyWhen"),
        rolling_ready = map_of("e.rolling.?readyWhen"),
    );
    let roles = list_of("spec.?roles");
    vec![
        variable("objects", "request.operation == 'UPDATE' ? [dyn(object), dyn(oldObject)] : [dyn(object)]"),
        variable("specs", format!("variables.objects.map(each, {})", map_of("each.?spec"))),
        variable("kept", "request.operation == 'UPDATE' && variables.specs[0] == variables.specs[1]"),
        variable(
            "lists",
            format!(
                "variables.specs.map(spec, {}.filter(c, type(c) == map))",
                first_list(["coordination", "coordinationRequirements"])
            ),
        ),
        variable(
            "written",
            format!("variables.lists.map(all, all.map(c, [{}].map(s, {record})[0]))", map_of("c.?strategy")),
        ),
        variable("entries", format!("variables.written.map(all, all.map(e, {refined}))")),
        variable("before", "request.operation == 'UPDATE' ? variables.entries[1] : dyn([])"),
        variable("roles", format!("variables.specs.map(spec, {roles}.filter(role, type(role) == map))")),
        variable(
            "refs",
            "variables.roles.map(all, all.map(role, [dyn(role.?name.orValue('')), dyn(role.?workloadRef.orValue(null)), \
             dyn(role.?workload.orValue(null))]))",
        ),
        variable("listed", "variables.entries.map(all, all.map(e, [dyn(e.name), dyn(e.roles)]))"),
        variable(
            "large",
            format!(
                "request.operation == 'UPDATE' && (variables.refs[0] != variables.refs[1] || variables.listed[0] != \
                 variables.listed[1]) && [0, 1].exists(at, variables.roles[at].size() + variables.entries[at].map(e, 1 + \
                 e.roles.size() + e.direct.size()).sum() > {MOST_COMPARED})"
            ),
        ),
        // Names of the roles whose pods something else makes.
        variable(
            "moved",
            "request.operation != 'UPDATE' || variables.large || variables.refs[0] == variables.refs[1] ? dyn([]) : \
             dyn((variables.refs[0].filter(role, !(role in variables.refs[1])) + variables.refs[1].filter(role, !(role in \
             variables.refs[0]))).map(role, role[0]))",
        ),
        // Of a large group whose roles change, nothing is known to be as before: each right is asked for.
        variable(
            "sameGroup",
            "request.operation == 'UPDATE' && !variables.large && variables.specs[0].?groupRef == variables.specs[1].?groupRef",
        ),
        variable(
            "sameSegments",
            "request.operation == 'UPDATE' && variables.specs[0].?segments == variables.specs[1].?segments",
        ),
    ]
}

/// Returns an expression for whether a coordination `now` has the roles and sizes of `was`, of the same name.
fn same_members() -> String {
    "now.name == was.name && (now.roles == was.roles || now.roles.all(role, role in was.roles) && now.roles.size() == \
     was.roles.size()) && now.sizes == was.sizes && now.direct.size() == was.direct.size() && now.direct.all(role, was.deploy[?role] \
     == now.deploy[?role])"
        .to_owned()
}

/// The same, and what makes the pods of its roles.
fn same_makers() -> String {
    format!(
        "{} && variables.moved.all(role, !(role in now.roles) && !(role in now.direct) && now.sizes.all(sizes, !(role in sizes)))",
        same_members()
    )
}

/// Returns an expression for whether each coordination that asks is as before.
fn all_same(asking: &str, same: &str) -> String {
    format!("variables.sameGroup && variables.{asking}.all(now, variables.before.exists(was, {same}))")
}

fn may(kind: ObjectKind, subresource: Option<&str>, verb: &str) -> String {
    let of = subresource.map_or_else(String::new, |name| format!(".subresource('{name}')"));
    let (group, plural) = (kind.group, kind.plural);
    format!(
        "authorizer.group('{group}').resource('{plural}'){of}.namespace(request.namespace).check('{verb}').allowed()"
    )
}

impl Asked {
    fn all(installation: &Installation) -> Vec<Self> {
        let mut all = vec![Self::deletions()];
        all.push(Self::scales());
        all.extend([
            Self::gang("kubeScheduling", "Kube", KUBE_POD_GROUP, "whoever sets podGroupPolicy.kubeScheduling must be allowed to create podgroups.scheduling.x-k8s.io"),
            Self::gang("volcanoScheduling", "Volcano", VOLCANO_POD_GROUP, "whoever sets podGroupPolicy.volcanoScheduling must be allowed to create podgroups.scheduling.volcano.sh"),
            Self::gang("kai", "Kai", POD_GROUP, "whoever sets podGroupPolicy.kai must be allowed to create podgroups.scheduling.run.ai"),
            Self::request("CapacityBuffer", "Buffers", CAPACITY_BUFFER, "whoever sets `whenNoFit: provision` must be allowed to create capacitybuffers.autoscaling.x-k8s.io"),
            Self::request("ProvisioningRequest", "Requests", PROVISIONING_REQUEST, "whoever sets provision.by: ProvisioningRequest must be allowed to create provisioningrequests.autoscaling.x-k8s.io"),
        ]);
        all.push(Self::awaited(installation));
        all
    }

    /// Pods are deleted for recoveries, rollouts that go back or by segments, and what a person ends or asks for by hand.
    fn deletions() -> Self {
        // The segments that are updated as a whole stand in another coordination.
        let segments = format!(
            "(now.rolling.?by.orValue('') != 'Segment' || variables.entries[0].filter(other, other.sizes.exists(sizes, \
             now.roles.exists(role, role in sizes))).all(now, variables.before.exists(was, {})))",
            same_members()
        );
        let recoveries = format!("[0, 1, 2].all(at, {})", alike("recoveries[at]", RECOVERY));
        let same = format!("{} && {recoveries} && {} && {segments}", same_makers(), alike("rolling", ROLLING));
        let keys = quoted([names::RESUMED_AT, names::ROLLOUT_RESUMED_AT, names::ROLLED_BACK_AT].into_iter());
        let note = |at: u8| format!("variables.objects[{at}].metadata.?annotations[?key].orValue('')");
        Self {
            variables: vec![
                variable(
                    "deleting",
                    "variables.entries[0].filter(e, e.recoveries.exists(recovery, recovery.?policy.orValue('') == 'Recreate') || \
                     e.rolling.?by.orValue('') == 'Segment' || e.rolling.?onFailure.orValue('') == 'Rollback')",
                ),
                variable(
                    "byHand",
                    format!(
                        "[{keys}].exists(key, {new} != '' && (request.operation != 'UPDATE' || {new} != {old}))",
                        new = note(0),
                        old = note(1)
                    ),
                ),
                variable("mayDeletePods", may(POD, None, "delete")),
                variable("sameDeleting", all_same("deleting", &same)),
            ],
            expression:
                "!variables.byHand && (variables.kept || variables.deleting.size() == 0) || variables.mayDeletePods || \
                         !variables.byHand && variables.sameDeleting"
                    .to_owned(),
            message: "whoever sets recovery, by: Segment, onFailure: Rollback, or asks for a rollback or the end of a wait, must be \
                      allowed to delete pods",
        }
    }

    /// The workloads of a RoleCoordination with `segments` are scaled.
    fn scales() -> Self {
        let kinds = WorkloadKind::ALL.iter().map(|kind| (kind.as_str(), kind.object_kind()));
        let name = |kind: &str| format!("mayScale{kind}s");
        let mut variables = vec![
            variable(
                "scaling",
                format!(
                    "request.kind.group == '{}' && variables.specs[0].?segments.orValue(null) != null",
                    ROLE_COORDINATION.group
                ),
            ),
            variable(
                "batched",
                "variables.entries.map(all, all.filter(e, e.direct.size() > 0 || e.sizes.exists(sizes, sizes.size() > 0)))",
            ),
            variable(
                "sameScaling",
                format!(
                    "variables.sameGroup && variables.sameSegments && variables.batched[0].size() == variables.batched[1].size() \
                     && variables.batched[0].all(now, variables.before.exists(was, {}))",
                    same_makers()
                ),
            ),
            variable(
                "scaledKinds",
                format!(
                    "variables.roles[0].filter(role, variables.roles[0].size() * variables.batched[0].size() > {MOST_PAIRS} || \
                     variables.batched[0].exists(e, e.sizes.exists(sizes, role.?name.orValue('') in sizes))).map(role, \
                     {}.?kind.orValue(''))",
                    map_of("role.?workloadRef")
                ),
            ),
        ];
        variables.extend(kinds.clone().map(|(kind, object)| variable(name(kind), may(object, Some("scale"), "patch"))));
        let each = kinds.map(|(kind, _)| format!("(!('{kind}' in variables.scaledKinds) || variables.{})", name(kind)));
        let each = each.collect::<Vec<_>>().join(" && ");
        Self {
            variables,
            expression: format!("variables.kept || !variables.scaling || ({each}) || variables.sameScaling"),
            message: "whoever sets segments must be allowed to scale the workloads (to patch their scale, whatever their name)",
        }
    }

    /// PodGroups of batches are created.
    fn gang(field: &str, suffix: &str, kind: ObjectKind, message: &'static str) -> Self {
        let same = "now.gangs == was.gangs && now.affinity == was.affinity && now.constraint == was.constraint";
        let asking = format!("e.gangs.exists(gang, gang.?{field}.orValue(null) != null)");
        Self::creation(("gangs", suffix, kind), &asking, &format!("{} && {same}", same_members()), message)
    }

    /// Nodes are requested.
    fn request(by: &str, suffix: &str, kind: ObjectKind, message: &'static str) -> Self {
        let written = alike("provision", PROVISION);
        let same = format!("{} && now.fit == was.fit && variables.sameSegments && {written}", same_makers());
        let asking = format!("e.fit == 'provision' && {} == '{by}'", or("e.provision.?by", "'CapacityBuffer'"));
        Self::creation(("requests", suffix, kind), &asking, &same, message)
    }

    /// Objects are created for the coordinations that ask for them.
    fn creation((what, of, kind): (&str, &str, ObjectKind), asks: &str, same: &str, message: &'static str) -> Self {
        let (asking, may_create, same_asking) = (format!("{what}{of}"), format!("mayCreate{of}"), format!("same{of}"));
        Self {
            expression: format!(
                "variables.kept || variables.{asking}.size() == 0 || variables.{may_create} || variables.{same_asking}"
            ),
            variables: vec![
                variable(&*asking, format!("variables.entries[0].filter(e, {asks})")),
                variable(may_create, may(kind, None, "create")),
                variable(same_asking, all_same(&asking, same)),
            ],
            message,
        }
    }

    /// Conditions of other objects become visible.
    fn awaited(installation: &Installation) -> Self {
        let mut variables = vec![
            // Of KIND=PLURAL.VERSION.GROUP; the core group is empty.
            variable(
                READY_KINDS,
                format!(
                    "'{}'.split(',').filter(kind, kind != '').map(kind, [kind.split('=')[0]] + kind.split('=')[1].split('.', 3) + \
                     [''])",
                    installation.ready_kinds
                ),
            ),
            variable(
                "awaiting",
                "variables.entries[0].filter(e, e.awaited.exists(when, when.?object.orValue(null) != null))",
            ),
            variable("sameAwaiting", all_same("awaiting", "now.name == was.name && now.awaited == was.awaited")),
            variable(
                "awaitedKinds",
                format!(
                    "variables.awaiting.map(e, e.awaited.filter(when, when.?object.orValue(null) != null).map(when, [{}].map(of, \
                     [dyn(of.?kind.orValue('')), dyn([of.?apiVersion.orValue('')].map(any, type(any) == string && any.contains('/') ? any.split('/')[0] : '')[0])])[0]))",
                    map_of("when.?object")
                ),
            ),
        ];
        let index = |at: usize| format!("variables.readyKinds[{at}]");
        variables.extend((0..MOST_READY_KINDS).map(|at| {
            let of = index(at);
            variable(
                format!("mayGet{at}"),
                format!(
                    "variables.readyKinds.size() > {at} && authorizer.group({of}[3]).resource({of}[1])\
                     .namespace(request.namespace).check('get').allowed()"
                ),
            )
        }));
        let any = (0..MOST_READY_KINDS).map(|at| {
            let of = index(at);
            format!("(variables.readyKinds.size() > {at} && kind == [{of}[0], {of}[3]] && variables.mayGet{at})")
        });
        let any = any.collect::<Vec<_>>().join(" || ");
        Self {
            variables,
            expression: format!(
                "variables.kept || variables.awaiting.size() == 0 || variables.sameAwaiting || variables.awaitedKinds.all(kinds, \
                 kinds.all(kind, {any}))"
            ),
            message: "whoever names an object in readyWhen must be allowed to get it, and rolegate must watch its kind (--ready-kinds)",
        }
    }
}
