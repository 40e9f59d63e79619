import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type CloneUrl, type ServiceName, serviceName } from "../../net/url.js";
import type { Oid } from "../../nostr/nip34.js";
import { FetchPlan, selectPullRequestUrls, selectUrls, spellingsToTry } from "./fetch-plan.js";
import { huntConfig } from "./testing/config.js";
import { oid } from "./testing/driven-core.js";

const ids = (from: number, to: number): Oid[] => Array.from({ length: to - from }, (_, index) => oid(from + index));
const limits = { requests: 10, unadvertised: 8 };

/** A server that gives a request only if it gives every id of it. */
function run(plan: FetchPlan, gives: (id: Oid) => boolean): (readonly Oid[])[] {
  const requests: (readonly Oid[])[] = [];
  for (let asked = plan.next(); asked; asked = plan.next()) {
    requests.push(asked);
    plan.report(asked.every(gives) ? "arrived" : "refused");
  }
  return requests;
}

test("advertised ids are asked for in one request, at most eight others in a second", () => {
  const plan = new FetchPlan(ids(0, 120), new Set(ids(0, 100)), limits);
  const requests = run(plan, () => true);
  assert.deepEqual(requests, [ids(0, 100), ids(100, 108)]);
  assert.deepEqual(plan.arrived, ids(0, 108));
});

test("nothing advertised and nothing needed make no request", () => {
  assert.equal(new FetchPlan([], new Set(ids(0, 5)), limits).next(), undefined);
});

test("a refused set is halved until the missing id stands alone; the others arrive", () => {
  const plan = new FetchPlan(ids(0, 8), new Set(), limits);
  const requests = run(plan, (id) => id !== oid(5));
  assert.deepEqual(
    requests.map((request) => request.length),
    [8, 4, 4, 2, 1, 1, 2],
  );
  assert.deepEqual(plan.refused, [oid(5)]);
  assert.deepEqual(new Set(plan.arrived), new Set(ids(0, 8).filter((id) => id !== oid(5))));
});

test("an advertisement that was a lie is halved as well", () => {
  const plan = new FetchPlan(ids(0, 4), new Set(ids(0, 4)), limits);
  run(plan, (id) => id !== oid(0));
  assert.deepEqual(plan.refused, [oid(0)]);
  assert.deepEqual(plan.arrived, [2, 3, 1].map(oid).toSorted());
});

test("any other failure ends the plan and keeps what arrived", () => {
  const plan = new FetchPlan(ids(0, 4), new Set(ids(0, 2)), limits);
  plan.next();
  plan.report("arrived");
  plan.next();
  plan.report("failed");
  assert.equal(plan.next(), undefined);
  assert.deepEqual(plan.arrived, ids(0, 2));
  assert.deepEqual(plan.refused, []);
});

test("a server that answers 'not our ref' for ever gets no more requests than allowed", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 40 }),
      fc.integer({ min: 0, max: 40 }),
      fc.nat(12),
      (needed, offered, requests) => {
        const plan = new FetchPlan(ids(0, needed), new Set(ids(0, offered)), { requests, unadvertised: 8 });
        assert.ok(run(plan, () => false).length <= requests);
        assert.deepEqual(plan.arrived, []);
      },
    ),
  );
});

test("with requests enough, every id a server gives arrives and every other is known as refused", () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat(30), { maxLength: 12 }), fc.nat(30), (given, offered) => {
      const has = new Set(given.map(oid));
      const needed = ids(0, 30);
      const plan = new FetchPlan(needed, new Set(ids(0, offered)), { requests: 1_000, unadvertised: 8 });
      const asked = new Set([...needed.filter((_, index) => index < offered), ...needed.slice(offered).slice(0, 8)]);
      run(plan, (id) => has.has(id));
      assert.deepEqual(new Set(plan.arrived), new Set([...asked].filter((id) => has.has(id))));
      assert.deepEqual(new Set(plan.refused), new Set([...asked].filter((id) => !has.has(id))));
    }),
  );
});

test("using the planner out of turn is a bug", () => {
  const plan = new FetchPlan(ids(0, 2), new Set(), limits);
  assert.throws(() => plan.report("arrived"));
  plan.next();
  assert.throws(() => plan.next());
});

const ours = [serviceName("us.test"), serviceName("shared.test/grasp"), serviceName("us.test:8080")] as ServiceName[];
const urlLimits = huntConfig();
const owners = (...clone: string[]) => ({ isOwners: true, clone });
const others = (...clone: string[]) => ({ isOwners: false, clone });
const urls = (...announcements: { isOwners: boolean; clone: string[] }[]): string[] =>
  selectUrls(announcements, ours, urlLimits).map((target) => target.url);

