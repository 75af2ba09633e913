// Breaks when an engine that dies, hangs or has no disk takes the server or other requests with it, or goes unnoticed.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import * as h from './harness.mjs';

const slow = h.slowEngine;
const engine = (server) => h.until('there is an engine', () => h.enginePids(server)[0]);
const question = 'What is the capital of France?';

// Waits until the server answers again; each answer before that must be a clear 503.
async function answersAgain(server) {
    await h.until(`a good answer again\n${server.log}`, async () => {
        const answer = await h.chat(server, question);
        if (answer.status === 200) {
            assert.match(answer.text, /Paris/);
            return true;
        }
        assert.equal(answer.status, 503, answer.text);
        assert.ok(answer.json().error.message);
        return false;
    }, h.patience, 100);
}
// A stream that is running, with what came until it ended.
async function stream(server, body) {
    const state = { text: '', ended: false, failed: null };
    const open = h.openRequest(server, 'POST', '/completion', { stream: true, n_predict: 4000, ignore_eos: true, temperature: 0, ...body });
    open.on('error', (error) => { state.failed = error; state.ended = true; });
    open.on('response', (response) => {
        state.status = response.statusCode;
        response.on('data', (data) => (state.text += data));
        response.on('error', (error) => { state.failed = error; state.ended = true; });
        response.on('end', () => (state.ended = true));
    });
    return state;
}

describe('an engine that is killed', () => {
    // UX10
    test('UX10: in decode the stream ends with an error, and the next request is answered', async (context) => {
        const server = await h.startServer(context, { engine: slow });
        const running = await stream(server, { prompt: 'Once upon a time' });
        await h.until('the stream runs', () => running.text.split('data:').length > 5);
        const old = await engine(server);
        process.kill(old, 'SIGKILL');
        await h.until('the stream has ended', () => running.ended);
        assert.match(running.text, /"error"/, `the stream just stopped: ...${running.text.slice(-300)}`);
        assert.doesNotMatch(running.text, /\[DONE\]/);
        await answersAgain(server);
        assert.notEqual(await engine(server), old);
    });

    test('UX10, UX21: in prefill the request gets a clear error, the log names the signal', async (context) => {
        const server = await h.startServer(context, { engine: slow });
        const answer = h.post(server, '/completion', { prompt: h.longText(14000), n_predict: 1 });
        await h.until('prefill has begun', async () => (await h.get(server, '/slots')).json().some((slot) => slot.is_processing), h.patience, 5);
        process.kill(await engine(server), 'SIGKILL');
        const { status, text } = await answer;
        assert.ok([502, 503].includes(status), `${status} ${text}`);
        assert.ok(JSON.parse(text).error.message);
        await answersAgain(server);
        assert.match(server.log, /SIGKILL|signal 9|[Kk]illed/);
    });

    test('while it comes back, health says so and requests are told when to try again', async (context) => {
        const server = await h.startServer(context, { engine: slow });
        for (let i = 0; i < 3; i++) {
            const pid = await engine(server);
            process.kill(pid, 'SIGKILL');
            await h.until('health is not OK', async () => {
                const health = await h.get(server, '/health');
                if (health.status === 200) return (await engine(server)) !== pid;
                assert.equal(health.status, 503);
                assert.ok(Number(health.headers['retry-after']) >= 1, 'no Retry-After');
                return true;
            }, h.patience, 2);
            await answersAgain(server);
        }
    });
});

describe('an engine that hangs', () => {
    // UX09, UX11
    test('UX09, UX11: it is noticed, killed and started again; health is not OK meanwhile', async (context) => {
        const server = await h.startServer(context, { engine: slow });
        await h.chat(server, question);
        const running = await stream(server, { prompt: 'Once upon a time' });
        await h.until('the stream runs', () => running.text.split('data:').length > 5);
        const old = await engine(server);
        process.kill(old, 'SIGSTOP');
        await h.until('health tells of it before it is killed', async () => {
            const health = await h.get(server, '/health');
            if (health.status === 200) return false;
            assert.equal(health.status, 503);
            assert.equal(health.json().status, 'stalled');
            return true;
        });
        await h.until('the stream has ended', () => running.ended);
        assert.match(running.text, /"error"/, `the stream just stopped: ...${running.text.slice(-300)}`);
        await answersAgain(server);
        assert.notEqual(await engine(server), old);
        const { text } = await h.get(server, '/metrics');
        assert.match(text, /^onebit_engine_hangs_total\{[^}]*\} [1-9]/m);
    });

    test('UX11: SIGTERM ends the server although the engine is stopped', async (context) => {
        const server = await h.startServer(context, { engine: slow });
        process.kill(await engine(server), 'SIGSTOP');
        server.child.kill('SIGTERM');
        await h.sleep(300);
        server.child.kill('SIGTERM');
        await server.ended;
        assert.deepEqual(h.enginePids(server), []);
    });
});

