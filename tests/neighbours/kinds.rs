//! Pods of makers that give no partition, and mostly no numbers: Jobs, workflows, ReplicaSets, DaemonSets, by the controllers of
//! Kubernetes.

use crate::common::prelude::*;

use crate::in_rig;

const RACK: &str = "example.com/rack";
const COMPLETION: &str = "batch.kubernetes.io/job-completion-index";

fn record(tried: &str, result: &str) {
    in_rig::record("kinds", "k8s.io/kubernetes", tried, result);
}

/// A group of one role, four replicas in segments of two, whose pods do not become ready by themselves.
fn fours() -> Group {
    Group::new("llm").role("main", 4, 2).held_back()
}

/// A stage with this group, which is served.
async fn serve_fours(namespace: &str) -> (Stage, Rolegate, Group, StatusLog) {
    let (stage, rolegate) = Stage::new(namespace).await.with_room(8).await.serve().await;
    let (group, statuses) = (fours(), stage.create_watched(&fours()).await);
    (stage, rolegate, group, statuses)
}

/// The template of the group's pods, which run once.
fn once(group: &Group, stage: &Stage) -> Value {
    let mut template = group.set(group.find("main"), &stage.namespace)["spec"]["template"].clone();
    template["spec"]["restartPolicy"] = json!("Never");
    template
}

/// A Job of the group's pods.
fn job(group: &Group, stage: &Stage, spec: &Value) -> Value {
    let mut spec = spec.clone();
    spec["template"] = once(group, stage);
    object("batch/v1", "Job", "work").spec(spec)
}

/// Such a maker of pods in place of a Deployment.
fn in_place_of_a_deployment(kind: &str, group: &Group, stage: &Stage, more: &Value) -> Value {
    let mut object = group.deployment("main", &stage.namespace, more);
    object["kind"] = json!(kind);
    object
}

/// A pod ends, as its kubelet would say.
async fn end(stage: &Stage, pod: &str, phase: &str) {
    let code = i32::from(phase == "Failed");
    let ended = json!({ "name": "main", "image": "x", "imageID": "", "ready": false, "restartCount": 0,
        "state": { "terminated": { "exitCode": code, "reason": phase } } });
    let ready = json!({ "type": "Ready", "status": "False", "reason": "PodCompleted" });
    let status = json!({ "status": { "phase": phase, "conditions": [ready], "containerStatuses": [ended] } });
    stage.patch_status_of_pod(pod, status).await;
}

fn index(pod: &Pod) -> Option<u32> {
    pod.annotations.get(COMPLETION)?.parse().ok()
}

/// The pod of an index that has not ended, if there is one.
fn of_index(now: &View, number: u32, test: impl Fn(&Pod) -> bool) -> Option<String> {
    now.all().find(|pod| index(pod) == Some(number) && test(pod)).map(|pod| pod.name.clone())
}

async fn until_index(stage: &Stage, what: &str, number: u32, test: impl Fn(&Pod) -> bool) -> String {
    stage.pods.until(what, |now| of_index(now, number, &test).is_some()).await;
    stage.pods.now(|now| of_index(now, number, &test).unwrap())
}

#[tokio::test]
#[ignore = "make neighbours runs it"]
async fn a_segment_of_a_job_stays_complete_when_its_pods_have_done_their_work() {
    let (stage, _rolegate, group, statuses) = serve_fours("job-done").await;
    let spec = json!({ "completionMode": "Indexed", "completions": 4, "parallelism": 4 });
    stage.create(job(&group, &stage, &spec)).await;
    stage.pods.until("the first segment", |now| now.count_all(Pod::is_scheduled) == 2).await;
    stage.pods.now(|now| assert!(now.all().all(|pod| pod.is_held() == (index(pod) > Some(1))), "{now}"));
    // Work that is done before it was ever ready counts as well.
    for number in [0, 1] {
        let pod = until_index(&stage, "it runs", number, Pod::is_scheduled).await;
        end(&stage, &pod, "Succeeded").await;
    }
    stage.pods.until("the second segment", |now| now.count_all(Pod::is_scheduled) == 4).await;
    stage.let_ready(|pod| index(pod) > Some(1)).await;
    statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 4/4 pods ready").await;
    for number in [2, 3] {
        let pod = until_index(&stage, "it runs", number, Pod::is_scheduled).await;
        end(&stage, &pod, "Succeeded").await;
    }
    stage.kubectl(&["wait", "job/work", "--for=condition=Complete", "--timeout=60s"]);
    statuses.until("still", |status| status.ready() == "True AllReplicasReady: 4/4 pods ready").await;
    // As `ttlSecondsAfterFinished` does it.
    stage.kubectl(&["delete", "job/work"]);
    stage.pods.until("its pods are gone", |now| now.count_all(|_| true) == 0).await;
    let done = "True AllReplicasReady: 4/4 pods ready";
    stays(Duration::from_secs(2), "it stays done", async || statuses.now().ready(), done).await;
    let result = "numbered by completion index; succeeded pods count as ready, also after the Job is removed";
    record("Indexed Job whose pods succeed", result);
}

