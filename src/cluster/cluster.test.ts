import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../base/testing/manual-clock.js";
import { ClusterRefusal, connectRefusal, type DatabaseFacts, judgeDatabase } from "./check-database.js";
import { ClusterClock } from "./cluster-clock.js";
import { databasePlace } from "./database-place.js";
import { Leadership } from "./leadership.js";
import { clusterLocks } from "./locks.js";
import { Looks } from "./looks.js";

const fit: DatabaseFacts = {
  version: 150_004,
  isReplica: false,
  isReadOnly: false,
  fsync: "on",
  user: "holdfast",
  hasSchema: true,
  mayWrite: true,
  backends: ["1", "2", "1", "2"],
};
const place = { words: "db:5432/x", schema: "holdfast" };

test("a database that cannot carry a cluster is refused by name, with a sentence that says what to do", () => {
  assert.equal(judgeDatabase(fit, place), undefined);
  const cases: [Partial<DatabaseFacts>, string, RegExp][] = [
    [{ version: 130_011 }, "too-old", /PostgreSQL 13.*Upgrade/],
    [{ backends: ["1", "1", "1", "2"] }, "pooler", /PgBouncer.*pool_mode=session/],
    [{ backends: ["1", "2", "2", "1"] }, "pooler", /PgBouncer/],
    [{ isReplica: true }, "replica", /NGIT_DATABASE_URL to the primary/],
    [{ isReadOnly: true }, "read-only", /default_transaction_read_only/],
    [{ fsync: "off" }, "fsync-off", /fsync=on/],
    [{ mayWrite: false }, "no-rights", /holdfast.*USAGE and CREATE on schema/],
    [{ mayWrite: false, hasSchema: false }, "no-rights", /CREATE on the database/],
  ];
  for (const [facts, code, sentence] of cases) {
    const refusal = judgeDatabase({ ...fit, ...facts }, place);
    assert.equal(refusal?.code, code);
    assert.match(refusal?.message ?? "", sentence);
  }
});

test("a connection that fails is refused by name and never shows the password", () => {
  const error = (message: string, code?: string): Error => Object.assign(new Error(message), { code });
  const cases: [Error, string][] = [
    [error("password authentication failed", "28P01"), "not-let-in"],
    [error('database "x" does not exist', "3D000"), "no-database"],
    [error("permission denied for database", "42501"), "no-rights"],
    [error("The server does not support SSL connections"), "tls"],
    [error("self-signed certificate", "DEPTH_ZERO_SELF_SIGNED_CERT"), "tls"],
    [error("connect ECONNREFUSED 127.0.0.1:1", "ECONNREFUSED"), "unreachable"],
    [error("getaddrinfo ENOTFOUND db", "ENOTFOUND"), "unreachable"],
  ];
  for (const [failure, code] of cases) assert.equal(connectRefusal(failure, place).code, code);
});

test("a failed TLS handshake is refused with the advice that fits it", () => {
  const cases: [string, string, RegExp][] = [
    [
      "ERR_TLS_CERT_ALTNAME_INVALID",
      "Host: db. is not in the cert's altnames: DNS:a",
      /name \(Host: db\..*DNS:a\): write/,
    ],
    ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "unable to verify the first certificate", /trusts.*sslrootcert/],
    ["UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "unable to get local issuer certificate", /trusts.*sslrootcert/],
    ["SELF_SIGNED_CERT_IN_CHAIN", "self-signed certificate in certificate chain", /trusts.*sslrootcert/],
    ["CERT_SIGNATURE_FAILURE", "certificate signature failure", /trusts.*sslrootcert/],
    ["CERT_HAS_EXPIRED", "certificate has expired", /renew it, or set the clock/],
    ["", "The server does not support SSL connections", /set ssl=on.*or write sslmode=disable/],
  ];
  for (const [code, reason, advice] of cases) {
    const { code: name, message } = connectRefusal(Object.assign(new Error(reason), { code, reason }), place);
    assert.equal(name, "tls");
    assert.match(message, advice);
    // Who is told to give up TLS because a name is wrong gives it up.
    assert.equal(/sslmode=disable/.test(message), code === "", message);
  }
});

