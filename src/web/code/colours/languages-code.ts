// Programming languages: those that look like C, and the others.

import { type Grammar, type StringRule, words } from "./grammar.js";

export interface LanguageFacts {
  /** Suffixes with their dot, whole names, and names of interpreters. */
  readonly files: string;
  readonly grammar: Grammar;
}

export const double: StringRule = { open: '"', close: '"' };
export const single: StringRule = { open: "'", close: "'" };
const oneSign: StringRule = { ...single, isOneSign: true };
const triple: StringRule = { open: '"""', close: '"""', isLong: true };
const tripleSingle: StringRule = { open: "'''", close: "'''", isLong: true };
const template: StringRule = { open: "`", close: "`", isLong: true, hasCode: true };
const rawBackquote: StringRule = { open: "`", close: "`", isLong: true, escape: "none" };
const doubled: StringRule = { ...single, escape: "doubled" };
export const long = (rule: StringRule): StringRule => ({ ...rule, isLong: true });

const slashes = {
  lineComments: ["//"],
  blockComments: [["/*", "*/"]],
  strings: [double, single],
  constants: words("true false null nil undefined NULL nullptr this self super NaN Infinity"),
  hasCapitalTypes: true,
} as const satisfies Grammar;

const like = (keywords: string, more: Grammar = {}): Grammar => ({ ...slashes, keywords: words(keywords), ...more });

const jsWords =
  "as async await break case catch class const continue debugger default delete do else export extends finally for from function get if import in instanceof let new of return set static switch throw try typeof var void while with yield";
const tsWords = `${jsWords} abstract any boolean declare enum implements infer interface is keyof module namespace never number object override private protected public readonly satisfies string symbol type unique unknown bigint accessor`;
const cWords =
  "auto break case const continue default do else enum extern for goto if inline register restrict return sizeof static struct switch typedef union volatile while _Atomic _Bool _Generic _Noreturn _Static_assert";
const cTypes = words(
  "char double float int long short signed unsigned void bool size_t ssize_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t FILE",
);
const cppWords = `${cWords} alignas alignof and catch class co_await co_return co_yield concept constexpr consteval constinit const_cast delete dynamic_cast explicit export final friend module mutable namespace new noexcept not operator or override private protected public reinterpret_cast requires static_assert static_cast template throw try typeid typename using virtual`;
export const javascript: Grammar = like(jsWords, {
  strings: [double, single, template],
  hasPatterns: true,
  wordSigns: "$",
  metaSign: "@",
});

