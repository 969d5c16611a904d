//! Requests of a rolegate to the API server, and the handling of answers, as in `cluster::run`.

use rolegate::api::pod_group::KUBE_POD_GROUP;
use rolegate::api::rbg::ROLE_BASED_GROUP;
use rolegate::api::role_coordination::ROLE_COORDINATION;
use rolegate::cluster::write::writer::{ReleaseEdits, Written, release_patch, released, status_patch, written};
use rolegate::model::{ScaledWorkload, WorkloadKind};
use rolegate::mutate::rollout::partition_patch;
use rolegate::plan::{Answer as Found, Ended, Judged, Loss, Suspect, Target, Verdict};

use crate::elastic;
use crate::invariants;
use crate::lockstep;
use crate::prelude::*;
use crate::racks;
use crate::replica::{Answer, Fault, LiveRead, Request, key};

impl Replica {
    /// Serves one of the requests; returns false when there is none.
    pub fn serve(&mut self, n: usize, fault: Fault, server: &mut Server) -> Result<bool, Broken> {
        if self.requests.is_empty() {
            return Ok(false);
        }
        let request = self.requests.remove(n % self.requests.len());
        if self.sabotage.is_some_and(|sabotage| sabotage.swallows(&request)) {
            return Ok(true);
        }
        // The API server does not return 404 for an existing pod.
        let is_lie = fault == Fault::Refused(404) && matches!(request, Request::Release { .. });
        let fault = if is_lie { Fault::None } else { fault };
        let answer = match request {
            Request::Release { pod, labels, pod_groups, pin } => {
                let mut patch = release_patch(
                    &pod,
                    ReleaseEdits {
                        labels: &labels,
                        pod_groups: &pod_groups,
                        pin: Some(&pin),
                        ..ReleaseEdits::default()
                    },
                );
                self.sabotage.iter().for_each(|sabotage| sabotage.of_release(&mut patch));
                let done = answered(fault, || invariants::release(server, &pod, &patch))?;
                Answer::Released(pod, done)
            }
            Request::Write { group, status } => {
                let mut patch = status_patch(&group, &status);
                self.sabotage.iter().for_each(|sabotage| sabotage.of_status(&mut patch));
                let done = answered(fault, || invariants::write(server, &group, &patch))?;
                Answer::Written(done)
            }
            request @ (Request::Ensure { .. }
            | Request::FindOwned(_)
            | Request::Create(_)
            | Request::RelaxPodGroup(..)
            | Request::RemoveOwned(_)) => of_owned(request, fault, server)?,
            Request::SetPartition { workload, partition, ends, carrier } => {
                let version = json!({ "resourceVersion": workload.resource_version, "uid": &*workload.uid });
                let mut patch = partition_patch(WorkloadKind::StatefulSet, Some(partition), ends, version).unwrap();
                self.sabotage.iter().for_each(|sabotage| sabotage.of_partition(&mut patch));
                let by = (ends, carrier.as_deref());
                let done = answered(fault, || lockstep::set_partition(server, &workload, by, &patch))?;
                Answer::PartitionSet(PodRef { name: workload.key.name.into(), uid: workload.uid }, done.map(Box::new))
            }
            Request::Scale { group, role, workload, replicas } => {
                let read = self.read(fault, server);
                let looks = self.sabotage != Some(Sabotage::ScalesUnread);
                let versioned = self.sabotage != Some(Sabotage::IgnoresWorkloadVersion);
                let answer = match fault {
                    Fault::Refused(code) => Some(Err(refusal(code, ""))),
                    _ => elastic::scale(server, (&group, &workload, replicas), (looks, versioned))?,
                };
                let lost = |answer| if fault == Fault::AnswerLost { Err(refusal(504, "")) } else { answer };
                Answer::Scaled { role, workload, replicas, answer: answer.map(lost), read }
            }
            Request::Mark(mark) => {
                let pod = mark.pod.clone();
                let done = answered(fault, || {
                    let there = elastic::mark(server, &mark, self.sabotage != Some(Sabotage::MarksWithoutCost));
                    Ok(Ok(server.pods.get(&*pod.name).filter(|_| there).cloned()))
                })?;
                Answer::Marked(pod, done)
            }
            Request::Reread => Answer::Reread(self.read(fault, server)),
            Request::Confirm if self.sabotage == Some(Sabotage::ConfirmsUnread) => {
                Answer::Looked(Found::Group { failed: false })
            }
            Request::Confirm => Answer::Confirmed(self.read(fault, server)),
            Request::ConfirmPods => {
                let there = server.pods.values().filter(|pod| !pod.metadata.is_deleting());
                let uids = there.filter_map(|pod| pod.metadata.uid.clone()).collect();
                Answer::ConfirmedPods(if fault == Fault::None { Ok((uids, server.version)) } else { Err(()) })
            }
            Request::Look(found) => Answer::Looked(found),
            Request::Delete { pod, with_dependents } => {
                let done = done(fault, || server.delete_by_uid(&pod, with_dependents))?;
                Answer::Deleted(pod, done)
            }
            Request::Renew(pod) | Request::Undo(pod) | Request::Gather(pod) => {
                let done = done(fault, || server.delete_by_uid(&pod, false))?;
                Answer::Deleted(pod, done)
            }
            Request::Recreate(pod) => {
                let looks = self.sabotage != Some(Sabotage::RemakesBound);
                let done = answered(fault, || racks::make_again(server, &pod, looks))?;
                Answer::Recreated(pod, done)
            }
            Request::LookAtLosses(suspects) => {
                let judged = (fault == Fault::None).then(|| self.judge(&suspects, server));
                Answer::LossesSeen(self.read(fault, server), judged)
            }
            Request::Verify if self.sabotage == Some(Sabotage::DoesNotLook) => {
                Answer::Verified { read: LiveRead { known: None, found: Ok(None) }, absent: server.group.is_none() }
            }
            Request::Verify => Answer::Verified { read: self.read(fault, server), absent: server.group.is_none() },
        };
        self.answers.push(answer);
        Ok(true)
    }

