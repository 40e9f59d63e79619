import assert from "node:assert/strict";
import { test } from "node:test";
import type { Config } from "./config.js";
import { problemText } from "./config.js";
import { exampleFile, jsonSchema, shownSettings } from "./describe.js";
import { createLiveConfig, type LoadedConfig, type LoadResult, loadConfig, type Sources } from "./load.js";
import { allSettings, settings } from "./schema.js";

const npub = "npub180cvv07tjdrrgpa0j7j7tmnyl2yr6yr7l8j4s3evf6u64th6gkwsyjh6w6";
const npubHex = "3bf0c63fcb93463407af97a5e5ee64fa883d107ef9e558472c4eb9aaaefa459d";

interface Given {
  readonly flags?: Record<string, string>;
  readonly environment?: Record<string, string>;
  readonly file?: string;
}

function load({ flags = {}, environment = {}, file }: Given): LoadResult {
  const sources: Sources = {
    flags,
    environment,
    configPath: file === undefined ? undefined : "x.conf",
    readFile: () => file ?? "",
    surroundings: { logIsTerminal: false, cores: 3 },
  };
  return loadConfig(sources);
}

function loaded(given: Given): LoadedConfig {
  const result = load(given);
  assert.ok(result.ok, result.ok ? "" : result.problems.map(problemText).join("\n"));
  return result;
}

const configOf = (given: Given): Config => loaded(given).config;

function faults(given: Given): string[] {
  const result = load(given);
  assert.ok(!result.ok, "faults were expected");
  return result.problems.map(problemText);
}

test("every default is valid and nothing is needed to start on loopback", () => {
  const config = configOf({});
  assert.equal(config.domain, "localhost:7334");
  assert.equal(config.relayName, "localhost:7334 grasp relay");
  assert.equal(config.gitDataPath, "data/git");
  assert.equal(config.relayDataPath, "data/relay");
  assert.equal(config.logFormat, "json");
  assert.equal(config.gitPackConcurrent, 3);
  assert.equal(config.archiveReadOnly, true);
  assert.equal(config.maxMessageBytes, 5 * 2 ** 20);
  assert.equal(config.negentropyMaxFrameBytes, 500_000);
  assert.equal(config.maxFutureSecs, 900);
});

test("a flag wins over the environment, the environment over the file, the file over the default", () => {
  const file = "NGIT_MAX_LIMIT=3000\nNGIT_DEFAULT_LIMIT=30\nNGIT_PING_INTERVAL_SECS=3\n";
  const environment = { NGIT_MAX_LIMIT: "2000", NGIT_DEFAULT_LIMIT: "20" };
  const result = loaded({ file, environment, flags: { "max-limit": "1000" } });
  const { maxLimit, defaultLimit, pingIntervalSecs, sendStallSecs } = result.config;
  assert.deepEqual([maxLimit, defaultLimit, pingIntervalSecs, sendStallSecs], [1000, 20, 3, 60]);
  const origins = ["NGIT_MAX_LIMIT", "NGIT_DEFAULT_LIMIT", "NGIT_PING_INTERVAL_SECS", "NGIT_SEND_STALL_SECS"] as const;
  assert.deepEqual(
    origins.map((name) => result.origins.get(name)),
    ["flag", "environment", "file", "default"],
  );
});

test("an empty value is no value, but an empty list is a list", () => {
  const file = `NGIT_LOG_LEVEL=warn\nNGIT_REPOSITORY_BLACKLIST=spam\n`;
  const config = configOf({ file, environment: { NGIT_LOG_LEVEL: "", NGIT_REPOSITORY_BLACKLIST: "" } });
  assert.equal(config.logLevel, "warn");
  assert.deepEqual(config.repositoryBlacklist, []);
});

test("the two flags of the hunting throttle have their older names too", () => {
  const config = configOf({ flags: { "sync-domain-concurrent": "7", "sync-domain-rate-limit": "9" } });
  assert.deepEqual([config.gitDomainConcurrent, config.gitDomainRate], [7, 9]);
});

