//! Requests of one rolegate to the API server and what it makes of the answers, as `cluster::run` does.

use std::sync::Arc;
use std::time::Duration;

use rolegate::cluster::write::writer::{Released, Written, release_patch, released, status_patch, written};
use rolegate::plan::Ended;

use crate::broken::Broken;
use crate::invariants;
use crate::replica::{Answer, Fault, Replica, Request, key};
use crate::sabotage::Sabotage;
use crate::server::{Answered, Server, refusal};
use crate::spec::Stored;

impl Replica {
    /// The API server gets one of the requests; false when there is none.
    pub fn serve(&mut self, n: usize, fault: Fault, server: &mut Server) -> Result<bool, Broken> {
        if self.requests.is_empty() {
            return Ok(false);
        }
        let request = self.requests.remove(n % self.requests.len());
        if self.sabotage.is_some_and(|sabotage| sabotage.swallows(&request)) {
            return Ok(true);
        }
        // There is no pod of which it is said that there is none.
        let is_lie = fault == Fault::Refused(404) && matches!(request, Request::Release { .. });
        let fault = if is_lie { Fault::None } else { fault };
        let answer = match request {
            Request::Release { pod, labels } => {
                let mut patch = release_patch(&pod, &labels);
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
            Request::Ensure { owner, gang } => {
                let made = answered(fault, || Ok(Ok(server.ensure_pod_group(&owner, &gang.name))))?;
                Answer::Ensured(owner, gang, made)
            }
            Request::Reread => Answer::Reread(if fault == Fault::None { Ok(server.group.clone()) } else { Err(()) }),
            Request::Look(ended) => Answer::Looked(ended),
            Request::Verify => {
                let lies = self.sabotage == Some(Sabotage::DoesNotLook);
                let read = match fault {
                    _ if lies => Ok(None),
                    Fault::None => Ok(server.group.clone()),
                    _ => Err(()),
                };
                Answer::Verified { read, absent: server.group.is_none() }
            }
        };
        self.answers.push(answer);
        Ok(true)
    }

    /// One of the answers arrives; false when there is none.
    pub fn answer(&mut self, n: usize, now: Duration) -> bool {
        if self.answers.is_empty() {
            return false;
        }
        let ended = match self.answers.remove(n % self.answers.len()) {
            Answer::Released(object, answer) => {
                let answer = answer.map(|pod| (*pod).clone()).map_err(kube::Error::Api);
                let failed = match released(answer) {
                    Ok(Released::Done(pod)) => {
                        self.seen.written_pod(&pod);
                        self.index.pod_written(&pod);
                        false
                    }
                    Ok(Released::Gone) => false,
                    Err(_) => self.sabotage != Some(Sabotage::ForgetsFailures),
                };
                if failed {
                    self.refused.insert(object.uid.clone())
                } else {
                    self.refused.remove(&object.uid)
                };
                Ended::Tried { object, failed }
            }
            Answer::Written(answer) => {
                let answer = answer.map_err(kube::Error::Api);
                match written(answer.as_ref().map(|stored| Some(stored.read())).map_err(copy)) {
                    Ok(Written::Done(object)) => {
                        answer.iter().for_each(|stored| self.seen.read_group(stored));
                        object.into_iter().for_each(|object| self.index.apply_carrier(None, object));
                        Ended::Written { failed: false }
                    }
                    Ok(Written::Conflict) => {
                        self.requests.push(Request::Reread);
                        return true;
                    }
                    Ok(Written::Gone) => Ended::Written { failed: true },
                    Err(_) => Ended::Written { failed: self.sabotage != Some(Sabotage::ForgetsFailures) },
                }
            }
            Answer::Ensured(owner, gang, made) => {
                let failed = made.map_or(true, |made| !made && self.sabotage != Some(Sabotage::TakesOldPodGroups));
                let id = (owner.clone(), gang.name.clone());
                if failed {
                    self.without_pod_group.insert(id)
                } else {
                    self.without_pod_group.remove(&id)
                };
                Ended::PodGroupEnsured { owner, gang, failed }
            }
            Answer::Reread(read) => {
                self.take_read(read.as_ref().ok().and_then(Option::as_ref));
                Ended::Written { failed: read.is_err() }
            }
            Answer::Looked(ended) => ended,
            Answer::Verified { read, absent } => {
                self.take_read(read.as_ref().ok().and_then(Option::as_ref));
                let gone = read.is_ok() && self.index.group(&key()).is_none();
                // What was read and is gone all the same was deleted since, by the watch's own word.
                self.absence.verified = gone && (absent || matches!(read, Ok(Some(_))));
                Ended::Verified { gone }
            }
        };
        if let Ended::Written { failed } = &ended {
            self.write_failed = *failed;
        }
        self.reconciler.ended(key(), ended, self.clock(now));
        true
    }

    fn take_read(&mut self, stored: Option<&Arc<Stored>>) {
        if let Some(stored) = stored {
            self.seen.read_group(stored);
            self.index.apply_carrier(None, stored.read());
        }
    }
}

/// What a request comes to under a fault.
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

fn copy(error: &kube::Error) -> kube::Error {
    let kube::Error::Api(status) = error else { unreachable!("the API server answers with a Status") };
    kube::Error::Api(status.clone())
}
