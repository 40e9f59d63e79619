import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { ManualClock } from "../base/testing/manual-clock.js";
import { newToken, putToken } from "../catalogue/machine-tokens.js";
import { defaultConfig } from "../config/testing/default-config.js";
import { type ServiceName, serviceName } from "../net/url.js";
import { SecretKey, signEvent } from "../nostr/keys.js";
import { npubOf } from "../nostr/nip19.js";
import { createVerifierPool, type VerifierPool } from "../nostr/verify/pool.js";
import { createMemoryStore } from "../store/memory/memory-store.js";
import { GitAccess, type GitPlace, isForRepository, tokenIn } from "./git-access.js";
import type { CredentialRefused } from "./metrics.js";
import { repositoryAuthorization } from "./signed-request.js";
import { membersOf } from "./testing/members-of.js";

const nowSeconds = 1_800_000_000;
const member = SecretKey.generate(randomBytes);
const other = SecretKey.generate(randomBytes);
const npub = npubOf(member.pubkey);
const service = serviceName("git.example.com/base") as ServiceName;
const place: GitPlace = { area: "main", npub, identifier: "my repo" };
const root = `https://git.example.com/base/${npub}/my%20repo.git`;

interface Wish {
  readonly key?: SecretKey;
  readonly kind?: number;
  readonly u?: string;
  readonly method?: string;
  readonly at?: number;
}

const eventOf = ({ key = member, kind = 27_235, u = root, method = "GET", at = nowSeconds }: Wish = {}) =>
  signEvent(
    key,
    {
      kind,
      created_at: at,
      tags: [
        ["u", u],
        ["method", method],
      ],
      content: "",
    },
    randomBytes,
  );

const headerOf = (wish: Wish = {}): string => `Nostr ${Buffer.from(eventOf(wish).raw).toString("base64")}`;

describe("a signed request is for one repository", () => {
  const cases: readonly [what: string, wish: Wish, place: GitPlace, isFor: boolean][] = [
    ["its root URL", {}, place, true],
    [
      "another case of the host, the other scheme, the default port",
      { u: `http://GIT.example.com:80/base/${npub}/my%20repo.git` },
      place,
      true,
    ],
    [
      "lower-case and upper-case escapes alike",
      { u: `https://git.example.com/base/${npub}/my%20repo%2egit` },
      place,
      true,
    ],
    ["a name that was encoded twice", { u: `https://git.example.com/base/${npub}/my%2520repo.git` }, place, false],
    ["a trailing slash", { u: `${root}/` }, place, false],
    ["a query", { u: `${root}?service=git-upload-pack` }, place, false],
    ["a fragment", { u: `${root}#x` }, place, false],
    ["what is below the root", { u: `${root}/info/refs` }, place, false],
    ["another host", { u: `https://git.example.org/base/${npub}/my%20repo.git` }, place, false],
    ["another base path", { u: `https://git.example.com/${npub}/my%20repo.git` }, place, false],
    ["another repository", {}, { ...place, identifier: "other" }, false],
    ["another owner", {}, { ...place, npub: npubOf(other.pubkey) }, false],
    ["the same name under /prs/", {}, { ...place, area: "prs" }, false],
    [
      "a repository under /prs/",
      { u: `https://git.example.com/base/prs/${npub}/my%20repo.git` },
      { ...place, area: "prs" },
      true,
    ],
    ["the method of the request itself", { method: "POST" }, place, false],
    ["another kind", { kind: 22_242 }, place, false],
  ];
  for (const [what, wish, where, isFor] of cases) {
    test(`${what}: ${isFor ? "yes" : "no"}`, () =>
      assert.equal(isForRepository(eventOf(wish), where, [service]), isFor));
  }
});

test("a token is read as password with any user name, or as user name with an empty password", () => {
  const basic = (text: string): string => `Basic ${Buffer.from(text).toString("base64")}`;
  assert.equal(tokenIn(basic("anybody:hft_x")), "hft_x");
  assert.equal(tokenIn(basic("hft_x:")), "hft_x");
  assert.equal(tokenIn(basic("a:b:c")), "b:c");
  assert.equal(tokenIn(basic("without a colon")), undefined);
  assert.equal(tokenIn("Bearer hft_x"), undefined);
});

