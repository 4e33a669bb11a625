// Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
// SPDX-License-Identifier: Apache-2.0
// The official JavaScript client: a picture and a sound asked about twice, streamed, uploaded, and a
// conversation that the server keeps.
//
//     npm ci && node chat.mjs http://localhost:8000 picture.png sound.wav
import { createReadStream, readFileSync } from "node:fs";
import OpenAI from "openai";

const [server, picture, sound] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${server}/v1`, apiKey: "none" });
const ask = { model: "any", max_tokens: 16, temperature: 0 };

const text = { type: "text", text: "Look and listen with great care. What is it?" };
const image = { type: "image_url", image_url: { url: `data:image/png;base64,${base64(picture)}` } };
const audio = { type: "input_audio", input_audio: { data: base64(sound), format: "wav" } };
const messages = [{ role: "user", content: [text, image, audio] }];

for (const time of ["chat", "repeat"]) {
  const { choices, usage } = await client.chat.completions.create({ ...ask, messages });
  say(time, choices[0].message.content, usage.prompt_tokens_details, usage.prompt_tokens);
}

const options = { stream: true, stream_options: { include_usage: true } };
let streamed = "";
for await (const chunk of await client.chat.completions.create({ ...ask, ...options, messages })) {
  streamed += chunk.choices[0]?.delta.content ?? "";
  if (chunk.usage) say("stream", streamed, chunk.usage.prompt_tokens_details, chunk.usage.prompt_tokens);
}

const file = await client.files.create({ file: createReadStream(picture), purpose: "user_data" });
const named = { type: "file", file: { file_id: file.id } };
const byId = await client.chat.completions.create({
  ...ask,
  messages: [{ role: "user", content: [text, named, audio] }],
});
say("file_id", byId.choices[0].message.content, byId.usage.prompt_tokens_details, byId.usage.prompt_tokens);
await client.files.delete(file.id);

const kept = { model: "any", max_output_tokens: 16, temperature: 0 };
const first = await client.responses.create({ ...kept, input: messages });
const second = await client.responses.create({
  ...kept,
  input: "And what else?",
  previous_response_id: first.id,
});
say("conversation", second.output_text, second.usage.input_tokens_details, second.usage.input_tokens);

try {
  await client.chat.completions.create({ ...ask, messages, temperature: -1 });
} catch (error) {
  console.log(`${error.constructor.name}: ${error.param}`);
}

function base64(path) {
  return readFileSync(path).toString("base64");
}

function say(what, answer, details, total) {
  console.log(`${what}: ${JSON.stringify(answer)}`);
  console.log(`cached ${details.cached_tokens} of ${total} prompt tokens`);
}
