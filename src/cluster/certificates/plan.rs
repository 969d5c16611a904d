//! Decides on changes of the stored certificates. Pure: the time is an argument.
//!
//! One rule underlies all steps: a leaf is served only when its CA is in every caller's bundle. So a new CA is first stored
//! and published next to the old one, while the old leaf is served. The leaf of the new CA follows when the publication is
//! confirmed. The old CA leaves the bundle when no replica can serve the old leaf any more.

use jiff::{SignedDuration, Timestamp};

use crate::cluster::certificates::bundle::CaBundle;
use crate::tls::acceptor::check_pair;
use crate::tls::authority::{
    AuthorityError, BACKDATE, Issued, LeafSpec, covers, issued_by, new_ca, new_leaf, renewal_time,
};
use crate::tls::cert_info::CertInfo;

/// Content of the Secret. A missing part is an empty text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The issuing CA.
    pub ca: Issued,
    /// The served certificate.
    pub leaf: Issued,
    /// The CAs for callers: the issuing one, and during a rotation former ones.
    pub bundle: CaBundle,
}

/// The state of the Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretState {
    Present(Stored),
    /// It does not exist; this process may remember its content.
    Absent(Option<Stored>),
}

/// A bundle that every webhook configuration is known to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    pub bundle: CaBundle,
    /// When it was first seen everywhere.
    pub since: Timestamp,
}

/// The wanted properties of certificates.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Names and lifetime of the leaf.
    pub leaf: LeafSpec,
    /// The part of its life (0 to 1) after which a certificate is replaced.
    pub renew_at: f64,
    /// Time after its publication in which a CA reaches every API server.
    pub settle: SignedDuration,
    /// Time for which a former CA stays in the bundle after the first leaf of its successor.
    pub overlap: SignedDuration,
}

impl Policy {
    /// Returns a policy that renews leaves at 2/3 of their life, with a minute to settle and a day of overlap.
    pub fn for_leaf(leaf: LeafSpec) -> Self {
        Self {
            leaf,
            renew_at: 2.0 / 3.0,
            settle: SignedDuration::from_mins(1),
            overlap: SignedDuration::from_hours(24),
        }
    }
}