    /// Delivers one of the answers; returns false when there is none.
    pub fn answer(&mut self, n: usize, now: Duration) -> bool {
        if self.answers.is_empty() {
            return false;
        }
        let ended = match self.answers.remove(n % self.answers.len()) {
            Answer::Released(object, answer) => self.released(object, answer, now),
            Answer::Written(answer) => {
                let answer = answer.map_err(kube::Error::Api);
                match written(answer.as_ref().map(|stored| Some(stored.read())).map_err(copy)) {
                    Ok(Written::Done(object)) => {
                        answer.iter().for_each(|stored| self.seen.read_group(stored));
                        object.into_iter().for_each(|object| self.index.apply_carrier(None, object));
                        status_written(false)
                    }
                    Ok(Written::Conflict) => {
                        self.requests.push(Request::Reread);
                        return true;
                    }
                    Ok(Written::Gone) => status_written(true),
                    Err(_) => status_written(self.sabotage != Some(Sabotage::ForgetsFailures)),
                }
            }
            Answer::PartitionSet(object, answer) => {
                let failed = answer.is_err();
                answer.into_iter().for_each(|seen| self.index.apply_workload(None, *seen));
                written_to(object.uid, failed, &mut self.frozen)
            }
            Answer::Scaled { role, workload, replicas, answer, read } => {
                self.take_read(&read);
                self.scaled(role, &workload, replicas, answer)
            }
            Answer::Marked(object, answer) => self.marked(object, answer),
            Answer::Ensured(id, gang, made) => {
                let failed = made.map_or(true, |made| !made && self.sabotage != Some(Sabotage::TakesOldPodGroups));
                let named = (id.owner.clone(), id.name.clone());
                note(&mut self.without_pod_group, named, failed);
                let target = Target::Owned { id, members: Some(gang.min_member) };
                Ended::Written { target, failure: failed.then(|| "refused".to_owned()) }
            }
            Answer::FoundOwned(owner, found) => Ended::Read(Found::Owned { owner, found: found.ok() }),
            Answer::PodGroupRelaxed(id, members, done) => {
                ended(Target::Owned { id, members: Some(members) }, done.is_err())
            }
            Answer::Created(id, made) => {
                let failed = made.map_or(true, |made| !made);
                let target = Target::Owned { id, members: Some(1) };
                Ended::Written { target, failure: failed.then(|| "refused".to_owned()) }
            }
            Answer::OwnedRemoved(id, done) => ended(Target::Owned { id, members: None }, done.is_err()),
            Answer::Reread(read) => status_written(!self.take_read(&read)),
            Answer::Confirmed(read) => {
                let failed = !self.take_read(&read);
                self.confirm_failed = failed;
                Ended::Read(Found::Group { failed })
            }
            Answer::ConfirmedPods(read) => {
                self.confirm_pods_failed = read.is_err();
                if let Ok((uids, at)) = &read {
                    self.seen.running_pods(uids, *at);
                    self.index.running_pods_read(&key(), uids, Some(*at));
                }
                Ended::Read(Found::Pods { failed: read.is_err() })
            }
            Answer::Looked(found) => Ended::Read(found),
            Answer::Deleted(object, done) => self.deleted(object, done.is_err()),
            Answer::Recreated(object, done) => self.deleted(object, done.is_err()),
            Answer::LossesSeen(read, judged) => {
                let judged = judged.filter(|_| self.take_read(&read));
                self.look_failed = judged.is_none();
                Ended::Read(Found::Losses(judged))
            }
            Answer::Verified { read, absent } => {
                let gone = self.take_read(&read) && self.index.group(&key()).is_none();
                // A group that was read but is gone was deleted since, according to the watch.
                self.absence.verified = gone && (absent || matches!(read.found, Ok(Some(_))));
                Ended::Read(Found::Gone(gone))
            }
        };
        if let Ended::Written { target: Target::Status, failure } = &ended {
            self.write_failed = failure.is_some();
        }
        self.reconciler.ended(key(), ended, self.clock(now));
        true
    }

