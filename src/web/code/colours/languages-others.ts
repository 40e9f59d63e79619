// Programming languages that do not look like C: scripts, functional ones, those for data and machines.

import { type Grammar, words } from "./grammar.js";
import { double, doubled, type LanguageFacts, long, oneSign, single, triple, tripleSingle } from "./languages-c.js";

const hash = {
  lineComments: ["#"],
  strings: [double, single],
  constants: words("true false null nil none True False None self TRUE FALSE NULL"),
} as const satisfies Grammar;
const hashed = (keywords: string, more: Grammar = {}): Grammar => ({ ...hash, keywords: words(keywords), ...more });
const dashes: Grammar = {
  lineComments: ["--"],
  strings: [double, single],
  constants: words("true false nil null True False"),
};
const lisp: Grammar = {
  lineComments: [";"],
  blockComments: [["#|", "|#"]],
  strings: [long(double)],
  wordSigns: "-+*/<>=!?.:&%",
  isLisp: true,
};

/** The others. */
export const scripts: Readonly<Record<string, LanguageFacts>> = {
  python: {
    files: ".py .pyi .pyw .bzl .star python sconstruct build workspace",
    grammar: hashed(
      "and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return try while with yield",
      { strings: [triple, tripleSingle, double, single], hasCapitalTypes: true, metaSign: "@" },
    ),
  },
  ruby: {
    files: ".rb .rake .gemspec .ru gemfile rakefile vagrantfile podfile ruby",
    grammar: hashed(
      "BEGIN END alias and begin break case class def defined? do else elsif end ensure extend for if in include module next not or private protected public raise redo require require_relative rescue retry return super then undef unless until when while yield attr_accessor attr_reader attr_writer",
      {
        blockComments: [["\n=begin", "\n=end"]],
        wordSigns: "?!",
        variableSign: "@",
        hasCapitalTypes: true,
        hasPatterns: true,
      },
    ),
  },
  crystal: {
    files: ".cr",
    grammar: hashed(
      "abstract alias as begin break case class def do else elsif end ensure enum extend for fun if in include lib macro module next of out private protected require rescue return select struct super then type unless until when while with yield",
      { wordSigns: "?!", variableSign: "@", hasCapitalTypes: true },
    ),
  },
  shell: {
    files: ".sh .bash .zsh .ksh .fish .bats .ebuild sh bash zsh ksh dash fish pkgbuild .bashrc .zshrc .profile .envrc",
    grammar: hashed(
      "alias break case cd continue declare do done echo elif else esac eval exec exit export fi for function if in local read readonly return set shift source test then trap unset until while",
      {
        isCommentApart: true,
        strings: [long(double), { ...long(single), escape: "none" }],
        variableSign: "$",
        wordSigns: "-",
      },
    ),
  },
  powershell: {
    files: ".ps1 .psm1 .psd1 pwsh",
    grammar: hashed(
      "begin break catch class continue data do dynamicparam else elseif end enum exit filter finally for foreach from function hidden if in param process return static switch throw trap try until using while",
      { blockComments: [["<#", "#>"]], isCaseless: true, variableSign: "$", wordSigns: "-" },
    ),
  },
  perl: {
    files: ".pl .pm .t perl",
    grammar: hashed(
      "and bless die do else elsif eval for foreach if keys last local my next no not or our package print push redo ref require return say scalar shift sub undef unless until use values wantarray while",
      {
        blockComments: [
          ["\n=pod", "\n=cut"],
          ["\n=head", "\n=cut"],
        ],
        variableSign: "$",
        isCommentApart: true,
      },
    ),
  },
  r: {
    files: ".r .rmd rscript",
    grammar: hashed("break else for function if in library next repeat require return while", { wordSigns: "." }),
  },
  julia: {
    files: ".jl julia",
    grammar: hashed(
      "abstract baremodule begin break catch const continue do else elseif end export finally for function global if import in let local macro module mutable primitive quote return struct try type using where while",
      {
        blockComments: [["#=", "=#"]],
        strings: [triple, double, oneSign],
        wordSigns: "!",
        metaSign: "@",
        hasCapitalTypes: true,
      },
    ),
  },
  elixir: {
    files: ".ex .exs elixir",
    grammar: hashed(
      "after alias and case catch cond def defdelegate defexception defimpl defmacro defmodule defp defprotocol defstruct do else end fn for if import in not or quote raise receive require rescue try unless unquote use when with",
      { strings: [triple, tripleSingle, long(double), single], wordSigns: "?!", metaSign: "@", hasCapitalTypes: true },
    ),
  },
  nim: {
    files: ".nim",
    grammar: hashed(
      "and as asm bind block break case cast concept const continue converter defer discard distinct div do elif else end enum except export finally for from func if import in include interface is isnot iterator let macro method mixin mod nil not notin object of or out proc ptr raise ref return shl shr static template try tuple type using var when while xor yield",
      { strings: [triple, double, single], hasCapitalTypes: true },
    ),
  },
  tcl: {
    files: ".tcl tclsh",
    grammar: hashed(
      "break continue else elseif expr for foreach global if namespace package proc puts return set switch upvar variable while",
      { strings: [long(double)], variableSign: "$", isCommentApart: true },
    ),
  },
  nix: {
    files: ".nix",
    grammar: hashed("assert builtins else if import in inherit let or rec then with", {
      blockComments: [["/*", "*/"]],
      strings: [long(double), { open: "''", close: "''", isLong: true, escape: "none" }],
      wordSigns: "-'",
      keySign: "=",
    }),
  },
  lua: {
    files: ".lua lua",
    grammar: {
      ...dashes,
      blockComments: [["--[[", "]]"]],
      strings: [double, single, { open: "[[", close: "]]", isLong: true, escape: "none" }],
      keywords: words(
        "and break do else elseif end for function goto if in local not or repeat return then until while",
      ),
    },
  },
  haskell: {
    files: ".hs .lhs .purs",
    grammar: {
      ...dashes,
      blockComments: [["{-", "-}"]],
      strings: [double, oneSign],
      keywords: words(
        "case class data default deriving do else family forall foreign if import in infix infixl infixr instance let module newtype of qualified then type where",
      ),
      wordSigns: "'",
      hasCapitalTypes: true,
    },
  },
  elm: {
    files: ".elm",
    grammar: {
      ...dashes,
      blockComments: [["{-", "-}"]],
      strings: [triple, double, oneSign],
      keywords: words("alias as case else exposing if import in let module of port then type where"),
      hasCapitalTypes: true,
    },
  },
  sql: {
    files: ".sql .psql .ddl",
    grammar: {
      lineComments: ["--"],
      blockComments: [["/*", "*/"]],
      strings: [long(doubled), { open: '"', close: '"', escape: "doubled" }],
      isCaseless: true,
      constants: words("true false null"),
      keywords: words(
        "add all alter and any as asc begin between by cascade case check column commit constraint create cross database default delete desc distinct drop else end exists explain foreign from full function grant group having if in index inner insert into is join key left like limit not offset on or order outer primary procedure references replace returning revoke right rollback select set table then to transaction trigger truncate union unique update using values view when where with",
      ),
      types: words(
        "bigint bigserial boolean bytea char date decimal double int integer interval json jsonb numeric real serial smallint text time timestamp timestamptz uuid varchar",
      ),
    },
  },
  ocaml: {
    files: ".ml .mli .mll .mly ocaml",
    grammar: {
      blockComments: [["(*", "*)"]],
      strings: [long(double), oneSign],
      constants: words("true false"),
      wordSigns: "'",
      hasCapitalTypes: true,
      keywords: words(
        "and as assert begin class constraint do done downto else end exception external for fun function functor if in include inherit initializer lazy let match method module mutable new nonrec object of open or private rec sig struct then to try type val virtual when while with",
      ),
    },
  },
  fsharp: {
    files: ".fs .fsi .fsx",
    grammar: {
      lineComments: ["//"],
      blockComments: [["(*", "*)"]],
      strings: [triple, double, oneSign],
      constants: words("true false null"),
      hasCapitalTypes: true,
      keywords: words(
        "abstract and as assert async base begin class default delegate do done downcast elif else end exception extern finally for fun function if in inherit inline interface internal lazy let match member module mutable namespace new not of open or override private public rec return static struct then to try type upcast use val when while with yield",
      ),
    },
  },
  erlang: {
    files: ".erl .hrl escript",
    grammar: {
      lineComments: ["%"],
      strings: [double, single],
      metaSign: "-",
      keywords: words("after and andalso begin case catch end fun if not of or orelse receive try when xor"),
      hasCapitalTypes: true,
    },
  },
  clojure: {
    files: ".clj .cljs .cljc .edn",
    grammar: {
      ...lisp,
      keywords: words(
        "def defn defn- defmacro defmulti defmethod defprotocol defrecord deftype do fn if if-let let loop ns quote recur require try catch finally throw when when-let cond case for doseq",
      ),
      constants: words("true false nil"),
    },
  },
  lisp: {
    files: ".lisp .lsp .cl .el .scm .ss .rkt sbcl guile racket",
    grammar: {
      ...lisp,
      keywords: words(
        "and begin case cond defconst defconstant defgeneric define define-syntax defmacro defmethod defparameter defstruct defun defvar do dolist dotimes else flet if interactive lambda let let* letrec loop or progn provide quote require set! setf setq unless when while",
      ),
      constants: words("t nil #t #f"),
    },
  },
  matlab: {
    files: ".matlab .octave octave",
    grammar: {
      lineComments: ["%", "#"],
      strings: [double],
      keywords: words(
        "break case catch classdef continue else elseif end events for function global if methods otherwise parfor persistent properties return switch try while",
      ),
    },
  },
  fortran: {
    files: ".f .f77 .f90 .f95 .f03 .f08 .for",
    grammar: {
      lineComments: ["!"],
      strings: [double, single],
      isCaseless: true,
      keywords: words(
        "allocatable allocate call case contains cycle data deallocate dimension do else elseif end enddo endif exit format function go goto if implicit in inout include intent interface intrinsic module none only out parameter pointer print private procedure program public pure read recursive result return save select stop subroutine target then to type use where while write",
      ),
      types: words("character complex double integer logical precision real"),
    },
  },
  pascal: {
    files: ".pas .pp .dpr .lpr",
    grammar: {
      lineComments: ["//"],
      blockComments: [
        ["{", "}"],
        ["(*", "*)"],
      ],
      strings: [doubled],
      isCaseless: true,
      keywords: words(
        "and array as asm begin case class const constructor destructor div do downto else end except exports file finalization finally for function goto if implementation in inherited initialization interface is label library mod nil not object of on or out packed private procedure program property protected public published raise record repeat set shl shr string then threadvar to try type unit until uses var while with xor",
      ),
    },
  },
  vhdl: {
    files: ".vhd .vhdl",
    grammar: {
      lineComments: ["--"],
      strings: [double, oneSign],
      isCaseless: true,
      keywords: words(
        "architecture array begin case component constant downto else elsif end entity exit for function generate generic if in inout is library loop map of others out package port process range record report return select signal subtype then to type use variable wait when while with",
      ),
    },
  },
  vim: {
    files: ".vim .vimrc .nvimrc",
    grammar: {
      lineComments: ['"'],
      isCommentApart: true,
      strings: [single],
      keywords: words(
        "augroup autocmd call command else elseif endfor endfunction endif endwhile execute for function if let map nmap nnoremap noremap return set setlocal source syntax vmap while",
      ),
    },
  },
  assembly: {
    files: ".s .asm .nasm",
    grammar: {
      lineComments: [";", "#", "//"],
      blockComments: [["/*", "*/"]],
      strings: [double, single],
      isCaseless: true,
      metaSign: ".",
      keywords: words(
        "add and call cmp dec div inc int ja jae jb jbe je jg jge jl jle jmp jne jnz jz lea leave loop mov mul neg nop not or pop push ret shl shr sub syscall test xor ldr str bl b beq bne",
      ),
    },
  },
};
