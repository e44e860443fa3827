#!/bin/sh
# The same as interpreter.ts, with curl. See there for the variables.
set -eu
server=${SANDBOXER_URL:-http://127.0.0.1:8080}
here=$(dirname "$0")
image=${IMAGE:-python:3.12-slim}
allow=$(echo "${ALLOW:-pypi.org,files.pythonhosted.org}" | sed 's/,/","/g')

call() { curl -fsS -H "Authorization: Bearer ${SANDBOXER_API_KEY:-none}" "$@"; }
post() { call -H "Content-Type: application/json" "$server$1" -d "$2"; }
# The value of one text field of a JSON answer.
field() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }

id=$(post /v1/sandboxes "{\"name\":\"curl-interpreter\",\"image\":\"$image\",\"network\":{\"allow\":[\"$allow\"]},\"env\":{\"PIP_INDEX_URL\":\"${PIP_INDEX_URL:-https://pypi.org/simple}\",\"PIP_TRUSTED_HOST\":\"${PIP_TRUSTED_HOST:-}\"}}" | field id)
box=/v1/sandboxes/$id
echo "created   $id from $image"

run() { post "$box/exec" "{\"shell\":\"$1\",\"cwd\":\"/workspace\"}"; echo; }
run "python3 -m pip install --quiet pygal"
for name in sales.csv chart.py; do
  call -T "$here/$name" -H "Content-Type: application/octet-stream" "$server$box/files?path=/workspace/$name"
done
run "python3 chart.py"
call -o chart.svg "$server$box/files?path=/workspace/chart.svg"
echo "wrote     chart.svg"

post "$box/exec" '{"command":["python3","-m","http.server","8000","--directory","/workspace"],"detach":true}' > /dev/null
until call "$server$box/ports" | grep -q '"port":8000'; do sleep 0.2; done
echo "serves    $(post "$box/port-links" '{"port":8000,"expires":"1h"}' | field url)"
post "$box/checkpoint" '{}' > /dev/null
echo "paused    Open the address: the sandbox resumes, at any server of the store."
