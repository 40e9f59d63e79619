// Turns a page of the documentation into the shell script a reader would be: scripts saved under the names the text
// gives them, commands run in order.

import { readFileSync } from "node:fs";

/** `heading`: only the section under it, up to the next heading of its level. */
export function walkthrough(file: string, heading?: string): string {
  const page = readFileSync(file, "utf8");
  const begin = heading === undefined ? 0 : page.indexOf(`\n${heading}\n`);
  if (begin < 0) throw new Error(`${file} has no ${heading}`);
  const section = page.slice(begin).split(/\n## /);
  const text = heading === undefined ? page : section.slice(0, 2).join("\n## ");
  let script = "set -eu\n";
  let before = 0;
  for (const block of text.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)) {
    const [whole, language, content = ""] = block;
    if (language === "sh") script += content;
    else if (language === "js") {
      const name = [...text.slice(before, block.index).matchAll(/`([\w-]+\.mjs)`/g)].at(-1)?.[1];
      if (name === undefined) throw new Error(`${file}: a script without a name`);
      script += `cat > ${name} <<'END-OF-SCRIPT'\n${content}END-OF-SCRIPT\n`;
    }
    before = block.index + whole.length;
  }
  return script;
}