/// The next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificateAction {
    /// Make a CA and a leaf: nothing stored can be trusted.
    CreateAll(&'static str),
    /// Make a CA, add it to the bundle, and keep serving the present leaf.
    RotateCa(&'static str),
    /// Put the issuing CA back into the bundle.
    AddToBundle,
    /// Make a leaf.
    IssueLeaf(&'static str),
    /// Remove former CAs from the bundle.
    PruneBundle,
    /// A leaf is due, but its CA is not known to have reached every caller. Check again at this time, or on its publication.
    WaitForBundle(Option<Timestamp>),
    /// Nothing to do before this time.
    Nothing(Timestamp),
}

pub fn plan_certificates(
    observed: &SecretState,
    published: Option<&Published>,
    policy: &Policy,
    now: Timestamp,
) -> CertificateAction {
    let stored = match observed {
        SecretState::Present(stored) => stored,
        SecretState::Absent(None) => return CertificateAction::CreateAll("there is no Secret"),
        // Deleting the Secret is how a person asks for new keys. Callers must not notice.
        SecretState::Absent(Some(remembered)) if serviceable(remembered, now).is_some() => {
            return CertificateAction::RotateCa("the Secret was deleted");
        }
        SecretState::Absent(Some(_)) => return CertificateAction::CreateAll("the Secret was deleted"),
    };
    let leaf = serviceable(stored, now);
    let replace_ca =
        |why| if leaf.is_some() { CertificateAction::RotateCa(why) } else { CertificateAction::CreateAll(why) };
    let Some(ca) = valid(&stored.ca, now) else { return replace_ca("the CA is broken or has expired") };
    let ca_due = renewal_time(&ca, policy.renew_at);
    if now >= ca_due {
        return replace_ca(CA_DUE);
    }
    if !stored.bundle.contains(&stored.ca.cert_pem) {
        return CertificateAction::AddToBundle;
    }
    let Some(leaf) = leaf else {
        return CertificateAction::IssueLeaf("the leaf is broken, has expired or has no CA in the bundle");
    };
    if !issued_by(&stored.leaf.cert_pem, &stored.ca.cert_pem) {
        return match published.filter(|published| published.bundle.contains(&stored.ca.cert_pem)) {
            None => CertificateAction::WaitForBundle(Some(leaf.not_after)),
            Some(published) => match published.since.saturating_add(policy.settle) {
                Ok(settled) if now < settled => CertificateAction::WaitForBundle(Some(settled.min(leaf.not_after))),
                _ => CertificateAction::IssueLeaf(CA_IS_NEW),
            },
        };
    }
    if !covers(&stored.leaf.cert_pem, &policy.leaf).unwrap_or(false) {
        return CertificateAction::IssueLeaf("the names have changed");
    }
    let leaf_due = renewal_time(&leaf, policy.renew_at);
    if now >= leaf_due {
        return CertificateAction::IssueLeaf(LEAF_DUE);
    }
    if stored.bundle.certificates().len() > 1 {
        let issued = leaf.not_before.saturating_add(BACKDATE).unwrap_or(leaf.not_before);
        return match issued.saturating_add(policy.overlap) {
            Ok(over) if now < over => CertificateAction::Nothing(over.min(leaf_due)),
            _ => CertificateAction::PruneBundle,
        };
    }
    CertificateAction::Nothing(leaf_due.min(ca_due))
}

/// Makes the certificates of a step; `None` for a step without any.
///
/// # Errors
/// [`AuthorityError`] if a certificate can't be issued.
pub fn carry_out(
    action: CertificateAction,
    base: Option<&Stored>,
    policy: &Policy,
    now: Timestamp,
) -> Result<Option<Stored>, AuthorityError> {
    let known = base.map(|stored| &stored.bundle);
    let next = match (action, base) {
        (CertificateAction::CreateAll(_), _) | (_, None) => {
            let ca = new_ca(now)?;
            let leaf = new_leaf(&ca, &policy.leaf, now)?;
            // Callers with an older CA cost nothing, and another replica may serve its leaf for a moment.
            Stored { bundle: CaBundle::of(&ca, known, now), leaf, ca }
        }
        (CertificateAction::RotateCa(_), Some(stored)) => {
            let ca = new_ca(now)?;
            Stored { bundle: CaBundle::of(&ca, known, now), leaf: stored.leaf.clone(), ca }
        }
        (CertificateAction::AddToBundle, Some(stored)) => {
            Stored { bundle: CaBundle::of(&stored.ca, known, now), ..stored.clone() }
        }
        (CertificateAction::IssueLeaf(_), Some(stored)) => {
            Stored { leaf: new_leaf(&stored.ca, &policy.leaf, now)?, ..stored.clone() }
        }
        (CertificateAction::PruneBundle, Some(stored)) => {
            Stored { bundle: CaBundle::of(&stored.ca, None, now), ..stored.clone() }
        }
        (CertificateAction::WaitForBundle(_) | CertificateAction::Nothing(_), Some(_)) => return Ok(None),
    };
    Ok(Some(next))
}

/// Returns when the stored leaf may be served in place of the served one; `None` for now. Until then callers are not known to
/// trust it.
pub(super) fn exchanged_at(
    served: Option<&Stored>,
    stored: &Stored,
    published: Option<&Published>,
    policy: &Policy,
    now: Timestamp,
) -> Option<Timestamp> {
    let served = served.filter(|served| served.leaf != stored.leaf)?;
    let end = serviceable(served, now)?.not_after;
    let leaf = &stored.leaf.cert_pem;
    let is_of_both = |pem: &String| issued_by(&served.leaf.cert_pem, pem) && issued_by(leaf, pem);
    if served.bundle.certificates().iter().any(is_of_both) {
        return None;
    }
    let Some(published) = published.filter(|published| issued_by(leaf, &published.bundle.0)) else { return Some(end) };
    let settled = published.since.saturating_add(policy.settle).unwrap_or(end);
    (now < settled).then_some(settled.min(end))
}

/// Bounds renewals that no date asks for: somebody else writes the Secret. The first happens at once.
#[derive(Debug, Default)]
pub(super) struct Pace {
    last: Option<Timestamp>,
    pause: SignedDuration,
}

impl Pace {
    /// Returns the time before which no other one may happen.
    pub(super) fn due(&self) -> Option<Timestamp> {
        self.last.map(|last| last.saturating_add(self.pause).unwrap_or(last))
    }

    /// Counts a renewal. The shortest pause after it is the time in which a CA settles, the longest thirty times that: from a minute
    /// to half an hour.
    pub(super) fn count(&mut self, policy: &Policy, now: Timestamp) {
        let (shortest, longest) = (policy.settle, policy.settle.saturating_mul(30));
        // After a time of rest it begins anew.
        let goes_on = self.last.is_some_and(|last| now.duration_since(last) < longest.saturating_mul(2));
        self.pause = if goes_on { self.pause.saturating_mul(2).clamp(shortest, longest) } else { shortest };
        self.last = Some(now);
    }
}

impl CertificateAction {
    /// Reports whether a date, or the step before it, asks for the step. Others are due when somebody else wrote the Secret.
    pub(super) fn is_dated(self) -> bool {
        match self {
            Self::RotateCa(why) | Self::IssueLeaf(why) => [CA_DUE, LEAF_DUE, CA_IS_NEW].contains(&why),
            Self::CreateAll(_) | Self::AddToBundle => false,
            Self::PruneBundle | Self::WaitForBundle(_) | Self::Nothing(_) => true,
        }
    }
}

/// Reasons of steps that a date asks for.
const CA_DUE: &str = "the CA is due for renewal";
const LEAF_DUE: &str = "the leaf is due for renewal";
const CA_IS_NEW: &str = "the CA is new";

/// Returns the leaf, if a caller with the stored bundle would accept it.
pub(super) fn serviceable(stored: &Stored, now: Timestamp) -> Option<CertInfo> {
    valid(&stored.leaf, now).filter(|_| issued_by(&stored.leaf.cert_pem, &stored.bundle.0))
}

/// Returns the facts of the certificate, if it has its key and has not expired.
fn valid(issued: &Issued, now: Timestamp) -> Option<CertInfo> {
    let info = check_pair(issued.cert_pem.as_bytes(), issued.key_pem.as_bytes()).ok()?;
    (now < info.not_after).then_some(info)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::certificates::plan::CertificateAction as Action;

    fn start() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    fn days(count: i64) -> SignedDuration {
        SignedDuration::from_hours(24 * count)
    }

    fn policy() -> Policy {
        Policy::for_leaf(LeafSpec::for_service("rolegate", "system"))
    }

    fn fresh(now: Timestamp) -> Stored {
        carry_out(Action::CreateAll(""), None, &policy(), now).unwrap().unwrap()
    }

    fn done(action: Action, from: &Stored, now: Timestamp) -> Stored {
        carry_out(action, Some(from), &policy(), now).unwrap().unwrap()
    }

    fn plan(stored: &Stored, now: Timestamp) -> Action {
        plan_certificates(&SecretState::Present(stored.clone()), None, &policy(), now)
    }

    fn plan_published(stored: &Stored, since: Timestamp, now: Timestamp) -> Action {
        let published = Published { bundle: stored.bundle.clone(), since };
        plan_certificates(&SecretState::Present(stored.clone()), Some(&published), &policy(), now)
    }

    #[test]
    fn nothing_stored() {
        let plan = |remembered, now| plan_certificates(&SecretState::Absent(remembered), None, &policy(), now);
        assert!(matches!(plan(None, start()), Action::CreateAll(_)));
        // Deleted: callers still trust the CA that this process remembers.
        assert!(matches!(plan(Some(fresh(start())), start()), Action::RotateCa(_)));
        assert!(matches!(plan(Some(fresh(start())), start() + days(31)), Action::CreateAll(_)));
    }

    #[test]
    fn all_well_until_two_thirds_of_the_leaf() {
        let stored = fresh(start());
        let Action::Nothing(then) = plan(&stored, start()) else { panic!() };
        assert!((then.duration_since(start() + days(20))).abs() < SignedDuration::from_mins(10));
        assert!(matches!(plan(&stored, then - SignedDuration::from_secs(1)), Action::Nothing(_)));
        assert!(matches!(plan(&stored, then), Action::IssueLeaf(_)));
        let renewed = done(Action::IssueLeaf(""), &stored, then);
        assert_eq!((&renewed.ca, &renewed.bundle), (&stored.ca, &stored.bundle));
        assert_ne!(renewed.leaf.key_pem, stored.leaf.key_pem);
        assert!(matches!(plan(&renewed, then), Action::Nothing(_)));
    }

    #[test]
    fn changed_names_need_a_leaf() {
        let mut policy = policy();
        policy.leaf = LeafSpec::for_service("other", "system");
        let action = plan_certificates(&SecretState::Present(fresh(start())), None, &policy, start());
        assert_eq!(action, Action::IssueLeaf("the names have changed"));
    }

    #[test]
    fn broken_parts_are_replaced_and_the_rest_is_kept() {
        let (good, other) = (fresh(start()), fresh(start()));
        let empty = || Issued { cert_pem: String::new(), key_pem: String::new() };
        let with = |change: &dyn Fn(&mut Stored)| {
            let mut stored = good.clone();
            change(&mut stored);
            plan(&stored, start())
        };
        assert!(matches!(with(&|stored| stored.leaf = empty()), Action::IssueLeaf(_)));
        assert!(matches!(with(&|stored| stored.leaf.key_pem = other.leaf.key_pem.clone()), Action::IssueLeaf(_)));
        assert!(matches!(with(&|stored| stored.leaf = other.leaf.clone()), Action::IssueLeaf(_)));
        assert!(matches!(with(&|stored| stored.ca.key_pem = other.ca.key_pem.clone()), Action::RotateCa(_)));
        assert!(matches!(with(&|stored| stored.ca = empty()), Action::RotateCa(_)));
        assert_eq!(with(&|stored| stored.bundle.0.clear()), Action::AddToBundle);
        assert!(matches!(
            with(&|stored| {
                stored.ca = empty();
                stored.leaf = empty();
            }),
            Action::CreateAll(_)
        ));
    }

    #[test]
    fn a_leaf_of_another_ca_is_served_once_callers_have_its_ca_unless_the_old_one_is_of_no_use() {
        let (served, other) = (fresh(start()), fresh(start()));
        let at = |stored: &Stored, published: Option<&Published>, now| {
            exchanged_at(Some(&served), stored, published, &policy(), now)
        };
        let end = valid(&served.leaf, start()).unwrap().not_after;
        let again = done(Action::IssueLeaf(""), &served, start());
        assert_eq!((at(&served, None, start()), at(&again, None, start())), (None, None));
        assert_eq!(exchanged_at(None, &other, None, &policy(), start()), None);
        assert_eq!(at(&other, None, start()), Some(end));
        let old = Published { bundle: served.bundle.clone(), since: start() };
        assert_eq!(at(&other, Some(&old), start() + days(1)), Some(end));
        let both = Published { bundle: other.bundle.and(&served.bundle, start()), since: start() };
        assert_eq!(at(&other, Some(&both), start()), Some(start() + policy().settle));
        assert_eq!(at(&other, Some(&both), start() + policy().settle), None);
        assert_eq!(at(&other, None, end), None);
    }

    #[test]
    fn renewals_that_no_date_asks_for_are_bounded() {
        let mut pace = Pace::default();
        let mut done = |from: i64, to: i64| {
            let mut done = Vec::new();
            for second in from..to {
                let now = start() + SignedDuration::from_secs(second);
                if pace.due().is_none_or(|due| now >= due) {
                    pace.count(&policy(), now);
                    done.push(second);
                }
            }
            done
        };
        // Somebody writes it anew each second, for two hours.
        assert_eq!(done(0, 7200), [0, 60, 180, 420, 900, 1860, 3660, 5460]);
        assert_eq!(done(12_000, 12_100), [12_000, 12_060], "after a time of rest");
    }

    #[test]
    fn a_new_ca_is_published_before_its_leaf_is_served() {
        let old = fresh(start());
        let due = start() + days(3650 * 2 / 3 + 1);
        // The leaf is fresh while its CA is due.
        let old = done(Action::IssueLeaf(""), &old, due);
        assert!(matches!(plan(&old, due), Action::RotateCa(_)));
        let new = done(Action::RotateCa(""), &old, due);
        assert_eq!(new.leaf, old.leaf);
        assert!(new.bundle.contains(&old.ca.cert_pem) && new.bundle.contains(&new.ca.cert_pem));
        // Unknown to callers, then known to some, then settled.
        assert!(matches!(plan(&new, due + days(9)), Action::WaitForBundle(Some(_))));
        let stale = Published { bundle: old.bundle.clone(), since: start() };
        let action = plan_certificates(&SecretState::Present(new.clone()), Some(&stale), &policy(), due);
        assert!(matches!(action, Action::WaitForBundle(Some(_))));
        let settled = due + policy().settle;
        assert_eq!(plan_published(&new, due, due), Action::WaitForBundle(Some(settled)));
        assert!(matches!(plan_published(&new, due, settled), Action::IssueLeaf(_)));
        // No caller accepts an expired leaf: waiting would not help.
        assert!(matches!(plan(&new, due + days(30)), Action::IssueLeaf(_)));

        let served = done(Action::IssueLeaf(""), &new, settled);
        assert!(issued_by(&served.leaf.cert_pem, &new.ca.cert_pem));
        assert_eq!(served.bundle, new.bundle);
        let over = settled + policy().overlap;
        assert_eq!(plan_published(&served, due, settled), Action::Nothing(over));
        assert_eq!(plan_published(&served, due, over), Action::PruneBundle);
        let pruned = done(Action::PruneBundle, &served, over);
        assert_eq!(pruned.bundle.0, new.ca.cert_pem);
        assert!(matches!(plan_published(&pruned, due, over), Action::Nothing(_)));
    }

    #[test]
    fn whatever_the_state_each_step_leads_to_rest_and_the_leaf_is_always_trusted() {
        let mut stored = fresh(start());
        let mut now = start();
        let mut trusted = stored.bundle.clone();
        let mut rotations = 0;
        // Twenty years, publishing each bundle one check after it appears.
        while now < start() + days(7300) {
            let published = Published { bundle: trusted.clone(), since: now };
            let action = plan_certificates(&SecretState::Present(stored.clone()), Some(&published), &policy(), now);
            rotations += usize::from(matches!(action, Action::RotateCa(_)));
            assert!(!matches!(action, Action::CreateAll(_) | Action::AddToBundle), "{action:?} at {now}");
            match carry_out(action, Some(&stored), &policy(), now).unwrap() {
                Some(next) => {
                    assert!(issued_by(&next.leaf.cert_pem, &trusted.0), "{action:?} at {now}");
                    stored = next;
                }
                None => now += if matches!(action, Action::Nothing(_)) { days(10) } else { policy().settle },
            }
            if matches!(action, Action::WaitForBundle(_) | Action::Nothing(_)) {
                trusted = stored.bundle.clone();
            }
            // A published bundle that has not settled in this loop would wait for ever: let it settle.
            if let Action::WaitForBundle(_) = action {
                let published = Published { bundle: trusted.clone(), since: now - policy().settle };
                let action = plan_certificates(&SecretState::Present(stored.clone()), Some(&published), &policy(), now);
                stored = done(action, &stored, now);
            }
        }
        assert!((2..=3).contains(&rotations), "{rotations}");
    }
}
