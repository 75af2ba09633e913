// Starts the real server for a suite, waits until it serves, keeps its log and ends it. Also raw HTTP, clients, waiting.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { after } from 'node:test';
import { fileURLToPath } from 'node:url';

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
export const buildFolder = process.env.ONEBIT_BUILD ?? path.join(root, 'build');
export const program = process.env.ONEBIT_PROGRAM ?? path.join(buildFolder, 'bin/1bit');
export const models = process.env.ONEBIT_TEST_DATA ?? path.join(buildFolder, 'models');
export const artifacts = path.join(buildFolder, 'artifacts');
// f16, which the build does not have to make first
export const model = path.join(root, 'models/onebit-tiny-f16.gguf');
// engine arguments with which the built-in model calls a tool when the request demands one: a template in which the
// name comes first, without the tokens 'a', 'al' and 'all' that would begin a plain answer, and eager to end
export const toolEngine = ['--jinja', '--chat-template-file', path.join(root, 'tests/e2e/tools.jinja'),
    '-l', '64-100', '-l', '305-100', '-l', '340-100', '-l', '4095+6', '-c', '2048', '-np', '1'];
// engine arguments with which a prompt of 14,000 tokens is read for seconds: long contexts, one thread, small batches
export const slowEngine = ['--override-kv', 'qwen3.context_length=int:16384', '-c', '32768', '-np', '2', '-t', '1', '-tb', '1',
    '-ub', '16', '-b', '16', '--cache-ram', '0'];
// the machine may be busy with other tests, and software Vulkan compiles shaders for minutes
export const patience = Number(process.env.ONEBIT_TEST_PATIENCE ?? 240) * 1000;

const require = createRequire(`${process.env.ONEBIT_TEST_MODULES}/`);
export const OpenAI = require('openai').OpenAI;
export const Anthropic = require('@anthropic-ai/sdk').Anthropic;
export const { chromium } = require('playwright-core');

export function openai(server, options = {}) {
    return new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0, timeout: patience, ...options });
}

// Why software Vulkan cannot be tested here, or false.
export function noSoftwareVulkan() {
    const folder = '/usr/share/vulkan/icd.d';
    const found = fs.existsSync(folder) && fs.readdirSync(folder).some((name) => name.startsWith('lvp_icd'));
    return found ? false : 'lavapipe is not installed: scripts/install-packages build';
}

// Ends what before() hooks start, after the whole file: give it to startServer in place of a test.
export function wholeFile() {
    const ends = [];
    after(async () => {
        for (const end of ends.reverse()) await end();
    });
    return { after: (end) => ends.push(end) };
}

const children = new Set();
process.on('exit', () => children.forEach((child) => child.kill('SIGKILL')));

export const newFolder = () => fs.mkdtempSync(path.join(os.tmpdir(), '1bit-e2e-'));

