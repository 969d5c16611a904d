//! Rules on which pods may share a domain, kept up to date while pods are put onto nodes.

/// The rules of a packing; mostly none. Sorts, nodes and domains are positions.
#[derive(Clone, Debug, Default)]
pub struct Rules(Vec<Rule>);

/// A rule, with its counts in each domain.
#[derive(Clone, Debug)]
struct Rule {
    limit: Limit,
    /// The domain of each node; `None` if the rule ignores the node.
    domains: Vec<Option<usize>>,
    /// The number of nodes of each domain.
    nodes: Vec<u32>,
    /// Pods in each domain: `having` counts the pods with the rule, `about` the pods that it selects.
    having: Vec<u32>,
    about: Vec<u32>,
}

/// The content of a rule.
#[derive(Clone, Debug)]
pub struct Limit {
    /// Sorts with the rule.
    of: Vec<bool>,
    /// Sorts that the rule selects.
    about: Vec<bool>,
    /// `None` for anti-affinity.
    spread: Option<Spreading>,
    /// What the pods of a domain take together.
    taken: Option<Taken>,
    /// For a spread, the minimum that every domain must reach: no domain of a pod with the rule exceeds it by more than the
    /// skew.
    level: u32,
}

/// The devices that the nodes of a domain share.
#[derive(Clone, Debug, Default)]
pub struct Taken {
    /// By sort: the devices that a pod takes.
    pub by: Vec<u32>,
    /// By domain: the free devices.
    pub free: Vec<u32>,
}

/// The inputs of a spread.
#[derive(Clone, Debug, Default)]
pub struct Spreading {
    /// The number of existing pods in each domain.
    pub taken: Vec<u32>,
    /// The maximum excess over the domain with the fewest pods.
    pub skew: u32,
    /// Whether the minimum counts as 0.
    pub fewest_is_none: bool,
}

impl Limit {
    /// Returns the rule that sorts `of` are not in one domain with sorts `about`, nor with a second pod of their own if they
    /// are both.
    pub fn apart(of: Vec<bool>, about: Vec<bool>) -> Self {
        Self { of, about, spread: None, taken: None, level: 0 }
    }

    /// Returns the rule that a domain of a sort has at most `skew` more pods of the sorts `about` than the domain with the
    /// fewest.
    pub fn spread(sort: usize, about: Vec<bool>, spreading: Spreading) -> Self {
        let of = (0..about.len()).map(|at| at == sort).collect();
        Self { of, about, spread: Some(spreading), taken: None, level: 0 }
    }

    /// Returns the rule that the pods of a domain take no more than its free devices.
    pub fn taken(taken: Taken) -> Self {
        Self { of: Vec::new(), about: Vec::new(), spread: None, taken: Some(taken), level: 0 }
    }

    fn has(&self, sort: usize) -> bool {
        self.of.get(sort) == Some(&true)
    }

    fn is_about(&self, sort: usize) -> bool {
        self.about.get(sort) == Some(&true)
    }
}

