// What the admin pages look like beyond all pages' style: tabs, cards, forms and the log. Served as a file (assets.ts).

export const adminStyle = `
.tabs {
  width: min(58rem, 100% - 2.5rem); margin: 0 auto; display: flex; flex-wrap: wrap; align-items: center;
  justify-content: space-between; gap: 0.25rem 1rem; padding: 0.5rem 0; border-bottom: 1px solid var(--line);
}
.tabs nav { display: flex; flex-wrap: wrap; gap: 0 1rem; font-size: 0.9375rem; }
.tabs nav a { color: var(--quiet); text-decoration: none; padding: 0.4rem 0; }
.tabs nav a:hover { color: var(--ink); text-decoration: underline; }
.tabs nav [aria-current] { color: var(--ink); font-weight: 600; box-shadow: inset 0 -2px 0 var(--link); }
.tabs form { display: flex; align-items: baseline; gap: 0.6rem; margin-left: auto; white-space: nowrap; }
button.small { padding: 0.2rem 0.7rem; font-size: 0.875rem; }
table + p { margin-top: 0.75rem; }
td .quiet { overflow-wrap: normal; }

.said { padding: 0.6rem 0.9rem; border-radius: 6px; margin: 1rem 0; max-width: none; }
.said.good { background: var(--good-soft); color: var(--good); }
.said.bad { background: var(--bad-soft); color: var(--bad); }

.cards { list-style: none; margin: 1rem 0; padding: 0; display: grid; gap: 1rem; }
.cards > li {
  background: var(--raised); border: 1px solid var(--line); border-radius: 8px; padding: 0.9rem 1.1rem 1rem;
  min-width: 0; overflow-wrap: anywhere;
}
.cards p { margin: 0.3rem 0 0.6rem; }
.as-text { font-size: 1rem; font-weight: 600; margin: 0; line-height: 1.5; }
.as-text b { font-weight: 600; }
.facts.tight { gap: 0.15rem 1.5rem; margin: 0.4rem 0 0; font-size: 0.95rem; }
.plain { list-style: none; margin: 0; padding: 0; }
.plain li { padding: 0.2rem 0; }

.actions { display: flex; flex-wrap: wrap; gap: 0.5rem 0.75rem; align-items: flex-start; margin-top: 0.9rem; }
.actions button, .button, .fold summary, td button, .chips button {
  display: inline-block; font-size: 0.9rem; line-height: 1.5; padding: 0.3rem 0.8rem;
}
.button, .fold summary {
  color: var(--ink); background: var(--plain-soft); border: 1px solid var(--quiet); border-radius: 6px; cursor: pointer;
  text-decoration: none; list-style: none;
}
.fold summary::-webkit-details-marker { display: none; }
.button:hover, .fold summary:hover { border-color: var(--ink); }
.fold[open] { flex-basis: 100%; border: 1px solid var(--line); border-radius: 8px; padding: 0.8rem; background: var(--paper); }
.fold[open] form { margin-top: 0.8rem; display: flex; flex-wrap: wrap; gap: 0.6rem 0.9rem; align-items: flex-end; }
.fold[open] form p { flex-basis: 100%; margin: 0; }
button.danger { color: var(--bad); border-color: var(--bad); background: var(--bad-soft); }
button:disabled { opacity: 0.6; cursor: default; }

form.row { display: flex; flex-wrap: wrap; gap: 0.6rem 0.9rem; align-items: flex-end; margin: 1rem 0; }
.field { display: flex; flex-direction: column; gap: 0.15rem; flex: 1 1 14rem; min-width: 0; }
.field label { font-size: 0.9rem; color: var(--quiet); }
.field input, .field select {
  font: inherit; color: inherit; background: var(--raised); padding: 0.45rem 0.6rem; border: 1px solid var(--quiet);
  border-radius: 6px; min-width: 0; width: 100%; height: 2.6rem;
}
form.row > button { height: 2.6rem; padding-block: 0; }
.field input::placeholder { color: var(--quiet); opacity: 1; }
td form { margin: 0; }
.chips { list-style: none; padding: 0; margin: 0; display: flex; flex-wrap: wrap; gap: 0.5rem 1.25rem; }
.chips li, .chips form { display: flex; gap: 0.6rem; align-items: center; }
.meter { display: inline-flex; flex-wrap: wrap; gap: 0 0.6rem; align-items: center; white-space: nowrap; }
.meter meter { width: 7rem; height: 1rem; }
dd > .meter { display: flex; }

.log {
  list-style: none; margin: 0 0 1rem; padding: 0.6rem 0.9rem; max-height: 70vh; overflow: auto; background: var(--raised);
  border: 1px solid var(--line); border-radius: 6px; font-size: 0.8125rem; line-height: 1.55;
  font-family: ui-monospace, SFMono-Regular, "DejaVu Sans Mono", Menlo, monospace;
}
.log.short { max-height: none; }
.log li { white-space: pre-wrap; overflow-wrap: anywhere; padding: 0.05rem 0; }
.log .warn { color: var(--warn); }
.log .bad { color: var(--bad); }

@media (max-width: 40rem) {
  td .meter { justify-content: flex-end; }
  .tabs { padding: 0.25rem 0 0.5rem; }
  .tabs form { margin-left: 0; }
  .facts.tight { grid-template-columns: 5.5rem 1fr; gap: 0.15rem 0.75rem; }
  .facts.tight dd { margin: 0; }
  .field { flex-basis: 100%; }
  .log { max-height: 60vh; padding: 0.5rem 0.6rem; }
}
@media print { .tabs, .actions { display: none; } }
`;
