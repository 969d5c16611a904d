//! Random clusters with devices, and the pods that want some: the same ones each time.

/// Splitmix64.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % u64::try_from(limit.max(1)).unwrap()).unwrap()
    }

    pub fn within(&mut self, from: usize, to: usize) -> usize {
        from + self.below(to + 1 - from)
    }

    /// With so many chances in a hundred.
    pub fn hits(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

pub const GPU: &str = "gpu.example.com";
pub const NIC: &str = "nic.example.com";
const MODELS: [&str; 2] = ["a100", "h100"];
const ROOTS: [&str; 2] = ["east", "west"];
const VERSIONS: [&str; 3] = ["1.9.0", "1.10.2", "2.0.0"];

#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    pub name: String,
    pub model: &'static str,
    /// `example.com/root`, of which devices of both drivers have one.
    pub root: Option<&'static str>,
    pub version: &'static str,
    pub healthy: Option<bool>,
    /// GiB.
    pub memory: u32,
    /// The effect of a taint of the slice.
    pub taint: Option<&'static str>,
    /// The effect of a DeviceTaintRule.
    pub rule: Option<&'static str>,
    /// Whether a claim of another pod has it.
    pub taken: bool,
    /// The node, in a slice in which each device has one.
    pub node: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    Node(usize),
    /// A selector that selects this node alone.
    Selected(usize),
    EachDevice,
}

#[derive(Clone, Debug)]
pub struct Slice {
    pub name: String,
    pub driver: &'static str,
    pub pool: String,
    pub generation: u32,
    /// Number of slices of the pool.
    pub of: usize,
    pub reach: Reach,
    pub devices: Vec<Device>,
}

#[derive(Clone, Debug)]
pub struct Node {
    pub rack: usize,
    pub cpu: usize,
    /// The amount of the extended resource by a device plugin.
    pub plugin: Option<usize>,
}

