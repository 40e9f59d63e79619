import assert from "node:assert/strict";
import { describe, it, test } from "node:test";
import { nameOf } from "../admission/testing/world.js";
import { ManualClock } from "../base/testing/manual-clock.js";
import { sizeText } from "../base/text.js";
import {
  archiveUse,
  bookContributors,
  bookOwners,
  catalogueRow,
  newRepositoryRow,
  type RepositoryStatus,
  recount,
  repositoryKey,
  setCatalogueRow,
} from "../catalogue/repositories.js";
import { defaultConfig } from "../config/testing/default-config.js";
import type { Pubkey } from "../nostr/event.js";
import { createMemoryStore } from "../store/memory/memory-store.js";
import type { Store } from "../store/port.js";
import { NaiveStore } from "../store/testing/naive-store.js";
import { ArchiveBudget, accountsOf, type QuotaLeft, quotaLeft, quotaRemarks } from "./quotas.js";

const owner = "1".repeat(64) as Pubkey;
const [alice, bob] = ["a".repeat(64) as Pubkey, "b".repeat(64) as Pubkey];
const [one, two] = [
  { owner, identifier: "one" },
  { owner, identifier: "two" },
];
const limits = {
  repositoryMaxBytes: 1_000,
  npubMaxBytes: 1_500,
  instanceMaxBytes: undefined,
  prRepositoryMaxBytes: 800,
  prAuthorMaxBytes: 500,
};

type Limits = Parameters<typeof accountsOf>[3];

const ownersAccounts = (store: Store, name: typeof one, limits: Limits) => accountsOf(store, name, undefined, limits);
const ownersQuotaLeft = async (...asked: Parameters<typeof ownersAccounts>): Promise<QuotaLeft> =>
  quotaLeft(await ownersAccounts(...asked));
const contributorsQuotaLeft = async (...asked: Parameters<typeof accountsOf>): Promise<QuotaLeft> =>
  quotaLeft(await accountsOf(...asked));

async function storeWith(...names: readonly (typeof one)[]): Promise<Store> {
  const store = createMemoryStore();
  await store.transact(async (tx) => {
    for (const name of names) setCatalogueRow(tx, newRepositoryRow(name, 0));
  });
  return store;
}

const booked = (store: Store, name: typeof one, bytes: number, author?: Pubkey): Promise<void> =>
  store.transact(async (tx) => {
    const row = await catalogueRow(tx, name);
    assert.ok(row);
    if (author) await bookContributors(tx, row, author, bytes);
    else bookOwners(tx, row, bytes);
  });

describe("an owner's quota", () => {
  it("is what the repository or its owner has left, whichever is less, with use and limit", async () => {
    const store = await storeWith(one, two);
    await booked(store, one, 400);
    assert.deepEqual(await ownersQuotaLeft(store, one, limits).then(({ maxBytes }) => maxBytes), 600);
    await booked(store, two, 900);
    const left = await ownersQuotaLeft(store, one, limits);
    assert.equal(left.maxBytes, 200);
    assert.match(left.reason, /^all repositories of its owner use 1\.3 KiB of 1\.5 KiB: /);
  });

  it("used up, still takes a pack without objects", async () => {
    const store = await storeWith(one);
    await booked(store, one, 1_200);
    const left = await ownersQuotaLeft(store, one, limits);
    assert.deepEqual([left.maxBytes, left.isUsedUp], [32, true]);
    assert.match(left.reason, /^this repository uses 1\.2 KiB of 1000 bytes: /);
  });

  it("of the whole server counts everything, when there is one", async () => {
    const store = await storeWith(one, two);
    await booked(store, one, 100);
    await booked(store, two, 50, alice);
    const left = await ownersQuotaLeft(store, one, { ...limits, instanceMaxBytes: 200 });
    assert.equal(left.maxBytes, 50);
    assert.match(left.reason, /^all repositories of this server use 150 bytes of 200 bytes: /);
  });

  it("of the whole server follows what is booked and what goes, and reads the others no more", async (context) => {
    const store = await storeWith(one, two);
    const withLimit = { ...limits, instanceMaxBytes: 1_000 };
    const used = async (): Promise<number> => 1_000 - (await ownersQuotaLeft(store, one, withLimit)).maxBytes;
    await booked(store, one, 100);
    assert.equal(await used(), 100);
    await booked(store, two, 30, alice);
    await booked(store, one, 20);
    const rows = context.mock.method(store, "rows");
    assert.equal(await used(), 150);
    const ranges = rows.mock.calls.map(({ arguments: [table, range] }) => [table, range?.prefix]);
    assert.deepEqual(ranges, [["catalogue", `${owner}:`]], "the owner's own alone are added up");
    rows.mock.restore();
    await store.transact(async (tx) => {
      tx.deleteRow("catalogue", repositoryKey(two));
      setCatalogueRow(tx, {
        ...newRepositoryRow({ owner: alice, identifier: "three" }, 0),
        counters: { pushes: 1, bytes: 7, pullRequestBytes: 5 },
      });
      setCatalogueRow(tx, {
        ...newRepositoryRow({ owner: bob, identifier: "four", area: "prs" }, 0),
        counters: { pushes: 1, bytes: 1, pullRequestBytes: 0 },
      });
    });
    assert.equal(await used(), 133);
  });

  it("is remarked on from 80 %", async () => {
    const store = await storeWith(one);
    await booked(store, one, 799);
    assert.deepEqual(quotaRemarks(await ownersAccounts(store, one, limits)), []);
    await booked(store, one, 1);
    assert.deepEqual(quotaRemarks(await ownersAccounts(store, one, limits)), [
      "note: this repository uses 800 bytes of 1000 bytes; from there on pushes are refused",
    ]);
  });
});