#[tokio::test]
#[ignore = "make neighbours runs it"]
async fn a_job_of_less_parallelism_makes_the_next_segment_when_the_one_before_is_done() {
    let (stage, _rolegate, group, statuses) = serve_fours("job-parallelism").await;
    let spec = json!({ "completionMode": "Indexed", "completions": 4, "parallelism": 2 });
    stage.create(job(&group, &stage, &spec)).await;
    for number in 0..4 {
        let pod = until_index(&stage, "it runs", number, Pod::is_scheduled).await;
        end(&stage, &pod, "Succeeded").await;
    }
    statuses.until("all done", |status| status.ready() == "True AllReplicasReady: 4/4 pods ready").await;
    record("Indexed Job with `parallelism` below `completions`", "works");
}

#[tokio::test]
#[ignore = "make neighbours runs it"]
async fn what_a_job_makes_again_goes_at_once() {
    for (name, policy) in [("job-failed", "TerminatingOrFailed"), ("job-replaced", "Failed")] {
        let (stage, _rolegate, group, statuses) = serve_fours(name).await;
        let spec =
            json!({ "completionMode": "Indexed", "completions": 4, "parallelism": 4, "podReplacementPolicy": policy });
        stage.create(job(&group, &stage, &spec)).await;
        stage.pods.until("the first segment", |now| now.count_all(Pod::is_scheduled) == 2).await;
        stage.let_ready(Pod::is_scheduled).await;
        stage.pods.until("the second segment", |now| now.count_all(Pod::is_scheduled) == 4).await;
        let failed = until_index(&stage, "it runs", 0, Pod::is_ready).await;
        end(&stage, &failed, "Failed").await;
        let again = until_index(&stage, "made again", 0, |pod| pod.name != failed && pod.is_scheduled()).await;
        stage.let_ready(|pod| pod.name == again).await;
        // Held while it is deleted, for as long as somebody has a finalizer on it.
        let slow = until_index(&stage, "it runs", 1, Pod::is_ready).await;
        // The Job's own finalizer stays: its controller takes that away.
        let kept = json!({ "metadata": { "finalizers": ["example.com/slow", "batch.kubernetes.io/job-tracking"] } });
        stage.patch::<ApiPod>(&slow, &kept).await;
        stage.delete::<ApiPod>(&slow).await;
        if policy == "Failed" {
            let found = async || stage.api::<ApiPod>().get(&slow).await.unwrap().metadata.deletion_timestamp;
            until_found("it is being deleted", found, Option::is_some).await;
            stage.pods.now(|now| assert!(of_index(now, 1, |pod| pod.name != slow).is_none(), "{now}"));
            statuses.until("one lacks", |status| status.ready().contains("/4 pods ready")).await;
        } else {
            until_index(&stage, "replaced", 1, |pod| pod.name != slow && pod.is_scheduled()).await;
        }
        stage.patch::<ApiPod>(&slow, &json!({ "metadata": { "finalizers": null } })).await;
        until_index(&stage, "replaced", 1, |pod| pod.name != slow && pod.is_scheduled()).await;
        stage.let_ready(Pod::is_scheduled).await;
        statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 4/4 pods ready").await;
    }
    record(
        "Indexed Job: a pod fails, another is deleted (`podReplacementPolicy` TerminatingOrFailed and Failed)",
        "a recreated pod of a released index goes at once",
    );
}

#[tokio::test]
#[ignore = "make neighbours runs it"]
async fn an_index_that_has_failed_for_good_holds_the_segments_behind_it_and_it_is_said() {
    let (stage, _rolegate, group, statuses) = serve_fours("job-index-failed").await;
    let spec = json!({ "completionMode": "Indexed", "completions": 4, "parallelism": 4, "backoffLimitPerIndex": 0 });
    stage.create(job(&group, &stage, &spec)).await;
    let failed = until_index(&stage, "it runs", 0, Pod::is_scheduled).await;
    let done = until_index(&stage, "it runs", 1, Pod::is_scheduled).await;
    end(&stage, &done, "Succeeded").await;
    end(&stage, &failed, "Failed").await;
    statuses.until("the second waits", |status| status.reason() == "PreviousSegmentNotReady").await;
    let held = until_index(&stage, "held", 2, Pod::is_held).await;
    let silent = "Job job-index-failed/work, which makes pods of the role, makes none of these";
    stage.until_said(&["explain", "pod", &held], silent).await;
    statuses.until("and in the group", |status| status.progressing().contains(silent)).await;
    let result = "later segments stay held, and the group reports the missing pod";
    record("Indexed Job: an index fails for good (`backoffLimitPerIndex`)", result);
}