export function temporaryFolder(test) {
    const folder = newFolder();
    test.after(() => fs.rmSync(folder, { recursive: true, force: true }));
    return folder;
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Waits until the condition gives something true, and returns that; the error says what did not happen.
export async function until(what, condition, limit = patience, step = 20) {
    const end = Date.now() + limit;
    for (;;) {
        const value = await condition();
        if (value) return value;
        if (Date.now() > end) throw new Error(`not within ${limit / 1000} s: ${what}`);
        await sleep(step);
    }
}

// Environment with empty folders of its own, so that no setting or model of the user's is seen.
export function environment(folder, extra = {}) {
    const env = { ...process.env };
    for (const name of Object.keys(env)) {
        if (/^(ONEBIT_|LLAMA_|HF_|OLLAMA_|LMSTUDIO_|XDG_)/.test(name)) delete env[name];
    }
    const runtime = path.join(folder, 'runtime');
    fs.mkdirSync(runtime, { recursive: true, mode: 0o700 });
    return {
        ...env,
        HOME: folder,
        XDG_RUNTIME_DIR: runtime,
        ONEBIT_CACHE: path.join(folder, 'cache'),
        ONEBIT_MODELS: path.join(folder, 'models'),
        // ggml hides software Vulkan devices unless they are named
        GGML_VK_VISIBLE_DEVICES: '0',
        ...extra,
    };
}

export async function freePort() {
    const socket = net.createServer();
    await new Promise((resolve) => socket.listen(0, '127.0.0.1', resolve));
    const { port } = socket.address();
    await new Promise((resolve) => socket.close(resolve));
    return port;
}

// startServer(test, {model, device, flags, engine, env, wait}): `1bit serve`, ended after the test that `test` is.
//   model: path or name, '' for on demand. flags: of 1bit serve. engine: of the llama.cpp server.
//   wait: false returns when the port is open, without waiting for the model.
export async function startServer(test, options = {}) {
    const folder = newFolder();
    const port = await freePort();
    const args = ['serve'];
    if (options.model !== '') args.push(options.model ?? model);
    if (options.device ?? 'CPU') args.push('--device', options.device ?? 'CPU');
    args.push('--port', String(port), ...(options.flags ?? []));
    // two threads that wait for each other are slower than one on a machine that others use too
    const engine = options.engine ?? [];
    args.push('--', ...(engine.includes('-t') ? [] : ['-t', '1', '-tb', '1']), ...engine);
    const env = environment(folder, options.env);
    const child = spawn(options.program ?? program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    children.add(child);
    const server = { url: `http://127.0.0.1:${port}`, port, child, folder, log: '', code: null, signal: null, args };
    child.stdout.on('data', (data) => (server.log += data));
    child.stderr.on('data', (data) => (server.log += data));
    server.ended = new Promise((resolve) =>
        child.on('exit', (code, signal) => {
            children.delete(child);
            server.code = code;
            server.signal = signal;
            resolve({ code, signal });
        }),
    );
    server.stop = async () => {
        if (server.code === null && server.signal === null) child.kill('SIGTERM');
        const killer = setTimeout(() => child.kill('SIGKILL'), 60_000);
        await server.ended;
        clearTimeout(killer);
    };
    test.after(async () => {
        await server.stop();
        fs.rmSync(folder, { recursive: true, force: true });
        if (process.env.ONEBIT_TEST_LOGS) console.error(server.log);
        if (/(Address|Thread|Leak)Sanitizer|runtime error:/.test(server.log)) throw new Error(`a sanitizer speaks:\n${server.log}`);
    });
    const health = options.wait === false ? '/health?' : '/health';
    await until(
        `${args.join(' ')} answers\n${server.log}`,
        async () => {
            if (server.code !== null || server.signal !== null) {
                throw new Error(`${args.join(' ')} ended with ${server.code ?? server.signal}:\n${server.log}`);
            }
            const answer = await request(server, 'GET', health).catch(() => null);
            return answer && (options.wait === false || answer.status === 200);
        },
        patience,
        50,
    ).catch((error) => {
        throw new Error(`${error.message}\n${server.log}`);
    });
    return server;
}

// One request on a connection of its own; body: a value sent as JSON, or a Buffer or string sent as it is.
// Resolves when the answer is complete: {status, headers, text, json()}.
export function request(server, method, target, body, headers = {}) {
    return new Promise((resolve, reject) => {
        const open = openRequest(server, method, target, body, headers);
        open.on('error', reject);
        open.on('response', (response) => {
            const parts = [];
            response.on('data', (part) => parts.push(part));
            response.on('error', reject);
            response.on('end', () => {
                const bytes = Buffer.concat(parts);
                const text = bytes.toString();
                resolve({ status: response.statusCode, headers: response.headers, bytes, text, json: () => JSON.parse(text) });
            });
        });
    });
}

// The same without waiting: a ClientRequest, for streams and for clients that leave.
export function openRequest(server, method, target, body, headers = {}) {
    const raw = body === undefined || Buffer.isBuffer(body) || typeof body === 'string';
    const bytes = body === undefined ? undefined : Buffer.from(raw ? body : JSON.stringify(body));
    const open = http.request(`${server.url}${target}`, {
        method,
        agent: false,
        timeout: patience,
        headers: { ...(bytes && { 'content-type': 'application/json', 'content-length': bytes.length }), ...headers },
    });
    open.on('timeout', () => open.destroy(new Error(`no answer from ${target} for ${patience / 1000} s`)));
    open.end(bytes);
    return open;
}

export const post = (server, target, body, headers) => request(server, 'POST', target, body, headers);
export const get = (server, target, headers) => request(server, 'GET', target, undefined, headers);

export function chat(server, text, extra = {}) {
    const messages = Array.isArray(text) ? text : [{ role: 'user', content: text }];
    return post(server, '/v1/chat/completions', { messages, temperature: 0, max_tokens: 24, ...extra });
}

// The pid of the engine process under the supervisor.
export function enginePids(server) {
    return fs
        .readdirSync('/proc')
        .filter((name) => /^\d+$/.test(name))
        .filter((pid) => {
            try {
                const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8');
                const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
                const command = fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')[1];
                return Number(parent) === server.child.pid && state !== 'Z' && command === 'engine';
            } catch {
                return false;
            }
        })
        .map(Number);
}

// Runs a program to its end: {code, stdout, stderr}.
export function run(command, args, options = {}) {
    return new Promise((resolve, reject) => {
        const child = spawn(command, args, { env: options.env ?? process.env, stdio: [options.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'] });
        let stdout = '';
        let stderr = '';
        child.stdout.on('data', (data) => (stdout += data));
        child.stderr.on('data', (data) => (stderr += data));
        child.on('error', reject);
        child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr }));
        if (options.input !== undefined) child.stdin.end(options.input);
    });
}

// A prompt of about so many tokens of plain English.
export function longText(tokens) {
    const words = fs.readFileSync(path.join(root, 'models/heldout_prose.txt'), 'utf8');
    // the built-in tokenizer makes 3.4 bytes a token of this text
    return words.slice(0, Math.floor(tokens * 3.3));
}
