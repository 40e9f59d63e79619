// npm run package:deb — a Debian package in artifacts/: the program below /usr/lib/holdfast, `holdfast` on the PATH, a
// systemd unit, the user it runs as, /etc/holdfast.conf, /var/lib/holdfast and a manual page. What is in it is what
// `npm pack` packs and the packages of this checkout that a server needs; nothing is downloaded.
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { argumentsOf, calledWrongly } from "./program.mjs";
import { runHere, stageProgram } from "./stage-program.mjs";

const { values } = argumentsOf(
  `npm run package:deb [-- --with-node]           a Debian package in artifacts/, which needs Debian's nodejs (20 or newer);
                                               --with-node puts the Node that builds it inside, for older systems
                    [-- --output <folder>]     somewhere else`,
  { "with-node": { type: "boolean" }, output: { type: "string" } },
);
const root = fileURLToPath(new URL("..", import.meta.url));
const architecture = { x64: "amd64", arm64: "arm64", arm: "armhf", ia32: "i386" }[process.arch];
if (process.platform !== "linux" || !architecture) calledWrongly("Debian packages are built on Linux");
const { version, description } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const home = "usr/lib/holdfast";
const node = values["with-node"] ? `/${home}/node` : "/usr/bin/node";
const stage = mkdtempSync(join(tmpdir(), "holdfast-deb-"));
const inStage = (path) => join(stage, path);
function write(path, text, mode = 0o644) {
  mkdirSync(dirname(inStage(path)), { recursive: true });
  writeFileSync(inStage(path), text);
  chmodSync(inStage(path), mode);
}

function replaced(text, ...pairs) {
  for (const [from, to] of pairs) {
    if (!text.includes(from)) throw new Error(`${from} is not in the text that is to be changed`);
    text = text.replaceAll(from, to);
  }
  return text;
}

function program() {
  stageProgram(inStage(home));
  if (values["with-node"]) cpSync(process.execPath, inStage(`${home}/node`));
  write("usr/bin/holdfast", `#!/bin/sh\nexec ${node} /${home}/bin/holdfast "$@"\n`, 0o755);
}

function manual() {
  const help = runHere(process.execPath, [join(root, "dist/src/main.js"), "--help"])
    .replaceAll("\\", "\\e")
    .replace(/^\./gm, "\\&.");
  return `.TH HOLDFAST 1 "" "Holdfast ${version}"
.SH NAME
holdfast \\- a GRASP server: Nostr relay and git host on one port
.SH SYNOPSIS
.B holdfast
[command] [options]
.SH DESCRIPTION
.nf
${help.trim()}
.fi
.SH FILES
.TP
/etc/holdfast.conf
settings, one a line; holdfast config example explains each
.TP
/var/lib/holdfast
events, repositories and the server's key
.TP
/usr/lib/holdfast/docs
the documentation
.SH SEE ALSO
.BR git (1),
.BR systemctl (1)
`;
}

function system() {
  const unit = readFileSync(join(root, "deploy/holdfast.service"), "utf8");
  write(
    "lib/systemd/system/holdfast.service",
    replaced(
      unit.replace(/^#.*\n/, ""),
      ["/usr/bin/node /opt/holdfast/bin/holdfast", `${node} /${home}/bin/holdfast`],
      ["file:///opt/holdfast/docs/README.md", "man:holdfast(1)"],
    ),
  );
  const example = readFileSync(join(root, "holdfast.example.conf"), "utf8");
  write("etc/holdfast.conf", `NGIT_DATA_PATH=/var/lib/holdfast\n\n${example}`, 0o640);
  write("usr/share/man/man1/holdfast.1.gz", gzipSync(manual()));
  write("usr/share/doc/holdfast/copyright", readFileSync(join(root, "LICENSE")));
  write("usr/share/doc/holdfast/changelog.gz", gzipSync(readFileSync(join(root, "CHANGELOG.md"))));
}

function bytesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath ?? entry.path, entry.name)).size, 0);
}

/** What dpkg reads and runs. Data and user stay when the package goes, also with purge: repositories are not ours to delete. */
function control() {
  const depends = [
    "git (>= 1:2.38)",
    "ca-certificates",
    "passwd",
    ...(values["with-node"] ? ["libstdc++6"] : ["nodejs (>= 20)"]),
  ];
  const kibibytes = Math.ceil(bytesBelow(stage) / 1024);
  write(
    "DEBIAN/control",
    `Package: holdfast
Version: ${version}
Architecture: ${architecture}
Maintainer: The Holdfast project <holdfast@localhost>
Installed-Size: ${kibibytes}
Depends: ${depends.join(", ")}
Recommends: libsecp256k1-2 | libsecp256k1-1 | libsecp256k1-0
Section: net
Priority: optional
Description: ${description}
`,
  );
  write("DEBIAN/conffiles", "/etc/holdfast.conf\n");
  const ifSystemd = (...commands) => `if [ -d /run/systemd/system ]; then\n  ${commands.join("\n  ")}\nfi\n`;
  write(
    "DEBIAN/postinst",
    `#!/bin/sh
set -e
[ "$1" = configure ] || exit 0
getent passwd holdfast >/dev/null || useradd --system --user-group --home-dir /var/lib/holdfast --no-create-home --shell /usr/sbin/nologin holdfast
install -d -o holdfast -g holdfast -m 0700 /var/lib/holdfast
chgrp holdfast /etc/holdfast.conf
${ifSystemd("systemctl daemon-reload", '[ -n "$2" ] || systemctl enable holdfast', "systemctl restart holdfast || true")}`,
    0o755,
  );
  write(
    "DEBIAN/prerm",
    `#!/bin/sh\nset -e\n[ "$1" = remove ] || exit 0\n${ifSystemd("systemctl disable --now holdfast || true")}`,
    0o755,
  );
  write(
    "DEBIAN/postrm",
    `#!/bin/sh\nset -e\n${ifSystemd("systemctl daemon-reload || true")}if [ "$1" = purge ]; then\n  echo "/var/lib/holdfast and the user holdfast are left: delete them yourself"\nfi\n`,
    0o755,
  );
}

try {
  process.umask(0o022);
  chmodSync(stage, 0o755);
  program();
  system();
  control();
  const output = values.output ?? join(root, "artifacts");
  mkdirSync(output, { recursive: true });
  const file = join(output, `holdfast_${version}_${architecture}.deb`);
  runHere("dpkg-deb", ["--root-owner-group", "-Zxz", "-z3", "--build", stage, file]);
  process.stdout.write(`${file} ${statSync(file).size} bytes\n`);
} finally {
  rmSync(stage, { recursive: true, force: true });
}