test("the URL of the database is read with care", () => {
  const url = databasePlace("postgres://me:p%40ss@db.example.com/events");
  assert.deepEqual([url.words, url.config.password], ["db.example.com:5432/events", "p@ss"]);
  assert.deepEqual(url.config.ssl, {});
  assert.equal(databasePlace("postgres://me@db.example.com/events?sslmode=disable").config.ssl, false);
  assert.equal(databasePlace("postgres://me@127.0.0.1:5433/events").config.ssl, false);
  assert.deepEqual(databasePlace("postgres://me@127.0.0.1/events?sslmode=require").config.ssl, {});
  assert.equal(databasePlace("postgres:///events?host=/run/postgresql").config.host, "/run/postgresql");
  const refusalOf = (url: string, schema?: string): ClusterRefusal => {
    try {
      databasePlace(url, schema);
    } catch (error) {
      if (error instanceof ClusterRefusal) return error;
      throw error;
    }
    return assert.fail(`${url} was taken`);
  };
  for (const wrong of ["mysql://a/b", "postgres://host", "nonsense", "postgres:///x"]) {
    assert.equal(refusalOf(wrong).code, "wrong-url", wrong);
  }
  assert.match(refusalOf("postgres://h/x", "drop table").message, /^NGIT_DATABASE_SCHEMA must be/);
  for (const wrong of ["postgres://h:100%pure@db/x", "postgres://h%:x@db/x", "postgres://h@db/x%zz"]) {
    const { code, message } = refusalOf(wrong);
    assert.deepEqual([code, /write %25 for %/.test(message), /pure/.test(message)], ["wrong-url", true, false], wrong);
  }
  const { code, message } = refusalOf("postgres://h@db/x?sslrootcert=/nowhere/ca.pem");
  assert.equal(code, "tls");
  assert.match(message, /"\/nowhere\/ca\.pem".*cannot be read \(ENOENT\): check the path/);
  assert.notEqual(clusterLocks("one").log, clusterLocks("two").log);
});

test("a request joins the next look and never one that is under way", async () => {
  const clock = new ManualClock();
  const ends: (() => void)[] = [];
  let begun = 0;
  const looks = new Looks(clock, () => {
    begun += 1;
    return new Promise((resolve) => ends.push(resolve));
  });
  const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const answered: string[] = [];
  const ask = (name: string): Promise<number> => looks.upToDate().then(() => answered.push(name));
  const first = ask("first");
  await settle();
  assert.equal(begun, 1);
  const later = [ask("second"), ask("third")];
  await settle();
  assert.equal(begun, 1);
  ends[0]?.();
  await first;
  await settle();
  assert.deepEqual([begun, answered], [2, ["first"]]);
  ends[1]?.();
  await Promise.all(later);
  assert.deepEqual([begun, looks.staleAnswers], [2, 0]);
});

test("a look that takes too long is answered from the view and counted; after a minute of that the machine is not ready", async () => {
  const clock = new ManualClock();
  let isBroken = true;
  const looks = new Looks(clock, () => (isBroken ? new Promise(() => undefined) : Promise.resolve()));
  const first = looks.upToDate();
  clock.advance(250);
  await first;
  assert.deepEqual([looks.staleAnswers, looks.isReady], [1, true]);
  clock.advance(60_000);
  assert.equal(looks.isReady, false);
  isBroken = false;
  const failing = new Looks(clock, () => (isBroken ? Promise.reject(new Error("gone")) : Promise.resolve()));
  isBroken = true;
  await failing.upToDate();
  assert.equal(failing.staleAnswers, 1);
  isBroken = false;
  clock.advance(60_000);
  assert.equal(failing.isReady, false);
  await failing.upToDate();
  assert.deepEqual([failing.staleAnswers, failing.isReady], [1, true]);
});

