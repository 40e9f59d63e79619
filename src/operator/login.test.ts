import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { assertLinear, uglyShapes } from "../base/testing/linear-time.js";
import { ManualClock } from "../base/testing/manual-clock.js";
import { type ServiceName, serviceName } from "../net/url.js";
import type { NostrEvent } from "../nostr/event.js";
import type { EventDraft } from "../nostr/keys.js";
import { keyFrom, seededBytes, signedEvent } from "../nostr/testing/signed.js";
import { createVerifierPool } from "../nostr/verify/pool.js";
import { createMemoryStore } from "../store/memory/memory-store.js";
import {
  formToken,
  isFormToken,
  LoginLinks,
  linkLifeMs,
  memoryShelves,
  Nip98,
  type Shelves,
  type SignedRequest,
  sessionLifeMs,
} from "./login.js";
import { rowShelves } from "./row-shelf.js";

/** Alone, and in a cluster. */
const places: readonly (readonly [string, (clock: ManualClock) => Shelves])[] = [
  ["in memory", memoryShelves],
  ["in rows", (clock) => rowShelves(createMemoryStore({ clock }), clock)],
];

for (const [where, shelvesOf] of places) {
  const fresh = (): { links: LoginLinks; clock: ManualClock } => {
    const clock = new ManualClock();
    return { clock, links: new LoginLinks(shelvesOf(clock), seededBytes("links")) };
  };

  test(`a link opens one session and is used up by it, ${where}`, async () => {
    const { links } = fresh();
    const token = await links.issue();
    const session = await links.redeem(token);
    assert.ok(session !== undefined && (await links.isSession(session)));
    assert.equal(await links.redeem(token), undefined);
    assert.equal(await links.isSession(token), false);
    await links.end(session);
    assert.equal(await links.isSession(session), false);
  });

  test(`a link that is too old or made up opens nothing, ${where}`, async () => {
    const { links, clock } = fresh();
    const token = await links.issue();
    assert.ok(await links.isLink(token));
    clock.advance(linkLifeMs);
    assert.equal(await links.isLink(token), false);
    assert.equal(await links.redeem(token), undefined);
    for (const made of ["", "x", token.slice(1)]) assert.equal(await links.redeem(made), undefined);
  });

  test(`a session ends by itself, ${where}`, async () => {
    const { links, clock } = fresh();
    const session = (await links.redeem(await links.issue())) ?? "";
    clock.advance(sessionLifeMs - 1);
    assert.ok(await links.isSession(session));
    clock.advance(1);
    assert.equal(await links.isSession(session), false);
  });

  test(`however many links are asked for, only the newest twenty work, ${where}`, async () => {
    const { links, clock } = fresh();
    const works: boolean[] = [];
    const tokens: string[] = [];
    for (let link = 0; link < 30; link++) {
      tokens.push(await links.issue());
      clock.advance(1);
    }
    for (const token of tokens) works.push((await links.redeem(token)) !== undefined);
    assert.deepEqual(
      works,
      tokens.map((_, index) => index >= 10),
    );
  });

  test(`a session knows who opened it, and says what its last action came to once, ${where}`, async () => {
    const { links } = fresh();
    const [byLink, byKey] = [(await links.redeem(await links.issue())) ?? "", await links.open("npub1somebody")];
    assert.deepEqual(
      [await links.whoOf(byLink), await links.whoOf(byKey), await links.whoOf("x")],
      ["operator", "npub1somebody", undefined],
    );
    await links.notice(byKey, { isGood: true, text: "done" });
    assert.equal(await links.takeNotice(byLink), undefined);
    assert.deepEqual(await links.takeNotice(byKey), { isGood: true, text: "done" });
    assert.equal(await links.takeNotice(byKey), undefined);
  });

  test(`however many sessions are opened, only the newest hundred live, ${where}`, async () => {
    const { links, clock } = fresh();
    const sessions: string[] = [];
    const other = await links.open("npub1somebody");
    for (let session = 0; session < 120; session++) {
      sessions.push(await links.open("operator"));
      clock.advance(1);
    }
    const alive: boolean[] = [];
    for (const session of sessions) alive.push(await links.isSession(session));
    assert.deepEqual(
      alive,
      sessions.map((_, index) => index >= 20),
    );
    assert.ok(await links.isSession(other), "nobody ends another's");
  });
}

test("a form's token belongs to one session and does not give it away", async () => {
  const links = new LoginLinks(memoryShelves(new ManualClock()), seededBytes("links"));
  const [one, other] = [await links.open("operator"), await links.open("operator")];
  const token = formToken(one);
  assert.ok(isFormToken(token, one));
  for (const wrong of ["", one, formToken(other), token.slice(1), `${token}=`]) {
    assert.equal(isFormToken(wrong, one), false);
  }
  assert.equal(await links.isSession(token), false);
});

const admin = keyFrom("admin");
const service = serviceName("git.example.com/base") as ServiceName;
const nowSeconds = 1_700_000_000;
const body = Buffer.from('{"method":"stats","params":[]}');
const hash = createHash("sha256").update(body).digest("hex");

const header = (event: NostrEvent): string => `Nostr ${Buffer.from(event.raw).toString("base64")}`;

function token(change: Partial<EventDraft> = {}, key = admin): NostrEvent {
  const tags = [
    ["u", "https://git.example.com/base/"],
    ["method", "POST"],
    ["payload", hash],
  ];
  return signedEvent({ kind: 27_235, created_at: nowSeconds, tags, ...change }, key);
}

const request = (authorization: string | undefined, change: Partial<SignedRequest> = {}): SignedRequest => ({
  authorization,
  method: "POST",
  path: "/",
  query: "",
  body,
  needsPayload: true,
  ...change,
});

