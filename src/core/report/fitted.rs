//! The fit of a coordination, as JSON.

use serde_json::{Value, json};

use crate::fit::Fitted;
use crate::plan::placement::{NotModelled, Remedy, Stop};

pub fn coordination(fitted: &Fitted) -> Value {
    let mut object = json!({
        "coordination": fitted.name,
        "topologyKey": fitted.key,
        "total": fitted.total,
        "bound": fitted.bound,
    });
    let fields = match &fitted.answer {
        Err(error) => json!({ "error": error.to_string() }),
        Ok(answer) => {
            let fits = answer.outlook.fits.iter().map(|(index, placement)| {
                let nodes: Vec<_> = placement.nodes.iter().map(ToString::to_string).collect();
                json!({ "index": index, "domain": placement.domain, "nodes": nodes })
            });
            json!({
                "fits": fits.collect::<Vec<_>>(),
                "stop": answer.outlook.stop.as_ref().map(|found| stop(fitted, found)),
                "notModelled": answer.not_modelled.iter().map(NotModelled::describe).collect::<Vec<_>>(),
            })
        }
    };
    if let (Value::Object(object), Value::Object(fields)) = (&mut object, fields) {
        object.extend(fields);
    }
    object
}

fn stop(fitted: &Fitted, stop: &Stop) -> Value {
    let best = stop.no_fit.best.as_ref().map(|miss| {
        let short: serde_json::Map<_, _> =
            miss.short.keys().map(|name| (name.to_string(), miss.written(name).into())).collect();
        json!({ "domain": miss.domain, "fits": miss.fits, "of": miss.of, "short": short })
    });
    let remedies = stop.remedies.iter().map(|remedy| match remedy {
        Remedy::Uncordon(nodes) => {
            json!({ "uncordon": nodes.iter().map(ToString::to_string).collect::<Vec<_>>() })
        }
        Remedy::Preempt(priority) => json!({ "preemptBelow": priority }),
    });
    json!({
        "index": stop.index,
        "reason": fitted.why(stop),
        "best": best,
        "bounded": stop.no_fit.bounded,
        "remedies": remedies.collect::<Vec<_>>(),
    })
}