describe("who asks for a repository", () => {
  let verifier: VerifierPool;
  before(async () => {
    verifier = await createVerifierPool({ workers: 1 });
  });
  after(() => verifier.close());

  async function scene(privateMembers = [member.pubkey]) {
    const clock = new ManualClock(nowSeconds * 1000);
    const store = createMemoryStore({ clock });
    const settings = { members: privateMembers };
    const config = () => defaultConfig({ privateMode: true, privateMembers: settings.members });
    const counted: string[] = [];
    const refused: CredentialRefused = (type, reason) => void counted.push(`${type} ${reason}`);
    const access = new GitAccess({ members: membersOf(config), store, verifier, clock, services: [service], refused });
    const asked = async (header: string | undefined, where: GitPlace | "nowhere" = place): Promise<string> => {
      const identity = await access.identify(header, where === "nowhere" ? undefined : where, "192.0.2.1");
      return identity.ok ? `${identity.caller.via} ${identity.caller.mayPush ? "push" : "read"}` : identity.reason;
    };
    const token = async (about: Partial<Parameters<typeof newToken>[0]> = {}): Promise<string> => {
      const made = newToken(
        { member: member.pubkey, right: "read", repository: null, since: nowSeconds, ends: null, note: "", ...about },
        randomBytes,
      );
      await store.transact(async (tx) => putToken(tx, made.row));
      return `Basic ${Buffer.from(`git:${made.token}`).toString("base64")}`;
    };
    return { clock, store, asked, token, settings, counted };
  }

  test("a member's signature opens the repository again and again for a minute before and after its time, and no longer", async () => {
    const { clock, asked } = await scene();
    const header = headerOf();
    assert.deepEqual([await asked(header), await asked(header)], ["nostr push", "nostr push"]);
    clock.advance(60_000);
    assert.equal(await asked(header), "nostr push");
    clock.advance(1_000);
    assert.equal(await asked(header), "unknown");
    assert.equal(await asked(headerOf({ at: nowSeconds + 61 + 61 })), "unknown", "from the future");
  });

  test("a stranger's signature, a forged one, one for another repository and no header open nothing", async () => {
    const { asked } = await scene();
    const forged = JSON.stringify({ ...JSON.parse(eventOf({ key: other }).raw), sig: eventOf().sig });
    const headers = [
      headerOf({ key: other }),
      `Nostr ${Buffer.from(forged).toString("base64")}`,
      "Nostr !",
      "x",
      undefined,
    ];
    for (const header of headers) assert.equal(await asked(header), "unknown");
    assert.equal(await asked(headerOf(), { ...place, identifier: "other" }), "unknown");
    assert.equal(await asked(headerOf(), "nowhere"), "unknown", "a path that names no repository");
  });

  test("a forged signature costs the same look, whosever key it claims: an answer's time tells no member's", async () => {
    let looks = 0;
    const counting = {
      ...verifier,
      verify: (event: Parameters<typeof verifier.verify>[0]) => {
        looks++;
        return verifier.verify(event);
      },
    };
    const clock = new ManualClock(nowSeconds * 1000);
    const members = membersOf(() => defaultConfig({ privateMode: true, privateMembers: [member.pubkey] }));
    const store = createMemoryStore({ clock });
    const access = new GitAccess({
      members,
      store,
      verifier: counting,
      clock,
      services: [service],
      refused: () => undefined,
    });
    for (const key of [member, other]) {
      looks = 0;
      const forged = JSON.stringify({ ...JSON.parse(eventOf({ key }).raw), sig: "0".repeat(128) });
      await access.identify(`Nostr ${Buffer.from(forged).toString("base64")}`, place, "192.0.2.1");
      assert.equal(looks, 1);
    }
  });

  test("what we send to other private servers is what such a server takes", async () => {
    const { clock, asked } = await scene();
    assert.equal(await asked(repositoryAuthorization(member, root, clock, randomBytes)), "nostr push");
  });

  test("a token opens what it is for until it ends, is revoked, or its member leaves", async () => {
    const { clock, store, asked, token, settings } = await scene();
    assert.equal(await asked(await token()), "token read");
    assert.equal(await asked(await token({ right: "push" })), "token push");
    const one = await token({ repository: `30617:${member.pubkey}:my repo`, ends: nowSeconds + 10 });
    assert.equal(await asked(one), "token read");
    assert.equal(await asked(one, { ...place, identifier: "other" }), "unknown");
    assert.equal(await asked(one, { ...place, area: "prs" }), "unknown");
    clock.advance(10_000);
    assert.equal(await asked(one), "unknown", "its time is over");
    const lasting = await token();
    assert.equal(await asked(lasting), "token read");
    settings.members = [];
    assert.equal(await asked(lasting), "unknown", "its member left");
    settings.members = [member.pubkey];
    const ids: string[] = [];
    for await (const [id] of store.rows("tokens")) ids.push(id);
    await store.transact(async (tx) => {
      for (const id of ids) tx.deleteRow("tokens", id);
    });
    assert.equal(await asked(lasting), "unknown", "revoked");
  });

  test("the store holds no token, only its hash, and a token with another secret opens nothing", async () => {
    const { store, asked, token } = await scene();
    const header = await token();
    const text = Buffer.from(header.slice("Basic ".length), "base64").toString().split(":")[1] ?? "";
    for await (const [id, row] of store.rows<object>("tokens")) {
      assert.ok(text.includes(id));
      assert.ok(!JSON.stringify(row).includes(text.slice(-43)));
    }
    const changed = `${text.slice(0, -1)}${text.endsWith("A") ? "B" : "A"}`;
    assert.equal(await asked(`Basic ${Buffer.from(`git:${changed}`).toString("base64")}`), "unknown");
  });

  test("an address that shows bad credentials without end is not listened to for a while", async () => {
    const { clock, asked, token, counted } = await scene();
    const good = await token();
    for (let tries = 0; tries < 60; tries++) await asked("Basic aGZ0X3g6eA==");
    assert.equal(await asked(good), "too-many");
    assert.equal(await asked(undefined), "unknown", "without any nothing is counted");
    assert.deepEqual(counted, [...Array(60).fill("token unknown"), "token too-many"]);
    assert.equal(await asked("Nostr nonsense"), "unknown");
    assert.equal(counted.at(-1), "signature unknown");
    clock.advance(60_000);
    assert.equal(await asked(good), "token read");
  });
});
