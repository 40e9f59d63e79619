// threats.md rows 21, 22, 24 and 27 against the started server: what is forged, premature, mixed in or oddly written.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, test } from "node:test";
import { getEventHash, verifyEvent } from "nostr-tools";
import { NegentropyClient } from "../../src/nostr/negentropy/reconcile.js";
import { NegentropyRecords } from "../../src/nostr/negentropy/records.js";
import type { RelayClient } from "../harness/relay-client.js";
import { keyOf, sign, type TestKey } from "../harness/relay-events.js";
import { eventually, mebibyte, nowSeconds, RelayWorld } from "./relay-world.js";

const alice = keyOf("alice");
const mallory = keyOf("mallory");

/** The ids a peer with an empty set learns about. */
async function reconciledIds(client: RelayClient, filter: object): Promise<string[]> {
  const empty = new NegentropyRecords({ length: 0, times: new Float64Array(), ids: Buffer.alloc(0) });
  const asking = new NegentropyClient(empty);
  const found: string[] = [];
  let verb = "NEG-OPEN";
  for (let message: Uint8Array | undefined = asking.initiate(); message; verb = "NEG-MSG") {
    const answer = client.next(([heard, id]) => String(heard).startsWith("NEG-") && id === "neg");
    const hex = Buffer.from(message).toString("hex");
    client.send(verb, "neg", ...(verb === "NEG-OPEN" ? [filter] : []), hex);
    const [answered, , text] = await answer;
    assert.equal(answered, "NEG-MSG", String(text));
    const step = asking.reconcile(Buffer.from(String(text), "hex"));
    assert.ok(step.ok);
    found.push(...step.need);
    message = step.message;
  }
  client.send("NEG-CLOSE", "neg");
  return found.sort();
}

