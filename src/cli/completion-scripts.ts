// Completion scripts for bash, zsh and fish: what may be typed at each place, with a few words about it. Pure texts; the
// settings, which nearly every command takes, stand in a script once.

export interface Word {
  readonly word: string;
  readonly about: string;
}

/** A command, and what may follow it. */
export interface Place {
  /** `events import`; empty for the program itself. */
  readonly path: string;
  readonly words: readonly Word[];
  /** All flags of the settings may follow too. */
  readonly takesSettings: boolean;
}

export interface Completion {
  readonly places: readonly Place[];
  readonly settings: readonly Word[];
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

const maxAbout = 72;

/** The first sentence, on one line and not longer than a list can show. */
export function shortAbout(text: string): string {
  const first = /^.*?(?:[.;:](?= )|$)/.exec(text.replace(/\s+/g, " ").trim())?.[0].replace(/[.;:]$/, "") ?? "";
  return first.length > maxAbout ? `${first.slice(0, maxAbout - 1).trimEnd()}…` : first;
}

const lines = (words: readonly Word[], separator: string, escaped = (text: string) => text): string =>
  words.map(({ word, about }) => `${escaped(word)}${separator}${about}`).join("\n");

const pathPattern = (places: readonly Place[]): string =>
  places
    .filter(({ path }) => path !== "")
    .map(({ path }) => quoted(path))
    .join("|");

/** The place the line is at: the longest command that its words name, whatever flags stand between. */
const walk = (typed: string, known: string): string => `  local place="" typed tried
  for typed in ${typed}; do
    case "$typed" in -*) continue ;; esac
    tried="\${place:+$place }$typed"
    case "$tried" in ${known}) place="$tried" ;; esac
  done`;

const cases = (places: readonly Place[], listed: (words: readonly Word[]) => string): string =>
  places
    .map(
      ({ path, words, takesSettings }) =>
        `    ${quoted(path)}) list=${quoted(listed(words))}${takesSettings ? "; takes_settings=1" : ""} ;;`,
    )
    .join("\n");

/** bash shows no descriptions by itself: they stand behind the words while there is a choice, and are never typed. */
export function bashScript({ places, settings }: Completion): string {
  const tabbed = (words: readonly Word[]): string => lines(words, "\t");
  return `_holdfast_settings=${quoted(tabbed(settings))}
_holdfast() {
${walk(`"\${COMP_WORDS[@]:1:COMP_CWORD-1}"`, pathPattern(places))}
  local list="" takes_settings="" word about current="\${COMP_WORDS[COMP_CWORD]}" width=0
  local -a words=() abouts=()
  case "$place" in
${cases(places, tabbed)}
  esac
  [ -n "$takes_settings" ] && case "$current" in -*) list="$list"$'\\n'"$_holdfast_settings" ;; esac
  while IFS=$'\\t' read -r word about; do
    case "$word" in "") ;; "$current"*)
      words+=("$word") abouts+=("$about")
      [ \${#word} -gt $width ] && width=\${#word} ;;
    esac
  done <<< "$list"
  COMPREPLY=("\${words[@]}")
  # 37 and 42: the shell puts one word after the other into the line.
  [ \${#words[@]} -gt 1 ] && [ "$COMP_TYPE" != 37 ] && [ "$COMP_TYPE" != 42 ] || return 0
  local number line
  for number in "\${!words[@]}"; do
    printf -v line "%-\${width}s  (%s)" "\${words[number]}" "\${abouts[number]}"
    COMPREPLY[number]="\${line:0:\${COLUMNS:-80}-2}"
  done
}
complete -o default -o nosort -F _holdfast holdfast 2>/dev/null || complete -o default -F _holdfast holdfast
`;
}

export function zshScript({ places, settings }: Completion): string {
  const described = (words: readonly Word[]): string => lines(words, ":", (word) => word.replaceAll(":", "\\:"));
  return `#compdef holdfast
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
_holdfast_settings=${quoted(described(settings))}
_holdfast() {
${walk(`"\${(@)words[2,CURRENT-1]}"`, pathPattern(places))}
  local list="" takes_settings="" current="\${words[CURRENT]}"
  local -a choices
  case "$place" in
${cases(places, described)}
  esac
  [[ -n "$takes_settings" && "$current" == -* ]] && list="$list"$'\\n'"$_holdfast_settings"
  choices=("\${(@f)list}")
  _describe 'holdfast' choices || _files
}
if [[ "\${funcstack[1]}" == "_holdfast" ]]; then _holdfast "$@"; else compdef _holdfast holdfast; fi
`;
}

export function fishScript({ places, settings }: Completion): string {
  const paths = places.map(({ path }) => quoted(path)).filter((path) => path !== "''");
  const flag = (condition: string, { word, about }: Word): string =>
    `complete -c holdfast -n ${quoted(condition)} -l ${word.slice(2)} -d ${fishQuoted(about)}`;
  const own = places.flatMap(({ path, words }) => {
    const condition = `__holdfast_at "${path}"`;
    return words.map(({ word, about }) =>
      word.startsWith("--")
        ? flag(condition, { word, about })
        : `complete -c holdfast -f -n ${quoted(condition)} -a ${quoted(word)} -d ${fishQuoted(about)}`,
    );
  });
  const takers = places.filter(({ takesSettings }) => takesSettings).map(({ path }) => `"${path}"`);
  return `function __holdfast_place
  set -l place ''
  set -l typed (commandline -opc)
  for word in $typed[2..-1]
    string match -q -- '-*' $word; and continue
    set -l tried (string trim -- "$place $word")
    contains -- $tried ${paths.join(" ")}; and set place $tried
  end
  echo "$place"
end
function __holdfast_at
  contains -- (__holdfast_place) $argv
end
function __holdfast_takes_settings
  __holdfast_at ${takers.join(" ")}
end
${[...own, ...settings.map((word) => flag("__holdfast_takes_settings", word))].join("\n")}
`;
}

/** fish knows two escapes inside single quotes. */
const fishQuoted = (text: string): string => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