impl Rules {
    /// Adds a rule, with the domain of each node.
    pub fn add(&mut self, limit: Limit, domains: Vec<Option<usize>>) {
        let of_nodes = domains.iter().flatten().max().map_or(0, |last| last + 1);
        let taken = limit.spread.as_ref().map(|spread| spread.taken.clone()).unwrap_or_default();
        let count = of_nodes.max(taken.len());
        let mut nodes = vec![0; count];
        for domain in domains.iter().flatten() {
            nodes.get_mut(*domain).into_iter().for_each(|nodes| *nodes += 1);
        }
        let mut about = taken;
        about.resize(count, 0);
        self.0.push(Rule { limit, domains, nodes, having: vec![0; count], about });
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns how many more pods of a sort may go to a node.
    pub fn room(&self, sort: usize, node: usize) -> u32 {
        self.0.iter().filter_map(|rule| rule.room(sort, *rule.domains.get(node)?.as_ref()?)).min().unwrap_or(u32::MAX)
    }

    /// Returns how many pods of a sort the domains of a node lack at least.
    pub fn lacks(&self, sort: usize, node: usize) -> u32 {
        let lacks = |rule: &Rule| {
            let about = rule.about.get(rule.domains.get(node).copied()??)?;
            Some(rule.limit.level.saturating_sub(*about)).filter(|_| rule.limit.is_about(sort))
        };
        self.0.iter().filter_map(lacks).max().unwrap_or_default()
    }

    /// Returns an upper bound of the pods of a sort on all nodes together; `each` holds how many each node takes.
    pub fn most(&self, sort: usize, each: &[u32]) -> u64 {
        self.0.iter().map(|rule| rule.most(sort, each)).min().unwrap_or(u64::MAX)
    }

    pub fn put(&mut self, sort: usize, node: usize, count: u32) {
        self.change(sort, node, |pods, each| *pods += count * each);
    }

    pub fn take_back(&mut self, sort: usize, node: usize, count: u32) {
        self.change(sort, node, |pods, each| *pods = pods.saturating_sub(count * each));
    }

    fn change(&mut self, sort: usize, node: usize, change: impl Fn(&mut u32, u32)) {
        for rule in &mut self.0 {
            let Some(domain) = rule.domains.get(node).copied().flatten() else { continue };
            if rule.limit.has(sort) {
                rule.having.get_mut(domain).into_iter().for_each(|pods| change(pods, 1));
            }
            if rule.limit.is_about(sort) {
                rule.about.get_mut(domain).into_iter().for_each(|pods| change(pods, 1));
            }
            let each = rule.limit.taken.as_ref().and_then(|taken| taken.by.get(sort)).copied().unwrap_or_default();
            rule.about.get_mut(domain).into_iter().for_each(|devices| change(devices, each));
        }
    }

    /// Reports whether every domain has reached its minimum.
    pub fn holds(&self) -> bool {
        self.0.iter().all(|rule| rule.about.iter().all(|about| *about >= rule.limit.level))
    }

    /// Reports whether two nodes are interchangeable.
    pub fn are_alike(&self, one: usize, other: usize) -> bool {
        self.0.iter().all(|rule| {
            let domain = |node: usize| rule.domains.get(node).copied().flatten();
            let free = |domain: usize| rule.limit.taken.as_ref().and_then(|taken| taken.free.get(domain));
            let seen = |domain: usize| {
                let is_alone = rule.nodes.get(domain) == Some(&1);
                is_alone.then(|| (rule.having.get(domain), rule.about.get(domain), free(domain)))
            };
            let (one, other) = (domain(one), domain(other));
            one == other || one.zip(other).is_some_and(|(one, other)| seen(one).is_some() && seen(one) == seen(other))
        })
    }

    /// Returns the combinations of minimum levels, in descending order. `pods` holds the number of pods of each sort.
    pub fn levels(&self, pods: &[u32]) -> Levels {
        let range = |rule: &Rule| {
            let Some(spread) = rule.limit.spread.as_ref().filter(|spread| !spread.fewest_is_none) else {
                return (0, 0);
            };
            let least = spread.taken.iter().min().copied().unwrap_or_default();
            let more = pods.iter().zip(&rule.limit.about).filter(|(_, is_about)| **is_about).map(|(pods, _)| *pods);
            let all = spread.taken.iter().copied().chain(more).map(u64::from).sum::<u64>();
            let most = all / u64::try_from(spread.taken.len()).unwrap_or(u64::MAX).max(1);
            (least, u32::try_from(most).unwrap_or(u32::MAX).max(least))
        };
        let ranges: Vec<_> = self.0.iter().map(range).collect();
        Levels { next: Some(ranges.iter().map(|(_, most)| *most).collect()), ranges }
    }

    /// Returns the same rules with these levels.
    pub fn at(&self, levels: &[u32]) -> Self {
        let mut rules = self.clone();
        rules.0.iter_mut().zip(levels).for_each(|(rule, level)| rule.limit.level = *level);
        rules
    }
}

impl Rule {
    fn room(&self, sort: usize, domain: usize) -> Option<u32> {
        let (having, about) = (*self.having.get(domain)?, *self.about.get(domain)?);
        let (has, is_about) = (self.limit.has(sort), self.limit.is_about(sort));
        if let Some(taken) = &self.limit.taken {
            let each = taken.by.get(sort).copied().unwrap_or_default();
            return taken.free.get(domain)?.saturating_sub(about).checked_div(each);
        }
        let Some(spread) = &self.limit.spread else {
            let is_taken = (has && about > 0) || (is_about && having > 0);
            return match (has, is_about) {
                (false, false) => None,
                _ if is_taken => Some(0),
                (true, true) => Some(1),
                _ => None,
            };
        };
        let most = self.limit.level.saturating_add(spread.skew);
        match (has, is_about) {
            (_, true) if has || having > 0 => Some(most.saturating_sub(about)),
            (true, false) if about > most => Some(0),
            _ => None,
        }
    }

    fn most(&self, sort: usize, each: &[u32]) -> u64 {
        let mut domains = vec![0_u64; self.nodes.len()];
        let mut elsewhere = 0;
        for (domain, count) in self.domains.iter().zip(each) {
            let sum = domain.and_then(|domain| domains.get_mut(domain)).unwrap_or(&mut elsewhere);
            *sum += u64::from(*count);
        }
        let room = |domain: usize| self.room(sort, domain).map_or(u64::MAX, u64::from);
        let inside: u64 = domains.iter().enumerate().map(|(domain, sum)| (*sum).min(room(domain))).sum();
        inside + elsewhere
    }
}

#[derive(Clone, Debug)]
pub struct Levels {
    ranges: Vec<(u32, u32)>,
    next: Option<Vec<u32>>,
}

impl Iterator for Levels {
    type Item = Vec<u32>;

    fn next(&mut self) -> Option<Vec<u32>> {
        let now = self.next.take()?;
        let mut next = now.clone();
        for (level, (least, most)) in next.iter_mut().zip(&self.ranges) {
            if *level > *least {
                *level -= 1;
                self.next = Some(next);
                break;
            }
            *level = *most;
        }
        Some(now)
    }
}
