// SPDX-License-Identifier: MIT
// llama.cpp under node (node-llama-cpp): greedy text of the small model.
// usage: node llama_node.mjs PACKAGES MODEL TOKENS
import {createHash} from "node:crypto";
import {pathToFileURL} from "node:url";

const [packages, modelPath, count] = process.argv.slice(2);
const entry = pathToFileURL(`${packages}/node_modules/node-llama-cpp/dist/index.js`);
const {getLlama, LlamaCompletion, LlamaLogLevel} = await import(entry);
const threads = Number(process.env.TM_ENGINE_THREADS ?? "1");
const llama = await getLlama({gpu: false, build: "never", progressLogs: false,
	logLevel: LlamaLogLevel.error, maxThreads: threads});
const model = await llama.loadModel({modelPath, gpuLayers: 0});
const context = await model.createContext({contextSize: 512, threads});
const completion = new LlamaCompletion({contextSequence: context.getSequence()});
const maxTokens = Number(count);
const start = performance.now();
const text = await completion.generateCompletion("The capital of France is", {maxTokens, temperature: 0});
const seconds = (performance.now() - start) / 1000;
const hash = createHash("sha256").update(text).digest("hex").slice(0, 16);
console.log(JSON.stringify({hash, units: maxTokens, per_s: +(maxTokens / seconds).toFixed(2), text}));
await llama.dispose();