describe('the end of the server', () => {
    test('SIGTERM lets a running answer end, and takes no new one', async (context) => {
        const server = await h.startServer(context, { engine: slow });
        const running = await stream(server, { prompt: 'Once upon a time', n_predict: 300 });
        await h.until('the stream runs', () => running.text.split('data:').length > 3);
        server.child.kill('SIGTERM');
        await h.until('it is stopping', () => /stopping/.test(server.log));
        const late = await h.chat(server, question).catch((error) => error);
        assert.ok(late.code === 'ECONNREFUSED' || late.code === 'ECONNRESET' || late.status === 503, `${late.status ?? late}`);
        const { code } = await server.ended;
        assert.equal(code, 0, server.log);
        assert.equal(running.failed, null);
        const last = JSON.parse(running.text.trim().split('\n\n').at(-1).replace(/^data: /, ''));
        assert.equal(last.tokens_predicted, 300);
    });

    test('a second SIGTERM ends it at once', async (context) => {
        const server = await h.startServer(context, { engine: slow });
        const pid = await engine(server);
        const running = await stream(server, { prompt: 'Once upon a time', n_predict: 7000 });
        await h.until('the stream runs', () => running.text.split('data:').length > 3);
        server.child.kill('SIGTERM');
        await h.sleep(200);
        assert.equal(server.code, null, 'it did not wait for the running request');
        server.child.kill('SIGTERM');
        await server.ended;
        assert.equal(server.code, 0, server.log);
        await h.until('the stream ends', () => running.ended || running.failed);
        assert.equal(running.failed, null);
        assert.match(running.text, /data: \{"error":\{"code":503,"message":"the server is stopping[^\n]*\n\n$/);
        assert.ok(!fs.existsSync(`/proc/${pid}`) || fs.readFileSync(`/proc/${pid}/stat`, 'utf8').includes(' Z '));
    });

    test('requests that outlast the drain time are told so', async (context) => {
        const server = await h.startServer(context, { engine: slow, flags: ['--drain-timeout', '1s'] });
        const whole = h.post(server, '/completion', { prompt: 'Once upon a time', n_predict: 7000, ignore_eos: true });
        const client = h.openai(server);
        const events = await client.chat.completions.create({
            messages: [{ role: 'user', content: question }], max_tokens: 7000, stream: true, ignore_eos: true, model: 'x' });
        const seen = [];
        const told = assert.rejects(
            async () => {
                for await (const event of events) seen.push(event);
            },
            /the server is stopping/,
        );
        await h.until('the stream runs', () => seen.length > 3);
        server.child.kill('SIGTERM');
        const answer = await whole;
        assert.equal(answer.status, 503, answer.text);
        assert.match(answer.json().error.message, /the server is stopping/);
        await told;
        await server.ended;
        assert.equal(server.code, 0, server.log);
    });

    test('the engine goes when the supervisor is killed', async (context) => {
        const server = await h.startServer(context, { engine: slow });
        const pid = await engine(server);
        server.child.kill('SIGKILL');
        await server.ended;
        await h.until('the engine is gone', () => !fs.existsSync(`/proc/${pid}`) || / [ZX] /.test(fs.readFileSync(`/proc/${pid}/stat`, 'utf8')));
    });

    // UX14
    test('UX14: what a killed server left behind does not block the next', async (context) => {
        const first = await h.startServer(context, { engine: slow });
        first.child.kill('SIGKILL');
        await first.ended;
        const second = await h.startServer(context, { engine: slow, env: { XDG_RUNTIME_DIR: path.join(first.folder, 'runtime'), ONEBIT_CACHE: path.join(first.folder, 'cache') } });
        assert.match((await h.chat(second, question)).text, /Paris/);
    });

    test('a taken port is refused and named', async (context) => {
        const first = await h.startServer(context, { engine: slow });
        const result = await h.run(h.program, ['serve', h.model, '--device', 'CPU', '--port', String(first.port)], { env: h.environment(h.temporaryFolder(context)) });
        assert.equal(result.code, 1, result.stderr);
        assert.match(result.stderr, new RegExp(String(first.port)));
    });
});

describe('a full disk', () => {
    test('a slot that cannot be saved is an error and leaves no half file', async (context) => {
        const folder = h.newFolder();
        try {
            execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'none', folder], { stdio: 'ignore' });
        } catch {
            fs.rmdirSync(folder);
            context.skip('cannot mount a small file system here');
            return;
        }
        context.after(() => {
            execFileSync('umount', ['-l', folder]);
            fs.rmdirSync(folder);
        });
        const server = await h.startServer(context, { engine: [...slow, '--slot-save-path', `${folder}/`] });
        await h.post(server, '/completion', { prompt: h.longText(1500), n_predict: 1, id_slot: 0 });
        const answer = await h.post(server, '/slots/0?action=save', { filename: 'slot.bin' });
        assert.ok(answer.status >= 400, `${answer.status} ${answer.text}`);
        assert.ok(answer.json().error.message);
        await answersAgain(server);
    });
});

describe('while the model loads', () => {
    test('503 with Retry-After and progress in health, then 200', async (context) => {
        const server = await h.startServer(context, { engine: slow, wait: false });
        const seen = new Set();
        await h.until('health is OK', async () => {
            const health = await h.get(server, '/health');
            seen.add(health.status);
            if (health.status === 503) {
                assert.ok(Number(health.headers['retry-after']) >= 1);
                const { progress } = health.json();
                assert.ok(progress === undefined || (progress >= 0 && progress <= 1));
            }
            return health.status === 200;
        }, h.patience, 2);
        assert.ok([...seen].every((status) => [200, 503].includes(status)), [...seen].join(' '));
        assert.match((await h.chat(server, question)).text, /Paris/);
    });

    test('a model file that is damaged ends the start with its name', async (context) => {
        const folder = h.temporaryFolder(context);
        const whole = fs.readFileSync(h.model);
        for (const [name, bytes] of [['half.gguf', whole.subarray(0, whole.length / 2)], ['text.gguf', Buffer.from('version https://git-lfs.github.com/spec/v1\n')], ['empty.gguf', Buffer.alloc(0)]]) {
            const file = path.join(folder, name);
            fs.writeFileSync(file, bytes);
            const result = await h.run(h.program, ['serve', file, '--device', 'CPU', '--port', String(await h.freePort())], { env: h.environment(folder) });
            assert.equal(result.code, 1, `${name}: ${result.code} ${result.stderr}`);
            assert.match(result.stderr, new RegExp(name));
        }
    });
});
