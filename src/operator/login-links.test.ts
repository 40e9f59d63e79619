import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../base/testing/manual-clock.js";
import { seededBytes } from "../nostr/testing/signed.js";
import { formToken, isFormToken, LoginLinks, linkLifeMs, sessionLifeMs } from "./login-links.js";

const fresh = (): { links: LoginLinks; clock: ManualClock } => {
  const clock = new ManualClock();
  return { clock, links: new LoginLinks(clock, seededBytes("links")) };
};

test("a link opens one session and is used up by it", () => {
  const { links } = fresh();
  const token = links.issue();
  const session = links.redeem(token);
  assert.ok(session !== undefined && links.isSession(session));
  assert.equal(links.redeem(token), undefined);
  assert.equal(links.isSession(token), false);
  links.end(session);
  assert.equal(links.isSession(session), false);
});

test("a link that is too old or made up opens nothing", () => {
  const { links, clock } = fresh();
  const token = links.issue();
  clock.advance(linkLifeMs);
  assert.equal(links.redeem(token), undefined);
  for (const made of ["", "x", token.slice(1)]) assert.equal(links.redeem(made), undefined);
});

test("a session ends by itself", () => {
  const { links, clock } = fresh();
  const session = links.redeem(links.issue()) ?? "";
  clock.advance(sessionLifeMs - 1);
  assert.ok(links.isSession(session));
  clock.advance(1);
  assert.equal(links.isSession(session), false);
});

test("however many links are asked for, only the newest twenty work", () => {
  const { links } = fresh();
  const tokens = Array.from({ length: 30 }, () => links.issue());
  assert.deepEqual(
    tokens.map((token) => links.redeem(token) !== undefined),
    tokens.map((_, index) => index >= 10),
  );
});

test("a session knows who opened it, and says what its last action came to once", () => {
  const { links } = fresh();
  const [byLink, byKey] = [links.redeem(links.issue()) ?? "", links.open("npub1somebody")];
  assert.deepEqual(
    [links.whoOf(byLink), links.whoOf(byKey), links.whoOf("x")],
    ["operator", "npub1somebody", undefined],
  );
  links.notice(byKey, { isGood: true, text: "done" });
  assert.equal(links.takeNotice(byLink), undefined);
  assert.deepEqual(links.takeNotice(byKey), { isGood: true, text: "done" });
  assert.equal(links.takeNotice(byKey), undefined);
});

test("however many sessions are opened, only the newest hundred live", () => {
  const { links } = fresh();
  const sessions = Array.from({ length: 120 }, () => links.open("operator"));
  assert.deepEqual(
    sessions.map((session) => links.isSession(session)),
    sessions.map((_, index) => index >= 20),
  );
});

test("a form's token belongs to one session and does not give it away", () => {
  const { links } = fresh();
  const [one, other] = [links.open("operator"), links.open("operator")];
  const token = formToken(one);
  assert.ok(isFormToken(token, one));
  for (const wrong of ["", one, formToken(other), token.slice(1), `${token}=`]) {
    assert.equal(isFormToken(wrong, one), false);
  }
  assert.equal(links.isSession(token), false);
});