test("a machine that gets no requests is ready again when its polls find the database", async () => {
  const clock = new ManualClock();
  let look = (): Promise<void> => new Promise(() => undefined);
  const looks = new Looks(clock, () => look());
  const slow = looks.upToDate();
  clock.advance(250);
  await slow;
  look = () => Promise.resolve();
  await looks.poll();
  clock.advance(60_000);
  assert.equal(looks.isReady, true, "one slow look, then a quiet minute");

  look = () => Promise.reject(new Error("gone"));
  await looks.poll();
  clock.advance(59_999);
  await looks.poll();
  assert.equal(looks.isReady, true);
  clock.advance(1);
  assert.equal(looks.isReady, false, "the database has been gone for a minute");
  let ends: () => void = () => undefined;
  look = () =>
    new Promise((resolve) => {
      ends = resolve;
    });
  const late = looks.poll();
  clock.advance(250);
  ends();
  await late;
  assert.equal(looks.isReady, false, "a look that takes too long leaves answers old");
  look = () => Promise.resolve();
  await looks.poll();
  assert.deepEqual([looks.isReady, looks.staleAnswers], [true, 1]);
});

test("the cluster's time is the database's, whatever the machine's own clock says, and it never jumps", () => {
  const own = new ManualClock(1_700_003_600_000);
  const warned: number[] = [];
  const clock = new ClusterClock(own, (byMs) => warned.push(byMs));
  clock.measured(1_700_000_000_000, own.monotonicMs());
  assert.equal(clock.nowMs(), 1_700_000_000_000);
  assert.deepEqual(warned, [3_600_000]);
  own.advance(1_000);
  assert.equal(clock.nowMs(), 1_700_000_001_000);
  own.jumpWall(86_400_000);
  assert.equal(clock.nowMs(), 1_700_000_001_000);
  clock.measured(1_700_000_003_000, own.monotonicMs());
  assert.equal(clock.nowMs(), 1_700_000_001_000);
  let before = clock.nowMs();
  for (let second = 0; second < 60; second++) {
    own.advance(1_000);
    const stepMs = clock.nowMs() - before;
    assert.ok(stepMs >= 950 && stepMs <= 1_050, `${stepMs}`);
    before = clock.nowMs();
  }
  assert.equal(clock.nowMs(), 1_700_000_063_000);
  const askedMs = own.monotonicMs();
  own.advance(400);
  clock.measured(1_700_000_063_250, askedMs);
  own.advance(60_000);
  assert.equal(clock.nowMs(), 1_700_000_123_400);
  assert.deepEqual(warned, [3_600_000]);
});

test("a leader's work begins and ends with the leadership, one after the other, and a server alone always leads", async () => {
  const happened: string[] = [];
  let isBroken = false;
  const epochs: (number | undefined)[] = [];
  const start = async (epoch: number | undefined) => {
    if (isBroken) throw new Error("broken");
    happened.push("begins");
    epochs.push(epoch);
    await new Promise((resolve) => setImmediate(resolve));
    return {
      close: async () => {
        happened.push("ends");
      },
    };
  };
  const failed: unknown[] = [];
  const alone = await new Leadership().whileLeading(start, (error) => failed.push(error));
  assert.deepEqual(happened, ["begins"]);
  await alone.close();
  assert.deepEqual(happened.splice(0), ["begins", "ends"]);
  const clock = new ManualClock();
  const leadership = new Leadership(clock);
  const led = await leadership.whileLeading(start, (error) => failed.push(error));
  assert.deepEqual(happened, []);
  leadership.begin(1);
  leadership.end();
  leadership.begin(2);
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(happened.at(-1), "begins");
  assert.equal(
    happened.filter((what) => what === "begins").length - happened.filter((what) => what === "ends").length,
    1,
  );
  assert.equal(epochs.at(-1), 2, "what was begun in an epoch that is over has ended");
  await led.close();
  assert.equal(happened.at(-1), "ends");
  leadership.end();
  isBroken = true;
  await leadership.whileLeading(start, (error) => failed.push(error));
  assert.equal(failed.length, 0);
  leadership.begin();
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(failed.length, 1);
  isBroken = false;
  clock.advance(2_000);
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(happened.at(-1), "begins", "what could not begin is begun again");
  isBroken = true;
  await assert.rejects(
    leadership.whileLeading(start, () => undefined),
    /broken/,
  );
});
