// SPDX-License-Identifier: GPL-2.0
//! Upstream's generic netlink, as far as a comparison needs it: rxe has RoCEv2 only, so
//! its SMC-R runs as version 2, and that needs an EID.

use crate::netlink::attribute;
use crate::netlink::attributes;
use crate::netlink::Netlink;
use crate::Context;
use crate::Fail;

const NETLINK_GENERIC: i32 = 16;
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const SMC_NETLINK_ADD_UEID: u8 = 10;
const SMC_NLA_EID_TABLE_ENTRY: u16 = 1;
const NLM_F_ACK: u16 = 4;
const EID: usize = 32;

/// Adds a user-defined EID in this network namespace.
pub fn add_ueid(name: &str) -> Result<(), Fail> {
    let netlink = Netlink::new(NETLINK_GENERIC)?;
    let mut request = vec![CTRL_CMD_GETFAMILY, 1, 0, 0];
    request.extend(attribute(CTRL_ATTR_FAMILY_NAME, b"SMC_GEN_NETLINK\0"));
    let answers = netlink
        .call(GENL_ID_CTRL, 0, &request)
        .context("no SMC_GEN_NETLINK (upstream's module is not loaded)")?;
    let id = answers
        .iter()
        .flat_map(|a| attributes(a.get(4..).unwrap_or_default()))
        .find(|(kind, _)| *kind == CTRL_ATTR_FAMILY_ID)
        .and_then(|(_, v)| Some(u16::from_ne_bytes(v.get(..2)?.try_into().ok()?)))
        .ok_or(Fail::from("generic netlink family without id"))?;
    // Blank padded, and with a terminating zero.
    let mut eid = name.as_bytes().to_vec();
    eid.resize(EID, b' ');
    eid.push(0);
    let mut request = vec![SMC_NETLINK_ADD_UEID, 1, 0, 0];
    request.extend(attribute(SMC_NLA_EID_TABLE_ENTRY, &eid));
    Netlink::new(NETLINK_GENERIC)?
        .call(id, NLM_F_ACK, &request)
        .context("adding the EID")?;
    Ok(())
}
