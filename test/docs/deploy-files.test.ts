// What is shipped for containers and systemd, as far as it can be checked without a container engine: structure, the
// paths it names, and that the files the image gets are enough to run.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, describe, test } from "node:test";
import { settingNamed } from "../../src/config/schema.js";

const folder = mkdtempSync(join(tmpdir(), "holdfast-deploy-"));
after(() => rmSync(folder, { recursive: true, force: true }));

interface Instruction {
  readonly name: string;
  readonly rest: string;
}

/** Comments dropped, continued lines joined. */
const instructions: readonly Instruction[] = readFileSync("deploy/Dockerfile", "utf8")
  .replace(/^#.*\n/gm, "")
  .replace(/\\\n/g, " ")
  .split("\n")
  .filter((line) => line.trim() !== "")
  .map((line) => {
    const [, name = "", rest = ""] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? [];
    return { name, rest };
  });
const stages = instructions.reduce<Instruction[][]>((found, instruction) => {
  if (instruction.name === "FROM") found.push([]);
  found.at(-1)?.push(instruction);
  return found;
}, []);
const last = stages.at(-1) ?? [];
const all = (name: string, among: readonly Instruction[] = instructions): string[] =>
  among.filter((instruction) => instruction.name === name).map(({ rest }) => rest);

/** Copies from the checkout, not from another stage: sources and destination. */
const copies = (among: readonly Instruction[]): { readonly from: string[]; readonly to: string }[] =>
  all("COPY", among)
    .filter((rest) => !rest.startsWith("--from="))
    .map((rest) => {
      const words = rest.split(/\s+/);
      return { from: words.slice(0, -1), to: words.at(-1) ?? "" };
    });

describe("Dockerfile", () => {
  test("every line is an instruction that is known, and nothing comes from a URL", () => {
    const known = ["FROM", "WORKDIR", "COPY", "RUN", "ARG", "ENV", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL"];
    known.push("HEALTHCHECK", "ENTRYPOINT", "CMD");
    for (const { name, rest } of instructions) assert.ok(known.includes(name), `${name} ${rest}`);
    assert.doesNotMatch(instructions.map(({ rest }) => rest).join("\n"), /curl|wget|\bADD\b/);
  });

  test("bases are pinned to a major version of at least Node 20, and to a Debian release", () => {
    for (const base of all("FROM")) {
      const [, major = "0"] = /^node:(\d+)-bookworm-slim(?: AS \w+)?$/.exec(base) ?? [];
      assert.ok(Number(major) >= 20, base);
    }
  });

  test("packages are installed from the lock file and without their scripts; the image gets no development packages", () => {
    const runs = all("RUN").join("\n");
    assert.match(runs, /npm ci --ignore-scripts/);
    assert.match(runs, /npm prune --omit=dev --ignore-scripts/);
    assert.doesNotMatch(runs, /npm (install|i) /);
    assert.doesNotMatch(all("RUN", last).join("\n"), /npm/);
  });

  test("runs as somebody without rights, on a volume that is his, with git and libsecp256k1", () => {
    assert.deepEqual(all("USER", last), ["10001:10001"]);
    assert.deepEqual(all("VOLUME", last), ["/data"]);
    assert.ok(last.findIndex(({ name }) => name === "USER") > last.findLastIndex(({ name }) => name === "RUN"));
    const runs = all("RUN", last).join("\n");
    for (const part of [" git ", " libsecp256k1-1 ", " tini ", "-o holdfast -g holdfast -m 0700 /data"]) {
      assert.ok(runs.includes(part), part);
    }
    assert.match(all("ENV", last).join(" "), /NGIT_DATA_PATH=\/data\b/);
  });

  test("signals reach the server: no shell is process 1", () => {
    assert.deepEqual(JSON.parse(all("ENTRYPOINT", last)[0] ?? ""), [
      "/usr/bin/tini",
      "--",
      "node",
      "/app/bin/holdfast",
    ]);
    assert.deepEqual(JSON.parse(all("CMD", last)[0] ?? ""), ["serve"]);
    assert.deepEqual(all("STOPSIGNAL", last), ["SIGTERM"]);
  });

  test("its health check asks /healthz of the port the image listens on, with a program that compiles", () => {
    const [check = ""] = all("HEALTHCHECK", last);
    const command = JSON.parse(/CMD (\[.*\])$/.exec(check)?.[1] ?? "[]") as string[];
    assert.deepEqual(command.slice(0, 2), ["node", "-e"]);
    const port = /NGIT_BIND_ADDRESS=0\.0\.0\.0:(\d+)/.exec(all("ENV", last).join(" "))?.[1];
    assert.ok(command[2]?.includes(`http://127.0.0.1:${port}/healthz`), check);
    // Nobody listens on port 9 here: an unhealthy server is exit code 1.
    const ended = spawnSync(process.execPath, ["-e", (command[2] ?? "").replace(`:${port}/`, ":9/")]);
    assert.equal(ended.status, 1, String(ended.stderr));
  });

  test("what it copies exists and is let through by its ignore file", () => {
    const allowed = readFileSync("deploy/Dockerfile.dockerignore", "utf8").trim().split("\n");
    assert.equal(allowed[0], "*");
    for (const { from } of copies(instructions)) {
      for (const path of from) {
        assert.ok(existsSync(path), path);
        assert.ok(allowed.includes(`!${path}`), `${path} is ignored`);
      }
    }
  });

  test("the image gets the style sheets and scripts that pages name, where the program reads them", () => {
    assert.ok(copies(last).some(({ from, to }) => from.join() === "src/web/assets" && to === "./src/web/assets"));
  });

  test("the files the image gets are enough to run the program, without building anything", () => {
    const app = join(folder, "app");
    for (const { from, to } of copies(last)) {
      for (const path of from) {
        const target = to.endsWith("/") ? join(app, to, path) : join(app, to);
        mkdirSync(dirname(target), { recursive: true });
        cpSync(path, target, { recursive: true });
      }
    }
    const isShipped = (path: string): boolean => !/\.test\.js|\/testing(\/|$)/.test(path);
    cpSync("dist/src", join(app, "dist/src"), { recursive: true, filter: isShipped });
    writeFileSync(join(app, "dist/build.json"), '{"commit":"abc"}\n');
    symlinkSync(join(process.cwd(), "node_modules"), join(app, "node_modules"));
    // With the settings of image and compose file together.
    const image = all("ENV", last)
      .join(" ")
      .matchAll(/(\w+)=(\S+)/g);
    const compose = readFileSync("deploy/compose.yaml", "utf8").matchAll(/^ {6}(NGIT_\w+): (\S+)/gm);
    const settings = [...image, ...compose].map(([, name = "", value = ""]) => [name, value] as const);
    const env = Object.fromEntries([...settings, ["PATH", process.env.PATH ?? ""], ["NGIT_DOMAIN", "git.example.com"]]);
    const run = (...args: string[]) =>
      spawnSync(process.execPath, [join(app, "bin/holdfast"), ...args], { encoding: "utf8", env });
    const version = run("version", "--json");
    assert.equal(version.status, 0, version.stderr);
    assert.equal(version.stderr, "", "nothing is installed or built");
    assert.equal((JSON.parse(version.stdout) as { commit?: string }).commit, "abc");
    const checked = run("config", "check");
    assert.equal(checked.status, 0, checked.stderr);
    const shown = run("config", "show");
    assert.match(shown.stdout, /172\.30\.73\.0\/24/);
    assert.ok(!existsSync(join(app, ".cache")));
  });
});

describe("compose and Caddy", () => {
  const compose = readFileSync("deploy/compose.yaml", "utf8");

  test("images have a major version, and the server is neither published nor privileged", () => {
    for (const [, image = ""] of compose.matchAll(/^\s+image: (\S+)$/gm)) assert.match(image, /^[a-z]+:\d/);
    const holdfast = /^ {2}holdfast:\n((?: {4}.*\n|\n)+)/m.exec(compose)?.[1] ?? "";
    assert.doesNotMatch(holdfast, /ports:|privileged|network_mode/);
    for (const part of ["read_only: true", "cap_drop:\n      - ALL", "no-new-privileges:true", "- data:/data"]) {
      assert.ok(holdfast.includes(part), part);
    }
  });

  test("files it names exist, and no tab stands in it", () => {
    assert.doesNotMatch(compose, /\t/);
    assert.ok(existsSync(join("deploy", /context: (\S+)/.exec(compose)?.[1] ?? "", "deploy/Dockerfile")));
    for (const [, path = ""] of compose.matchAll(/- (\.\/\S+?):/g)) assert.ok(existsSync(join("deploy", path)), path);
  });

  test("settings in compose, Dockerfile and unit are settings the program has", () => {
    const texts = [compose, readFileSync("deploy/Dockerfile", "utf8"), readFileSync("deploy/holdfast.service", "utf8")];
    for (const [name] of texts.join("\n").matchAll(/NGIT_[A-Z0-9_]+/g)) assert.ok(settingNamed(name), name);
  });

  test("X-Forwarded-For is believed from Caddy's network, and Caddy finds the server", () => {
    const subnet = /subnet: (\S+)/.exec(compose)?.[1] ?? "none";
    assert.ok(compose.includes(`NGIT_TRUSTED_PROXIES: loopback,${subnet}`));
    assert.match(compose, /UPSTREAM: holdfast:7334/);
    assert.match(readFileSync("deploy/Caddyfile", "utf8"), /reverse_proxy \{\$UPSTREAM:127\.0\.0\.1:7334\}/);
  });
});

describe("compose of several machines", () => {
  const compose = readFileSync("deploy/cluster/compose.yaml", "utf8");
  const machines = ["one", "two", "three"];

  test("files it names exist, images have a version, and no tab stands in it", () => {
    assert.doesNotMatch(compose, /\t/);
    assert.ok(existsSync(join("deploy/cluster", /context: (\S+)/.exec(compose)?.[1] ?? "", "deploy/Dockerfile")));
    for (const [, path = ""] of compose.matchAll(/- (\.\/\S+?):/g)) {
      assert.ok(existsSync(join("deploy/cluster", path)), path);
    }
    for (const [, image = ""] of compose.matchAll(/^\s+image: (\S+)$/gm)) assert.match(image, /^[a-z/]+:v?\d/);
  });

  test("every machine has a name and a volume of its own, and the settings of all are settings the program accepts", () => {
    for (const name of machines) {
      const service = new RegExp(`^ {2}${name}:\\n((?: {4}.*\\n)+)`, "m").exec(compose)?.[1] ?? "";
      assert.ok(service.includes(`NGIT_NODE_NAME: ${name}`), name);
      assert.ok(service.includes(`- ${name}:/data`), name);
      assert.doesNotMatch(service, /ports:|privileged/);
    }
    const settings = /^x-settings: &settings\n((?: {2}.*\n)+)/m.exec(compose)?.[1] ?? "";
    const values = Object.fromEntries(
      [...settings.matchAll(/^ {2}(NGIT_\w+): (\S.*)$/gm)].map(([, name = "", value = ""]) => [
        name,
        value
          .replace(/\$\{SERVER_KEY:[^}]*\}/, "ab".repeat(32))
          .replace(/\$\{DOMAIN:[^}]*\}/, "git.example.com")
          .replace(/\$\{[^}]*\}/g, "x"),
      ]),
    );
    const checked = spawnSync(process.execPath, ["dist/src/main.js", "config", "check"], {
      encoding: "utf8",
      env: { PATH: process.env.PATH ?? "", HOME: folder, ...values },
    });
    assert.equal(checked.status, 0, checked.stderr);
  });

  test("the load balancer knows every machine and asks whether it is ready, and is the one that X-Forwarded-For is believed from", () => {
    const caddy = readFileSync("deploy/cluster/Caddyfile", "utf8");
    assert.ok(caddy.includes(`reverse_proxy ${machines.map((name) => `${name}:7334`).join(" ")}`));
    assert.match(caddy, /health_uri \/readyz/);
    const subnet = /subnet: (\S+)/.exec(compose)?.[1] ?? "none";
    assert.ok(compose.includes(`NGIT_TRUSTED_PROXIES: loopback,${subnet}`));
  });

  test("what its .env must hold stands in the example", () => {
    const example = readFileSync("deploy/cluster/example.env", "utf8");
    const asked = [...compose.matchAll(/\$\{(\w+):\?/g)].map(([, name = ""]) => name);
    assert.ok(asked.length > 5);
    for (const name of asked) assert.match(example, new RegExp(`^${name}=`, "m"));
  });
});

