import assert from "node:assert/strict";
import { test } from "node:test";
import { type Machine, systemErrorSentence } from "./system-error.js";

const machine: Machine = {
  uid: 1000,
  look: (path) =>
    ({
      "/": { uid: 0, isFolder: true },
      "/data": { uid: 998, isFolder: true },
      "/mine": { uid: 1000, isFolder: true },
      "/rooted": { uid: 0, isFolder: true },
      "/a-file": { uid: 1000, isFolder: false },
    })[path],
  userName: (uid) => ({ 0: "root", 998: "holdfast", 1000: "ann" })[uid] ?? `#${uid}`,
  typed: ["repos", "show", "npub1…/my project"],
};

const told = (fields: object, cause?: Error): string | undefined =>
  systemErrorSentence(Object.assign(new Error("as Node says it", { cause }), fields), machine);

test("each refusal of the system names the thing and the cure, with the system's code", () => {
  const cases: readonly (readonly [object, RegExp])[] = [
    [
      { code: "EACCES", syscall: "connect", address: "/data/relay/admin.sock" },
      /^this user \(ann\) may not use \/data\/relay\/admin\.sock \(EACCES\): run it as the user that owns \/data \(sudo -u holdfast holdfast repos show 'npub1…\/my project'\), or name another path$/,
    ],
    [{ code: "EPERM", path: "/rooted/x" }, /run it as the user that owns \/rooted \(sudo holdfast repos/],
    [{ code: "EACCES", path: "/mine/x" }, /its mode forbids it; `chmod u\+rwX \/mine` allows it$/],
    [
      { code: "EACCES", syscall: "listen", address: "127.0.0.1", port: 80 },
      /may not listen on 127\.0\.0\.1:80 \(EACCES\): choose/,
    ],
    [{ code: "ENOENT", path: "/nowhere" }, /^\/nowhere is not there \(ENOENT\): check the name$/],
    [{ code: "ENOTDIR", path: "/a-file/relay/x" }, /^\/a-file is a file, and a folder is needed there/],
    [{ code: "EEXIST", syscall: "mkdir", path: "/a-file" }, /^\/a-file is a file, and a folder is needed there/],
    [{ code: "EEXIST", syscall: "open", path: "/a-file" }, /^\/a-file is there already \(EEXIST\): name another/],
    [{ code: "EISDIR", path: "/mine" }, /^\/mine is a folder, and a file is needed there/],
    [{ code: "EROFS", path: "/mine/x" }, /^the file system of \/mine\/x is read-only \(EROFS\): /],
    [{ code: "ENOSPC", path: "/mine/x" }, /^the disk of \/mine\/x is full \(ENOSPC\): make room/],
    [{ code: "ENOSPC" }, /^the disk is full \(ENOSPC\): make room/],
    [
      { code: "EADDRINUSE", address: "::1", port: 7334 },
      /^\[::1\]:7334 is in use by another process \(EADDRINUSE\): stop that/,
    ],
    [{ code: "EADDRNOTAVAIL", address: "203.0.113.9", port: 1 }, /^this machine has no address 203\.0\.113\.9:1/],
    [{ code: "EMFILE" }, /raise the limit/],
  ];
  for (const [fields, expected] of cases) assert.match(told(fields) ?? "", expected);
});

test("a refusal is found inside the error that was made of it, and in the words of the event database", () => {
  const inner = Object.assign(new Error("x"), { code: "ENOSPC", path: "/mine/x" });
  assert.match(told({}, inner) ?? "", /^the disk of \/mine\/x is full/);
  const lmdb = new Error("Permission denied: /data/relay/events", {});
  assert.match(systemErrorSentence(lmdb, machine) ?? "", /run it as the user that owns it$/);
});

test("what is no refusal of the system has no such sentence", () => {
  assert.equal(told({}), undefined);
  assert.equal(told({ code: "ERR_INVALID_ARG_TYPE" }), undefined);
  assert.equal(systemErrorSentence("text", machine), undefined);
});
