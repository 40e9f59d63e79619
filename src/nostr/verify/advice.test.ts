import assert from "node:assert/strict";
import { test } from "node:test";
import { nativeLibraryCommand, verificationAdvice } from "./advice.js";

test("the package is named as this distribution names it", () => {
  for (const [system, osRelease, command] of [
    ["linux", 'ID=debian\nVERSION_ID="12"\n', "apt install libsecp256k1-1"],
    ["linux", 'ID=debian\nVERSION_ID="13"\n', "apt install libsecp256k1-2"],
    ["linux", "ID=debian\n", "apt install libsecp256k1-2"],
    ["linux", 'ID=ubuntu\nID_LIKE=debian\nVERSION_ID="22.04"\n', "apt install libsecp256k1-0"],
    ["linux", 'ID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"\n', "apt install libsecp256k1-1"],
    ["linux", "ID=fedora\nVERSION_ID=41\n", "dnf install libsecp256k1"],
    ["linux", 'ID="rocky"\nID_LIKE="rhel centos fedora"\n', "dnf install libsecp256k1"],
    ["linux", "ID=manjaro\nID_LIKE=arch\n", "pacman -S libsecp256k1"],
    ["linux", "ID=alpine\nVERSION_ID=3.20.1\n", "apk add libsecp256k1"],
    ["linux", "", "install libsecp256k1 with the system's package manager"],
    ["darwin", "", "brew install secp256k1"],
  ] as const) {
    assert.equal(nativeLibraryCommand(system, osRelease), command, osRelease);
  }
});

test("only WebAssembly asks for it", () => {
  assert.equal(verificationAdvice("native libsecp256k1.so.1"), undefined);
  assert.match(verificationAdvice("wasm") ?? "", /^signatures are checked in WebAssembly, .*start again$/);
});
