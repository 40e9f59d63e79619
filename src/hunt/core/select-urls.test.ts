import assert from "node:assert/strict";
import { test } from "node:test";
import { type CloneUrl, type ServiceName, serviceName } from "../../net/url.js";
import { huntDefaults } from "./config.js";
import { selectPullRequestUrls, selectUrls, spellingsToTry } from "./select-urls.js";

const ours = [serviceName("us.test"), serviceName("shared.test/grasp"), serviceName("us.test:8080")] as ServiceName[];
const limits = huntDefaults.urls;
const owners = (...clone: string[]) => ({ isOwners: true, clone });
const others = (...clone: string[]) => ({ isOwners: false, clone });
const urls = (...announcements: { isOwners: boolean; clone: string[] }[]): string[] =>
  selectUrls(announcements, ours, limits).map((target) => target.url);

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
    limits,
  );
  assert.deepEqual([first?.domain, first?.place], ["a.test", "a.test:8443"]);
  assert.deepEqual([second?.domain, second?.place], ["b.test", "b.test:80"]);
  assert.deepEqual([third?.domain, third?.place], ["[2606:4700::1]", "[2606:4700::1]:443"]);
});

test("a pull request has three URLs at most", () => {
  const clone = ["ssh://no.test/x", ...Array.from({ length: 5 }, (_, index) => `https://h${index}.test/x`)];
  assert.deepEqual(
    selectPullRequestUrls(clone, ours, limits).map((target) => target.domain),
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
