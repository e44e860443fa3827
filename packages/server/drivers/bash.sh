# The bash interpreter of a sandboxer context: an interactive bash, which survives interrupts, without a terminal. The
# frames are between what programs print (packages/server/src/manager/interpreter/marked-frames.ts).
exec 198>&1 199>&2
PS1= PS2= HISTFILE=
set +mH +o history
__sandboxer_count=0 __sandboxer_cell=
__sandboxer_send() { printf '\036\036%s%s\036' "$__sandboxer_cell" "$1"; }
__sandboxer_start() {
  __sandboxer_cell=$1 __sandboxer_count=$((__sandboxer_count + 1))
  local frame='{"f":"start","id":"'"$1"'","n":'"$__sandboxer_count"'}'
  __sandboxer_send "$frame" >&198
  __sandboxer_send "$frame" >&199
}
__sandboxer_end() {
  local status=$? how=ok
  [ -n "$__sandboxer_cell" ] || return 0
  case $status in 0) ;; 130) how=interrupted ;; *) how=error ;; esac
  if [ "$how" != ok ]; then
    __sandboxer_send '{"f":"error","name":"ExitStatus","value":"'"$status"'","traceback":"exit status '"$status"'"}' >&198
  fi
  local frame='{"f":"end","id":"'"$__sandboxer_cell"'","n":'"$__sandboxer_count"',"status":"'"$how"'"}'
  __sandboxer_send "$frame" >&199
  __sandboxer_send "$frame" >&198
  __sandboxer_cell=
}
PROMPT_COMMAND=__sandboxer_end