    fn released(&mut self, object: PodRef, answer: Answered<Arc<Pod>>, now: Duration) -> Ended {
        let answer = answer.map(|pod| (*pod).clone()).map_err(kube::Error::Api);
        let failed = match released(answer) {
            Ok(Some(pod)) => {
                self.seen.written_pod(&pod);
                self.index.pod_written(&pod);
                false
            }
            Ok(None) => false,
            Err(_) => {
                self.failed.insert(object.uid.clone(), now);
                self.sabotage != Some(Sabotage::ForgetsFailures)
            }
        };
        written_to(object.uid, failed, &mut self.refused)
    }

    fn deleted(&mut self, object: PodRef, failed: bool) -> Ended {
        if !failed {
            self.deleted.insert(object.uid.clone());
        }
        written_to(object.uid, failed, &mut self.undeleted)
    }

    fn scaled(
        &mut self,
        role: String,
        workload: &ScaledWorkload,
        replicas: u32,
        answer: Option<Answered<String>>,
    ) -> Ended {
        let failure = match answer {
            None => Some(String::new()),
            Some(Ok(version)) => {
                self.index.workload_scaled(workload, replicas, &version);
                None
            }
            Some(Err(status)) if [404, 409].contains(&status.code) => Some(String::new()),
            Some(Err(status)) => Some(status.code.to_string()),
        };
        note(&mut self.unscaled, workload.uid.clone(), failure.is_some());
        Ended::Written { target: Target::Replicas { role, uid: workload.uid.clone(), replicas }, failure }
    }

    fn marked(&mut self, object: PodRef, answer: Answered<Option<Arc<Pod>>>) -> Ended {
        let failed = answer.is_err();
        if let Ok(Some(pod)) = answer {
            self.seen.written_pod(&pod);
            self.index.pod_written(&pod);
        }
        written_to(object.uid, failed, &mut self.unscaled)
    }

    /// Judges which replicas are lost, from the workloads.
    fn judge(&self, suspects: &[Suspect], server: &Server) -> Vec<Judged> {
        let judge = |suspect: &Suspect| {
            let Loss { role, ordinal, unready } = &suspect.loss;
            let number = |role: &str| ROLES.iter().position(|known| *known == role).unwrap();
            let rolls = suspect
                .roles
                .iter()
                .filter_map(|role| server.sets.get(number(role)))
                .any(|set| !set.is_observed() || set.current_revision() != set.update_revision());
            let words = self.index.last_words(&key(), role, *ordinal).unwrap_or_default();
            let is_ready = |pod: &PodRef| {
                let found =
                    server.pods.get(&*pod.name).filter(|found| found.metadata.uid.as_deref() == Some(&*pod.uid));
                found.is_some_and(|found| found.condition_is_true("Ready") && !found.is_gone())
            };
            let is_back = !unready.is_empty() && unready.iter().all(is_ready);
            let is_replaced = words.is_replaced_in(&self.index.snapshot(&key()).pods, role);
            let wanted = *ordinal < server.workloads[number(role)];
            let lost = wanted && !rolls && !is_back && !is_replaced;
            let verdict = if lost { Verdict::Lost(words) } else { Verdict::NotLost };
            Judged { id: suspect.id, loss: suspect.loss.clone(), verdict }
        };
        suspects.iter().map(judge).collect()
    }