async function withNip98(
  work: (nip98: Nip98, clock: ManualClock) => Promise<void>,
  shelvesOf: (clock: ManualClock) => Shelves = memoryShelves,
): Promise<void> {
  const verifier = await createVerifierPool({ workers: 1 });
  const clock = new ManualClock(nowSeconds * 1000);
  try {
    await work(
      new Nip98({
        services: [service],
        isKnown: (key) => key === admin.pubkey,
        strangersAreTold: "this key is not an admin's",
        isPrivate: false,
        verifier,
        clock,
        whose: "admins",
        shelves: shelvesOf(clock),
        refused: () => undefined,
      }),
      clock,
    );
  } finally {
    await verifier.close();
  }
}

for (const [where, shelvesOf] of places) {
  test(`an admin's token is good once, and never again while its time lasts, ${where}`, () =>
    withNip98(async (nip98, clock) => {
      const once = request(header(token()));
      assert.deepEqual(await nip98.authorise(once), { ok: true, pubkey: admin.pubkey });
      assert.equal((await nip98.authorise(once)).ok, false);
      clock.advance(60_000);
      assert.deepEqual(await nip98.authorise(once), { ok: false, reason: "the token was used before" });
      clock.advance(1_000);
      assert.deepEqual(await nip98.authorise(once), { ok: false, reason: "the token's time is not now" });
    }, shelvesOf));

  test(`a used token refused in parallel is let through once only, ${where}`, () =>
    withNip98(async (nip98) => {
      const same = request(header(token()));
      const answers = await Promise.all(Array.from({ length: 8 }, () => nip98.authorise(same)));
      assert.equal(answers.filter(({ ok }) => ok).length, 1);
    }, shelvesOf));
}

const tags = (change: Readonly<Record<string, string | undefined>>): EventDraft["tags"] =>
  Object.entries({ u: "https://git.example.com/base/", method: "POST", payload: hash, ...change }).flatMap(
    ([name, value]) => (value === undefined ? [] : [[name, value]]),
  );

const refused: readonly (readonly [string, SignedRequest])[] = [
  ["no token", request(undefined)],
  ["another scheme", request("Bearer x")],
  ["no event", request(`Nostr ${Buffer.from("{}").toString("base64")}`)],
  ["another kind", request(header(token({ kind: 1 })))],
  ["a stranger's key", request(header(token({}, keyFrom("stranger"))))],
  ["too old", request(header(token({ created_at: nowSeconds - 61 })))],
  ["from the future", request(header(token({ created_at: nowSeconds + 61 })))],
  ["another method", request(header(token({ tags: tags({ method: "GET" }) })))],
  ["another service", request(header(token({ tags: tags({ u: "https://evil.example/base/" }) })))],
  ["our origin without the base path", request(header(token({ tags: tags({ u: "https://git.example.com/" }) })))],
  ["another path", request(header(token({ tags: tags({ u: "https://git.example.com/base/api/status" }) })))],
  ["another query", request(header(token({ tags: tags({ u: "https://git.example.com/base/?x=1" }) })))],
  ["a swapped body", request(header(token()), { body: Buffer.from('{"method":"banpubkey"}') })],
  ["no payload where one is needed", request(header(token({ tags: tags({ payload: undefined }) })))],
  [
    "a forged signature",
    request(
      `Nostr ${Buffer.from(JSON.stringify({ ...token(), sig: token({}, keyFrom("x")).sig })).toString("base64")}`,
    ),
  ],
  [
    "another content under the same id",
    request(`Nostr ${Buffer.from(JSON.stringify({ ...token(), created_at: nowSeconds + 1 })).toString("base64")}`),
  ],
];

for (const [what, asked] of refused) {
  test(`refused: ${what}`, async () => {
    await withNip98(async (nip98) => {
      assert.equal((await nip98.authorise(asked)).ok, false);
      // And nothing of it counts against a good token.
      assert.equal((await nip98.authorise(request(header(token())))).ok, true);
    });
  });
}

test("the scheme of the URL does not matter, and a GET without a body needs no payload", async () => {
  await withNip98(async (nip98) => {
    const relay = token({ tags: tags({ u: "wss://git.example.com/base" }) });
    assert.equal((await nip98.authorise(request(header(relay)))).ok, true);
    const get = token({
      tags: [
        ["u", "https://git.example.com/base/api/why/x?limit=3"],
        ["method", "get"],
      ],
    });
    const asked = { method: "GET", path: "/api/why/x", query: "limit=3", body: Buffer.alloc(0), needsPayload: false };
    assert.equal((await nip98.authorise(request(header(get), asked))).ok, true);
  });
});

test("threat 32: a token's header, its URL and the path it is compared with are read in linear time", async () => {
  await withNip98(async (nip98) => {
    const limited = { maxChars: 2 ** 16 };
    const good = header(token());
    for (const [name, shape] of uglyShapes) {
      const read = (change: Partial<SignedRequest>) => void nip98.authorise(request(good, change));
      assertLinear(`a path of ${name}`, (chars) => ({ path: `/${shape(chars)}` }), read, limited);
      assertLinear(`a header of ${name}`, (chars) => ({ authorization: `Nostr ${shape(chars)}` }), read, limited);
    }
    for (const piece of ["/", " ", "%2f", "../", "?", "#", "a."]) {
      const url = (chars: number) => tags({ u: `https://git.example.com/base${piece.repeat(chars / piece.length)}` });
      const headers = (chars: number) => header(token({ tags: url(chars) }));
      const read = (text: string) => void nip98.authorise(request(text));
      assertLinear(`a URL of ${piece}`, headers, read, limited);
    }
  });
});
