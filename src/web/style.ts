// The one style sheet of all pages: light and dark by the reader's choice, readable from 320 pixels up, fonts the
// machine has. Served as a file (assets.ts); no page carries a style of its own.

export const styleSheet = `
:root {
  color-scheme: light dark;
  --ink: #1d2327; --quiet: #566068; --paper: #fbfbf9; --raised: #ffffff; --line: #dcdfda; --link: #14568f;
  --good: #1d6b3f; --warn: #8a5300; --bad: #a3271f; --good-soft: #e4f2e8; --warn-soft: #fbeed8; --bad-soft: #fbe5e2;
  --plain-soft: #eceeea; --focus: #14568f;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e4e7e6; --quiet: #a2abac; --paper: #141719; --raised: #1a1e21; --line: #333a3e; --link: #8dc0f0;
    --good: #86d3a4; --warn: #e9b96c; --bad: #f2a199; --good-soft: #1b3325; --warn-soft: #3a2d14; --bad-soft: #41211e;
    --plain-soft: #262c2f; --focus: #8dc0f0;
  }
}
*, *::before, *::after { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 1rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
}
a { color: var(--link); text-underline-offset: 0.15em; text-decoration-thickness: 1px; }
a:hover { text-decoration-thickness: 2px; }
:focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; border-radius: 2px; }
.skip { position: absolute; left: -999rem; }
.skip:focus { left: 1rem; top: 0.5rem; background: var(--raised); padding: 0.4rem 0.8rem; }

.top, main, .bottom { width: min(58rem, 100% - 2.5rem); margin: 0 auto; }
.top {
  display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0.25rem 1.5rem; padding-top: 1rem;
  padding-bottom: 1rem; border-bottom: 1px solid var(--line);
}
.top a { color: inherit; text-decoration: none; padding: 0.25rem 0; }
.top a:hover { text-decoration: underline; }
.top .brand { font-weight: 600; overflow-wrap: anywhere; }
.top nav { display: flex; gap: 1.25rem; }
.top [aria-current] { text-decoration: underline; text-decoration-thickness: 2px; text-underline-offset: 0.4em; }
main { padding-top: 2rem; padding-bottom: 3rem; }
.bottom {
  border-top: 1px solid var(--line); color: var(--quiet); font-size: 0.9rem; padding-top: 1rem; padding-bottom: 2rem;
}
h1 { font-size: 1.8rem; line-height: 1.25; margin: 0 0 0.4rem; letter-spacing: -0.01em; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; line-height: 1.3; margin: 2.5rem 0 0.75rem; }
h3 { font-size: 1rem; margin: 1.5rem 0 0.4rem; }
h1 + h2, section > h2:first-child { margin-top: 0; }
section { margin-top: 2.5rem; }
p { margin: 0 0 0.9rem; max-width: 44rem; overflow-wrap: anywhere; }
.lead { font-size: 1.1rem; color: var(--quiet); }
.quiet, .facts dt, th, .list .meta { color: var(--quiet); }
.small { font-size: 0.9rem; }
code, pre, kbd, .mono { font-family: ui-monospace, SFMono-Regular, "DejaVu Sans Mono", Menlo, monospace; font-size: 0.875em; }
code { overflow-wrap: anywhere; }
pre {
  margin: 0 0 1rem; padding: 0.75rem 1rem; overflow-x: auto; line-height: 1.5; background: var(--raised);
  border: 1px solid var(--line); border-radius: 6px;
}
pre code { font-size: 1em; overflow-wrap: normal; }

form.search { display: flex; gap: 0.5rem; margin: 1.5rem 0 0; max-width: 34rem; flex-wrap: wrap; }
form.search label { width: 100%; font-size: 0.9rem; color: var(--quiet); }
input[type="search"] {
  flex: 1 1 8rem; min-width: 0; font: inherit; color: inherit; background: var(--raised); padding: 0.5rem 0.75rem;
  border: 1px solid var(--quiet); border-radius: 6px;
}
button {
  font: inherit; color: var(--ink); background: var(--plain-soft); border: 1px solid var(--quiet); border-radius: 6px;
  padding: 0.5rem 1rem; cursor: pointer;
}
button:hover { border-color: var(--ink); }

.numbers { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; margin: 2rem 0 0; padding: 0; list-style: none; }
.numbers b { display: block; font-size: 1.5rem; line-height: 1.2; font-weight: 600; font-variant-numeric: tabular-nums; }
.numbers li { color: var(--quiet); font-size: 0.9rem; }
.numbers b { color: var(--ink); }

.facts { display: grid; grid-template-columns: minmax(8rem, max-content) 1fr; gap: 0.45rem 1.5rem; margin: 0 0 1rem; }
.facts dd { margin: 0; min-width: 0; overflow-wrap: anywhere; }
.facts ul { list-style: none; margin: 0; padding: 0; }

.list { list-style: none; margin: 0 0 0.75rem; padding: 0; border-top: 1px solid var(--line); }
.list li { padding: 0.65rem 0; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
.list .meta { font-size: 0.9rem; display: block; }
.list .title { font-weight: 500; }
.list .text { display: block; }
time { white-space: nowrap; }

.tag {
  display: inline-block; font-size: 0.8125rem; line-height: 1.4; padding: 0.05rem 0.5rem; border-radius: 999px;
  background: var(--plain-soft); color: var(--ink); white-space: nowrap;
}
.tag.good { background: var(--good-soft); color: var(--good); }
.tag.warn { background: var(--warn-soft); color: var(--warn); }
.tag.bad { background: var(--bad-soft); color: var(--bad); }
.note { border-left: 3px solid var(--warn); padding: 0.15rem 0 0.15rem 0.9rem; margin: 1rem 0; max-width: 44rem; }

.scroll { overflow-x: auto; margin-bottom: 1rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: 0.5rem 1.25rem 0.5rem 0; border-bottom: 1px solid var(--line); }
th { font-weight: 500; font-size: 0.9rem; }
thead th { white-space: nowrap; }
.readme thead th { white-space: normal; }
th[scope="row"] { font-size: 1rem; font-weight: 400; color: var(--ink); overflow-wrap: anywhere; }
td:last-child, th:last-child { padding-right: 0; }
/* Only what is long may give way: a short word is not torn because an address stands beside it. */
td { overflow-wrap: break-word; }
.readme td { overflow-wrap: anywhere; }

.copy { display: flex; gap: 0.5rem; align-items: stretch; margin: 0 0 0.75rem; }
.copy pre { flex: 1; min-width: 0; margin: 0; }
.copy button { flex: none; padding: 0.35rem 0.8rem; font-size: 0.9rem; }
.spark { display: block; width: 12rem; max-width: 100%; height: 1.5rem; }
.spark rect { fill: var(--line); }
.spark .up { fill: var(--good); }
.spark .part { fill: var(--warn); }
.spark .down { fill: var(--bad); }

.readme { border-top: 1px solid var(--line); padding-top: 1.25rem; max-width: 46rem; }
.readme h3 { font-size: 1.3rem; margin-top: 1.75rem; }
.readme h4 { font-size: 1.1rem; margin: 1.5rem 0 0.5rem; }
.readme h5, .readme h6 { font-size: 1rem; margin: 1.25rem 0 0.4rem; }
.readme > :first-child { margin-top: 0; }
.readme ul, .readme ol { padding-left: 1.4rem; margin: 0 0 0.9rem; }
.readme li { margin: 0.2rem 0; overflow-wrap: anywhere; }
.readme blockquote { margin: 0 0 0.9rem; padding-left: 1rem; border-left: 3px solid var(--line); color: var(--quiet); }
.readme hr { border: 0; border-top: 1px solid var(--line); margin: 1.5rem 0; }
.readme :not(pre) > code { background: var(--plain-soft); padding: 0.1em 0.3em; border-radius: 4px; }
.readme pre.plain { white-space: pre-wrap; overflow-wrap: anywhere; border: 0; padding: 0; background: none; }
.jump { display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; list-style: none; margin: 1.25rem 0 0; padding: 0; }
.number { white-space: nowrap; }
.heading-line { display: flex; flex-wrap: wrap; gap: 0.25rem 0.75rem; align-items: baseline; }

@media (max-width: 40rem) {
  main { padding-top: 1.5rem; }
  h1 { font-size: 1.5rem; }
  .facts { grid-template-columns: 1fr; gap: 0; }
  .facts dt { font-size: 0.9rem; }
  .facts dd { margin-bottom: 0.7rem; }
  .facts.short { grid-template-columns: max-content 1fr; gap: 0.3rem 1.5rem; }
  .facts.short dd { margin: 0; }
  table.stack thead { position: absolute; left: -999rem; }
  table.stack tr { display: block; padding: 0.6rem 0; border-bottom: 1px solid var(--line); }
  table.stack th, table.stack td { display: flex; gap: 0.75rem; justify-content: space-between; border: 0; padding: 0.1rem 0; }
  table.stack th[scope="row"] { font-weight: 500; }
  table.stack td::before { content: attr(data-label); color: var(--quiet); font-size: 0.9rem; flex: none; }
  table.stack th > *, table.stack td > * { min-width: 0; overflow-wrap: anywhere; }
  table.stack td > * { text-align: right; }
  .copy { flex-direction: column; align-items: flex-start; }
  .copy pre { width: 100%; }
  .spark { width: 9rem; }
}
@media print { .top nav, form, .copy button { display: none; } }
`;