describe("threats 21 to 27", { timeout: 500_000 }, () => {
  const shared = RelayWorld.shared();

  // The first: it asks for all there is.
  test("threat 21: a forged copy of an accepted event is refused before, beside and after the good one, and served nowhere", async () => {
    const world = shared();
    const live = await world.client();
    await live.ask("live", { kinds: [1621] });
    const others = await Promise.all([world.client(), world.client(), world.client()]);
    const goods = Array.from({ length: 20 }, (_, index) => world.issue(alice, `true ${index}`));
    const inTurn = async (client: RelayClient, sent: readonly { readonly id: string }[]) => {
      const answers: [boolean, string][] = [];
      for (const event of sent) answers.push(await world.publish(event, client));
      return answers;
    };
    for (const [index, { event: good }] of goods.entries()) {
      const foreign = world.issue(mallory, `true ${index}`, { created_at: good.created_at }).event;
      const curve = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
      const sum = BigInt(`0x${good.sig.slice(64)}`) + curve;
      const forgeries = [
        { ...good, content: "false" },
        { ...good, tags: [...good.tags, ["t", "added"]] },
        { ...good, created_at: good.created_at + 1 },
        { ...good, kind: 1 },
        { ...good, pubkey: mallory.pubkey },
        { ...good, sig: foreign.sig },
        { ...good, sig: goods[(index + 1) % goods.length]?.event.sig ?? "" },
        // The same signature with s + n: another text for a careless verifier.
        ...(sum < 1n << 256n ? [{ ...good, sig: good.sig.slice(0, 64) + sum.toString(16).padStart(64, "0") }] : []),
        // A right id over Alice's key, signed by Mallory.
        (() => {
          const unsigned = { ...foreign, pubkey: alice.pubkey };
          return { ...unsigned, id: getEventHash(unsigned as never), sig: foreign.sig };
        })(),
      ];
      // From several connections at once, so that forged and good ones share the verifier's batch and the commit; one
      // after another on each, because their answers carry the same id.
      const before = Promise.all(others.map((client, at) => inTurn(client, forgeries.slice(at * 3, at * 3 + 3))));
      if (index % 3 === 0) await before;
      assert.deepEqual(await world.publish(good), [true, ""]);
      const answers = [...(await before).flat(), ...(await inTurn(world.story.relay, forgeries))];
      for (const [accepted, text] of answers) {
        assert.equal(accepted, false, text);
        assert.match(text, /^invalid: /);
      }
      assert.match((await world.publish(good))[1], /^duplicate: /);
    }
    const ids = goods.map(({ event }) => event.id).sort();
    const { events } = await world.story.relay.ask("all", { kinds: [1, 1621] });
    for (const event of events) assert.ok(verifyEvent(event as never), "what is served is signed");
    assert.deepEqual(events.map(({ id }) => id).sort(), ids);
    assert.equal(await world.count({ kinds: [1, 1621] }), ids.length);
    assert.deepEqual(await reconciledIds(world.story.relay, { kinds: [1, 1621] }), ids);
    await eventually("live has each once", () => live.eventsOf("live").length >= ids.length);
    assert.deepEqual(
      live
        .eventsOf("live")
        .map(({ id }) => id)
        .sort(),
      ids,
    );
  });

  test("threat 27: every odd spelling of an event is refused or served in a form that hashes to its id", async () => {
    const world = shared();
    const client = await world.client();
    const heldBefore = await world.heldBytes();
    let serial = 0;
    const expected = new Set(await world.ids({ kinds: [1, 1621], limit: 5_000 }));
    for (const { name, text, isTaken } of oddSpellings(world, () => String(serial++))) {
      const answer = client.next(([verb]) => verb === "NOTICE" || verb === "OK");
      client.socket.send(typeof text === "string" ? `["EVENT",${text}]` : text);
      const [verb, id, accepted, why] = await answer;
      assert.equal(verb === "OK" && accepted === true, isTaken, `${name}: ${String(verb)} ${String(why ?? id)}`);
      if (isTaken) expected.add(String(id));
    }
    assert.equal(client.socket.readyState, client.socket.OPEN, "no odd event closes the connection");
    const raw: string[] = [];
    client.socket.on("message", (data) => raw.push(String(data)));
    const { events } = await client.ask("served", { kinds: [1, 1621], limit: 5_000 });
    assert.deepEqual(new Set(events.map(({ id }) => id)), expected);
    for (const frame of raw.filter((text) => text.startsWith('["EVENT"'))) {
      const event = JSON.parse(frame)[2] as Record<string, unknown>;
      assert.deepEqual(Object.keys(event).sort(), ["content", "created_at", "id", "kind", "pubkey", "sig", "tags"]);
      const { pubkey, created_at, kind, tags, content } = event;
      const hashed = JSON.stringify([0, pubkey, created_at, kind, tags, content]);
      assert.equal(createHash("sha256").update(hashed).digest("hex"), event.id);
      assert.ok(verifyEvent(event as never));
    }
    assert.equal(await world.count({ kinds: [1, 1621] }), expected.size);
    await world.isUnharmed(heldBefore, 64 * mebibyte);
  });

  test("threat 22: a deletion by a stranger, sent before the event arrives, has no effect, also after a restart", async () => {
    const world = shared();
    // Mallory has something here, so that her requests are taken and kept.
    await world.taken(world.issue(mallory, "a foothold").event);
    const early = world.issue(alice, "not yet sent").event;
    const replaceable = sign(alice, {
      kind: 30_023,
      created_at: nowSeconds() - 100,
      tags: [
        ["d", "x"],
        ["a", world.coordinate],
      ],
    });
    const { raw: _raw, ...article } = replaceable;
    const requests = [
      [["e", early.id]],
      [
        ["e", early.id],
        ["p", alice.pubkey],
        ["k", "1621"],
      ],
      [
        ["e", article.id],
        ["a", `30023:${alice.pubkey}:x`],
      ],
      [
        ["a", `30617:${world.owner.pubkey}:target`],
        ["a", `30618:${world.owner.pubkey}:target`],
      ],
    ].map((tags) => plain(sign(mallory, { kind: 5, created_at: nowSeconds(), tags })));
    for (const request of requests) await world.publish(request);
    // A nobody's request about nothing is not even kept.
    const nobody = plain(sign(keyOf("nobody"), { kind: 5, created_at: nowSeconds(), tags: [["e", "ab".repeat(32)]] }));
    assert.equal((await world.publish(nobody))[0], false);
    assert.deepEqual(await world.ids({ ids: [nobody.id] }), []);

    await world.taken(early);
    await world.taken(article);
    for (const request of requests) await world.publish(request);
    const kept = [early.id, article.id].sort();
    assert.deepEqual(await world.ids({ ids: kept }), kept);
    assert.equal((await world.ids({ kinds: [30617, 30618], authors: [world.owner.pubkey] })).length, 2);

    // Alice's own request, sent before a later event of hers arrives, does bind.
    const late = world.issue(alice, "regretted in advance").event;
    await world.taken(plain(sign(alice, { kind: 5, created_at: nowSeconds(), tags: [["e", late.id]] })));
    assert.equal((await world.publish(late))[0], false);

    await world.server.stop();
    await world.startAgain();
    assert.deepEqual(await world.ids({ ids: kept }), kept);
    assert.deepEqual(await world.ids({ ids: [late.id] }), []);
  });

  test("threat 24: one bad event inside a group commit leaves the other 199 stored, also after kill -9", async () => {
    const world = shared();
    const about = { kinds: [1621], "#a": [world.coordinate] };
    const stored = await world.ids(about);
    const clients = await Promise.all(Array.from({ length: 4 }, () => world.client()));
    for (const [round, spoil] of Object.entries({
      signature: (good: Sent) => ({ ...good, sig: "0".repeat(128) }),
      id: (good: Sent) => ({ ...good, content: "swapped" }),
      unrelated: (good: Sent) => plain(sign(alice, { kind: 1, created_at: good.created_at, content: good.content })),
      future: (good: Sent) => world.issue(alice, good.content, { created_at: nowSeconds() + 3_600 }).event,
      kind: (good: Sent) => ({ ...good, kind: 2 ** 31 }),
    })) {
      const goods = Array.from({ length: 200 }, (_, index) => world.issue(alice, `${round} ${index}`).event);
      const bad = spoil(goods[100] as Sent);
      const answers = await Promise.all(
        goods.map((good, index) => world.publish(index === 100 ? bad : good, clients[index % 4])),
      );
      assert.deepEqual(
        answers.flatMap(([accepted], index) => (accepted ? [] : [index])),
        [100],
        round,
      );
      stored.push(...goods.filter((_, index) => index !== 100).map(({ id }) => id));
    }
    world.server.child.kill("SIGKILL");
    await world.server.ended;
    await world.startAgain();
    assert.deepEqual(await world.ids(about), stored.sort());
    assert.deepEqual(await world.ids({ kinds: [1] }), []);
  });
});

