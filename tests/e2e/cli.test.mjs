// Breaks when a command of the program does not work from the shell: wrong exit code, output that no program can read,
// an answer that is not the model's.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { before, describe, test } from 'node:test';
import * as h from './harness.mjs';

const file = h.wholeFile();
const commands = ['serve', 'run', 'devices', 'doctor', 'bench', 'plan', 'models', 'pull', 'ps', 'unload', 'version', 'completions'];
let env;
before(() => { env = h.environment(h.temporaryFolder(file)); });
const onebit = (args, options = {}) => h.run(h.program, args, { env: { ...env, ...options.env }, input: options.input });
const json = (result) => {
    assert.equal(result.code, 0, result.stderr);
    return JSON.parse(result.stdout);
};

describe('help and usage', () => {
    test('each command explains itself', async () => {
        const top = await onebit(['--help']);
        assert.equal(top.code, 0);
        for (const command of commands) {
            assert.match(top.stdout, new RegExp(`\\b${command}\\b`), `--help does not name ${command}`);
            const help = await onebit([command, '--help']);
            assert.equal(help.code, 0, command);
            assert.match(help.stdout, /1bit/, `${command} --help has no example`);
        }
    });

    test('wrong usage is exit code 2 and one line that names it', async () => {
        for (const args of [['no-such-command'], ['serve', '--no-such-flag'], ['serve', '--port', 'x'], ['serve', '--port', '70000'], ['plan', '--no-such'], ['run', '--no-such'], ['models', 'extra-word']]) {
            const result = await onebit(args);
            assert.equal(result.code, 2, `${args.join(' ')}: ${result.code} ${result.stderr}`);
            assert.equal(result.stdout, '', args.join(' '));
            assert.ok(result.stderr.trim().length > 0, args.join(' '));
        }
    });

    test('a file that is not there is exit code 1 and named', async () => {
        for (const args of [['plan', '/no/such/model.gguf'], ['serve', '/no/such/model.gguf'], ['run', '/no/such/model.gguf', 'hi']]) {
            const result = await onebit(args);
            assert.equal(result.code, 1, `${args.join(' ')}: ${result.stderr}`);
            assert.match(result.stderr, /\/no\/such\/model\.gguf/);
        }
    });

    // MF18: the lag behind llama.cpp is visible
    test('version names the pin of llama.cpp', async () => {
        const pins = fs.readFileSync(path.join(h.root, 'third_party/pins.env'), 'utf8');
        const [, tag] = pins.match(/^LLAMA_TAG=(.*)$/m);
        const [, date] = pins.match(/^LLAMA_PIN_DATE=(.*)$/m);
        const result = await onebit(['version']);
        assert.equal(result.code, 0);
        assert.match(result.stdout, new RegExp(tag.replaceAll('.', '\\.')));
        assert.match(result.stdout, new RegExp(date));
        json(await onebit(['version', '--json']));
    });

    test('completions for each shell', async () => {
        for (const shell of ['bash', 'zsh', 'fish']) {
            const result = await onebit(['completions', shell]);
            assert.equal(result.code, 0, result.stderr);
            for (const command of ['serve', 'devices']) assert.match(result.stdout, new RegExp(command));
        }
    });
});

describe('commands that look at the machine', () => {
    test('devices lists the CPU first; software Vulkan is called that and not chosen (DEV13)', async () => {
        const list = json(await onebit(['devices', '--json']));
        const devices = list.devices ?? list;
        assert.equal(devices[0].kind, 'cpu');
        for (const device of devices) {
            if (device.total_bytes && device.free_bytes) assert.ok(device.free_bytes <= device.total_bytes);
            if (/llvmpipe/.test(JSON.stringify(device))) assert.notEqual(device.chosen_by_default, true);
        }
        if (!h.noSoftwareVulkan()) assert.match((await onebit(['devices'])).stdout, /software/i);
    });

    test('doctor finds what it finds and says how to mend it', async () => {
        const result = await onebit(['doctor', '--json']);
        assert.ok([0, 1].includes(result.code), result.stderr);
        JSON.parse(result.stdout);
    });

    test('plan shows the parts and whether they fit', async () => {
        const plan = json(await onebit(['plan', h.model, '--json']));
        assert.equal(plan.fits, true);
        assert.match((await onebit(['plan', h.model])).stdout, /CPU/);
    });

    test('models lists the built-in one', async () => {
        const list = json(await onebit(['models', '--json']));
        assert.ok((list.models ?? list).some((entry) => entry.id === 'builtin'));
    });
});

