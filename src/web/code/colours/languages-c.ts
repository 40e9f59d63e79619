// Programming languages that look like C, and what all languages share.

import { type Grammar, type StringRule, words } from "./grammar.js";

export interface LanguageFacts {
  /** Suffixes with their dot, whole names, and names of interpreters. */
  readonly files: string;
  readonly grammar: Grammar;
}

export const double: StringRule = { open: '"', close: '"' };
export const single: StringRule = { open: "'", close: "'" };
export const oneSign: StringRule = { ...single, isOneSign: true };
export const triple: StringRule = { open: '"""', close: '"""', isLong: true };
export const tripleSingle: StringRule = { open: "'''", close: "'''", isLong: true };
const template: StringRule = { open: "`", close: "`", isLong: true, hasCode: true };
const rawBackquote: StringRule = { open: "`", close: "`", isLong: true, escape: "none" };
export const doubled: StringRule = { ...single, escape: "doubled" };
export const long = (rule: StringRule): StringRule => ({ ...rule, isLong: true });

const slashes = {
  lineComments: ["//"],
  blockComments: [["/*", "*/"]],
  strings: [double, single],
  constants: words("true false null nil undefined NULL nullptr this self super NaN Infinity"),
  hasCapitalTypes: true,
} as const satisfies Grammar;

const like = (keywords: string, more: Grammar = {}): Grammar => ({
  ...slashes,
  keywords: words(keywords),
  ...more,
});

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
