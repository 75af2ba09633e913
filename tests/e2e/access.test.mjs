// Breaks when a stranger can use the server: a web page of another origin, a client without the key, a huge body.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { before, describe, test } from 'node:test';
import * as h from './harness.mjs';

const file = h.wholeFile();
const evil = { origin: 'https://evil.example' };
const question = { messages: [{ role: 'user', content: 'What is the capital of France?' }], max_tokens: 12, temperature: 0 };

// API38
describe('API38: other origins', () => {
    let closed;
    let open;
    before(async () => {
        closed = await h.startServer(file, { engine: ['-c', '1024'] });
        open = await h.startServer(file, { engine: ['-c', '1024'], flags: ['--cors-origin', 'https://good.example'] });
    });

    test('a preflight from another origin is not allowed', async () => {
        const headers = { ...evil, 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type,authorization' };
        for (const route of ['/v1/chat/completions', '/v1/models', '/props', '/slots/0?action=save']) {
            const answer = await h.request(closed, 'OPTIONS', route, undefined, headers);
            assert.equal(answer.headers['access-control-allow-origin'], undefined, route);
            assert.equal(answer.headers['access-control-allow-credentials'], undefined, route);
        }
    });

    test('no answer is readable by another origin', async () => {
        for (const stream of [false, true]) {
            const answer = await h.post(closed, '/v1/chat/completions', { ...question, stream }, evil);
            assert.equal(answer.headers['access-control-allow-origin'], undefined);
            assert.equal(answer.headers['access-control-allow-credentials'], undefined);
        }
        for (const route of ['/v1/models', '/health', '/props', '/nothing']) {
            assert.equal((await h.get(closed, route, evil)).headers['access-control-allow-origin'], undefined, route);
        }
    });

    test('an origin that was named is allowed, without credentials for all', async () => {
        const answer = await h.post(open, '/v1/chat/completions', question, { origin: 'https://good.example' });
        assert.equal(answer.headers['access-control-allow-origin'], 'https://good.example');
        assert.match(answer.text, /Paris/);
        assert.equal((await h.get(open, '/v1/models', evil)).headers['access-control-allow-origin'], undefined);
    });

    test('the own page is served, whatever its loopback name', async () => {
        for (const host of [`127.0.0.1:${closed.port}`, `localhost:${closed.port}`]) {
            const answer = await h.post(closed, '/v1/chat/completions', question, { host, origin: `http://${host}` });
            assert.equal(answer.status, 200, answer.text);
        }
    });
});

describe('API key', () => {
    let server;
    before(async () => {
        server = await h.startServer(file, { engine: ['-c', '1024'], flags: ['--api-key', 'right-key'] });
    });

    test('without the right key there is no answer', async () => {
        for (const headers of [{}, { authorization: 'Bearer wrong' }, { authorization: 'Bearer right-ke' }, { authorization: 'Bearer right-keyx' }, { authorization: 'right-key' }, { authorization: 'Bearer ' }, { 'x-api-key': '' }]) {
            const answer = await h.post(server, '/v1/chat/completions', question, headers);
            assert.equal(answer.status, 401, JSON.stringify(headers));
            assert.ok(answer.json().error.message);
            assert.doesNotMatch(answer.text, /right-key/);
        }
        for (const route of ['/props', '/slots']) assert.equal((await h.get(server, route)).status, 401, route);
    });

    test('with the key there is, in both ways of giving it', async () => {
        for (const headers of [{ authorization: 'Bearer right-key' }, { 'x-api-key': 'right-key' }]) {
            assert.match((await h.post(server, '/v1/chat/completions', question, headers)).text, /Paris/);
        }
    });

    // API39: health is open, and the log never shows the key
    test('API39: health is open without a key, metrics need it', async () => {
        assert.equal((await h.get(server, '/health')).status, 200);
        assert.equal((await h.get(server, '/metrics')).status, 401);
        assert.equal((await h.get(server, '/metrics', { authorization: 'Bearer right-key' })).status, 200);
        assert.doesNotMatch(server.log, /right-key/);
    });
});

describe('reading the configuration again', () => {
    test('a file that is gone, empty or broken does not open a server that asks for a key', async (context) => {
        const folder = h.temporaryFolder(context);
        const config = path.join(folder, '1bit', 'onebit.yaml');
        fs.mkdirSync(path.dirname(config));
        fs.writeFileSync(config, 'api_keys: [first]\n', { mode: 0o600 });
        const server = await h.startServer(context, { model: '', device: '', wait: false, env: { XDG_CONFIG_HOME: folder } });
        const key = (name) => ({ authorization: `Bearer ${name}` });
        const reload = (name) => h.post(server, '/onebit/reload', {}, key(name));
        const status = async (headers) => (await h.get(server, '/v1/models', headers)).status;
        assert.equal(await status({}), 401);
        fs.rmSync(config);
        const gone = await reload('first');
        assert.equal(gone.status, 404, gone.text);
        assert.match(gone.json().error.message, /onebit\.yaml/);
        assert.equal(await status({}), 401);
        fs.writeFileSync(config, 'api_keys: [');
        assert.equal((await reload('first')).status, 400);
        assert.equal(await status(key('first')), 200);
        fs.writeFileSync(config, 'api_keys: [" spaced "]');
        assert.equal((await reload('first')).status, 400);
        assert.equal(await status(key('first')), 200);
        fs.writeFileSync(config, 'api_keys: [second]');
        assert.equal((await reload('first')).status, 200);
        assert.equal(await status(key('first')), 401);
        assert.equal(await status(key('second')), 200);
    });
});

describe('limits of a request', () => {
    test('a body above the limit is a 413 and is not read', async (context) => {
        const server = await h.startServer(context, { engine: ['-c', '1024'], flags: ['--max-request-size', '1M'] });
        const answer = await h.post(server, '/v1/chat/completions', Buffer.alloc(2 << 20, 0x20)).catch((error) => error);
        // the server may close the connection while the body is still being sent
        if (answer.status) assert.equal(answer.status, 413);
        else assert.match(String(answer.code), /ECONNRESET|EPIPE/);
        assert.match((await h.post(server, '/v1/chat/completions', question)).text, /Paris/);
    });

    test('an address of all networks without a key is warned of', async (context) => {
        const server = await h.startServer(context, { engine: ['-c', '1024'], flags: ['--host', '0.0.0.0'] });
        assert.match(server.log, /anyone who can reach 0\.0\.0\.0/);
    });
});