describe('run', () => {
    test('one answer, then exit', async () => {
        const result = await onebit(['run', 'builtin', 'What is the capital of France?']);
        assert.equal(result.code, 0, result.stderr);
        assert.match(result.stdout, /Paris/);
    });

    test('the question from standard input', async () => {
        const result = await onebit(['run', 'builtin'], { input: 'What is the capital of Spain?\n' });
        assert.equal(result.code, 0, result.stderr);
        assert.match(result.stdout, /Madrid/);
    });

    test('a pipe that says nothing does not hold a given prompt up, and is told', async () => {
        const child = spawn(h.program, ['run', 'builtin', 'What is the capital of France?'], { env, stdio: ['pipe', 'pipe', 'pipe'] });
        file.after(() => child.kill('SIGKILL'));
        let [stdout, stderr] = ['', ''];
        child.stdout.on('data', (data) => (stdout += data));
        child.stderr.on('data', (data) => (stderr += data));
        const code = await new Promise((resolve) => child.on('close', resolve));
        assert.equal(code, 0, stderr);
        assert.match(stdout, /Paris/);
        assert.match(stderr, /standard input says nothing/);
    });

    test('standard input beside a prompt is a part of it', async () => {
        const args = ['run', 'builtin', 'What is the capital of Spain?', '--json', '-n', '2'];
        const alone = json(await onebit(args));
        const both = json(await onebit(args, { input: h.longText(100) }));
        assert.ok(both.tokens.prompt > alone.tokens.prompt + 50, `${both.tokens.prompt} and ${alone.tokens.prompt} tokens`);
        assert.equal(json(await onebit(args, { input: '' })).tokens.prompt, alone.tokens.prompt);
    });

    test('as JSON', async () => {
        const answer = json(await onebit(['run', 'builtin', 'What is the capital of Italy?', '--json']));
        assert.match(JSON.stringify(answer), /Rome/);
    });

    // UX18
    test('UX18: a prompt that does not fit is an error here, not only in a log', async () => {
        const result = await onebit(['run', 'builtin', '-'], { input: h.longText(6000) });
        const direct = result.code === 0 ? await onebit(['run', 'builtin'], { input: h.longText(6000) }) : result;
        assert.equal(direct.code, 1, `${direct.code} ${direct.stdout.slice(0, 200)} ${direct.stderr}`);
        assert.match(direct.stderr, /context|tokens/);
    });
});

describe('a server that runs', () => {
    let server;
    before(async () => {
        server = await h.startServer(file, { engine: ['-c', '1024'] });
    });

    test('it prints its address, the devices and a curl line that works', async () => {
        assert.match(server.log, new RegExp(`http://127\\.0\\.0\\.1:${server.port}`));
        assert.match(server.log, /CPU/);
        const [line] = server.log.match(/curl http.*$/m) ?? [];
        assert.ok(line, server.log);
        const result = await h.run('bash', ['-c', line]);
        assert.equal(result.code, 0, result.stderr);
        assert.match(result.stdout, /Paris|choices/);
    });

    test("README's curl line works", async () => {
        const readme = fs.readFileSync(path.join(h.root, 'README.md'), 'utf8');
        const [line] = readme.match(/^curl .*$/m);
        const result = await h.run('bash', ['-c', line.replace(':8080', `:${server.port}`)]);
        assert.equal(result.code, 0, result.stderr);
        assert.match(JSON.parse(result.stdout).choices[0].message.content, /Paris/);
    });

    test('ps shows the model with measured values (DEV27)', async () => {
        await h.chat(server, 'What is the capital of France?');
        const list = json(await onebit(['ps', '--json', '--port', String(server.port)]));
        const row = list.engines[0];
        assert.equal(row.state, 'ready');
        const pid = h.enginePids(server)[0];
        assert.equal(row.pid, pid);
        const resident = Number(fs.readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * 4096;
        assert.ok(row.resident_bytes > resident / 2 && row.resident_bytes < resident * 2, `${row.resident_bytes}, measured ${resident}`);
        // all eight layers on the CPU, weights as large as the file's
        assert.deepEqual(row.memory.map((one) => [one.device, one.layers]), [['CPU', 8]]);
        const [cpu] = row.memory;
        const size = fs.statSync(h.model).size;
        assert.ok(cpu.weights_bytes > size * 0.8 && cpu.weights_bytes < size * 1.2, `${cpu.weights_bytes} of a file of ${size}`);
        // 1024 cells of K and V of f16 in 8 layers with 2 heads of 64
        assert.equal(cpu.kv_cache_bytes, 1024 * 8 * 2 * 2 * 64 * 2);
        assert.ok(cpu.compute_bytes > 0);
        assert.match((await onebit(['ps', '--port', String(server.port)])).stdout, /DEVICE +LAYERS +WEIGHTS[\s\S]*CPU +8 /);
    });

    // UX19: what ps shows follows the settings
    test('UX19: a smaller batch needs less compute memory, and ps shows it', async (context) => {
        const compute = async (one) => (await h.get(one, '/onebit/ps')).json().engines[0].memory[0].compute_bytes;
        const small = await h.startServer(context, { engine: ['-c', '1024', '-b', '32', '-ub', '32'] });
        const [less, more] = [await compute(small), await compute(server)];
        assert.ok(less > 0 && less < more, `${less} with 32 tokens, ${more} with 512`);
    });

    // DEV27: half of the layers on another device
    test('DEV27: ps shows the layers where they lie', { skip: h.noSoftwareVulkan() }, async (context) => {
        const split = await h.startServer(context, { device: 'Vulkan0', engine: ['-c', '512', '-ngl', '4', '--no-warmup', '--fit', 'off'] });
        const [row] = (await h.get(split, '/onebit/ps')).json().engines;
        const on = Object.fromEntries(row.memory.map((one) => [one.device, one]));
        assert.equal(on.CPU.layers + on.Vulkan0.layers, 8, JSON.stringify(row.memory));
        assert.ok(on.Vulkan0.layers >= 3 && on.Vulkan0.layers <= 4, JSON.stringify(row.memory));
        assert.ok(on.Vulkan0.weights_bytes > 0 && on.Vulkan0.kv_cache_bytes > 0 && on.CPU.weights_bytes > 0, JSON.stringify(row.memory));
    });

    test('ps without a server is exit code 1 and says what to do', async () => {
        const result = await onebit(['ps', '--port', String(await h.freePort())]);
        assert.equal(result.code, 1);
        assert.match(result.stderr, /1bit serve/);
    });
});
