// An authority of a test's own and the certificates it signs, made with the openssl program in a folder of the test.

import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** What a server shows and keeps, as PEM. */
export interface ServerCertificate {
  readonly certificate: string;
  readonly key: string;
}

/** Why tests with certificates do not run; false when they do. */
export const noOpenssl: string | false =
  spawnSync("openssl", ["version"]).status === 0 ? false : "the openssl program is not installed";

const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];

export class TestAuthority {
  /** The file that whoever trusts it names. */
  readonly file: string;
  #made = 0;

  /** Two authorities of one name are told apart by their keys alone. */
  constructor(
    private readonly folder: string,
    name: string,
  ) {
    mkdirSync(folder, { recursive: true });
    this.file = join(folder, "authority.pem");
    this.#openssl("req", "-x509", ...newKey, "-keyout", "authority.key", "-out", this.file, "-subj", `/CN=${name}`);
  }

  /** `names` as openssl writes them: `DNS:db.example.com`, `IP:10.0.0.1`. */
  certificateFor(...names: readonly string[]): ServerCertificate {
    const own = `server-${this.#made++}`;
    const [request, key, certificate, extensions] = ["csr", "key", "pem", "ext"].map((end) => `${own}.${end}`) as [
      string,
      string,
      string,
      string,
    ];
    writeFileSync(join(this.folder, extensions), `subjectAltName=${names.join(",")}\n`);
    this.#openssl("req", "-new", ...newKey, "-keyout", key, "-out", request, "-subj", "/CN=a database");
    const signer = ["-CA", this.file, "-CAkey", "authority.key", "-set_serial", String(this.#made)];
    this.#openssl("x509", "-req", "-in", request, ...signer, "-extfile", extensions, "-out", certificate);
    const read = (name: string): string => readFileSync(join(this.folder, name), "utf8");
    return { certificate: read(certificate), key: read(key) };
  }

  #openssl(...args: readonly string[]): void {
    const { status, stderr } = spawnSync("openssl", args, { cwd: this.folder, encoding: "utf8" });
    if (status !== 0) throw new Error(`openssl ${args.join(" ")}: ${stderr}`);
  }
}
