// Markup, data, settings and what builds are described with.

import { type Grammar, words } from "./grammar.js";
import { cFamily, double, javascript, type LanguageFacts, long, single } from "./languages-c.js";

const css: Grammar = {
  blockComments: [["/*", "*/"]],
  strings: [double, single],
  wordSigns: "-",
  metaSign: "@",
  keySign: ":",
  keysBeginLines: true,
};
const html: Grammar = { kind: "markup", script: () => javascript, style: () => css };
const settings: Grammar = {
  lineComments: ["#"],
  isCommentApart: true,
  strings: [double, single],
  constants: words("true false null yes no on off"),
  wordSigns: "-.",
  keysBeginLines: true,
};
const slashed: Grammar = { lineComments: ["//", "#"], blockComments: [["/*", "*/"]], strings: [long(double)] };

export const dataAndMarkup: Readonly<Record<string, LanguageFacts>> = {
  html: { files: ".html .htm .xhtml .vue .svelte .astro .ejs .hbs .njk", grammar: html },
  xml: {
    files: ".xml .svg .xsl .xsd .plist .rss .atom .csproj .fsproj .vcxproj .props .targets .xaml .ui .storyboard",
    grammar: { kind: "markup" },
  },
  phtml: {
    files: ".php .phtml .php5",
    grammar: { ...html, processing: () => cFamily.php?.grammar ?? {} },
  },
  css: { files: ".css", grammar: css },
  scss: { files: ".scss .sass .less .styl", grammar: { ...css, lineComments: ["//"], variableSign: "$" } },
  json: {
    files:
      ".json .jsonc .json5 .geojson .webmanifest .ipynb .map .har .lock composer.lock .prettierrc .eslintrc .babelrc",
    grammar: {
      lineComments: ["//"],
      blockComments: [["/*", "*/"]],
      strings: [double, single],
      constants: words("true false null"),
      keySign: ":",
    },
  },
  yaml: {
    files: ".yaml .yml .clang-format .yarnrc",
    grammar: {
      ...settings,
      strings: [double, { ...single, escape: "doubled" }],
      keySign: ":",
      metaSign: "&",
      keysBeginLines: false,
    },
  },
  toml: {
    files: ".toml cargo.lock poetry.lock pipfile",
    grammar: {
      ...settings,
      strings: [
        { open: '"""', close: '"""', isLong: true },
        { open: "'''", close: "'''", isLong: true, escape: "none" },
        double,
        { ...single, escape: "none" },
      ],
      keySign: "=",
      hasSections: true,
    },
  },
  ini: {
    files:
      ".ini .cfg .conf .properties .editorconfig .gitconfig .gitmodules .npmrc .service .socket .timer .desktop .env",
    grammar: { ...settings, lineComments: ["#", ";"], keySign: "=:", hasSections: true, strings: [double] },
  },
  ignore: {
    files: ".gitignore .dockerignore .npmignore .gitattributes codeowners",
    grammar: { lineComments: ["#"], isCommentApart: true },
  },
  markdown: { files: ".md .markdown .mdown .mkd .mdx", grammar: { kind: "markdown" } },
  diff: { files: ".diff .patch", grammar: { kind: "diff" } },
  latex: {
    files: ".tex .sty .cls .bib .ltx",
    grammar: { lineComments: ["%"], metaSign: "\\", strings: [{ open: "$", close: "$" }], wordSigns: "@" },
  },
  dockerfile: {
    files: "dockerfile containerfile .dockerfile",
    grammar: {
      lineComments: ["#"],
      isCommentApart: true,
      strings: [double, single],
      variableSign: "$",
      keywords: words(
        "ADD ARG AS CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL MAINTAINER ONBUILD RUN SHELL STOPSIGNAL USER VOLUME WORKDIR",
      ),
    },
  },
  makefile: {
    files: ".mk .mak makefile gnumakefile kbuild justfile make",
    grammar: {
      lineComments: ["#"],
      strings: [double, single],
      variableSign: "$",
      wordSigns: "-.%/",
      keySign: ":=?+",
      keysBeginLines: true,
      keywords: words("define else endef endif export ifdef ifeq ifndef ifneq include override unexport"),
    },
  },
  cmake: {
    files: ".cmake cmakelists",
    grammar: {
      lineComments: ["#"],
      strings: [long(double)],
      variableSign: "$",
      isCaseless: true,
      keywords: words(
        "else elseif endforeach endfunction endif endmacro endwhile foreach function if macro return while",
      ),
      constants: words("on off true false"),
    },
  },
  graphql: {
    files: ".graphql .gql",
    grammar: {
      lineComments: ["#"],
      strings: [{ open: '"""', close: '"""', isLong: true }, double],
      variableSign: "$",
      metaSign: "@",
      hasCapitalTypes: true,
      keywords: words(
        "directive enum extend fragment implements input interface mutation on query scalar schema subscription type union",
      ),
      constants: words("true false null"),
    },
  },
  hcl: {
    files: ".tf .tfvars .hcl .nomad",
    grammar: {
      ...slashed,
      keywords: words("data dynamic for for_each if in locals module output provider resource terraform variable"),
      constants: words("true false null"),
      keySign: "=",
      keysBeginLines: true,
    },
  },
  nginx: {
    files: ".nginx nginx.conf .caddyfile caddyfile",
    grammar: {
      ...slashed,
      lineComments: ["#"],
      variableSign: "$",
      keywords: words(
        "events http if include listen location map proxy_pass return root server server_name try_files upstream",
      ),
    },
  },
  batch: {
    files: ".bat .cmd",
    grammar: {
      lineComments: ["::", "REM ", "rem "],
      strings: [double],
      isCaseless: true,
      variableSign: "%",
      keywords: words(
        "call cd copy del echo else endlocal errorlevel exist exit for goto if in not pause set setlocal shift start",
      ),
    },
  },
};