type Sent = ReturnType<RelayWorld["issue"]>["event"];

function plain({ raw: _raw, ...event }: ReturnType<typeof sign>) {
  return event;
}

/** An event whose id is right for exactly this text of its parts, whatever a parser makes of it. */
function handWritten(
  key: TestKey,
  world: RelayWorld,
  part: { createdAt?: string; kind?: string; tags?: string; content?: string },
) {
  const {
    createdAt = "1000000000",
    kind = "1621",
    tags = JSON.stringify([["a", world.coordinate]]),
    content = '"x"',
  } = part;
  const preimage = `[0,"${key.pubkey}",${createdAt},${kind},${tags},${content}]`;
  const id = createHash("sha256").update(preimage).digest("hex");
  const { sig } = sign(key, {});
  return `{"id":"${id}","pubkey":"${key.pubkey}","created_at":${createdAt},"kind":${kind},"tags":${tags},"content":${content},"sig":"${sig}"}`;
}

interface Spelling {
  readonly name: string;
  readonly text: string | Buffer;
  readonly isTaken: boolean;
}

function* oddSpellings(world: RelayWorld, fresh: () => string): Generator<Spelling> {
  const address = JSON.stringify(["a", world.coordinate]);
  const good = (content = `plain ${fresh()}`, tags: string[][] = []) =>
    world.issue(alice, content, { created_at: 1_000_000_000, tags });
  const swap = (name: string, from: string | RegExp, to: string, isTaken = false): Spelling => {
    const { raw } = good();
    const text = raw.replace(from, () => to);
    assert.notEqual(text, raw, name);
    return { name, text, isTaken };
  };
  const fields = ["id", "pubkey", "created_at", "kind", "tags", "content", "sig"] as const;
  for (const field of fields) {
    const { event, raw } = good();
    const { event: other } = good();
    const wrong = JSON.stringify(
      field === "kind"
        ? 1
        : field === "created_at"
          ? 5
          : field === "pubkey"
            ? mallory.pubkey
            : field === "tags"
              ? []
              : other[field],
    );
    yield {
      name: `${field} twice, the wrong one last`,
      text: raw.replace(/\}$/, `,"${field}":${wrong}}`),
      isTaken: false,
    };
    yield {
      name: `${field} twice, the right one last`,
      text: raw.replace("{", `{"${field}":${wrong},`),
      isTaken: true,
    };
    const escaped = `\\u00${field.charCodeAt(0).toString(16)}${field.slice(1)}`;
    yield {
      name: `${field} under an escaped name`,
      text: good().raw.replace(`"${field}":`, `"${escaped}":`),
      isTaken: true,
    };
    yield { name: `no ${field}`, text: JSON.stringify({ ...event, [field]: undefined }), isTaken: false };
    yield { name: `${field} null`, text: JSON.stringify({ ...event, [field]: null }), isTaken: false };
    const inherited = JSON.stringify({ ...event, [field]: undefined });
    yield {
      name: `${field} by __proto__`,
      text: inherited.replace("{", `{"__proto__":{"${field}":${JSON.stringify(event[field])}},`),
      isTaken: false,
    };
  }
  for (const time of [
    "9007199254740993",
    "9007199254740992",
    "-1",
    "-0",
    "1000000000.5",
    "1e400",
    '"1000000000"',
    "1e-1",
    "true",
    "[1000000000]",
  ]) {
    yield swap(`created_at ${time}`, "1000000000", time);
    yield {
      name: `created_at ${time} hashed as written`,
      text: handWritten(alice, world, { createdAt: time }),
      isTaken: false,
    };
  }
  for (const time of ["1e9", "1.0e9", "1000000000.0", "10E8", "1000000000e0"])
    yield swap(`created_at ${time}`, "1000000000", time, true);
  for (const kind of ["1621.5", "-1621", "65536", "1e9", '"1621"', "null"]) {
    yield swap(`kind ${kind}`, '"kind":1621', `"kind":${kind}`);
    yield { name: `kind ${kind} hashed as written`, text: handWritten(alice, world, { kind }), isTaken: false };
  }
  const deep = (open: string, close: string, depth: number) => open.repeat(depth) + close.repeat(depth);
  const nested = [
    deep("[", "]", 100_000),
    `[${address},${deep("[", "]", 100_000)}]`,
    `[${address},["e",["x"]]]`,
    `[${address},["e",{}]]`,
    `[${address},[]]`,
    `[${address},["e",1]]`,
    `[${address},["e",null]]`,
    `{"0":${address}}`,
    '"a"',
  ];
  for (const tags of nested)
    yield { name: `tags ${tags.slice(0, 90)}`, text: handWritten(alice, world, { tags }), isTaken: false };
  yield swap("content nested", '"content":"', `"content":${deep('{"a":', "}", 100_000).replace(/:\}/, ":1}")},"x":"`);
  yield {
    name: "an unknown key nested 10^5 deep",
    text: good().raw.replace("{", `{"extra":${deep("[", "]", 100_000)},`),
    isTaken: false,
  };
  yield {
    name: "an unknown key nested 10 deep",
    text: good().raw.replace("{", `{"extra":${deep("[", "]", 10)},`),
    isTaken: true,
  };
  for (const content of ['"\\ud800"', '"a\\udc00b"', '"\\udc00\\ud800"', '"\\uD83D"']) {
    yield { name: `content ${content}`, text: handWritten(alice, world, { content }), isTaken: false };
    const replaced = createHash("sha256").update(
      `[0,"${alice.pubkey}",1000000000,1621,[${address}],${JSON.stringify(JSON.parse(content).toWellFormed())}]`,
    );
    yield {
      name: `content ${content} hashed as U+FFFD`,
      text: handWritten(alice, world, { content }).replace(/"id":"[0-9a-f]+"/, `"id":"${replaced.digest("hex")}"`),
      isTaken: false,
    };
    yield {
      name: `tag ${content}`,
      text: handWritten(alice, world, { tags: `[${address},["t",${content}]]` }),
      isTaken: false,
    };
  }
  for (const content of [
    "\u0000",
    "a\u0000b",
    "\u2028\u2029",
    "\uFEFF",
    "\u007f\u0080",
    "😀",
    "\\u0000",
    '"',
    "</script>",
    "__proto__",
    "\b\f\n\r\t",
    "\u202e",
  ]) {
    yield {
      name: `content ${JSON.stringify(content)}`,
      text: good(`${content}${fresh()}`, [
        ["t", content],
        ["__proto__", content],
      ]).raw,
      isTaken: true,
    };
    const { raw } = good(`${content}${fresh()}`);
    const escaped = raw.replace(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
    yield { name: `content ${JSON.stringify(content)} escaped`, text: escaped, isTaken: true };
  }
  const { raw: spaced } = good();
  yield { name: "white space everywhere", text: JSON.stringify(JSON.parse(spaced), null, "\t\r\n "), isTaken: true };
  yield {
    name: "constructor, toJSON and toString",
    text: good().raw.replace("{", '{"constructor":{"prototype":{"kind":1}},"toJSON":1,"toString":2,"raw":"lie",'),
    isTaken: true,
  };
  yield { name: "an escaped solidus", text: good("a/b").raw.replace("a/b", "a\\/b"), isTaken: true };
  const upper = good();
  yield {
    name: "upper-case id",
    text: upper.raw.replace(upper.event.id, upper.event.id.toUpperCase()),
    isTaken: false,
  };
  yield {
    name: "upper-case sig",
    text: upper.raw.replace(upper.event.sig, upper.event.sig.toUpperCase()),
    isTaken: false,
  };
  yield { name: "an array", text: `[${good().raw}]`, isTaken: false };
  yield {
    name: "two events in one frame",
    text: `${good().raw},${good("second").raw}`,
    isTaken: false,
  };
  for (const text of [
    "null",
    "1",
    '"x"',
    "[]",
    "{}",
    '{"id":5}',
    `${good().raw},`,
    `${good().raw}]`,
    "NaN",
    "{'id':1}",
    "/**/{}",
  ])
    yield { name: text.slice(0, 40), text, isTaken: false };
  const bytes = Buffer.from(`["EVENT",${good("bytes ÿ").raw}]`);
  const at = bytes.indexOf("ÿ");
  for (const broken of [
    [0xff, 0xfe],
    [0xc0, 0x80],
    [0xed, 0xa0],
  ]) {
    const copy = Buffer.from(bytes);
    copy.set(broken, at);
    yield { name: `bytes ${broken}`, text: copy, isTaken: false };
  }
  yield {
    name: "a byte order mark first",
    text: Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(`["EVENT",${good().raw}]`)]),
    isTaken: false,
  };
  yield { name: "the last good one", text: good().raw, isTaken: true };
}
