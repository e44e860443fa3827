/** Each asks `sandboxer __complete` with the words before the cursor and the one under it. */
export const COMPLETION_SCRIPTS: Readonly<Record<string, string>> = {
  bash: `# sandboxer completion for bash: source <(sandboxer completion bash)
_sandboxer() {
  local IFS=$'\\n' word
  COMPREPLY=()
  # Bash takes "web:/tmp" for three words; the line itself has it whole.
  word="\${COMP_LINE:0:COMP_POINT}"
  word="\${word##* }"
  local found
  found=$(sandboxer __complete -- "\${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
  local prefix="\${word%"\${word##*:}"}" line
  while read -r line; do
    [ -n "$line" ] && COMPREPLY+=("\${line#"$prefix"}")
  done <<< "\${found}"
  [[ "\${COMPREPLY[0]}" == *: ]] && compopt -o nospace
  return 0
}
complete -o default -F _sandboxer sandboxer
`,
  zsh: `#compdef sandboxer
# sandboxer completion for zsh: put this into a folder of $fpath as _sandboxer
_sandboxer() {
  local -a found
  found=("\${(@f)$(sandboxer __complete -- "\${LBUFFER}" 2>/dev/null)}")
  found=("\${(@)found:#}")
  if (( \${#found} )); then compadd -- "\${found[@]}"; else _files; fi
}
if [ "$funcstack[1]" = "_sandboxer" ]; then _sandboxer "$@"; else compdef _sandboxer sandboxer; fi
`,
  fish: `# sandboxer completion for fish
complete -c sandboxer -f -a '(sandboxer __complete -- (commandline -cp) 2>/dev/null)'
complete -c sandboxer -n '__fish_seen_subcommand_from cp' -F
`,
};
