// Breaks when the web page does not load from the server alone, or does not show the answer of a chat.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import * as h from './harness.mjs';

const browserPath = ['/usr/bin/chromium', '/usr/bin/google-chrome'].find((file) => fs.existsSync(file));
const skip = browserPath ? false : 'no Chromium: scripts/install-packages test';

describe('web page', { skip }, () => {
    test('a message is answered on the page, with no network but the server', async (context) => {
        const server = await h.startServer(context, { engine: ['-c', '2048', '-np', '2'] });
        const browser = await h.chromium.launch({
            executablePath: browserPath, headless: true,
            args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
                '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'],
        });
        context.after(() => browser.close());
        const page = await browser.newPage({ viewport: { width: 1200, height: 800 } });
        page.setDefaultTimeout(h.patience);
        const outside = [];
        const errors = [];
        await page.route('**/*', (route) => {
            const url = new URL(route.request().url());
            if (url.port === String(server.port) || ['data:', 'blob:'].includes(url.protocol)) return route.continue();
            outside.push(url.href);
            return route.abort();
        });
        page.on('pageerror', (error) => errors.push(error.message));
        fs.mkdirSync(h.artifacts, { recursive: true });
        try {
            await page.goto(`${server.url}/`);
            const box = page.locator('textarea:visible').first();
            await box.waitFor();
            await box.fill('What is the capital of France?');
            await box.press('Enter');
            await page.getByText('The capital of France is Paris').first().waitFor();
        } finally {
            await page.screenshot({ path: path.join(h.artifacts, 'web-page.png') });
        }
        assert.deepEqual(outside, []);
        assert.deepEqual(errors, []);
    });

    test('the page and its parts come without a network name in them', async (context) => {
        const server = await h.startServer(context, { engine: ['-c', '512'] });
        const plain = await h.get(server, '/');
        assert.equal(plain.status, 200);
        assert.equal(plain.headers['content-encoding'], undefined);
        assert.match(plain.text, /<html/);
        const answer = await h.get(server, '/', { 'accept-encoding': 'gzip' });
        assert.equal(answer.status, 200);
        const html = (answer.headers['content-encoding'] === 'gzip' ? gunzipSync(answer.bytes) : answer.bytes).toString();
        assert.match(answer.headers['content-type'], /text\/html/);
        for (const [, source] of html.matchAll(/(?:src|href)="([^"]+)"/g)) assert.doesNotMatch(source, /^(https?:)?\/\//);
    });
});
