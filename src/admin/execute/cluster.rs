//! The command about the cluster.

use super::super::context::Context;
use super::super::protocol::{Answer, ClusterAnswer, Failure, FailureCode, NodeAnswer};
use crate::cluster::engine::{ClusterView, NodeView};
use crate::cluster::lease::{NodeDetails, WhenCutOff};
use crate::cluster::member::ClusterStanding;
use crate::cluster::node::Standing;
use crate::model::{Membership, Timestamp};

pub(super) async fn cluster(context: &Context) -> Result<Answer, Failure> {
    let refused = |message: &str| Failure::new(FailureCode::Refused, message);
    let Some(server) = &context.server else {
        return Err(refused(&match context.writer.membership().await? {
            Some(Membership { epoch, applied, .. }) => format!(
                "no server runs on this directory, which is at position {applied} of epoch {epoch}: start it with \
                 `oddsbox serve`, or ask another node"
            ),
            None => "this directory does not belong to a cluster".to_owned(),
        }));
    };
    let standing = server.cluster().ok_or_else(|| refused("this server is a single node: cluster.url is not set"))?;
    Ok(Answer::Cluster(Box::new(shown(standing))))
}

fn shown(standing: ClusterStanding) -> ClusterAnswer {
    let (name, contact_ms) = (standing.name(), standing.contact_ms());
    let ClusterStanding { node, standing, applied, contact, failure, .. } = standing;
    let detail = match &standing {
        Standing::Following => failure.map(|failure| failure.to_string()),
        Standing::CutOff => Some("the engine does not answer".to_owned()),
        Standing::Stalled(reason) => Some(reason.to_string()),
        standing => standing.end(),
    };
    let view = contact.as_ref().map(|contact| &contact.view);
    ClusterAnswer {
        node: node.into(),
        standing: name.to_owned(),
        detail,
        position: applied.to_string(),
        contact_ms,
        last: view.map(|view| view.last.to_string()),
        nodes: view.map(|view| view.nodes.iter().map(|node| shown_node(node, view)).collect()).unwrap_or_default(),
    }
}

fn shown_node(node: &NodeView, view: &ClusterView) -> NodeAnswer {
    let details = serde_json::from_str::<NodeDetails>(&node.details).ok();
    let (version, address) = details.clone().map(|details| (details.version, details.address)).unzip();
    NodeAnswer {
        name: node.node.to_string(),
        version,
        address: address.flatten(),
        started: details.as_ref().map(|details| Timestamp::from_unix(details.started).to_string()),
        position: node.applied.to_string(),
        behind_ms: node.behind_ms,
        lease_ms: node.lease_ms,
        serves_when_cut_off: details.is_some_and(|details| details.when_cut_off == WhenCutOff::Serve),
        on_duty: view.duty.as_ref().is_some_and(|holder| holder.node == node.node),
    }
}