const good: readonly [name: string, text: string, property: keyof Config, value: unknown][] = [
  ["NGIT_BIND_ADDRESS", "[::1]:80", "bindAddress", { host: "::1", port: 80 }],
  ["NGIT_DOMAIN", "Git.Example.com:8080/Base/", "domain", "git.example.com:8080/Base"],
  ["NGIT_MAX_EVENT_BYTES", "512 KiB", "maxEventBytes", 524_288],
  ["NGIT_PURGATORY_EXPIRY_SECS", "30m", "purgatoryExpirySecs", 1800],
  ["NGIT_SYNC_BATCH_WINDOW_MS", "2s", "syncBatchWindowMs", 2000],
  ["NGIT_UNHOST_GRACE_DAYS", "48h", "unhostGraceDays", 2],
  ["NGIT_PUSH_STRICT", "yes", "pushStrict", true],
  ["NGIT_ADMIN_NPUBS", `${npub}, ${npubHex.toUpperCase()}`, "adminNpubs", [npubHex, npubHex]],
  [
    "NGIT_REPOSITORY_WHITELIST",
    `${npub},${npub}/a%2Cb,tool,${npubHex}/x/y`,
    "repositoryWhitelist",
    [
      { type: "author", pubkey: npubHex },
      { type: "repository", pubkey: npubHex, identifier: "a,b" },
      { type: "identifier", identifier: "tool" },
      { type: "repository", pubkey: npubHex, identifier: "x/y" },
    ],
  ],
  [
    "NGIT_SYNC_BOOTSTRAP_RELAY_URL",
    "relay.example.com,ws://127.0.0.1:1",
    "syncBootstrapRelayUrl",
    ["wss://relay.example.com", "ws://127.0.0.1:1"],
  ],
  [
    "NGIT_GIT_DOMAIN_OVERRIDES",
    "Codeberg.org=10/60",
    "gitDomainOverrides",
    [{ host: "codeberg.org", concurrent: 10, startsPerMinute: 60 }],
  ],
  ["NGIT_PACK_STORE", "directory:/srv/packs", "packStore", { type: "directory", path: "/srv/packs" }],
  ["NGIT_PACK_STORE", "s3:holdfast.packs-1", "packStore", { type: "s3", bucket: "holdfast.packs-1" }],
  ["NGIT_RELAY_OWNER_NSEC", "file:/k", "relayOwnerNsec", { type: "file", path: "/k" }],
  ["NGIT_RELAY_OWNER_NSEC", "AB".repeat(32), "relayOwnerNsec", { type: "key", secretHex: "ab".repeat(32) }],
];
for (const [name, text, property, value] of good) {
  test(`${name}=${text.slice(0, 40)} is understood`, () => {
    assert.deepEqual(configOf({ environment: { [name]: text } })[property], value);
  });
}

