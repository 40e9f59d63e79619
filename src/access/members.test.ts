import assert from "node:assert/strict";
import { test } from "node:test";
import { defaultConfig } from "../config/testing/default-config.js";
import type { Pubkey } from "../nostr/event.js";
import { membersOf } from "./testing/members-of.js";

const key = (digit: string): Pubkey => digit.repeat(64) as Pubkey;
const [server, admin, listed, banned, blacklisted, peer, stranger] = ["1", "2", "3", "4", "5", "6", "7"].map(key) as [
  Pubkey,
  Pubkey,
  Pubkey,
  Pubkey,
  Pubkey,
  Pubkey,
  Pubkey,
];

const privateConfig = (privateMembers: readonly Pubkey[]) =>
  defaultConfig({ privateMode: true, privateMembers, eventBlacklist: [blacklisted] });

test("members are the listed keys, the admins and the server itself; a banned or blacklisted key is none", () => {
  const config = privateConfig([listed, banned, blacklisted]);
  const members = membersOf(() => config, { serverKey: server, banned: new Set([banned]), admins: new Set([admin]) });
  const isMember = [server, admin, listed, banned, blacklisted, stranger].map((one) => members.has(one));
  assert.deepEqual(isMember, [true, true, true, false, false, false]);
});

test("everybody belongs to a public service but who is banned or blacklisted", () => {
  assert.equal(membersOf().has(stranger), true);
  assert.equal(membersOf().isPrivate, false);
  const config = defaultConfig({ eventBlacklist: [blacklisted] });
  const members = membersOf(() => config, { serverKey: server, banned: new Set([banned]) });
  const belongs = [server, stranger, banned, blacklisted].map((one) => members.has(one));
  assert.deepEqual(belongs, [true, true, false, false]);
});

test("who runs a listed relay counts while it is listed, and each change is told", () => {
  const config = privateConfig([]);
  const members = membersOf(() => config);
  let told = 0;
  members.onChange(() => told++);
  assert.deepEqual(members.setPeers([{ relay: "a.example", pubkey: peer }]), [{ relay: "a.example", pubkey: peer }]);
  assert.deepEqual([members.has(peer), told], [true, 1]);
  assert.deepEqual(members.setPeers([{ relay: "a.example", pubkey: peer }]), []);
  assert.equal(told, 1, "nothing changed");
  members.setPeers([]);
  assert.deepEqual([members.has(peer), told], [false, 2]);
});

test("new settings count at once", () => {
  let config = privateConfig([]);
  const members = membersOf(() => config);
  assert.equal(members.has(listed), false);
  config = privateConfig([listed]);
  assert.equal(members.has(listed), true);
});
