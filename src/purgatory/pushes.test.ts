import assert from "node:assert/strict";
import { test } from "node:test";
import { keyOf, makeEvent } from "../admission/testing/world.js";
import { type RepositoryName, repositoryAddress, underPrs } from "../catalogue/repositories.js";
import { decidePush } from "../git/decide-push.js";
import type { PushCommand } from "../git/push-types.js";
import { type EventId, kinds } from "../nostr/event.js";
import type { Oid, RefName } from "../nostr/nip34.js";
import { NaiveStore } from "../store/testing/naive-store.js";
import type { KnownPullRequest } from "./pull-requests.js";
import { pushAuthority } from "./pushes.js";

const tip = "a".repeat(40) as Oid;
const other = "b".repeat(40) as Oid;
const here = { owner: keyOf("bob"), identifier: "x" };
const event = makeEvent(keyOf("bob"), kinds.pullRequest, [["c", tip]]);
const unknownId = "9".repeat(64) as EventId;

const known = (contributor: RepositoryName | undefined): KnownPullRequest[] => [
  { event, repositories: contributor ? [repositoryAddress(underPrs(contributor))] : [] },
];
const to = (ref: string, value: Oid | undefined): PushCommand => ({ ref: ref as RefName, old: undefined, new: value });
const nostr = (id: string): string => `refs/nostr/${id}`;

const cases: readonly {
  readonly name: string;
  readonly known: readonly KnownPullRequest[];
  readonly command: PushCommand;
  readonly held?: Oid;
  /** Pushed before for an event that is not known. */
  readonly unclaimed?: Oid;
  readonly allowance?: false;
  readonly closed?: string;
  readonly expected: string;
}[] = [
  { name: "its commit", known: known(here), command: to(nostr(event.id), tip), expected: "move" },
  { name: "its commit again", known: known(here), command: to(nostr(event.id), tip), held: tip, expected: "none" },
  { name: "another commit", known: known(here), command: to(nostr(event.id), other), expected: "nostr-other-tip" },
  {
    name: "a deletion",
    known: known(here),
    command: to(nostr(event.id), undefined),
    held: tip,
    expected: "nostr-delete",
  },
  {
    name: "another signer's event",
    known: known({ ...here, owner: keyOf("eve") }),
    command: to(nostr(event.id), tip),
    expected: "nostr-other-repository",
  },
  {
    name: "an event for another name",
    known: known({ ...here, identifier: "y" }),
    command: to(nostr(event.id), tip),
    expected: "nostr-other-repository",
  },
  {
    name: "an event that names no /prs/ repository",
    known: known(undefined),
    command: to(nostr(event.id), tip),
    expected: "nostr-other-repository",
  },
  { name: "an unknown event", known: [], command: to(nostr(unknownId), tip), expected: "placeholder" },
  {
    name: "what was pushed before for an unknown event",
    known: [],
    command: to(nostr(unknownId), tip),
    unclaimed: tip,
    expected: "none",
  },
  {
    name: "another commit than was pushed first for an unknown event",
    known: [],
    command: to(nostr(unknownId), other),
    unclaimed: tip,
    expected: "nostr-other-tip",
  },
  {
    name: "an unknown event above the budget",
    known: [],
    command: to(nostr(unknownId), tip),
    allowance: false,
    expected: "unclaimed-budget",
  },
  { name: "a branch", known: known(here), command: to("refs/heads/main", tip), expected: "ref-not-allowed" },
  { name: "a tag", known: known(here), command: to("refs/tags/v1", tip), expected: "ref-not-allowed" },
  { name: "an id in capitals", known: [], command: to(nostr("A".repeat(64)), tip), expected: "ref-not-allowed" },
  {
    name: "an unwanted signer",
    known: known(here),
    command: to(nostr(event.id), tip),
    closed: "no",
    expected: "read-only",
  },
];

for (const { name, expected, command, held, ...facts } of cases) {
  test(`under /prs/: ${name} is ${expected}`, async () => {
    const authority = await pushAuthority(new NaiveStore(), underPrs(here), facts.known, {
      strict: true,
      archiveReadOnly: true,
      held: new Map(facts.unclaimed ? [[unknownId, facts.unclaimed]] : []),
      unclaimed: facts.allowance === false ? { ok: false, reason: "enough" } : { ok: true, maxBytes: 1 },
      quota: { maxBytes: 1, reason: "" },
      closedReason: facts.closed,
    });
    const current = new Map(held ? [[command.ref, { oid: held }]] : []);
    const { verdicts } = decidePush({
      commands: [command],
      atomic: false,
      authority,
      current,
      formats: { here: "sha1", pushed: "sha1" },
      completeness: () => false,
    });
    const [verdict] = verdicts;
    assert.ok(verdict);
    assert.equal(verdict.ok ? verdict.effect : verdict.code, expected);
  });
}
