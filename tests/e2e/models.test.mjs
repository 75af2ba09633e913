// Breaks when models are not loaded on demand, not freed in time, kept in two copies, or chosen against the user's word.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import * as h from './harness.mjs';

// A folder of configuration: three small models under short names.
function config(context, text) {
    const folder = h.temporaryFolder(context);
    const file = path.join(folder, 'onebit.yaml');
    const write = (yaml) => fs.writeFileSync(file, yaml.replaceAll('MODELS', h.models));
    write(text);
    return { file, write };
}
const three = `
models:
  a:
    source: MODELS/onebit-tiny-Q8_0.gguf
    aliases: [first]
  b:
    source: MODELS/onebit-tiny-Q4_K_M.gguf
  c:
    source: MODELS/onebit-tiny-Q4_0.gguf
defaults:
  devices: [CPU]
  context: 512
  parallel: 1
`;
const onDemand = (context, file, flags = []) => h.startServer(context, { model: '', device: '', flags: ['--config', file, ...flags], wait: false });
const ask = (server, model, extra = {}) => h.chat(server, 'What is the capital of France?', { model, ...extra });
const loaded = async (server) => {
    const { engines } = (await h.get(server, '/onebit/ps')).json();
    return engines.filter((row) => row.state === 'ready').map((row) => row.id);
};
const residentBytes = (pid) => Number(fs.readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * 4096;

describe('models on demand', () => {
    test('the model of a request is loaded, and the old one is gone before', async (context) => {
        const { file } = config(context, three.replace('[first]', '[first, "0"]'));
        const server = await onDemand(context, file);
        assert.deepEqual(h.enginePids(server), []);
        let old = [];
        for (const model of ['a', 'b', 'first', 'c']) {
            const answer = await ask(server, model);
            assert.match(answer.text, /Paris/, `${model}: ${answer.text}\n${server.log}`);
            const pids = h.enginePids(server);
            assert.equal(pids.length, 1, `${pids.length} engines with one model allowed`);
            assert.ok(!old.includes(pids[0]), `${model} is served by the engine of another model`);
            old = pids;
        }
        const list = (await h.get(server, '/v1/models')).json().data.map((entry) => entry.id);
        for (const model of ['a', 'b', 'c']) assert.ok(list.includes(model), `${model} is not in ${list}`);
        const client = h.openai(server);
        for (const name of ['a', 'first']) assert.equal((await client.models.retrieve(name)).id, 'a');
        await assert.rejects(client.models.retrieve('org/none'), (error) => error.status === 404 && /org\/none/.test(error.message));
        // of several names llama.cpp would answer with the first of the alphabet
        assert.equal((await ask(server, 'first')).json().model, 'a');
    });

    test('a model that does not exist is a 404 that names it, and nothing is loaded or freed', async (context) => {
        const { file } = config(context, three);
        const server = await onDemand(context, file);
        await ask(server, 'a');
        const pids = h.enginePids(server);
        for (const model of ['no-such-model', '../../etc/passwd', '/etc/passwd', '']) {
            const answer = await ask(server, model);
            if (model !== '') {
                assert.ok([400, 404].includes(answer.status), answer.text);
                assert.match(answer.json().error.message, /no-such-model|passwd/);
                assert.doesNotMatch(answer.text, /root:/);
            } else assert.ok(answer.status < 500, answer.text);
        }
        assert.match((await ask(server, 'a')).text, /Paris/);
        assert.deepEqual(h.enginePids(server), pids);
    });

    test('clients that ask for two models in turns are all answered', async (context) => {
        const { file } = config(context, three);
        const server = await onDemand(context, file);
        const answers = await Promise.all(Array.from({ length: 8 }, (_, i) => ask(server, i % 2 ? 'a' : 'b')));
        for (const answer of answers) assert.match(answer.text, /Paris/);
        assert.equal(h.enginePids(server).length, 1);
    });

    // UX01, UX02
    test('UX01, UX02: an idle model is freed after its time, health checks do not keep it', async (context) => {
        const { file } = config(context, three);
        const server = await onDemand(context, file, ['--keep-alive', '2s']);
        await ask(server, 'a');
        assert.equal(h.enginePids(server).length, 1);
        await h.until('the idle model is freed', async () => {
            for (const route of ['/health', '/v1/models', '/metrics', '/onebit/ps']) await h.get(server, route);
            return h.enginePids(server).length === 0;
        }, h.patience, 100);
        assert.match((await ask(server, 'a')).text, /Paris/);
    });

    // DEV25: the row says 20 times
    test('DEV25: unload and reload twenty times keeps one copy and no memory', async (context) => {
        const { file } = config(context, three);
        const server = await onDemand(context, file);
        const supervisor = [];
        const engines = [];
        for (let i = 0; i < 20; i++) {
            assert.match((await ask(server, 'a', { max_tokens: 12 })).text, /Paris/);
            const pids = h.enginePids(server);
            assert.equal(pids.length, 1);
            engines.push(residentBytes(pids[0]));
            const answer = await h.post(server, '/onebit/unload', { model: 'a' });
            assert.ok(answer.status < 300, `${answer.status} ${answer.text}`);
            assert.equal(h.enginePids(server).length, 0);
            supervisor.push(residentBytes(server.child.pid));
        }
        const growth = supervisor.at(-1) - supervisor[4];
        assert.ok(growth < 4 << 20, `the supervisor grew by ${growth} bytes in 15 rounds`);
        assert.ok(Math.max(...engines) < 1.5 * Math.min(...engines), engines.join(' '));
    });

    // MF01: the other model goes on
    test('MF01: a truncated model is refused with both sizes, and a loaded one keeps serving', async (context) => {
        const folder = h.temporaryFolder(context);
        const whole = fs.readFileSync(path.join(h.models, 'onebit-tiny-Q4_0.gguf'));
        fs.writeFileSync(path.join(folder, 'cut.gguf'), whole.subarray(0, Math.floor(whole.length / 2)));
        const { file } = config(context, `${three}`.replace('models:\n', `models:\n  cut:\n    source: ${folder}/cut.gguf\n`));
        const server = await onDemand(context, file, ['--max-models', '2']);
        await ask(server, 'a');
        const pids = h.enginePids(server);
        const answer = await ask(server, 'cut');
        assert.ok(answer.status >= 400 && answer.status < 500, `${answer.status} ${answer.text}`);
        assert.match(answer.json().error.message, new RegExp(`${Math.floor(whole.length / 2)}|truncated`));
        assert.match((await ask(server, 'a')).text, /Paris/);
        assert.deepEqual(h.enginePids(server), pids);
    });

    // UX03
    test('UX03: a pinned model stays while others swap', async (context) => {
        const { file } = config(context, three.replace('aliases: [first]', 'pin: true'));
        const server = await onDemand(context, file, ['--max-models', '2']);
        await ask(server, 'a');
        const [pinned] = h.enginePids(server);
        for (const model of ['b', 'c', 'b']) {
            assert.match((await ask(server, model)).text, /Paris/);
            assert.ok(h.enginePids(server).includes(pinned), `${model} took the place of the pinned model`);
            assert.equal(h.enginePids(server).length, 2);
        }
    });

    // UX06
    test('UX06: the configuration is read again during a stream, a bad one is refused', async (context) => {
        const { file, write } = config(context, three);
        const server = await onDemand(context, file);
        const running = ask(server, 'a', { stream: true, max_tokens: 300, ignore_eos: true });
        await h.until('the engine is there', () => h.enginePids(server).length === 1);
        write(three.replace('  b:\n', '  new-name:\n'));
        const answer = await h.post(server, '/onebit/reload');
        assert.ok(answer.status < 300, answer.text);
        assert.match((await running).text, /\[DONE\]/);
        assert.match((await ask(server, 'new-name')).text, /Paris/);
        write('models: 7\nunknown_key: 1\n');
        const refused = await h.post(server, '/onebit/reload');
        assert.equal(refused.status, 400, refused.text);
        assert.match(refused.json().error.message, /onebit\.yaml/);
        assert.match((await ask(server, 'new-name')).text, /Paris/);
    });

    // UX07
    test('UX07: metrics carry the name of the model', async (context) => {
        const { file } = config(context, three);
        const server = await onDemand(context, file, ['--max-models', '2']);
        await ask(server, 'a');
        await ask(server, 'b');
        const { text } = await h.get(server, '/metrics');
        for (const model of ['a', 'b']) assert.match(text, new RegExp(`model="${model}"`));
        // each line is a comment or a sample, and no sample is there twice
        const samples = text.split('\n').filter((line) => line && !line.startsWith('#')).map((line) => line.replace(/ [^ ]+$/, ''));
        assert.equal(new Set(samples).size, samples.length);
        for (const line of text.split('\n').filter(Boolean)) assert.match(line, /^(#|[a-zA-Z_:][a-zA-Z0-9_:]*(\{[^}]*\})? [-+0-9.eEinfNa]+$)/);
    });

    // UX13
    test('UX13: models to load at start are there before the first request', async (context) => {
        const { file } = config(context, `preload: [b]\n${three}`);
        const server = await onDemand(context, file);
        await h.until('b is ready', async () => (await loaded(server)).includes('b'));
        assert.match(server.log, /^curl .*"model":"b"/m);
    });
});

describe('without a model', () => {
    test('the default one loads at start, and makes room for another', async (context) => {
        const { file } = config(context, 'default_model: only\nmodels:\n  only:\n    source: MODELS/onebit-tiny-Q8_0.gguf\ndefaults: {devices: [CPU], context: 512, parallel: 1}\n');
        const server = await onDemand(context, file);
        await h.until('it is ready without a request', async () => (await loaded(server)).includes('only'));
        assert.equal((await h.get(server, '/health')).json().models[0], 'only');
        const [pid] = h.enginePids(server);
        assert.match((await h.chat(server, 'What is the capital of France?')).text, /Paris/);
        assert.deepEqual(h.enginePids(server), [pid]);
        assert.match((await ask(server, 'builtin')).text, /Paris/);
        assert.deepEqual(await loaded(server), ['builtin']);
    });
});

describe('devices that are named', () => {
    // DEV17
    test('DEV17: a device that does not exist fails the start and is named', async (context) => {
        const env = h.environment(h.temporaryFolder(context));
        for (const device of ['HRX0', 'CUDA7', 'no-such-device']) {
            const result = await h.run(h.program, ['serve', h.model, '--device', device, '--port', String(await h.freePort())], { env });
            assert.ok([1, 2].includes(result.code), `exit code ${result.code}: ${result.stderr}`);
            assert.match(result.stderr, new RegExp(device));
        }
    });
});

describe('a chat template', () => {
    // API30
    test('API30: one that the engine cannot run fails the start with its words', async (context) => {
        const folder = h.temporaryFolder(context);
        const template = path.join(folder, 'bad.jinja');
        fs.writeFileSync(template, '{% for m in messages %}{{ m.content | no_such_filter }}{% endfor %}');
        const args = ['serve', h.model, '--device', 'CPU', '--port', String(await h.freePort()), '--', '-c', '512', '--chat-template-file', template];
        const result = await h.run(h.program, args, { env: h.environment(folder) });
        assert.equal(result.code, 1, result.stderr);
        assert.match(result.stderr, /template is not supported[^]*no_such_filter/);
    });
});