/** Comments after two slashes, mostly. */
export const cFamily: Readonly<Record<string, LanguageFacts>> = {
  javascript: { files: ".js .mjs .cjs .jsx node", grammar: javascript },
  typescript: { files: ".ts .mts .cts .tsx deno bun", grammar: { ...javascript, keywords: words(tsWords) } },
  java: {
    files: ".java",
    grammar: like(
      "abstract assert break case catch class const continue default do else enum extends final finally for if implements import instanceof interface native new non-sealed package permits private protected public record return sealed static strictfp super switch synchronized this throw throws transient try var void volatile while yield",
      {
        strings: [triple, double, single],
        types: words("boolean byte char double float int long short"),
        metaSign: "@",
      },
    ),
  },
  c: { files: ".c .h", grammar: like(cWords, { types: cTypes, metaSign: "#" }) },
  cpp: {
    files: ".cpp .cc .cxx .hpp .hh .hxx .ino .cu",
    grammar: like(cppWords, { types: cTypes, metaSign: "#" }),
  },
  objectivec: {
    files: ".m .mm",
    grammar: like(`${cWords} id in out self super nonatomic strong weak copy`, { types: cTypes, metaSign: "@" }),
  },
  csharp: {
    files: ".cs .csx",
    grammar: like(
      "abstract as async await base break case catch checked class const continue default delegate do else enum event explicit extern finally fixed for foreach get global goto if implicit in init interface internal is lock nameof namespace new operator out override params partial private protected public readonly record ref return sealed set sizeof stackalloc static struct switch throw try typeof unchecked unsafe using value var virtual volatile when where while with yield",
      {
        strings: [triple, { open: '@"', close: '"', isLong: true, escape: "doubled" }, double, single],
        types: words(
          "bool byte char decimal double dynamic float int long object sbyte short string uint ulong ushort void",
        ),
        metaSign: "#",
      },
    ),
  },
  go: {
    files: ".go",
    grammar: like(
      "break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var",
      {
        strings: [double, single, rawBackquote],
        types: words(
          "any bool byte complex64 complex128 error float32 float64 int int8 int16 int32 int64 rune string uint uint8 uint16 uint32 uint64 uintptr",
        ),
        constants: words("true false nil iota"),
      },
    ),
  },
  rust: {
    files: ".rs",
    grammar: like(
      "as async await break const continue crate dyn else enum extern fn for if impl in let loop macro_rules match mod move mut pub ref return static struct super trait type union unsafe use where while yield",
      {
        strings: [{ open: 'r#"', close: '"#', isLong: true, escape: "none" }, long(double), oneSign],
        types: words("bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 u128 usize"),
        constants: words("true false self None Some Ok Err"),
        metaSign: "#",
      },
    ),
  },
  swift: {
    files: ".swift",
    grammar: like(
      "actor as associatedtype async await break case catch class continue default defer deinit do else enum extension fallthrough fileprivate final for func guard if import in indirect init inout internal is lazy let mutating nonmutating open operator override private protocol public repeat required rethrows return some static struct subscript switch throw throws try typealias unowned var weak where while",
      { strings: [triple, double], metaSign: "@" },
    ),
  },
  kotlin: {
    files: ".kt .kts",
    grammar: like(
      "abstract actual annotation as break by catch class companion const constructor continue crossinline data do else enum expect external final finally for fun get if import in infix init inline inner interface internal is lateinit noinline object open operator out override package private protected public reified return sealed set suspend tailrec throw try typealias val var vararg when where while",
      { strings: [triple, double, single], metaSign: "@" },
    ),
  },
  scala: {
    files: ".scala .sbt .sc",
    grammar: like(
      "abstract case catch class def do else enum export extends final finally for given if implicit import lazy match new object override package private protected return sealed then throw trait try type using val var while with yield",
      { strings: [triple, double, oneSign], metaSign: "@" },
    ),
  },
  dart: {
    files: ".dart",
    grammar: like(
      "abstract as assert async await base break case catch class const continue covariant default deferred do dynamic else enum export extends extension external factory final finally for get hide if implements import in interface is late library mixin new on operator part required rethrow return sealed set show static switch sync throw try typedef var void when while with yield",
      { strings: [triple, tripleSingle, double, single], types: words("bool double int num String"), metaSign: "@" },
    ),
  },
  groovy: {
    files: ".groovy .gradle jenkinsfile",
    grammar: like(
      "abstract as assert break case catch class const continue def default do else enum extends final finally for goto if implements import in instanceof interface new package private protected public return static switch throw throws trait try var void while",
      { strings: [triple, tripleSingle, double, single], metaSign: "@" },
    ),
  },
  zig: {
    files: ".zig",
    grammar: like(
      "addrspace align and anyframe anytype asm async await break callconv catch comptime const continue defer else enum errdefer error export extern fn for if inline noalias nosuspend opaque or orelse packed pub resume return struct suspend switch test threadlocal try union unreachable usingnamespace var volatile while",
      {
        blockComments: [],
        types: words("bool f32 f64 i8 i16 i32 i64 isize type u8 u16 u32 u64 usize void"),
        metaSign: "@",
      },
    ),
  },
  solidity: {
    files: ".sol",
    grammar: like(
      "abstract address anonymous as assembly break calldata catch constant constructor continue contract delete do else emit enum event external fallback for function if immutable import indexed interface internal is library mapping memory modifier new override payable pragma private public pure receive return returns revert storage struct try type unchecked using view virtual while",
      { types: words("bool bytes bytes32 int int256 string uint uint8 uint256") },
    ),
  },
  d: {
    files: ".d",
    grammar: like(
      `${cppWords} alias body cast debug deprecated foreach function immutable import in interface invariant is lazy mixin nothrow out package pure ref scope shared synchronized unittest version`,
      {
        strings: [double, single, rawBackquote],
        types: cTypes,
      },
    ),
  },
  php: {
    files: "php",
    grammar: like(
      "abstract and array as break callable case catch class clone const continue declare default do echo else elseif enddeclare endfor endforeach endif endswitch endwhile enum extends final finally fn for foreach function global goto if implements include include_once instanceof insteadof interface isset list match namespace new or print private protected public readonly require require_once return static switch throw trait try unset use var while xor yield",
      { lineComments: ["//", "#"], variableSign: "$", strings: [long(double), long(single)] },
    ),
  },
  protobuf: {
    files: ".proto",
    grammar: like(
      "enum extend extensions import map message oneof option optional package public repeated required reserved returns rpc service stream syntax",
      {
        types: words("bool bytes double fixed32 fixed64 float int32 int64 sint32 sint64 string uint32 uint64"),
      },
    ),
  },
  verilog: {
    files: ".v .sv .svh",
    grammar: like(
      "always always_comb always_ff assign begin bit case class default else end endcase endclass endfunction endmodule endtask enum for function generate genvar if initial inout input integer interface localparam logic module negedge output package parameter posedge reg return struct task typedef wire while",
      { strings: [double], metaSign: "`" },
    ),
  },
};

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