    fn read(&self, fault: Fault, server: &Server) -> LiveRead {
        let kind = if server.setup.refers { ROLE_COORDINATION } else { ROLE_BASED_GROUP };
        let known = self.index.carrier(kind, NAMESPACE, GROUP);
        LiveRead { known, found: if fault == Fault::None { Ok(server.group.clone()) } else { Err(()) } }
    }

    /// Applies a live read; returns false when it failed.
    fn take_read(&mut self, read: &LiveRead) -> bool {
        match (&read.found, &read.known) {
            (Ok(Some(stored)), _) => {
                self.seen.read_group(stored);
                self.index.apply_carrier(None, stored.read());
            }
            (Ok(None), Some(known)) => {
                self.seen.read_no_group(known);
                self.index.carrier_gone(known);
            }
            _ => {}
        }
        read.found.is_ok()
    }
}

fn ended(target: Target, failed: bool) -> Ended {
    Ended::Written { target, failure: failed.then(String::new) }
}

fn status_written(failed: bool) -> Ended {
    ended(Target::Status, failed)
}

/// Notes of an object whether its last write failed.
fn note<T: Ord>(failures: &mut BTreeSet<T>, object: T, failed: bool) {
    if failed {
        failures.insert(object)
    } else {
        failures.remove(&object)
    };
}

fn written_to(uid: Arc<str>, failed: bool, failures: &mut BTreeSet<Arc<str>>) -> Ended {
    note(failures, uid.clone(), failed);
    ended(Target::Object(uid), failed)
}

/// Returns the answer to a request under a fault.
fn answered<T>(fault: Fault, act: impl FnOnce() -> Result<Answered<T>, Broken>) -> Result<Answered<T>, Broken> {
    Ok(match fault {
        Fault::None => act()?,
        Fault::Refused(code) => Err(refusal(code, "")),
        Fault::AnswerLost => {
            _ = act()?;
            Err(refusal(504, ""))
        }
    })
}

/// The same, of what cannot fail but by the fault.
fn done(fault: Fault, act: impl FnOnce()) -> Result<Answered<()>, Broken> {
    answered(fault, || {
        act();
        Ok(Ok(()))
    })
}

fn copy(error: &kube::Error) -> kube::Error {
    let kube::Error::Api(status) = error else { unreachable!("the API server answers with a Status") };
    kube::Error::Api(status.clone())
}

/// Serves a request for objects that the carrier owns.
fn of_owned(request: Request, fault: Fault, server: &mut Server) -> Result<Answer, Broken> {
    Ok(match request {
        Request::Ensure { id, gang } => {
            let made = answered(fault, || {
                Ok(Ok(server.ensure_pod_group(&id.owner, &id.name, gang.min_member, gang.renewed)))
            })?;
            Answer::Ensured(id, gang, made)
        }
        Request::FindOwned(owner) => {
            let found = answered(fault, || Ok(Ok(server.owned_by(&owner))))?;
            Answer::FoundOwned(owner, found)
        }
        Request::RelaxPodGroup(id, members) => {
            let done = done(fault, || server.relax_pod_group(&id.owner, &id.name, members))?;
            Answer::PodGroupRelaxed(id, members, done)
        }
        Request::Create(id) => {
            let made = answered(fault, || Ok(Ok(server.create_request(&id.owner, (id.kind, id.name.clone())))))?;
            Answer::Created(id, made)
        }
        Request::RemoveOwned(id) => {
            let done = done(fault, || {
                if id.kind == KUBE_POD_GROUP {
                    return server.remove_pod_group(&id.owner, &id.name);
                }
                server.remove_request(&id.owner, &(id.kind, id.name.clone()));
            })?;
            Answer::OwnedRemoved(id, done)
        }
        other => panic!("{other:?} is for no owned object"),
    })
}