/// A condition on a device, in CEL and in Rust.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Condition {
    Driver(&'static str),
    Model(&'static str),
    /// At least so many GiB.
    Memory(u32),
    Root(&'static str),
    /// Before this version.
    Before(&'static str),
    Healthy,
    /// It fails on devices without the attribute.
    Unguarded(&'static str),
}

#[derive(Clone, Debug)]
pub struct Class {
    pub name: String,
    pub conditions: Vec<Condition>,
    pub resource: bool,
}

#[derive(Clone, Debug)]
pub struct Alternative {
    pub class: usize,
    pub conditions: Vec<Condition>,
    /// `None` for all.
    pub count: Option<usize>,
    pub tolerates: bool,
}

#[derive(Clone, Debug)]
pub struct Request {
    pub alternatives: Vec<Alternative>,
}

#[derive(Clone, Debug)]
pub struct Constraint {
    pub attribute: &'static str,
    /// By request; and of one with alternatives, perhaps one of them. Empty is all.
    pub requests: Vec<(usize, Option<usize>)>,
}

#[derive(Clone, Debug, Default)]
pub struct Claim {
    pub requests: Vec<Request>,
    pub constraints: Vec<Constraint>,
}

/// Pods of one sort.
#[derive(Clone, Debug, Default)]
pub struct Sort {
    pub cpu: usize,
    pub claims: Vec<Claim>,
    /// Devices by the extended resource.
    pub extended: usize,
    /// The resource by the name of its class.
    pub by_class: bool,
    /// All pods of the sort share its claims.
    pub shares: bool,
}

/// A pod that is bound already.
#[derive(Clone, Debug)]
pub struct Other {
    pub node: usize,
    pub cpu: usize,
    pub extended: usize,
    /// Positions of the slices and devices that its claim has.
    pub devices: Vec<(usize, usize)>,
}

#[derive(Clone, Debug)]
pub struct Case {
    pub number: usize,
    pub racks: usize,
    pub nodes: Vec<Node>,
    pub slices: Vec<Slice>,
    pub classes: Vec<Class>,
    pub others: Vec<Other>,
    /// The sorts of the batch, and that of a pod that was released before.
    pub sorts: Vec<Sort>,
    /// The sort of each pod of the batch.
    pub batch: Vec<usize>,
    /// The sorts of pods that were released before it, and are not bound yet.
    pub released: Vec<usize>,
    /// Whether selectors of one node tell where devices are.
    selected: bool,
}

impl Condition {
    pub fn holds(self, driver: &str, device: &Device) -> bool {
        let order = |version: &str| VERSIONS.iter().position(|known| *known == version);
        match self {
            Self::Driver(wanted) => driver == wanted,
            Self::Model(model) | Self::Unguarded(model) => driver == GPU && device.model == model,
            Self::Memory(least) => driver == GPU && device.memory >= least,
            Self::Root(root) => device.root == Some(root),
            Self::Before(version) => driver == GPU && order(device.version) < order(version),
            Self::Healthy => device.healthy == Some(true),
        }
    }

    pub fn cel(self) -> String {
        let gpu = format!(r#"device.driver == "{GPU}""#);
        match self {
            Self::Driver(driver) => format!(r#"device.driver == "{driver}""#),
            Self::Model(model) => format!(r#"{gpu} && device.attributes["{GPU}"].model == "{model}""#),
            Self::Memory(least) => {
                format!(r#"{gpu} && device.capacity["{GPU}"].memory.compareTo(quantity("{least}Gi")) >= 0"#)
            }
            Self::Root(root) => {
                let attribute = r#"device.attributes["example.com"].root"#;
                format!(r#"has({attribute}) && {attribute} in ["{root}"]"#)
            }
            Self::Before(version) => {
                format!(r#"{gpu} && device.attributes["{GPU}"].version.isLessThan(semver("{version}"))"#)
            }
            Self::Healthy => {
                r#"has(device.attributes["example.com"].healthy) && device.attributes["example.com"].healthy"#
                    .to_owned()
            }
            Self::Unguarded(model) => format!(r#"device.attributes["{GPU}"].model == "{model}""#),
        }
    }
}

impl Device {
    /// The value of an attribute that constraints name.
    pub fn value(&self, driver: &str, attribute: &str) -> Option<String> {
        match attribute {
            "example.com/root" => self.root.map(str::to_owned),
            "example.com/healthy" => self.healthy.map(|healthy| healthy.to_string()),
            _ => (attribute == format!("{driver}/model")).then(|| self.model.to_owned()),
        }
    }
}

impl Case {
    /// Returns the case with this number.
    pub fn of(number: usize) -> Self {
        let dice = &mut Dice::new(number as u64);
        let is_large = dice.hits(10);
        let count = if is_large { dice.within(13, 40) } else { dice.within(4, 12) };
        let racks = dice.within(2, 3);
        let mut case = Self {
            number,
            racks,
            nodes: (0..count).map(|_| node(dice, racks)).collect(),
            slices: Vec::new(),
            classes: Vec::new(),
            others: Vec::new(),
            sorts: Vec::new(),
            batch: Vec::new(),
            released: Vec::new(),
            selected: dice.hits(4),
        };
        for at in 0..count {
            case.devices_of_node(dice, at);
        }
        if dice.hits(8) {
            case.devices_of_several(dice);
        }
        case.classes = classes(dice, number);
        case.others(dice);
        let sorts = dice.within(1, 2);
        case.sorts = (0..sorts).map(|_| sort(dice, case.classes.len())).collect();
        for sort in &mut case.sorts {
            sort.shares = sort.extended == 0 && dice.hits(20);
        }
        // Pods of one sort stand together, as the pods of a role do.
        case.batch = (0..sorts).flat_map(|sort| vec![sort; dice.within(1, 5 / sorts)]).collect();
        if case.batch.len() == 1 {
            case.batch.push(0);
        }
        if dice.hits(20) {
            case.sorts.push(sort(dice, case.classes.len()));
            case.released = vec![sorts; dice.within(1, 2)];
        }
        case
    }

    /// The number of pods of a sort in the batch.
    pub fn in_batch(&self, sort: usize) -> usize {
        self.batch.iter().filter(|of| **of == sort).count()
    }

    pub fn node_name(&self, node: usize) -> String {
        format!("j{}-{node:02}", self.number)
    }

    pub fn resource(&self) -> String {
        format!("j{}.example.com/gpu", self.number)
    }

    fn devices_of_node(&mut self, dice: &mut Dice, node: usize) {
        let name = self.node_name(node);
        let reach = if self.selected || dice.hits(1) { Reach::Selected(node) } else { Reach::Node(node) };
        if node > 0 && self.nodes[node].plugin == self.nodes[node - 1].plugin && dice.hits(40) {
            return self.devices_of_equal_node(node, reach);
        }
        if self.nodes[node].plugin.unwrap_or_default() == 0 && dice.hits(85) {
            let count = dice.pick(&[2, 4, 4, 6, 8, 8]);
            let (model, tainted) = (dice.pick(&MODELS), dice.hits(25));
            let mut devices: Vec<_> =
                (0..count).map(|at| device(dice, &format!("gpu-{at}"), Some(model), tainted, at * 2 / count)).collect();
            if dice.hits(20) {
                // Two pools: names decide which comes first.
                let second = devices.split_off(count / 2);
                self.pool(dice, GPU, &format!("{name}-b"), reach, second);
            }
            self.pool(dice, GPU, &name, reach, devices);
        }
        if dice.hits(65) {
            let count = dice.within(1, 2);
            let tainted = dice.hits(15);
            let devices = (0..count).map(|at| device(dice, &format!("nic-{at}"), None, tainted, at * 2 / count));
            let devices = devices.collect();
            self.pool(dice, NIC, &name, reach, devices);
        }
    }

    /// Gives a node devices that are equal to those of the node before it, by their names as well.
    fn devices_of_equal_node(&mut self, node: usize, reach: Reach) {
        let (before, name) = (self.node_name(node - 1), self.node_name(node));
        let own = self.slices.iter().filter(|slice| slice.pool.starts_with(&before));
        let equal = own.map(|slice| Slice {
            name: slice.name.replace(&before, &name),
            pool: slice.pool.replace(&before, &name),
            reach,
            ..slice.clone()
        });
        let equal: Vec<_> = equal.collect();
        self.slices.extend(equal);
    }

    fn pool(&mut self, dice: &mut Dice, driver: &'static str, pool: &str, reach: Reach, mut devices: Vec<Device>) {
        let short = if driver == GPU { "g" } else { "n" };
        let slice = |number: usize, generation: u32, of: usize, devices| Slice {
            name: format!("{pool}-{short}{number}"),
            driver,
            pool: pool.to_owned(),
            generation,
            of,
            reach,
            devices,
        };
        if dice.hits(3) {
            // The second slice is not there.
            self.slices.push(slice(0, 1, 2, devices));
        } else if devices.len() > 1 && dice.hits(20) {
            let second = devices.split_off(devices.len() / 2);
            self.slices.push(slice(1, 1, 2, second));
            self.slices.push(slice(0, 1, 2, devices));
        } else if dice.hits(5) {
            let before = devices.iter().map(|device| Device { name: format!("old-{}", device.name), ..device.clone() });
            self.slices.push(slice(0, 1, 1, before.collect()));
            self.slices.push(slice(1, 2, 1, devices));
        } else {
            self.slices.push(slice(0, 1, 1, devices));
        }
    }

    /// A slice in which each device has a node of its own.
    fn devices_of_several(&mut self, dice: &mut Dice) {
        let devices = (0..dice.within(2, 4)).map(|at| {
            let node = Some(dice.below(self.nodes.len()));
            Device { node, ..device(dice, &format!("far-{at}"), Some(MODELS[0]), false, 0) }
        });
        let (pool, devices) = (format!("j{}-far", self.number), devices.collect());
        self.slices.push(Slice {
            name: format!("{pool}-g0"),
            driver: GPU,
            pool,
            generation: 1,
            of: 1,
            reach: Reach::EachDevice,
            devices,
        });
    }

    fn others(&mut self, dice: &mut Dice) {
        for node in 0..self.nodes.len() {
            if let (Some(plugin @ 1..), true) = (self.nodes[node].plugin, dice.hits(40)) {
                let extended = dice.within(1, plugin);
                self.others.push(Other { node, cpu: 1, extended, devices: Vec::new() });
            }
            if !dice.hits(30) {
                continue;
            }
            let own = |slice: &Slice| matches!(slice.reach, Reach::Node(of) | Reach::Selected(of) if of == node);
            let mut devices = Vec::new();
            for (at, slice) in self.slices.iter_mut().enumerate().filter(|(_, slice)| own(slice)) {
                for (position, device) in slice.devices.iter_mut().enumerate() {
                    // A pod is evicted from devices with NoExecute.
                    let evicts = [device.taint, device.rule].contains(&Some("NoExecute"));
                    if !evicts && dice.hits(45) {
                        device.taken = true;
                        devices.push((at, position));
                    }
                }
            }
            if !devices.is_empty() {
                self.others.push(Other { node, cpu: dice.below(3), extended: 0, devices });
            }
        }
    }

    /// Returns the devices of a node in the order in which they are tried, each with its driver; and whether a pool of it changes.
    pub fn devices(&self, node: usize) -> (Vec<(&'static str, &Device)>, bool) {
        let mut slices: Vec<_> = self.slices.iter().filter(|slice| slice.reaches(node)).collect();
        slices.sort_by(|one, other| (one.driver, &one.pool, &one.name).cmp(&(other.driver, &other.pool, &other.name)));
        let pool = |slice: &Slice| (slice.driver, slice.pool.clone());
        let (mut devices, mut broken) = (Vec::new(), false);
        for slice in &slices {
            let newest = slices.iter().filter(|other| pool(other) == pool(slice)).map(|other| other.generation).max();
            let current = slices.iter().filter(|other| pool(other) == pool(slice) && Some(other.generation) == newest);
            if current.count() != slice.of {
                broken = true;
            } else if Some(slice.generation) == newest {
                let is_here = |device: &&Device| device.node.is_none_or(|at| at == node);
                devices.extend(slice.devices.iter().filter(is_here).map(|device| (slice.driver, device)));
            }
        }
        (devices, broken)
    }
}

impl Slice {
    fn reaches(&self, node: usize) -> bool {
        match self.reach {
            Reach::Node(of) | Reach::Selected(of) => of == node,
            Reach::EachDevice => self.devices.iter().any(|device| device.node == Some(node)),
        }
    }
}

fn node(dice: &mut Dice, racks: usize) -> Node {
    let plugin = match dice.below(10) {
        0 | 1 => Some(dice.within(1, 8)),
        2 => Some(0),
        _ => None,
    };
    Node { rack: dice.below(racks), cpu: dice.within(6, 16), plugin }
}

fn device(dice: &mut Dice, name: &str, model: Option<&'static str>, tainted: bool, root: usize) -> Device {
    let taint = |dice: &mut Dice, percent| {
        (tainted && dice.hits(percent)).then(|| dice.pick(&["NoSchedule", "NoExecute", "None"]))
    };
    Device {
        name: name.to_owned(),
        model: if dice.hits(8) { MODELS[1] } else { model.unwrap_or(MODELS[0]) },
        root: (!dice.hits(6)).then(|| ROOTS[root]),
        version: dice.pick(&VERSIONS),
        healthy: dice.hits(70).then(|| dice.hits(85)),
        memory: dice.pick(&[40, 80, 80]),
        taint: taint(dice, 60),
        rule: taint(dice, 25).filter(|effect| *effect != "None"),
        taken: false,
        node: None,
    }
}

fn classes(dice: &mut Dice, case: usize) -> Vec<Class> {
    let class = |name: &str, conditions: Vec<Condition>| Class {
        name: format!("j{case}-{name}"),
        conditions,
        resource: name == "gpu",
    };
    let mut gpu = vec![Condition::Driver(GPU)];
    if dice.hits(15) {
        gpu.push(condition(dice));
    }
    let mut classes = vec![class("gpu", gpu), class("nic", vec![Condition::Driver(NIC)])];
    classes.push(class("big", vec![Condition::Driver(GPU), Condition::Memory(80)]));
    let any = if dice.hits(50) { Vec::new() } else { vec![condition(dice)] };
    classes.push(class("any", any));
    classes
}

fn condition(dice: &mut Dice) -> Condition {
    match dice.below(5) {
        0 => Condition::Model(dice.pick(&MODELS)),
        1 => Condition::Memory(80),
        2 => Condition::Root(dice.pick(&ROOTS)),
        3 => Condition::Before(dice.pick(&VERSIONS)),
        _ => Condition::Healthy,
    }
}

fn sort(dice: &mut Dice, classes: usize) -> Sort {
    let mut sort = Sort { cpu: dice.below(4), ..Sort::default() };
    match dice.below(10) {
        0..=2 => sort.extended = dice.pick(&[1, 1, 2, 2, 4]),
        3 => {
            sort.extended = dice.within(1, 2);
            sort.claims.push(claim(dice, classes));
        }
        4 => sort.claims = vec![claim(dice, classes), claim(dice, classes)],
        _ => sort.claims.push(claim(dice, classes)),
    }
    sort.by_class = dice.hits(15);
    sort
}

fn claim(dice: &mut Dice, classes: usize) -> Claim {
    let mut claim = Claim::default();
    for _ in 0..dice.pick(&[1, 1, 1, 1, 2, 2, 3]) {
        let count = if dice.hits(20) { dice.within(2, 3) } else { 1 };
        let alternatives = (0..count).map(|_| alternative(dice, classes)).collect();
        claim.requests.push(Request { alternatives });
    }
    for _ in 0..dice.pick(&[0, 0, 0, 1, 1, 2]) {
        let attribute =
            dice.pick(&["example.com/root", "example.com/root", "gpu.example.com/model", "example.com/healthy"]);
        let mut requests = Vec::new();
        if dice.hits(50) {
            for (at, request) in claim.requests.iter().enumerate() {
                if dice.hits(60) {
                    let of = (request.alternatives.len() > 1 && dice.hits(40))
                        .then(|| dice.below(request.alternatives.len()));
                    requests.push((at, of));
                }
            }
        }
        claim.constraints.push(Constraint { attribute, requests });
    }
    claim
}

fn alternative(dice: &mut Dice, classes: usize) -> Alternative {
    // GPUs half of the time.
    let class = if dice.hits(50) { 0 } else { dice.below(classes) };
    let mut conditions = Vec::new();
    if dice.hits(2) {
        conditions.push(Condition::Unguarded(MODELS[0]));
    } else if dice.hits(25) {
        conditions.push(condition(dice));
    }
    let count = if dice.hits(10) { None } else { Some(dice.pick(&[1, 1, 1, 1, 2, 2, 4])) };
    Alternative { class, conditions, count, tolerates: dice.hits(20) }
}