#[tokio::test]
#[ignore = "make neighbours runs it"]
async fn a_job_that_has_failed_leaves_no_held_pod() {
    let (stage, _rolegate, group, statuses) = serve_fours("job-given-up").await;
    let spec = json!({ "completionMode": "Indexed", "completions": 4, "parallelism": 4, "backoffLimit": 0 });
    stage.create(job(&group, &stage, &spec)).await;
    let failed = until_index(&stage, "it runs", 0, Pod::is_scheduled).await;
    end(&stage, &failed, "Failed").await;
    stage.kubectl(&["wait", "job/work", "--for=condition=Failed", "--timeout=60s"]);
    stage.pods.until("nothing is held", |now| now.count_all(Pod::is_held) == 0).await;
    statuses.until("it is said", |status| status.0["summary"]["held"] == 0 && status.ready().contains("0/4")).await;
    record("Indexed Job that fails as a whole (`backoffLimit`)", "its controller deletes running and held pods");
}

#[tokio::test]
#[ignore = "make neighbours runs it"]
async fn a_job_without_numbers_is_a_queue() {
    let (stage, _rolegate, group, statuses) = serve_fours("job-queue").await;
    let spec = json!({ "completions": 4, "parallelism": 4 });
    stage.create(job(&group, &stage, &spec)).await;
    for released in [2, 4] {
        stage.pods.until("a segment", |now| now.count_all(Pod::is_scheduled) == released).await;
        stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_released), released, "{now}"));
        let run: Vec<_> =
            stage.pods.now(|now| now.all().filter(|p| p.is_scheduled()).map(|p| p.name.clone()).collect());
        for pod in run {
            end(&stage, &pod, "Succeeded").await;
        }
    }
    statuses.until("all done", |status| status.ready() == "True AllReplicasReady: 4/4 pods ready").await;
    record("Job without indexes", "numbered at their release; a succeeded pod keeps its place");
}

#[tokio::test]
#[ignore = "make neighbours runs it"]
async fn a_bare_pod_that_has_ended_frees_its_place_for_the_next() {
    let (stage, _rolegate, group, statuses) = serve_fours("workflow").await;
    let mut pod = once(&group, &stage);
    for number in 0..4 {
        pod["apiVersion"] = json!("v1");
        pod["kind"] = json!("Pod");
        pod["metadata"]["name"] = json!(format!("flow-step-{number}{number}99"));
        stage.create(pod.clone()).await;
    }
    stage.pods.until("a segment", |now| now.count_all(Pod::is_scheduled) == 2).await;
    let run: Vec<_> = stage.pods.now(|now| now.all().filter(|p| p.is_scheduled()).map(|p| p.name.clone()).collect());
    end(&stage, &run[0], "Succeeded").await;
    stage.pods.until("one more", |now| now.count_all(Pod::is_released) == 3).await;
    end(&stage, &run[1], "Failed").await;
    stage.pods.until("the last", |now| now.count_all(Pod::is_released) == 4).await;
    stage.let_ready(|_| true).await;
    statuses.until("two of four", |status| status.ready().contains("2/4 pods ready")).await;
    record(
        "bare pods that run once, as workflow engines make them",
        "numbered at their release; the next held pod takes the place of one that has ended. The group is not `Ready` when all have ended",
    );
}

