//! Decoding of carriers.

use super::decode::{DecodeError, decode};
use crate::api::ObjectKind;
use crate::api::role_coordination::ROLE_COORDINATION;
use crate::model::{Group, Sources};

/// Reads a RoleBasedGroup, or a RoleCoordination with the objects that it refers to.
///
/// # Errors
///
/// When the object does not have the shape of its kind.
pub fn read_group(kind: ObjectKind, json: &str, sources: &impl Sources) -> Result<Group, DecodeError> {
    if kind == ROLE_COORDINATION {
        return Ok(Group::from_role_coordination(kind, &decode(json)?, sources));
    }
    Ok(Group::from_rbg(kind, &decode(json)?))
}