describe("a contributor's quota", () => {
  it("is counted over all repositories and apart from the owner's", async () => {
    const store = await storeWith(one, two);
    await booked(store, one, 200, alice);
    await booked(store, two, 250, alice);
    const left = await contributorsQuotaLeft(store, one, [alice], limits);
    assert.equal(left.maxBytes, 50);
    assert.match(left.reason, /^your pull requests use 450 bytes of 500 bytes: /);
    assert.equal((await contributorsQuotaLeft(store, one, [bob], limits)).maxBytes, 500);
    assert.equal((await ownersQuotaLeft(store, one, limits)).maxBytes, 1_000);
  });

  it("of an owner in his own repository is the owner's", async () => {
    const store = await storeWith(one);
    await booked(store, one, 200, owner);
    assert.equal((await ownersQuotaLeft(store, one, limits)).maxBytes, 800);
  });

  it("comes back when the repository goes", async () => {
    const store = await storeWith(one, two);
    await booked(store, one, 400, alice);
    await store.transact(async (tx) => tx.deleteRow("catalogue", repositoryKey(one)));
    assert.equal((await contributorsQuotaLeft(store, two, [alice], limits)).maxBytes, 500);
  });

  it("never counts for a stranger whose repository's name ends alike", async () => {
    const store = await storeWith(one, { owner, identifier: "phone" });
    await booked(store, { owner, identifier: "phone" }, 300, alice);
    await booked(store, one, 300, alice);
    await store.transact(async (tx) => {
      const row = await catalogueRow(tx, one);
      assert.ok(row);
      await recount(tx, row, { bytes: 1_000, pullRequestBytes: 0 });
    });
    assert.equal((await contributorsQuotaLeft(store, two, [alice], limits)).maxBytes, 200);
  });
});

