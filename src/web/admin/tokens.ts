// /admin/tokens: machine tokens of members (GRASP-08). A new one is shown once, in what the page says of the action.

import type { Document } from "../../http/routes.js";
import type { ListedToken } from "../../operator/tokens.js";
import { foreign, type Html, html, shortNpub } from "../html.js";
import { quiet, section, stackTable, timeOr } from "../pieces.js";
import { actionForm, adminPage, choiceField, repositoryLabel, textField, type View } from "./frame.js";

const rights = [
  ["no", "fetch"],
  ["yes", "fetch and push"],
] as const;

export function tokensPage(view: View, tokens: readonly ListedToken[]): Document {
  return adminPage(view, "/tokens", {
    title: "Tokens",
    main: html`${section(
      "tokens",
      "Machine tokens",
    )`<p class="quiet">With a token a member's program, such as CI, fetches or pushes; git takes it as password with any user name. It ends with its time, or when its member is none any more. A right to push a branch comes from signed states alone.</p>
${tokens.length === 0 ? quiet("There are no tokens.") : tokenTable(view, tokens)}
${actionForm(view, {
  operation: "tokens.add",
  label: "Make a token",
  className: "row",
  inputs: html`${textField("token-member", "member", "Member", { placeholder: "npub1…", isRequired: true })}${choiceField("token-push", "push", "May", rights)}${textField("token-repository", "repository", "Repository", { placeholder: "npub1…/identifier; empty: all" })}${textField("token-days", "days", "Days", { placeholder: "empty: no end" })}${textField("token-note", "note", "Note")}`,
})}`}`,
  });
}

const tokenTable = (view: View, tokens: readonly ListedToken[]): Html =>
  stackTable(tokens, [
    ["Token", ({ id }) => html`<code>${id}</code>`],
    ["Member", ({ member }) => html`<span title="${member}">${shortNpub(member)}</span>`],
    ["May", ({ right }) => (right === "push" ? "fetch and push" : "fetch")],
    ["Repository", ({ repository }) => (repository === null ? "all" : repositoryLabel(repository))],
    ["Ends", ({ ends }) => timeOr(ends, "never")],
    ["Works", ({ works }) => (works ? "yes" : "no")],
    ["Note", ({ note }) => foreign(note, 200)],
    [
      "Revoke",
      ({ id }) => actionForm(view, { operation: "tokens.revoke", label: "Revoke", about: id, fields: { id } }),
      "form",
    ],
  ]);