test("the owner's URLs come first, in the announcement's order", () => {
  assert.deepEqual(
    urls(others("https://c.test/x"), owners("https://b.test/x", "https://a.test/x"), others("https://d.test/x")),
    ["https://b.test/x", "https://a.test/x", "https://c.test/x", "https://d.test/x"],
  );
});

for (const [what, url] of [
  ["ssh", "ssh://a.test/x"],
  ["scp form", "git@a.test:x.git"],
  ["git", "git://a.test/x"],
  ["file", "file:///x"],
  ["a path", "/srv/x"],
  ["a remote helper", "ext::sh -c x"],
  ["ws", "wss://a.test/x"],
  ["a user name", "https://me@a.test/x"],
  ["a password", "https://me:secret@a.test/x"],
  ["a control character", "https://a.test/x\n"],
  ["a host that ends in a dot", "https://a.test./x"],
  ["an option", "--upload-pack=x"],
  ["nothing", ""],
  ["our own service", "https://us.test/npub1/x.git"],
  ["our own service over http", "http://us.test/npub1/x.git"],
  ["our own service in capitals", "HTTPS://US.TEST/npub1/x.git"],
  ["our own service with its port written out", "https://us.test:443/npub1/x.git"],
  ["our own service at another port it has", "http://us.test:8080/npub1/x.git"],
  ["our own service under a base path", "https://shared.test/grasp/npub1/x.git"],
] as const) {
  test(`${what} is not hunted: ${JSON.stringify(url)}`, () => {
    assert.deepEqual(urls(owners(url, "https://good.test/x")), ["https://good.test/x"]);
  });
}

test("a neighbour of ours is not us", () => {
  const near = [
    "https://us.test.example/x",
    "https://shared.test/grasp2/x",
    "https://us.test:9000/x",
    "https://shared.test/x",
  ];
  assert.deepEqual(urls(owners(...near)), near);
});

test("at most five of an announcement, counted after those that cannot be used", () => {
  const many = Array.from({ length: 9 }, (_, index) => `https://h${index}.test/x`);
  assert.deepEqual(urls(owners("ssh://no.test/x", "https://us.test/x", ...many)), many.slice(0, 5));
});

test("at most three of a host, whatever its ports", () => {
  assert.deepEqual(
    urls(owners("https://a.test/1", "https://a.test:444/2", "http://a.test/3", "https://A.test/4", "https://b.test/5")),
    ["https://a.test/1", "https://a.test:444/2", "http://a.test/3", "https://b.test/5"],
  );
});

test("at most twenty of a repository", () => {
  const announcements = Array.from({ length: 30 }, (_, index) => others(`https://h${index}.test/x`));
  assert.equal(urls(...announcements).length, 20);
});

test("one server spelled twice is asked once, by https if it is listed so", () => {
  assert.deepEqual(urls(owners("http://a.test/x/", "https://a.test/x"), others("https://a.test//x")), [
    "https://a.test/x",
  ]);
});

test("a URL knows its throttle's domain and its certificate's place", () => {
  const [first, second, third] = selectUrls(
    [owners("https://A.test:8443/x", "http://b.test/x", "https://[2606:4700::1]/x")],
    ours,
    urlLimits,
  );
  assert.deepEqual([first?.domain, first?.place], ["a.test", "a.test:8443"]);
  assert.deepEqual([second?.domain, second?.place], ["b.test", "b.test:80"]);
  assert.deepEqual([third?.domain, third?.place], ["[2606:4700::1]", "[2606:4700::1]:443"]);
});

test("a pull request has three URLs at most", () => {
  const clone = ["ssh://no.test/x", ...Array.from({ length: 5 }, (_, index) => `https://h${index}.test/x`)];
  assert.deepEqual(
    selectPullRequestUrls(clone, ours, urlLimits).map((target) => target.domain),
    ["h0.test", "h1.test", "h2.test"],
  );
});

test("http is tried as https first, https only as it is", () => {
  assert.deepEqual(spellingsToTry("http://a.test:8080/x" as CloneUrl), [
    "https://a.test:8080/x",
    "http://a.test:8080/x",
  ]);
  assert.deepEqual(spellingsToTry("https://a.test/x" as CloneUrl), ["https://a.test/x"]);
});