describe("systemd unit", () => {
  const unit = readFileSync("deploy/holdfast.service", "utf8");
  const lines = unit.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  const values = (key: string): string[] =>
    lines.filter((line) => line.startsWith(`${key}=`)).map((line) => line.slice(key.length + 1));

  test("takes from the server what it does not need", () => {
    const wanted = {
      NoNewPrivileges: "yes",
      ProtectSystem: "strict",
      ProtectHome: "yes",
      PrivateTmp: "yes",
      StateDirectory: "holdfast",
      CapabilityBoundingSet: "",
      SystemCallFilter: "@system-service",
      KillMode: "mixed",
      ExecReload: "/bin/kill -HUP $MAINPID",
      User: "holdfast",
    };
    for (const [key, value] of Object.entries(wanted)) assert.deepEqual(values(key), [value], key);
    assert.deepEqual(values("MemoryDenyWriteExecute"), [], "V8 could not run");
  });

  test("starts the built program with a verb it has, and leaves it time to stop", () => {
    const [, program = "", verb = ""] = (values("ExecStart")[0] ?? "").split(" ");
    assert.ok(existsSync(program.replace("/opt/holdfast/", "")), program);
    assert.equal(verb, "serve");
    assert.ok(Number(values("TimeoutStopSec")[0]) > 5);
  });

  test("every line is a section or an assignment", () => {
    for (const line of lines) assert.match(line, /^(\[(Unit|Service|Install)\]|[A-Z][A-Za-z]+=.*)$/);
  });

  const analyzer = "systemd-analyze";
  const isInstalled = spawnSync(analyzer, ["--version"]).error === undefined;
  test("systemd-analyze finds no fault", { skip: isInstalled ? false : "systemd-analyze is not installed" }, () => {
    // Node is elsewhere on this machine.
    const path = join(folder, "holdfast.service");
    writeFileSync(path, unit.replace("/usr/bin/node", process.execPath));
    const verified = spawnSync(analyzer, ["verify", path], { encoding: "utf8" });
    const aboutOurs = verified.stderr.split("\n").filter((line) => line.includes("holdfast"));
    assert.deepEqual(aboutOurs, []);
    assert.equal(verified.status, 0, verified.stderr);
  });
});