#[tokio::test]
#[ignore = "make neighbours runs it"]
async fn pods_of_a_replica_set_are_replaced_in_their_place() {
    let (stage, _rolegate, group, statuses) = serve_fours("replica-set").await;
    stage.create(in_place_of_a_deployment("ReplicaSet", &group, &stage, &json!({}))).await;
    stage.pods.until("a segment", |now| now.count_all(Pod::is_scheduled) == 2).await;
    // A released one of the segment that starts is lost, and one of it fails: what comes instead goes at once.
    let names: Vec<_> = stage.pods.now(|now| now.all().filter(|p| p.is_scheduled()).map(|p| p.name.clone()).collect());
    stage.delete::<ApiPod>(&names[0]).await;
    let is_new = |pod: &Pod| !names.contains(&pod.name);
    stage.pods.until("replaced", |now| now.count_all(|p| is_new(p) && p.is_scheduled()) == 1).await;
    end(&stage, &names[1], "Failed").await;
    stage.pods.until("replaced", |now| now.count_all(|p| is_new(p) && p.is_scheduled()) == 2).await;
    stage.pods.until("two are held", |now| now.count_all(Pod::is_held) == 2).await;
    stage.let_ready(Pod::is_scheduled).await;
    stage.pods.until("the second", |now| now.count_all(Pod::is_held) == 0).await;
    stage.let_ready(|_| true).await;
    statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 4/4 pods ready").await;
    let result = "numbered at their release; a held pod takes the free place at once";
    record("ReplicaSet without a Deployment: a pod is deleted, another fails", result);
}

#[tokio::test]
#[ignore = "make neighbours runs it"]
async fn pods_of_a_daemon_set_wait_their_turn_on_the_nodes_that_they_are_made_for() {
    let stage = Stage::new("daemon-set").await;
    for node in ["a", "b", "c", "d"] {
        stage.add_node(node, 8).await;
    }
    let _rolegate = stage.launch().start().await;
    let group = fours();
    let statuses = stage.create_watched(&group).await;
    stage.create(in_place_of_a_deployment("DaemonSet", &group, &stage, &json!({ "replicas": null }))).await;
    stage.pods.until("a segment", |now| now.count_all(Pod::is_scheduled) == 2).await;
    stage.let_ready(Pod::is_scheduled).await;
    stage.pods.until("the second", |now| now.count_all(Pod::is_scheduled) == 4).await;
    stage.let_ready(|_| true).await;
    statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 4/4 pods ready").await;
    stage.add_node("e", 8).await;
    stage.pods.until("one more", |now| now.count_all(Pod::is_held) == 1).await;
    statuses.until("it is said", |status| status.reason() == "BeyondDesired").await;
    let pod = stage.pods.now(|now| now.all().find(|pod| pod.is_held()).unwrap().name.clone());
    stage.until_said(&["explain", "pod", &pod], "the group declares 4 replicas").await;
    stage.patch_group(&group, json!({ "spec": group.clone().role("main", 5, 2).object()["spec"] })).await;
    stage.pods.until("it goes", |now| now.count_all(Pod::is_scheduled) == 5).await;
    record(
        "DaemonSet",
        "numbered at their release; pods beyond the declared replicas, as of a new node, are held (BeyondDesired)",
    );
}

#[tokio::test]
#[ignore = "make neighbours runs it"]
async fn pods_of_a_daemon_set_share_no_rack_and_it_is_said() {
    let stage = Stage::new("daemon-racks").await;
    for rack in ["a", "b"] {
        stage.add_node_with(rack, 8, json!({ (RACK): rack })).await;
    }
    let _rolegate = stage.launch().start().await;
    let group = Group::new("llm").role("main", 2, 2).held_back();
    let statuses = stage.statuses(&group);
    stage.create(group.placed(&near(RACK, "RequireSegmentAffinity"))).await;
    stage.create(in_place_of_a_deployment("DaemonSet", &group, &stage, &json!({ "replicas": null }))).await;
    statuses.until("it is said", |status| status.reason() == "NoRoom").await;
    let pod = stage.pods.now(|now| now.all().next().unwrap().name.clone());
    stage.until_said(&["explain", "pod", &pod], "no example.com/rack fits segment 1").await;
    let result = "does not work: its pods have their nodes from the start; held with NoRoom";
    record("DaemonSet beside a hard topology", result);
}

#[tokio::test]
#[ignore = "make neighbours runs it"]
async fn two_jobs_of_one_role_have_the_same_numbers_and_it_is_said() {
    let (stage, _rolegate) = Stage::new("job-twice").await.with_room(16).await.serve().await;
    let group = fours();
    let statuses = stage.create_watched(&group).await;
    let spec = json!({ "completionMode": "Indexed", "completions": 2, "parallelism": 2 });
    for name in ["one", "two"] {
        let mut object = job(&group, &stage, &spec);
        object["metadata"]["name"] = json!(name);
        stage.create(object).await;
    }
    let alike = r#"several makers number their pods of role "main" alike (2 replicas)"#;
    statuses.until("it is said", |status| status.progressing().contains(alike)).await;
    record(
        "two Indexed Jobs (or StatefulSets) with the labels of one role",
        "does not work: pods of one number count as one replica, which `Progressing` reports. Give each its own role",
    );
}