describe("counting anew", () => {
  it("makes the accounts what is on disk; contributors' shrink together", async () => {
    const store = await storeWith(one);
    await booked(store, one, 900);
    await booked(store, one, 300, alice);
    await booked(store, one, 100, bob);
    await store.transact(async (tx) => {
      const row = await catalogueRow(tx, one);
      assert.ok(row);
      await recount(tx, row, { bytes: 700, pullRequestBytes: 200 });
    });
    const { counters } = (await catalogueRow(store, one)) ?? {};
    assert.deepEqual(counters, { pushes: 0, bytes: 500, pullRequestBytes: 200 });
    assert.equal((await contributorsQuotaLeft(store, two, [alice], limits)).maxBytes, 350);
    assert.equal((await contributorsQuotaLeft(store, two, [bob], limits)).maxBytes, 450);
  });

  it("looks at its own contributors alone; those from before they were listed are found once", async (context) => {
    const store = await storeWith(one, two);
    await booked(store, one, 300, alice);
    await booked(store, two, 200, bob);
    await store.transact(async (tx) => {
      for (const { owner: of, identifier } of [one, two]) {
        const mark = `pull-request-authors:${of}:${identifier}`;
        for (const key of [mark, `${mark} ${alice}`, `${mark} ${bob}`]) tx.deleteRow("meta", key);
      }
    });
    await booked(store, one, 100, bob);
    const shrink = (bytes: number): Promise<string[]> =>
      store.transact(async (tx) => {
        const rows = context.mock.method(tx, "rows");
        const row = await catalogueRow(tx, one);
        assert.ok(row);
        await recount(tx, row, { bytes, pullRequestBytes: bytes });
        return rows.mock.calls.map(({ arguments: [, range] }) => range?.prefix ?? "");
      });
    assert.deepEqual(await shrink(200), [`pull-request-authors:${owner}:one `]);
    const left = async (author: Pubkey) => (await contributorsQuotaLeft(store, two, [author], limits)).maxBytes;
    assert.deepEqual([await left(alice), await left(bob)], [350, 250]);
    await shrink(0);
    assert.deepEqual([await left(alice), await left(bob)], [500, 300], "what bob has elsewhere stays");
  });

  it("never charges contributors with what the owner pushed to a pull request of his own", async () => {
    const store = await storeWith(one);
    await booked(store, one, 300, alice);
    await store.transact(async (tx) => {
      const row = await catalogueRow(tx, one);
      assert.ok(row);
      await recount(tx, row, { bytes: 900, pullRequestBytes: 600 });
    });
    const { counters } = (await catalogueRow(store, one)) ?? {};
    assert.deepEqual(counters, { pushes: 0, bytes: 600, pullRequestBytes: 300 });
  });
});

it("sizes are said in the unit people use", () => {
  const texts = [0, 1, 1_023, 1_024, 1_536, 20 * 2 ** 20, 10 * 2 ** 30, 2 ** 50].map(sizeText);
  assert.deepEqual(texts, ["0 bytes", "1 bytes", "1023 bytes", "1 KiB", "1.5 KiB", "20 MiB", "10 GiB", "1024 TiB"]);
});

it("the defaults are those of the specification", () => {
  const config = defaultConfig();
  assert.deepEqual(
    [config.repositoryMaxBytes, config.npubMaxBytes, config.prRepositoryMaxBytes, config.prAuthorMaxBytes].map(
      sizeText,
    ),
    ["10 GiB", "20 GiB", "2 GiB", "1 GiB"],
  );
});

function put(store: NaiveStore, identifier: string, status: RepositoryStatus, isArchive: boolean): void {
  const row = newRepositoryRow(nameOf("bob", identifier), 1, isArchive ? { cloneUrls: [] } : null);
  setCatalogueRow(store, { ...row, status, counters: { pushes: 0, bytes: 100, pullRequestBytes: 10 } });
}

test("mirrors count with all they hold, leaving ones too, and others do not", async () => {
  const store = new NaiveStore();
  put(store, "mirror", "archived", true);
  put(store, "going", "leaving", true);
  put(store, "waits", "waiting", true);
  put(store, "own", "served", false);
  assert.deepEqual(await archiveUse(store), { repositories: 1, bytes: 330 });
});

test("what arrives is counted at once, what went is noticed within a minute, and the limit may change", async () => {
  const store = new NaiveStore();
  const clock = new ManualClock();
  let maxBytes = 1_000;
  const budget = new ArchiveBudget(store, clock, () => maxBytes);
  put(store, "mirror", "archived", true);
  assert.equal(await budget.leftBytes(), 890);
  budget.took(400);
  assert.equal(await budget.leftBytes(), 490);
  budget.took(600);
  assert.equal(await budget.leftBytes(), 0, "never less than nothing");
  clock.advance(60_000);
  assert.equal(await budget.leftBytes(), 890, "the catalogue is the truth");
  maxBytes = 110;
  assert.equal(await budget.leftBytes(), 0);
});