const bad: readonly [name: string, text: string, wanted: RegExp][] = [
  ["NGIT_BIND_ADDRESS", "7334", /address:port/],
  ["NGIT_BIND_ADDRESS", "127.0.0.1:70000", /address:port/],
  ["NGIT_DOMAIN", "https://git.example.com", /without a scheme/],
  ["NGIT_DOMAIN", "a b", /without a scheme/],
  ["NGIT_MAX_LIMIT", "many", /whole number, 1 or more; "many" is not/],
  ["NGIT_MAX_LIMIT", "0", /1 or more/],
  ["NGIT_MAX_LIMIT", "1e3", /whole number/],
  ["NGIT_MAX_EVENT_BYTES", "5 apples", /number of bytes/],
  ["NGIT_MAX_EVENT_BYTES", "2MiB", /to 1048576|1 MiB|1MiB/],
  ["NGIT_MAX_DELETION_TARGETS", "1001", /1 to 1000/],
  ["NGIT_UNHOST_GRACE_DAYS", "36h", /whole number of days/],
  ["NGIT_PING_INTERVAL_SECS", "-1", /whole number of seconds/],
  ["NGIT_DISK_PUSH_MAX_PERCENT", "101", /from 1 to 100/],
  ["NGIT_PUSH_STRICT", "maybe", /true or false/],
  ["NGIT_DATABASE_BACKEND", "sqlite", /one of lmdb, memory, postgres/],
  ["NGIT_PACK_STORE", "/srv/packs", /directory: and a path, or s3: and a bucket's name/],
  ["NGIT_PACK_STORE", "s3:Packs_1", /bucket's name/],
  ["NGIT_DATABASE_SCHEMA", "a; DROP", /lower-case letter/],
  ["NGIT_S3_REGION", "a b", /without spaces/],
  ["NGIT_LOG_LEVEL", "loud", /one of trace/],
  ["NGIT_ADMIN_NPUBS", `${npub},bob`, /"bob" is not/],
  ["NGIT_REPOSITORY_WHITELIST", "npub1abc/tool", /"npub1abc\/tool" is not/],
  ["NGIT_TRUSTED_PROXIES", "10.0.0.0/33", /CIDR/],
  ["NGIT_GIT_DOMAIN_OVERRIDES", "host=0/1", /host=concurrent\/rate/],
  ["NGIT_SYNC_BOOTSTRAP_RELAY_URL", "http://x", /relay URL/],
  ["NGIT_METRICS_TOKEN", "short", /16 to 256/],
  ["NGIT_RELAY_NAME", "a\u0007b", /one line of text/],
];
for (const [name, text, wanted] of bad) {
  test(`${name}=${JSON.stringify(text.slice(0, 40))} is refused with the key and what it wants`, () => {
    const found = faults({ environment: { [name]: text } });
    assert.equal(found.length, 1);
    assert.ok(found[0]?.startsWith(`${name}: `), found[0]);
    assert.match(found[0] ?? "", wanted);
  });
}

test("all faults are reported at once, wherever they are", () => {
  const found = faults({
    flags: { "max-limt": "1", "ping-interval-secs": "x" },
    environment: { NGIT_LOG_LEVEL: "loud", NGIT_BIND_ADDRESS: "0.0.0.0:80" },
    file: "NGIT_DOMIAN=x\nnonsense\nNGIT_TEST=1\nNGIT_TEST=0\n",
  });
  const text = found.join("\n");
  assert.match(text, /--max-limt: is an unknown flag\. Did you mean --max-limit\?/);
  assert.match(text, /--ping-interval-secs: must be/);
  assert.match(text, /NGIT_LOG_LEVEL: must be/);
  assert.match(text, /NGIT_DOMIAN: line 1 sets an unknown name\. Did you mean NGIT_DOMAIN\?/);
  assert.match(text, /line 2: is neither/);
  assert.match(text, /NGIT_TEST: stands on line 3 and again on line 4/);
  assert.match(text, /NGIT_DOMAIN: is required because the server listens on 0\.0\.0\.0:80/);
  assert.equal(found.length, 7);
});

test("settings that contradict each other are refused", () => {
  const environment = { NGIT_DEFAULT_LIMIT: "10", NGIT_MAX_LIMIT: "5", NGIT_METRICS_BIND_ADDRESS: "127.0.0.1:7334" };
  const text = faults({ environment }).join("\n");
  assert.match(text, /NGIT_DEFAULT_LIMIT: is 10 and so more than NGIT_MAX_LIMIT \(5\)/);
  assert.match(text, /NGIT_METRICS_BIND_ADDRESS: is the same/);
});

test("a machine of a cluster needs a database and a pack store, each secret once, and a key with its secret", () => {
  const postgres = { NGIT_DATABASE_BACKEND: "postgres" };
  const cases: readonly (readonly [environment: Record<string, string>, wanted: RegExp])[] = [
    [postgres, /NGIT_DATABASE_URL: is required with the postgres backend/],
    [postgres, /NGIT_PACK_STORE: is required with the postgres backend/],
    [
      { NGIT_DATABASE_URL: "postgres://h/d", NGIT_DATABASE_URL_FILE: "/f" },
      /NGIT_DATABASE_URL_FILE: is set beside NGIT_DATABASE_URL/,
    ],
    [
      { NGIT_S3_ACCESS_KEY_ID: "i", NGIT_S3_SECRET_ACCESS_KEY: "s", NGIT_S3_SECRET_ACCESS_KEY_FILE: "/f" },
      /NGIT_S3_SECRET_ACCESS_KEY_FILE: is set beside/,
    ],
    [{ NGIT_S3_ACCESS_KEY_ID: "i" }, /NGIT_S3_SECRET_ACCESS_KEY: is missing/],
    [{ NGIT_S3_SECRET_ACCESS_KEY_FILE: "/f" }, /NGIT_S3_ACCESS_KEY_ID: is missing/],
  ];
  for (const [environment, wanted] of cases) assert.match(faults({ environment }).join("\n"), wanted);
});

test("the usual file is read when no other is named, and need not be there", () => {
  const load = (environment: Record<string, string>, readFile: (path: string) => string) =>
    loadConfig({
      ...{ flags: {}, environment, configPath: undefined, usualPath: "/etc/holdfast.conf", readFile },
      surroundings: { logIsTerminal: false, cores: 2 },
    });
  const read: string[] = [];
  const readFile = (path: string): string => {
    read.push(path);
    return "NGIT_MAX_LIMIT=777\nNGIT_DEFAULT_LIMIT=77";
  };
  const usual = load({}, readFile);
  assert.ok(usual.ok);
  assert.equal(usual.config.maxLimit, 777);
  load({ NGIT_CONFIG: "/other" }, readFile);
  assert.deepEqual(read, ["/etc/holdfast.conf", "/other"]);
  const refusing = (code: string) => () => {
    throw Object.assign(new Error(code), { code });
  };
  assert.ok(load({}, refusing("ENOENT")).ok);
  const closed = load({}, refusing("EACCES"));
  assert.ok(!closed.ok);
  assert.match(problemText(closed.problems[0]!), /^\/etc\/holdfast\.conf: .*cannot be read \(EACCES\)/);
});

test("a config file that cannot be read is a fault that names the way it was given", () => {
  const result = loadConfig({
    flags: {},
    environment: { NGIT_CONFIG: "/nowhere" },
    configPath: undefined,
    readFile: () => {
      throw Object.assign(new Error("no"), { code: "ENOENT" });
    },
    surroundings: { logIsTerminal: false, cores: 1 },
  });
  assert.ok(!result.ok);
  assert.match(problemText(result.problems[0]!), /^NGIT_CONFIG: the file "\/nowhere" cannot be read \(ENOENT\)/);
});

test("an unknown NGIT_ environment variable only warns, and other variables say nothing", () => {
  const result = loaded({ environment: { NGIT_OWNER_NPUB: "x", NGIT_MAX_LIMITS: "1", HOME: "/root" } });
  assert.equal(result.warnings.length, 2);
  assert.match(result.warnings.join("\n"), /NGIT_MAX_LIMITS: .*did you mean NGIT_MAX_LIMIT\?\nNGIT_OWNER_NPUB: /);
});

test("NGIT_TEST shortens intervals but not what is set by hand", () => {
  const config = configOf({ environment: { NGIT_TEST: "1", NGIT_SYNC_STARTUP_JITTER_MS: "900" } });
  assert.equal(config.syncBatchWindowMs, 200);
  assert.equal(config.purgatorySweepIntervalMs, 200);
  assert.equal(config.syncStartupJitterMs, 900);
  assert.equal(config.gitHuntSyncDelayMs, 1200);
  assert.equal(config.gitHuntDirectDelayMs, 180_000);
});

test("secrets appear neither in faults nor in what is shown", () => {
  const secret = "nsec1thisisnotakeybutsecretallthesame";
  const text = faults({
    environment: { NGIT_RELAY_OWNER_NSEC: secret, NGIT_DATABASE_URL: "http://u:passw0rd@h" },
  }).join("\n");
  assert.doesNotMatch(text, /notakey|passw0rd/);
  const token = "a-token-of-some-length";
  const shown = JSON.stringify(
    shownSettings(loaded({ environment: { NGIT_RELAY_OWNER_NSEC: "11".repeat(32), NGIT_METRICS_TOKEN: token } })),
  );
  assert.doesNotMatch(shown, /1111|a-token/);
  assert.match(shown, /\*{8}/);
});

test("a reload takes what may change, names what needs a restart, and changes nothing on a fault", () => {
  let environment: Record<string, string> = { NGIT_MAX_LIMIT: "1000" };
  const live = createLiveConfig(loaded({ environment }), () => load({ environment }));
  const told: string[] = [];
  live.onChange((config, changed) => told.push(`${changed.join()} ${config.maxLimit}`));
  assert.deepEqual(live.reload(), { ok: true, changed: [], needsRestart: [], warnings: [] });
  environment = { NGIT_MAX_LIMIT: "2000", NGIT_DATA_PATH: "/elsewhere", NGIT_RELAY_NAME: "x" };
  const result = live.reload();
  assert.ok(result.ok);
  assert.deepEqual(result.changed, ["NGIT_MAX_LIMIT"]);
  assert.ok(result.needsRestart.includes("NGIT_DATA_PATH") && result.needsRestart.includes("NGIT_RELAY_NAME"));
  assert.equal(live.current.dataPath, "./data");
  assert.deepEqual(told, ["NGIT_MAX_LIMIT 2000"]);
  environment = { NGIT_MAX_LIMIT: "x" };
  assert.ok(!live.reload().ok);
  assert.equal(live.current.maxLimit, 2000);
});

test("names carry the unit of their value, flags and properties are unique", () => {
  for (const setting of allSettings) {
    if (setting.kind.unit) assert.ok(setting.name.endsWith(`_${setting.kind.unit}`), setting.name);
    assert.match(setting.help, /^.*[^ ]$/);
  }
  const flags = allSettings.flatMap((setting) => [setting.flag, ...setting.aliases]);
  assert.equal(new Set(flags).size, flags.length);
  assert.equal(allSettings.length, Object.keys(settings).length);
  assert.equal(new Set(allSettings.map((setting) => setting.property)).size, allSettings.length);
});

test("the example file with every default uncommented is the default configuration", () => {
  const names = new Set<string>(
    allSettings.filter((setting) => setting.fallback !== undefined).map((setting) => setting.name),
  );
  const file = exampleFile().replace(/^#(NGIT_\w+)=/gm, (line, name: string) => (names.has(name) ? `${name}=` : line));
  assert.deepEqual(configOf({ file }), configOf({}));
});

test("the JSON schema knows every name and refuses others", () => {
  const schema = jsonSchema() as { properties: Record<string, { description: string }>; additionalProperties: boolean };
  assert.deepEqual(Object.keys(schema.properties), Object.keys(settings));
  assert.equal(schema.additionalProperties, false);
  assert.match(schema.properties.NGIT_DOMAIN?.description ?? "", /public URL/);
});

test("loopback stands for both of its networks, and a plain address for itself", () => {
  const { trustedProxies } = configOf({ environment: { NGIT_TRUSTED_PROXIES: "loopback, 10.0.0.0/8, fe80::1" } });
  assert.deepEqual(
    trustedProxies.map(({ address, prefixBits }) => `${address}/${prefixBits}`),
    ["127.0.0.0/8", "::1/128", "10.0.0.0/8", "fe80::1/128"],
  );
});

test("a name that looks like a setting of a private service and is none stops the start", () => {
  for (const name of ["NGIT_PRIVATE_MEMBER", "NGIT_PRIVATE_MOD", "ngit_private_mode", "NGIT_PRIVATEMODE"]) {
    const told = faults({ environment: { [name]: "true" } });
    assert.equal(told.length, 1, name);
    assert.match(told[0] ?? "", new RegExp(`^${name}: looks like a setting of a private service and is not known`));
  }
  assert.match(faults({ environment: { NGIT_PRIVATE_MOD: "true" } })[0] ?? "", /Did you mean NGIT_PRIVATE_MODE\?/);
});

test("private settings without a word on the mode stop the start: nobody runs publicly by forgetting it", () => {
  const forgotten = faults({ environment: { NGIT_PRIVATE_MEMBERS: npub } });
  assert.match(forgotten[0] ?? "", /^NGIT_PRIVATE_MODE: is not set, but NGIT_PRIVATE_MEMBERS is/);
  assert.match(faults({ environment: { NGIT_PRIVATE_MODE: " " } })[0] ?? "", /^NGIT_PRIVATE_MODE: is set and empty/);
  assert.match(faults({ file: `NGIT_PRIVATE_PEERS=true\n` })[0] ?? "", /^NGIT_PRIVATE_MODE: is not set/);
  assert.match(
    faults({ environment: { NGIT_PRIVATE_MODE: "ture" } })[0] ?? "",
    /^NGIT_PRIVATE_MODE: must be true or false/,
  );
  assert.equal(
    configOf({ environment: { NGIT_PRIVATE_MODE: "false", NGIT_PRIVATE_MEMBERS: npub } }).privateMode,
    false,
  );
});

test("a private service is configured by its members, and its metrics are not for everybody", () => {
  const environment = {
    NGIT_PRIVATE_MODE: "true",
    NGIT_PRIVATE_MEMBERS: npub,
    NGIT_PRIVATE_PUBLIC_ORIGIN: "https://Git.example.com:443/",
  };
  const config = configOf({ environment });
  assert.deepEqual([config.privateMode, config.privateMembers, config.privatePeers], [true, [npubHex], false]);
  assert.equal(config.privatePublicOrigin, "https://git.example.com");
  const shown = faults({ environment: { ...environment, NGIT_METRICS_PUBLIC: "true" } });
  assert.match(shown[0] ?? "", /^NGIT_METRICS_PUBLIC: shows everybody the metrics of a private service/);
  const byHash = faults({ environment: { ...environment, NGIT_BLOSSOM_READ: "true" } });
  assert.match(byHash[0] ?? "", /^NGIT_BLOSSOM_READ: shows everybody the large files of a private service/);
  const off = faults({ environment: { NGIT_LFS_ENABLE: "false", NGIT_BLOSSOM_READ: "true" } });
  assert.match(off[0] ?? "", /^NGIT_BLOSSOM_READ: serves large files, and NGIT_LFS_ENABLE is off/);
  for (const bad of ["git.example.com", "https://git.example.com/base", "https://a@git.example.com", "wss://x"]) {
    assert.equal(faults({ environment: { ...environment, NGIT_PRIVATE_PUBLIC_ORIGIN: bad } }).length, 1, bad);
  }
});

test("a second name means the same setting, in the environment, in the file and as a flag", () => {
  assert.equal(configOf({ environment: { NGIT_RELAY_FILTER_LIMIT: "600" } }).maxLimit, 600);
  assert.equal(configOf({ file: "NGIT_RELAY_MAX_SUBSCRIPTIONS=7\n" }).maxSubscriptionsPerConnection, 7);
  assert.equal(configOf({ flags: { "sync-allow-non-global-targets": "true" } }).allowPrivateAddresses, true);
  const { config, warnings, origins } = loaded({ environment: { NGIT_TRUSTED_PROXY_CIDRS: "10.0.0.0/8" } });
  assert.deepEqual(config.trustedProxies, [{ address: "10.0.0.0", prefixBits: 8 }]);
  assert.equal(origins.get("NGIT_TRUSTED_PROXIES"), "environment");
  assert.deepEqual(warnings, []);
});

test("two names of one setting that say different things are a fault, the same thing twice is none", () => {
  const both = (text: string) => ({
    environment: { NGIT_TRUSTED_PROXIES: "loopback", NGIT_TRUSTED_PROXY_CIDRS: text },
  });
  assert.deepEqual(faults(both("10.0.0.0/8")), [
    "NGIT_TRUSTED_PROXY_CIDRS: is another name of NGIT_TRUSTED_PROXIES, and the two say different things. Remove one of them; the name here is NGIT_TRUSTED_PROXIES",
  ]);
  assert.equal(configOf(both("127.0.0.0/8,::1")).trustedProxies.length, 2);
  assert.match(
    faults({ file: "NGIT_MAX_LIMIT=9\nNGIT_RELAY_FILTER_LIMIT=8\n" })[0] ?? "",
    /^NGIT_RELAY_FILTER_LIMIT: /,
  );
  // A flag wins over the environment, whatever name either has.
  const flags = { "max-limit": "700" };
  assert.equal(configOf({ flags, environment: { NGIT_RELAY_FILTER_LIMIT: "600" } }).maxLimit, 700);
});

test("a base path may stand in the domain or apart from it, not differently in both", () => {
  const domainOf = (NGIT_DOMAIN: string, NGIT_BASE_PATH: string): string =>
    configOf({ environment: { NGIT_DOMAIN, NGIT_BASE_PATH } }).domain;
  for (const [domain, path, expected] of [
    ["git.example.com", "/base", "git.example.com/base"],
    ["git.example.com", "base/", "git.example.com/base"],
    ["git.example.com", "/", "git.example.com"],
    ["git.example.com:8080", "/a/b", "git.example.com:8080/a/b"],
    ["git.example.com/base", "/base", "git.example.com/base"],
    ["git.example.com/base", "", "git.example.com/base"],
  ] as const)
    assert.equal(domainOf(domain, path), expected, `${domain} ${path}`);
  assert.equal(configOf({ environment: { NGIT_BASE_PATH: "/base" } }).domain, "localhost:7334/base");
  for (const path of ["/other", "/"]) {
    const environment = { NGIT_DOMAIN: "git.example.com/base", NGIT_BASE_PATH: path };
    assert.match(faults({ environment })[0] ?? "", /^NGIT_BASE_PATH: is .* and NGIT_DOMAIN has the path \/base/);
  }
  for (const path of ["/../up", "/a//b", "/a b", "https://x"])
    assert.match(faults({ environment: { NGIT_BASE_PATH: path } })[0] ?? "", /^NGIT_BASE_PATH: must be a path/, path);
});

test("index relays: three public ones, none on this machine or in a test, and an empty list is an empty list", () => {
  const relays = (environment: Record<string, string>): readonly string[] => configOf({ environment }).userIndexRelays;
  const NGIT_DOMAIN = "git.example.com";
  assert.deepEqual(relays({ NGIT_DOMAIN }), [
    "wss://purplepag.es",
    "wss://index.hzrd149.com",
    "wss://indexer.coracle.social",
  ]);
  assert.deepEqual(relays({}), []);
  assert.deepEqual(relays({ NGIT_DOMAIN, NGIT_TEST: "1" }), []);
  assert.deepEqual(relays({ NGIT_DOMAIN, NGIT_USER_INDEX_RELAYS: "" }), []);
  assert.deepEqual(relays({ NGIT_USER_INDEX_RELAYS: "a.example" }), ["wss://a.example"]);
  assert.equal(configOf({ environment: { NGIT_DOMAIN, NGIT_USER_INDEX_RELAYS: "" } }).syncPlusEnabled, true);
});

test("a private service gathers nothing from strangers' relays and tells none of them of itself", () => {
  const environment = { NGIT_PRIVATE_MODE: "true", NGIT_SYNC_PLUS_ENABLED: "true", NGIT_PUBLISH_PROFILE: "true" };
  const config = configOf({ environment: { ...environment, NGIT_PRIVATE_MEMBERS: npub } });
  assert.deepEqual([config.syncPlusEnabled, config.publishProfile], [false, false]);
});

test("an open socket is only taken from a test suite", () => {
  assert.equal(configOf({ environment: { NGIT_TEST: "1", NGIT_TEST_LISTENER_FD: "3" } }).testListenerFd, 3);
  assert.match(
    faults({ environment: { NGIT_TEST_LISTENER_FD: "3" } })[0] ?? "",
    /^NGIT_TEST_LISTENER_FD: is only for test suites/,
  );
});
