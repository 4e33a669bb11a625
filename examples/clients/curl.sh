#!/usr/bin/env bash
# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
# curl asks about a picture twice (the repeat comes from the KV cache), streams, and uploads a file.
#
#     examples/clients/curl.sh http://localhost:8000 picture.png
set -euo pipefail
server=$1 picture=$2
json='Content-Type: application/json'

body=$(printf '{"max_tokens": 16, "temperature": 0, "messages": [{"role": "user", "content": [
  {"type": "text", "text": "Look at this picture with great care. What does it show?"},
  {"type": "image_url", "image_url": {"url": "data:image/png;base64,%s"}}]}]}' "$(base64 -w 0 "$picture")")
for _ in 1 2; do
  curl --silent --show-error --fail-with-body "$server/v1/chat/completions" -H "$json" --data-binary @- <<<"$body"
  echo
done

curl --silent --show-error --fail-with-body --no-buffer "$server/v1/completions" -H "$json" \
  --data '{"prompt": "Once upon a time", "max_tokens": 8, "stream": true}'

curl --silent --show-error --fail-with-body "$server/v1/files" -F purpose=user_data -F "file=@$picture;type=image/png"
echo
